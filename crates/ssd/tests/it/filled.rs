//! A drive that was filled at once and keeps where its pages are as a rule is the one that has an entry for each.
use crate::every_shape;
use crate::saved_state::{reported, saved, work};
use crate::support;

use every_shape::{small_config_in_domains, small_config_with_caches, small_config_with_slc_cache};
use flashwise_block::{BlockDevice, ByteSize, Request};
use flashwise_ssd::config::{DomainConfig, Placement, StreamPolicy, StreamsConfig};
use flashwise_ssd::ftl::KeptAs;
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use proptest::prelude::*;
use support::{cases, tiny};

/// The drive filled in both ways: by a rule, and page by page.
fn filled(config: &DeviceConfig, seed: u64) -> [SimulatedSsd; 2] {
    [KeptAs::Rule, KeptAs::Entries].map(|kept| {
        let mut drive = SimulatedSsd::new(config.clone(), seed).unwrap();
        drive.fill_kept_as(kept).unwrap();
        drive
    })
}

/// Puts the same work on both; their completions, counters and saved states must be the same to the bit.
fn they_are_the_same(config: &DeviceConfig, seed: u64) -> Result<(), TestCaseError> {
    if config.check("random.toml").is_err() {
        return Ok(());
    }
    let [mut rule, mut entries] = filled(config, seed);
    prop_assert_eq!(rule.check_invariants(), Ok(()));
    prop_assert_eq!(reported(&rule), reported(&entries));
    prop_assert!(saved(&mut rule) == saved(&mut entries), "they are filled in other ways");
    for part in [8, 1] {
        let bytes = config.capacity_bytes / part;
        prop_assert_eq!(work(&mut rule, seed ^ part, bytes), work(&mut entries, seed ^ part, bytes));
        prop_assert_eq!(reported(&rule), reported(&entries));
        prop_assert_eq!(rule.check_invariants(), Ok(()));
        for drive in [&mut rule, &mut entries] {
            drive.shut_down().unwrap();
        }
        prop_assert!(saved(&mut rule) == saved(&mut entries), "they have come apart");
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn a_filled_drive_of_any_shape_is_the_same_however_it_keeps_its_map(
        config in small_config_with_caches(),
        seed: u64,
    ) {
        they_are_the_same(&config, seed)?;
    }

    #[test]
    fn so_is_one_with_an_slc_cache((config, _) in small_config_with_slc_cache(), seed: u64) {
        they_are_the_same(&DeviceConfig { reduction: None, ..config }, seed)?;
    }

    #[test]
    fn so_is_one_in_domains(config in small_config_in_domains(), seed: u64) {
        they_are_the_same(&DeviceConfig { reduction: None, ..config }, seed)?;
    }

    /// Long blocks, so that most turns of the placement change nothing but how far superblocks are written, and a
    /// capacity that ends anywhere in a superblock.
    #[test]
    fn so_is_one_with_many_rows(
        placement in prop::sample::select(&Placement::ALL[..]),
        (channels, dies, stripe, pages_per_block) in (1_u32..=5, 1_u32..=3, 1_u64..=5, 40_u32..150),
        (share, bad, shares_open_block, domains) in (0.5_f64..1.0, 0.0_f64..0.3, any::<bool>(), any::<bool>()),
        seed: u64,
    ) {
        let mut config = tiny("samsung-960-evo", ByteSize::mib(7), 13, 4);
        (config.flash.channels, config.flash.dies_per_chip) = (channels, dies);
        (config.flash.blocks_per_plane, config.flash.pages_per_block) = (20, pages_per_block);
        (config.ftl.placement, config.ftl.stripe_bytes) = (placement, stripe * config.superpage_bytes());
        config.ftl.bad_blocks.initial_share = bad;
        config.ftl.gc.separate_open_block = !shares_open_block;
        config.ftl.gc.free_superblocks = Some(4);
        let usable = config.raw_bytes() as f64 * (0.6 - bad / 2.0);
        config.capacity_bytes = (usable * share) as u64 / 4096 * 4096;
        if domains && channels > 1 && placement == Placement::Static {
            let superpages = config.capacity_bytes / config.superpage_bytes();
            config.capacity_bytes = superpages * config.superpage_bytes();
            let first = superpages / 8 * config.superpage_bytes();
            config.ftl.domains = vec![
                DomainConfig { capacity_bytes: first, channels: Some(vec![0]), ..DomainConfig::default() },
                DomainConfig {
                    capacity_bytes: config.capacity_bytes - first,
                    channels: Some((1..channels).collect()),
                    ..DomainConfig::default()
                },
            ];
        }
        they_are_the_same(&config, seed)?;
    }
}

/// A drive of 64 GiB, whose map is sparse.
fn large(change: impl FnOnce(&mut DeviceConfig)) -> DeviceConfig {
    let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
    config.capacity_bytes = ByteSize::gib(64).bytes();
    config.flash.blocks_per_plane = 256;
    change(&mut config);
    config
}

#[test]
fn every_page_of_a_large_filled_drive_is_where_filling_it_page_by_page_puts_it() {
    for placement in Placement::ALL {
        let config = large(|config| config.ftl.placement = placement);
        let [mut rule, mut entries] = filled(&config, 1);
        let pages = config.logical_pages();
        for n in 0..200_000 {
            let byte = ByteSize(n * 7_919 % pages * 4096);
            assert_eq!(rule.channel_of(byte), entries.channel_of(byte), "{placement:?}: {byte:?}");
        }
        let last = ByteSize((pages - 1) * 4096);
        for drive in [&mut rule, &mut entries] {
            for at in [ByteSize(0), ByteSize(40960), last, ByteSize(0)] {
                drive.submit(Request::write(at, ByteSize(4096))).unwrap();
                drive.submit(Request::trim(ByteSize(81920), ByteSize(8192))).unwrap();
            }
            while drive.wait().unwrap().is_some() {}
            assert_eq!(drive.channel_of(ByteSize(81920)), None);
        }
        assert_eq!(reported(&rule), reported(&entries));
    }
}

#[test]
fn where_deaths_are_foreseen_pages_are_filled_one_by_one() {
    let mut config = tiny("samsung-960-evo", ByteSize::mib(7), 40, 4);
    config.ftl.gc.separate_open_block = true;
    config.controller.write_buffer_bytes = 4 << 20;
    config.ftl.streams =
        StreamsConfig { policy: StreamPolicy::DeathTime, foresight_error: Some(0.0), ..StreamsConfig::default() };
    config.check("drive").unwrap();
    let drives = [KeptAs::Rule, KeptAs::Entries].map(|kept| {
        let mut drive = SimulatedSsd::new(config.clone(), 1).unwrap();
        drive.set_future_writes(&(0..500).map(|n| n * 13 % 300).collect::<Vec<u32>>()).unwrap();
        drive.fill_kept_as(kept).unwrap();
        drive.check_invariants().unwrap();
        reported(&drive)
    });
    assert_eq!(drives[0], drives[1]);
}
