//! The requests of the window by time and by address, in so many fields that a page can show them.
//!
//! A field holds the number of its requests and the costliest rule that one of them breaks. Rows are addresses as the
//! simulation lays them out ([`crate::play`]): one file above the other, and of a device only what was touched.

use std::collections::BTreeMap;

use crate::Rule;
use crate::cost::Broken;
use crate::finding::{Band, Mark, Picture};
use crate::play::{AREA, Map, Step};
use crate::request::{Key, ObservedRequest};

/// Fields of the picture: 96 · 48 = 4,608 marks at most, which a page shows without being slow, and each of which is
/// large enough to be seen.
const COLUMNS: u16 = 96;
const ROWS: u16 = 48;

/// Draws; `by_cost` has the costliest rule first.
pub(crate) fn draw(window: &[ObservedRequest], broken: &[Broken<'_>], by_cost: &[Rule], files: &[String]) -> Picture {
    let steps: Vec<Step> = window.iter().map(Step::of).collect();
    let map = Map::of(&steps);
    let areas = map.bytes() / AREA;
    if areas == 0 {
        return Picture::default();
    }
    let (first, last) = times(window);
    let mut fields: BTreeMap<(u16, u16), (u32, Option<usize>)> = BTreeMap::new();
    for (index, (seen, step)) in window.iter().zip(&steps).enumerate() {
        if step.is_flush() {
            continue;
        }
        let x = match last > first {
            true => column(seen.record.at.0.saturating_sub(first), last - first),
            false => column(index as u64, window.len().saturating_sub(1) as u64),
        };
        let y = scaled(map.place(step, step.offset) / 512, map.bytes() / 512, ROWS);
        let rank = broken.iter().filter(|of| of.requests[index]);
        let rank = rank.filter_map(|of| by_cost.iter().position(|&rule| rule == of.rule)).min();
        let field = fields.entry((x, y)).or_default();
        field.0 = field.0.saturating_add(1);
        field.1 = [field.1, rank].into_iter().flatten().min();
    }
    let mark = |((x, y), (requests, rank)): ((u16, u16), (u32, Option<usize>))| Mark {
        x,
        y,
        rule: rank.and_then(|rank| by_cost.get(rank).copied()),
        requests,
    };
    Picture {
        columns: COLUMNS,
        rows: ROWS,
        duration_ns: (last > first).then(|| last - first),
        requests: window.len() as u64,
        row_bytes: (map.bytes() / u64::from(ROWS)).max(1),
        bands: bands(&map, areas, files),
        marks: fields.into_iter().map(mark).collect(),
    }
}

/// First and last time of submission.
fn times(window: &[ObservedRequest]) -> (u64, u64) {
    let times = window.iter().map(|seen| seen.record.at.0);
    (times.clone().min().unwrap_or(0), times.max().unwrap_or(0))
}

fn column(at: u64, longest: u64) -> u16 {
    scaled(at, longest.saturating_add(1), COLUMNS)
}

/// Which of `parts` equal parts of `whole` it is in.
fn scaled(at: u64, whole: u64, parts: u16) -> u16 {
    let part = u128::from(at) * u128::from(parts) / u128::from(whole.max(1));
    part.min(u128::from(parts) - 1) as u16
}

fn bands(map: &Map, areas: u64, files: &[String]) -> Vec<Band> {
    let row = |area: u64| (u128::from(area) * u128::from(ROWS) / u128::from(areas)) as u16;
    let band = |((_, space), first, end)| Band {
        place: Key::Space(space).named(files),
        first_row: row(first),
        end_row: row(end).max(row(first)),
    };
    map.spaces().into_iter().map(band).collect()
}
