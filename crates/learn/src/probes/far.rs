//! What is beyond the region: whether the rest of the drive is served by the same units.
//!
//! A drive may give ranges of its addresses flash of their own (NVM sets, namespaces, partitions of the channels), of
//! which the region shows one. So a small area is written in random order at each place whose address differs from the
//! region's start in one higher bit. Of pairs of reads, one here and one there, as many wait for each other as of pairs
//! within the region where both are on the same units, and none where they do not: then the bit selects a volume, and
//! the units of the area are counted and added.
//!
//! ```text
//!   0 ▒▒░░░░░░ region │ ▒▒ 2^28       │ ▒▒ 2^29                       │          ▒ areas that are written
//!     └── pairs ────────┘               ┆
//!     └── pairs ────────────────────────┘
//! ```
//!
//! Only where the whole drive may be written. Source: the pairs are those of [`super::units`]; NVM sets are in NVM
//! Express Base Specification 1.4, section 4.9.

use flashwise_block::{ByteSize, Progress};
use flashwise_profile::{Figure, Verdict};

use crate::LearnError;
use crate::draft::{ProfileDraft, key};
use crate::prober::Prober;

use super::units::{self, Conflicts, Places, Units};
use super::volumes::Volumes;

/// What is written at each place: many blocks for each unit of hundreds.
const AREA: ByteSize = ByteSize::mib(16);
/// Bits that are examined in combination, at most.
const BITS_MAX: usize = 3;
const BLOCK: ByteSize = ByteSize::kib(4);
/// Pairs that should wait if a bit selects nothing: of 40 expected, chance leaves four or fewer of fewer than one bit
/// in 10⁹.
const WAITING_PAIRS: f64 = 40.0;
/// Share of these up to which a bit selects a volume: a late read may look like one that waited.
const NONE_SHARE: f64 = 0.1;

/// Adds units and volumes of the rest of the drive to those that the region has shown.
pub(super) fn probe(
    prober: &mut Prober<'_>,
    found: (Volumes, Units),
    conflicts: Conflicts,
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<(Volumes, Units), LearnError> {
    let bits = higher_bits(prober.region(), prober.capacity());
    if bits.is_empty() || !prober.may_wear || conflicts.pairs.may_be_cached() {
        return Ok(found);
    }
    let areas: Vec<ByteSize> = bits.iter().map(|&bit| ByteSize(1 << bit)).collect();
    scatter(prober, &[&[ByteSize(0)], &areas[..]].concat(), progress)?;
    let mut selects = Vec::new();
    for (bit, far) in std::iter::zip(bits, areas) {
        if never_waits(prober, conflicts, far, progress)? {
            selects.push(bit);
        }
    }
    if selects.is_empty() {
        return Ok(found);
    }
    let mut others = Vec::new();
    if selects.len() <= BITS_MAX {
        let (capacity, mut areas) = (prober.capacity(), combinations(&selects));
        areas.retain(|&at| at + AREA <= capacity);
        scatter(prober, &areas, progress)?;
        for from in areas {
            others.push(units::count_at(prober, conflicts, Places { from, bytes: AREA }, progress)?);
        }
    }
    let (volumes, units) = add(found, &selects, &others);
    volumes.set(draft);
    draft.set(key!(parallel_units), units.count);
    let more = format!(
        "reads whose address differs from the region's in any of the bits {selects:?} never wait for reads of the \
         region"
    );
    for key in ["parallel_units", "internal_volumes", "internal_volume_bits"] {
        draft.add_to_reason(key, &more);
    }
    Ok((volumes, units))
}

/// Bits of addresses beyond the region at which the drive has space for an area.
fn higher_bits(region: ByteSize, capacity: ByteSize) -> Vec<u32> {
    (0..63).filter(|&bit| 1 << bit >= region.bytes() && (1 << bit) + AREA.bytes() <= capacity.bytes()).collect()
}

/// The addresses that differ from 0 in some of the bits.
fn combinations(bits: &[u32]) -> Vec<ByteSize> {
    let of = |choice: usize| (0..bits.len()).filter(|n| choice >> n & 1 == 1).map(|n| 1 << bits[n]).sum();
    (1..1 << bits.len()).map(|choice| ByteSize(of(choice))).collect()
}

/// Writes areas in blocks in random order, pushes that out of whatever buffer by writing the rest of the region, and
/// lets it come to rest.
fn scatter(prober: &mut Prober<'_>, areas: &[ByteSize], progress: &mut dyn Progress) -> Result<(), LearnError> {
    let block = BLOCK.max(prober.logical_block());
    for (done, &at) in areas.iter().enumerate() {
        prober.advance(progress, STAGE, done as f64 / areas.len() as f64)?;
        for n in prober.shuffled(0..AREA / block) {
            prober.write(at + block * n, block)?;
        }
    }
    let long = prober.longest();
    for n in AREA / long..prober.region() / long {
        prober.write(long * n, long)?;
    }
    prober.come_to_rest()
}

const STAGE: &str = "beyond the region";

/// Whether no read of the first area waits for one of another; not where a buffer answers for most of them.
fn never_waits(
    prober: &mut Prober<'_>,
    conflicts: Conflicts,
    far: ByteSize,
    progress: &mut dyn Progress,
) -> Result<bool, LearnError> {
    let (here, there) = (Places { from: ByteSize(0), bytes: AREA }, Places { from: far, bytes: AREA });
    let pairs = (WAITING_PAIRS / conflicts.share).ceil() as usize;
    let (mut waiting, mut on_flash) = (0, 0);
    for n in 0..pairs {
        if n.is_multiple_of(200) {
            prober.advance(progress, STAGE, n as f64 / pairs as f64)?;
        }
        let pair = [here.random(prober), there.random(prober)];
        let Some(waits) = conflicts.waits(prober, pair)? else { continue };
        waiting += usize::from(waits);
        on_flash += 1;
    }
    Ok(on_flash * 2 >= pairs && waiting as f64 <= NONE_SHARE * conflicts.share * on_flash as f64)
}

/// Adds the units of the other areas, and the bits that select them.
fn add((volumes, units): (Volumes, Units), selects: &[u32], others: &[Figure<u64>]) -> (Volumes, Units) {
    let mask: u64 = selects.iter().map(|bit| 1 << bit).sum();
    let all_counted = others.len() + 1 == 1 << selects.len();
    let sum = units.count.value.map(|units| units + others.iter().filter_map(|of| of.value).sum::<u64>());
    let is_known = all_counted && others.iter().all(|of| of.known().is_some());
    let count = match sum {
        Some(sum) => {
            let verdict = if is_known { units.count.verdict } else { Verdict::Inconclusive };
            Figure { verdict, ..Figure::certain(sum, sum, sum) }
        }
        None => units.count,
    };
    // Without volumes in the region, it is one of those that these bits select.
    let within = match volumes.count.verdict {
        Verdict::Absent => Figure::certain(1, 1, 1),
        _ => volumes.count,
    };
    let bits = match volumes.bits.verdict {
        Verdict::Absent => Figure::certain(0, 0, 0),
        _ => volumes.bits,
    };
    let volumes = Volumes { count: within.map(|volumes| volumes << selects.len()), bits: bits.map(|bits| bits | mask) };
    (volumes, Units { count, ..units })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_beyond_the_region_are_those_at_which_the_drive_has_room() {
        assert_eq!(higher_bits(ByteSize::mib(256), ByteSize::gib(1)), [28, 29]);
        assert_eq!(higher_bits(ByteSize::mib(256), ByteSize::mib(512)), [28]);
        assert!(higher_bits(ByteSize::mib(256), ByteSize::mib(264)).is_empty());
        assert_eq!(combinations(&[28, 30]), [1 << 28, 1 << 30, (1 << 28) + (1 << 30)].map(ByteSize));
    }

    #[test]
    fn units_of_areas_that_never_wait_for_the_region_are_added_and_their_bits_named() {
        let certain = |n: u64| Figure::certain(n, n, n);
        let units = |count| Units { count, conflicts: None };
        let within = Volumes { count: certain(4), bits: certain(0b11 << 14) };
        let (volumes, all) = add((within, units(certain(4))), &[29], &[certain(4)]);
        assert_eq!(all.count, certain(8));
        assert_eq!(volumes.count, certain(8));
        assert_eq!(volumes.bits, certain(0b11 << 14 | 1 << 29));
        // The other part has no volumes within, and what it has of units is not known.
        let within = Volumes { count: Figure::absent(), bits: Figure::absent() };
        let (volumes, all) = add((within, units(certain(3))), &[29], &[Figure::unknown()]);
        assert_eq!(all.count.verdict, Verdict::Inconclusive);
        assert_eq!(volumes.count, certain(2));
        assert_eq!(volumes.bits, certain(1 << 29));
    }
}
