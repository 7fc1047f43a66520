//! Redo logs, packed and sparse: what a commit costs.
//!
//! ```text
//!   packed   | 1 . . . |  | 1 2 . . |  | 1 2 3 . |    each commit writes the block again, behind it a new record
//!   sparse   | 1 . . . |  | 2 . . . |  | 3 . . . |    each commit writes a fresh block
//! ```
//!
//! A commit is a forced write of 4 KiB; the next comes when it is done. With m records of L bytes to a block, C being
//! what is left of so many bytes after compression, a block of packed records takes Σ C(jL), j = 1 … m, where every
//! version of it is programmed, and sparse records take m·C(L).
//!
//! Source: the text, figures 6 and 7; Qiao et al., FAST 2022.

use flashwise_block::{BlockDevice, ByteSize, IoBuffer, Nanos, Request, execute, grouped};
use flashwise_report::study::{Measured, StudyCell, StudyChart, StudyPoint, StudySection, StudySeries, StudyTable};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::Scale;
use super::drives::{BLOCK, Drive};
use crate::{Progress, StudyError, StudyOptions, parallel, statistics};

/// Lengths of a record, bytes.
pub(super) const RECORDS: [u64; 6] = [64, 128, 256, 512, 1024, 2048];
/// Where other writes go, and how much room they go round in, bytes.
const TRAFFIC: std::ops::Range<u64> = 256 << 20..320 << 20;
/// In which the last program ends.
const PAUSE: Nanos = Nanos::millis(50);

/// How records are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Packed,
    Sparse,
}

/// What a record is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// The first half noise, the second half zeros.
    HalfZeros,
    Noise,
}

impl Record {
    const ALL: [Self; 2] = [Self::HalfZeros, Self::Noise];

    fn name(self) -> &'static str {
        match self {
            Self::HalfZeros => "half zeros",
            Self::Noise => "noise",
        }
    }

    /// Bytes of a record that cannot be compressed.
    pub(super) fn noise_bytes(self, bytes: u64) -> u64 {
        if self == Self::HalfZeros { bytes / 2 } else { bytes }
    }
}

/// A run.
#[derive(Clone, Debug)]
pub(super) struct Log {
    pub(super) drive: DeviceConfig,
    pub(super) form: Form,
    pub(super) record: Record,
    pub(super) record_bytes: u64,
    pub(super) commits: u64,
    /// Noise that others write between two commits, bytes.
    pub(super) traffic_bytes: u64,
}

/// What a commit cost, bytes but for the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cost {
    pub(super) host: f64,
    /// Programmed for the log, or in the buffer at the end.
    pub(super) flash: f64,
    /// Replaced in the buffer.
    pub(super) absorbed: f64,
    /// What its write takes if nothing is absorbed: its compressed length in whole granules, or the block.
    pub(super) written: f64,
    /// The log's room at the end.
    pub(super) logical: f64,
    pub(super) physical: f64,
    /// Commits a second of the drive's time.
    pub(super) per_second: f64,
}

impl Log {
    /// Runs it on a new drive.
    pub(super) fn run(&self, seed: u64) -> Result<Cost, StudyError> {
        let mut ssd = SimulatedSsd::new(self.drive.clone(), seed)?;
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut block = [0; BLOCK as usize];
        let (mut used, mut place, mut traffic, mut commit_ns) = (0_usize, 0, TRAFFIC.start, 0_u64);
        let record_bytes = self.record_bytes as usize;
        for _ in 0..self.commits {
            traffic = self.others_write(&mut ssd, traffic, &mut random)?;
            if self.form == Form::Sparse || used + record_bytes > block.len() {
                block.fill(0);
                place += if used > 0 { BLOCK } else { 0 };
                used = 0;
            }
            let noise = self.record.noise_bytes(self.record_bytes) as usize;
            random.fill(&mut block[used..used + noise]);
            used += record_bytes;
            let write = Request::write(ByteSize(place), ByteSize(BLOCK)).with_buffer(IoBuffer::copy_of(&block));
            let done = execute(&mut ssd, write.with_fua())?;
            commit_ns += done.latency().0;
            done.result?;
        }
        ssd.pause(PAUSE)?;
        Ok(self.cost(&ssd, place + BLOCK, commit_ns))
    }

    /// Other writes between two commits; gives where they continue.
    fn others_write(&self, ssd: &mut SimulatedSsd, from: u64, random: &mut Pcg64Mcg) -> Result<u64, StudyError> {
        if self.traffic_bytes == 0 {
            return Ok(from);
        }
        let mut buffer = IoBuffer::zeroed(self.traffic_bytes as usize);
        random.fill(&mut buffer[..]);
        let write = Request::write(ByteSize(from), ByteSize(self.traffic_bytes)).with_buffer(buffer);
        execute(ssd, write)?.result?;
        let next = from + self.traffic_bytes;
        Ok(if next + self.traffic_bytes > TRAFFIC.end { TRAFFIC.start } else { next })
    }

    fn cost(&self, ssd: &SimulatedSsd, log_bytes: u64, commit_ns: u64) -> Cost {
        let commits = self.commits as f64;
        let others = (self.commits * self.traffic_bytes) as f64;
        let flash = ssd.counters().flash.unwrap_or_default();
        let written =
            ssd.reduction_counters().map_or((self.commits * BLOCK) as f64, |c| c.stored_bytes as f64 - others);
        // Noise of others is stored as it is, and what of it was overwritten takes no space any more.
        let held = others.min(((TRAFFIC.end - TRAFFIC.start) / self.traffic_bytes.max(1) * self.traffic_bytes) as f64);
        let physical = ssd.space_use().map_or(log_bytes as f64, |space| space.physical_bytes as f64 - held);
        Cost {
            host: BLOCK as f64,
            flash: ((flash.bytes_programmed.0 + ssd.buffered_bytes()) as f64 - others) / commits,
            absorbed: flash.absorbed_bytes.0 as f64 / commits,
            written: written / commits,
            logical: log_bytes as f64 / commits,
            physical: physical / commits,
            per_second: commits / (commit_ns as f64 * 1e-9),
        }
    }
}

/// The same run with several seeds.
#[derive(Clone, Debug, Default)]
pub(super) struct Costs(Vec<Cost>);

impl Costs {
    pub(super) fn mean(&self, of: impl Fn(&Cost) -> f64) -> Measured {
        statistics::mean(&self.0.iter().map(of).collect::<Vec<_>>())
    }
}

/// Runs all logs, each with all seeds.
pub(super) fn all(what: &str, logs: &[Log], seeds: &[u64], progress: Progress<'_>) -> Result<Vec<Costs>, StudyError> {
    let work: Vec<_> = logs.iter().flat_map(|log| seeds.iter().map(move |&seed| (log, seed))).collect();
    let costs = parallel::map(what, &work, progress, |&(log, seed)| log.run(seed))?;
    Ok(costs.chunks(seeds.len()).map(|costs| Costs(costs.to_vec())).collect())
}

/// Both forms of one log on one drive.
pub(super) struct Pair {
    pub(super) drive: Drive,
    pub(super) record: Record,
    pub(super) record_bytes: u64,
    pub(super) packed: Costs,
    pub(super) sparse: Costs,
}

impl Pair {
    /// Flash bytes of the packed log ÷ those of the sparse one.
    pub(super) fn times(&self) -> Measured {
        let ratios = self.packed.0.iter().zip(&self.sparse.0).map(|(packed, sparse)| packed.flash / sparse.flash);
        statistics::mean(&ratios.collect::<Vec<_>>())
    }
}

/// All logs.
pub(super) struct Logs(pub(super) Vec<Pair>);

/// Runs them.
pub(super) fn measure(scale: &Scale, options: &StudyOptions, progress: Progress<'_>) -> Result<Logs, StudyError> {
    let mut kinds = Vec::new();
    for drive in Drive::ALL {
        // Where nothing is compressed it does not matter what a record is made of.
        let records = if drive == Drive::COMPRESSES { &Record::ALL[..] } else { &Record::ALL[..1] };
        kinds.extend(records.iter().flat_map(|&record| RECORDS.map(|bytes| (drive, record, bytes))));
    }
    let mut logs = Vec::new();
    for &(drive, record, record_bytes) in &kinds {
        let config = drive.config()?;
        for form in [Form::Packed, Form::Sparse] {
            let drive = config.clone();
            logs.push(Log { drive, form, record, record_bytes, commits: scale.commits, traffic_bytes: 0 });
        }
    }
    let mut costs = all("packed and sparse", &logs, &scale.seeds(options), progress)?.into_iter();
    let pair = |(drive, record, record_bytes)| {
        let mut next = || costs.next().unwrap_or_default();
        Pair { drive, record, record_bytes, packed: next(), sparse: next() }
    };
    Ok(Logs(kinds.into_iter().map(pair).collect()))
}

impl Logs {
    /// Both forms on a drive.
    pub(super) fn on(&self, drive: Drive, record: Record) -> impl Iterator<Item = &Pair> {
        self.0.iter().filter(move |pair| pair.drive == drive && pair.record == record)
    }

    /// The section.
    pub(super) fn section(&self, scale: &Scale) -> StudySection {
        let row = |pair: &Pair| -> Vec<StudyCell> {
            let noise = pair.record.noise_bytes(pair.record_bytes) as f64;
            let of = |costs: &Costs, of: fn(&Cost) -> f64| StudyCell::from(costs.mean(of));
            vec![
                StudyCell::text(format!("{}, {}", pair.record.name(), pair.record_bytes)),
                // Records that cannot be compressed, j of them in the j-th version of a block: (m + 1) / 2 on average.
                StudyCell::text(format!("{:.0}", noise * ((BLOCK / pair.record_bytes) as f64 + 1.0) / 2.0)),
                of(&pair.packed, |cost| cost.written),
                of(&pair.packed, |cost| cost.absorbed),
                of(&pair.packed, |cost| cost.flash),
                of(&pair.sparse, |cost| cost.flash),
                pair.times().into(),
            ]
        };
        let by_drive = |drive: Drive| StudyTable {
            caption: format!(
                "{}: record bytes; per commit, in bytes: noise in a packed block on average; cost of writing it \
                 without absorption; absorbed part of that; flash, packed and sparse; packed ÷ sparse:",
                drive.name()
            ),
            columns: ["", "noise", "written", "absorbed", "packed", "sparse", "times"].map(str::to_owned).to_vec(),
            rows: self.0.iter().filter(|pair| pair.drive == drive).map(row).collect(),
        };
        let rates = Drive::ALL.into_iter().filter_map(|drive| self.0.iter().find(|pair| pair.drive == drive));
        let rate = |pair: &Pair| -> Vec<StudyCell> {
            let of = |costs: &Costs| StudyCell::from(costs.mean(|cost| cost.per_second));
            vec![StudyCell::text(pair.drive.name()), of(&pair.packed), of(&pair.sparse)]
        };
        let room = |pair: &Pair| -> Vec<StudyCell> {
            let of = |costs: &Costs, of: fn(&Cost) -> f64| StudyCell::from(costs.mean(of));
            vec![
                StudyCell::text(format!("{}, {}", pair.record.name(), pair.record_bytes)),
                of(&pair.packed, |cost| cost.logical),
                of(&pair.packed, |cost| cost.physical),
                of(&pair.sparse, |cost| cost.logical),
                of(&pair.sparse, |cost| cost.physical),
                of(&pair.packed, |cost| cost.flash / cost.host),
                of(&pair.sparse, |cost| cost.flash / cost.host),
            ]
        };
        let compressing = self.0.iter().filter(|pair| pair.drive == Drive::COMPRESSES);
        let line = |record: Record, form: Form| StudySeries {
            name: format!("{}, {}", if form == Form::Packed { "packed" } else { "sparse" }, record.name()),
            points: self
                .on(Drive::COMPRESSES, record)
                .map(|pair| {
                    let costs = if form == Form::Packed { &pair.packed } else { &pair.sparse };
                    StudyPoint { x: pair.record_bytes as f64, y: costs.mean(|cost| cost.flash) }
                })
                .collect(),
        };
        let lines = Record::ALL.iter().flat_map(|&record| [line(record, Form::Packed), line(record, Form::Sparse)]);
        StudySection {
            title: "Cost of a commit, packed and sparse".to_owned(),
            text: vec![format!(
                "{} commits of one record each, one after the other, nothing else on the drive; every commit writes \
                 4096 bytes with force unit access in either form; {} seeds. Four drives: one that compresses; the \
                 same without compression, whose buffer also survives a power cut; and one without either, \
                 programming stripes of 64 KiB or single 4 KiB pages.",
                grouped(scale.commits),
                scale.seeds
            )],
            tables: Drive::ALL
                .into_iter()
                .map(by_drive)
                .chain([
                    StudyTable {
                        caption: format!("Commits a second, records of {} bytes:", RECORDS[0]),
                        columns: ["drive", "packed", "sparse"].map(str::to_owned).to_vec(),
                        rows: rates.map(rate).collect(),
                    },
                    StudyTable {
                        caption:
                            "On the compressing drive: record bytes; log space per commit in bytes: packed, logical \
                             and physical; sparse, logical and physical; flash bytes ÷ host bytes, packed and sparse:"
                                .to_owned(),
                        columns: ["", "packed", "physical", "sparse", "physical", "÷ host", "sparse"]
                            .map(str::to_owned)
                            .to_vec(),
                        rows: compressing.map(room).collect(),
                    },
                ])
                .collect(),
            charts: vec![StudyChart {
                title: "Flash bytes per commit on a compressing drive".to_owned(),
                x_label: "bytes of a record".to_owned(),
                x_is_bytes: true,
                y_label: "flash bytes per commit".to_owned(),
                series: lines.collect(),
            }],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(drive: Drive, form: Form, record: Record, record_bytes: u64, traffic_bytes: u64) -> Cost {
        let drive = drive.config().unwrap();
        Log { drive, form, record, record_bytes, commits: 128, traffic_bytes }.run(1).unwrap()
    }

    #[test]
    fn a_sparse_record_takes_its_noise_in_whole_granules_and_a_packed_one_every_version_of_its_block() {
        let sparse = run(Drive::COMPRESSES, Form::Sparse, Record::Noise, 512, 0);
        // 512 bytes of noise, and less than a granule for the code and the run of zeros.
        assert_eq!((sparse.flash, sparse.physical, sparse.logical), (576.0, 576.0, 4096.0));
        let packed = run(Drive::COMPRESSES, Form::Packed, Record::Noise, 512, 0);
        assert_eq!(packed.logical, 512.0);
        // 512, 1024 … 4096 bytes: 2304 on average; zlib's fixed code takes nine bits a byte at most, and then a
        // granule.
        assert!((2304.0..=2304.0 * 9.0 / 8.0 + 64.0).contains(&packed.written), "{}", packed.written);
        assert_eq!(packed.flash, packed.written - packed.absorbed);
    }

    #[test]
    fn what_others_write_does_not_count_as_the_logs() {
        let alone = run(Drive::COMPRESSES, Form::Sparse, Record::HalfZeros, 1024, 0);
        let beside = run(Drive::COMPRESSES, Form::Sparse, Record::HalfZeros, 1024, 8192);
        assert_eq!((alone.written, alone.physical), (beside.written, beside.physical));
        assert_eq!(alone.flash, beside.flash);
    }

    #[test]
    fn a_protected_buffer_takes_in_what_is_written_again_and_an_unprotected_one_pads() {
        let packed = |drive| run(drive, Form::Packed, Record::HalfZeros, 512, 0);
        // Eight commits a block, of which the flash sees one; but the first version of a superpage's sixteenth block
        // fills it, so that this block is programmed twice.
        assert_eq!(packed(Drive::Protected).flash, 512.0 * 17.0 / 16.0);
        assert_eq!(packed(Drive::Unprotected).flash, 65_536.0);
        assert_eq!(packed(Drive::UnprotectedByPage).flash, 4096.0);
    }
}
