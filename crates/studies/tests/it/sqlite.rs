//! `sqlite`: what is claimed beside what is measured, and what must hold whatever the seed, on ext4 and on the bare
//! drive.
use flashwise_report::study::{StudyCell, StudyDocument, StudySection, StudyVerdict};
use flashwise_studies::{Study, StudyOptions};

fn section<'a>(document: &'a StudyDocument, title: &str) -> &'a StudySection {
    document.sections.iter().find(|section| section.title.contains(title)).unwrap()
}

fn value(cell: &StudyCell) -> f64 {
    match cell {
        StudyCell::Measured(measured) => measured.value,
        other => panic!("{other:?} is no mean"),
    }
}

/// Rows of a table by the name in their first cell.
fn rows(section: &StudySection, table: usize) -> Vec<(String, Vec<f64>)> {
    let row = |row: &Vec<StudyCell>| (row[0].words(), row[1..].iter().map(value).collect());
    section.tables[table].rows.iter().map(row).collect()
}

fn row(rows: &[(String, Vec<f64>)], name: &str) -> Vec<f64> {
    rows.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("no row {name} in {rows:?}")).1.clone()
}

/// Hot locations gain the same however many rows a transaction inserts; in a file system short transactions gain.
fn assert_hot_locations(document: &StudyDocument, is_bare: bool) {
    let rows = rows(section(document, "hot locations"), 0);
    assert_eq!(rows.len(), 4);
    for (name, numbers) in &rows {
        let (cold, hot, gain) = (numbers[0], numbers[1], numbers[2]);
        assert!((hot / cold - 1.0 - gain / 100.0).abs() < 0.01, "{name}: {numbers:?}");
        let expected = if is_bare { 40.0..75.0 } else { -20.0..75.0 };
        assert!(expected.contains(&gain), "{name}: {gain}");
    }
    assert!((25.0..75.0).contains(&rows[0].1[2]), "one insert a transaction: {:?}", rows[0]);
}

/// Every commit's log is whole blocks, and on the text's drive whole stripes reach the flash.
fn assert_aligned_log(document: &StudyDocument, is_bare: bool) {
    let section = section(document, "aligned log");
    let (inserts, pages, drives) = (rows(section, 0), rows(section, 1), rows(section, 2));
    assert_eq!((inserts.len(), pages.len(), drives.len()), (4, 4, 7));
    for (name, numbers) in inserts.iter().chain(&pages).chain(&drives[..1]) {
        let (host, flash) = (&numbers[..2], &numbers[2..4]);
        assert!(flash.iter().zip(host).all(|(flash, host)| flash >= host), "{name}: {numbers:?}");
        assert!(flash.iter().all(|&flash| flash >= 64.0), "{name}: less than a stripe: {numbers:?}");
    }
    // One insert dirties a page of 32 KiB, at times more: it and its header are nine blocks. Plain they are in one or
    // in two stripes; aligned in one, with the header in one elsewhere.
    let one = row(&inserts, "1");
    assert!((one[1] / one[0] - 1.0).abs() < 0.02, "{one:?}");
    if is_bare {
        assert!((36.0..42.0).contains(&one[0]), "{one:?}");
        assert!((90.0..106.0).contains(&one[2]) && (108.0..128.0).contains(&one[3]), "{one:?}");
    } else {
        // The file system's journal comes on top while the log grows.
        assert!((36.0..70.0).contains(&one[0]) && one[3] > one[2], "{one:?}");
    }
    // Without padding the flash programs what the host writes, or less where a block is replaced in the buffer.
    let survives = row(&drives, "buffer survives a power cut");
    assert!(survives[2] <= survives[0] * 1.02 && survives[3] <= survives[1] * 1.02, "{survives:?}");
    let worn_in = row(&rows(section, 3), "small and worn in");
    assert!(worn_in[4] > 0.0 && worn_in[5] > 0.0, "nothing was erased: {worn_in:?}");
}

/// A sparse log costs the host more wherever it is, and a drive that does not compress as well.
fn assert_sparse_log(document: &StudyDocument) {
    for (name, numbers) in rows(section(document, "sparse log"), 0) {
        assert!(numbers[1] >= numbers[0], "{name}: {numbers:?}");
        assert!(numbers[4] > -1.0, "{name}: {numbers:?}");
    }
}

/// Pages of 4 KiB that are written together make a checkpoint shorter; the kernel does the most of that by itself.
fn assert_write_back(document: &StudyDocument, is_bare: bool) {
    let least = if is_bare { 2.0 } else { 1.1 };
    let rows = rows(section(document, "Gain from checkpoints"), 0);
    assert_eq!(rows.len(), 24);
    for depths in rows.chunks(6) {
        assert_eq!(depths[0].1[1], 1.0);
        // Longer pages fill the buffer whatever is in progress.
        assert!(!depths[0].0.contains(" 4 KiB") || depths[3].1[1] > least, "{depths:?}");
    }
}

fn assert_all(document: &StudyDocument, is_bare: bool) {
    assert_eq!(document.sections.len(), 5);
    assert_eq!(document.claims.len(), 4);
    assert!(document.claims.iter().all(|claim| !claim.measured.contains("NaN")), "{:#?}", document.claims);
    assert_eq!(document.claims[0].verdict, StudyVerdict::Partly, "{:#?}", document.claims[0]);
    assert_hot_locations(document, is_bare);
    assert_aligned_log(document, is_bare);
    assert_sparse_log(document);
    assert_write_back(document, is_bare);
}

fn study(quick: bool, is_bare: bool) -> StudyDocument {
    let usual = StudyOptions::new(quick, 1).unwrap();
    let options = if is_bare { StudyOptions { host: StudyOptions::machine("none").unwrap(), ..usual } } else { usual };
    Study::find("sqlite").unwrap().run(&options, &|_, _| {}).unwrap()
}

#[test]
fn a_fitted_sqlite_gains_where_the_drive_has_something_to_give() {
    assert_all(&study(true, false), false);
}

#[test]
#[ignore = "long: make test-full"]
fn on_the_bare_drive_techniques_bring_what_the_kernel_brings_elsewhere() {
    assert_all(&study(true, true), true);
}

#[test]
#[ignore = "long: make test-full"]
fn at_the_texts_scale_it_is_the_same() {
    assert_all(&study(false, false), false);
    assert_all(&study(false, true), true);
}
