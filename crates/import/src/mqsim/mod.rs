//! MQSim's configuration and workload (Tavakkol et al., "MQSim: A Framework for Enabling Realistic Studies of Modern
//! Multi-Queue SSD Devices", FAST 2018), as they are read by its version of 2018.
//!
//! What a tag does in MQSim, not what its name says, decides the mapping; where the two differ, a note tells. Times
//! that MQSim does not let one choose, such as those of command cycles and of PCIe messages, are set to what it uses.

mod device;
mod parts;
mod workload;

use std::path::Path;

use self::device::Ssd;
use self::parts::Shares;
use self::workload::Scenarios;
use super::notes::Notes;
use super::section::{Section, Xml, readable};
use super::{ImportError, Imported};

const SECTOR: u64 = 512;
/// MQSim's longest PCIe payload, and the message that has it, bytes.
const PCIE_PAYLOAD: u64 = 128;
const PCIE_MESSAGE: u64 = PCIE_PAYLOAD + 28;
/// Victims that MQSim empties at the same time in a plane, which is also the least number of free blocks it keeps.
const CONCURRENT_VICTIMS: u64 = 10;

/// Counts the requests of a trace, or says why it cannot.
pub type RequestsOf<'a> = &'a dyn Fn(&Path) -> Result<u64, String>;

/// [`import_counting`], for workloads whose traces are executed whole.
///
/// # Errors
/// As there, and where a share of a trace is to be executed.
pub fn import(device: (&str, &str), workload: Option<(&str, &str)>) -> Result<Imported, ImportError> {
    import_counting(device, workload, &|_| Err("not supported".to_owned()))
}

/// Reads `ssdconfig.xml` and, where given, `workload.xml`; each is a name for messages and a text. `requests_of` is
/// asked only of traces of which a share is to be executed.
///
/// # Errors
/// At the first tag that has an impossible value or asks for what is not simulated, with its line.
pub fn import_counting(
    device: (&str, &str),
    workload: Option<(&str, &str)>,
    requests_of: RequestsOf<'_>,
) -> Result<Imported, ImportError> {
    let mut notes = Notes::default();
    let flows = workload.map(|(file, text)| Scenarios::read(file, text, requests_of, &mut notes)).transpose()?;
    let (file, text) = device;
    let text = readable(text, file, &mut notes)?;
    let xml = Xml::parse(&text, file)?;
    let root = Section::root(file, &xml, "Execution_Parameter_Set")?;
    let mut ssd = Ssd::read(&root, &mut notes)?;
    let shares = match &flows {
        Some(flows) => flows.shares(&mut ssd, &mut notes)?,
        None => Shares::even(&ssd, 1),
    };
    if shares.is_cut {
        notes.add(format!(
            "<Overprovisioning_Ratio>: MQSim's capacity leaves garbage collection too few free blocks; here the \
             capacity is {} bytes",
            shares.capacity_bytes()
        ));
    }
    let caching = flows.as_ref().and_then(Scenarios::caching);
    let device = ssd.device(file, &shares, caching, &mut notes)?;
    let workloads = flows.map_or(Ok(Vec::new()), |flows| flows.workloads(&ssd, &shares))?;
    Ok(Imported { source: format!("MQSim, {file}"), device, workloads, notes: notes.into_list() })
}

/// Notes that tags of a section have no effect, if they are there.
fn no_effect(notes: &mut Notes, section: &Section<'_>, names: &[&'static str], why: &str) -> Result<(), ImportError> {
    for name in names {
        if let Some(value) = section.text(name)? {
            notes.add(format!("<{name}> = {value}: {why}"));
        }
    }
    Ok(())
}

/// What of a flow's caching decides how the drive is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caching {
    Off,
    Write,
    Read,
    Both,
}

#[cfg(test)]
mod tests {
    use flashwise_trace::workload::{Access, Pacing, Priority, Size, TraceFormat, Workload};

    use super::*;
    use flashwise_ssd::config::{DeviceConfig, Interface};

    const DEVICE: &str = "<?xml version=\"1.0\"?>
<Execution_Parameter_Set>
  <Host_Parameter_Set><PCIe_Lane_Bandwidth>1.0</PCIe_Lane_Bandwidth><PCIe_Lane_Count>4</PCIe_Lane_Count></Host_Parameter_Set>
  <Device_Parameter_Set>
    <Seed>7</Seed>
    <Queue_Fetch_Size>64</Queue_Fetch_Size>
    <Data_Cache_DRAM_Data_Rate>100</Data_Cache_DRAM_Data_Rate>
    <Ideal_Mapping_Table>true</Ideal_Mapping_Table>
    <Plane_Allocation_Scheme>PDCW</Plane_Allocation_Scheme>
    <Overprovisioning_Ratio>0.2</Overprovisioning_Ratio>
    <GC_Block_Selection_Policy>RGA</GC_Block_Selection_Policy>
    <Preemptible_GC_Enabled>false</Preemptible_GC_Enabled>
    <Flash_Channel_Count>2</Flash_Channel_Count>
    <Chip_No_Per_Channel>2</Chip_No_Per_Channel>
    <Flash_Parameter_Set>
      <Flash_Technology>SLC</Flash_Technology>
      <CMD_Suspension_Support>ERASE</CMD_Suspension_Support>
      <Die_No_Per_Chip>1</Die_No_Per_Chip>
      <Plane_No_Per_Die>2</Plane_No_Per_Die>
      <Block_No_Per_Plane>128</Block_No_Per_Plane>
      <Page_No_Per_Block>32</Page_No_Per_Block>
      <Page_Capacity>4096</Page_Capacity>
    </Flash_Parameter_Set>
  </Device_Parameter_Set>
</Execution_Parameter_Set>";

    const WORKLOAD: &str = "<MQSim_IO_Scenarios>
  <IO_Scenario>
    <IO_Flow_Parameter_Set_Synthetic>
      <Priority_Class>LOW</Priority_Class>
      <Read_Percentage>30</Read_Percentage>
      <Address_Distribution>RANDOM_HOTCOLD</Address_Distribution>
      <Percentage_of_Hot_Region>10</Percentage_of_Hot_Region>
      <Address_Alignment_Unit>8</Address_Alignment_Unit>
      <Average_Request_Size>8</Average_Request_Size>
      <Average_No_of_Reqs_in_Queue>4</Average_No_of_Reqs_in_Queue>
      <Stop_Time>1000000000</Stop_Time>
      <Working_Set_Percentage>50</Working_Set_Percentage>
    </IO_Flow_Parameter_Set_Synthetic>
    <IO_Flow_Parameter_Set_Trace_Based>
      <File_Path>some.trace</File_Path>
      <Relay_Count>3</Relay_Count>
    </IO_Flow_Parameter_Set_Trace_Based>
  </IO_Scenario>
</MQSim_IO_Scenarios>";

    fn imported() -> Imported {
        import(("ssd.xml", DEVICE), Some(("work.xml", WORKLOAD))).unwrap()
    }

    #[test]
    fn the_drive_has_mqsim_s_geometry_and_times() {
        let device = imported().device;
        let flash = &device.flash;
        assert_eq!((flash.channels, flash.chips_per_channel, flash.planes_per_die), (2, 2, 2));
        assert_eq!((flash.read_ns, flash.program_ns, flash.erase_ns), (75_020, 750_000, 3_800_000));
        assert_eq!(flash.channel_bytes_per_s, 333_333_333, "3 ns a byte");
        assert_eq!(device.ftl.static_order.to_string(), "PDCW");
        assert_eq!((device.host.interface, device.host.queue_depth), (Interface::Nvme, 128));
        let sectors_of_flow = (128.0 * 32.0 * 8.0 * 0.8 / 2.0) as u64;
        let (own, row) = (8 * sectors_of_flow * 512, 8 * 4096);
        assert_eq!(device.capacity_bytes, 2 * own.next_multiple_of(row), "two flows share it");
    }

    #[test]
    fn flows_keep_their_place_their_pacing_and_their_end() {
        let imported = imported();
        let [synthetic, trace] = &imported.workloads[0].flows[..] else { panic!() };
        assert_eq!(
            (synthetic.priority, synthetic.duration_ns, synthetic.requests),
            (Priority::Low, Some(1_000_000_000), None)
        );
        let tags = synthetic.synthetic.as_ref().unwrap();
        assert_eq!((tags.read_share, tags.align_bytes, &tags.size), (0.3, Some(4096), &Size::fixed(4096)));
        assert_eq!(tags.pacing, Pacing::Closed { queue_depth: 4, think_ns: 0 });
        let Access::HotCold { zones, .. } = &tags.access else { panic!() };
        assert_eq!((zones[0].size, zones[0].traffic), (0.1, 0.9));
        assert!(tags.region_bytes.unwrap().abs_diff(imported.device.capacity_bytes / 4) <= 8 * 4096);
        let replay = trace.trace.as_ref().unwrap();
        assert_eq!((replay.repeat, replay.fold, replay.format), (3, true, TraceFormat::Mqsim));
    }

    #[test]
    fn what_has_no_effect_is_told_and_stands_in_the_files() {
        let imported = imported();
        let note = imported.notes.iter().find(|note| note.contains("CMD_Suspension_Support")).unwrap();
        assert!(note.contains("never suspends"), "{note}");
        let device = imported.device_toml().unwrap();
        assert!(device.starts_with("# Imported by flashwise from MQSim, ssd.xml.\n"), "{device}");
        assert!(device.contains(note));
        assert_eq!(DeviceConfig::from_toml(&device, "device.toml").unwrap(), imported.device);
        let workload = &imported.workload_tomls().unwrap()[0];
        assert_eq!(Workload::from_toml(workload, "workload.toml").unwrap(), imported.workloads[0]);
    }

    /// The workload with further tags in its synthetic flow and in its trace.
    fn with_tags(synthetic: &str, trace: &str) -> String {
        let flows = WORKLOAD.replace("<Priority_Class>LOW</Priority_Class>", synthetic);
        flows.replace("<Relay_Count>3</Relay_Count>", trace)
    }

    fn imports(work: &str) -> Result<Imported, String> {
        let requests_of = |path: &Path| match path.to_str() {
            Some("some.trace") => Ok(75),
            _ => Err("no such file".to_owned()),
        };
        import_counting(("ssd.xml", DEVICE), Some(("work.xml", work)), &requests_of).map_err(|e| e.to_string())
    }

    #[test]
    fn a_share_of_a_trace_is_as_many_requests_as_in_mqsim() {
        let percent = "<Percentage_To_Be_Executed>50</Percentage_To_Be_Executed>";
        let requests = |imported: Imported| imported.workloads[0].flows[1].requests;
        assert_eq!(requests(imports(&with_tags("", percent)).unwrap()), Some(37), "half of 75");
        let repeated = imports(&with_tags("", &format!("{percent}<Relay_Count>2</Relay_Count>"))).unwrap();
        assert!(repeated.notes.iter().any(|note| note.contains("more than once")), "{:?}", repeated.notes);
        assert_eq!(requests(repeated), None);
        let elsewhere = imports(&with_tags("", percent).replace("some.trace", "other.trace")).unwrap();
        let note = elsewhere
            .notes
            .iter()
            .find(|note| note.starts_with("<Percentage_To_Be_Executed> = 50: the number of requests"));
        assert!(note.is_some_and(|note| note.ends_with("other.trace: no such file")), "{:?}", elsewhere.notes);
        assert_eq!(requests(elsewhere), None, "all of it");
        let none = imports(&with_tags("", &percent.replace("50", "1"))).unwrap_err();
        assert!(none.ends_with("none of the 75 requests of some.trace"), "{none}");
    }

    #[test]
    fn a_part_that_all_flows_are_on_is_the_drive() {
        let part =
            "<Channel_IDs>1</Channel_IDs><Chip_IDs>0, 1</Chip_IDs><Die_IDs>0</Die_IDs><Plane_IDs>0,1</Plane_IDs>";
        let imported = imports(&with_tags(part, part)).unwrap();
        let (device, whole) = (&imported.device, self::imported().device);
        assert_eq!((device.flash.channels, device.flash.chips_per_channel, device.flash.planes_per_die), (1, 2, 2));
        assert_eq!(2 * device.capacity_bytes, whole.capacity_bytes);
        assert_eq!(
            device.controller.write_buffer_bytes, whole.controller.write_buffer_bytes,
            "it is the whole drive's"
        );
        assert!(imported.notes.iter().any(|note| note.contains("1 channels of 2 chips of 1 dies of 2 planes")));
        let all = imports(&with_tags("<Channel_IDs>0,1</Channel_IDs>", "")).unwrap();
        assert_eq!(all.device.flash.channels, 2, "all of them are named, or none");
    }

    #[test]
    fn flows_on_different_parts_have_a_domain_each() {
        let on = |channels: &str| format!("<Channel_IDs>{channels}</Channel_IDs>");
        let Imported { device, workloads, notes, .. } = imports(&with_tags(&on("0"), &on("1"))).unwrap();
        let whole = self::imported();
        assert_eq!(device.flash.channels, 2);
        let channels: Vec<_> = device.ftl.domains.iter().map(|domain| domain.channels.clone()).collect();
        assert_eq!(channels, [Some(vec![0]), Some(vec![1])]);
        assert!(device.ftl.domains.iter().all(|domain| domain.chips.is_none() && domain.planes.is_none()));
        // 4 planes of 128 blocks of 32 pages of 4 KiB, a fifth of them spare.
        let own = 4 * (128 * 32 * 8 * 4 / 5) * 512;
        assert!(device.ftl.domains.iter().all(|domain| (own..own + 4 * 4096).contains(&domain.capacity_bytes)));
        let trace = workloads[0].flows[1].trace.as_ref().unwrap();
        assert_eq!((trace.region_start_bytes, trace.region_bytes), (device.ftl.domains[0].capacity_bytes, Some(own)));
        let apart = device.capacity_bytes.abs_diff(whole.device.capacity_bytes);
        assert!(apart <= 8 * 4096, "as much as side by side on all of it, but for whole rows: {apart}");
        assert!(notes.iter().any(|note| note.contains("its own domain")), "{notes:?}");
    }

    #[test]
    fn where_flows_overlap_a_plane_is_shared_and_what_no_flow_uses_is_left_out_if_it_had_no_room() {
        let on = |tag: &str, numbers: &str| format!("<{tag}>{numbers}</{tag}>");
        let with_sets = |used: &str| {
            let text = with_tags(&on("Channel_IDs", "0"), "");
            text.replace("<Working_Set_Percentage>50<", &format!("<Working_Set_Percentage>{used}<"))
        };
        let Imported { device, notes, .. } = imports(&with_sets("50")).unwrap();
        assert!(notes.iter().any(|note| note.contains("the capacity is what the working sets use")), "{notes:?}");
        let [first, second] = &device.ftl.domains[..] else { panic!("{:?}", device.ftl.domains) };
        assert_eq!((&first.channels, &second.channels), (&Some(vec![0]), &None));
        let of_plane = 128 * 32 * 4096 * 4 / 5;
        let near = |bytes: u64, planes: f64| (bytes as f64 / of_plane as f64 / planes - 1.0).abs() < 0.01;
        assert!(near(first.capacity_bytes, 1.0), "half of its halves of channel 0's four planes: {first:?}");
        assert!(near(second.capacity_bytes, 6.0), "its halves of them and channel 1's: {second:?}");
        let full = imports(&with_sets("100")).unwrap_err();
        assert!(full.contains("domain 0 (counted from 0): a plane would have to hold"), "{full}");
    }

    #[test]
    fn a_part_that_is_not_there_is_refused_and_scenarios_on_other_parts_are_noted() {
        let on = |channels: &str| format!("<Channel_IDs>{channels}</Channel_IDs>");
        let two = with_tags(&on("0"), &on("1"));
        let (start, end) = (two.find("  <IO_Scenario>").unwrap(), two.rfind("</MQSim_IO_Scenarios>").unwrap());
        let again = two[start..end].replace(&on("0"), &on("0,1"));
        let apart = imports(&format!("{}{again}{}", &two[..end], &two[end..])).unwrap();
        let note = apart.notes.iter().find(|note| note.contains("of line 3 in another scenario"));
        assert!(note.is_some_and(|note| note.contains("one by one")), "{:?}", apart.notes);
        assert!(apart.device.ftl.domains.is_empty() && apart.workloads.len() == 2, "all flows use the whole drive");
        let beyond = imports(&with_tags(&on("0,2"), "")).unwrap_err();
        assert_eq!(beyond, "work.xml: line 3: <Channel_IDs> names 2, which the drive does not have");
        let words = imports(&with_tags(&on("0-1"), "")).unwrap_err();
        assert!(words.contains("it should be numbers from 0 on, separated by commas"), "{words}");
    }

    #[test]
    fn impossible_values_are_refused_with_their_line() {
        for (from, to, words) in [
            ("<Seed>7", "<Seed>x", "ssd.xml: line 5: <Seed> is 'x', it should be a whole number"),
            ("SLC", "PLC", "line 16: <Flash_Technology> is 'PLC', it should be SLC, MLC, TLC, QLC"),
            ("</Execution_Parameter_Set>", "", "not XML"),
            ("<Seed>7</Seed>", "<Seed>7</Seed><Seed>8</Seed>", "<Seed> is repeated"),
            ("Ratio>0.2", "Ratio>1.2", "below 1"),
            ("Plane>128<", "Plane>8<", "ssd.xml: capacity_bytes"),
        ] {
            let error = import(("ssd.xml", &DEVICE.replacen(from, to, 1)), None).unwrap_err().to_string();
            assert!(error.contains(words), "{from}: {error}");
        }
        assert!(
            import(("ssd.xml", WORKLOAD), None).unwrap_err().to_string().contains("starts with <MQSim_IO_Scenarios>")
        );
    }

    #[test]
    fn an_unknown_tag_changes_nothing_and_is_noted_with_its_line() {
        let queue = "Queue_Fetch_Size>64</Queue_Fetch_Size";
        let device = DEVICE.replace(queue, "Queue_Fetch_Sise>64</Queue_Fetch_Sise").replace(
            "<Seed>7</Seed>",
            "<Seed>7</Seed><Zone_Parameter_Set><Zone_Size>256</Zone_Size></Zone_Parameter_Set>",
        );
        let work = WORKLOAD.replace("Read_Percentage", "Read_Percantage");
        let work = work.replace("<IO_Scenario>", "<IO_Scenario><IOCap_Tracker><X>1</X></IOCap_Tracker>");
        let imported = import(("ssd.xml", &device), Some(("work.xml", &work))).unwrap();
        let without = import(("ssd.xml", &DEVICE.replace(&format!("<{queue}>"), "")), None).unwrap();
        assert_eq!(imported.device.host.commands_per_queue, without.device.host.commands_per_queue);
        assert_eq!(imported.workloads[0].flows.len(), 2);
        for words in [
            "ssd.xml: line 5: <Zone_Parameter_Set> is unknown in <Device_Parameter_Set> and has no effect",
            "ssd.xml: line 6: <Queue_Fetch_Sise> is unknown in <Device_Parameter_Set> and has no effect; if you meant \
             <Queue_Fetch_Size>: it is missing, and MQSim's default is used",
            "work.xml: line 2: <IOCap_Tracker> is unknown in <IO_Scenario> and has no effect",
            "work.xml: line 5: <Read_Percantage> is unknown in <IO_Flow_Parameter_Set_Synthetic> and has no effect; \
             if you meant <Read_Percentage>: it is missing, and MQSim's default is used",
        ] {
            assert!(imported.notes.iter().any(|note| note == words), "{words}: {:#?}", imported.notes);
        }
    }

    #[test]
    fn a_value_that_the_simulator_cannot_take_is_changed_with_a_note() {
        let burst = "<Data_Cache_DRAM_Data_Busrt_Size>";
        for (from, to, words) in [
            ("Size>64<", "Size>40000<", "<Queue_Fetch_Size> × flows = 80000: the simulator accepts at most 65536"),
            ("Size>64<", "Size>70000<", "<Queue_Fetch_Size> = 70000: the simulator accepts at most 65536"),
            ("<Seed>7</Seed>", &format!("{burst}0</{}", &burst[1..]), "<Data_Cache_DRAM_Data_Busrt_Size> = 0: "),
            ("Percentage>30<", "Percentage>130<", "<Read_Percentage> = 130: the simulator accepts at most 100"),
            ("Percentage>50<", "Percentage>101<", "<Working_Set_Percentage> = 101: "),
            ("Unit>8<", "Unit>0<", "<Address_Alignment_Unit> = 0: the simulator accepts at least 1"),
            ("Count>3<", "Count>0<", "<Relay_Count> = 0: "),
        ] {
            let [device, work] = [DEVICE, WORKLOAD].map(|text| text.replace(from, to));
            let notes = import(("ssd.xml", &device), Some(("work.xml", &work))).unwrap().notes;
            assert!(notes.iter().any(|note| note.starts_with(words)), "{words}: {notes:#?}");
            assert!(!imported().notes.iter().any(|note| note.starts_with(words)), "{words}");
        }
    }

    #[test]
    fn the_names_that_forks_have_given_to_tags_are_read() {
        let short = |text: &str| {
            text.replace("_Parameter_Set", "ParameterSet")
                .replace("ExecutionParameterSet", "ExecParameterSet")
                .replace("IO_FlowParameterSet_Synthetic", "SyntheticFlowParamSet")
                .replace("IO_FlowParameterSet_Trace_Based", "TraceFlowParameterSet")
                .replace("Relay_Count", "Replay_Count")
        };
        let (device, work) = (short(DEVICE), short(WORKLOAD));
        assert!(device.contains("<FlashParameterSet>") && work.contains("<SyntheticFlowParamSet>"), "{device}{work}");
        assert_eq!(import(("ssd.xml", &device), Some(("work.xml", &work))).unwrap(), imported());
    }

    #[test]
    fn rates_above_1000_are_taken_as_they_are_written_and_noted() {
        let of = |rate: &str| {
            let tag = format!("<Seed>7</Seed><Channel_Transfer_Rate>{rate}</Channel_Transfer_Rate>");
            let imported = import(("ssd.xml", &DEVICE.replace("<Seed>7</Seed>", &tag)), None).unwrap();
            let about = |note: &&String| note.starts_with("<Channel_Transfer_Rate>");
            (imported.device.flash.channel_bytes_per_s, imported.notes.iter().find(about).cloned().unwrap_or_default())
        };
        assert_eq!(of("333"), (333_333_333, String::new()));
        for (rate, bytes_per_s) in [("1200", 1_200_000_000), ("3600", 3_600_000_000), ("1200.0", 1_200_000_000)] {
            let (is, note) = of(rate);
            assert_eq!(is, bytes_per_s);
            assert!(note.contains("a transfer takes no time there"), "{note}");
        }
        let (is, note) = of("400");
        assert_eq!(is, 500_000_000, "2 ns, as in MQSim");
        assert!(note.ends_with("a transfer takes whole nanoseconds, 2: 500 MT/s"), "{note}");
    }

    #[test]
    fn words_that_only_a_fork_knows_are_noted() {
        let tags = "<Seed>7</Seed><Address_Mapping>ZONE_LEVEL</Address_Mapping>\
                    <Transaction_Scheduling_Policy>SIMPLE_FLIN</Transaction_Scheduling_Policy>";
        let imported = import(("ssd.xml", &DEVICE.replace("<Seed>7</Seed>", tags)), None).unwrap();
        assert_eq!(imported.device, import(("ssd.xml", DEVICE), None).unwrap().device);
        for words in ["<Address_Mapping> = ZONE_LEVEL: unknown", "<Transaction_Scheduling_Policy> = SIMPLE_FLIN"] {
            assert!(imported.notes.iter().any(|note| note.starts_with(words)), "{:#?}", imported.notes);
        }
        let qlc = "<Page_Read_Latency_WSB>90000</Page_Read_Latency_WSB><Flash_Technology>QLC<";
        let flash = import(("ssd.xml", &DEVICE.replace("<Flash_Technology>SLC<", qlc)), None).unwrap().device.flash;
        assert_eq!(flash.read_ns_by_page_type, [75_020, 75_020, 75_020, 90_020]);
    }

    #[test]
    fn a_drive_that_promises_somewhat_too_much_offers_less_and_one_that_promises_far_too_much_is_refused() {
        let of = |blocks: &str| {
            let device = DEVICE.replace("Plane>128<", &format!("Plane>{blocks}<"));
            import(("ssd.xml", &device.replace("Ratio>0.2<", "Ratio>0.127<")), None)
        };
        let imported = of("32").unwrap();
        assert_eq!(imported.device.capacity_bytes, 8 * 26 * 32 * 4096, "six of a plane's 32 blocks hold no data");
        assert!(
            imported.notes.iter().any(|note| note.starts_with("<Overprovisioning_Ratio>: MQSim's capacity leaves"))
        );
        assert!(of("8").unwrap_err().to_string().contains("capacity_bytes"));
    }

    /// Each figure in turn is made as large as it can be written, and then both of two: a result is a drive that can
    /// be, or a refusal that names a tag or a key.
    #[test]
    fn no_figure_wraps_however_large() {
        let huge =
            ["4611686018427387904", "9223372036854775807", "18446744073709551615", "1e308", "1099511627776", "0"];
        let all = |text: &str| {
            let pieces: Vec<String> = text.split('<').map(str::to_owned).collect();
            let numeric =
                |piece: &&String| piece.rsplit('>').next().is_some_and(|value| value.trim().parse::<f64>().is_ok());
            pieces.iter().enumerate().filter(|(_, it)| numeric(it)).map(|(at, _)| at).collect::<Vec<_>>()
        };
        let with = |text: &str, at: &[usize], value: &str| {
            let pieces = text.split('<').enumerate().map(|(n, piece)| match piece.rsplit_once('>') {
                Some((tag, _)) if at.contains(&n) => format!("{tag}>{value}"),
                _ => piece.to_owned(),
            });
            pieces.collect::<Vec<_>>().join("<")
        };
        let check = |device: &str, work: &str, what: &str| match import(("ssd.xml", device), Some(("work.xml", work))) {
            Ok(imported) => {
                let toml = imported.device_toml().unwrap();
                assert_eq!(DeviceConfig::from_toml(&toml, "device.toml").unwrap(), imported.device, "{what}");
            }
            Err(error) => {
                let error = error.to_string();
                assert!(
                    error.contains("<") || error.contains("xml: ") || error.contains("workload: flow"),
                    "{what}: {error}"
                );
            }
        };
        let full = with_all_tags();
        let (of_device, of_work) = (all(&full), all(WORKLOAD));
        for value in huge {
            for &at in &of_device {
                check(&with(&full, &[at], value), WORKLOAD, &format!("device {at} {value}"));
                for &other in &of_device {
                    check(&with(&full, &[at, other], value), WORKLOAD, &format!("device {at} {other} {value}"));
                }
            }
            for &at in &of_work {
                check(&full, &with(WORKLOAD, &[at], value), &format!("work {at} {value}"));
            }
        }
        let refusals = [
            ("<Flash_Channel_Width>1<", "<Flash_Channel_Width>4611686018427387904<", "<Flash_Channel_Width>"),
            ("Busrt_Size>1<", "Busrt_Size>4611686018427387904<", "<Data_Cache_DRAM_Data_Busrt_Size>"),
            ("<GC_Exec_Threshold>0.05<", "<GC_Exec_Threshold>1e308<", "<GC_Exec_Threshold>"),
            ("<PCIe_Lane_Count>4<", "<PCIe_Lane_Count>1099511627776<", "<PCIe_Lane_Count>"),
            ("Page_Capacity>4096<", "Page_Capacity>1152921504606846976<", "<Page_Capacity>"),
        ];
        for (from, to, tag) in refusals {
            let error = import(("ssd.xml", &full.replace(from, to)), None).unwrap_err().to_string();
            assert!(error.starts_with("ssd.xml: line ") && error.contains(tag), "{to}: {error}");
            let written = to.trim_end_matches('<').rsplit('>').next().unwrap_or_default();
            assert!(error.contains(written) && error.len() < 200, "a number as the file has it: {error}");
        }
    }

    /// The drive with the tags that figures are computed from.
    fn with_all_tags() -> String {
        let tags = "<Seed>7</Seed><CMT_Capacity>2097152</CMT_Capacity><Data_Cache_Capacity>1048576</Data_Cache_Capacity>\
            <Data_Cache_DRAM_Row_Size>8192</Data_Cache_DRAM_Row_Size>\
            <Data_Cache_DRAM_Data_Busrt_Size>1</Data_Cache_DRAM_Data_Busrt_Size>\
            <Data_Cache_DRAM_tRCD>13</Data_Cache_DRAM_tRCD><Data_Cache_DRAM_tCL>13</Data_Cache_DRAM_tCL>\
            <GC_Exec_Threshold>0.05</GC_Exec_Threshold><GC_Hard_Threshold>0.005</GC_Hard_Threshold>\
            <Flash_Channel_Width>1</Flash_Channel_Width><Channel_Transfer_Rate>333</Channel_Transfer_Rate>";
        let latencies = "<Page_Read_Latency_LSB>75000</Page_Read_Latency_LSB>\
            <Page_Program_Latency_LSB>750000</Page_Program_Latency_LSB><Block_Erase_Latency>3800000</Block_Erase_Latency>\
            <Die_No_Per_Chip>";
        let full =
            DEVICE.replace("<Seed>7</Seed>", tags).replace("<Ideal_Mapping_Table>true", "<Ideal_Mapping_Table>false");
        full.replace("<Die_No_Per_Chip>", latencies)
    }
}
