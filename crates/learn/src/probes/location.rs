//! The location profile: how the place where a read starts decides how long it takes.
//!
//! **Chunk and hot locations.** Reads of one length start at `base + o`, with random aligned bases and `o` moved in
//! small steps. Where a drive puts contiguous chunks on single channels, the curve over `o` repeats with the chunk, and
//! its minimum is where reads are shared best: the hot location. Steps of 4 KiB are tried first, with reads of 4 to 128
//! KiB; where they show nothing, the same reads by where they started on the drive (`turns.rs`), and steps of one block
//! with reads of 4 KiB. Pages of several speeds make curves of their own: reads of single blocks show them, and what
//! they cost is taken off where the period shows better without. Which sweep tells the chunk, and whether it is one:
//! `chunk.rs`, `channels.rs`.
//!
//! Source: Kakaraparthy et al., PVLDB 13(4), 2019, location profile. Added: all of the inference; there a person reads
//! the plot.

use flashwise_block::{ByteSize, Progress};
use flashwise_profile::{Figure, HotLocation, LocationCurve, MedianNs, ProbeCurve, ProbePoint, Verdict};
use rand_pcg::Pcg64Mcg;

use super::chunk::{
    self, ChunkEvidence, LONGEST_READ, chunk_of_fastest_border, chunk_that_stands_out, clearest, grows,
    is_of_more_than_chunks, longer_that_saves_more, lowest_phase, period_of, single_of, sweep_of_chunk, valley_of,
};
use super::sweep::{
    Effect, Level, MORE_READS, SHORTEST_CHUNK, Swept, coarse, coarse_of_chunk, fine, lead, measure, scatter,
    usual_deviation,
};
use super::{channels, turns};
use crate::draft::{Because, ProfileDraft, key};
use crate::evidence::{Evidence, not_absent};
use crate::prober::{Origin, Prober};
use crate::stats::{Samples, best_period, figure, fold, line_through, median};
use crate::step::Step;
use crate::verdict::{Doubt, Wording, applying, doubt, doubt_of_either, first_applying};
use crate::{Effort, LearnError};

pub(crate) const LOCATIONS: Step = Step::new("locations", &["chunk_bytes", "hot_location"]).layout().reads_alone();
pub(crate) const SURVIVAL: Step =
    Step { after: Some(LOCATIONS.name), ..Step::new("hot locations after writes", &["hot_location_survives_writes"]) };

/// Share of the latency by which a hot location is faster than the slowest, at least.
const HOT_SHARE_MIN: f64 = 0.005;
/// Read lengths of the coarse sweeps.
const COARSE_READS: [ByteSize; 6] =
    [ByteSize::kib(4), ByteSize::kib(8), ByteSize::kib(16), ByteSize::kib(32), ByteSize::kib(64), LONGEST_READ];

/// Evidence of the location profiles.
#[derive(Clone, Debug)]
pub(crate) struct Locations {
    pub(crate) chunk: Figure<u64>,
    pub(crate) hot: Figure<HotLocation>,
    /// By which share of its latency the hot location is faster than the mean of all, by each level of it; none where
    /// an earlier run measured it.
    pub(crate) leads: Vec<(f64, Level)>,
}

impl Evidence for Locations {
    fn recorded(draft: &ProfileDraft) -> Self {
        let (chunk, hot) = (draft.recorded(key!(chunk_bytes)), draft.recorded(key!(hot_location)));
        Self { chunk, hot, leads: Vec::new() }
    }

    fn of_reads_alone(self) -> Self {
        Self { chunk: not_absent(self.chunk), hot: not_absent(self.hot), ..self }
    }
}

/// Evidence of how reads meet pages and chunks: of the location profiles, beside the page.
#[derive(Clone, Debug)]
pub(crate) struct Layout(pub(crate) Locations);

impl Evidence for Layout {
    fn recorded(draft: &ProfileDraft) -> Self {
        Self(Locations::recorded(draft))
    }
}

/// Measures the location profiles and reads chunk and hot locations from the one that shows most: sweeps, then which of
/// them may show the chunk, then what is read off it, then what speaks against that.
pub(crate) fn probe_locations(
    prober: &mut Prober<'_>,
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<Locations, LearnError> {
    prober.fill_region(progress)?;
    let profiles = Profiles::measure(prober, progress)?;
    let mut candidate = Candidate::of(profiles, &mut prober.random);
    if candidate.needs_single_blocks() {
        candidate.try_single_blocks(prober, progress)?;
    }
    let found = match candidate.shown_by.and_then(|i| candidate.profiles.effects[i].map(|effect| (i, effect))) {
        Some((shown_by, effect)) => {
            let found = Found::read_off(&mut candidate, (shown_by, effect), prober, draft, progress)?;
            draft.present_unless_chance("chunk_bytes", effect.p);
            found
        }
        None => Found::nothing(&candidate),
    };
    let found = found.with_other_explanations(&candidate).with_origin(prober.origin());
    let recipe = "reads of 4 to 128 KiB in random order, start offset in steps of 4 KiB (or one block) from random \
                  aligned bases";
    let Found { chunk, chunk_reason, hot, hot_reason, leads, .. } = found;
    draft.curves.location = candidate.profiles.sweeps.iter().map(Swept::curve).collect();
    draft.settle(key!(chunk_bytes), chunk, Because { recipe, reason: chunk_reason, curve: None });
    draft.settle(key!(hot_location), hot, Because { recipe, reason: hot_reason, curve: None });
    Ok(Locations { chunk, hot, leads })
}

// ---- measure --------------------------------------------------------------------------------------------------------

/// The sweeps, and how much the place matters in each.
struct Profiles {
    sweeps: Vec<Swept>,
    effects: Vec<Option<Effect>>,
    /// Whether the sweeps of several blocks would have shown the smallest effect that counts.
    coarse_would_show: bool,
}

impl Profiles {
    /// Sweeps of all coarse reads; those that show nothing and are too noisy to say so once more, with more reads.
    fn measure(prober: &mut Prober<'_>, progress: &mut dyn Progress) -> Result<Self, LearnError> {
        let mut sweeps: Vec<Swept> = Vec::new();
        for read in COARSE_READS {
            let stage = format!("location profile, {read}");
            sweeps.push(measure(prober, coarse(read), sweeps.first(), &stage, progress)?);
        }
        let mut effects: Vec<Option<Effect>> = sweeps.iter().map(|swept| swept.effect(&mut prober.random)).collect();
        if prober.effort == Effort::Thorough {
            look_closer(&mut sweeps, &mut effects, prober, progress)?;
        }
        let coarse_would_show = sweeps.iter().all(Swept::would_show);
        Ok(Self { sweeps, effects, coarse_would_show })
    }

    /// Takes one sweep anew, with more reads.
    fn read_more(&mut self, i: usize, prober: &mut Prober<'_>, progress: &mut dyn Progress) -> Result<(), LearnError> {
        self.sweeps[i] = self.sweeps[i].with_more_reads(MORE_READS, prober, single_of(&self.sweeps, i), progress)?;
        Ok(())
    }
}

// ---- candidates -----------------------------------------------------------------------------------------------------

/// Which sweep shows the chunk.
struct Candidate {
    profiles: Profiles,
    shown_by: Option<usize>,
    /// Whether reads of another length repeat with another chunk.
    has_a_rival: bool,
    /// Whether what repeats may be rows of chunks.
    of_more_than_chunks: bool,
    /// Whether the sweep by single blocks would have shown a chunk, and went to flash; where it was made.
    single_blocks: SingleBlocks,
}

/// What the sweep by single blocks can say.
#[derive(Clone, Copy, Default)]
struct SingleBlocks {
    would_not_show: bool,
    come_from_a_cache: bool,
}

impl Candidate {
    /// The shortest reads for which the place matters, unless longer ones stand out or save more.
    fn of(profiles: Profiles, random: &mut Pcg64Mcg) -> Self {
        let Profiles { mut sweeps, mut effects, coarse_would_show } = profiles;
        let mut shortest = sweep_of_chunk(&sweeps, &effects);
        if let Some((turned, of_turned, i)) = chunk_by_turns(&sweeps, shortest, random) {
            (sweeps, effects, shortest) = (turned, of_turned, Some(i));
        }
        let mut has_a_rival = false;
        if let Some(found) = shortest {
            let longer = chunk_that_stands_out(&sweeps, &effects, found);
            let rival = match longer {
                Some(_) => valley_of(&sweeps, &effects, found),
                None => longer_that_saves_more(&sweeps, &effects, found),
            };
            has_a_rival = rival.is_some();
            let may_be_one = |i: &usize| {
                let period = period_of(&sweeps[*i]);
                !channels::lies_on_several(&sweeps, period)
                    && channels::share_saved(&sweeps, period).is_none_or(|saved| saved >= channels::SAVES_ENOUGH_SHARE)
            };
            shortest = rival.filter(may_be_one).or(longer).or(shortest);
        }
        let shown_by = shortest.map(|i| clearest(&sweeps, &effects, i));
        let of_more_than_chunks =
            !has_a_rival && shortest.is_some_and(|i| is_of_more_than_chunks(&sweeps, i) && !grows(&sweeps, i));
        let profiles = Profiles { sweeps, effects, coarse_would_show };
        Self { profiles, shown_by, has_a_rival, of_more_than_chunks, single_blocks: SingleBlocks::default() }
    }

    /// Whether reads of several blocks show no chunk, or rows of chunks.
    fn needs_single_blocks(&self) -> bool {
        self.shown_by.is_none() || self.of_more_than_chunks
    }

    /// Adds the sweep by single blocks, which shows chunks of 4 KiB and less.
    fn try_single_blocks(&mut self, prober: &mut Prober<'_>, progress: &mut dyn Progress) -> Result<(), LearnError> {
        let (swept, effect) = block_by_block(prober, progress)?;
        let Profiles { sweeps, effects, .. } = &mut self.profiles;
        self.single_blocks = SingleBlocks {
            would_not_show: !swept.would_show(),
            come_from_a_cache: comes_from_a_cache(&swept, &sweeps[0]),
        };
        sweeps.push(swept);
        effects.push(effect);
        self.shown_by = effect.map(|_| sweeps.len() - 1);
        Ok(())
    }
}

/// Why it may be inconclusive that a drive has no chunk.
const NO_CHUNK_DOUBTS: [Doubt<Candidate>; 5] = [
    doubt_of_either("chunks of several blocks would not have shown", Wording::Nothing, |candidate| {
        !candidate.profiles.coarse_would_show
    }),
    doubt_of_either("chunks of one block would not have shown", Wording::Nothing, |candidate| {
        candidate.single_blocks.would_not_show
    }),
    doubt_of_either("rows of chunks", Wording::Nothing, |candidate| candidate.of_more_than_chunks),
    doubt_of_either("some starts are outliers", Wording::Nothing, |candidate| {
        let sweeps = &candidate.profiles.sweeps;
        chunk::show_in_places(&sweeps[..COARSE_READS.len().min(sweeps.len())])
    }),
    doubt_of_either("a cache serves the reads", Wording::Nothing, |candidate| {
        candidate.single_blocks.come_from_a_cache
    }),
];

/// The sweeps by turns, their effects, and which of them tells the chunk, where they tell one that the window does not.
/// A chunk of 24 KiB shows in the window too, as a weaker one of 8; what shows by turns in longer reads alone than
/// those that show something in the window is a row or a superpage of chunks.
fn chunk_by_turns(
    sweeps: &[Swept],
    in_window: Option<usize>,
    random: &mut Pcg64Mcg,
) -> Option<(Vec<Swept>, Vec<Option<Effect>>, usize)> {
    let (turned, of_turned) = turns::show_more(sweeps, random)?;
    let i = sweep_of_chunk(&turned, &of_turned)?;
    in_window.is_none_or(|in_window| i <= in_window).then_some((turned, of_turned, i))
}

/// Takes the sweeps anew, with more reads, that show nothing and are too noisy to say that nothing is there.
fn look_closer(
    sweeps: &mut [Swept],
    effects: &mut [Option<Effect>],
    prober: &mut Prober<'_>,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    for i in 0..sweeps.len() {
        if effects[i].is_none() && !sweeps[i].would_show() {
            sweeps[i] = sweeps[i].with_more_reads(MORE_READS, prober, single_of(sweeps, i), progress)?;
            effects[i] = sweeps[i].effect(&mut prober.random);
        }
    }
    Ok(())
}

/// The sweep by single blocks, and its effect if it is of a short period: longer ones are of pages, and chunks of that
/// length show in longer reads.
fn block_by_block(prober: &mut Prober<'_>, progress: &mut dyn Progress) -> Result<(Swept, Option<Effect>), LearnError> {
    let mut swept = measure(prober, fine(prober.logical_block()), None, "location profile, block by block", progress)?;
    let mut effect = swept.effect(&mut prober.random);
    if effect.is_none() && !swept.would_show() && prober.effort == Effort::Thorough {
        swept = swept.with_more_reads(MORE_READS, prober, None, progress)?;
        effect = swept.effect(&mut prober.random);
    }
    let is_short = best_period(&swept.levels()).0 < (ByteSize::kib(8) / swept.sweep.step) as usize;
    Ok((swept, effect.filter(|_| is_short)))
}

/// Whether reads as long as those of another sweep take much less than the fastest of these: by now a cache holds what
/// is read, and answers alike wherever it lies.
fn comes_from_a_cache(swept: &Swept, earlier: &Swept) -> bool {
    let medians = |swept: &Swept| swept.points.iter().map(Samples::median).collect::<Vec<f64>>();
    let fastest = medians(earlier).into_iter().fold(f64::INFINITY, f64::min);
    swept.sweep.read == earlier.sweep.read && median(medians(swept)) < FROM_A_CACHE_SHARE * fastest
}

/// Share of the latency of the fastest page below which reads come from a cache.
const FROM_A_CACHE_SHARE: f64 = 0.9;

fn reason_of(effect: Effect) -> String {
    format!("latency repeats over the start offset, with phases that differ by {:.1} %", effect.share * 100.0)
}

// ---- figures --------------------------------------------------------------------------------------------------------

/// What was read off, with the reasons that the report prints.
struct Found {
    /// The sweep that shows the chunk.
    shown_by: Option<usize>,
    chunk: Figure<u64>,
    chunk_reason: String,
    hot: Figure<HotLocation>,
    hot_reason: String,
    leads: Vec<(f64, Level)>,
}

/// What the verdict of a hot location rests on, beside the same estimate on resampled reads.
struct HotEvidence<'a> {
    swept: &'a Swept,
    hot: HotLocation,
}

impl HotEvidence<'_> {
    /// Why a hot location may be inconclusive, beside whatever makes its chunk inconclusive (`chunk.rs`, `page.rs`): of
    /// a period that is not certain no place in it is.
    const HOT_DOUBTS: [Doubt<Self>; 1] =
        [doubt("one die", Wording::Then(", no more than waiting for the slower of two dies explains"), |evidence| {
            leads_as_one_die(evidence.swept, evidence.hot)
        })];
}

/// The same for a place in a file, beside what is said of where offsets count from: the period is the drive's; where it
/// starts is not known.
const HOT_ORIGIN_DOUBTS: [Doubt<Origin>; 1] =
    [doubt("a file at an unknown place", Wording::Nothing, |origin| matches!(origin, Origin::File(_)))];

impl Found {
    /// No curve repeats.
    fn nothing(candidate: &Candidate) -> Self {
        let doubts = applying(&NO_CHUNK_DOUBTS, candidate);
        let reason = doubts.reason("latency does not repeat over the start offset");
        Self {
            shown_by: candidate.shown_by,
            chunk: doubts.judge(Figure::absent()),
            chunk_reason: reason.clone(),
            hot: doubts.judge(Figure::absent()),
            hot_reason: reason,
            leads: Vec::new(),
        }
    }

    /// Period and minimum of the curves that repeat. What was read off stays in the profile where a budget is spent
    /// before the rest is.
    fn read_off(
        candidate: &mut Candidate,
        (shown_by, effect): (usize, Effect),
        prober: &mut Prober<'_>,
        draft: &mut ProfileDraft,
        progress: &mut dyn Progress,
    ) -> Result<Self, LearnError> {
        let has_a_rival = candidate.has_a_rival;
        let profiles = &mut candidate.profiles;
        let mut chunk = read_off_chunk(&profiles.sweeps[shown_by], prober);
        draft.set(key!(chunk_bytes), chunk);
        if chunk.known().is_none() && prober.effort == Effort::Thorough {
            profiles.read_more(shown_by, prober, progress)?;
            chunk = read_off_chunk(&profiles.sweeps[shown_by], prober);
        }
        let doubts = {
            let longer = chunk_of_fastest_border(&profiles.sweeps, chunk);
            let evidence = chunk::ReadOff { sweeps: &profiles.sweeps, has_a_rival, longer };
            if let Some(longer) = longer.filter(|_| !evidence.has_pages_of_several_speeds()) {
                let longer = Some(longer);
                chunk = Figure { value: longer, low: longer, high: longer, ..chunk };
            }
            applying(&chunk::ReadOff::READ_OFF_DOUBTS, &evidence)
        };
        let chunk = doubts.judge(chunk);
        draft.set(key!(chunk_bytes), chunk);
        let chunk_reason = doubts.reason(reason_of(effect));
        let (hot, hot_reason, long) =
            read_off_hot_location(profiles, (shown_by, effect, chunk), prober, draft, progress)?;
        let sweeps = &profiles.sweeps;
        let (hot, hot_reason) = match long.zip(hot.value) {
            Some((i, place)) => {
                let doubts = applying(&HotEvidence::HOT_DOUBTS, &HotEvidence { swept: &sweeps[i], hot: place });
                (doubts.judge(hot), doubts.reason(hot_reason))
            }
            None => (hot, hot_reason),
        };
        let leads = long.zip(hot.value).map(|(i, hot)| sweeps[i].leads_of(hot)).unwrap_or_default();
        if let Some(i) = long {
            // Draws random numbers, as testing the effect of the sweep that shows the hot location does: what later
            // probes draw, and so every profile of a seed, depends on it.
            let _effect = sweeps[i].effect(&mut prober.random);
        }
        Ok(Self { shown_by: Some(shown_by), chunk, chunk_reason, hot, hot_reason, leads })
    }

    /// With what else may repeat like that.
    fn with_other_explanations(self, candidate: &Candidate) -> Self {
        let Some(shown_by) = self.shown_by else { return self };
        let Profiles { sweeps, coarse_would_show, .. } = &candidate.profiles;
        let evidence = ChunkEvidence { sweeps, shown_by, chunk: self.chunk, coarse_would_show: *coarse_would_show };
        let doubts = first_applying(&ChunkEvidence::OTHER_EXPLANATION_DOUBTS, &evidence);
        if doubts.is_empty() {
            return self;
        }
        // Reads as long as what may be no chunk were alike.
        let hot = if self.hot.verdict == Verdict::Absent { Figure::unknown() } else { self.hot };
        Self {
            chunk: doubts.judge(self.chunk),
            chunk_reason: doubts.reason(self.chunk_reason),
            hot: doubts.judge(hot),
            hot_reason: doubts.reason(self.hot_reason),
            ..self
        }
    }

    /// With what offsets count from.
    fn with_origin(self, origin: &Origin) -> Self {
        let hot_reason = match *origin != Origin::Drive && self.hot.value.is_some() {
            true => format!("{}; {origin}", self.hot_reason),
            false => self.hot_reason,
        };
        Self { hot: applying(&HOT_ORIGIN_DOUBTS, origin).judge(self.hot), hot_reason, ..self }
    }
}

/// Reads as long as a chunk show the hot location; shorter ones where the chunk is a few blocks. With the sweep of the
/// former, where there is one.
fn read_off_hot_location(
    profiles: &mut Profiles,
    (shown_by, effect, chunk): (usize, Effect, Figure<u64>),
    prober: &mut Prober<'_>,
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<(Figure<HotLocation>, String, Option<usize>), LearnError> {
    let is_coarse = profiles.sweeps[shown_by].sweep.step >= ByteSize::kib(4);
    let long = match is_coarse {
        true => chunk_long_sweep(chunk, &mut profiles.sweeps, prober, progress)?,
        false => Some(shown_by),
    };
    let sweeps = &profiles.sweeps;
    let (mut hot, reason) = match long {
        Some(long) if sweeps[long].effect_from(HOT_SHARE_MIN, &mut prober.random).is_some() => {
            (read_off_hot(&sweeps[long], chunk, prober), reason_of(effect))
        }
        Some(long) if sweeps[long].would_show() && chunk.known().is_some() => {
            (Figure::absent(), "reads as long as a chunk take the same time at every start offset".to_owned())
        }
        Some(_) => (Figure::unknown(), "reads as long as a chunk are too noisy to compare start offsets".to_owned()),
        None => (read_off_hot(&sweeps[shown_by], chunk, prober), reason_of(effect)),
    };
    draft.set(key!(hot_location), hot);
    if let (Some(long), Verdict::Inconclusive, Effort::Thorough) = (long, hot.verdict, prober.effort) {
        profiles.read_more(long, prober, progress)?;
        if profiles.sweeps[long].effect_from(HOT_SHARE_MIN, &mut prober.random).is_some() {
            hot = read_off_hot(&profiles.sweeps[long], chunk, prober);
        }
    }
    Ok((hot, reason, long))
}

// ---- after writes ---------------------------------------------------------------------------------------------------

/// Whether the hot locations are still there after everything was overwritten in blocks in random order.
pub(crate) fn probe_survival(
    prober: &mut Prober<'_>,
    Layout(locations): &Layout,
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    let recipe = "the region is overwritten with 4 KiB writes in random order, then the location profile is measured \
                  again";
    let (figure, reason) = match (locations.chunk.value, locations.hot.value) {
        _ if locations.hot.verdict == Verdict::Absent => (Figure::absent(), "there are no hot locations".to_owned()),
        (Some(chunk), Some(hot)) => {
            prober.scatter_region(progress)?;
            survives(prober, locations, (chunk, hot), draft, progress)?
        }
        _ => (Figure::unknown(), "the hot locations are unknown".to_owned()),
    };
    let because = Because { recipe, reason, curve: Some(AFTER_WRITES) };
    draft.settle(key!(hot_location_survives_writes), figure, because);
    Ok(())
}

const AFTER_WRITES: &str = "location profile after writes";

/// Takes the profile again with the reads that showed the hot location.
fn survives(
    prober: &mut Prober<'_>,
    locations: &Locations,
    (chunk, hot): (u64, HotLocation),
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<(Figure<bool>, String), LearnError> {
    let long = || coarse_of_chunk(ByteSize(chunk), ByteSize(chunk).min(prober.longest()));
    let sweep = if chunk >= 4096 * 2 { long() } else { fine(prober.logical_block()) };
    let mut swept = measure(prober, sweep, None, AFTER_WRITES, progress)?;
    let period = (chunk / sweep.step.bytes()) as usize;
    let phase = (hot.offset_bytes / sweep.step.bytes()) as usize;
    // A run that continues an earlier one has the medians of its curve alone.
    let by_medians = || {
        let same =
            |curve: &&LocationCurve| (curve.read_bytes, curve.step_bytes) == (sweep.read.bytes(), sweep.step.bytes());
        let curve = draft.curves.location.iter().find(same)?;
        let medians: Vec<f64> = curve.latency_ns.iter().map(|point| point.median as f64).collect();
        Some((lead(&medians, period, phase), Level::Median))
    };
    let before = if locations.leads.is_empty() { by_medians().into_iter().collect() } else { locations.leads.clone() };
    let mut stays = stays_ahead(&swept, &before, (period, phase), prober);
    if stays.as_ref().is_some_and(|stays| !stays.is_certain()) && prober.effort == Effort::Thorough {
        swept = swept.with_more_reads(MORE_READS, prober, None, progress)?;
        stays = stays_ahead(&swept, &before, (period, phase), prober);
    }
    let kib = |i: usize| (sweep.step * i as u64).bytes() as f64 / 1024.0;
    let point = |(i, samples): (usize, &Samples)| {
        let MedianNs { median, low, high } = samples.interval();
        ProbePoint { x: kib(i), y: median as f64, low: low as f64, high: high as f64 }
    };
    draft.keep(ProbeCurve {
        name: AFTER_WRITES.to_owned(),
        x: "start of the read, KiB".to_owned(),
        y: "latency, ns".to_owned(),
        points: swept.points.iter().enumerate().map(point).collect(),
        fit: Vec::new(),
    });
    let Some(stays) = stays else {
        return Ok((Figure::unknown(), "the location profile from before the writes is missing".to_owned()));
    };
    let percent = |lead: f64| 100.0 * lead;
    let reason = format!(
        "hot locations were {:.1} % faster than the mean before the writes and {:.1} % after",
        percent(stays.before),
        percent(stays.now)
    );
    // Of a place that is not certain nothing is.
    let figure = match locations.hot.verdict {
        Verdict::Certain => stays.judged(),
        _ => Figure { verdict: Verdict::Inconclusive, ..stays.figure },
    };
    Ok((figure, reason))
}

/// Share of the latency by which a hot location must lead before the writes: of less, half comes and goes with the
/// pages that a read happens to meet.
const LEAD_SHARE_MIN: f64 = 0.02;

/// Whether a phase still has half of its lead, by one level.
#[derive(Clone, Copy)]
struct StaysAhead {
    figure: Figure<bool>,
    before: f64,
    now: f64,
    /// Whether another level shows the contrary for certain.
    is_contradicted: bool,
}

/// Why it may be inconclusive whether hot locations survive, beside the same estimate on resampled reads, and a hot
/// location that is not certain.
const SURVIVAL_DOUBTS: [Doubt<StaysAhead>; 2] = [
    doubt_of_either("another level shows the contrary", Wording::Nothing, |stays| stays.is_contradicted),
    doubt_of_either("a small lead", Wording::Nothing, |stays| stays.before < LEAD_SHARE_MIN),
];

impl StaysAhead {
    fn judged(&self) -> Figure<bool> {
        applying(&SURVIVAL_DOUBTS, self).judge(self.figure)
    }

    fn is_certain(&self) -> bool {
        self.judged().verdict == Verdict::Certain
    }
}

/// Whether a phase still has half of its lead, with the lead before and now: by the first level that shows it for
/// certain, else by the first. `None` where nothing is known of before.
fn stays_ahead(
    swept: &Swept,
    before: &[(f64, Level)],
    (period, phase): (usize, usize),
    prober: &mut Prober<'_>,
) -> Option<StaysAhead> {
    let by_level = before.iter().filter(|(before, _)| *before > 0.0).map(|&(before, level)| {
        let stays = figure(&swept.points, &mut prober.random, true, |points| {
            Some(u64::from(lead(&level.of_all(points), period, phase) >= before / 2.0))
        });
        let now = lead(&level.of_all(&swept.points), period, phase);
        StaysAhead { figure: stays.map(|stays| stays == 1), before, now, is_contradicted: false }
    });
    let all: Vec<StaysAhead> = by_level.collect();
    let first = *all.first()?;
    let certain = || all.iter().filter(|stays| stays.figure.verdict == Verdict::Certain);
    let stays = certain().next().copied().unwrap_or(first);
    let is_contradicted = certain().any(|other| other.figure.value != stays.figure.value);
    Some(StaysAhead { is_contradicted, ..stays })
}

/// The sweep of reads as long as a chunk, which tell the hot location; measured if there is none yet. `None` where the
/// chunk is longer than a request may be.
fn chunk_long_sweep(
    chunk: Figure<u64>,
    sweeps: &mut Vec<Swept>,
    prober: &mut Prober<'_>,
    progress: &mut dyn Progress,
) -> Result<Option<usize>, LearnError> {
    let Some(read) = chunk.value.map(ByteSize).filter(|&read| read <= prober.longest()) else { return Ok(None) };
    let known = sweeps.iter().position(|swept| swept.sweep.read == read);
    let i = match known {
        Some(i) => i,
        None => {
            let stage = format!("location profile, {read}");
            let sweep = coarse_of_chunk(read, read);
            sweeps.push(measure(prober, sweep, sweeps.first(), &stage, progress)?);
            sweeps.len() - 1
        }
    };
    Ok(Some(i))
}

/// Period of a curve that has been found to repeat.
fn read_off_chunk(swept: &Swept, prober: &mut Prober<'_>) -> Figure<u64> {
    let step = swept.sweep.step.bytes();
    figure(&swept.points, &mut prober.random, true, |points| {
        Some(best_period(&swept.levels_of(points)).0 as u64 * step)
    })
}

/// Where a curve that repeats with the chunk is lowest.
fn read_off_hot(swept: &Swept, chunk: Figure<u64>, prober: &mut Prober<'_>) -> Figure<HotLocation> {
    let step = swept.sweep.step.bytes();
    let Some(period_bytes) = chunk.value else { return Figure::unknown() };
    let period = (period_bytes / step) as usize;
    let levels = swept.levels();
    let cycles = (levels.len() / period).max(1) as f64;
    let as_low = (2.0 * scatter(&levels, period) / cycles.sqrt()).min(AS_LOW_SHARE);
    let offset = figure(&swept.points, &mut prober.random, true, |points| {
        let folded = fold(&swept.levels_of(points), period);
        Some(valley(&folded).unwrap_or_else(|| lowest_phase(&folded, as_low)) as u64 * step)
    });
    let hot = |offset_bytes| HotLocation { period_bytes, offset_bytes };
    let (value, low, high) = (offset.value.map(hot), offset.low.map(hot), offset.high.map(hot));
    let verdict = if chunk.known().is_some() { offset.verdict } else { chunk.verdict };
    Figure { value, low, high, verdict }
}

/// Share of the lowest level within which phases are as low, or what noise makes of them where that is less.
const AS_LOW_SHARE: f64 = 0.002;

/// The bottom of a valley of two straight sides: where they meet, which noise moves less than the lowest of its points.
/// `None` where the curve is none, or too short to tell.
fn valley(folded: &[f64]) -> Option<usize> {
    let n = folded.len();
    if n < VALLEY_MIN {
        return None;
    }
    let lowest = lowest_phase(folded, 0.0);
    let side = n / 4;
    let at = |steps: isize| folded[(lowest as isize + steps).rem_euclid(n as isize) as usize];
    // The points next to the lowest belong now to one side and now to the other.
    let line = |sign: isize| {
        let points: Vec<(f64, f64)> = (2..=side as isize).map(|k| ((sign * k) as f64, at(sign * k))).collect();
        line_through(&points)
    };
    let ((left, left_at), (right, right_at)) = (line(-1)?, line(1)?);
    let meets = (right_at - left_at) / (left - right);
    let bottom = left_at + left * meets;
    let rise = left.abs().min(right.abs());
    // A flat bottom is above where the sides meet.
    let is_sharp = (bottom - at(0)).abs() <= rise && left < 0.0 && right > 0.0;
    let is_even = left.abs().max(right.abs()) <= EVEN_SIDES_FACTOR * rise;
    (is_sharp && is_even && meets.abs() <= 2.0)
        .then(|| (lowest as isize + meets.round() as isize).rem_euclid(n as isize) as usize)
}

/// Factor between the slopes of the two sides of a valley, at most.
const EVEN_SIDES_FACTOR: f64 = 1.5;
/// Phases of a period from which on a valley is looked for.
const VALLEY_MIN: usize = 24;

/// Whether the lead of a place within a block of 4 KiB may be that of one die over the later of two: from elsewhere a
/// read of a block touches two of them.
fn leads_as_one_die(swept: &Swept, hot: HotLocation) -> bool {
    let step = swept.sweep.step.bytes();
    let (period, phase) = ((hot.period_bytes / step) as usize, (hot.offset_bytes / step) as usize);
    if hot.period_bytes > SHORTEST_CHUNK || !(2..=swept.points.len()).contains(&period) || phase >= period {
        return false;
    }
    let mut others = fold(&swept.levels(), period);
    let hot = others.remove(phase);
    median(others) - hot < usual_deviation(swept)
}

#[cfg(test)]
mod tests {
    use super::super::chunk::tests::{shared, swept};
    use super::*;

    #[test]
    fn slow_pages_in_one_half_of_the_window_do_not_hide_a_chunk() {
        let slow = |n: u64| if n >= 128 { 24_000 } else { 0 };
        let single = swept(4, |n| 60_000 + slow(n), None);
        let whole = |n: u64| shared(n) + slow((n + 3).min(255));
        let levels = swept(16, whole, Some(&single)).levels();
        assert_eq!(best_period(&levels).0, 4);
    }

    #[test]
    fn reads_that_are_faster_than_the_fastest_page_was_come_from_a_cache() {
        let pages = swept(4, |n| if n % 2 == 0 { 60_000 } else { 90_000 }, None);
        assert!(comes_from_a_cache(&swept(4, |n| if n % 8 == 0 { 60_000 } else { 5_000 }, None), &pages));
        assert!(!comes_from_a_cache(&swept(4, |_| 60_000, None), &pages), "of fast pages");
        assert!(!comes_from_a_cache(&swept(8, |_| 5_000, None), &pages), "another length");
    }

    #[test]
    fn the_bottom_of_a_valley_is_where_its_sides_meet() {
        let noise = |i: usize| [0.0, 0.8, -0.7, 0.4, -1.0][i % 5];
        let sharp: Vec<f64> = (0..64).map(|i: usize| 300.0 + i.abs_diff(32) as f64 + noise(i)).collect();
        assert_eq!(valley(&sharp), Some(32));
        let flat: Vec<f64> = (0..64).map(|i: usize| 300.0 + i.abs_diff(32).max(12) as f64).collect();
        assert_eq!(valley(&flat), None);
        assert_eq!(valley(&[3.0, 2.0, 1.0, 2.0]), None, "too short");
    }

    #[test]
    fn a_place_in_a_block_is_doubted_where_the_later_of_two_dies_makes_the_difference() {
        let sweep = fine(ByteSize(512));
        let aligned_saves = |by: u64| {
            let values =
                |first: bool| (0..60).map(|n| 90_000 + 50 * n - if first { by } else { 0 }).collect::<Vec<u64>>();
            Swept::of_starts(sweep, (0..128).map(|n| values(n % 8 == 0)).collect(), None)
        };
        let hot = |period_bytes| HotLocation { period_bytes, offset_bytes: 0 };
        assert!(leads_as_one_die(&aligned_saves(500), hot(4096)));
        assert!(!leads_as_one_die(&aligned_saves(5_000), hot(4096)));
        assert!(!leads_as_one_die(&aligned_saves(500), hot(8192)), "of longer chunks reads are longer");
    }

    #[test]
    fn a_superpage_of_three_channels_that_shows_by_turns_in_long_reads_alone_is_no_chunk() {
        use rand::SeedableRng;
        let noise = |n: u64| n * 7 % 5 * 100;
        let in_pairs = |n: u64| if n.is_multiple_of(2) { 84_500 } else { 78_000 };
        let by_superpages = |n: u64| if n.is_multiple_of(24) { 78_000 } else { 85_500 };
        let found = |short: &dyn Fn(u64) -> u64| {
            let sweeps = [
                swept(4, |n| 76_900 + noise(n), None),
                swept(8, |n| short(n) + noise(n), None),
                swept(16, |n| by_superpages(n) + noise(n), None),
            ];
            let mut random = Pcg64Mcg::seed_from_u64(1);
            let effects: Vec<Option<Effect>> = sweeps.iter().map(|swept| swept.effect(&mut random)).collect();
            let in_window = sweep_of_chunk(&sweeps, &effects);
            chunk_by_turns(&sweeps, in_window, &mut random).map(|(turned, _, i)| best_period(&turned[i].levels()).0)
        };
        assert_eq!(found(&in_pairs), None);
        assert_eq!(found(&|n| if n % 24 == 23 { 70_000 } else { 79_000 }), Some(24), "short reads show it as well");
    }

    #[test]
    fn the_fastest_phase_is_the_hot_one() {
        assert_eq!(lowest_phase(&[3.0, 1.0, 2.0], 0.0), 1);
        assert_eq!(lowest_phase(&[3.0, 1.001, 1.0], 0.002), 1);
    }
}
