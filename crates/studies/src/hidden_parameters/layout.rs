//! The four drives of Kakaraparthy et al.: lengths and places.

use flashwise_profile::{
    Figure, HotLocation, Parameters, PublishedDrive, PublishedHotLocation, Verdict, published_drives,
};
use flashwise_report::study::{StudyCell, StudyClaim, StudySection, StudyTable};

use super::learned::{LearnedDrive, LearnedDrives, cells, verdict};
use crate::StudyError;

/// Keys of the columns, with their names.
const FIGURES: [(&str, &str); 5] = [
    ("write_unit_bytes", "write unit"),
    ("stripe_bytes", "stripe"),
    ("chunk_bytes", "chunk"),
    ("hot_location", "hot locations"),
    ("page_bytes", "page"),
];

/// The paper's names of the drives: Samsung, Optane, Toshiba, Micron.
const TAGS: [&str; 4] = ["SSD-S", "SSD-O", "SSD-T", "SSD-M"];

fn size(bytes: u64) -> String {
    format!("{} KiB", bytes >> 10)
}

fn claimed(drive: &PublishedDrive) -> [String; 5] {
    let PublishedHotLocation { period_bytes, offset_bytes } = drive.hot_location;
    let offset = if offset_bytes == 0 { String::new() } else { format!(" + {}", size(offset_bytes)) };
    let or_dash = |bytes: Option<u64>| bytes.map_or("–".to_owned(), size);
    [
        size(drive.write_unit_bytes),
        or_dash(drive.stripe_bytes),
        size(drive.chunk_bytes),
        format!("{}·i{offset}", size(period_bytes)),
        or_dash(drive.page_bytes),
    ]
}

/// Which figures are those of the paper and certain; "–" is an absent one.
fn agrees(drive: &PublishedDrive, learned: &Parameters) -> [bool; 5] {
    let PublishedHotLocation { period_bytes, offset_bytes } = drive.hot_location;
    let or_absent = |figure: Figure<u64>, published: Option<u64>| match published {
        Some(bytes) => figure.known() == Some(bytes),
        None => figure.verdict == Verdict::Absent,
    };
    [
        or_absent(learned.write_unit_bytes, Some(drive.write_unit_bytes)),
        or_absent(learned.stripe_bytes, drive.stripe_bytes),
        or_absent(learned.chunk_bytes, Some(drive.chunk_bytes)),
        learned.hot_location.known() == Some(HotLocation { period_bytes, offset_bytes }),
        or_absent(learned.page_bytes, drive.page_bytes),
    ]
}

/// Why the structure of a drive leads to its row.
fn because(drive: &PublishedDrive) -> &'static str {
    match (drive.stripe_bytes, drive.page_bytes) {
        (None, _) => {
            "It is written in place: a granule is a write unit, and the way data was written leaves no trace, so \
             there is no stripe."
        }
        (_, None) => {
            "A die programs two planes of 16 KiB at once, pieces of 64 KiB go round-robin to the channels, and a read \
             that starts in the middle of a piece is transferred by two channels."
        }
        _ => {
            "All channels program 64 KiB together, so adjacent 4 KiB pages are on different channels, and every page \
             is an equally good start."
        }
    }
}

/// One claim a drive.
pub(super) fn claims(drives: &LearnedDrives) -> Result<Vec<StudyClaim>, StudyError> {
    published_drives().iter().map(|published| Ok(claim(published, drives.of(published.preset)?))).collect()
}

fn claim(published: &PublishedDrive, drive: &LearnedDrive) -> StudyClaim {
    let of_seed = |learned: &Parameters| agrees(published, learned).iter().filter(|&&agrees| agrees).count();
    let (agreeing, all) = (drive.parameters().map(of_seed).sum::<usize>(), FIGURES.len() * drive.seeds());
    let row: Vec<String> =
        FIGURES.iter().zip(claimed(published)).map(|((_, title), value)| format!("{title} {value}")).collect();
    StudyClaim {
        claim: format!("{}: {}.", drive.name(), row.join(", ")),
        measured: format!("{agreeing} of {all} figures are certain and equal ({} seeds).", drive.seeds()),
        verdict: verdict(agreeing, all),
        because: because(published).to_owned(),
    }
}

/// The table.
pub(super) fn section(drives: &LearnedDrives) -> Result<StudySection, StudyError> {
    let mut rows = Vec::new();
    for (published, tag) in published_drives().iter().zip(TAGS) {
        let drive = drives.of(published.preset)?;
        let mut row = vec![StudyCell::text(tag)];
        row.extend(claimed(published).map(StudyCell::text));
        rows.push(row);
        let mut row = vec![StudyCell::text("learned")];
        row.extend(cells(drive.first()?, &FIGURES.map(|(key, _)| key)));
        rows.push(row);
    }
    let columns = std::iter::once("").chain(FIGURES.map(|(_, title)| title)).map(str::to_owned).collect();
    let caption = "Kakaraparthy et al., PVLDB 13(4), 2019 (Samsung, Optane, Toshiba, Micron), and learned:".to_owned();
    Ok(StudySection {
        title: "Four drives: layout".to_owned(),
        text: vec![
            "Learned in 256 MiB of each drive, only from requests and their latencies. ± is the interval of 200 \
             resampled profiles; \"–\" is \"not determinable\" in the paper and \"absent\" (conclusive) if learned; \
             \"≈\" marks a best guess."
                .to_owned(),
        ],
        tables: vec![StudyTable { caption, columns, rows }],
        charts: Vec::new(),
    })
}
