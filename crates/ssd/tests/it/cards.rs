//! Memory cards: flashbench's measurement of open allocation units, and the tests of the application performance
//! classes.

use flashwise_block::{BlockDevice, ByteSize, Request, execute};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A preset's card, full.
fn card(preset: &str) -> SimulatedSsd {
    let mut card = SimulatedSsd::new(DeviceConfig::preset(preset).unwrap(), 1).unwrap();
    card.fill_at_once().unwrap();
    card
}

/// A generator for orders and places.
struct Random(u64);

impl Random {
    fn below(&mut self, count: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % count
    }
}

fn write(card: &mut SimulatedSsd, offset: u64, bytes: u64) {
    execute(card, Request::write(ByteSize(offset), ByteSize(bytes))).unwrap();
}

/// `flashbench -O`: `units` allocation units of 4 MiB, each 12 units apart, written in requests of sizes from the
/// largest to the smallest, at each offset once in every unit, in ascending or in random order; seconds a write of each
/// size.
fn open_units(card: &mut SimulatedSsd, units: u64, sizes: &[u64], in_order: bool) -> Vec<f64> {
    let mut random = Random(7);
    let mut times = Vec::new();
    for &size in sizes {
        let mut offsets: Vec<u64> = (0..4 * MIB / size).collect();
        if !in_order {
            (1..offsets.len()).rev().for_each(|n| offsets.swap(n, random.below(n as u64 + 1) as usize));
        }
        let started = card.now();
        for offset in &offsets {
            (0..units).for_each(|unit| write(card, 16 * MIB + unit * 48 * MIB + offset * size, size));
        }
        times.push(card.now().since(started).as_secs_f64() / (offsets.len() as u64 * units) as f64);
    }
    times
}

/// Seconds that a write takes, and how many bytes a second that is.
fn assert_near(what: &str, measured: f64, published: f64, share: f64) {
    assert!((measured / published - 1.0).abs() <= share, "{what}: {measured} instead of {published}");
}

/// Requests of `flashbench -O`, largest first.
const SIZES: [u64; 4] = [512 * KIB, 128 * KIB, 64 * KIB, 16 * KIB];

#[test]
fn the_kingston_card_keeps_three_units_open_at_the_published_rates() {
    for units in [1, 3] {
        let in_order = open_units(&mut card("kingston-sa04g"), units, &SIZES, true);
        assert_near("in order, 128 KiB", 128.0 * 1024.0 / in_order[1], 5.0e6, 0.15);
        assert_near("in order, 16 KiB", 16.0 * 1024.0 / in_order[3], 3.55e6, 0.15);
        let randomly = open_units(&mut card("kingston-sa04g"), units, &SIZES, false);
        assert_near("randomly, 16 KiB", 16.0 * 1024.0 / randomly[3], 1.2e6, 0.15);
    }
    let in_order = open_units(&mut card("kingston-sa04g"), 4, &SIZES, true);
    assert_near("four in order, 128 KiB", 128.0 * 1024.0 / in_order[1], 302e3, 0.15);
    let randomly = open_units(&mut card("kingston-sa04g"), 4, &SIZES, false);
    assert_near("four randomly, 64 KiB", 64.0 * 1024.0 / randomly[2], 150e3, 0.15);
    for (size, (in_order, randomly)) in SIZES.iter().zip(in_order.into_iter().zip(randomly)).take(3) {
        assert_near(&format!("a merge for {size} bytes in order"), in_order, 0.43, 0.1);
        assert_near(&format!("a merge for {size} bytes randomly"), randomly, 0.43, 0.1);
    }
}

#[test]
fn a_unit_may_be_three_times_a_power_of_two() {
    let mut config = DeviceConfig::preset("kingston-sa04g").unwrap();
    (config.flash.pages_per_block, config.flash.blocks_per_plane) = (384, 700);
    let unit = 384 * 16 * KIB;
    assert_eq!(unit, 6 * MIB);
    config.check("units of 6 MiB").unwrap();
    let mut card = SimulatedSsd::new(config, 1).unwrap();
    card.fill_at_once().unwrap();
    for pass in 0..2_u64 {
        // Half of a unit away, the same unit is written; then the next one.
        let erases = |card: &SimulatedSsd| card.counters().flash.unwrap().erases;
        (0..3).for_each(|n| write(&mut card, (n * 2 + pass) * unit, 16 * KIB));
        let before = erases(&card);
        (0..3).for_each(|n| write(&mut card, (n * 2 + pass) * unit + 3 * MIB, 16 * KIB));
        assert_eq!(erases(&card), before, "three units are open");
        write(&mut card, (6 + pass) * unit, 16 * KIB);
        assert!(erases(&card) > before);
    }
}

/// The region of the classes' test.
const REGION: u64 = 256 * MIB;

/// The test of the application performance classes: a card three quarters full, one region written sequentially, then
/// random requests of 4 KiB inside it, so many in flight, for a time; requests a second.
fn class_test(preset: &str, depth: usize, seconds: f64, is_write: bool) -> f64 {
    let mut card = card(preset);
    let capacity = card.info().capacity.bytes();
    execute(&mut card, Request::trim(ByteSize(capacity / 4 * 3 / MIB * MIB), ByteSize(capacity / 4 / MIB * MIB)))
        .unwrap();
    let start = capacity / 2 / (4 * MIB) * (4 * MIB);
    (0..REGION / (512 * KIB)).for_each(|n| write(&mut card, start + n * 512 * KIB, 512 * KIB));
    let (mut random, started, mut done) = (Random(3), card.now(), 0_u32);
    while card.now().since(started).as_secs_f64() < seconds {
        while card.outstanding() < depth {
            let offset = ByteSize(start + random.below(REGION / (4 * KIB)) * 4 * KIB);
            let length = ByteSize(4 * KIB);
            card.submit(if is_write { Request::write(offset, length) } else { Request::read(offset, length) }).unwrap();
        }
        card.wait().unwrap();
        done += 1;
    }
    f64::from(done) / card.now().since(started).as_secs_f64()
}

/// What a class demands is met, and by no more than a fifth.
#[track_caller]
fn assert_class(what: &str, rate: f64, demanded: f64) {
    assert!((demanded..=1.2 * demanded).contains(&rate), "{what}: {rate:.0} a second, {demanded:.0} demanded");
}

#[test]
fn a_card_of_class_a1_passes_the_test_of_its_class_by_no_more_than_a_fifth() {
    assert_class("reads", class_test("sd-a1", 1, 5.0, false), 1500.0);
    assert_class("writes", class_test("sd-a1", 1, 600.0, true), 500.0);
}

#[test]
fn a_card_of_class_a2_passes_the_test_of_its_class_by_no_more_than_a_fifth() {
    assert_class("reads", class_test("sd-a2", 32, 5.0, false), 4000.0);
    assert_class("writes", class_test("sd-a2", 32, 600.0, true), 2000.0);
}
