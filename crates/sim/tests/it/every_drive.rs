//! Every preset and every way to map pages runs every kind of workload with all invariants, and what it counts agrees.
//!
//! Random writes of a third of the drive make collection work; the mix reads behind them; the sequential flow ends with
//! trims and flushes between its writes. Large presets are cut down to a few blocks a plane.

use flashwise_block::{ByteSize, Silent};
use flashwise_sim::{Precondition, Simulation, SimulationOptions, simulate};
use flashwise_ssd::config::{DomainConfig, EnergyConfig, Mapping, MappingCacheConfig, Placement, WriteCacheConfig};
use flashwise_ssd::{DeviceConfig, PRESETS, SimulatedSsd};
use flashwise_trace::workload::Workload;

const RANDOM_WRITES: &str = r#"
    [[flows]]
    name = "random writes"
    requests = 6000
    synthetic.access = "random"
    synthetic.size.fixed.bytes = 65536
    synthetic.pacing.closed.queue_depth = 8
"#;

const MIX: &str = r#"
    [[flows]]
    name = "mix"
    requests = 6000
    synthetic.read_share = 0.7
    synthetic.access = "random"
    synthetic.size.fixed.bytes = 16384
    synthetic.pacing.closed.queue_depth = 16
"#;

const SEQUENTIAL: &str = r#"
    [[flows]]
    name = "sequential"
    requests = 4000
    synthetic.access = "sequential"
    synthetic.size.fixed.bytes = 65536
    synthetic.trim_share = 0.2
    synthetic.flush_every = 50
    synthetic.pacing.closed.queue_depth = 4
"#;

/// A preset with so few blocks that the workloads go round it, and a write buffer that holds little of what they write.
fn small(preset: &str) -> DeviceConfig {
    let mut config = DeviceConfig::preset(preset).unwrap();
    let open = config.host.max_transfer_bytes + 2 * config.units() * config.superpage_bytes();
    config.controller.write_buffer_bytes = config.controller.write_buffer_bytes.min(open.max(4 << 20));
    let flash = &mut config.flash;
    flash.energy = EnergyConfig { sense_nj: 1.0, program_nj: 10.0, erase_nj: 100.0, transfer_nj_per_byte: 0.001 };
    if config.ftl.mapping == Mapping::InPlace {
        return config;
    }
    (flash.blocks_per_plane, flash.pages_per_block) = (24, flash.pages_per_block.min(16));
    if let Some(cache) = &mut config.ftl.slc_cache {
        cache.dedicated_superblocks = cache.dedicated_superblocks.min(1);
        cache.dynamic_superblocks = cache.dynamic_superblocks.min(3);
        flash.pages_per_block = 12;
    }
    if config.ftl.mapping == Mapping::Element {
        config.capacity_bytes = 16 * config.ftl.element.row_bytes(&config);
    } else {
        config.ftl.gc.free_share = None;
        config.ftl.gc.free_superblocks = Some(3);
        let page = config.ftl.logical_page_bytes;
        config.capacity_bytes = config.raw_bytes() * 13 / 24 / page * page;
    }
    config
}

/// The Samsung with superpages of one page and another mapping.
fn mapped(change: impl FnOnce(&mut DeviceConfig)) -> DeviceConfig {
    let mut config = small("samsung-960-evo");
    (config.flash.channels, config.flash.chips_per_channel, config.flash.dies_per_chip) = (4, 1, 1);
    (config.ftl.superpage_channels, config.ftl.superpage_ways, config.ftl.superpage_planes) = (1, 1, Some(1));
    config.ftl.logical_page_bytes = config.flash.page_bytes;
    config.ftl.stripe_bytes = config.flash.page_bytes;
    config.capacity_bytes = config.raw_bytes() / 2;
    change(&mut config);
    config
}

fn write_cache() -> Option<WriteCacheConfig> {
    Some(toml::from_str("bytes = 1048576\nflush = \"watermark\"").unwrap())
}

/// Half of the capacity on the first two channels, the other half on the others.
fn in_domains(config: &mut DeviceConfig) {
    config.ftl.placement = Placement::Static;
    let half = |channels: [u32; 2]| DomainConfig {
        capacity_bytes: config.capacity_bytes / 2,
        channels: Some(channels.to_vec()),
        ..DomainConfig::default()
    };
    config.ftl.domains = vec![half([0, 1]), half([2, 3])];
}

/// Each mapping by its name.
fn mappings() -> Vec<(&'static str, DeviceConfig)> {
    let cache = MappingCacheConfig {
        capacity_bytes: 512,
        cached_entry_bytes: 8,
        stored_entry_bytes: 64,
        load_bytes: None,
        stored_at_start: false,
        deferred_write_back: false,
        partitions: 1,
        write_back_renews: false,
    };
    let cache_of_domains = cache.clone();
    let element = |config: &mut DeviceConfig| {
        config.ftl.mapping = Mapping::Element;
        config.flash.array_time_jitter = 0.0;
        config.ftl.element.lifetime_erasures = 100_000;
        config.capacity_bytes = 16 * config.ftl.element.row_bytes(config);
    };
    vec![
        ("page", mapped(|_| {})),
        ("page, cached", mapped(|c| c.ftl.mapping_cache = Some(cache))),
        ("page, in domains", mapped(in_domains)),
        (
            "page, cached, in domains",
            mapped(|c| {
                in_domains(c);
                c.ftl.mapping_cache = Some(MappingCacheConfig { partitions: 2, ..cache_of_domains });
            }),
        ),
        ("block", mapped(|c| c.ftl.mapping = Mapping::Block)),
        (
            "block, in any order",
            mapped(|c| {
                (c.ftl.mapping, c.ftl.replacement_blocks) = (Mapping::Block, 4);
                (c.ftl.random_replacement_blocks, c.ftl.random_log_pages, c.ftl.first_block_log) = (2, Some(5), true);
            }),
        ),
        ("fast", mapped(|c| (c.ftl.mapping, c.ftl.log_blocks) = (Mapping::Fast, 4))),
        ("block, write cache", mapped(|c| (c.ftl.mapping, c.controller.write_cache) = (Mapping::Block, write_cache()))),
        (
            "fast, write cache",
            mapped(|c| {
                (c.ftl.mapping, c.ftl.log_blocks, c.controller.write_cache) = (Mapping::Fast, 4, write_cache());
            }),
        ),
        ("element", mapped(element)),
    ]
}

fn run(name: &str, config: &DeviceConfig, flows: &str) -> Simulation {
    config.check(name).unwrap();
    let mut drive = SimulatedSsd::new(config.clone(), 1).unwrap();
    let workload = Workload::from_toml(&format!("name = \"w\"\n{flows}"), "w.toml").unwrap();
    let in_place = config.ftl.mapping == Mapping::InPlace;
    let precondition = if in_place { Precondition::Empty } else { Precondition::Fill };
    let options = SimulationOptions { precondition, ..SimulationOptions::default() };
    let result = simulate(&mut drive, &workload, ".".as_ref(), &options, &mut Silent)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(drive.check_invariants(), Ok(()), "{name}");
    result
}

/// What a run tells of its flash must agree with itself.
fn check(name: &str, config: &DeviceConfig, result: &Simulation) {
    assert!(result.invariants.iter().all(|invariant| invariant.holds), "{name}: {:?}", result.invariants);
    let flash = &result.flash;
    let page = config.flash.page_bytes;
    if result.host.bytes_written > 0 {
        let amplification = result.write_amplification.unwrap();
        let causes = result.write_amplification_by_cause.unwrap();
        let moved = causes.gc + causes.wear_levelling + causes.retirement + causes.folding;
        let sum = causes.host + moved + causes.mapping + causes.padding;
        assert!((sum - amplification).abs() < 1e-9, "{name}: {causes:?} are not {amplification}");
        let programmed = flash.bytes_programmed as f64 / result.host.bytes_written as f64;
        assert!((programmed - amplification).abs() < 1e-9, "{name}: {programmed}, {amplification}");
        if config.ftl.mapping != Mapping::InPlace {
            // Pages are counted when the die takes a command, bytes when it has ended, with blocks and elements when it
            // is issued: at the end some are on their way, of the host's as much as the write buffer holds, and about
            // as much of what is moved.
            let on_the_way = (flash.bytes_programmed as i128 - i128::from(flash.programs * page)).abs();
            let buffer = config.controller.write_buffer_bytes;
            let in_block = u64::from(config.flash.pages_per_block);
            let most = match (config.ftl.mapping, &config.controller.write_cache) {
                // Each page that leaves the cache may have to be merged with its block, or when a log block is full,
                // each page of that with its own.
                (Mapping::Block | Mapping::Fast, Some(_)) => (buffer / page + in_block) * in_block * page,
                _ => 2 * buffer,
            };
            let most = i128::from(most);
            assert!(on_the_way <= most, "{name}: {on_the_way} of the bytes programmed are in no page");
        }
    }
    assert_eq!(result.gc.pages_moved > 0, result.write_amplification_by_cause.is_some_and(|c| c.gc > 0.0), "{name}");
    assert!((result.gc.superblocks_erased > 0) == (flash.erases > 0), "{name}: {flash:?}");
    let erased: u64 = result.flash_commands.iter().filter(|c| c.class == "erase").map(|c| c.commands).sum();
    assert_eq!(erased > 0, flash.erases > 0, "{name}");
    let busy = &result.utilisation;
    assert_eq!(busy.dies.each.len() as u64, u64::from(dies(config)), "{name}");
    assert!(busy.dies.mean > 0.0 && busy.dies.max <= 1.0, "{name}: {:?}", busy.dies);
    let per_die = config.flash.planes_per_die as usize;
    assert_eq!(busy.planes.each.len(), busy.dies.each.len() * per_die, "{name}");
    assert_eq!(busy.chips.each.len() as u64, u64::from(dies(config) / config.flash.dies_per_chip), "{name}");
    for (die, planes) in busy.dies.each.iter().zip(busy.planes.each.chunks(per_die)) {
        let (most, sum) = (planes.iter().copied().fold(0.0, f64::max), planes.iter().sum::<f64>());
        assert!(most <= *die && sum >= die - 1e-9, "{name}: planes {planes:?} of a die that was busy {die}");
    }
    assert!(busy.channels.mean > 0.0 && busy.channels.max <= 1.0, "{name}: {:?}", busy.channels);
    let energy = result.flash_energy_mj.unwrap() * 1e6;
    let arrays = flash.reads as f64 + 10.0 * flash.programs as f64 + 100.0 * flash.erases as f64;
    assert!(energy >= arrays, "{name}: {energy} nJ for {arrays} nJ of the arrays");
}

fn dies(config: &DeviceConfig) -> u32 {
    config.flash.channels * config.flash.chips_per_channel * config.flash.dies_per_chip
}

fn all_workloads(name: &str, config: &DeviceConfig) {
    let writes = run(name, config, RANDOM_WRITES);
    check(&format!("{name}, random writes"), config, &writes);
    let collects = config.ftl.mapping != Mapping::InPlace;
    assert_eq!(writes.gc.executions > 0, collects, "{name}: {:?}", writes.gc);
    assert_eq!(writes.flash.erases > 0, collects, "{name}: {:?}", writes.flash);
    assert!(writes.write_amplification.unwrap() >= 0.9, "{name}: {:?}", writes.write_amplification);
    let mix = run(name, config, MIX);
    check(&format!("{name}, mix"), config, &mix);
    assert!(mix.flash.reads > 0 && mix.flash.bytes_read > 0, "{name}: {:?}", mix.flash);
    let sequential = run(name, config, SEQUENTIAL);
    check(&format!("{name}, sequential"), config, &sequential);
    let flow = &sequential.flows[0];
    assert!(flow.trims > 0 && flow.flushes > 0, "{name}: {flow:?}");
}

#[test]
fn every_preset_runs_every_workload_with_all_invariants() {
    for preset in PRESETS {
        let config = small(preset.name);
        assert!(config.capacity_bytes >= ByteSize::mib(8).bytes(), "{}", preset.name);
        all_workloads(preset.name, &config);
    }
}

#[test]
fn every_mapping_runs_every_workload_with_all_invariants() {
    for (name, config) in mappings() {
        all_workloads(name, &config);
    }
}
