//! What firmware of data-centre drives adds to a page map: parity in each superpage, reads of single pages by garbage
//! collection, writes that are not replaced in the buffer.

use flashwise_block::{BlockDevice, ByteSize};
use flashwise_ssd::config::GcReads;
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

use crate::support::{fill, tiny, write};

/// Superpages of 8 flash pages over 4 channels, with so many pages of parity.
fn with_parity(pages: u32) -> DeviceConfig {
    let mut config = tiny("toshiba-xg5", ByteSize::mib(4), 32, 8);
    config.ftl.parity_pages = pages;
    config.ftl.stripe_bytes = config.superpage_bytes();
    config.controller.power_loss_protection = true;
    config.check("parity").unwrap();
    config
}

#[test]
fn parity_is_programmed_with_the_data_and_counts_as_write_amplification() {
    let all = with_parity(0).flash_pages_per_superpage();
    let mut drive = SimulatedSsd::new(with_parity(1), 1).unwrap();
    let superpage = drive.config().superpage_bytes();
    assert_eq!(superpage, (all - 1) * drive.config().flash.page_bytes);
    fill(&mut drive, 0, 10 * superpage);
    while drive.wait().unwrap().is_some() {}
    drive.pause(flashwise_block::Nanos::millis(100)).unwrap();
    let flash = drive.counters().flash.unwrap();
    assert_eq!(flash.bytes_programmed, ByteSize(10 * all * drive.config().flash.page_bytes));
    assert_eq!(flash.padding_bytes, ByteSize(0), "parity is no padding");
}

#[test]
fn what_parity_takes_is_not_left_for_data() {
    let mut config = with_parity(1);
    let usable = |config: &DeviceConfig| {
        let mut config = config.clone();
        config.capacity_bytes = 1 << 40;
        config.check("too large").unwrap_err().to_string()
    };
    let with = usable(&config);
    config.ftl.parity_pages = 0;
    assert_ne!(with, usable(&config));
    assert!(config.over_provisioning() > with_parity(1).over_provisioning());
    let mut none_left = with_parity(0);
    none_left.ftl.parity_pages = none_left.flash_pages_per_superpage() as u32;
    let error = none_left.check("mine.toml").unwrap_err().to_string();
    assert!(error.contains("ftl.parity_pages") && error.contains("must be below"), "{error}");
}

/// Flash pages that garbage collection senses for each page that it moves, when so many of each 64 pages stay as they
/// are.
fn sensed_per_moved(reads: GcReads, keep: u64) -> f64 {
    // Two planes of 16 KiB program together, so that a die's read senses two flash pages of four logical ones.
    let mut config = tiny("samsung-960-evo", ByteSize::mib(7), 13, 4);
    config.ftl.gc.reads = reads;
    let mut drive = SimulatedSsd::new(config, 1).unwrap();
    let capacity = drive.info().capacity.0;
    fill(&mut drive, 0, capacity);
    for round in 0..3 {
        for page in (0..capacity / 4096).filter(|page| page % 64 >= keep) {
            write(&mut drive, (page + round) % (capacity / 4096) * 4096, 4096);
        }
    }
    let moved = drive.counters().flash.unwrap().gc_pages_moved;
    assert!(moved > 0, "nothing was collected");
    drive.flash_statistics().pages_sensed as f64 / moved as f64
}

#[test]
fn of_a_victim_that_is_nearly_empty_fewer_flash_pages_are_read_page_by_page_than_by_whole_dies() {
    let (dies, pages) = (sensed_per_moved(GcReads::Die, 4), sensed_per_moved(GcReads::Page, 4));
    assert!(pages < 0.7 * dies, "pages sensed for each page moved: {pages} one by one, {dies} by dies");
}

#[test]
fn a_write_that_is_not_replaced_in_the_buffer_takes_a_slot_of_its_own() {
    let programmed = |replaces: bool| {
        let mut config = with_parity(0);
        config.ftl.replaces_in_buffer = replaces;
        let mut drive = SimulatedSsd::new(config, 1).unwrap();
        let superpage = drive.config().superpage_bytes();
        (0..superpage / 4096).for_each(|_| write(&mut drive, 0, 4096));
        drive.pause(flashwise_block::Nanos::millis(100)).unwrap();
        drive.check_invariants().unwrap();
        let flash = drive.counters().flash.unwrap();
        (flash.bytes_programmed.0 / superpage, flash.absorbed_bytes.0 > 0)
    };
    assert_eq!(programmed(true), (0, true));
    assert_eq!(programmed(false), (1, false));
}
