//! What the texts claim, beside what is measured.

use flashwise_report::study::{Measured, StudyClaim};

use super::model::{GREEDY, NODAP, OFFLINE, ONLINE, TWO_R};
use super::prediction::{SIGMAS, SWAPPED, TRAFFIC};
use super::published::SKEWS;
use super::two_regions::{self, SETTLED};
use super::{blocks, fill, guarantee, prediction, skew};
use crate::verdict::verdict;

/// A published value is met by one that is so far away at most, per cent: blocks here have fewer slots than SSD-iq's.
const NEAR_PERCENT: f64 = 5.0;
/// Rewrites a write that count as negligible.
const NEGLIGIBLE: f64 = 0.1;

pub(super) fn claims(
    skew: &skew::Measurement,
    two_regions: &two_regions::Measurement,
    fill: &fill::Measurement,
    prediction: &prediction::Measurement,
    blocks: &blocks::Measurement,
    guarantee: &guarantee::Measurement,
) -> Vec<StudyClaim> {
    vec![
        offline(skew, blocks),
        bound_of_greedy(guarantee),
        better_predictions(prediction),
        online_guarantee(guarantee),
        nodap(skew),
        skewed(skew),
        against_fill(fill),
        two_r(two_regions, skew),
    ]
}

fn list(values: impl Iterator<Item = String>) -> String {
    values.collect::<Vec<_>>().join(", ")
}

/// How far a value is from a published one, per cent.
fn off(measured: Measured, published: f64) -> f64 {
    100.0 * (measured.value / published - 1.0)
}

fn offline(skew: &skew::Measurement, blocks: &blocks::Measurement) -> StudyClaim {
    let rewrites = |point: &skew::Point| point.measured[OFFLINE].high - 1.0;
    let most = skew.points.iter().map(rewrites).fold(0.0, f64::max);
    let falls = blocks.points.windows(2).all(|pair| (0..2).all(|n| pair[1].rewrites[n].high < pair[0].rewrites[n].low));
    let (first, last) = (&blocks.points[0], &blocks.points[blocks.points.len() - 1]);
    let words = |n: usize| format!("{} → {}", first.rewrites[n].words(), last.rewrites[n].words());
    StudyClaim {
        claim: "Offline, a near-optimal algorithm: its rewrites are negligible in comparison with the writes \
                (abstract)."
            .to_owned(),
        measured: format!(
            "Rewrites per write, by skew: {}. From {} to {} blocks: uniform {}, 90/10 {}.",
            list(skew.points.iter().map(|p| format!("{} {:.3}", p.published.name, p.measured[OFFLINE].value - 1.0))),
            first.blocks,
            last.blocks,
            words(0),
            words(1)
        ),
        verdict: verdict(most < NEGLIGIBLE && falls, most < NEGLIGIBLE || falls),
        because: "With known deaths a page is moved only if it outlives the range of the finest groups, which grows \
                  with the square of the number of spare blocks. The algorithm is our own: it may differ from the \
                  paper's and is not optimal; the online algorithm with true predictions, which moves nothing before \
                  space is needed, has fewer rewrites under skew."
            .to_owned(),
    }
}

fn bound_of_greedy(m: &guarantee::Measurement) -> StudyClaim {
    let greedy = || m.points.iter().filter(|point| point.is_greedy());
    let share = |point: &guarantee::Point| 100.0 * point.rewrites as f64 / point.bound as f64;
    let least = greedy().map(share).fold(f64::INFINITY, f64::min);
    let most = greedy().map(share).fold(0.0, f64::max);
    StudyClaim {
        claim: "Online without knowledge, no deterministic algorithm has a better worst case than greedy (abstract)."
            .to_owned(),
        measured: format!(
            "Against an adversary that writes a page of the fullest block, greedy reaches this share of its bound: {}.",
            list(greedy().map(|point| format!("{:.1} % at fill {}", share(point), point.fill)))
        ),
        verdict: verdict(false, most <= 100.0 && least > 50.0),
        because: "The documentation of the library proves that greedy cannot exceed its bound; the adversary shows \
                  how close greedy can be driven to it. That no other deterministic algorithm is better is neither \
                  proved nor tested here."
            .to_owned(),
    }
}

fn better_predictions(m: &prediction::Measurement) -> StudyClaim {
    let grows = |values: &[[Measured; 3]], n: usize| values.windows(2).all(|pair| pair[1][n].high >= pair[0][n].low);
    let workloads = 0..TRAFFIC.len();
    let monotone =
        workloads.clone().filter(|&n| grows(&m.by_sigma, n) && grows(&m.by_share, n)).count() == TRAFFIC.len();
    let ends = workloads.clone().all(|n| m.by_sigma[0][n].high < m.by_sigma[SIGMAS.len() - 1][n].low);
    let last = |n: usize| {
        format!(
            "{} {:.2} → {:.2} (σ = {}), → {:.2} (all shuffled), greedy {:.2}",
            TRAFFIC[n].0,
            m.by_sigma[0][n].value,
            m.by_sigma[SIGMAS.len() - 1][n].value,
            SIGMAS[SIGMAS.len() - 1],
            m.by_share[SWAPPED.len() - 1][n].value,
            m.greedy[n].value
        )
    };
    StudyClaim {
        claim:
            "Online with predictions of the next write, the algorithm gets better as their error shrinks (abstract)."
                .to_owned(),
        measured: format!("From true predictions to bad ones: {}.", list(workloads.map(last))),
        verdict: verdict(monotone && ends, ends),
        because: "Well-predicted pages share blocks with pages that die at the same time. With uniform writes, wrong \
                  predictions cost slightly more than none, because open blocks take part of the spare space; with \
                  95/5 they cost less, probably because a page that outlives its prediction is each time assumed to \
                  live longer."
            .to_owned(),
    }
}

fn online_guarantee(m: &guarantee::Measurement) -> StudyClaim {
    let online = || m.points.iter().filter(|point| !point.is_greedy());
    let share = |point: &guarantee::Point| 100.0 * point.rewrites as f64 / point.bound as f64;
    let most = online().map(share).fold(0.0, f64::max);
    StudyClaim {
        claim: "With predictions it is never worse than greedy's guarantee (abstract).".to_owned(),
        measured: format!(
            "In {} runs against an adversary with false predictions, at most {most:.1} % of greedy's guarantee and \
             one block.",
            online().count()
        ),
        verdict: verdict(most <= 100.0, false),
        because: "The algorithm's rule ensures this: without the budget, the same runs exceed the guarantee. The \
                  guarantee is greedy's worst case; it is neither claimed nor true that wrong predictions never cost \
                  more than greedy does on the same writes."
            .to_owned(),
    }
}

fn nodap(m: &skew::Measurement) -> StudyClaim {
    let nearer = |point: &&skew::Point| point.measured[OFFLINE].high < point.measured[NODAP].low;
    let count = m.points.iter().filter(nearer).count();
    StudyClaim {
        claim: "NoDaP is a reference with all deaths known; Lange et al.'s offline algorithm comes closer to 1 \
                (DOGI's authors)."
            .to_owned(),
        measured: format!(
            "NoDaP and offline: {}.",
            list(m.points.iter().map(|point| {
                let [nodap, offline] = [NODAP, OFFLINE].map(|n| point.measured[n].value);
                format!("{} {nodap:.2} and {offline:.2}", point.published.name)
            }))
        ),
        verdict: verdict(count == m.points.len(), count > 0),
        because: "NoDaP groups pages by their remaining life: a block that fills slowly holds pages that die at \
                  different times. Groups by time of death avoid this."
            .to_owned(),
    }
}

fn skewed(m: &skew::Measurement) -> StudyClaim {
    let worse = m.points.windows(2).all(|pair| pair[1].measured[GREEDY].low > pair[0].measured[GREEDY].high);
    let furthest =
        m.points.iter().map(|p| off(p.measured[GREEDY], p.published.greedy)).max_by(|a, b| a.abs().total_cmp(&b.abs()));
    let furthest = furthest.unwrap_or(0.0);
    let online = m.points.iter().map(|point| point.measured[ONLINE].value).fold(0.0, f64::max);
    StudyClaim {
        claim: "Greedy gets worse with skew: 4.17, 4.30, 4.52, 5.11, 5.90 from uniform writes to 95/5 (SSD-iq)."
            .to_owned(),
        measured: format!(
            "{}; at most {furthest:+.1} % off.",
            list(m.points.iter().map(|point| point.measured[GREEDY].words()))
        ),
        verdict: verdict(worse && furthest.abs() <= NEAR_PERCENT, worse),
        because: format!(
            "Hot and cold pages share blocks, and the cold ones are moved again and again. Skew itself is not harder: \
             with true predictions nothing exceeds {online:.2}."
        ),
    }
}

fn against_fill(m: &fill::Measurement) -> StudyClaim {
    let offs = || m.points.iter().map(|point| off(point.measured[GREEDY], point.published));
    let furthest = offs().max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(0.0);
    let near = offs().filter(|off| off.abs() <= NEAR_PERCENT).count();
    StudyClaim {
        claim: "Greedy against fill, uniform writes: 1.25 at 0.5, 1.48, 1.87, 2.20, 2.69, 3.51, 5.17 at 0.9 (SSD-iq)."
            .to_owned(),
        measured: format!(
            "{}; at most {furthest:+.1} % off.",
            list(m.points.iter().map(|point| point.measured[GREEDY].words()))
        ),
        verdict: verdict(near == m.points.len(), near > 0),
        because: "Blocks are smaller than SSD-iq's and cost greedy slightly less, as theory predicts for both."
            .to_owned(),
    }
}

fn two_r(m: &two_regions::Measurement, skew: &skew::Measurement) -> StudyClaim {
    let is_near = |n: usize, window: usize| off(m.points[n][window], SKEWS[n].two_r_fifo).abs() <= NEAR_PERCENT;
    let near = (0..SKEWS.len()).filter(|&n| is_near(n, SETTLED)).count();
    let words = |window: usize| list(m.points.iter().map(|point| point[window].words()));
    StudyClaim {
        claim: "2R, in its FIFO form: 4.19, 4.18, 4.12, 2.51, 2.06 (SSD-iq).".to_owned(),
        measured: format!(
            "{} after 24 overwrites of a drive, {} after 6; {} of {} steady values within {NEAR_PERCENT} %. In its \
             greedy form {}.",
            words(SETTLED),
            words(1),
            near,
            SKEWS.len(),
            list(skew.points.iter().map(|point| point.measured[TWO_R].words()))
        ),
        verdict: verdict(near == SKEWS.len(), near > 0),
        because: "With strong skew the value depends on the time of measurement: cold pages that the fill left among \
                  hot ones take dozens of overwrites to be separated. The greedy form chooses the emptiest block of \
                  either region, so both are collected when equally empty, whatever their pages' lives; the FIFO form \
                  leaves old and nearly full blocks alone."
            .to_owned(),
    }
}
