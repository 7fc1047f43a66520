//! Domains: ranges of addresses on a part of the flash have that part, its time and its garbage to themselves.
use crate::support;

use flashwise_block::{BlockDevice, ByteSize, Nanos, Request};
use flashwise_sim::{Precondition, precondition};
use flashwise_ssd::config::{DomainConfig, Placement};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use support::tiny;

/// Four channels of two dies; no superpage spans two dies.
fn drive_of(domains: &[(u64, &[u32])]) -> DeviceConfig {
    let mut config = tiny("samsung-960-evo", ByteSize::mib(16), 24, 8);
    (config.flash.channels, config.flash.chips_per_channel, config.flash.dies_per_chip) = (4, 2, 1);
    (config.flash.blocks_per_plane, config.flash.array_time_jitter) = (48, 0.0);
    (config.ftl.placement, config.ftl.superpage_planes) = (Placement::Static, Some(1));
    (config.ftl.superpage_channels, config.ftl.superpage_ways) = (1, 1);
    config.ftl.domains = domains
        .iter()
        .map(|&(megabytes, channels)| DomainConfig {
            capacity_bytes: megabytes << 20,
            channels: (!channels.is_empty()).then(|| channels.to_vec()),
            ..DomainConfig::default()
        })
        .collect();
    config.capacity_bytes = domains.iter().map(|domain| domain.0 << 20).sum();
    config.check("domains").unwrap();
    config
}

/// Overwrites 4 KiB pages of a range at random, so many times its length, 16 at a time.
fn overwrite(drive: &mut SimulatedSsd, start: u64, length: u64, times: f64) {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    for _ in 0..(times * (length / 4096) as f64) as u64 {
        let page = random.random_range(0..length / 4096);
        drive.submit(Request::write(ByteSize(start + page * 4096), ByteSize(4096))).unwrap();
        while drive.outstanding() >= 16 {
            drive.wait().unwrap().unwrap().result.unwrap();
        }
    }
    while drive.wait().unwrap().is_some() {}
    drive.pause(Nanos::secs(1)).unwrap();
}

/// Commands that each channel's dies have taken.
fn commands_of_channels(drive: &SimulatedSsd) -> Vec<u64> {
    let dies = drive.flash_statistics().dies;
    dies.chunks(drive.config().ways() as usize).map(|dies| dies.iter().map(|die| die.commands).sum()).collect()
}

#[test]
fn what_one_domain_writes_and_the_garbage_that_it_makes_reach_no_channel_of_another() {
    let config = drive_of(&[(6, &[0]), (18, &[1, 2, 3])]);
    let mut drive = SimulatedSsd::new(config, 1).unwrap();
    drive.fill_at_once().unwrap();
    overwrite(&mut drive, 0, 6 << 20, 12.0);
    let first = commands_of_channels(&drive);
    assert!(first[0] > 0 && first[1..] == [0, 0, 0], "{first:?}");
    assert!(drive.counters().flash.unwrap().erases > 0, "garbage was collected");
    overwrite(&mut drive, 6 << 20, 18 << 20, 12.0);
    let both = commands_of_channels(&drive);
    assert_eq!(both[0], first[0]);
    assert!(both[1..].iter().all(|&commands| commands > 0), "{both:?}");
    drive.check_invariants().unwrap();
}

#[test]
fn a_domain_has_the_write_amplification_of_a_drive_of_its_size_and_part() {
    let amplification = |domains: &[(u64, &[u32])], start: u64, length: u64| {
        let mut drive = SimulatedSsd::new(drive_of(domains), 1).unwrap();
        drive.fill_at_once().unwrap();
        overwrite(&mut drive, start, length, 6.0);
        let before = drive.counters();
        overwrite(&mut drive, start, length, 12.0);
        drive.counters().since(&before).write_amplification().unwrap()
    };
    // Two channels each; the one of the two that is fuller has more to move.
    let domains: [(u64, &[u32]); 2] = [(40, &[0, 2]), (30, &[1, 3])];
    let (full, roomy) = (amplification(&domains, 0, 40 << 20), amplification(&domains, 40 << 20, 30 << 20));
    assert!(full > 1.3 * roomy, "{full} {roomy}");
    // The channels of a drive that has nothing else.
    for (megabytes, inside) in [(40_u64, full), (30, roomy)] {
        let mut alone = drive_of(&[(megabytes, &[])]);
        (alone.flash.channels, alone.ftl.domains) = (2, Vec::new());
        let mut drive = SimulatedSsd::new(alone, 1).unwrap();
        drive.fill_at_once().unwrap();
        overwrite(&mut drive, 0, megabytes << 20, 6.0);
        let before = drive.counters();
        overwrite(&mut drive, 0, megabytes << 20, 12.0);
        let alone = drive.counters().since(&before).write_amplification().unwrap();
        assert!((inside / alone - 1.0).abs() < 0.01, "{megabytes} MiB: {inside} in a domain, {alone} alone");
    }
}

#[test]
fn writes_to_one_domain_do_not_slow_down_reads_of_another_and_do_where_they_share_a_channel() {
    let slowest_read = |domains: &[(u64, &[u32])]| {
        let mut drive = SimulatedSsd::new(drive_of(domains), 1).unwrap();
        drive.fill_at_once().unwrap();
        let (first, mut slowest) = (domains[0].0 << 20, 0);
        for n in 0..2_000_u64 {
            let write = Request::write(ByteSize(n * 7919 % (first / 65_536) * 65_536), ByteSize(65_536));
            drive.submit(write).unwrap();
            drive.submit(Request::read(ByteSize(first + n % 1024 * 4096), ByteSize(4096)).tagged(1)).unwrap();
            while drive.outstanding() > 2 {
                let done = drive.wait().unwrap().unwrap();
                if done.tag == 1 {
                    slowest = slowest.max(done.latency().0);
                }
            }
        }
        slowest
    };
    let apart = slowest_read(&[(10, &[0, 1]), (10, &[2, 3])]);
    let shared = slowest_read(&[(10, &[0, 1]), (10, &[])]);
    assert!(shared > 2 * apart, "{apart} ns apart, {shared} ns where a channel is shared");
}

#[test]
fn the_computed_steady_state_of_domains_is_the_simulated_one() {
    let mut config = drive_of(&[(40, &[0, 2]), (30, &[1, 3])]);
    (config.flash.blocks_per_plane, config.flash.pages_per_block) = (200, 16);
    config.ftl.domains.iter_mut().for_each(|domain| domain.capacity_bytes *= 8);
    config.capacity_bytes *= 8;
    config.check("domains").unwrap();
    let reach = |state| {
        let mut drive = SimulatedSsd::new(config.clone(), 1).unwrap();
        let done = precondition(&mut drive, state, 1, &mut flashwise_block::Silent).unwrap();
        drive.check_invariants().unwrap();
        *done.write_amplification.last().unwrap()
    };
    let (computed, simulated) = (reach(Precondition::Analytic), reach(Precondition::Steady));
    assert!((computed / simulated - 1.0).abs() < 0.05, "{computed} computed, {simulated} simulated");
}
