//! MQSim's drive, `ssdconfig.xml`: what its tags say, and the configuration that does the same.

use super::super::figure::floor;
use super::super::section::{COUNT_MAX, Section};
use super::super::{ImportError, Keys};
use super::parts::{Part, Shares};
use super::{CONCURRENT_VICTIMS, Caching, Notes, PCIE_MESSAGE, PCIE_PAYLOAD, SECTOR, no_effect};
use flashwise_ssd::config::DeviceConfig;

/// Entries of a queue at most, as in NVMe.
const QUEUE_MAX: u64 = 65_536;
/// Blocks of a plane: an open one for the host and one for collection, and up to two emptied victims.
const NOT_HOLDING_DATA: u64 = 4;
/// The fewest free blocks that garbage collection keeps.
const FREE_MIN: u64 = 2;

/// MQSim's drive, in its own terms; times in ns.
pub(super) struct Ssd {
    keys: Vec<(&'static str, toml::Value)>,
    counts: Vec<(&'static str, u64)>,
    pub(super) seed: u64,
    pub(super) interface_is_nvme: bool,
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
    pub(super) page_bytes: u64,
    /// Planes of MQSim's drive; of those, [`Self::planes_in_all`] are used.
    all_planes: u64,
    over_provisioning: f64,
    gc_threshold: u64,
    gc_hard_threshold: u64,
    /// Of an access, ns; of a row, bytes; bytes a second.
    dram: [u64; 3],
}

impl Ssd {
    pub(super) fn read(root: &Section<'_>, notes: &mut Notes) -> Result<Self, ImportError> {
        let host = root.section("Host_Parameter_Set")?;
        let device = root.section("Device_Parameter_Set")?;
        let flash = device.section("Flash_Parameter_Set")?;
        root.finish(notes);
        let lane = host.number("PCIe_Lane_Bandwidth", 1.0)?;
        let lanes = host.number("PCIe_Lane_Count", 4.0)?;
        let sata_delay_ns = host.count("SATA_Processing_Delay", 400_000)?;
        let why = "results always contain a time series; see --interval";
        no_effect(notes, &host, &["Enable_ResponseTime_Logging", "ResponseTime_Logging_Period_Length"], why)?;
        host.finish(notes);
        let payload = PCIE_PAYLOAD as f64 / PCIE_MESSAGE as f64;
        let link_bytes_per_s = floor(lanes * lane * 1e9 * payload).ok_or_else(|| {
            host.refused("PCIe_Lane_Count", &lanes, "lanes that transfer less than 2^63 bytes/s in total")
        })?;
        let mut ssd = Self {
            keys: Vec::new(),
            counts: Vec::new(),
            seed: device.count("Seed", 123)?,
            interface_is_nvme: device.choice("HostInterface_Type", true, &[("NVME", true), ("SATA", false)])?,
            fetch_size: device.count("Queue_Fetch_Size", 512)?,
            link_bytes_per_s,
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
        ssd.check_size(&device, &flash)?;
        ssd.all_planes = ssd.planes_in_all();
        ssd.read_cache(&device, notes)?;
        ssd.read_ftl(&device, notes)?;
        ssd.read_collection(&device, notes)?;
        ssd.read_channel(&device, notes)?;
        ssd.read_flash(&flash, notes)?;
        ssd.read_rest(&device, notes)?;
        flash.finish(notes);
        device.finish(notes);
        Ok(ssd)
    }

    /// Refuses a drive whose bytes no number of ours can count; from here on no product of its dimensions overflows.
    fn check_size(&self, device: &Section<'_>, flash: &Section<'_>) -> Result<(), ImportError> {
        let levels = [
            (device, "Flash_Channel_Count", self.channels),
            (device, "Chip_No_Per_Channel", self.chips),
            (flash, "Die_No_Per_Chip", self.dies),
            (flash, "Plane_No_Per_Die", self.planes),
            (flash, "Block_No_Per_Plane", self.blocks),
            (flash, "Page_No_Per_Block", self.pages),
            (flash, "Page_Capacity", self.page_bytes),
        ];
        let mut bytes = 1_u64;
        for (section, tag, count) in levels {
            let all = bytes.checked_mul(count.max(1)).filter(|&bytes| bytes <= COUNT_MAX);
            bytes = all
                .ok_or_else(|| section.refused(tag, &count, "a count with which the drive has less than 2^63 bytes"))?;
        }
        Ok(())
    }

    fn set(&mut self, path: &'static str, value: impl Into<toml::Value>) {
        self.keys.push((path, value.into()));
    }

    fn set_count(&mut self, path: &'static str, value: u64) {
        self.counts.push((path, value));
    }

    fn read_cache(&mut self, device: &Section<'_>, notes: &mut Notes) -> Result<(), ImportError> {
        let kinds = [("ADVANCED", true), ("SIMPLE", true), ("TURNED_OFF", false)];
        self.has_cache = device.nearest_choice("Caching_Mechanism", true, &kinds, notes)?;
        let shared = device.nearest_choice(
            "Data_Cache_Sharing_Mode",
            true,
            &[("SHARED", true), ("EQUAL_PARTITIONING", false)],
            notes,
        )?;
        if !shared {
            notes.add("<Data_Cache_Sharing_Mode> = EQUAL_PARTITIONING: all flows share the cache");
        }
        let (activate, column) = (device.count("Data_Cache_DRAM_tRCD", 13)?, device.count("Data_Cache_DRAM_tCL", 13)?);
        let (rate, burst) =
            (device.count("Data_Cache_DRAM_Data_Rate", 800)?, device.count("Data_Cache_DRAM_Data_Busrt_Size", 1)?);
        let row_bytes = device.count("Data_Cache_DRAM_Row_Size", 8192)?;
        no_effect(
            notes,
            device,
            &["Data_Cache_DRAM_tRP"],
            "the next row is opened while data of the present one is transferred",
        )?;
        if !self.has_cache {
            return Ok(());
        }
        let access_ns = activate.checked_add(column).filter(|&ns| ns <= COUNT_MAX);
        let access_ns = access_ns.ok_or_else(|| {
            device.refused("Data_Cache_DRAM_tRCD", &activate, "with Data_Cache_DRAM_tCL less than 2^63 ns")
        })?;
        let burst = notes.within("<Data_Cache_DRAM_Data_Busrt_Size>", burst, 1, u64::MAX);
        let transfers = transfers_per_s("Data_Cache_DRAM_Data_Rate", rate, device, notes)?;
        let bytes_per_s = transfers.checked_mul(2).and_then(|per_s| per_s.checked_mul(burst));
        let bytes_per_s = bytes_per_s.filter(|&rate| rate <= COUNT_MAX).ok_or_else(|| {
            device.refused("Data_Cache_DRAM_Data_Busrt_Size", &burst, "a burst that transfers less than 2^63 bytes/s")
        })?;
        self.dram = [access_ns, row_bytes, bytes_per_s];
        Ok(())
    }

    fn read_ftl(&mut self, device: &Section<'_>, notes: &mut Notes) -> Result<(), ImportError> {
        device.choice("Memory_Type", (), &[("FLASH", ())])?;
        device.nearest_choice("Address_Mapping", (), &[("PAGE_LEVEL", ())], notes)?;
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
        let shared = device.nearest_choice(
            "CMT_Sharing_Mode",
            true,
            &[("SHARED", true), ("EQUAL_SIZE_PARTITIONING", false)],
            notes,
        )?;
        if ideal {
            return Ok(());
        }
        if shared {
            notes.add("<CMT_Sharing_Mode> = SHARED: as in MQSim, each flow has a table of <CMT_Capacity>");
        }
        let address_bits = (self.physical_pages() as f64).log2();
        let sectors = (self.page_bytes / SECTOR) as f64;
        let entry_bytes = |bits: f64| {
            let wrong = || device.refused("CMT_Capacity", &capacity, "a table size, with the size of an entry given");
            floor((bits / 8.0).ceil()).ok_or_else(wrong)
        };
        let cached = entry_bytes(2.0 * address_bits + sectors)?;
        let stored = entry_bytes(address_bits + sectors)?;
        self.set_count("ftl.mapping_cache.capacity_bytes", capacity);
        self.set_count("ftl.mapping_cache.cached_entry_bytes", cached);
        self.set_count("ftl.mapping_cache.stored_entry_bytes", stored);
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
        let policy = device.nearest_choice("GC_Block_Selection_Policy", "random-greedy", &policies, notes)?;
        if policy == "random" {
            notes.add(
                "<GC_Block_Selection_Policy>: the three random policies are the same here, and choose full blocks only",
            );
        }
        self.set("ftl.gc.policy", policy);
        self.set_count("ftl.gc.choices", u64::from(self.blocks.max(2).ilog2()));
        let share = |tag: &'static str, default: f64| {
            let threshold = device.number(tag, default)?;
            let blocks = floor(threshold * self.blocks as f64).filter(|_| threshold <= 1.0);
            blocks.ok_or_else(|| device.refused(tag, &threshold, "a share of a plane's blocks, 0 to 1"))
        };
        let gc_threshold = share("GC_Exec_Threshold", 0.05)?.max(CONCURRENT_VICTIMS);
        let gc_hard_threshold = share("GC_Hard_Threshold", 0.005)?.max(1);
        (self.gc_threshold, self.gc_hard_threshold) = (gc_threshold, gc_hard_threshold);
        let preemptible = device.flag("Preemptible_GC_Enabled", true)?;
        self.set("ftl.gc.trigger", "superblock-filled");
        // MQSim issues all reads of a victim at once.
        self.set_count("ftl.gc.reads_in_flight", self.pages.clamp(1, 1 << 16));
        self.set("ftl.gc.preemptible", preemptible);
        self.set("ftl.gc.copy_back", device.flag("Use_Copyback_for_GC", false)?);
        let schedulers = [("PRIORITY_OUT_OF_ORDER", ()), ("OUT_OF_ORDER", ())];
        device.nearest_choice("Transaction_Scheduling_Policy", (), &schedulers, notes)?;
        self.set("flash.scheduling", if preemptible { "preemptible-gc" } else { "priority-out-of-order" });
        self.read_wear_levelling(device, notes)
    }

    fn read_wear_levelling(&mut self, device: &Section<'_>, notes: &mut Notes) -> Result<(), ImportError> {
        let why = "MQSim ignores the tag and always uses the least erased block";
        no_effect(notes, device, &["Dynamic_Wearleveling_Enabled"], why)?;
        self.set("ftl.wear_levelling.dynamic", "least-erased");
        let (is_static, threshold) =
            (device.flag("Static_Wearleveling_Enabled", true)?, device.count("Static_Wearleveling_Threshold", 100)?);
        if is_static {
            notes.add(format!(
                "<Static_Wearleveling_Enabled>: MQSim compares block numbers instead of erase counts and so hardly \
                 ever levels; it is off here. To level by erase counts, set ftl.wear_levelling.static = \
                 \"threshold\", threshold = {threshold}"
            ));
        }
        Ok(())
    }

    fn read_channel(&mut self, device: &Section<'_>, notes: &mut Notes) -> Result<(), ImportError> {
        device.nearest_choice("Flash_Comm_Protocol", (), &[("NVDDR2", ())], notes)?;
        let (width, rate) = (device.count("Flash_Channel_Width", 1)?, device.count("Channel_Transfer_Rate", 333)?);
        let transfers = transfers_per_s("Channel_Transfer_Rate", rate, device, notes)?;
        let bytes_per_s = width.checked_mul(transfers).filter(|rate| (1..=COUNT_MAX).contains(rate));
        let right = "a width in bytes, at least 1, that transfers less than 2^63 bytes/s";
        let bytes_per_s = bytes_per_s.ok_or_else(|| device.refused("Flash_Channel_Width", &width, right))?;
        self.set_count("flash.channel_bytes_per_s", bytes_per_s);
        Ok(())
    }

    fn read_flash(&mut self, flash: &Section<'_>, notes: &mut Notes) -> Result<(), ImportError> {
        /// From the end of the command cycles to the array's start and back.
        const SENSE_EXTRA_NS: u64 = 20;
        let bits = flash.choice("Flash_Technology", 2_usize, &[("SLC", 1), ("MLC", 2), ("TLC", 3), ("QLC", 4)])?;
        let read = |tag: &'static str, default: u64| {
            let (ns, sensed) = flash.count(tag, default).map(|ns| (ns, ns.checked_add(SENSE_EXTRA_NS)))?;
            sensed.filter(|&ns| ns <= COUNT_MAX).ok_or_else(|| flash.refused(tag, &ns, "a time of less than 2^63 ns"))
        };
        let lowest = [read("Page_Read_Latency_LSB", 75_000)?, flash.count("Page_Program_Latency_LSB", 750_000)?];
        let (mut reads, mut programs) = (vec![lowest[0]], vec![lowest[1]]);
        // Of the pages of a cell, MQSim has times for the first, a middle one and the last; forks for one more in
        // between.
        let (csb, csb_program) =
            (read("Page_Read_Latency_CSB", 75_000)?, flash.count("Page_Program_Latency_CSB", 750_000)?);
        let (msb, msb_program) =
            (read("Page_Read_Latency_MSB", 75_000)?, flash.count("Page_Program_Latency_MSB", 750_000)?);
        if bits >= 3 {
            reads.push(csb);
            programs.push(csb_program);
        }
        if bits >= 2 {
            reads.push(msb);
            programs.push(msb_program);
        }
        if bits == 4 {
            // The fourth page of a cell, where a fork of MQSim gives it a time; else that of the last one.
            reads.push(match flash.text("Page_Read_Latency_WSB")? {
                Some(_) => read("Page_Read_Latency_WSB", 0)?,
                None => msb,
            });
            programs.push(flash.count("Page_Program_Latency_WSB", msb_program)?);
        }
        self.set_count("flash.read_ns", lowest[0]);
        self.set_count("flash.program_ns", lowest[1]);
        for (path, times) in [("flash.read_ns_by_page_type", reads), ("flash.program_ns_by_page_type", programs)] {
            // Each of them is below 2^63.
            let times = times.into_iter().map(|ns| toml::Value::Integer(ns.cast_signed()));
            self.set(path, toml::Value::Array(times.collect()));
        }
        self.set(
            "flash.cell",
            if bits == 1 {
                "slc"
            } else if bits == 2 {
                "mlc"
            } else if bits == 3 {
                "tlc"
            } else {
                "qlc"
            },
        );
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
        let why = "MQSim never suspends, whatever this is set to; flash.suspension lets reads interrupt";
        let suspension = ["CMD_Suspension_Support", "Suspend_Erase_Time", "Suspend_Program_Time"];
        no_effect(notes, flash, &suspension, why)?;
        let why = "blocks are never retired; ftl.bad_blocks.erasures_max would";
        no_effect(notes, flash, &["Block_PE_Cycles_Limit"], why)?;
        no_effect(notes, flash, &["Page_Metadat_Capacity"], "it has no effect in MQSim either")
    }

    fn read_rest(&mut self, device: &Section<'_>, notes: &mut Notes) -> Result<(), ImportError> {
        if device.flag("Enabled_Preconditioning", false)? {
            notes.add("<Enabled_Preconditioning> = true: add --precondition analytic to flashwise simulate");
        }
        let why = "it does not limit the commands in MQSim's drive; <Queue_Fetch_Size> does";
        no_effect(notes, device, &["IO_Queue_Depth"], why)?;
        let times = [
            "Preferred_suspend_erase_time_for_read",
            "Preferred_suspend_erase_time_for_write",
            "Preferred_suspend_write_time_for_read",
        ];
        no_effect(notes, device, &times, "MQSim never suspends, whatever this is set to")
    }

    fn physical_pages(&self) -> u64 {
        [self.chips, self.dies, self.planes, self.blocks, self.pages]
            .iter()
            .fold(self.channels, |n, &x| n.saturating_mul(x))
            .max(1)
    }

    /// Channels, chips of a channel, dies of a chip and planes of a die, in the order of [`Part`].
    pub(super) fn counts(&self) -> [u64; 4] {
        [self.channels, self.chips, self.dies, self.planes]
    }

    /// Leaves out of the drive what none of the flows is on: it would have nothing to do.
    pub(super) fn keep_part(&mut self, part: &Part, notes: &mut Notes) {
        let kept = part.counts(self.counts());
        if kept != self.counts() {
            let [channels, chips, dies, planes] = kept;
            notes.add(format!(
                "<Channel_IDs> etc.: only the part of the drive that the flows use is imported, {channels} channels \
                 of {chips} chips of {dies} dies of {planes} planes; the rest is idle"
            ));
        }
        [self.channels, self.chips, self.dies, self.planes] = kept;
    }

    pub(super) fn planes_in_all(&self) -> u64 {
        self.channels.saturating_mul(self.chips).saturating_mul(self.dies).saturating_mul(self.planes)
    }

    /// Pages of a plane that may hold data where as few blocks are kept free as garbage collection can do with.
    pub(super) fn pages_for_data(&self) -> u64 {
        self.blocks.saturating_sub(NOT_HOLDING_DATA.saturating_add(FREE_MIN)).saturating_mul(self.pages)
    }

    /// Sectors of a plane that one of the flows on it may address.
    pub(super) fn sectors_of_plane(&self, flows: u64) -> u64 {
        let sectors = self.blocks as f64 * self.pages as f64 * (self.page_bytes / SECTOR) as f64;
        // Below the sectors of the plane, which fit.
        floor(sectors * (1.0 - self.over_provisioning) / flows.max(1) as f64).unwrap_or(u64::MAX)
    }

    /// When a plane collects, how far it lets the host go, and how many victims it takes at a time: as much of what
    /// MQSim has as there is room for beside the data.
    fn set_collection(&self, keys: &mut Keys, shares: &Shares, notes: &mut Notes) {
        let data = shares.most_pages.div_ceil(self.pages.max(1));
        let room = self.blocks.saturating_sub(data.saturating_add(NOT_HOLDING_DATA));
        // MQSim has three blocks of each plane open for each flow, one of them for the page map; here there are two.
        let aside = shares.most_flows.saturating_mul(3).saturating_sub(2);
        let wanted = self.gc_threshold.saturating_add(aside);
        let free = wanted.min(room).max(FREE_MIN);
        let victims = room.saturating_add(1).saturating_sub(free).clamp(1, CONCURRENT_VICTIMS);
        let others = free.saturating_sub(1);
        if free < wanted || victims < CONCURRENT_VICTIMS {
            notes.add(format!(
                "<Overprovisioning_Ratio>: besides its data a plane has space for {free} free blocks and {victims} \
                 victims at a time, not for MQSim's {wanted} and {CONCURRENT_VICTIMS}: garbage collection will differ"
            ));
        }
        keys.set_count("ftl.gc.free_superblocks", free);
        keys.set_count("ftl.gc.host_reserve_superblocks", CONCURRENT_VICTIMS.saturating_add(aside).min(others));
        keys.set_count("ftl.gc.hard_free_superblocks", self.gc_hard_threshold.min(others));
        keys.set_count("ftl.gc.concurrent_victims", victims);
    }

    pub(super) fn device(
        &self,
        file: &str,
        shares: &Shares,
        caching: Option<Caching>,
        notes: &mut Notes,
    ) -> Result<DeviceConfig, ImportError> {
        let (mut keys, flows) = (Keys::default(), shares.of_flows.len() as u64);
        keys.set("name", format!("MQSim: {file}"));
        keys.set_count("capacity_bytes", shares.capacity_bytes());
        self.set_collection(&mut keys, shares, notes);
        if self.counts.iter().any(|(path, _)| path.starts_with("ftl.mapping_cache.")) {
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
        for &(path, value) in &self.counts {
            keys.set_count(path, value);
        }
        if !shares.domains.is_empty() {
            notes.add("<Channel_IDs> etc.: each flow has its own domain (ftl.domains)");
            let domains = toml::Value::try_from(&shares.domains);
            keys.set("ftl.domains", domains.map_err(|e| ImportError::Unwritable(e.to_string()))?);
        }
        keys.into_device(file)
    }

    fn set_host(&self, keys: &mut Keys, flows: u64, notes: &mut Notes) {
        // Doorbells of both queues, 8 ns each, a read request of 8 ns, a submission entry of 25 ns and a completion
        // entry of 11 ns.
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
        let what = "<Queue_Fetch_Size> × flows";
        let depth = notes.within(what, self.fetch_size.saturating_mul(flows), 0, QUEUE_MAX);
        let commands = notes.within("<Queue_Fetch_Size>", self.fetch_size, 0, QUEUE_MAX);
        keys.set_count("host.queue_depth", depth);
        keys.set_count("host.submission_queues", flows);
        keys.set_count("host.commands_per_queue", commands);
        keys.set_count("host.link_bytes_per_s", self.link_bytes_per_s);
        keys.set_count("host.logical_block_bytes", SECTOR);
        keys.set_count("host.max_transfer_bytes", 64 << 20);
        if !self.interface_is_nvme {
            keys.set_count("host.command_issue_ns", self.sata_delay_ns);
            keys.set_count("host.command_latency_ns", self.sata_delay_ns.saturating_add(24));
            notes.add(
                "<HostInterface_Type> = SATA: MQSim's SATA is its PCIe link with <SATA_Processing_Delay> before and \
                 after each request; only the delay before is imported",
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
        let page_bytes = self.page_bytes.max(1);
        let cache_pages = self.cache_bytes.checked_div(page_bytes).unwrap_or_default();
        let cache_bytes = cache_pages.saturating_mul(page_bytes);
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
            notes.add("a read cache and a write cache of this size each: MQSim has one cache of this size for both");
        }
    }
}

/// Transfers a second at a rate in MT/s. MQSim gives each a whole number of nanoseconds, and so does the drive; above
/// 1000 MT/s that would be none, and the rate is taken as it is written.
fn transfers_per_s(tag: &'static str, rate: u64, section: &Section<'_>, notes: &mut Notes) -> Result<u64, ImportError> {
    let Some(whole_ns) = 1000_u64.checked_div(rate) else {
        return Err(section.refused(tag, &rate, "a rate in MT/s, at least 1"));
    };
    let Some(per_s) = 1_000_000_000_u64.checked_div(whole_ns) else {
        notes.add(format!(
            "<{tag}> = {rate}: MQSim counts whole nanoseconds, so a transfer takes no time there; here it takes its \
             time at this rate"
        ));
        let per_s = rate.checked_mul(1_000_000).filter(|&per_s| per_s <= COUNT_MAX);
        return per_s.ok_or_else(|| section.refused(tag, &rate, "a rate of less than 2^63 transfers a second"));
    };
    if per_s.abs_diff(rate.saturating_mul(1_000_000)) > per_s / 100 {
        notes.add(format!(
            "<{tag}> = {rate}: as in MQSim, a transfer takes whole nanoseconds, {whole_ns}: {} MT/s",
            per_s / 1_000_000
        ));
    }
    Ok(per_s)
}
