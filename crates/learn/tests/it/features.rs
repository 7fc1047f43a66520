//! Drives that have one feature each, and were made by other means than the simulator: servers with queues, a noise
//! with a heavy tail, and no flash at all (`support/model.rs`). The feature is found with its size, and what is not
//! there is not told as certain.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use crate::support;
use flashwise_block::{ByteSize, Nanos, Silent};
use flashwise_learn::{LearnOptions, learn};
use flashwise_profile::{DeviceProfile, Figure, Quantity, Verdict};
use support::model::{Model, ModelDrive, Placement, Service};
use support::{REGION, entry, layout, reason, small_drive, through_toml};

fn learned_anew(model: Model, seed: u64) -> DeviceProfile {
    let mut drive = ModelDrive::new(model, seed);
    let options = LearnOptions { region: REGION, seed, ..LearnOptions::complete("a model") };
    learn(&mut drive, &options, &mut Silent).unwrap()
}

/// Learned once: the same drive with the same seed has the same profile each time, which a test below verifies.
fn learned_with(model: Model, seed: u64) -> Arc<DeviceProfile> {
    static PROFILES: Mutex<BTreeMap<String, Arc<OnceLock<Arc<DeviceProfile>>>>> = Mutex::new(BTreeMap::new());
    let profile = Arc::clone(PROFILES.lock().unwrap().entry(format!("{model:?}, seed {seed}")).or_default());
    Arc::clone(profile.get_or_init(|| Arc::new(learned_anew(model, seed))))
}

fn learned(model: Model) -> Arc<DeviceProfile> {
    learned_with(model, 1)
}

/// What a drive of servers does not have, whatever else it has.
const NEVER: [&str; 6] = [
    "read_ahead_bytes",
    "superblock_bytes",
    "write_amplification_uniform",
    "write_amplification_skewed",
    "page_bytes",
    "stripe_bytes",
];

/// What a drive has that collects garbage; none of these does.
const COLLECTING: [&str; 3] = ["over_provisioning", "collection_onset_bytes", "collection_cost"];

/// What only some of them have.
const SOMETIMES: [&str; 10] = [
    "compression_gain",
    "deduplication_gain",
    "slc_cache_bytes",
    "read_cache_bytes",
    "write_buffer_bytes",
    "parallel_units",
    "internal_volumes",
    "internal_volume_bits",
    "chunk_bytes",
    "hot_location",
];

/// None of the features is told as certain but those that are there.
fn assert_nothing_else(profile: &DeviceProfile, there: &[&str]) {
    let absent = NEVER.iter().chain(&SOMETIMES).copied().filter(|key| !there.contains(key));
    assert_none_of(profile, &absent.collect::<Vec<_>>());
}

fn assert_none_of(profile: &DeviceProfile, absent: &[&str]) {
    let wrong: Vec<String> = absent
        .iter()
        .map(|key| entry(profile, key))
        .filter(|entry| entry.figure.verdict == Verdict::Certain)
        .map(|entry| format!("{}: {:?}, {:?}", entry.key, entry.figure.value, reason(profile, entry.key)))
        .collect();
    assert!(wrong.is_empty(), "told as certain, and not there: {wrong:#?}");
}

fn number(quantity: Quantity) -> f64 {
    match quantity {
        Quantity::Bytes(n)
        | Quantity::Count(n)
        | Quantity::Nanos(n)
        | Quantity::BytesPerSecond(n)
        | Quantity::PerSecond(n) => n as f64,
        Quantity::Ratio(x) => x,
        other => panic!("{other:?} is no number"),
    }
}

/// The figure is certain, and within a tenth of what the drive was made with.
fn assert_about(profile: &DeviceProfile, key: &str, truth: f64) {
    let Figure { value, verdict, .. } = entry(profile, key).figure;
    let about = reason(profile, key);
    assert_eq!(verdict, Verdict::Certain, "{key}: {value:?}, {about:?}");
    let value = number(value.unwrap());
    assert!((value - truth).abs() <= 0.1 * truth, "{key}: {value} instead of {truth}, {about:?}");
}

fn assert_exactly(profile: &DeviceProfile, key: &str, truth: Quantity) {
    let figure = entry(profile, key).figure;
    assert_eq!(figure.verdict, Verdict::Certain, "{key}: {figure:?}, {:?}", reason(profile, key));
    assert_eq!(figure.value, Some(truth), "{key}: {:?}", reason(profile, key));
}

const MIB: f64 = 1_048_576.0;

#[test]
fn a_drive_with_no_feature_at_all_is_told_as_such() {
    for seed in 1..4 {
        let profile = learned_with(Model::default(), seed);
        assert_nothing_else(&profile, &[]);
        assert_none_of(&profile, &COLLECTING);
        for key in ["compression_gain", "deduplication_gain", "read_cache_bytes", "slc_cache_bytes"] {
            assert_eq!(entry(&profile, key).figure.verdict, Verdict::Absent, "{key}: {:?}", reason(&profile, key));
        }
    }
}

#[test]
fn as_many_requests_as_servers_saturate_a_drive_and_what_they_take_is_its_asymmetry() {
    let profile = learned(Model::default());
    for length in ["4k", "8k"] {
        for operation in ["read", "write"] {
            let key = format!("{operation}_concurrency_{length}");
            let figure = entry(&profile, &key).figure;
            assert_eq!(figure.verdict, Verdict::Certain, "{key}: {figure:?}");
            let k = number(figure.value.unwrap());
            assert!((7.0..=9.0).contains(&k), "{key}: {k} instead of 8");
        }
        assert_about(&profile, &format!("asymmetry_{length}"), 3.0);
        assert_about(&profile, &format!("latency_asymmetry_{length}"), 3.0);
    }
}

#[test]
fn a_drive_without_a_buffer_loses_nothing_in_a_power_cut() {
    let profile = learned(Model::default());
    assert_exactly(&profile, "power_loss_protected", Quantity::Flag(true));
    for key in ["flush_ns", "durable_write_ns"] {
        assert_ne!(entry(&profile, key).figure.verdict, Verdict::Certain, "{key}");
    }
}

#[test]
fn a_drive_that_compresses_is_told_with_what_it_gains() {
    let profile = learned(Model { zeros_save: 0.6, ..Model::default() });
    assert_about(&profile, "compression_gain", 2.5);
    assert_nothing_else(&profile, &["compression_gain"]);
}

#[test]
fn a_drive_that_deduplicates_is_told_with_what_it_gains() {
    let profile = learned(Model { repeats_save: 0.75, ..Model::default() });
    assert_about(&profile, "deduplication_gain", 4.0);
}

#[test]
fn zeros_that_repeat_are_no_compression() {
    let profile = learned(Model { repeats_save: 0.75, ..Model::default() });
    assert_nothing_else(&profile, &["deduplication_gain"]);
}

/// After a rest this drive is no faster than before: nobody can tell what it has from units that are full before
/// others.
#[test]
fn what_is_written_fast_after_a_trim_and_not_after_a_rest_is_told_and_may_be_no_cache_of_fast_cells() {
    for (capacity, mib) in [(512, 96), (512, 240)] {
        let capacity = ByteSize::mib(capacity);
        let profile = learned(Model { capacity, fast_writes: Some((ByteSize::mib(mib), 4.0)), ..Model::default() });
        let Figure { value, verdict, .. } = entry(&profile, "slc_cache_bytes").figure;
        let (told, about) = (number(value.unwrap()), reason(&profile, "slc_cache_bytes").unwrap());
        assert!(
            verdict == Verdict::Inconclusive && about.contains("a second fill, which pauses"),
            "{verdict:?}: {about}"
        );
        assert!((told / (mib as f64 * MIB) - 1.0).abs() < 0.1, "{told} bytes instead of {mib} MiB");
        assert_nothing_else(&profile, &[]);
        // 32 writes of 1 MiB in flight keep eight servers busy.
        let write = Model::default().write;
        let speed = 8.0 * 1e9 / (4.0 * (write.fixed_ns + write.per_byte_ns * MIB)) * MIB;
        let told = entry(&profile, "sustained_write_bytes_per_s").figure;
        let told = number(told.value.unwrap());
        assert!((told / speed - 1.0).abs() < 0.1, "{told} B/s instead of {speed}");
    }
}

#[test]
fn a_drive_too_small_to_show_its_cache_of_fast_cells_is_not_told_to_have_none() {
    let capacity = ByteSize::mib(128);
    let profile = learned(Model { capacity, fast_writes: Some((ByteSize::mib(24), 4.0)), ..Model::default() });
    assert_eq!(entry(&profile, "slc_cache_bytes").figure.verdict, Verdict::Inconclusive);
}

#[test]
fn a_read_cache_is_as_large_as_what_it_answers_for() {
    for kib in [1024, 4096, 10_240] {
        let profile = learned(Model { read_cache: ByteSize::kib(kib), ..Model::default() });
        assert_about(&profile, "read_cache_bytes", kib as f64 * 1024.0);
        // To a reader the cache's own blocks of 4 KiB are pages: touching two takes both of them to be at hand.
        assert_nothing_else(&profile, &["read_cache_bytes", "page_bytes"]);
    }
}

#[test]
fn a_write_buffer_is_as_large_as_what_it_takes_before_the_servers_set_the_pace() {
    for mib in [2, 8, 24] {
        let profile = learned(Model { write_buffer: ByteSize::mib(mib), ..Model::default() });
        assert_about(&profile, "write_buffer_bytes", mib as f64 * MIB);
        assert_nothing_else(&profile, &["write_buffer_bytes"]);
        assert_exactly(&profile, "power_loss_protected", Quantity::Flag(false));
    }
}

#[test]
fn a_write_buffer_that_fills_is_no_onset_of_collection() {
    for mib in [2, 8, 24] {
        let profile = learned(Model { write_buffer: ByteSize::mib(mib), ..Model::default() });
        assert_none_of(&profile, &COLLECTING);
    }
}

/// Eight servers that take pieces of 16 KiB by turns.
fn by_address() -> Model {
    Model { placement: Placement::ByAddress { piece: ByteSize::kib(16) }, tail_one_in: 0, ..Model::default() }
}

const BY_ADDRESS: [&str; 5] =
    ["parallel_units", "internal_volumes", "internal_volume_bits", "chunk_bytes", "hot_location"];

#[test]
fn units_that_the_address_selects_are_counted_and_their_bits_named() {
    let profile = learned(by_address());
    assert_exactly(&profile, "parallel_units", Quantity::Count(8));
    assert_exactly(&profile, "internal_volumes", Quantity::Count(8));
    assert_exactly(&profile, "internal_volume_bits", Quantity::AddressBits(0b111 << 14));
    assert_nothing_else(&profile, &BY_ADDRESS);
}

#[test]
fn pieces_that_lie_on_one_unit_are_the_chunk() {
    assert_exactly(&learned(by_address()), "chunk_bytes", Quantity::Bytes(16 << 10));
}

#[test]
fn pieces_that_no_power_of_two_divides_are_the_chunk_all_the_same() {
    for kib in [12, 24, 40] {
        let placement = Placement::ByAddress { piece: ByteSize::kib(kib) };
        let read = Service { fixed_ns: 70_000.0, per_byte_ns: 2.0 };
        let profile = learned(Model { placement, read, ..by_address() });
        assert_exactly(&profile, "chunk_bytes", Quantity::Bytes(kib << 10));
    }
}

#[test]
fn a_drive_that_never_collects_has_no_onset_of_collection() {
    assert_none_of(&learned(by_address()), &COLLECTING);
}

#[test]
fn units_that_no_single_bit_selects_are_counted_all_the_same() {
    let profile = learned(Model { servers: 6, ..by_address() });
    assert_exactly(&profile, "parallel_units", Quantity::Count(6));
}

#[test]
fn a_bit_that_halves_the_units_selects_two_volumes() {
    // Of six units by turns, pieces of even number are on three, those of odd number on the others; no other bit parts
    // them.
    let profile = learned(Model { servers: 6, ..by_address() });
    assert_exactly(&profile, "internal_volumes", Quantity::Count(2));
    assert_exactly(&profile, "internal_volume_bits", Quantity::AddressBits(1 << 14));
    assert_nothing_else(&profile, &BY_ADDRESS);
}

#[test]
fn late_reads_hide_no_unit() {
    let profile = learned(Model { tail_one_in: 200, ..by_address() });
    assert_exactly(&profile, "parallel_units", Quantity::Count(8));
}

/// The same drive with a clock that tells microseconds.
fn coarse(model: Model) -> Model {
    Model { granularity: Nanos::micros(1), ..model }
}

#[test]
fn a_clock_of_microseconds_makes_no_feature() {
    assert_nothing_else(&learned(coarse(Model::default())), &[]);
}

#[test]
fn a_clock_of_microseconds_hides_no_feature() {
    let profile = learned(coarse(Model { write_buffer: ByteSize::mib(8), ..Model::default() }));
    assert_about(&profile, "write_buffer_bytes", 8.0 * MIB);
    let profile = learned(coarse(Model { read_cache: ByteSize::mib(4), ..Model::default() }));
    assert_about(&profile, "read_cache_bytes", 4.0 * MIB);
    let profile = learned(coarse(by_address()));
    assert_exactly(&profile, "parallel_units", Quantity::Count(8));
}

#[test]
fn the_same_seed_gives_the_same_profile_to_the_bit() {
    let model = Model { write_buffer: ByteSize::mib(2), ..Model::default() };
    assert_eq!(*learned(model.clone()), learned_anew(model, 1));
}

#[test]
fn asymmetry_and_concurrency_are_learned_at_any_size_that_is_asked() {
    let sizes = [ByteSize::kib(16), ByteSize::kib(4), ByteSize::kib(16)];
    let options = LearnOptions { request_sizes: sizes.to_vec(), ..layout() };
    let profile = learn(&mut small_drive(), &options, &mut Silent).unwrap();
    let [four, sixteen] = &profile.at_sizes[..] else { panic!("{:?}", profile.at_sizes) };
    assert_eq!((four.request_bytes, sixteen.request_bytes), (4096, 16384));
    let p = &profile.parameters;
    let near = |again: f64, first: Option<f64>, what: &str| {
        let first = first.unwrap();
        assert!((again / first - 1.0).abs() < 0.15, "{what}: {again} beside {first}");
    };
    near(four.asymmetry.value.unwrap(), p.asymmetry_4k.value, "α at 4 KiB");
    let k_r = |count: Option<u64>| count.map(|k| k as f64);
    near(k_r(four.read_concurrency.value).unwrap(), k_r(p.read_concurrency_4k.value), "k_r at 4 KiB");
    // One request is cut over more dies, so fewer of them fill the drive.
    assert!(sixteen.read_concurrency.value < p.read_concurrency_4k.value, "{sixteen:?}");
    assert!(profile.curves.throughput.iter().any(|curve| curve.request_bytes == 16384));
    assert_eq!(through_toml(&profile), profile);
}

#[test]
fn a_size_that_is_asked_of_a_finished_profile_is_all_that_is_learned() {
    let first = learn(&mut small_drive(), &layout(), &mut Silent).unwrap();
    let options =
        LearnOptions { request_sizes: vec![ByteSize::kib(32)], resume: Some(Box::new(first.clone())), ..layout() };
    let second = learn(&mut small_drive(), &options, &mut Silent).unwrap();
    assert_eq!(second.at_sizes.len(), 1);
    assert_eq!(second.parameters, first.parameters);
}

#[test]
fn a_size_that_no_request_can_have_is_refused_in_words() {
    for (size, why) in [(ByteSize(3000), "multiple of 512 B"), (ByteSize::mib(8), "at most"), (ByteSize(0), "multiple")]
    {
        let options = LearnOptions { request_sizes: vec![size], ..layout() };
        let error = learn(&mut small_drive(), &options, &mut Silent).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
