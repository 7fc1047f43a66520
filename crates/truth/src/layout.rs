//! How data is on the drive: write unit, stripe, chunk, page, hot locations.
//!
//! Write unit and page are read from the configuration. A chunk is a run of logical blocks on one channel in a drive
//! that was written in order, found by walking over the map. What a request's place or length does to its time is
//! measured on the *quiet* drive: the same one without jitter, page types, errors and read cache, on which two equal
//! requests take equally long to the nanosecond, so that a curve repeats exactly or not at all.
//!
//! The definitions are those of Kakaraparthy et al., PVLDB 13(4), 2019.

use flashwise_block::{BlockDevice, ByteSize, Request};
use flashwise_profile::{Figure, HotLocation, Parameters};

use super::bench::{Bench, Span, median};
use super::{Reasons, exactly};
use flashwise_sim::SimulationError;
use flashwise_ssd::DeviceConfig;
use flashwise_ssd::config::{BoundTo, Mapping, Placement, WritePolicy};

/// Read back in requests of this length (the paper's).
const READ_BACK: u64 = 512 << 10;
/// Written in pieces of each length.
const AREA: u64 = 4 << 20;
/// Equal within this share; slower from this share on.
const EQUAL: f64 = 0.03;
const SLOWER: f64 = 0.05;
/// Longest period of hot locations that is looked for.
const PERIOD_MAX: u64 = 1 << 20;
/// A hot location is faster than the slowest start by this share at least.
const EFFECT: f64 = 0.005;
/// A chunk shows where the start of a read makes this difference; one of a single block where it makes this one.
const SHOWS: f64 = 0.02;
const BLOCK_SHOWS: f64 = 0.01;
/// Pages whose borders are read across, and by which share that must take longer.
const PAGES: u64 = 101;
const PAGE_EFFECT: f64 = 0.005;
/// Share of the borders that is nearly all of them.
const MOST: f64 = 0.8;
/// Bytes that are overwritten to see whether hot locations survive it.
const OVERWRITTEN: u64 = 32 << 20;
/// Periods of them that are read at most.
const CYCLES_MAX: u64 = 1_024;

pub(super) fn fill_in(
    config: &DeviceConfig,
    parameters: &mut Parameters,
    reasons: &mut Reasons,
) -> Result<(), SimulationError> {
    let quiet = quiet(config);
    parameters.write_unit_bytes = write_unit(config, reasons);
    parameters.page_bytes = page(&quiet, reasons)?;
    parameters.chunk_bytes = chunk(&quiet, config.flash.array_time_jitter, reasons)?;
    parameters.stripe_bytes = stripe(&quiet, reasons)?;
    let (hot, survives) = hot_location(config, &quiet, parameters.chunk_bytes, reasons)?;
    (parameters.hot_location, parameters.hot_location_survives_writes) = (hot, survives);
    Ok(())
}

/// The drive without what makes equal requests take different times.
fn quiet(config: &DeviceConfig) -> DeviceConfig {
    let mut quiet = config.clone();
    quiet.flash.array_time_jitter = 0.0;
    quiet.flash.read_ns_by_page_type.clear();
    quiet.flash.program_ns_by_page_type.clear();
    (quiet.flash.reliability, quiet.flash.endurance) = (None, None);
    quiet.ftl.mapping_cache = None;
    let controller = &mut quiet.controller;
    (controller.read_cache, controller.read_ahead) = (None, None);
    if quiet.ftl.mapping != Mapping::Page && controller.write_cache.is_none() {
        // Only a cache put data into DRAM.
        (controller.dram_ns_per_access, controller.dram_bytes_per_s, controller.dram_row_bytes) = (0, 0, 0);
    }
    quiet
}

/// A superpage, or a granule where the medium is written in place; where a forced write ends in a protected buffer,
/// which pads nothing, a logical page. None where nothing shorter can be written.
fn write_unit(config: &DeviceConfig, reasons: &mut Reasons) -> Figure<u64> {
    let controller = &config.controller;
    match config.ftl.mapping {
        Mapping::InPlace if config.flash.write_granule_bytes <= config.host.logical_block_bytes => Figure::absent(),
        Mapping::InPlace => exactly(config.flash.write_granule_bytes),
        _ if controller.power_loss_protection && controller.write_policy == WritePolicy::Back => {
            let page = config.ftl.logical_page_bytes;
            if page > config.host.logical_block_bytes { exactly(page) } else { Figure::absent() }
        }
        // As many superpages are started as the write has pages, and how full the last ones get depends on what came
        // before.
        _ if scatters(config) => reasons.unknown("write_unit_bytes", "each page of a write goes to a different die"),
        _ if config.superpage_bytes() <= config.host.logical_block_bytes => Figure::absent(),
        _ => exactly(config.superpage_bytes()),
    }
}

/// Whether each page goes to another die, whatever its address.
fn scatters(config: &DeviceConfig) -> bool {
    config.ftl.mapping == Mapping::Page && config.ftl.placement.binds_to() == BoundTo::Nothing
}

/// What a read moves whole: a logical page that is compressed as a whole, a transfer unit, or where that is no more
/// than what can be asked for, a page of flash: the first across whose border reads take longer than others. A transfer
/// unit across whose border they do not is there, and no host can tell; nor can it tell the pages that several planes
/// read together from one.
fn page(quiet: &DeviceConfig, reasons: &mut Reasons) -> Result<Figure<u64>, SimulationError> {
    let (unit, block) = (quiet.flash.transfer_unit_bytes, quiet.host.logical_block_bytes);
    let compressed = quiet.compression().map(|_| quiet.ftl.logical_page_bytes).filter(|&page| page > block);
    if unit > block && compressed.is_none() {
        return Ok(match crossing_takes_longer(quiet, unit, block)? {
            Some(true) => exactly(unit),
            _ => reasons.unknown("page_bytes", "two units on two channels are transferred in the time of one"),
        });
    }
    for page in compressed.into_iter().chain([quiet.flash.page_bytes]) {
        match crossing_takes_longer(quiet, page, block)? {
            Some(true) => return Ok(exactly(page)),
            Some(false) => {}
            None => {
                return Ok(
                    reasons.unknown("page_bytes", "reads across some page boundaries take longer, across others not")
                );
            }
        }
    }
    let superpage = quiet.superpage_bytes();
    if superpage > quiet.flash.page_bytes && crossing_takes_longer(quiet, superpage, block)? != Some(false) {
        let why = "the planes of a die read their pages together, and only reads beyond them take longer";
        return Ok(reasons.unknown("page_bytes", why));
    }
    Ok(Figure::absent())
}

/// Whether reads of two blocks take longer across the border of two pages than within one; `None` where some do and
/// some do not.
fn crossing_takes_longer(quiet: &DeviceConfig, page: u64, block: u64) -> Result<Option<bool>, SimulationError> {
    let mut bench = Bench::filled(quiet, 1)?;
    let mut read = |start: u64| bench.alone(Request::read(ByteSize(start), ByteSize(2 * block)));
    let (mut inside, mut across) = (Vec::new(), Vec::new());
    for n in 0..PAGES {
        let start = (1 << 20) + n * page;
        inside.push(read(start)?);
        across.push(read(start + page - block)?);
    }
    let longer_from = median(inside) * (1.0 + PAGE_EFFECT);
    let longer = across.iter().filter(|&&time| time as f64 >= longer_from).count();
    Ok(match longer as f64 / across.len() as f64 {
        share if share >= MOST => Some(true),
        share if share <= 1.0 - MOST => Some(false),
        _ => None,
    })
}

/// The run of logical pages on one channel, where all runs are equally long and a host can tell, of a quiet drive whose
/// times to sense vary in fact by a share.
fn chunk(config: &DeviceConfig, jitter: f64, reasons: &mut Reasons) -> Result<Figure<u64>, SimulationError> {
    if config.flash.channels == 1 {
        return one_channel(config, reasons);
    }
    let Some(runs) = channel_runs(&Bench::filled(config, 1)?) else { return Ok(Figure::unknown()) };
    // Here a page goes where there is least to do, and that is one thing in a drive that is laid out and another in one
    // that is written.
    if config.ftl.placement == Placement::LeastLoaded && config.ftl.mapping == Mapping::Page {
        let written = channel_runs(&Bench::written(config, WRITTEN)?);
        if written.is_some_and(|written| written[0] != runs[0] || written.iter().any(|&run| run != runs[0])) {
            return Ok(
                reasons.unknown("chunk_bytes", "the length of a run on one channel depends on which dies are busy")
            );
        }
    }
    let bytes = runs[0] * config.ftl.logical_page_bytes;
    if runs.iter().any(|&run| run != runs[0]) {
        return Ok(reasons.unknown("chunk_bytes", "runs of addresses on one channel differ in length"));
    }
    if bytes <= config.host.logical_block_bytes {
        return Ok(reasons.unknown("chunk_bytes", "no request can start inside a chunk"));
    }
    let block = config.host.logical_block_bytes;
    let between_pages = if bytes >= 8192 { block.max(4096) } else { block };
    if place_matters(config, bytes, between_pages, 0.0)? {
        let later_ns = LATER_OF_TWO * jitter * config.flash.read_ns as f64;
        return Ok(match place_matters(config, bytes, between_pages, later_ns)? {
            true => exactly(bytes),
            false => reasons
                .unknown("chunk_bytes", "two channels save as much time as waiting for the slower of two dies costs"),
        });
    }
    if place_makes_a_difference(config, bytes, between_pages, 1.0)? {
        return Ok(
            reasons.unknown("chunk_bytes", "the effect of the start offset repeats with a period other than the chunk")
        );
    }
    if place_makes_a_difference(config, block.max(4096), block, 1.0)? {
        let why = "the offset in a page matters, and hides the effect of the offset in a chunk";
        return Ok(reasons.unknown("chunk_bytes", why));
    }
    if place_makes_a_difference(config, bytes, between_pages, FAINT)? {
        return Ok(reasons.unknown("chunk_bytes", "the offset in a chunk has only a small effect"));
    }
    Ok(Figure::absent())
}

/// A drive of one channel has no chunks. Where it makes a difference at which page a read starts, since its dies share
/// it as two channels would, or where two dies that share a page's worth are faster than the one that holds a page, no
/// host can tell.
fn one_channel(config: &DeviceConfig, reasons: &mut Reasons) -> Result<Figure<u64>, SimulationError> {
    let page = config.flash.page_bytes.max(config.ftl.logical_page_bytes);
    let is_shared = place_makes_a_difference(config, PERIOD_MAX / 4, page, 1.0)? || two_pages_are_faster(config, page)?;
    Ok(match is_shared {
        true => reasons.unknown("chunk_bytes", "dies on the only channel have the same effect as channels would"),
        false => Figure::absent(),
    })
}

/// Whether a read as long as a page takes less where two pages share it.
fn two_pages_are_faster(quiet: &DeviceConfig, page: u64) -> Result<bool, SimulationError> {
    let block = quiet.host.logical_block_bytes;
    if page > quiet.host.max_transfer_bytes {
        return Ok(false);
    }
    let curve = start_curve(&mut Bench::filled(quiet, 1)?, page, block, page)?;
    let (fastest, _) = ends(&curve);
    Ok(curve[0] >= fastest * (1.0 + BLOCK_SHOWS))
}

/// Share of the difference that shows from which on there is one: where two dies sense at once the later one counts,
/// which adds to what a quiet drive shows.
const FAINT: f64 = 0.5;

/// How much later than the mean the later of two dies is ready, in standard deviations: 1 ÷ √π.
const LATER_OF_TWO: f64 = 0.564;

/// Whether the start, moved in steps, of reads of any length up to 128 KiB makes a difference that repeats with the
/// chunk and with no part of it, and of which enough is left when a read that two dies serve takes so much longer:
/// where the host interface is slower than one channel, or where dies on one channel make all of the difference, chunks
/// are there, and no host can tell.
fn place_matters(quiet: &DeviceConfig, chunk: u64, step: u64, later_ns: f64) -> Result<bool, SimulationError> {
    let mut bench = Bench::filled(quiet, 1)?;
    let shows = if step < 4096 { BLOCK_SHOWS } else { SHOWS };
    for length in (12..=17).map(|n| 1_u64 << n).filter(|&length| length <= quiet.host.max_transfer_bytes) {
        let curve = start_curve(&mut bench, length, step, 4 * chunk)?;
        let (fastest, slowest) = ends(&curve);
        let (starts, same) = ((chunk / step) as usize, shows * fastest);
        let shows_it = slowest >= fastest * (1.0 + shows) + later_ns;
        if shows_it && repeats_after(&curve, starts, same) && !repeats_with_a_part(&curve, starts, same) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the start makes any difference, of such a share of one that shows.
fn place_makes_a_difference(quiet: &DeviceConfig, chunk: u64, step: u64, share: f64) -> Result<bool, SimulationError> {
    let mut bench = Bench::filled(quiet, 1)?;
    let shows = share * if step < 4096 { BLOCK_SHOWS } else { SHOWS };
    for length in (12..=17).map(|n| 1_u64 << n).filter(|&length| length <= quiet.host.max_transfer_bytes) {
        let (fastest, slowest) = ends(&start_curve(&mut bench, length, step, 4 * chunk)?);
        if slowest >= fastest * (1.0 + shows) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a curve that repeats after so many starts repeats after a part of them already, but for differences up to
/// one.
fn repeats_with_a_part(curve: &[f64], starts: usize, up_to: f64) -> bool {
    (1..starts).filter(|part| starts.is_multiple_of(*part)).any(|part| repeats_after(curve, part, up_to))
}

/// Whether a curve repeats after so many starts, but for differences up to one. Those of longer reads may repeat with a
/// superpage.
fn repeats_after(curve: &[f64], starts: usize, up_to: f64) -> bool {
    curve.iter().zip(&curve[starts..]).all(|(a, b)| (a - b).abs() < up_to)
}

/// Bytes of a drive that are examined where its chunks are counted, and that are written for it.
const COUNTED: u64 = 8 << 20;
const WRITTEN: u64 = 16 << 20;

/// Lengths of the runs of logical pages on one channel that start behind the first page of a drive, some of them.
fn channel_runs(bench: &Bench) -> Option<Vec<u64>> {
    let config = bench.drive.config();
    let page_bytes = config.ftl.logical_page_bytes;
    let channel = |page: u64| bench.drive.channel_of(ByteSize(page * page_bytes));
    let (mut runs, mut length) = (Vec::new(), 0);
    for page in 0..COUNTED / page_bytes {
        length += 1;
        if channel(page)? != channel(page + 1)? {
            runs.push(length);
            length = 0;
        }
    }
    (!runs.is_empty()).then_some(runs)
}

/// The smallest power of two from which on data reads back equally fast, however long the pieces were that it was
/// written in, and faster than from shorter ones.
fn stripe(config: &DeviceConfig, reasons: &mut Reasons) -> Result<Figure<u64>, SimulationError> {
    if scatters(config) {
        return Ok(reasons.unknown(
            "stripe_bytes",
            "each page of a write goes to a different die, whatever the length of the write",
        ));
    }
    let smallest = config.host.logical_block_bytes.max(1024);
    let lengths: Vec<u64> = (10..=19).map(|n| 1_u64 << n).filter(|&length| length >= smallest).collect();
    // Pieces continue where those before them ended, so that what was written before may decide which are in one place.
    let rising: Vec<usize> = (0..lengths.len()).collect();
    let falling: Vec<usize> = rising.iter().rev().copied().collect();
    let found = last_improvement(&lengths, &read_back(config, &lengths, &rising, false)?);
    if found != last_improvement(&lengths, &read_back(config, &lengths, &falling, true)?) {
        return Ok(reasons.unknown("stripe_bytes", "the length needed depends on earlier writes"));
    }
    Ok(match found {
        Ok(Some(length)) => exactly(length),
        Ok(None) => Figure::absent(),
        Err(why) => reasons.unknown("stripe_bytes", why),
    })
}

/// The shortest length from which on all read back equally fast, and all shorter ones slower; `None` where all are
/// alike.
fn last_improvement(lengths: &[u64], times: &[f64]) -> Result<Option<u64>, &'static str> {
    let fastest = times.iter().copied().fold(f64::MAX, f64::min);
    let is_fast = |time: f64| time <= fastest * (1.0 + EQUAL);
    if times.iter().all(|&time| is_fast(time)) {
        return Ok(None);
    }
    let from = times.iter().rposition(|&time| !is_fast(time)).map_or(0, |last| last + 1);
    if from == times.len() {
        return Err("data written in long pieces reads back slower");
    }
    if from == 0 || times[..from].iter().any(|&time| is_fast(time)) || times[from - 1] < fastest * (1.0 + SLOWER) {
        return Err("the read-back times do not form two groups");
    }
    Ok(Some(lengths[from]))
}

/// Mean time of reading back what was written in durable pieces of each length, the lengths in an order, maybe behind a
/// single page, ns.
fn read_back(
    config: &DeviceConfig,
    lengths: &[u64],
    order: &[usize],
    is_behind_a_page: bool,
) -> Result<Vec<f64>, SimulationError> {
    let mut bench = Bench::filled(config, 1)?;
    let transfer = config.host.max_transfer_bytes;
    if is_behind_a_page {
        bench.alone(Request::write(ByteSize(0), ByteSize(config.ftl.logical_page_bytes)).with_fua())?;
    }
    for &i in order {
        let length = lengths[i];
        for piece in 0..AREA / length {
            let at = i as u64 * AREA + piece * length;
            for offset in (0..length).step_by(transfer as usize) {
                let part = ByteSize(transfer.min(length - offset));
                bench.alone(Request::write(ByteSize(at + offset), part).with_fua())?;
            }
        }
    }
    empty_buffers(config, &mut bench, lengths.len() as u64 * AREA)?;
    let part = READ_BACK.min(transfer);
    let mean = |i: usize, bench: &mut Bench| -> Result<f64, SimulationError> {
        let mut sum = 0;
        for n in 0..AREA / part {
            sum += bench.alone(Request::read(ByteSize(i as u64 * AREA + n * part), ByteSize(part)))?;
        }
        Ok(sum as f64 / (AREA / part) as f64)
    };
    (0..lengths.len()).map(|i| mean(i, &mut bench)).collect()
}

/// Brings to flash what is in the buffers: by a flush, or where that leaves them as they are, by writing more, from an
/// address on.
fn empty_buffers(config: &DeviceConfig, bench: &mut Bench, from: u64) -> Result<(), SimulationError> {
    if config.ftl.mapping != Mapping::InPlace {
        let cache = config.controller.write_cache.as_ref().map_or(0, |cache| cache.bytes);
        let held = config.controller.write_buffer_bytes + cache;
        let span = Span { start: from, bytes: config.capacity_bytes - from };
        let length = config.host.max_transfer_bytes.min(1 << 20);
        bench.write_in_order(span, length, 8, (2 * held).next_multiple_of(length))?;
    }
    bench.settle()?;
    bench.alone(Request::flush())?;
    bench.settle()
}

/// Where chunk-long reads are fastest, and whether they still are when all was overwritten: on the quiet drive, and on
/// the drive as it is, on which pages that take different times may hide it.
fn hot_location(
    config: &DeviceConfig,
    quiet: &DeviceConfig,
    chunk: Figure<u64>,
    reasons: &mut Reasons,
) -> Result<(Figure<HotLocation>, Figure<bool>), SimulationError> {
    let Some(chunk) = chunk.known() else {
        if chunk.verdict == flashwise_profile::Verdict::Absent {
            return Ok((Figure::absent(), Figure::absent()));
        }
        let why = "there is no chunk";
        return Ok((reasons.unknown("hot_location", why), reasons.unknown("hot_location_survives_writes", why)));
    };
    // Where a medium is written in place, and after the fill, nothing is in a buffer.
    let mut bench = Bench::filled(quiet, 1)?;
    // Below 4 KiB the place in a logical page decides, and not the place in the chunk.
    let aligned = if chunk >= 8192 { 4096 } else { config.host.logical_block_bytes };
    let step = config.host.logical_block_bytes.max(aligned);
    let curve = start_curve(&mut bench, chunk, step, 2 * PERIOD_MAX)?;
    let Some(period) = period_of(&curve, step, chunk) else {
        let why = "latency does not repeat with a multiple of the chunk";
        return Ok((reasons.unknown("hot_location", why), reasons.unknown("hot_location_survives_writes", why)));
    };
    let phases = (period / step) as usize;
    let folded = from_start_of_drive(&curve[..phases], step);
    let (fastest, slowest) = ends(&folded);
    if slowest < fastest * (1.0 + EFFECT) {
        return Ok((Figure::absent(), Figure::absent()));
    }
    let hot = hot_phases(&folded).map(|phase| HotLocation { period_bytes: period, offset_bytes: phase as u64 * step });
    let phase = (hot[0].offset_bytes / step) as usize;
    let stays_hot = |config| survives(config, (chunk, step, phases), phase);
    let survives = match (stays_hot(quiet)?, stays_hot(config)?) {
        (Some(quiet), Some(noisy)) if quiet == noisy => exactly(quiet),
        _ => reasons
            .unknown("hot_location_survives_writes", "part of its lead remains, and the result depends on the measure"),
    };
    Ok((Figure::certain(hot[0], hot[1], hot[2]), survives))
}

/// The first of the fastest phases, and the first and last of those around it that are as fast. They may go over the
/// end of the period, and the last then is before the first.
fn hot_phases(folded: &[f64]) -> [usize; 3] {
    let (n, (fastest, _)) = (folded.len(), ends(folded));
    let is_hot = |phase: usize| folded[phase % n] < fastest * (1.0 + EFFECT);
    let first = folded.iter().position(|&time| time <= fastest).unwrap_or(0);
    let before = (1..n).take_while(|&steps| is_hot(first + n - steps)).count();
    let after = (1..n).take_while(|&steps| is_hot(first + steps)).count();
    [first, (first + n - before) % n, (first + after) % n]
}

fn ends(curve: &[f64]) -> (f64, f64) {
    curve.iter().fold((f64::MAX, 0.0), |(low, high), &time| (time.min(low), time.max(high)))
}

/// Where the window of a [`start_curve`] starts.
const WINDOW_START: u64 = 1 << 20;

/// One period of a [`start_curve`], by where its places lie from the start of the drive on: an odd chunk does not start
/// where the window does.
fn from_start_of_drive(period: &[f64], step: u64) -> Vec<f64> {
    let mut folded = period.to_vec();
    folded.rotate_right((WINDOW_START / step) as usize % period.len());
    folded
}

/// Latency of chunk-long reads by where they start, ns, over a window behind the first mebibyte.
fn start_curve(bench: &mut Bench, chunk: u64, step: u64, window: u64) -> Result<Vec<f64>, SimulationError> {
    let read = |start: u64| Request::read(ByteSize(WINDOW_START + start), ByteSize(chunk));
    (0..window / step).map(|n| Ok(bench.alone(read(n * step))? as f64)).collect()
}

/// The smallest multiple of the chunk with which the curve repeats.
fn period_of(curve: &[f64], step: u64, chunk: u64) -> Option<u64> {
    (1..=PERIOD_MAX / chunk).map(|n| n * chunk).find(|period| {
        let phases = (period / step) as usize;
        curve.iter().zip(&curve[phases..]).all(|(a, b)| (a - b).abs() <= 0.002 * a)
    })
}

/// Whether the same start is still faster, with half of its lead at least, after a region was overwritten; `None` where
/// the median says one thing and the mean another.
fn survives(
    config: &DeviceConfig,
    (chunk, step, phases): (u64, u64, usize),
    hot: usize,
) -> Result<Option<bool>, SimulationError> {
    let mut bench = Bench::filled(config, 1)?;
    let before = by_phase(&mut bench, (chunk, step, phases))?;
    overwrite_in_random_order(&mut bench, OVERWRITTEN + chunk)?;
    empty_buffers(config, &mut bench, OVERWRITTEN + (4 << 20))?;
    let after = by_phase(&mut bench, (chunk, step, phases))?;
    // Against the mean, because of many noisy phases the slowest is slow by chance.
    let lead = |curve: Vec<f64>| curve.iter().sum::<f64>() / curve.len() as f64 / curve[hot] - 1.0;
    let by = |level: fn(Vec<u64>) -> f64| {
        let lead_of = |times: &[Vec<u64>]| lead(times.iter().map(|times| level(times.clone())).collect());
        lead_of(&after) >= lead_of(&before) / 2.0
    };
    let (by_median, by_mean) = (by(median), by(mean));
    Ok((by_median == by_mean).then_some(by_median))
}

/// Latencies of chunk-long reads by the phase that they start at, over many periods, ns. The periods are random: those
/// at equal distances may all start where a stripe does.
fn by_phase(bench: &mut Bench, (chunk, step, phases): (u64, u64, usize)) -> Result<Vec<Vec<u64>>, SimulationError> {
    let period = phases as u64 * step;
    let mut times = vec![Vec::new(); phases];
    for _ in 0..(OVERWRITTEN / period).min(CYCLES_MAX) {
        let start = bench.place(Span { start: 0, bytes: OVERWRITTEN }, period);
        for (phase, times) in times.iter_mut().enumerate() {
            let at = ByteSize(start.0 + phase as u64 * step);
            times.push(bench.alone(Request::read(at, ByteSize(chunk)))?);
        }
    }
    Ok(times)
}

fn mean(times: Vec<u64>) -> f64 {
    times.iter().sum::<u64>() as f64 / times.len().max(1) as f64
}

/// Every block of 4 KiB of the first bytes once, in an order that no layout likes.
fn overwrite_in_random_order(bench: &mut Bench, bytes: u64) -> Result<(), SimulationError> {
    let blocks = bytes / 4096;
    let mut order: Vec<u64> = (0..blocks).collect();
    for n in (1..blocks).rev() {
        let other = bench.place(Span { start: 0, bytes: n + 1 }, 1).0;
        order.swap(n as usize, other as usize);
    }
    let mut next = order.into_iter();
    let depth = 8.min(bench.drive.info().queue_depth as usize);
    bench.run(depth, blocks - depth as u64, |_| {
        Request::write(ByteSize(next.next().unwrap_or(0) * 4096), ByteSize(4096))
    })?;
    bench.settle()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quiet_form_of_every_drive_is_a_drive() {
        for seed in 0..2_000 {
            let drive = crate::random::random_device(seed).unwrap();
            quiet(&drive).check(&drive.name).unwrap();
        }
    }

    #[test]
    fn dies_on_the_only_channel_leave_open_whether_there_are_chunks() {
        // Its stripes go to its two dies in turn.
        let drive = crate::random::random_device(895).unwrap();
        assert_eq!((drive.flash.channels, drive.flash.chips_per_channel, drive.flash.dies_per_chip), (1, 2, 1));
        let chunk_of = |chips: u32| {
            let mut config = drive.clone();
            config.capacity_bytes = config.capacity_bytes / (2 << 20) * (u64::from(chips) << 20);
            config.flash.chips_per_channel = chips;
            chunk(&quiet(&config), 0.0, &mut Reasons::default()).unwrap().verdict
        };
        assert_eq!(chunk_of(1), flashwise_profile::Verdict::Absent);
        assert_eq!(chunk_of(2), flashwise_profile::Verdict::Inconclusive);
        // Its transfer units are a quarter of a page, and two dies that move two of them each sense at once.
        let drive = crate::random::random_device(1104).unwrap();
        assert_eq!((drive.flash.channels, drive.flash.page_bytes, drive.flash.transfer_unit_bytes), (1, 4096, 1024));
        let told = chunk(&quiet(&drive), 0.0, &mut Reasons::default()).unwrap();
        assert_eq!(told.verdict, flashwise_profile::Verdict::Inconclusive);
    }

    #[test]
    fn the_phases_of_an_odd_chunk_are_those_of_the_drive() {
        // Of 24 KiB in steps of 4, a mebibyte behind the start is phase 4.
        assert_eq!(from_start_of_drive(&[4.0, 5.0, 0.0, 1.0, 2.0, 3.0], 4096), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(from_start_of_drive(&[0.0, 1.0], 4096), [0.0, 1.0]);
    }
}
