//! What keeps a block that is written again and again from reaching the flash every time: one thing varied at a time.

use flashwise_block::ByteSize;
use flashwise_report::study::{Measured, StudyCell, StudySection, StudyTable};

use super::Scale;
use super::drives::{self, BLOCK, Drive};
use super::log::{self, Costs, Form, Log, Record};
use crate::{Progress, StudyError, StudyOptions};

/// Bytes of a record.
const RECORD: u64 = 128;
/// What others write between two commits, bytes.
const TRAFFIC: [u64; 6] = [0, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];
/// What they write where something else is varied, bytes.
const SOME_TRAFFIC: u64 = 16 << 10;
/// Granules, bytes.
const GRANULES: [u64; 4] = [16, 64, 512, 4096];
/// Channels and ways of a superpage, of 4 KiB each.
const SUPERPAGES: [(u32, u32); 5] = [(1, 1), (4, 1), (8, 1), (8, 2), (8, 8)];
/// Write buffers, bytes.
const BUFFERS: [u64; 3] = [3 << 20, 8 << 20, 32 << 20];

/// What was varied, by name.
pub(super) struct Absorption {
    /// Other writes, by drive.
    pub(super) traffic: Vec<(Drive, u64, Costs)>,
    granules: Vec<(u64, Costs)>,
    superpages: Vec<(u64, Costs)>,
    buffers: Vec<(u64, Costs)>,
}

/// Runs all.
pub(super) fn measure(scale: &Scale, options: &StudyOptions, progress: Progress<'_>) -> Result<Absorption, StudyError> {
    let commits = scale.commits / 2;
    let log = |drive, traffic_bytes| {
        let (form, record, record_bytes) = (Form::Packed, Record::HalfZeros, RECORD);
        Log { drive, form, record, record_bytes, commits, traffic_bytes }
    };
    let mut logs = Vec::new();
    let kinds: Vec<_> = [Drive::COMPRESSES, Drive::Protected]
        .into_iter()
        .flat_map(|drive| TRAFFIC.map(|traffic_bytes| (drive, traffic_bytes)))
        .collect();
    for &(drive, traffic_bytes) in &kinds {
        logs.push(log(drive.config()?, traffic_bytes));
    }
    for granule_bytes in GRANULES {
        logs.push(log(Drive::Compresses { granule_bytes }.config()?, 0));
    }
    let varied = |change: &dyn Fn(&mut flashwise_ssd::DeviceConfig)| {
        let mut config = Drive::Protected.config()?;
        change(&mut config);
        config.check("transparent-compression")?;
        Ok::<_, StudyError>(log(config, SOME_TRAFFIC))
    };
    for (channels, ways) in SUPERPAGES {
        logs.push(varied(&|config| drives::superpage(config, channels, ways))?);
    }
    for bytes in BUFFERS {
        logs.push(varied(&|config| config.controller.write_buffer_bytes = bytes)?);
    }
    let mut costs = log::all("what is absorbed", &logs, &scale.seeds(options), progress)?.into_iter();
    let mut next = || costs.next().unwrap_or_default();
    Ok(Absorption {
        traffic: kinds.into_iter().map(|(drive, bytes)| (drive, bytes, next())).collect(),
        granules: GRANULES.map(|bytes| (bytes, next())).to_vec(),
        superpages: SUPERPAGES.map(|(channels, ways)| (u64::from(channels * ways) * BLOCK, next())).to_vec(),
        buffers: BUFFERS.map(|bytes| (bytes, next())).to_vec(),
    })
}

impl Absorption {
    /// Flash bytes a commit with so much written by others between two.
    pub(super) fn flash(&self, drive: Drive, traffic_bytes: u64) -> Measured {
        let found = self.traffic.iter().find(|(d, bytes, _)| *d == drive && *bytes == traffic_bytes);
        found.map_or_else(Measured::default, |(_, _, costs)| costs.mean(|cost| cost.flash))
    }

    /// The section.
    pub(super) fn section(&self, scale: &Scale) -> StudySection {
        let cells = |name: String, costs: &Costs| {
            let of = |of: fn(&log::Cost) -> f64| StudyCell::from(costs.mean(of));
            vec![StudyCell::text(name), of(|cost| cost.written), of(|cost| cost.absorbed), of(|cost| cost.flash)]
        };
        let size = |bytes: u64| ByteSize(bytes).to_string();
        let table = |caption: &str, rows: Vec<Vec<StudyCell>>| StudyTable {
            caption: caption.to_owned(),
            columns: ["", "written", "absorbed", "flash"].map(str::to_owned).to_vec(),
            rows,
        };
        let sized = |all: &[(u64, Costs)]| all.iter().map(|(bytes, costs)| cells(size(*bytes), costs)).collect();
        let traffic = self
            .traffic
            .iter()
            .map(|(drive, bytes, costs)| cells(format!("{}, {}", drive.name(), size(*bytes)), costs));
        StudySection {
            title: "Absorption of rewritten blocks in the buffer".to_owned(),
            text: vec![
                format!(
                    "A packed log with records of {RECORD} bytes, half zeros, {} commits, {} seeds; bytes per commit.",
                    scale.commits / 2,
                    scale.seeds
                ),
                "A block is replaced in the buffer as long as its superpage is open, that is until enough is written \
                 to fill it; the size of the buffer does not matter. On the compressing drive it must also fit in the \
                 granules that it has there: a block that grows by a record seldom does, and takes new ones, and the \
                 old ones are programmed anyway."
                    .to_owned(),
            ],
            tables: vec![
                table("Drive, and bytes written by others between two commits:", traffic.collect()),
                table("The compressing drive, nothing else written, by its granule:", sized(&self.granules)),
                table(
                    "The plain drive, 16 KiB written by others between two commits, by its superpage:",
                    sized(&self.superpages),
                ),
                table("The same by the size of its write buffer, superpages of 64 KiB:", sized(&self.buffers)),
            ],
            charts: Vec::new(),
        }
    }
}
