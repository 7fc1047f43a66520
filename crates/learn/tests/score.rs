//! The learner held against the truth of random drives, which it does not see.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should panic where it fails")]

use flashwise_block::Silent;
use flashwise_learn::score::{Score, score};
use flashwise_learn::{LearnOptions, learn};
use flashwise_ssd::SimulatedSsd;
use flashwise_ssd::random::random_device;
use flashwise_ssd::truth::truth;

fn scored(seed: u64) -> Score {
    let config = random_device(seed).unwrap();
    let mut drive = SimulatedSsd::new(config.clone(), 1).unwrap();
    let profile = learn(&mut drive, &LearnOptions::complete("a random drive"), &mut Silent).unwrap();
    score(&profile, &truth(&config).unwrap().parameters)
}

/// Holds the sum over some drives against what the learner reached when this was written, with some room.
fn assert_learns(seeds: impl IntoIterator<Item = u64>) {
    let scores: Vec<(u64, Score)> = seeds.into_iter().map(|seed| (seed, scored(seed))).collect();
    let sum = |of: fn(&Score) -> usize| scores.iter().map(|(_, score)| of(score)).sum::<usize>() as f64;
    let wrong: Vec<String> = scores
        .iter()
        .flat_map(|(seed, score)| score.figures.iter().map(move |figure| (seed, figure)))
        .filter(|(_, figure)| !figure.correct)
        .map(|(seed, f)| format!("drive {seed}, {}: {:?} {:?} instead of {:?}", f.figure, f.verdict, f.value, f.truth))
        .collect();
    let correct = sum(|score| score.correct) / sum(|score| score.scored);
    let right = sum(|score| score.settled_correct) / sum(|score| score.settled);
    assert!(correct >= 0.9 && right >= 0.92, "{correct} of all figures, {right} of those settled: {wrong:#?}");
    let false_features = sum(|score| score.false_features);
    assert!(false_features <= 0.01 * sum(|score| score.scored), "{false_features} features: {wrong:#?}");
}

#[test]
fn most_figures_of_random_drives_are_learned_blind() {
    assert_learns([1, 2, 3, 6]);
}

#[test]
#[ignore = "some minutes"]
fn most_figures_of_many_random_drives_are_learned_blind() {
    assert_learns(1..=40);
}
