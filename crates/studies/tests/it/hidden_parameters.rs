//! `hidden-parameters`, the quick form: what is learned blind is what was published, within what the study states.
use flashwise_profile::{PublishedConcurrency, Verdict, published_asymmetries, published_drives};
use flashwise_report::study::{LearnedCell, StudyCell, StudyDocument, StudyTable, StudyVerdict};
use flashwise_studies::{Study, StudyOptions};

fn learned(cell: &StudyCell) -> &LearnedCell {
    match cell {
        StudyCell::Learned(learned) => learned,
        other => panic!("{other:?} is no learned figure"),
    }
}

fn text(cell: &StudyCell) -> &str {
    match cell {
        StudyCell::Text(text) => text,
        other => panic!("{other:?} is no claimed figure"),
    }
}

/// Pairs of claimed and learned rows, without their names.
fn pairs(table: &StudyTable) -> Vec<(&[StudyCell], &[StudyCell])> {
    table.rows.chunks(2).map(|pair| (&pair[0][1..], &pair[1][1..])).collect()
}

fn assert_lengths_and_places(table: &StudyTable) {
    let pairs = pairs(table);
    assert_eq!(pairs.len(), published_drives().len());
    for (claimed, found) in pairs {
        for (claimed, found) in claimed.iter().zip(found).map(|(claimed, found)| (text(claimed), learned(found))) {
            let verdict = if claimed == "–" { Verdict::Absent } else { Verdict::Certain };
            assert_eq!(found.verdict, verdict, "{claimed} against {found:?}");
            assert_eq!(found.words.trim_end_matches(" ± 0"), claimed);
        }
    }
}

fn assert_speeds(table: &StudyTable, is_8k: bool) {
    let pairs = pairs(table);
    assert_eq!(pairs.len(), published_asymmetries().len());
    for (drive, (claimed, found)) in published_asymmetries().iter().zip(pairs) {
        let published = if is_8k { drive.at_8k } else { drive.at_4k };
        let value = |n: usize| learned(&found[n]).value.unwrap();
        assert_eq!(text(&claimed[0]), format!("{:.1}", published.asymmetry));
        assert!((value(0) - published.asymmetry).abs() <= 0.1 * published.asymmetry, "{}: α {}", drive.name, value(0));
        for (k, n) in [(published.reads, 1), (published.writes, 2)] {
            match k {
                PublishedConcurrency::About(k) => {
                    let off = (value(n) - k as f64).abs();
                    assert!(off <= 1.0 || off <= 0.15 * k as f64, "{}: {} for {k}", drive.name, value(n));
                }
                PublishedConcurrency::MoreThan(bound) => {
                    assert!(value(n) > bound as f64, "{}: {}", drive.name, value(n))
                }
            }
        }
        for cell in found.iter().map(learned) {
            let (low, high) = (cell.low.unwrap(), cell.high.unwrap());
            assert!(low <= cell.value.unwrap() && cell.value.unwrap() <= high, "{}: {cell:?}", drive.name);
        }
    }
}

fn quick(seed: u64) -> StudyDocument {
    let study = Study::find("hidden-parameters").unwrap();
    study.run(&StudyOptions::new(true, seed).unwrap(), &|_, _| {}).unwrap()
}

#[test]
fn nine_drives_are_learned_as_they_were_published_within_the_stated_tolerance() {
    let document = quick(1);
    assert_lengths_and_places(&document.sections[0].tables[0]);
    assert_speeds(&document.sections[1].tables[0], false);
    assert_speeds(&document.sections[1].tables[1], true);
    let verdicts: Vec<StudyVerdict> = document.claims.iter().map(|claim| claim.verdict).collect();
    assert_eq!(verdicts, [StudyVerdict::Reproduced; 9]);
}
