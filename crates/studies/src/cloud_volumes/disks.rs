//! Rotating disks: the contrast to drives that serve many requests at once.

use flashwise_block::{BlockError, ByteSize, Request};
use flashwise_report::study::{StudyCell, StudyClaim, StudySection, StudyTable};
use flashwise_volume::{SimulatedVolume, Volume};

use super::load::rate;
use crate::verdict::verdict;
use crate::{Progress, StudyError, StudyOptions};

/// What a disk does.
struct Measured {
    name: &'static str,
    /// One over seek and half a rotation.
    expected: f64,
    reads: f64,
    writes: f64,
    deep: f64,
    outer_mb_per_s: f64,
    inner_mb_per_s: f64,
}

fn measure_one(name: &'static str, options: &StudyOptions) -> Result<Measured, StudyError> {
    let count = if options.quick { 1_000 } else { 10_000 };
    let mut preset = Volume::preset(name)?;
    let fresh = |volume: &Volume| SimulatedVolume::new(volume.clone(), options.seed);
    let Some(disk) = preset.config.medium.disk.clone() else {
        return Err(BlockError::Protocol("the preset has no disk").into());
    };
    let expected = 1e9 / (disk.average_seek_ns as f64 + 30e9 / f64::from(disk.rpm) + disk.command_ns as f64);
    let blocks = preset.config.capacity_bytes / 4096;
    // A stride that is prime to the number of blocks spreads them evenly.
    let place = move |i: u64| ByteSize((u128::from(i) * 2_654_435_761 % u128::from(blocks)) as u64 * 4096);
    let read = move |i: u64| Request::read(place(i), ByteSize::kib(4));
    let reads = rate(&mut fresh(&preset)?, 1, count, &read)?;
    let deep = rate(&mut fresh(&preset)?, 32, count, &read)?;
    let stream = |from: u64| move |i: u64| Request::read(ByteSize(from + (i << 20)), ByteSize::mib(1));
    let inner = (preset.config.capacity_bytes - (2 << 30)) >> 20 << 20;
    let [outer_mb_per_s, inner_mb_per_s] = [0, inner].map(|from| {
        let per_s = rate(&mut fresh(&preset)?, 4, 500, &stream(from))?;
        Ok::<_, StudyError>(per_s * 1_048_576.0 / 1e6)
    });
    // Without a cache, so that the mechanism is measured.
    if let Some(disk) = &mut preset.config.medium.disk {
        disk.write_cache_bytes = 0;
    }
    let writes = rate(&mut fresh(&preset)?, 1, count, &|i| Request::write(place(i), ByteSize::kib(4)))?;
    Ok(Measured {
        name,
        expected,
        reads,
        writes,
        deep,
        outer_mb_per_s: outer_mb_per_s?,
        inner_mb_per_s: inner_mb_per_s?,
    })
}

/// Both presets.
pub(super) fn measure(
    options: &StudyOptions,
    progress: Progress<'_>,
) -> Result<(StudyClaim, StudySection), StudyError> {
    progress("rotating disks", 0.0);
    let disks = [measure_one("sas-15k", options)?, measure_one("sata-7k2", options)?];
    let near = |disk: &Measured| (disk.reads / disk.expected - 1.0).abs();
    let said = |disk: &Measured| {
        format!(
            "{}: {:.0} reads a second ({:.0} by its seek and half a rotation), α {:.2}, {:.1} times as many 32 deep",
            disk.name,
            disk.reads,
            disk.expected,
            disk.reads / disk.writes,
            disk.deep / disk.reads
        )
    };
    let claim = StudyClaim {
        claim: "A rotating disk serves one request at a time (k = 1), and reads about as fast as it writes (α = 1)."
            .to_owned(),
        measured: format!("{}; {}.", said(&disks[0]), said(&disks[1])),
        verdict: verdict(disks.iter().all(|disk| near(disk) < 0.15), disks.iter().any(|disk| near(disk) < 0.15)),
        because: "The head goes to one place at a time. What a queue gains is a shorter way, by choosing the nearest \
                  request, not parallel work; a write waits for the head to settle."
            .to_owned(),
    };
    let row = |disk: &Measured| {
        let numbers = [disk.expected, disk.reads, disk.writes, disk.deep, disk.outer_mb_per_s, disk.inner_mb_per_s];
        let numbers = numbers.map(|number| StudyCell::text(format!("{number:.0}")));
        [vec![StudyCell::text(disk.name)], numbers.to_vec()].concat()
    };
    let columns = ["disk", "computed reads/s", "reads/s", "writes/s", "reads/s, 32 deep", "outer MB/s", "inner MB/s"];
    let section = StudySection {
        title: "Rotating disks".to_owned(),
        text: vec![
            "Random requests of 4 KiB over the whole disk; sequential reads of 1 MiB at both ends. The \
                    computed rate is one over the average seek, half a rotation and the command."
                .to_owned(),
        ],
        tables: vec![StudyTable {
            caption: "Two disks:".to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: disks.iter().map(row).collect(),
        }],
        charts: Vec::new(),
    };
    progress("rotating disks", 1.0);
    Ok((claim, section))
}
