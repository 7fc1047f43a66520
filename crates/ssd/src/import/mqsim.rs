//! MQSim's configuration and workload (Tavakkol et al., "MQSim: A Framework for Enabling Realistic Studies of Modern
//! Multi-Queue SSD Devices", FAST 2018), as they are read by its version of 2018.
//!
//! What a tag does in MQSim, not what its name says, decides the mapping; where the two differ, a note tells. Times that
//! MQSim does not let one choose, such as those of command cycles and of PCIe messages, are set to what it uses.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use flashwise_trace::workload::{
    Access, Arrivals, Flow, Pacing, Priority, Size, Synthetic, TraceFormat, TraceReplay, Workload, Zone,
};

use super::section::{Section, parse};
use super::{ImportError, Imported, Keys};
use crate::config::DeviceConfig;

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

/// Reads `ssdconfig.xml` and, where given, `workload.xml`; each is a name for messages and a text. `requests_of` is asked
/// only of traces of which a share is to be executed.
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
    if let Some(flows) = &flows {
        ssd.keep_part(&flows.part(&ssd, &mut notes)?, &mut notes);
    }
    let most_flows = flows.as_ref().map_or(1, |flows| flows.scenarios.iter().map(Vec::len).max().unwrap_or(1));
    let caching = flows.as_ref().and_then(Scenarios::caching);
    let device = ssd.device(file, most_flows as u64, caching, &mut notes)?;
    let workloads = flows.map_or(Ok(Vec::new()), |flows| flows.workloads(&ssd))?;
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

/// MQSim's drive, in its own terms; times in ns.
struct Ssd {
    keys: Vec<(&'static str, toml::Value)>,
    seed: u64,
    interface_is_nvme: bool,
    fetch_size: u64,
    link_bytes_per_s: u64,
    sata_delay_ns: u64,
    has_cache: bool,
    cache_bytes: u64,
    channels: u64,
    chips: u64,
    dies: u64,
    planes: u64,
    blocks: u64,
    pages: u64,
    page_bytes: u64,
    /// Planes of MQSim's drive; of those, [`Self::planes_in_all`] are used.
    all_planes: u64,
    over_provisioning: f64,
    gc_threshold: u64,
    gc_hard_threshold: u64,
    /// Of an access, ns; of a row, bytes; bytes a second.
    dram: [u64; 3],
}

impl Ssd {
    fn read(root: &Section<'_>, notes: &mut Notes) -> Result<Self, ImportError> {
        let host = root.section("Host_Parameter_Set")?;
        let device = root.section("Device_Parameter_Set")?;
        let flash = device.section("Flash_Parameter_Set")?;
        root.finish()?;
        let lane = host.number("PCIe_Lane_Bandwidth", 1.0)?;
        let lanes = host.number("PCIe_Lane_Count", 4.0)?;
        let sata_delay_ns = host.count("SATA_Processing_Delay", 400_000)?;
        let why = "results always have a time series; see --interval";
        notes.no_effect(&host, &["Enable_ResponseTime_Logging", "ResponseTime_Logging_Period_Length"], why)?;
        host.finish()?;
        let payload = PCIE_PAYLOAD as f64 / (PCIE_PAYLOAD + PCIE_OVERHEAD) as f64;
        let mut ssd = Self {
            keys: Vec::new(),
            seed: device.count("Seed", 123)?,
            interface_is_nvme: device.choice("HostInterface_Type", true, &[("NVME", true), ("SATA", false)])?,
            fetch_size: device.count("Queue_Fetch_Size", 512)?,
            link_bytes_per_s: (lanes * lane * 1e9 * payload) as u64,
            sata_delay_ns,
            has_cache: false,
            cache_bytes: device.count("Data_Cache_Capacity", 256 << 20)?,
            channels: device.count("Flash_Channel_Count", 8)?,
            chips: device.count("Chip_No_Per_Channel", 4)?,
            dies: flash.count("Die_No_Per_Chip", 2)?,
            planes: flash.count("Plane_No_Per_Die", 2)?,
            blocks: flash.count("Block_No_Per_Plane", 2048)?,
            pages: flash.count("Page_No_Per_Block", 256)?,
            page_bytes: flash.count("Page_Capacity", 8192)?,
            all_planes: 0,
            over_provisioning: device.number("Overprovisioning_Ratio", 0.07)?,
            gc_threshold: 0,
            gc_hard_threshold: 0,
            dram: [0; 3],
        };
        if ssd.over_provisioning >= 1.0 {
            return Err(device.refused("Overprovisioning_Ratio", &ssd.over_provisioning, "below 1"));
        }
        ssd.all_planes = ssd.planes_in_all();
        ssd.read_cache(&device, notes)?;
        ssd.read_ftl(&device, notes)?;
        ssd.read_collection(&device, notes)?;
        ssd.read_channel(&device)?;
        ssd.read_flash(&flash, notes)?;
        ssd.read_rest(&device, notes)?;
        flash.finish()?;
        device.finish()?;
        Ok(ssd)
    }

    fn set(&mut self, path: &'static str, value: impl Into<toml::Value>) {
        self.keys.push((path, value.into()));
    }

    fn set_count(&mut self, path: &'static str, value: u64) {
        self.set(path, i64::try_from(value).unwrap_or(i64::MAX));
    }

    fn read_cache(&mut self, device: &Section<'_>, notes: &mut Notes) -> Result<(), ImportError> {
        let kinds = [("ADVANCED", true), ("SIMPLE", true), ("TURNED_OFF", false)];
        self.has_cache = device.choice("Caching_Mechanism", true, &kinds)?;
        let shared =
            device.choice("Data_Cache_Sharing_Mode", true, &[("SHARED", true), ("EQUAL_PARTITIONING", false)])?;
        if !shared {
            notes.tell("<Data_Cache_Sharing_Mode> = EQUAL_PARTITIONING: all flows share the cache");
        }
        let (activate, column) = (device.count("Data_Cache_DRAM_tRCD", 13)?, device.count("Data_Cache_DRAM_tCL", 13)?);
        let (rate, burst) =
            (device.count("Data_Cache_DRAM_Data_Rate", 800)?, device.count("Data_Cache_DRAM_Data_Busrt_Size", 1)?);
        let row_bytes = device.count("Data_Cache_DRAM_Row_Size", 8192)?;
        notes.no_effect(
            device,
            &["Data_Cache_DRAM_tRP"],
            "the next row is made ready beside the present one's data",
        )?;
        if self.has_cache {
            let burst_ns = (1000 / rate.max(1)).max(1);
            self.dram = [activate + column, row_bytes, 2 * burst.max(1) * 1_000_000_000 / burst_ns];
        }
        Ok(())
    }

    fn read_ftl(&mut self, device: &Section<'_>, notes: &mut Notes) -> Result<(), ImportError> {
        device.choice("Memory_Type", (), &[("FLASH", ())])?;
        device.choice("Address_Mapping", (), &[("PAGE_LEVEL", ())])?;
        let order = device.text("Plane_Allocation_Scheme")?.unwrap_or("CWDP");
        self.set("ftl.mapping", "page");
        self.set("ftl.placement", "static");
        self.set("ftl.static_order", order.to_ascii_uppercase());
        self.set("ftl.partial_pages", "sectors");
        self.set_count("ftl.superpage_planes", 1);
        self.set_count("ftl.stripe_bytes", self.page_bytes);
        self.set_count("ftl.logical_page_bytes", self.page_bytes);
        let ideal = device.flag("Ideal_Mapping_Table", false)?;
        let capacity = device.count("CMT_Capacity", 2 << 20)?;
        let shared =
            device.choice("CMT_Sharing_Mode", true, &[("SHARED", true), ("EQUAL_SIZE_PARTITIONING", false)])?;
        if ideal {
            return Ok(());
        }
        if shared {
            notes.tell(
                "<CMT_Sharing_Mode> = SHARED: MQSim gives each flow a table of <CMT_Capacity>, and so does the drive",
            );
        }
        let address_bits = (self.physical_pages() as f64).log2();
        let sectors = (self.page_bytes / SECTOR) as f64;
        let bytes = |bits: f64| (bits / 8.0).ceil() as u64;
        self.set_count("ftl.mapping_cache.capacity_bytes", capacity);
        self.set_count("ftl.mapping_cache.cached_entry_bytes", bytes(2.0 * address_bits + sectors));
        self.set_count("ftl.mapping_cache.stored_entry_bytes", bytes(address_bits + sectors));
        self.set_count("ftl.mapping_cache.load_bytes", SECTOR);
        self.set("ftl.mapping_cache.stored_at_start", true);
        self.set("ftl.mapping_cache.deferred_write_back", true);
        self.set("ftl.mapping_cache.write_back_renews", true);
        Ok(())
    }

    fn read_collection(&mut self, device: &Section<'_>, notes: &mut Notes) -> Result<(), ImportError> {
        let policies = [
            ("GREEDY", "greedy"),
            ("RGA", "random-greedy"),
            ("RANDOM", "random"),
            ("RANDOM_P", "random"),
            ("RANDOM_PP", "random"),
            ("FIFO", "fifo"),
        ];
        let policy = device.choice("GC_Block_Selection_Policy", "random-greedy", &policies)?;
        if policy == "random" {
            notes.tell(
                "<GC_Block_Selection_Policy>: the three random policies are one here, which takes full blocks only",
            );
        }
        self.set("ftl.gc.policy", policy);
        self.set_count("ftl.gc.choices", u64::from(self.blocks.max(2).ilog2()));
        let share = |threshold: f64| (threshold * self.blocks as f64) as u64;
        self.gc_threshold = share(device.number("GC_Exec_Threshold", 0.05)?).max(CONCURRENT_VICTIMS);
        self.gc_hard_threshold = share(device.number("GC_Hard_Threshold", 0.005)?).max(1);
        let preemptible = device.flag("Preemptible_GC_Enabled", true)?;
        self.set("ftl.gc.trigger", "superblock-filled");
        // MQSim issues all reads of a victim at once.
        self.set_count("ftl.gc.reads_in_flight", self.pages.clamp(1, 1 << 16));
        self.set("ftl.gc.preemptible", preemptible);
        self.set("ftl.gc.copy_back", device.flag("Use_Copyback_for_GC", false)?);
        let schedulers = [("PRIORITY_OUT_OF_ORDER", ()), ("OUT_OF_ORDER", ())];
        device.choice("Transaction_Scheduling_Policy", (), &schedulers)?;
        self.set("flash.scheduling", if preemptible { "preemptible-gc" } else { "priority-out-of-order" });
        self.read_wear_levelling(device, notes)
    }

    fn read_wear_levelling(&mut self, device: &Section<'_>, notes: &mut Notes) -> Result<(), ImportError> {
        let why = "MQSim ignores the tag and always takes the least erased block";
        notes.no_effect(device, &["Dynamic_Wearleveling_Enabled"], why)?;
        self.set("ftl.wear_levelling.dynamic", "least-erased");
        let (is_static, threshold) =
            (device.flag("Static_Wearleveling_Enabled", true)?, device.count("Static_Wearleveling_Threshold", 100)?);
        if is_static {
            notes.tell(format!(
                "<Static_Wearleveling_Enabled>: MQSim compares block numbers instead of erase counts and so hardly ever \
                 levels; none is set here. As it was meant: ftl.wear_levelling.static = \"threshold\", threshold = {threshold}"
            ));
        }
        Ok(())
    }

    fn read_channel(&mut self, device: &Section<'_>) -> Result<(), ImportError> {
        device.choice("Flash_Comm_Protocol", (), &[("NVDDR2", ())])?;
        let (width, rate) = (device.count("Flash_Channel_Width", 1)?, device.count("Channel_Transfer_Rate", 333)?);
        if rate == 0 || rate > 1000 || width == 0 {
            return Err(device.refused("Channel_Transfer_Rate", &rate, "1 to 1000 MT/s, over at least one byte"));
        }
        // MQSim counts whole nanoseconds a transfer.
        self.set_count("flash.channel_bytes_per_s", width * 1_000_000_000 / (1000 / rate));
        Ok(())
    }

    fn read_flash(&mut self, flash: &Section<'_>, notes: &mut Notes) -> Result<(), ImportError> {
        /// From the end of the command cycles to the array's start and back.
        const SENSE_EXTRA_NS: u64 = 20;
        let bits = flash.choice("Flash_Technology", 2_usize, &[("SLC", 1), ("MLC", 2), ("TLC", 3)])?;
        let reads = [
            flash.count("Page_Read_Latency_LSB", 75_000)? + SENSE_EXTRA_NS,
            flash.count("Page_Read_Latency_CSB", 75_000)? + SENSE_EXTRA_NS,
            flash.count("Page_Read_Latency_MSB", 75_000)? + SENSE_EXTRA_NS,
        ];
        let programs = [
            flash.count("Page_Program_Latency_LSB", 750_000)?,
            flash.count("Page_Program_Latency_CSB", 750_000)?,
            flash.count("Page_Program_Latency_MSB", 750_000)?,
        ];
        let of_cell = |times: [u64; 3]| match bits {
            1 => vec![times[0]],
            2 => vec![times[0], times[2]],
            _ => times.to_vec(),
        };
        self.set_count("flash.read_ns", reads[0]);
        self.set_count("flash.program_ns", programs[0]);
        for (path, times) in
            [("flash.read_ns_by_page_type", of_cell(reads)), ("flash.program_ns_by_page_type", of_cell(programs))]
        {
            let times = times.into_iter().map(|ns| toml::Value::Integer(i64::try_from(ns).unwrap_or(i64::MAX)));
            self.set(path, toml::Value::Array(times.collect()));
        }
        self.set("flash.cell", ["slc", "mlc", "tlc"][bits - 1]);
        self.set("flash.page_order", "shadow");
        self.set_count("flash.erase_ns", flash.count("Block_Erase_Latency", 3_800_000)?);
        let cycles = [
            ("flash.command.read_ns", 290),
            ("flash.command.read_further_plane_ns", 650),
            ("flash.command.program_ns", 361),
            ("flash.command.program_further_plane_ns", 816),
            ("flash.command.erase_ns", 220),
            ("flash.command.erase_further_plane_ns", 700),
        ];
        cycles.into_iter().for_each(|(path, ns)| self.set_count(path, ns));
        self.set("flash.command_scope", "chip");
        self.set("flash.interleave", false);
        self.set("flash.multi_plane", true);
        self.set("flash.programs_in_order", false);
        let why = "MQSim never suspends, whatever this says; flash.suspension lets reads interrupt";
        let suspension = ["CMD_Suspension_Support", "Suspend_Erase_Time", "Suspend_Program_Time"];
        notes.no_effect(flash, &suspension, why)?;
        let why = "blocks are never retired; ftl.bad_blocks.erasures_max would";
        notes.no_effect(flash, &["Block_PE_Cycles_Limit"], why)?;
        notes.no_effect(flash, &["Page_Metadat_Capacity"], "it moves no bytes in MQSim either")
    }

    fn read_rest(&mut self, device: &Section<'_>, notes: &mut Notes) -> Result<(), ImportError> {
        if device.flag("Enabled_Preconditioning", false)? {
            notes.tell("<Enabled_Preconditioning> = true: add --precondition analytic to flashwise simulate");
        }
        let why = "it does not limit the commands in MQSim's drive; <Queue_Fetch_Size> does";
        notes.no_effect(device, &["IO_Queue_Depth"], why)?;
        let times = [
            "Preferred_suspend_erase_time_for_read",
            "Preferred_suspend_erase_time_for_write",
            "Preferred_suspend_write_time_for_read",
        ];
        notes.no_effect(device, &times, "MQSim never suspends, whatever this says")
    }

    fn physical_pages(&self) -> u64 {
        [self.chips, self.dies, self.planes, self.blocks, self.pages]
            .iter()
            .fold(self.channels, |n, &x| n.saturating_mul(x))
            .max(1)
    }

    /// Channels, chips of a channel, dies of a chip and planes of a die, in the order of [`PART_TAGS`].
    fn counts(&self) -> [u64; 4] {
        [self.channels, self.chips, self.dies, self.planes]
    }

    /// Leaves out of the drive what none of the flows is on: it would have nothing to do.
    fn keep_part(&mut self, part: &Part, notes: &mut Notes) {
        let kept = part.counts(self.counts());
        if kept != self.counts() {
            let [channels, chips, dies, planes] = kept;
            notes.tell(format!(
                "<Channel_IDs> and the like: only the part of the drive that the flows are on is imported, {channels} \
                 channels of {chips} chips of {dies} dies of {planes} planes; the rest has nothing to do"
            ));
        }
        [self.channels, self.chips, self.dies, self.planes] = kept;
    }

    fn planes_in_all(&self) -> u64 {
        self.channels.saturating_mul(self.chips).saturating_mul(self.dies).saturating_mul(self.planes)
    }

    /// Sectors of a plane that one of `flows` flows may address.
    fn sectors_of_flow(&self, flows: u64) -> u64 {
        let sectors = self.blocks as f64 * self.pages as f64 * (self.page_bytes / SECTOR) as f64;
        (sectors * (1.0 - self.over_provisioning) / flows as f64) as u64
    }

    /// Bytes of the drive that a flow may address.
    fn bytes_of_flow(&self, flows: u64) -> u64 {
        self.planes_in_all().saturating_mul(self.sectors_of_flow(flows)).saturating_mul(SECTOR)
    }

    /// Bytes from one flow's place to the next one's: as many whole pages on every plane.
    fn pitch_of_flow(&self, flows: u64) -> u64 {
        let row = self.planes_in_all().saturating_mul(self.page_bytes).max(1);
        self.bytes_of_flow(flows).div_ceil(row).saturating_mul(row)
    }

    /// When a plane collects, how far it lets the host go, and how many victims it takes at a time: as much of what
    /// MQSim has as there is room for beside the data.
    fn set_collection(&self, keys: &mut Keys, flows: u64, notes: &mut Notes) {
        // A plane has an open block for the host and one for collection, and up to two emptied victims.
        const NOT_HOLDING_DATA: u64 = 4;
        let data = (self.pitch_of_flow(flows) * flows / self.planes_in_all().max(1) / self.page_bytes.max(1))
            .div_ceil(self.pages.max(1));
        let room = self.blocks.saturating_sub(data + NOT_HOLDING_DATA);
        // MQSim has three blocks of each plane open for each flow, one of them for the page map; here there are two.
        let aside = (3 * flows).saturating_sub(2);
        let wanted = self.gc_threshold + aside;
        let free = wanted.min(room).max(2);
        let victims = (room + 1).saturating_sub(free).clamp(1, CONCURRENT_VICTIMS);
        if free < wanted || victims < CONCURRENT_VICTIMS {
            notes.tell(format!(
                "<Overprovisioning_Ratio>: beside the data a plane has room for {free} free blocks and {victims} victims at \
                 a time, not for MQSim's {wanted} and {CONCURRENT_VICTIMS}; its garbage collection will differ"
            ));
        }
        keys.set_count("ftl.gc.free_superblocks", free);
        keys.set_count("ftl.gc.host_reserve_superblocks", (CONCURRENT_VICTIMS + aside).min(free - 1));
        keys.set_count("ftl.gc.hard_free_superblocks", self.gc_hard_threshold.min(free - 1));
        keys.set_count("ftl.gc.concurrent_victims", victims);
    }

    fn device(
        &self,
        file: &str,
        flows: u64,
        caching: Option<Caching>,
        notes: &mut Notes,
    ) -> Result<DeviceConfig, ImportError> {
        let mut keys = Keys::default();
        keys.set("name", format!("MQSim: {file}"));
        keys.set_count("capacity_bytes", self.pitch_of_flow(flows).saturating_mul(flows));
        self.set_collection(&mut keys, flows, notes);
        if self.keys.iter().any(|(path, _)| path.starts_with("ftl.mapping_cache.")) {
            keys.set_count("ftl.mapping_cache.partitions", flows);
        }
        self.set_host(&mut keys, flows, notes);
        self.set_controller(&mut keys, caching.unwrap_or(Caching::Write), notes);
        for (path, value) in [
            ("flash.channels", self.channels),
            ("flash.chips_per_channel", self.chips),
            ("flash.dies_per_chip", self.dies),
            ("flash.planes_per_die", self.planes),
            ("flash.blocks_per_plane", self.blocks),
            ("flash.pages_per_block", self.pages),
            ("flash.page_bytes", self.page_bytes),
            ("flash.transfer_unit_bytes", SECTOR),
            ("flash.write_granule_bytes", SECTOR),
        ] {
            keys.set_count(path, value);
        }
        keys.set("flash.array_time_jitter", 0.0);
        for (path, value) in &self.keys {
            keys.set(path, value.clone());
        }
        keys.into_device(file)
    }

    fn set_host(&self, keys: &mut Keys, flows: u64, notes: &mut Notes) {
        // Doorbells of both queues, 8 ns each, a read request of 8 ns, a submission entry of 25 ns and a completion entry of 11 ns.
        for (path, ns) in [
            ("host.command_latency_ns", 24),
            ("host.command_fetch_ns", 25),
            ("host.data_request_ns", 8),
            ("host.completion_ns", 11),
            ("host.command_issue_ns", 0),
        ] {
            keys.set_count(path, ns);
        }
        keys.set("host.interface", "nvme");
        keys.set("host.data_transfer", "whole-request");
        keys.set_count("host.queue_depth", self.fetch_size.saturating_mul(flows).min(65_536));
        keys.set_count("host.submission_queues", flows);
        keys.set_count("host.commands_per_queue", self.fetch_size.min(65_536));
        keys.set_count("host.link_bytes_per_s", self.link_bytes_per_s);
        keys.set_count("host.logical_block_bytes", SECTOR);
        keys.set_count("host.max_transfer_bytes", 64 << 20);
        if !self.interface_is_nvme {
            keys.set_count("host.command_issue_ns", self.sata_delay_ns);
            keys.set_count("host.command_latency_ns", 24 + self.sata_delay_ns);
            notes.tell(
                "<HostInterface_Type> = SATA: MQSim's SATA is its PCIe link with <SATA_Processing_Delay> before and after \
                 each request; the delay before is taken over, the one after it is not",
            );
        }
    }

    fn set_controller(&self, keys: &mut Keys, caching: Caching, notes: &mut Notes) {
        let writes = self.has_cache && matches!(caching, Caching::Write | Caching::Both);
        // With the cache, one page a plane is on its way to flash; without it, whatever the host's queues hold.
        let pages = if writes { self.all_planes.max(2) } else { 1 << 30 };
        keys.set_count("controller.write_buffer_bytes", pages.saturating_mul(self.page_bytes));
        keys.set("controller.power_loss_protection", true);
        keys.set("controller.unwritten_reads", "allocate");
        keys.set_count("controller.dispatch_ns", 0);
        let cache_bytes = self.cache_bytes - self.cache_bytes % self.page_bytes.max(1);
        if caching != Caching::Off {
            let [access_ns, row_bytes, bytes_per_s] = self.dram;
            keys.set_count("controller.dram_ns_per_access", access_ns);
            keys.set_count("controller.dram_row_bytes", row_bytes);
            keys.set_count("controller.dram_bytes_per_s", bytes_per_s);
        }
        if writes {
            keys.set_count("controller.write_cache.bytes", cache_bytes);
            keys.set("controller.write_cache.flush", "immediate");
            keys.set_count("controller.write_cache.hot_window_ns", 1_000_000_000);
        } else {
            keys.set("controller.write_policy", "through");
        }
        if self.has_cache && matches!(caching, Caching::Read | Caching::Both) {
            keys.set_count("controller.read_cache.bytes", cache_bytes);
            notes.tell("a read cache beside the write cache: MQSim has one cache of this size for both");
        }
    }
}

/// The scenarios of a workload file; a scenario's flows run side by side.
struct Scenarios {
    file: String,
    scenarios: Vec<Vec<FlowTags>>,
}

/// The tags that say which part of the drive a flow is on, from channels down to planes.
const PART_TAGS: [&str; 4] = ["Channel_IDs", "Chip_IDs", "Die_IDs", "Plane_IDs"];

/// The part of a drive that a flow is on: the numbers at each level; `None` where the file leaves a level open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Part([Option<BTreeSet<u64>>; 4]);

impl Part {
    fn read(flow: &Section<'_>) -> Result<Self, ImportError> {
        let mut part = Self::default();
        for (level, tag) in part.0.iter_mut().zip(PART_TAGS) {
            let Some(text) = flow.text(tag)?.filter(|text| !text.is_empty()) else { continue };
            let numbers = text.split(',').map(|number| number.trim().parse());
            let numbers: Result<BTreeSet<u64>, _> = numbers.collect();
            *level = Some(numbers.map_err(|_| flow.refused(tag, &text, "numbers from 0 on with commas between"))?);
        }
        Ok(part)
    }

    /// A number that is not below the count of its level, with the level's tag.
    fn beyond(&self, counts: [u64; 4]) -> Option<(&'static str, u64)> {
        let levels = self.0.iter().zip(counts).zip(PART_TAGS);
        let mut last = levels.filter_map(|((level, count), tag)| Some((tag, *level.as_ref()?.last()?, count)));
        last.find(|&(_, last, count)| last >= count).map(|(tag, last, _)| (tag, last))
    }

    /// How many there are at each level, where a level that is left open has `counts`.
    fn counts(&self, counts: [u64; 4]) -> [u64; 4] {
        let mut kept = counts;
        let levels = kept.iter_mut().zip(&self.0);
        levels.for_each(|(kept, level)| *kept = level.as_ref().map_or(*kept, |level| level.len() as u64));
        kept
    }

    /// The same part with every level named.
    fn named(&self, counts: [u64; 4]) -> [BTreeSet<u64>; 4] {
        std::array::from_fn(|n| self.0[n].clone().unwrap_or_else(|| (0..counts[n]).collect()))
    }
}

/// A flow as the file has it.
struct FlowTags {
    /// Its line, for messages.
    line: u32,
    part: Part,
    priority: Priority,
    caching: Caching,
    seed: u64,
    kind: FlowKind,
}

enum FlowKind {
    Synthetic(SyntheticTags),
    Trace { path: PathBuf, repeat: u32, requests: Option<u64> },
}

struct SyntheticTags {
    working_set_percent: f64,
    read_percent: f64,
    access: Access,
    size: Size,
    align_bytes: u64,
    pacing: Pacing,
    duration_ns: Option<u64>,
    requests: Option<u64>,
}

impl Scenarios {
    fn read(file: &str, text: &str, requests_of: RequestsOf<'_>, notes: &mut Notes) -> Result<Self, ImportError> {
        let document = parse(text, file)?;
        let root = Section::root(file, &document, "MQSim_IO_Scenarios")?;
        let mut scenarios = Vec::new();
        for scenario in root.children() {
            if scenario.name() != "IO_Scenario" {
                return Err(scenario.wrong(format!("<{}> is unknown here; is <IO_Scenario> meant?", scenario.name())));
            }
            let flows = scenario.children().map(|flow| FlowTags::read(&flow, requests_of, notes));
            let flows = flows.collect::<Result<Vec<_>, _>>()?;
            if flows.is_empty() {
                return Err(scenario.wrong("a scenario without a flow".to_owned()));
            }
            if flows.len() > 1 && flows.iter().any(|flow| matches!(flow.kind, FlowKind::Trace { .. })) {
                notes.tell("a trace beside other flows: its places are those of the drive; in MQSim they are those of the flow's share");
            }
            scenarios.push(flows);
        }
        if scenarios.len() > 1 {
            notes.tell("the scenarios, which MQSim runs one after the other, are a workload each");
        }
        Ok(Self { file: file.to_owned(), scenarios })
    }

    /// The part of the drive that all flows are on.
    fn part(&self, ssd: &Ssd, notes: &mut Notes) -> Result<Part, ImportError> {
        let counts = ssd.counts();
        let whole = Part::default();
        let mut flows = self.scenarios.iter().flatten();
        let first = flows.next().map_or(&whole, |flow| &flow.part);
        if !ssd.interface_is_nvme {
            // MQSim's SATA drive does not ask its flows.
            if self.scenarios.iter().flatten().any(|flow| flow.part.counts(counts) != counts) {
                notes.tell("<Channel_IDs> and the like: MQSim ignores them where <HostInterface_Type> is SATA");
            }
            return Ok(whole);
        }
        for flow in self.scenarios.iter().flatten() {
            let refused = |reason| ImportError::Syntax { file: self.file.clone(), line: flow.line, reason };
            if let Some((tag, number)) = flow.part.beyond(counts) {
                return Err(refused(format!("<{tag}> names {number}, which the drive does not have")));
            }
            if flow.part.named(counts) != first.named(counts) {
                let reason = "the flows are on different parts of the drive (<Channel_IDs>, <Chip_IDs>, <Die_IDs>, \
                              <Plane_IDs>), and here every flow is on all of it; give them the same numbers, or import \
                              a workload for each part by itself";
                return Err(refused(reason.to_owned()));
            }
        }
        Ok(first.clone())
    }

    /// How the drive caches: as its first flow wants it.
    fn caching(&self) -> Option<Caching> {
        self.scenarios.iter().flatten().map(|flow| flow.caching).next()
    }

    fn workloads(self, ssd: &Ssd) -> Result<Vec<Workload>, ImportError> {
        let several = self.scenarios.len() > 1;
        let workload = |(index, flows): (usize, Vec<FlowTags>)| {
            let count = flows.len() as u64;
            let seed = flows.first().map_or(ssd.seed, |flow| flow.seed) & i64::MAX as u64;
            let flows = flows.into_iter().enumerate().map(|(n, flow)| flow.flow(n as u64, count, ssd)).collect();
            let number = if several { format!(", scenario {}", index + 1) } else { String::new() };
            let workload = Workload { name: format!("MQSim: {}{number}", self.file), seed, flows };
            workload.check()?;
            Ok(workload)
        };
        self.scenarios.into_iter().enumerate().map(workload).collect()
    }
}

impl FlowTags {
    fn read(flow: &Section<'_>, requests_of: RequestsOf<'_>, notes: &mut Notes) -> Result<Self, ImportError> {
        let priorities = [
            ("URGENT", Priority::Urgent),
            ("HIGH", Priority::High),
            ("MEDIUM", Priority::Medium),
            ("LOW", Priority::Low),
        ];
        let cachings = [
            ("TURNED_OFF", Caching::Off),
            ("WRITE_CACHE", Caching::Write),
            ("READ_CACHE", Caching::Read),
            ("WRITE_READ_CACHE", Caching::Both),
        ];
        let priority = flow.choice("Priority_Class", Priority::High, &priorities)?;
        let caching = flow.choice("Device_Level_Data_Caching_Mode", Caching::Write, &cachings)?;
        let part = Part::read(flow)?;
        let why = "it counts only for preconditioning; flashwise fills the whole drive";
        notes.no_effect(flow, &["Initial_Occupancy_Percentage"], why)?;
        let (kind, seed) = match flow.name() {
            "IO_Flow_Parameter_Set_Synthetic" => {
                (FlowKind::Synthetic(SyntheticTags::read(flow, notes)?), flow.count("Seed", 1)?)
            }
            "IO_Flow_Parameter_Set_Trace_Based" => (Self::read_trace(flow, requests_of, notes)?, 1),
            other => return Err(flow.wrong(format!("<{other}> is unknown in <IO_Scenario>"))),
        };
        flow.finish()?;
        Ok(Self { line: flow.line(), part, priority, caching, seed, kind })
    }

    fn read_trace(flow: &Section<'_>, requests_of: RequestsOf<'_>, notes: &mut Notes) -> Result<FlowKind, ImportError> {
        let Some(path) = flow.text("File_Path")? else { return Err(flow.wrong("<File_Path> is missing".to_owned())) };
        let path = PathBuf::from(path);
        let repeat = flow.value("Relay_Count", 1_u32, "a number of times")?.max(1);
        let percent = flow.number("Percentage_To_Be_Executed", 100.0)?;
        let requests = match (percent < 100.0, repeat) {
            (true, 1) => Some(Self::share_of_trace(flow, &path, percent, requests_of)?),
            (true, _) => {
                notes.tell("<Percentage_To_Be_Executed>: MQSim ignores it where a trace is replayed more than once");
                None
            }
            (false, _) => None,
        };
        notes.no_effect(flow, &["Time_Unit"], "MQSim takes the times of a trace as ns, whatever this says")?;
        notes.tell("traces: a place behind the drive's end is taken modulo its size, as in MQSim (trace.fold)");
        Ok(FlowKind::Trace { path, repeat, requests })
    }

    /// How many requests a share of a trace is.
    fn share_of_trace(
        flow: &Section<'_>,
        path: &Path,
        percent: f64,
        requests_of: RequestsOf<'_>,
    ) -> Result<u64, ImportError> {
        let tag = format!("<Percentage_To_Be_Executed> = {percent}");
        let all = requests_of(path).map_err(|reason| {
            flow.wrong(format!("{tag}: how many requests that is, only the trace tells; {}: {reason}", path.display()))
        })?;
        match (percent / 100.0 * all as f64) as u64 {
            0 => Err(flow.wrong(format!("{tag}: that is none of the {all} requests of {}", path.display()))),
            requests => Ok(requests),
        }
    }

    fn flow(self, index: u64, flows: u64, ssd: &Ssd) -> Flow {
        let (own, pitch) = (ssd.bytes_of_flow(flows), ssd.pitch_of_flow(flows));
        let mut flow = match self.kind {
            FlowKind::Trace { path, repeat, requests } => {
                let mut trace = TraceReplay::new(path, TraceFormat::Mqsim);
                (trace.repeat, trace.fold) = (repeat, true);
                Flow { requests, ..Flow::replay("", trace) }
            }
            FlowKind::Synthetic(tags) => tags.flow(index * pitch, own),
        };
        (flow.name, flow.priority) = (format!("flow-{}", index + 1), self.priority);
        flow
    }
}

impl SyntheticTags {
    fn read(flow: &Section<'_>, notes: &mut Notes) -> Result<Self, ImportError> {
        let hot = flow.number("Percentage_of_Hot_Region", 0.0)? / 100.0;
        let access = match flow.choice(
            "Address_Distribution",
            0,
            &[("RANDOM_UNIFORM", 0), ("RANDOM_HOTCOLD", 1), ("STREAMING", 2)],
        )? {
            0 => Access::Random,
            1 => {
                let zones = [Zone { size: hot, traffic: 1.0 - hot }, Zone { size: 1.0 - hot, traffic: hot }];
                Access::HotCold { zones: zones.to_vec(), shuffled: false }
            }
            _ => Access::Sequential,
        };
        let sectors = flow.count("Average_Request_Size", 8)?;
        let variance = flow.count("Variance_Request_Size", 0)?;
        let bytes = |sectors: u64| sectors.saturating_mul(SECTOR);
        let size = match flow.choice("Request_Size_Distribution", false, &[("FIXED", false), ("NORMAL", true)])? {
            false => Size::fixed(bytes(sectors)),
            true => {
                notes.tell("<Variance_Request_Size> is taken as the standard deviation, in sectors");
                Size::Normal { mean_bytes: bytes(sectors), deviation_bytes: bytes(variance) }
            }
        };
        let aligned = flow.flag("Generated_Aligned_Addresses", true)?;
        let unit = flow.count("Address_Alignment_Unit", 16)?;
        let pacing = Self::read_pacing(flow, sectors)?;
        let (stop_ns, total) = (flow.count("Stop_Time", 0)?, flow.count("Total_Requests_To_Generate", 0)?);
        if stop_ns > 0 && total > 0 {
            notes.tell("<Total_Requests_To_Generate>: MQSim ignores it beside a <Stop_Time>");
        }
        notes.no_effect(flow, &["Intensity"], "MQSim ignores it; <Bandwidth> is read instead")?;
        Ok(Self {
            working_set_percent: flow.number("Working_Set_Percentage", 100.0)?.min(100.0),
            read_percent: flow.number("Read_Percentage", 0.0)?.min(100.0),
            access,
            size,
            align_bytes: if aligned { bytes(unit.max(1)) } else { SECTOR },
            pacing,
            duration_ns: (stop_ns > 0).then_some(stop_ns),
            requests: (stop_ns == 0).then_some(total),
        })
    }

    fn read_pacing(flow: &Section<'_>, sectors: u64) -> Result<Pacing, ImportError> {
        let depth = flow.value("Average_No_of_Reqs_in_Queue", 16_u32, "a number of requests")?;
        let bandwidth = flow.count("Bandwidth", 262_144)?;
        let kinds = [("QUEUE_DEPTH", true), ("BANDWIDTH", false)];
        if flow.choice("Synthetic_Generator_Type", true, &kinds)? {
            return Ok(Pacing::Closed { queue_depth: depth, think_ns: 0 });
        }
        let per_s = bandwidth / SECTOR / sectors.max(1);
        match 1_000_000_000_u64.checked_div(per_s) {
            Some(interarrival_ns) => Ok(Pacing::Open { interarrival_ns, arrivals: Arrivals::Poisson }),
            None => Err(flow.refused("Bandwidth", &bandwidth, "bytes a second, at least one request a second")),
        }
    }

    fn flow(self, start: u64, own: u64) -> Flow {
        let mut synthetic = Synthetic::new(self.access, self.size, self.pacing);
        synthetic.read_share = self.read_percent / 100.0;
        synthetic.region_start_bytes = start;
        let region = (own as f64 * self.working_set_percent / 100.0) as u64;
        synthetic.region_bytes = Some((region - region % SECTOR).max(SECTOR));
        synthetic.align_bytes = Some(self.align_bytes);
        Flow { duration_ns: self.duration_ns, requests: self.requests, synthetic: Some(synthetic), ..Flow::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Interface;

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
    fn flows_on_different_parts_are_refused_and_so_is_a_part_that_is_not_there() {
        let on = |channels: &str| format!("<Channel_IDs>{channels}</Channel_IDs>");
        let apart = imports(&with_tags(&on("0"), &on("1"))).unwrap_err();
        assert!(apart.starts_with("work.xml: line 14: the flows are on different parts of the drive"), "{apart}");
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
