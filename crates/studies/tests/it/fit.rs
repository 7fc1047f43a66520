//! `fit`, the quick form: what a user may expect holds however few combinations there was time for.
use flashwise_report::study::{StudyCell, StudyVerdict};
use flashwise_studies::{Study, StudyOptions};

#[test]
fn a_recommendation_is_never_behind_the_defaults_or_the_checklist() {
    let options = StudyOptions::new(true, 1).unwrap();
    let document = Study::find("fit").unwrap().run(&options, &|_, _| {}).unwrap();
    let verdicts: Vec<_> = document.claims[..2].iter().map(|claim| claim.verdict).collect();
    assert_eq!(verdicts, [StudyVerdict::Reproduced; 2], "{:#?}", document.claims);
    let over_default = &document.sections[0].tables[1];
    assert_eq!(over_default.columns, ["drive", "commits", "mixed"]);
    for cell in &over_default.rows[0][1..] {
        let StudyCell::Measured(ratio) = cell else { panic!("{cell:?} is no ratio") };
        assert!(ratio.low > 1.3, "a log halves what a commit costs: {ratio:?}");
    }
    let changes = document.sections[1].tables[0].rows[0][1].words();
    assert!(changes.contains("journal_mode"), "{changes}");
}
