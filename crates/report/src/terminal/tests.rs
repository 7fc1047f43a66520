//! What a terminal shows, word for word.

use super::*;
use crate::sample;
use crate::sample_simulation::simulation;

fn plain(width: u16) -> Style {
    Style { color: false, width }
}

#[test]
fn a_drive_with_something_to_gain_is_told_at_80_columns() {
    insta::assert_snapshot!(render_comparison(&sample::samsung(), plain(80)));
}

#[test]
fn a_drive_with_nothing_to_gain_is_told_so() {
    insta::assert_snapshot!(render_comparison(&sample::optane(), plain(80)));
}

#[test]
fn a_profile_is_a_table() {
    insta::assert_snapshot!(render_profile(&sample::samsung().profile, Style::default()));
}

#[test]
fn findings_are_a_list() {
    insta::assert_snapshot!(render_findings(&sample::samsung().findings, &sample::samsung().profile, Style::default()));
}

#[test]
fn a_simulation_is_told_with_its_flows_and_its_write_amplification() {
    insta::assert_snapshot!(render_simulation(&simulation(), plain(80)));
}

#[test]
fn nothing_is_wider_than_the_terminal_and_no_line_ends_in_a_space() {
    for width in [60, 72, 80, 100, 200] {
        for line in render_simulation(&simulation(), plain(width)).lines() {
            assert!(line.chars().count() <= usize::from(width), "{width} columns: {line}");
        }
        for comparison in [sample::samsung(), sample::optane()] {
            for line in render_comparison(&comparison, plain(width)).lines() {
                assert!(line.chars().count() <= usize::from(width), "{width} columns: {line}");
                assert_eq!(line, line.trim_end());
            }
        }
    }
}

#[test]
fn colours_come_only_when_asked_for_and_change_no_word() {
    let colored = render_comparison(&sample::samsung(), Style { color: true, width: 80 });
    let without = render_comparison(&sample::samsung(), plain(80));
    assert!(!without.contains('\u{1b}') && colored.contains('\u{1b}'));
    let mut stripped = String::new();
    for (i, part) in colored.split('\u{1b}').enumerate() {
        stripped += if i == 0 { part } else { part.split_once('m').unwrap().1 };
    }
    let trimmed: Vec<_> = stripped.lines().map(str::trim_end).collect();
    assert_eq!(trimmed, without.lines().collect::<Vec<_>>());
}

#[test]
fn a_rule_that_only_the_run_after_breaks_is_shown_with_its_example() {
    let mut c = sample::samsung();
    std::mem::swap(&mut c.findings, &mut c.findings_after);
    let text = render_comparison(&c, plain(80));
    assert!(text.contains("before   0 of 48,221 (0 %)\n   after    48,221 of 48,221 (100 %)\n   such as  read 64 KiB"));
}
