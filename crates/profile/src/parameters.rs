//! The figures of a drive: one field each, and a list of all for code that shows, scores or counts them.
//!
//! Adding a figure is one line in [`figures!`]; reports, scores and exit codes follow from the list. [`Parameters`] are
//! of the drive; [`Limits`](crate::Limits), in `limits.rs`, are of what stands in front of it;
//! [`Card`](crate::Card), in `card.rs`, is of a drive that maps whole units; [`Wear`](crate::Wear) is from its own
//! counters.

use serde::{Deserialize, Serialize};

use crate::{Card, DeviceProfile, Figure, Limits, Verdict, Wear};

/// Where a read is served fastest: at `i · period + offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HotLocation {
    /// Distance from one hot location to the next.
    pub period_bytes: u64,
    /// The first one, below `period_bytes`.
    pub offset_bytes: u64,
}

/// A value of any figure, with what it counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// A size.
    Bytes(u64),
    /// A number of things.
    Count(u64),
    /// A time.
    Nanos(u64),
    /// A speed.
    BytesPerSecond(u64),
    /// Things a second.
    PerSecond(u64),
    /// A factor.
    Ratio(f64),
    /// A part of a whole; 1 is all of it.
    Share(f64),
    /// A time in years of 365.25 days.
    Years(f64),
    /// Bits of a byte address, as a mask.
    AddressBits(u64),
    /// Yes or no.
    Flag(bool),
    /// A place that repeats.
    Location(HotLocation),
}

/// One figure in the common form.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// The key in the document.
    pub key: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// The result.
    pub figure: Figure<Quantity>,
}

impl Entry {
    pub(crate) fn new<T: Copy>(
        key: &'static str,
        title: &'static str,
        figure: &Figure<T>,
        quantity: impl Fn(T) -> Quantity,
    ) -> Self {
        Self { key, title, figure: figure.map(quantity) }
    }

    /// Whether a probe found a value, or that there is none.
    pub fn has_result(&self) -> bool {
        self.figure.value.is_some() || self.figure.verdict == Verdict::Absent
    }
}

/// A struct with one field a figure, and the list of them.
macro_rules! figures {
    (
        $(#[$about:meta])* pub struct $name:ident;
        $($(#[$doc:meta])* $key:ident: $kind:ty, $quantity:ident, $title:literal;)*
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $($(#[$doc])* pub $key: $crate::Figure<$kind>,)*
        }

        impl $name {
            /// Every figure, in the order in which they are shown.
            pub fn entries(&self) -> Vec<$crate::Entry> {
                vec![$($crate::Entry::new(
                    stringify!($key), $title, &self.$key, $crate::Quantity::$quantity,
                ),)*]
            }

            /// Makes those of the figures that are absent unknown.
            pub fn remove_absent(&mut self, keys: &[&str]) {
                $(if keys.contains(&stringify!($key)) && self.$key.verdict == $crate::Verdict::Absent {
                    self.$key = $crate::Figure::unknown();
                })*
            }

            /// Makes a certain figure a best guess; others and unknown keys are unchanged.
            pub fn doubt(&mut self, key: &str) {
                match key {
                    $(stringify!($key) => self.$key.doubt(),)*
                    _ => {}
                }
            }
        }
    };
}
pub(crate) use figures;

figures! {
    /// The figures of a drive. One that was not probed is inconclusive and has no value.
    pub struct Parameters;
    /// Desirable write length: writes of a whole multiple of it waste nothing.
    write_unit_bytes: u64, Bytes, "write unit";
    /// The length from which on what is written reads back fastest: the unit in which the drive lays data out; absent
    /// where any length reads back equally fast.
    stripe_bytes: u64, Bytes, "stripe";
    /// Contiguous bytes on one channel of a drive that was written in order.
    chunk_bytes: u64, Bytes, "chunk";
    /// Where chunk-sized reads are served fastest.
    hot_location: HotLocation, Location, "hot locations";
    /// Whether the hot locations are still there after everything was overwritten in blocks of 4 KiB in random order.
    hot_location_survives_writes: bool, Flag, "hot after writes";
    /// The unit that a read cannot split: touching two costs more than touching one; absent where a read moves no more
    /// than it asks for.
    page_bytes: u64, Bytes, "flash page";
    /// α at 4 KiB: saturated read IOPS ÷ saturated write IOPS.
    asymmetry_4k: f64, Ratio, "asymmetry α, 4 KiB";
    /// k_r at 4 KiB: reads in flight at which throughput stops growing.
    read_concurrency_4k: u64, Count, "concurrency k_r, 4 KiB";
    /// k_w at 4 KiB: writes in flight at which throughput stops growing.
    write_concurrency_4k: u64, Count, "concurrency k_w, 4 KiB";
    /// α at 8 KiB.
    asymmetry_8k: f64, Ratio, "asymmetry α, 8 KiB";
    /// k_r at 8 KiB.
    read_concurrency_8k: u64, Count, "concurrency k_r, 8 KiB";
    /// k_w at 8 KiB.
    write_concurrency_8k: u64, Count, "concurrency k_w, 8 KiB";
    /// Latency of a 4 KiB write ÷ that of a 4 KiB read, one at a time.
    latency_asymmetry_4k: f64, Ratio, "α by latency, 4 KiB";
    /// The same at 8 KiB.
    latency_asymmetry_8k: f64, Ratio, "α by latency, 8 KiB";
    /// α at 4 KiB once garbage is collected all the time.
    asymmetry_4k_collecting: f64, Ratio, "α, 4 KiB, during GC";
    /// α at 8 KiB once garbage is collected all the time.
    asymmetry_8k_collecting: f64, Ratio, "α, 8 KiB, during GC";
    /// Latency of a 4 KiB write ÷ that of a 4 KiB read, one at a time, once garbage is collected all the time.
    latency_asymmetry_4k_collecting: f64, Ratio, "α by latency, 4 KiB, during GC";
    /// The same at 8 KiB.
    latency_asymmetry_8k_collecting: f64, Ratio, "α by latency, 8 KiB, during GC";
    /// Bytes of writes that the drive has acknowledged before they are on flash, at most.
    write_buffer_bytes: u64, Bytes, "write buffer";
    /// Time of a flush of one block that was just written, beyond that of a flush of nothing; absent where there is
    /// nothing to wait for.
    flush_ns: u64, Nanos, "flush";
    /// Time of a 4 KiB write that is durable at completion, beyond that of one that is not; absent where both take the
    /// same.
    durable_write_ns: u64, Nanos, "durable write";
    /// Whether what was acknowledged survives a power cut, as far as the time of flushes shows it.
    power_loss_protected: bool, Flag, "power-loss protection";
    /// Bytes of pages read before that the drive still has at hand.
    read_cache_bytes: u64, Bytes, "read cache";
    /// Bytes that the drive reads ahead of a sequential reader.
    read_ahead_bytes: u64, Bytes, "read-ahead";
    /// Places that serve reads independently of each other.
    parallel_units: u64, Count, "parallel units";
    /// Parts of the drive with dies of their own that writes reach by single bits of their address, and that do not
    /// help each other out; parts that no bit chooses between are not counted.
    internal_volumes: u64, Count, "internal volumes";
    /// Bits of a byte address that select the volume.
    internal_volume_bits: u64, AddressBits, "volume bits";
    /// What is erased at once.
    superblock_bytes: u64, Bytes, "superblock";
    /// Bytes that can be overwritten at random after a fill until garbage is first collected ÷ addressable bytes: the
    /// flash beyond these, without what the collection keeps free.
    over_provisioning: f64, Share, "over-provisioning";
    /// Bytes overwritten at random after a sequential fill until garbage is first collected.
    collection_onset_bytes: u64, Bytes, "GC onset";
    /// Saturated 4 KiB write IOPS before the onset ÷ those in the steady state.
    collection_cost: f64, Ratio, "GC cost";
    /// Flash bytes programmed ÷ host bytes written in the steady state of uniform random 4 KiB writes.
    write_amplification_uniform: f64, Ratio, "write amplification, uniform";
    /// The same where 80 % of the writes go to 20 % of the drive.
    write_amplification_skewed: f64, Ratio, "write amplification, 80/20";
    /// Bytes that are taken at the speed of cells with one bit.
    slc_cache_bytes: u64, Bytes, "SLC cache";
    /// Sequential write speed in the long run, after every cache.
    sustained_write_bytes_per_s: u64, BytesPerSecond, "sustained writes";
    /// Write speed of zeros ÷ that of random bytes; absent where content makes no difference.
    compression_gain: f64, Ratio, "gain from compression";
    /// Write speed of repeated blocks ÷ that of blocks that differ; absent where it makes no difference.
    deduplication_gain: f64, Ratio, "gain from deduplication";
    /// Write amplification in the steady state ÷ that after half of the drive was trimmed; absent where trim changes
    /// nothing.
    trim_gain: f64, Ratio, "gain from trim";
}

/// The figures of all lists, in the order in which they are shown.
fn entries(parameters: &Parameters, limits: &Limits, card: &Card, wear: &Wear) -> Vec<Entry> {
    [parameters.entries(), limits.entries(), card.entries(), wear.entries()].concat()
}

/// The figures of a profile, without what was learned about: how, and of which drive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Those of the drive.
    pub parameters: Parameters,
    /// The limits of what stands in front of it.
    pub limits: Limits,
    /// The units of a memory card.
    pub card: Card,
    /// What its own counters show.
    pub wear: Wear,
}

impl Figures {
    /// Every figure, in the order of [`DeviceProfile::entries`].
    pub fn entries(&self) -> Vec<Entry> {
        entries(&self.parameters, &self.limits, &self.card, &self.wear)
    }
}

impl DeviceProfile {
    /// Every figure: those of the drive, then the limits, then those of a card, then its counters'.
    pub fn entries(&self) -> Vec<Entry> {
        entries(&self.parameters, &self.limits, &self.card, &self.wear)
    }

    /// The figures that were probed: they have a value, are absent, or have evidence.
    pub fn probed_entries(&self) -> impl Iterator<Item = Entry> {
        self.entries()
            .into_iter()
            .filter(|entry| entry.has_result() || self.evidence.iter().any(|evidence| evidence.figure == entry.key))
    }

    /// Makes a certain figure of any list a best guess; others and unknown keys are unchanged.
    pub fn doubt(&mut self, key: &str) {
        self.parameters.doubt(key);
        self.limits.doubt(key);
        self.card.doubt(key);
        self.wear.doubt(key);
    }

    /// Whether each of these is certain or absent; figures that were skipped to spare the drive do not count.
    pub fn is_conclusive(&self) -> bool {
        let left_out = |entry: &Entry| self.evidence.iter().any(|e| e.figure == entry.key && e.left_out);
        self.probed_entries().all(|entry| entry.figure.verdict != Verdict::Inconclusive || left_out(&entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_nobody_looked_for_is_inconclusive() {
        let nothing: Parameters = toml::from_str("").unwrap();
        assert!(nothing.entries().iter().all(|entry| entry.figure == Figure::unknown()));
    }

    #[test]
    fn every_figure_is_listed_once_under_its_key() {
        let parameters = Parameters { chunk_bytes: Figure::certain(4096, 4096, 8192), ..Parameters::default() };
        let document = serde_json::to_value(&parameters).unwrap();
        let entries = parameters.entries();
        assert_eq!(document.as_object().unwrap().len(), entries.len());
        assert!(entries.iter().all(|entry| document.get(entry.key).is_some()));
        let chunk = entries.iter().find(|entry| entry.key == "chunk_bytes").unwrap();
        assert_eq!(chunk.figure.high, Some(Quantity::Bytes(8192)));
    }
}
