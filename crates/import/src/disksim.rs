//! DiskSim 4 with Microsoft Research's SSD model (Agrawal et al., "Design Tradeoffs for SSD Performance", USENIX ATC
//! 2008): the blocks `ssdmodel_ssd`, the bus to it, and `disksim_synthio`.
//!
//! The drive becomes one of elements (`ftl.mapping = "element"`), which follows the model's own rules.

use flashwise_trace::workload::{Access, Arrivals, Flow, Pacing, Size, Synthetic, Workload};

use super::figure::{floor, round};
use super::notes::Notes;
use super::parv::{Block, Value, parse, syntax};
use super::{ImportError, Imported, Keys};

const SECTOR: u64 = 512;
/// The fastest link and channel that a drive has, bytes a second; for what takes no time in the model.
const RATE_MAX: f64 = 1e12;
/// Requests that a SATA drive has in its queue (SATA, native command queuing: five bits of a tag).
const SATA_QUEUE_MAX: u64 = 32;

/// Keys of `ssdmodel_ssd` that are read.
const SSD_KEYS: [&str; 29] = [
    "Reserve pages percentage",
    "Minimum free blocks percentage",
    "Write policy",
    "Cleaning policy",
    "Planes per package",
    "Blocks per plane",
    "Plane block mapping",
    "Copy back",
    "Number of parallel units",
    "Allocation pool logic",
    "Elements per gang",
    "Gang share",
    "Cleaning in background",
    "Command overhead",
    "Bus transaction latency",
    "Bulk sector transfer time",
    "Flash chip elements",
    "Page size",
    "Pages per block",
    "Blocks per element",
    "Element stride pages",
    "Never disconnect",
    "Print stats",
    "Max queue length",
    "Scheduler",
    "Timing model",
    "Chip xfer latency",
    "Page read latency",
    "Page write latency",
];

/// Reads a parameter file; a name for messages and a text.
///
/// # Errors
/// At the first key that has an impossible value, with its line.
pub fn import(file: &str, text: &str) -> Result<Imported, ImportError> {
    let blocks = parse(text, file)?;
    let Some(ssd) = blocks.iter().find(|block| block.kind == "ssdmodel_ssd") else {
        return Err(syntax(file, 1, "the block ssdmodel_ssd is missing"));
    };
    let mut importer = Importer { file, ssd, notes: Notes::default() };
    let device = importer.device(&blocks)?;
    let synthetic = blocks.iter().find(|block| block.kind == "disksim_synthio");
    let workloads = synthetic.map(|block| importer.workload(block)).transpose()?.into_iter().collect();
    Ok(Imported { source: format!("DiskSim, {file}"), device, workloads, notes: importer.notes.into_list() })
}

struct Importer<'a> {
    file: &'a str,
    ssd: &'a Block,
    notes: Notes,
}

impl Importer<'_> {
    fn note(&mut self, note: impl Into<String>) {
        self.notes.add(note);
    }

    fn count(&self, key: &str, default: u64) -> Result<u64, ImportError> {
        self.ssd.count(self.file, key, default)
    }

    /// A time in ms, as ns.
    fn ms(&self, key: &str, default: f64) -> Result<u64, ImportError> {
        let ms = self.ssd.number(self.file, key, default)?;
        round(ms * 1e6).ok_or_else(|| self.refused(key, &format!("{ms}: a time of less than 2^63 ns")))
    }

    /// An error at a key.
    fn refused(&self, key: &str, what: &str) -> ImportError {
        syntax(self.file, self.ssd.line_of(key), format!("'{key}' = {what}"))
    }

    /// A product, where it is below 2^63.
    fn product(&self, key: &str, factors: &[u64]) -> Result<u64, ImportError> {
        let product = factors.iter().try_fold(1_u64, |all, &factor| all.checked_mul(factor));
        product.filter(|&product| i64::try_from(product).is_ok()).ok_or_else(|| {
            let value = self.count(key, 0).unwrap_or_default();
            self.refused(key, &format!("{value}: too large: the drive would exceed 2^63 bytes"))
        })
    }

    /// Notes any other value than the one that is simulated.
    fn only_simulated(&mut self, key: &str, simulated: u64, why: &str) -> Result<(), ImportError> {
        match self.count(key, simulated)? {
            value if value == simulated => {}
            value => self.note(format!("'{key}' = {value}: {why}; {simulated} is used instead")),
        }
        Ok(())
    }

    /// Refuses any other value of a key.
    fn only(&self, key: &str, allowed: u64, why: &str) -> Result<(), ImportError> {
        match self.count(key, allowed)? {
            value if value == allowed => Ok(()),
            value => Err(self.refused(key, &format!("{value}: {why}; only {allowed} can be imported"))),
        }
    }

    /// What a number stands for.
    fn choice(&self, key: &str, default: u64, choices: &[(u64, &'static str)]) -> Result<&'static str, ImportError> {
        let value = self.count(key, default)?;
        let found = choices.iter().find(|(number, _)| *number == value);
        found.map(|(_, word)| *word).ok_or_else(|| {
            let known: Vec<_> = choices.iter().map(|(number, word)| format!("{number} is {word}")).collect();
            self.refused(key, &format!("{value}: {}; no other can be imported", known.join(", ")))
        })
    }

    fn device(&mut self, blocks: &[Block]) -> Result<flashwise_ssd::DeviceConfig, ImportError> {
        let mut known = SSD_KEYS.to_vec();
        known.push("Block erase latency");
        self.ssd.note_unknown(self.file, &known, &mut self.notes)?;
        self.only("Write policy", 2, "the model no longer has another")?;
        let units =
            "here an element processes one request at a time, but the model this many at once in different planes";
        self.only_simulated("Number of parallel units", 1, units)?;
        self.only_simulated("Copy back", 1, "moved pages stay in their plane here")?;
        self.only_simulated(
            "Elements per gang",
            1,
            "here each element has its own pins, but those of a gang share them in the model",
        )?;
        let mut keys = Keys::default();
        keys.set("name", format!("DiskSim: {}", self.file));
        self.set_flash(&mut keys)?;
        self.set_ftl(&mut keys)?;
        self.set_host(&mut keys, blocks)?;
        let ignored = ["Gang share", "Timing model", "Never disconnect", "Print stats", "Scheduler"];
        for key in ignored.into_iter().filter(|key| self.ssd.get(key).is_some()) {
            self.note(format!("'{key}' has no effect here"));
        }
        keys.into_device(self.file)
    }

    fn set_flash(&mut self, keys: &mut Keys) -> Result<(), ImportError> {
        let page_sectors = self.count("Page size", 8)?;
        if page_sectors == 0 {
            return Err(self.refused("Page size", "0: a page has at least one sector"));
        }
        let page_bytes = self.product("Page size", &[page_sectors, SECTOR])?;
        let byte_s = self.ssd.number(self.file, "Chip xfer latency", 0.000_025)? / 1e3;
        let rate = if byte_s > 0.0 { (1.0 / byte_s).round() } else { f64::INFINITY };
        if rate < 1.0 {
            return Err(
                self.refused("Chip xfer latency", "a transfer of less than 1 byte/s: give milliseconds per byte")
            );
        }
        if rate > RATE_MAX {
            self.note("'Chip xfer latency': a transfer takes no time in the model; here it runs at 1 TB/s");
        }
        let channel_bytes_per_s = floor(rate.min(RATE_MAX)).unwrap_or(1);
        for (path, value) in [
            ("flash.channels", self.count("Flash chip elements", 8)?),
            ("flash.chips_per_channel", 1),
            ("flash.dies_per_chip", 1),
            ("flash.planes_per_die", self.count("Planes per package", 8)?),
            ("flash.blocks_per_plane", self.count("Blocks per plane", 2048)?),
            ("flash.pages_per_block", self.count("Pages per block", 64)?),
            ("flash.page_bytes", page_bytes),
            ("flash.transfer_unit_bytes", page_bytes),
            ("flash.write_granule_bytes", page_bytes),
            ("flash.channel_bytes_per_s", channel_bytes_per_s),
            ("flash.read_ns", self.ms("Page read latency", 0.025)?),
            ("flash.program_ns", self.ms("Page write latency", 0.2)?),
            ("flash.erase_ns", self.ms("Block erase latency", 1.5)?),
            ("ftl.logical_page_bytes", page_bytes),
            ("ftl.stripe_bytes", page_bytes),
        ] {
            keys.set_count(path, value);
        }
        keys.set("flash.array_time_jitter", 0.0);
        let (planes, per_plane) = (self.count("Planes per package", 8)?, self.count("Blocks per plane", 2048)?);
        let product = self.product("Blocks per plane", &[planes, per_plane])?;
        let all = self.count("Blocks per element", product)?;
        if all != product {
            self.note(format!("'Blocks per element' = {all}: planes × blocks per plane = {product} is used"));
        }
        Ok(())
    }

    fn set_ftl(&mut self, keys: &mut Keys) -> Result<(), ImportError> {
        let reserve = self.ssd.number(self.file, "Reserve pages percentage", 15.0)?;
        let low = self.ssd.number(self.file, "Minimum free blocks percentage", 5.0)?;
        if low >= reserve {
            let reason =
                "'Minimum free blocks percentage' must be below 'Reserve pages percentage', or cleaning never ends";
            return Err(syntax(self.file, self.ssd.line, reason));
        }
        let policy = self.choice("Cleaning policy", 2, &[(2, "greedy"), (3, "wear-aware")])?;
        let pool = self.choice("Allocation pool logic", 1, &[(1, "element"), (2, "plane")])?;
        let order = match self.count("Plane block mapping", 3)? {
            1 => "concatenated",
            3 => "interleaved",
            other => {
                self.note(format!("'Plane block mapping' = {other}: unknown; 3 is used"));
                "interleaved"
            }
        };
        let mode = self.choice("Cleaning in background", 0, &[(0, "foreground"), (1, "background")])?;
        let blocks = self.count("Blocks per plane", 2048)?;
        let usable = blocks.saturating_sub(floor(blocks as f64 * reserve / 100.0).unwrap_or(blocks));
        let pages = self.count("Pages per block", 64)?.saturating_sub(1);
        let (planes, elements) = (self.count("Planes per package", 8)?, self.count("Flash chip elements", 8)?);
        let page_bytes = self.product("Page size", &[self.count("Page size", 8)?, SECTOR])?;
        let capacity = self.product("Flash chip elements", &[usable, planes, pages, elements, page_bytes])?;
        keys.set_count("capacity_bytes", capacity);
        keys.set("ftl.mapping", "element");
        keys.set_count("ftl.element.stride_pages", self.count("Element stride pages", 1)?);
        keys.set("ftl.element.allocation_pool", pool);
        keys.set("ftl.element.block_order", order);
        keys.set("ftl.element.cleaning_policy", policy);
        keys.set("ftl.element.cleaning_mode", mode);
        keys.set("ftl.element.min_free_share", low / 100.0);
        self.note("the model starts full: add --precondition fill to flashwise simulate");
        Ok(())
    }

    fn set_host(&mut self, keys: &mut Keys, blocks: &[Block]) -> Result<(), ImportError> {
        // The bus below the adapter is the one with a time; without one, the link is as fast as links get.
        let mut sector_ms = 0.0_f64;
        for bus in blocks.iter().filter(|block| block.kind == "disksim_bus") {
            sector_ms = sector_ms.max(bus.number(self.file, "Read block transfer time", 0.0)?);
        }
        let rate = if sector_ms > 0.0 { SECTOR as f64 / (sector_ms / 1e3) } else { RATE_MAX };
        if rate > RATE_MAX {
            self.note("'Read block transfer time': here the link runs at 1 TB/s");
        }
        let rate = round(rate.min(RATE_MAX)).unwrap_or_default();
        let latency = self.ms("Command overhead", 0.0)?.checked_add(self.ms("Bus transaction latency", 0.0)?);
        let latency = latency.ok_or_else(|| {
            self.refused("Command overhead", "too long: with 'Bus transaction latency' it exceeds 2^63 ns")
        })?;
        keys.set("host.interface", "sata");
        let queue = self.count("Max queue length", 20)?;
        let depth = queue.clamp(1, SATA_QUEUE_MAX);
        if depth != queue {
            self.note(format!("'Max queue length' = {queue}: the link has 1 to {SATA_QUEUE_MAX}; {depth} is used"));
        }
        keys.set_count("host.queue_depth", depth);
        keys.set_count("host.link_bytes_per_s", rate);
        keys.set_count("host.command_latency_ns", latency);
        keys.set_count("host.command_issue_ns", 0);
        keys.set_count("host.logical_block_bytes", SECTOR);
        keys.set_count("host.max_transfer_bytes", 8 << 20);
        keys.set_count("controller.write_buffer_bytes", 0);
        keys.set("controller.power_loss_protection", false);
        keys.set_count("controller.dispatch_ns", 0);
        if self.ssd.number(self.file, "Bulk sector transfer time", 0.0)? > 0.0 {
            self.note("'Bulk sector transfer time' has no effect here: the bus's own time per sector is used");
        }
        Ok(())
    }

    fn workload(&mut self, block: &Block) -> Result<Workload, ImportError> {
        let Some(generators) = block.get("Generators") else {
            return Err(syntax(self.file, block.line, "'Generators' is missing in disksim_synthio"));
        };
        let Value::List(list) = &generators.value else {
            return Err(syntax(self.file, generators.line, "'Generators' should be a list"));
        };
        let requests = block.count(self.file, "Number of I/O requests to generate", 10_000)?;
        let each = requests.checked_div(list.len() as u64).unwrap_or(1).max(1);
        let all = each.saturating_mul(list.len() as u64);
        if all != requests {
            self.note(format!("'Number of I/O requests to generate' = {requests}: {each} of each generator are {all}"));
        }
        let mut flows = Vec::new();
        for (value, number) in list.iter().zip(1_u64..) {
            let Value::Block(generator) = value else {
                return Err(syntax(self.file, generators.line, "a generator must be a block disksim_synthgen"));
            };
            let mut flow = self.flow(generator)?;
            (flow.name, flow.requests) = (format!("flow-{number}"), Some(each));
            flows.push(flow);
        }
        let workload = Workload { name: format!("DiskSim: {}", self.file), seed: 1, content: None, flows };
        workload.check()?;
        Ok(workload)
    }

    fn flow(&mut self, generator: &Block) -> Result<Flow, ImportError> {
        let file = self.file;
        let sequential = generator.number(file, "Probability of sequential access", 0.0)?;
        if sequential != 0.0 && sequential != 1.0 {
            self.note(
                "'Probability of sequential access' is between 0 and 1: from 0.5 on, all requests are made sequential",
            );
        }
        let access = if sequential >= 0.5 { Access::Sequential } else { Access::Random };
        let too_large = |key: &str| syntax(file, generator.line_of(key), format!("'{key}': too large, 2^63 or more"));
        // A whole number of the file is below 2^53.
        let factor = generator.count(file, "Blocking factor", 8)?;
        let factor = self.notes.within("'Blocking factor'", factor, 1, u64::MAX).saturating_mul(SECTOR);
        let (_, mean) = self.distribution(generator, "Sizes")?;
        let bytes =
            floor((mean * SECTOR as f64).ceil()).and_then(|bytes| bytes.max(1).checked_next_multiple_of(factor));
        let bytes = bytes.filter(|&bytes| i64::try_from(bytes).is_ok()).ok_or_else(|| too_large("Sizes"))?;
        let size = Size::fixed(bytes);
        let (kind, gap_ms) = self.distribution(generator, "General inter-arrival times")?;
        let interarrival_ns = round(gap_ms * 1e6).ok_or_else(|| too_large("General inter-arrival times"))?;
        let what = "'General inter-arrival times', the mean in ns";
        let interarrival_ns = self.notes.within(what, interarrival_ns, 1, u64::MAX);
        let arrivals = if kind == "exponential" { Arrivals::Poisson } else { Arrivals::Constant };
        self.note(format!(
            "all sizes are {bytes} here and arrivals are {arrivals:?}; the file's distributions are ignored"
        ));
        let mut synthetic = Synthetic::new(access, size, Pacing::Open { interarrival_ns, arrivals });
        let read_share = generator.number(file, "Probability of read access", 0.0)?;
        synthetic.read_share = self.notes.within("'Probability of read access'", read_share, 0.0, 1.0);
        synthetic.align_bytes = Some(factor);
        synthetic.region_bytes = match generator.count(file, "Storage capacity per device", 0)? {
            0 => None,
            sectors => {
                let bytes = sectors.saturating_mul(SECTOR);
                Some(bytes.checked_div(factor).map_or(bytes, |parts| parts.saturating_mul(factor)))
            }
        };
        Ok(Flow { synthetic: Some(synthetic), ..Flow::default() })
    }

    /// Kind and mean of a distribution, written as a list: its name, then its parameters.
    fn distribution(&self, generator: &Block, key: &str) -> Result<(String, f64), ImportError> {
        let Some(entry) = generator.get(key) else {
            return Err(syntax(self.file, generator.line, format!("'{key}' is missing")));
        };
        let Value::List(list) = &entry.value else {
            return Err(syntax(
                self.file,
                entry.line,
                format!("'{key}' should be a list, such as [ uniform, 0.0, 1.0 ]"),
            ));
        };
        let words: Vec<&str> =
            list.iter().filter_map(|value| if let Value::Word(w) = value { Some(w.as_str()) } else { None }).collect();
        let number = |index: usize| words.get(index).and_then(|word| word.parse::<f64>().ok());
        let mean = match (words.first().copied(), number(1), number(2)) {
            (Some("uniform"), Some(low), Some(high)) => Some((low + high) / 2.0),
            // A base and a mean.
            (Some("exponential"), Some(base), Some(mean)) => Some(base + mean),
            (Some("normal"), Some(mean), _) => Some(mean),
            _ => None,
        };
        let kind = words.first().copied().unwrap_or_default().to_owned();
        let reason = || {
            format!(
                "'{key}' should be [ uniform, low, high ], [ exponential, base, mean ] or [ normal, mean, variance ]"
            )
        };
        mean.filter(|mean| mean.is_finite() && *mean >= 0.0)
            .map(|mean| (kind, mean))
            .ok_or_else(|| syntax(self.file, entry.line, reason()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIVE: &str = "
ssdmodel_ssd OURS {
    Reserve pages percentage = 20, Minimum free blocks percentage = 5,
    Cleaning policy = 3,
    Planes per package = 2, Blocks per plane = 100, Blocks per element = 200,
    Flash chip elements = 4, Page size = 8, Pages per block = 16,
    Max queue length = 10,
    Chip xfer latency = 0.000025, Page read latency = 0.03, Page write latency = 0.3, Block erase latency = 2.0
}
disksim_bus FAST { Read block transfer time = 0.0 }
disksim_bus SLOW { Read block transfer time = 0.0002384 }
disksim_synthio LOAD {
    Number of I/O requests to generate = 1000,
    Generators = [ disksim_synthgen {
        Storage capacity per device = 8000, Blocking factor = 8,
        Probability of sequential access = 0.0, Probability of read access = 0.25,
        General inter-arrival times = [ uniform, 0.0, 1.0 ],
        Sizes = [ exponential, 0.0, 8.0 ]
    } ]
}
instantiate [ ours ] as OURS
";

    #[test]
    fn elements_keep_their_geometry_their_times_and_their_reserve() {
        let imported = import("ours.parv", DRIVE).unwrap();
        let flash = &imported.device.flash;
        assert_eq!((flash.channels, flash.planes_per_die, flash.page_bytes), (4, 2, 4096));
        assert_eq!((flash.read_ns, flash.program_ns, flash.erase_ns), (30_000, 300_000, 2_000_000));
        assert_eq!(flash.channel_bytes_per_s, 40_000_000, "25 ns a byte");
        assert_eq!(imported.device.capacity_bytes, 4 * 2 * 80 * 15 * 4096, "one page of a block is the summary");
        assert_eq!(imported.device.host.queue_depth, 10);
        assert_eq!(imported.device.ftl.element.min_free_share, 0.05);
        assert!(imported.notes.iter().any(|note| note.contains("starts full")));
    }

    #[test]
    fn a_generator_becomes_a_flow() {
        let workload = &import("ours.parv", DRIVE).unwrap().workloads[0];
        let synthetic = workload.flows[0].synthetic.as_ref().unwrap();
        assert_eq!((workload.flows[0].requests, synthetic.read_share), (Some(1000), 0.25));
        assert_eq!((&synthetic.size, synthetic.region_bytes), (&Size::fixed(4096), Some(8000 * 512)));
        let pacing = Pacing::Open { interarrival_ns: 500_000, arrivals: Arrivals::Constant };
        assert_eq!((synthetic.pacing, synthetic.align_bytes), (pacing, Some(4096)));
    }

    #[test]
    fn what_cannot_be_imported_is_refused_with_its_line() {
        for (from, to, words) in [
            ("Page size", "Page sise", "line 6: 'Page sise' is unknown in ssdmodel_ssd; did you mean 'Page size'?"),
            ("Cleaning policy = 3", "Cleaning policy = 1", "line 4: 'Cleaning policy' = 1"),
            ("Max queue length = 10", "Write policy = 1", "only 2 can be imported"),
            ("percentage = 20", "percentage = 4", "cleaning never ends"),
            ("ssdmodel_ssd OURS", "other OURS", "the block ssdmodel_ssd is missing"),
        ] {
            let error = import("ours.parv", &DRIVE.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.starts_with("ours.parv: line ") && error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_value_that_the_simulator_cannot_take_is_changed_with_a_note() {
        for (from, to, words) in [
            ("Blocking factor = 8", "Blocking factor = 0", "'Blocking factor' = 0: "),
            ("read access = 0.25", "read access = 1.5", "'Probability of read access' = 1.5: "),
            ("uniform, 0.0, 1.0", "uniform, 0.0, 0.0", "'General inter-arrival times', the mean in ns = 0: "),
            ("time = 0.0002384", "time = 0.0000000001", "'Read block transfer time': here the link runs at 1 TB/s"),
            ("generate = 1000", "generate = 0", "'Number of I/O requests to generate' = 0: 1 of each generator are 1"),
        ] {
            let notes = import("ours.parv", &DRIVE.replacen(from, to, 1)).unwrap().notes;
            assert!(notes.iter().any(|note| note.starts_with(words)), "{words}: {notes:?}");
            assert!(!import("ours.parv", DRIVE).unwrap().notes.iter().any(|note| note.starts_with(words)), "{words}");
        }
    }

    #[test]
    fn keys_of_forks_and_what_is_not_simulated_change_nothing_and_are_noted() {
        let of = |keys: &str| import("ours.parv", &DRIVE.replace("Max queue length = 10", keys)).unwrap();
        let plain = of("Max queue length = 10");
        let forked =
            of("Max queue length = 10, Checkpoint time = 24, Read intensity aware GC = 5, LSB read latency = 0.058,\n\
             Number of parallel units = 4, Copy back = 0, Elements per gang = 2, Plane block mapping = 2");
        assert_eq!(forked.device, plain.device);
        for words in [
            "ours.parv: line 7: 'Checkpoint time' is unknown in ssdmodel_ssd and has no effect",
            "'Read intensity aware GC' is unknown",
            "'LSB read latency' is unknown",
            "'Number of parallel units' = 4: here an element processes one request at a time",
            "'Copy back' = 0: ",
            "'Elements per gang' = 2: ",
            "'Plane block mapping' = 2: unknown; 3 is used",
        ] {
            assert!(forked.notes.iter().any(|note| note.contains(words)), "{words}: {:#?}", forked.notes);
        }
    }

    #[test]
    fn blocks_of_an_element_that_are_not_those_of_its_planes_are_noted() {
        let imported = import("ours.parv", &DRIVE.replace("element = 200", "element = 300")).unwrap();
        assert_eq!(imported.device, import("ours.parv", DRIVE).unwrap().device);
        let words = "'Blocks per element' = 300: planes × blocks per plane = 200";
        assert!(imported.notes.iter().any(|note| note.starts_with(words)), "{:?}", imported.notes);
    }

    #[test]
    fn a_transfer_that_takes_no_time_goes_as_fast_as_any() {
        let imported = import("ours.parv", &DRIVE.replace("latency = 0.000025", "latency = 0.0")).unwrap();
        assert_eq!(imported.device.flash.channel_bytes_per_s, 1_000_000_000_000);
        assert!(imported.notes.iter().any(|note| note.starts_with("'Chip xfer latency'")), "{:?}", imported.notes);
    }

    /// Each number in turn, and each two, are made as large as they can be written.
    #[test]
    fn no_figure_wraps_however_large() {
        let words: Vec<&str> = DRIVE.split(' ').collect();
        let is_number = |word: &str| word.trim_end_matches(['\n', ',']).parse::<f64>().is_ok();
        let numbers: Vec<usize> = (0..words.len()).filter(|&at| is_number(words[at])).collect();
        assert!(numbers.len() > 15, "{numbers:?}");
        for huge in ["9007199254740991", "1e308", "1e17", "0", "4503599627370496"] {
            for (n, &a) in numbers.iter().enumerate() {
                for &b in &numbers[n..] {
                    let with = |(at, word): (usize, &&str)| match at == a || at == b {
                        true => word.replace(word.trim_end_matches(['\n', ',']), huge),
                        false => (*word).to_owned(),
                    };
                    let text = words.iter().enumerate().map(with).collect::<Vec<_>>().join(" ");
                    match import("ours.parv", &text) {
                        Ok(imported) => assert!(imported.device_toml().is_ok(), "{text}"),
                        Err(error) => assert!(
                            error.to_string().contains("ours.parv: ") || error.to_string().contains("workload: flow"),
                            "{error}\n{text}"
                        ),
                    }
                }
            }
        }
    }
}
