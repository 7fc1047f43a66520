//! Where the next request goes.

use std::ops::Range;

use rand_pcg::Pcg64Mcg;

use super::Drive;
use super::choice::Choice;
use super::random::{below, unit};
use super::scatter::Scatter;
use super::span::{Lengths, Span};
use super::zipf::Zipf;
use crate::workload::check::FlowChecker;
use crate::workload::{Access, Size, Synthetic, WorkloadError, Zone};

/// Alignment where none is given and lengths vary, bytes.
const DEFAULT_ALIGN: u64 = 4096;

/// Draws offsets, bytes.
#[derive(Debug)]
pub(super) enum Places {
    Random(Span),
    Sequential {
        span: Span,
        next: u64,
    },
    Zipf {
        span: Span,
        zipf: Zipf,
        scatter: Scatter,
    },
    Zones {
        choice: Choice,
        spans: Box<[Span]>,
    },
    /// Zones of positions that are scattered over the region.
    Scattered {
        span: Span,
        choice: Choice,
        zones: Box<[Range<u64>]>,
        scatter: Scatter,
    },
    Pareto {
        span: Span,
        exponent: f64,
        scatter: Scatter,
    },
    /// `newest` is the position that was written last.
    Latest {
        span: Span,
        zipf: Zipf,
        newest: u64,
    },
}

impl Places {
    pub(super) fn new(
        flow: &Synthetic,
        checker: &FlowChecker<'_>,
        drive: Drive,
        lengths: Lengths,
    ) -> Result<Self, WorkloadError> {
        let span = region(flow, checker, drive, lengths)?;
        match &flow.access {
            Access::Random => Ok(Self::Random(span)),
            Access::Sequential => Ok(Self::Sequential { span, next: span.first }),
            &Access::Zipf { theta } => {
                Ok(Self::Zipf { span, zipf: Zipf::new(span.positions, theta), scatter: Scatter::new(span.positions) })
            }
            Access::HotCold { zones, shuffled: false } => Self::zones(zones, checker, span, lengths),
            Access::HotCold { zones, shuffled: true } => Ok(Self::scattered(zones, span)),
            &Access::Pareto { h } => {
                let exponent = libm::log(h) / libm::log(1.0 - h);
                Ok(Self::Pareto { span, exponent, scatter: Scatter::new(span.positions) })
            }
            &Access::Latest { theta } => {
                Ok(Self::Latest { span, zipf: Zipf::new(span.positions, theta), newest: span.positions - 1 })
            }
        }
    }

    /// Zones tile the region in steps of the alignment; only those that have traffic need room.
    fn zones(zones: &[Zone], checker: &FlowChecker<'_>, region: Span, lengths: Lengths) -> Result<Self, WorkloadError> {
        let cells = (region.end - region.first) / region.align;
        let border = |share: f64| region.first + ((share * cells as f64).round() as u64).min(cells) * region.align;
        let (mut spans, mut traffic, mut share) = (Vec::new(), Vec::new(), 0.0);
        for (i, zone) in zones.iter().enumerate() {
            let start = border(share);
            share += zone.size;
            let end = if i + 1 == zones.len() { region.end } else { border(share) };
            if zone.traffic > 0.0 {
                let span = Span::new(start, end, region.align, lengths).ok_or_else(|| {
                    let reason = format!(
                        "this zone of {} bytes is too small for requests of {} bytes",
                        end - start,
                        lengths.longest
                    );
                    checker.error(&format!("synthetic.access.hot-cold.zones[{i}].size"), zone.size, reason)
                })?;
                spans.push(span);
                traffic.push(zone.traffic);
            }
        }
        Ok(Self::Zones { choice: Choice::new(&traffic), spans: spans.into() })
    }

    /// The same over positions in place of bytes; a zone that has traffic has at least one.
    fn scattered(zones: &[Zone], span: Span) -> Self {
        let border = |share: f64| ((share * span.positions as f64).round() as u64).min(span.positions);
        let (mut ranges, mut share) = (Vec::new(), 0.0);
        for zone in zones {
            let start = border(share).min(span.positions - 1);
            share += zone.size;
            ranges.push(start..border(share).max(start + 1));
        }
        let traffic: Vec<f64> = zones.iter().map(|zone| zone.traffic).collect();
        let scatter = Scatter::new(span.positions);
        Self::Scattered { span, choice: Choice::new(&traffic), zones: ranges.into(), scatter }
    }

    /// Where a request of `length` goes; `write` tells whether it is one.
    #[inline]
    pub(super) fn draw(&mut self, random: &mut Pcg64Mcg, length: u64, write: bool) -> u64 {
        match self {
            Self::Random(span) => span.draw(random, length),
            Self::Sequential { span, next } => {
                let offset = if span.end - *next < length { span.first } else { *next };
                let end = offset + length;
                // What is left at the end of the region is shorter than a request; the next one starts over.
                *next = end.checked_next_multiple_of(span.align).map_or(span.end, |next| next.min(span.end));
                offset
            }
            Self::Zipf { span, zipf, scatter } => span.first + scatter.place(zipf.draw(random)) * span.align,
            Self::Zones { choice, spans } => {
                let zone = if spans.len() == 1 { 0 } else { choice.draw(random) };
                spans[zone].draw(random, length)
            }
            Self::Scattered { span, choice, zones, scatter } => {
                let zone = &zones[choice.draw(random)];
                span.first + scatter.place(zone.start + below(random, zone.end - zone.start)) * span.align
            }
            Self::Pareto { span, exponent, scatter } => {
                let share = libm::exp(*exponent * libm::log(unit(random)));
                let position = ((share * span.positions as f64) as u64).min(span.positions - 1);
                span.first + scatter.place(position) * span.align
            }
            Self::Latest { span, newest, .. } if write => {
                *newest = (*newest + 1) % span.positions;
                span.first + *newest * span.align
            }
            Self::Latest { span, zipf, newest } => {
                let back = zipf.draw(random);
                let position = if back <= *newest { *newest - back } else { *newest + span.positions - back };
                span.first + position * span.align
            }
        }
    }
}

/// The region as positions, on a drive that has them.
fn region(flow: &Synthetic, checker: &FlowChecker<'_>, drive: Drive, lengths: Lengths) -> Result<Span, WorkloadError> {
    let start = flow.region_start_bytes;
    let reason = format!("the drive ends at byte {}", drive.capacity);
    checker.require("synthetic.region_start_bytes", start, start < drive.capacity, &reason)?;
    let rest = drive.capacity - start;
    let bytes = flow.region_bytes.unwrap_or(rest);
    let reason = format!("the drive has only {rest} bytes from byte {start} on");
    checker.require("synthetic.region_bytes", bytes, bytes <= rest, &reason)?;
    let align = align(flow, checker, drive)?;
    Span::new(start, start + bytes, align, lengths).ok_or_else(|| {
        let (end, longest) = (start + bytes, lengths.longest);
        let reason =
            format!("no request of {longest} bytes at a multiple of {align} fits between byte {start} and byte {end}");
        checker.error("synthetic.region_bytes", bytes, reason)
    })
}

fn align(flow: &Synthetic, checker: &FlowChecker<'_>, drive: Drive) -> Result<u64, WorkloadError> {
    let default = match flow.size {
        Size::Fixed { bytes } => bytes,
        _ => DEFAULT_ALIGN.max(drive.logical_block),
    };
    let align = flow.align_bytes.unwrap_or(default);
    drive.whole_blocks(checker, "synthetic.align_bytes", align)?;
    Ok(align)
}
