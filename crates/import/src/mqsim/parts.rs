//! Where MQSim's flows are: on which channels, chips, dies and planes, and at which logical addresses.
//!
//! MQSim gives each plane's pages in equal shares to the flows that are on it, and a flow the sum of its shares, as if
//! they were spread like that. It lays them evenly over its planes all the same. So where flows overlap in part, a
//! plane may be promised more than it holds; that goes well for as long as the working sets are small.

use std::collections::BTreeSet;

use super::super::ImportError;
use super::super::figure::floor;
use super::super::section::Section;
use super::device::Ssd;
use super::{Notes, SECTOR};
use flashwise_ssd::config::DomainConfig;

/// The tags that say which part of the drive a flow is on, from channels down to planes.
const PART_TAGS: [&str; 4] = ["Channel_IDs", "Chip_IDs", "Die_IDs", "Plane_IDs"];

/// The part of a drive that a flow is on: the numbers at each level; `None` where the file leaves a level open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Part([Option<BTreeSet<u64>>; 4]);

impl Part {
    pub(super) fn read(flow: &Section<'_>) -> Result<Self, ImportError> {
        let mut part = Self::default();
        for (level, tag) in part.0.iter_mut().zip(PART_TAGS) {
            let Some(text) = flow.text(tag)?.filter(|text| !text.is_empty()) else { continue };
            // A comma may are behind the last number too.
            let numbers = text.split(',').map(str::trim).filter(|number| !number.is_empty()).map(str::parse);
            let numbers: Result<BTreeSet<u64>, _> = numbers.collect();
            *level = Some(numbers.map_err(|_| flow.refused(tag, &text, "numbers from 0 on, separated by commas"))?);
        }
        Ok(part)
    }

    /// A number that is not below the count of its level, with the level's tag.
    pub(super) fn beyond(&self, counts: [u64; 4]) -> Option<(&'static str, u64)> {
        let levels = self.0.iter().zip(counts).zip(PART_TAGS);
        let mut last = levels.filter_map(|((level, count), tag)| Some((tag, *level.as_ref()?.last()?, count)));
        last.find(|&(_, last, count)| last >= count).map(|(tag, last, _)| (tag, last))
    }

    /// How many there are at each level, where a level that is left open has `counts`.
    pub(super) fn counts(&self, counts: [u64; 4]) -> [u64; 4] {
        let mut kept = counts;
        let levels = kept.iter_mut().zip(&self.0);
        levels.for_each(|(kept, level)| *kept = level.as_ref().map_or(*kept, |level| level.len() as u64));
        kept
    }

    /// Whether two are the same planes of a drive of `counts`: a level may name all of its numbers, or be left open.
    pub(super) fn is_same(&self, other: &Self, counts: [u64; 4]) -> bool {
        let all = |level: &Option<BTreeSet<u64>>, count: u64| level.as_ref().is_none_or(|it| it.len() as u64 == count);
        self.0.iter().zip(&other.0).zip(counts).all(|((a, b), count)| a == b || (all(a, count) && all(b, count)))
    }

    fn planes(&self, counts: [u64; 4]) -> u64 {
        self.counts(counts).iter().fold(1, |all, &count| all.saturating_mul(count))
    }

    fn holds(&self, numbers: [u64; 4]) -> bool {
        self.0.iter().zip(numbers).all(|(level, number)| level.as_ref().is_none_or(|level| level.contains(&number)))
    }

    fn domain(&self, capacity_bytes: u64) -> DomainConfig {
        // No number is beyond the drive, and a drive that is divided has at most 2^20 planes.
        let numbers =
            |level: &BTreeSet<u64>| level.iter().map(|&number| u32::try_from(number).unwrap_or(u32::MAX)).collect();
        let [channels, chips, dies, planes] = [0, 1, 2, 3].map(|level: usize| self.0[level].as_ref().map(numbers));
        DomainConfig { capacity_bytes, channels, chips, dies, planes }
    }
}

/// What of the drive's logical addresses a flow has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// Where it starts, bytes.
    pub(super) start: u64,
    /// What MQSim lets it address, bytes; where there is no space for that, the flow keeps to a part of it.
    pub(super) own: u64,
    /// From there to the next flow's: whole pages on each of its planes, bytes.
    pub(super) pitch: u64,
    /// No other flow has any.
    pub(super) is_all: bool,
}

/// The shares of all flows.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    pub(super) of_flows: Vec<Share>,
    /// What of the flash each has to itself or shares; empty where all of them are on all of it.
    pub(super) domains: Vec<DomainConfig>,
    /// Less is offered than MQSim's drive offers.
    pub(super) is_cut: bool,
    /// Pages that the fullest plane holds.
    pub(super) most_pages: u64,
    /// Flows on the plane that has most of them.
    pub(super) most_flows: u64,
}

impl Shares {
    /// Of `flows` flows that are all over the drive.
    pub(super) fn even(ssd: &Ssd, flows: u64) -> Self {
        let planes = ssd.planes_in_all().max(1);
        let promised = planes.saturating_mul(ssd.sectors_of_plane(flows)).saturating_mul(SECTOR);
        let possible = ssd.pages_for_data().checked_div(flows).unwrap_or(0).saturating_mul(ssd.page_bytes);
        let possible = planes.saturating_mul(possible);
        // Where garbage collection needs most of it, it is another drive.
        let is_cut = possible < promised && possible >= promised / 2;
        let own = if is_cut { possible } else { promised };
        let row = planes.saturating_mul(ssd.page_bytes).max(1);
        let pitch = own.div_ceil(row).saturating_mul(row);
        let share = |n: u64| Share { start: n.saturating_mul(pitch), own, pitch, is_all: flows == 1 };
        Self {
            // MQSim's own limit is far below.
            of_flows: (0..flows.min(1 << 16)).map(share).collect(),
            domains: Vec::new(),
            is_cut,
            most_pages: pitch.saturating_mul(flows).checked_div(row).unwrap_or_default(),
            most_flows: flows,
        }
    }

    /// Of flows on different parts, each with the part of its share that it may come to use, at most 1.
    ///
    /// Where a plane would be given more than it holds, what no flow comes to use is left out.
    pub(super) fn apart(ssd: &Ssd, flows: &[(&Part, f64)], notes: &mut Notes) -> Self {
        let whole = Self::with_domains_of(ssd, flows, |_, pitch, _| pitch);
        if whole.most_pages <= ssd.pages_for_data() {
            return whole;
        }
        notes.add(
            "<Channel_IDs> etc.: MQSim overcommits planes that flows share; here the capacity is what the working \
             sets use",
        );
        Self::with_domains_of(ssd, flows, |own, _, used| floor((own as f64 * used).ceil()).unwrap_or(own))
    }

    fn with_domains_of(ssd: &Ssd, flows: &[(&Part, f64)], offered: impl Fn(u64, u64, f64) -> u64) -> Self {
        let counts = ssd.counts();
        let planes = all_planes(counts);
        let flows_on = |numbers: [u64; 4]| flows.iter().filter(|(part, _)| part.holds(numbers)).count() as u64;
        let sharers: Vec<u64> = planes.iter().map(|&numbers| flows_on(numbers)).collect();
        let mut held = vec![0_u64; planes.len()];
        let (mut of_flows, mut domains, mut start) = (Vec::new(), Vec::new(), 0_u64);
        for &(part, used) in flows {
            let on = || planes.iter().zip(&sharers).enumerate().filter(|(_, (numbers, _))| part.holds(**numbers));
            let sectors = on().map(|(_, (_, &sharers))| ssd.sectors_of_plane(sharers));
            let own = sectors.fold(0_u64, u64::saturating_add).saturating_mul(SECTOR);
            let row = part.planes(counts).saturating_mul(ssd.page_bytes).max(1);
            let whole_rows = |bytes: u64| bytes.div_ceil(row).max(1).saturating_mul(row);
            let pitch = whole_rows(offered(own, whole_rows(own), used));
            let rows = pitch.div_ceil(row);
            on().for_each(|(nth, _)| held[nth] = held[nth].saturating_add(rows));
            of_flows.push(Share { start, own, pitch, is_all: false });
            domains.push(part.domain(pitch));
            start = start.saturating_add(pitch);
        }
        let most = |numbers: &[u64]| numbers.iter().copied().max().unwrap_or(0);
        Self { of_flows, domains, is_cut: false, most_pages: most(&held), most_flows: most(&sharers) }
    }

    /// Bytes that the drive offers.
    pub(super) fn capacity_bytes(&self) -> u64 {
        self.of_flows.iter().fold(0, |sum: u64, share| sum.saturating_add(share.pitch))
    }
}

/// Every plane of a drive by its numbers.
fn all_planes([channels, chips, dies, planes]: [u64; 4]) -> Vec<[u64; 4]> {
    let below = |count: u64| 0..count;
    let chips = below(channels).flat_map(|channel| below(chips).map(move |chip| (channel, chip)));
    let dies = chips.flat_map(|(channel, chip)| below(dies).map(move |die| [channel, chip, die]));
    dies.flat_map(|[channel, chip, die]| below(planes).map(move |plane| [channel, chip, die, plane])).collect()
}
