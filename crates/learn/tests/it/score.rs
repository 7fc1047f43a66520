//! The learner compared with the truth of random drives, which it does not see.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use flashwise_block::Silent;
use flashwise_learn::score::{Score, score};
use flashwise_learn::{LearnOptions, learn};
use flashwise_profile::Verdict;
use flashwise_ssd::SimulatedSsd;
use flashwise_truth::random::random_device;
use flashwise_truth::truth;

fn scored(seed: u64) -> Score {
    let config = random_device(seed).unwrap();
    let mut drive = SimulatedSsd::new(config.clone(), 1).unwrap();
    let profile = learn(&mut drive, &LearnOptions::complete("a random drive"), &mut Silent).unwrap();
    score(&profile, &truth(&config).unwrap().parameters)
}

/// The drives' scores, in the order of their seeds; as many at a time as there are processors.
fn scores(seeds: &[u64]) -> Vec<(u64, Score)> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((seed, scored(seed)));
        }
        done
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let mut all: Vec<(u64, Score)> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        running.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    all.sort_by_key(|(seed, _)| *seed);
    all
}

/// Prints how each figure fares: of how many drives it is defined, right, told as certain or absent, and then right.
fn print_by_figure(scores: &[(u64, Score)]) {
    let mut rows: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    for figure in scores.iter().flat_map(|(_, score)| &score.figures) {
        let settled = figure.verdict != Verdict::Inconclusive;
        let counts = [true, figure.correct, settled, settled && figure.correct];
        let row = rows.entry(figure.figure).or_default();
        std::iter::zip(row, counts).for_each(|(sum, count)| *sum += usize::from(count));
    }
    println!("{:<32} {:>7} {:>7} {:>7} {:>7}", "figure", "drives", "right", "settled", "right");
    for (figure, [drives, right, settled, settled_right]) in rows {
        println!("{figure:<32} {drives:>7} {right:>7} {settled:>7} {settled_right:>7}");
    }
}

/// Holds the sum over some drives against what the learner reached when this was written, with some room.
fn assert_learns(scores: &[(u64, Score)]) {
    let sum = |of: fn(&Score) -> usize| scores.iter().map(|(_, score)| of(score)).sum::<usize>() as f64;
    let wrong: Vec<String> = scores
        .iter()
        .flat_map(|(seed, score)| score.figures.iter().map(move |figure| (seed, figure)))
        .filter(|(_, figure)| !figure.correct)
        .map(|(seed, f)| format!("drive {seed}, {}: {:?} {:?} instead of {:?}", f.figure, f.verdict, f.value, f.truth))
        .collect();
    let correct = sum(|score| score.correct) / sum(|score| score.scored);
    let right = sum(|score| score.settled_correct) / sum(|score| score.settled);
    println!("{correct:.4} of all figures are right, {right:.4} of those told as certain or absent");
    assert!(correct >= 0.9 && right >= 0.92, "{correct} of all figures, {right} of those settled: {wrong:#?}");
    let false_features = sum(|score| score.false_features);
    assert!(false_features <= 0.01 * sum(|score| score.scored), "{false_features} features: {wrong:#?}");
}

/// Drives that take little time: a page map and 1 GiB, media written in place, an SLC cache, logical pages of 16 KiB.
#[test]
fn most_figures_of_random_drives_are_learned_blind() {
    assert_learns(&scores(&[1, 6, 27, 34]));
}

/// Seeds as a user names them: `200` for so many from 1 on, `1-28,31-34` for just these.
fn seeds(text: &str) -> Vec<u64> {
    let number = |text: &str| text.trim().parse::<u64>().unwrap();
    if let Ok(many) = text.parse::<u64>() {
        return (1..=many).collect();
    }
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        number(first)..=number(last)
    };
    text.split(',').flat_map(range).collect()
}

#[test]
fn drives_are_named_by_their_number_or_by_ranges_of_seeds() {
    assert_eq!(seeds("3"), [1, 2, 3]);
    assert_eq!(seeds("1-2,7,9-10"), [1, 2, 7, 9, 10]);
}

/// `FLASHWISE_DRIVES=200` for so many, `FLASHWISE_DRIVES=1-28,31-34` for these.
#[test]
#[ignore = "some minutes"]
fn most_figures_of_many_random_drives_are_learned_blind() {
    let scores = scores(&seeds(&std::env::var("FLASHWISE_DRIVES").unwrap_or_else(|_| "40".to_owned())));
    print_by_figure(&scores);
    assert_learns(&scores);
}
