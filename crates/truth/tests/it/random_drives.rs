//! Random drives: valid, the same for ever, with each feature as often as the module says, and working.

use flashwise_block::Silent;
use flashwise_sim::{Precondition, SimulationOptions, enter_steady_state, simulate};
use flashwise_ssd::config::{
    CellType, CommandScope, GcMode, GcPolicy, Interface, Mapping, PartialPages, Placement, Scheduling,
    StaticWearLevelling, StreamPolicy, Suspend, WritePolicy,
};
use flashwise_ssd::ftl::KeptAs;
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use flashwise_trace::workload::Workload;
use flashwise_truth::random::{random_device, random_toml};

const SEEDS: u64 = 2_000;

/// How many of them work in `make test`, which has each feature a dozen times.
const WORKING: u64 = 300;

const MIX: &str = r#"
    name = "mix"
    [[flows]]
    name = "mix"
    requests = 1500
    synthetic.read_share = 0.4
    synthetic.trim_share = 0.05
    synthetic.flush_every = 100
    synthetic.access = "random"
    synthetic.size.fixed.bytes = 16384
    synthetic.align_bytes = 4096
    synthetic.pacing.closed.queue_depth = 16
"#;

#[test]
fn a_seed_gives_the_same_file_for_ever() {
    for (seed, kept) in [
        (1, include_str!("random/seed-1.toml")),
        (2, include_str!("random/seed-2.toml")),
        (200, include_str!("random/seed-200.toml")),
    ] {
        assert_eq!(random_toml(seed).unwrap(), kept, "seed {seed}");
    }
}

/// Runs the mix on a filled drive; of those that theory covers, every tenth starts in the midst of its garbage
/// collection.
fn run(seed: u64, workload: &Workload) {
    let config = random_device(seed).unwrap();
    let new = || SimulatedSsd::new(config.clone(), seed).unwrap();
    let can_be_steady = seed % 10 == 1 && enter_steady_state(&mut new(), seed).is_ok();
    let precondition = match config.ftl.mapping {
        Mapping::InPlace => Precondition::Empty,
        // It is not laid out at once.
        _ if config.reduction.is_some() => Precondition::Empty,
        _ if can_be_steady => Precondition::Analytic,
        _ => Precondition::Fill,
    };
    let mut drive = new();
    let options = SimulationOptions { precondition, ..SimulationOptions::default() };
    let result = simulate(&mut drive, workload, ".".as_ref(), &options, &mut Silent)
        .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert!(result.invariants.iter().all(|invariant| invariant.holds), "seed {seed}: {:?}", result.invariants);
    assert_eq!(result.total.requests, 1500, "seed {seed}");
    assert_eq!(drive.check_invariants(), Ok(()), "seed {seed}");
}

fn run_all(seeds: impl IntoIterator<Item = u64>) {
    let workload = Workload::from_toml(MIX, "mix.toml").unwrap();
    seeds.into_iter().for_each(|seed| run(seed, &workload));
}

#[test]
fn a_random_drive_is_valid_and_runs_a_mix_of_all_requests_with_all_invariants() {
    run_all(0..WORKING);
}

#[test]
#[ignore = "a minute: make test-full runs it"]
fn every_random_drive_is_valid_and_runs_a_mix_of_all_requests_with_all_invariants() {
    run_all(WORKING..SEEDS);
}

/// The mix on a random drive that was filled at once and keeps its map so: all that the run reports, and the state that
/// the drive is saved in.
fn run_filled(config: &DeviceConfig, seed: u64, kept: KeptAs, workload: &Workload) -> (String, Vec<u8>) {
    let mut drive = SimulatedSsd::new(config.clone(), seed).unwrap();
    drive.fill_kept_as(kept).unwrap();
    let options = SimulationOptions::default();
    let mut result = simulate(&mut drive, workload, ".".as_ref(), &options, &mut Silent).unwrap();
    // It took time of this machine, which is no result.
    result.process = Default::default();
    drive.shut_down().unwrap();
    let mut state = Vec::new();
    drive.save(Default::default(), &mut state).unwrap();
    (format!("{result:?} {:?}", drive.erase_histogram()), state)
}

fn assert_filled_alike(seeds: impl IntoIterator<Item = u64>) {
    let workload = Workload::from_toml(MIX, "mix.toml").unwrap();
    for seed in seeds {
        let config = random_device(seed).unwrap();
        if config.reduction.is_some() {
            continue;
        }
        let run = |kept| run_filled(&config, seed, kept, &workload);
        let ((by_rule, state), (by_entries, expected)) = (run(KeptAs::Rule), run(KeptAs::Entries));
        assert_eq!(by_rule, by_entries, "seed {seed}");
        assert!(state == expected, "seed {seed}: the states are others");
    }
}

#[test]
fn a_random_drive_that_is_filled_at_once_gives_the_same_results_however_it_keeps_its_map() {
    assert_filled_alike(0..30);
}

#[test]
#[ignore = "minutes: make test-full runs it"]
fn more_random_drives_give_the_same_results_however_they_keep_their_maps() {
    assert_filled_alike(30..300);
}

/// What a drive may have, the share that the module promises, and among which drives.
struct Feature {
    name: &'static str,
    share: f64,
    has: fn(&DeviceConfig) -> bool,
    among: fn(&DeviceConfig) -> bool,
}

fn any(_: &DeviceConfig) -> bool {
    true
}

fn flash(config: &DeviceConfig) -> bool {
    config.ftl.mapping == Mapping::Page
}

/// What is not bound to what a drive needs that reduces what it stores.
fn stores_as_it_comes(config: &DeviceConfig) -> bool {
    config.reduction.is_none()
}

fn flash_as_it_comes(config: &DeviceConfig) -> bool {
    flash(config) && stores_as_it_comes(config)
}

fn can_reduce(config: &DeviceConfig) -> bool {
    let a_page_may_span_two = config.superpage_bytes() >= 2 * config.ftl.logical_page_bytes;
    flash(config) && config.ftl.mapping_cache.is_none() && a_page_may_span_two
}

fn compresses(config: &DeviceConfig) -> bool {
    config.reduction.as_ref().is_some_and(|reduction| reduction.compression.is_some())
}

fn can_cache_in_slc_mode(config: &DeviceConfig) -> bool {
    let gc = &config.ftl.gc;
    let collects = gc.mode == GcMode::Background && gc.separate_open_block;
    flash_as_it_comes(config) && collects && config.ftl.mapping_cache.is_none()
}

fn tlc_or_qlc(config: &DeviceConfig) -> bool {
    matches!(config.flash.cell, Some(CellType::Tlc | CellType::Qlc))
}

fn sata(config: &DeviceConfig) -> bool {
    config.host.interface == Interface::Sata
}

fn nvme_flash(config: &DeviceConfig) -> bool {
    flash_as_it_comes(config) && !sata(config)
}

fn protected(config: &DeviceConfig) -> bool {
    config.controller.power_loss_protection
}

fn can_suspend(config: &DeviceConfig) -> bool {
    flash(config) && config.flash.command_scope == CommandScope::Die && config.flash.scheduling != Scheduling::Fcfs
}

fn several_bits(config: &DeviceConfig) -> bool {
    config.flash.cell.is_some_and(|cell| cell != CellType::Slc)
}

const FEATURES: [Feature; 32] = [
    Feature { name: "in place", share: 0.08, has: |c| !flash(c), among: any },
    Feature { name: "SLC", share: 0.12, has: |c| c.flash.cell == Some(CellType::Slc), among: flash },
    Feature { name: "MLC", share: 0.30, has: |c| c.flash.cell == Some(CellType::Mlc), among: flash },
    Feature { name: "TLC", share: 0.43, has: |c| c.flash.cell == Some(CellType::Tlc), among: flash },
    Feature { name: "QLC", share: 0.15, has: |c| c.flash.cell == Some(CellType::Qlc), among: flash },
    Feature { name: "SATA", share: 0.25, has: sata, among: flash },
    Feature { name: "SATA at 6 Gb/s", share: 0.65, has: |c| c.host.sata_gigabits_per_s == Some(6.0), among: sata },
    Feature {
        name: "large blocks",
        share: 0.25,
        has: |c| c.host.logical_block_bytes == 4096,
        among: stores_as_it_comes,
    },
    Feature { name: "pages of 4 KiB", share: 0.85, has: |c| c.ftl.logical_page_bytes == 4096, among: flash },
    Feature { name: "no jitter", share: 0.15, has: |c| c.flash.array_time_jitter == 0.0, among: any },
    Feature { name: "page types", share: 0.3, has: |c| !c.flash.read_ns_by_page_type.is_empty(), among: several_bits },
    Feature { name: "stripes", share: 0.6, has: |c| c.ftl.placement == Placement::Stripe, among: flash },
    Feature { name: "by address", share: 0.2, has: |c| c.ftl.placement == Placement::Static, among: flash },
    Feature { name: "NVMe protected", share: 0.35, has: protected, among: nvme_flash },
    Feature { name: "SATA protected", share: 0.15, has: protected, among: |c| sata(c) && stores_as_it_comes(c) },
    Feature { name: "write cache", share: 0.25, has: |c| c.controller.write_cache.is_some(), among: flash_as_it_comes },
    Feature {
        name: "write-through",
        share: 0.08,
        has: |c| c.controller.write_policy == WritePolicy::Through,
        among: |c| flash_as_it_comes(c) && c.controller.write_cache.is_none(),
    },
    Feature { name: "read cache", share: 0.35, has: |c| c.controller.read_cache.is_some(), among: stores_as_it_comes },
    Feature {
        name: "read-ahead",
        share: 0.6,
        has: |c| c.controller.read_ahead.is_some(),
        among: |c| c.controller.read_cache.is_some(),
    },
    Feature { name: "greedy", share: 0.46, has: |c| c.ftl.gc.policy == GcPolicy::Greedy, among: flash },
    Feature { name: "foreground", share: 0.15, has: |c| c.ftl.gc.mode == GcMode::Foreground, among: flash },
    Feature { name: "cached map", share: 0.1, has: |c| c.ftl.mapping_cache.is_some(), among: flash },
    Feature { name: "streams", share: 0.1, has: |c| c.ftl.streams.policy != StreamPolicy::One, among: flash },
    Feature {
        name: "moves cold data",
        share: 0.12,
        has: |c| c.ftl.wear_levelling.static_ == StaticWearLevelling::Threshold,
        among: flash,
    },
    Feature { name: "chips", share: 0.06, has: |c| c.flash.command_scope == CommandScope::Chip, among: flash },
    Feature {
        name: "suspension",
        share: 0.3,
        has: |c| c.flash.suspension.suspend != Suspend::None,
        among: can_suspend,
    },
    Feature { name: "errors", share: 0.08, has: |c| c.flash.reliability.is_some(), among: flash },
    Feature {
        name: "sectors",
        share: 0.2,
        has: |c| c.ftl.partial_pages == PartialPages::Sectors,
        among: flash_as_it_comes,
    },
    Feature { name: "reduces", share: 0.1, has: |c| c.reduction.is_some(), among: can_reduce },
    Feature { name: "compresses", share: 0.65, has: compresses, among: |c| can_reduce(c) && !stores_as_it_comes(c) },
    Feature {
        name: "SLC cache",
        share: 0.35,
        has: |c| c.ftl.slc_cache.is_some(),
        among: |c| can_cache_in_slc_mode(c) && tlc_or_qlc(c),
    },
    Feature {
        name: "SLC cache of two bits",
        share: 0.1,
        has: |c| c.ftl.slc_cache.is_some(),
        among: |c| can_cache_in_slc_mode(c) && c.flash.cell == Some(CellType::Mlc),
    },
];

#[test]
fn every_feature_comes_as_often_as_the_module_says() {
    let drives: Vec<DeviceConfig> = (0..SEEDS).map(|seed| random_device(seed).unwrap()).collect();
    for feature in FEATURES {
        let among: Vec<_> = drives.iter().filter(|config| (feature.among)(config)).collect();
        let found = among.iter().filter(|config| (feature.has)(config)).count() as f64 / among.len() as f64;
        // Four standard errors of so many draws.
        let error = (feature.share * (1.0 - feature.share) / among.len() as f64).sqrt();
        assert!((found - feature.share).abs() < 4.0 * error, "{}: {found:.3}, not {}", feature.name, feature.share);
    }
}

#[test]
fn what_is_counted_varies_over_the_whole_range_that_the_module_gives() {
    let drives: Vec<DeviceConfig> = (0..SEEDS).map(|seed| random_device(seed).unwrap()).collect();
    let flash: Vec<_> = drives.iter().filter(|config| flash(config)).collect();
    let span = |of: fn(&DeviceConfig) -> u64| {
        let values = || flash.iter().map(|config| of(config));
        (values().min().unwrap(), values().max().unwrap())
    };
    assert_eq!(span(|c| c.flash.page_bytes), (4 << 10, 16 << 10));
    assert_eq!(span(|c| u64::from(c.flash.channels)), (1, 16));
    assert_eq!(span(|c| u64::from(c.flash.planes_per_die)), (1, 4));
    assert_eq!(span(|c| c.superpage_bytes()), (4 << 10, 256 << 10));
    assert_eq!(span(|c| c.ftl.stripe_bytes), (4 << 10, 256 << 10));
    assert_eq!(span(|c| u64::from(c.gc_threshold())), (2, 8));
    let (least, most) = span(|c| c.capacity_bytes);
    assert!(least < 1100 << 20 && most > 7000 << 20, "{least} {most}");
    assert!(flash.iter().any(|c| !c.units().is_power_of_two()));
}

#[test]
fn a_fill_spreads_evenly_over_all_parallel_units() {
    for seed in 0..200 {
        let config = random_device(seed).unwrap();
        if !flash(&config) {
            continue;
        }
        let (superpage, units) = (config.superpage_bytes(), config.units());
        if config.ftl.placement == Placement::Stripe {
            let groups = u64::from(config.flash.channels / config.ftl.superpage_channels);
            let covers = config.ftl.stripe_bytes >= superpage * units / groups;
            assert!(groups == 1 || covers, "seed {seed}: {units} units, stripe {}", config.ftl.stripe_bytes);
        }
    }
}
