//! Bursts that end: gp2's credits, and the spare blocks of a drive behind i4i.

use flashwise_block::{BlockDevice, ByteSize, Request};
use flashwise_report::study::{StudyCell, StudyClaim, StudySection, StudyTable};
use flashwise_volume::{SimulatedVolume, Volume};

use crate::verdict::verdict;
use crate::{Progress, StudyError, StudyOptions};

/// A volume's burst.
struct Burst {
    before_per_s: f64,
    lasts_s: f64,
    after_per_s: f64,
}

/// Keeps requests in flight until the rate is half of what it was at first, and for a tenth of that time beyond.
fn spend(volume: &mut SimulatedVolume, depth: usize, request: &dyn Fn(u64) -> Request) -> Result<Burst, StudyError> {
    const WINDOW: u64 = 2_000;
    let (mut submitted, mut done) = (0, 0_u64);
    let mut times = vec![volume.now()];
    let mut ended: Option<usize> = None;
    loop {
        while volume.outstanding() < depth {
            volume.submit(request(submitted))?;
            submitted += 1;
        }
        volume.wait()?;
        done += 1;
        if done.is_multiple_of(WINDOW) {
            times.push(volume.now());
            let takes = |window: usize| times[window].since(times[window - 1]).as_secs_f64();
            let last = times.len() - 1;
            if ended.is_none() && last > 3 && takes(last) > 1.5 * takes(2) {
                ended = Some(last - 1);
            }
            if let Some(ended) = ended
                && last > ended + 3 + ended / 20
            {
                let rate = |from: usize, to: usize| {
                    (to - from) as f64 * WINDOW as f64 / times[to].since(times[from]).as_secs_f64()
                };
                let lasts_s = times[ended].as_secs_f64();
                return Ok(Burst { before_per_s: rate(1, ended), lasts_s, after_per_s: rate(ended + 2, last) });
            }
        }
    }
}

/// gp2's credits, and i4i.
pub(super) fn measure(
    options: &StudyOptions,
    progress: Progress<'_>,
) -> Result<([StudyClaim; 2], StudySection), StudyError> {
    progress("bursts", 0.0);
    // Requests of 1 MiB take four credits each.
    let mut gp2 = Volume::preset("gp2")?;
    gp2.config.limits.truncate(1);
    let expected_s = 5_400_000.0 / (3_000.0 - 300.0);
    let large = |i: u64| Request::read(ByteSize::mib(i * 389 % (100 << 10)), ByteSize::mib(1));
    let credits = spend(&mut SimulatedVolume::new(gp2, options.seed)?, 32, &large)?;
    progress("bursts", 0.5);
    // A hundredth of the spare blocks: the times are a hundredth, too.
    let mut i4i = Volume::preset("i4i")?;
    for limit in i4i.config.limits.iter_mut().filter(|limit| limit.peak_per_s.is_some()) {
        limit.size /= 100;
    }
    let page = |i: u64| Request::write(ByteSize::kib(4 * (i * 7_919 % (1 << 28))), ByteSize::kib(4));
    let spare = spend(&mut SimulatedVolume::new(i4i, options.seed)?, 64, &page)?;
    let mb_per_s = |per_s: f64| per_s * 4096.0 / 1e6;
    let (first, then) = (mb_per_s(spare.before_per_s), mb_per_s(spare.after_per_s));
    let lasts_s = 100.0 * spare.lasts_s;
    let near = |here: f64, there: f64, within: f64| (here / there - 1.0).abs() < within;
    let (before, after) = (4.0 * credits.before_per_s, 4.0 * credits.after_per_s);
    let claims = [
        StudyClaim {
            claim: "gp2 of 100 GiB: 3,000 IOPS for 5.4 million ÷ (3,000 − 300) = 2,000 s, then 300.".to_owned(),
            measured: format!("{before:.0} IOPS for {:.0} s, then {after:.0}.", credits.lasts_s),
            verdict: verdict(
                near(before, 3_000.0, 0.01) && near(credits.lasts_s, expected_s, 0.01) && near(after, 300.0, 0.01),
                near(credits.lasts_s, expected_s, 0.1),
            ),
            because: "The bucket is refilled at the base rate while it is spent at 3,000 a second.".to_owned(),
        },
        StudyClaim {
            claim: "AWS i4i.4xlarge, random writes: 858 MB/s flat for 0.20 drive writes (about 880 s), a dip to 251, then \
                    426 MB/s."
                .to_owned(),
            measured: format!("{first:.0} MB/s for {lasts_s:.0} s (scaled from a hundredth), then {then:.0}, no dip."),
            verdict: verdict(false, near(first, 858.3, 0.02) && near(then, 426.0, 0.02) && near(lasts_s, 880.0, 0.05)),
            because: "The preset has the two rates and the amount as a bucket, so they come out. The dip is a drive's that \
                      must make free blocks after it has none left; a bucket has none, and it would be refilled in idle \
                      time, which a drive's spare blocks are only by trims and garbage collection."
                .to_owned(),
        },
    ];
    let row = |name: &str, first: String, lasts: f64, then: String| {
        [name.to_owned(), first, format!("{lasts:.0} s"), then].map(StudyCell::text).to_vec()
    };
    let section = StudySection {
        title: "Bursts".to_owned(),
        text: vec![
            "Requests are kept in flight until the rate drops. Whoever measures less than that sees the first \
                    rate only."
                .to_owned(),
        ],
        tables: vec![StudyTable {
            caption: "Rates before and after:".to_owned(),
            columns: ["volume", "at first", "lasts", "then"].map(str::to_owned).to_vec(),
            rows: vec![
                row("gp2, 100 GiB", format!("{before:.0} IOPS"), credits.lasts_s, format!("{after:.0} IOPS")),
                row("i4i.4xlarge, random writes", format!("{first:.0} MB/s"), lasts_s, format!("{then:.0} MB/s")),
            ],
        }],
        charts: Vec::new(),
    };
    progress("bursts", 1.0);
    Ok((claims, section))
}
