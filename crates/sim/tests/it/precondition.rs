//! A drive that was put into a state at once is like one that came there by writing.
use crate::support;

use flashwise_block::{BlockDevice, ByteSize, Request};
use flashwise_sim::enter_steady_state;
use flashwise_ssd::config::{GcMode, GcPolicy, Placement};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use support::{read_us, tiny};

/// 2 channels of 2 dies, 110 superblocks of 64 KiB · 32 a die; 82 % of the flash is offered.
fn drive(placement: Placement) -> DeviceConfig {
    let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
    (config.flash.channels, config.flash.dies_per_chip) = (2, 2);
    (config.flash.blocks_per_plane, config.flash.pages_per_block) = (110, 32);
    config.flash.page_bytes = 8192;
    config.flash.array_time_jitter = 0.0;
    config.ftl.placement = placement;
    config.ftl.gc.free_superblocks = Some(3);
    config.host.max_transfer_bytes = 1 << 20;
    config.capacity_bytes = (config.raw_bytes() as f64 * 0.82) as u64 / 65536 * 65536;
    config.check("drive").unwrap();
    config
}

/// Write amplification of so many overwrites with uniformly random pages.
fn overwrite(drive: &mut SimulatedSsd, overwrites: f64, seed: u64) -> f64 {
    let pages = drive.config().logical_pages();
    let before = drive.counters();
    let mut state = seed;
    for _ in 0..(pages as f64 * overwrites) as u64 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let page = (state >> 33) % pages;
        drive.submit(Request::write(ByteSize(page * 4096), ByteSize(4096))).unwrap();
        while drive.outstanding() >= 32 {
            drive.wait().unwrap();
        }
    }
    while drive.wait().unwrap().is_some() {}
    drive.counters().since(&before).write_amplification().unwrap()
}

#[test]
fn a_drive_filled_at_once_is_laid_out_as_one_that_was_written_in_order() {
    for placement in [Placement::Stripe, Placement::Static, Placement::RoundRobin] {
        let config = drive(placement);
        let mut written = SimulatedSsd::new(config.clone(), 1).unwrap();
        support::fill(&mut written, 0, config.capacity_bytes);
        let mut filled = SimulatedSsd::new(config.clone(), 1).unwrap();
        filled.fill_at_once().unwrap();
        filled.check_invariants().unwrap();
        let ends = config.capacity_bytes - (256 << 10);
        for at in (0..ends).step_by(68 << 10) {
            let (a, b) = (read_us(&mut written, at, 256 << 10), read_us(&mut filled, at, 256 << 10));
            assert_eq!(a, b, "{placement:?}: a read at {at} takes another time");
        }
    }
}

#[test]
fn the_steady_state_is_laid_out_over_all_units_where_a_superpage_is_one_page() {
    let mut config = drive(Placement::Stripe);
    (config.flash.planes_per_die, config.flash.page_bytes, config.ftl.stripe_bytes) = (1, 4096, 4096);
    config.capacity_bytes = (config.raw_bytes() as f64 * 0.82) as u64 / 4096 * 4096;
    let mut analytic = SimulatedSsd::new(config, 1).unwrap();
    let promised = enter_steady_state(&mut analytic, 7).unwrap();
    analytic.check_invariants().unwrap();
    let at_once = overwrite(&mut analytic, 0.5, 1);
    assert!((promised / at_once - 1.0).abs() < 0.05, "promised {promised}, then {at_once}");
}

#[test]
fn the_analytic_steady_state_amplifies_writes_as_the_simulated_one_does() {
    let cases = [
        (Placement::Stripe, GcPolicy::Greedy, true),
        (Placement::Static, GcPolicy::Greedy, true),
        (Placement::Stripe, GcPolicy::Fifo, true),
        (Placement::Stripe, GcPolicy::RandomGreedy, true),
        (Placement::Static, GcPolicy::Greedy, false),
    ];
    for (placement, policy, separate) in cases {
        let mut config = drive(placement);
        (config.ftl.gc.policy, config.ftl.gc.choices) = (policy, 4);
        config.ftl.gc.separate_open_block = separate;
        let mut analytic = SimulatedSsd::new(config.clone(), 1).unwrap();
        let promised = enter_steady_state(&mut analytic, 7).unwrap();
        analytic.check_invariants().unwrap();
        let at_once = overwrite(&mut analytic, 0.5, 1);
        let mut simulated = SimulatedSsd::new(config, 1).unwrap();
        simulated.fill_at_once().unwrap();
        overwrite(&mut simulated, 5.0, 2);
        let steady = overwrite(&mut simulated, 2.0, 3);
        // What the drive started from is forgotten after so many overwrites.
        overwrite(&mut analytic, 4.5, 2);
        let forgotten = overwrite(&mut analytic, 2.0, 3);
        let case = format!(
            "{placement:?}, {policy:?}, apart {separate}: promised {promised:.3}, at once {at_once:.3}, later \
             {forgotten:.3}, simulated {steady:.3}"
        );
        println!("{case}");
        assert!((at_once / steady - 1.0).abs() < 0.03, "{case}");
        assert!((forgotten / steady - 1.0).abs() < 0.03, "{case}");
        assert!((promised / steady - 1.0).abs() < 0.05, "{case}");
    }
}

#[test]
fn units_that_take_any_page_keep_even_shares_of_the_data_however_the_drive_was_filled() {
    let mut config = drive(Placement::LeastLoaded);
    config.capacity_bytes = (config.raw_bytes() as f64 * 0.86) as u64 / (1 << 20) * (1 << 20);
    config.ftl.gc.mode = GcMode::Background;
    config.flash.array_time_jitter = 0.06;
    let steady = |fill: &dyn Fn(&mut SimulatedSsd)| {
        let mut drive = SimulatedSsd::new(config.clone(), 1).unwrap();
        fill(&mut drive);
        overwrite(&mut drive, 5.0, 2);
        overwrite(&mut drive, 2.0, 3)
    };
    let at_once = steady(&|drive| drive.fill_at_once().unwrap());
    let written = steady(&|drive| {
        for at in (0..config.capacity_bytes).step_by(1 << 20) {
            drive.submit(Request::write(ByteSize(at), ByteSize::mib(1))).unwrap();
            while drive.outstanding() >= 32 {
                drive.wait().unwrap();
            }
        }
        while drive.wait().unwrap().is_some() {}
    });
    assert!((written / at_once - 1.0).abs() < 0.03, "written {written:.3}, at once {at_once:.3}");
}

#[test]
fn a_drive_that_was_written_is_not_filled_over() {
    let mut drive = SimulatedSsd::new(tiny("samsung-960-evo", ByteSize::mib(7), 13, 4), 1).unwrap();
    support::write(&mut drive, 0, 4096);
    let error = drive.fill_at_once().unwrap_err().to_string();
    assert_eq!(error, "fill: the drive has already been written");
}
