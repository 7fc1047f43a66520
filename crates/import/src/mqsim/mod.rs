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
use super::section::{Section, parse};
use super::{ImportError, Imported};

const SECTOR: u64 = 512;
/// MQSim's longest PCIe payload, and what it sends with each, bytes.
const PCIE_PAYLOAD: u64 = 128;
const PCIE_OVERHEAD: u64 = 28;
/// Victims that MQSim empties at the same time in a plane, which is also the least number of free blocks it keeps.
const CONCURRENT_VICTIMS: u64 = 10;

/// Counts the requests of a trace, or says why it cannot.
pub type RequestsOf<'a> = &'a dyn Fn(&Path) -> Result<u64, String>;

/// [`import_counting`], for workloads whose traces are executed whole.
///
/// # Errors
/// As there, and where a share of a trace is to be executed.
pub fn import(device: (&str, &str), workload: Option<(&str, &str)>) -> Result<Imported, ImportError> {
    import_counting(device, workload, &|_| Err("nobody has looked at it".to_owned()))
}

/// Reads `ssdconfig.xml` and, where given, `workload.xml`; each is a name for messages and a text. `requests_of` is
/// asked only of traces of which a share is to be executed.
///
/// # Errors
/// At the first tag that is unknown, has an impossible value, or asks for what is not simulated, with its line.
pub fn import_counting(
    device: (&str, &str),
    workload: Option<(&str, &str)>,
    requests_of: RequestsOf<'_>,
) -> Result<Imported, ImportError> {
    let mut notes = Notes::default();
    let flows = workload.map(|(file, text)| Scenarios::read(file, text, requests_of, &mut notes)).transpose()?;
    let (file, text) = device;
    let document = parse(text, file)?;
    let root = Section::root(file, &document, "Execution_Parameter_Set")?;
    let mut ssd = Ssd::read(&root, &mut notes)?;
    let shares = match &flows {
        Some(flows) => flows.shares(&mut ssd, &mut notes)?,
        None => Shares::even(&ssd, 1),
    };
    let caching = flows.as_ref().and_then(Scenarios::caching);
    let device = ssd.device(file, &shares, caching, &mut notes)?;
    let workloads = flows.map_or(Ok(Vec::new()), |flows| flows.workloads(&ssd, &shares))?;
    Ok(Imported { source: format!("MQSim, {file}"), device, workloads, notes: notes.list })
}

#[derive(Default)]
struct Notes {
    list: Vec<String>,
}

impl Notes {
    /// Tells something once.
    fn tell(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.list.contains(&note) {
            self.list.push(note);
        }
    }

    /// Tells that tags of a section have no effect, if they are there.
    fn no_effect(&mut self, section: &Section<'_>, names: &[&'static str], why: &str) -> Result<(), ImportError> {
        for name in names {
            if let Some(value) = section.text(name)? {
                self.tell(format!("<{name}> = {value}: {why}"));
            }
        }
        Ok(())
    }
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
        let elsewhere = with_tags("", percent).replace("some.trace", "other.trace");
        let told = imports(&elsewhere).unwrap_err();
        assert!(
            told.starts_with("work.xml: line 14: <Percentage_To_Be_Executed> = 50: how many requests that is")
                && told.ends_with("other.trace: no such file"),
            "{told}"
        );
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
        assert!(notes.iter().any(|note| note.contains("domain of its own")), "{notes:?}");
    }

    #[test]
    fn where_flows_overlap_a_plane_is_shared_and_what_no_flow_uses_is_left_out_if_it_had_no_room() {
        let on = |tag: &str, numbers: &str| format!("<{tag}>{numbers}</{tag}>");
        let with_sets = |used: &str| {
            let text = with_tags(&on("Channel_IDs", "0"), "");
            text.replace("<Working_Set_Percentage>50<", &format!("<Working_Set_Percentage>{used}<"))
        };
        let Imported { device, notes, .. } = imports(&with_sets("50")).unwrap();
        assert!(notes.iter().any(|note| note.contains("only what the working sets may use")), "{notes:?}");
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
    fn a_part_that_is_not_there_is_refused_and_so_are_scenarios_on_other_parts() {
        let on = |channels: &str| format!("<Channel_IDs>{channels}</Channel_IDs>");
        let two = with_tags(&on("0"), &on("1"));
        let (start, end) = (two.find("  <IO_Scenario>").unwrap(), two.rfind("</MQSim_IO_Scenarios>").unwrap());
        let again = two[start..end].replace(&on("0"), &on("0,1"));
        let apart = imports(&format!("{}{again}{}", &two[..end], &two[end..])).unwrap_err();
        assert!(apart.contains("that of line 3 in another scenario") && apart.contains("one by one"), "{apart}");
        let beyond = imports(&with_tags(&on("0,2"), "")).unwrap_err();
        assert_eq!(beyond, "work.xml: line 3: <Channel_IDs> names 2, which the drive does not have");
        let words = imports(&with_tags(&on("0-1"), "")).unwrap_err();
        assert!(words.contains("it should be numbers from 0 on with commas between"), "{words}");
    }

    #[test]
    fn unknown_tags_and_impossible_values_are_told_with_their_line() {
        for (from, to, words) in [
            (
                "Queue_Fetch_Size>64</Queue_Fetch_Size",
                "Queue_Fetch>64</Queue_Fetch",
                "ssd.xml: line 6: <Queue_Fetch> is unknown in <Device_Parameter_Set>",
            ),
            ("<Seed>7", "<Seed>x", "ssd.xml: line 5: <Seed> is 'x', it should be a whole number"),
            ("SLC", "QLC", "line 16: <Flash_Technology> is 'QLC', it should be SLC, MLC, TLC"),
            ("</Execution_Parameter_Set>", "", "this is no XML"),
            ("<Seed>7</Seed>", "<Seed>7</Seed><Seed>8</Seed>", "second time"),
            ("Ratio>0.2", "Ratio>1.2", "below 1"),
            ("Plane>128<", "Plane>8<", "ssd.xml: capacity_bytes"),
        ] {
            let error = import(("ssd.xml", &DEVICE.replacen(from, to, 1)), None).unwrap_err().to_string();
            assert!(error.contains(words), "{from}: {error}");
        }
        let misspelt = WORKLOAD.replace("Read_Percentage", "Read_Percantage");
        let error = import(("ssd.xml", DEVICE), Some(("work.xml", &misspelt))).unwrap_err().to_string();
        assert!(
            error.starts_with("work.xml: line 5: <Read_Percantage>") && error.contains("is <Read_Percentage> meant?"),
            "{error}"
        );
        assert!(
            import(("ssd.xml", WORKLOAD), None).unwrap_err().to_string().contains("begins with <MQSim_IO_Scenarios>")
        );
    }
}
