//! How much memory a drive takes: at most 16 bytes a logical page and 64 MiB, when every page was written; at most
//! 64 MB whatever its size, when it was filled at once.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should panic where it fails")]
#![allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own")]

use std::process::Command;

use flashwise_block::{BlockDevice, ByteSize, Request};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

const PEAK: &str = "peak resident memory in KiB: ";

/// The most memory that this process ever had, bytes.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// Fills a drive of 64 GiB and overwrites some of it until garbage collection has run.
fn fill() -> u64 {
    let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
    config.capacity_bytes = ByteSize::gib(64).bytes();
    config.flash.blocks_per_plane = 256;
    let mut drive = SimulatedSsd::new(config, 1).unwrap();
    drive.fill_at_once().unwrap();
    let pages = drive.config().logical_pages();
    let mut state = 1_u64;
    while drive.counters().flash.unwrap().erases < 16 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        drive.submit(Request::write(ByteSize((state >> 33) % pages * 4096), ByteSize::kib(4))).unwrap();
        while drive.outstanding() >= 32 {
            drive.wait().unwrap();
        }
    }
    pages
}

#[test]
#[ignore = "the process that the other test measures"]
fn fills_a_drive_in_a_process_of_its_own() {
    fill();
    println!("{PEAK}{}", peak_bytes() >> 10);
}

/// Fills a drive of so many times 500 GB. Above 4 TiB logical pages must be longer than 4 KiB.
fn fill_at_once(times: u32, page: ByteSize) {
    let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
    config.flash.chips_per_channel = times;
    config.ftl.logical_page_bytes = page.bytes();
    config.controller.write_buffer_bytes *= u64::from(times);
    config.capacity_bytes = config.capacity_bytes * u64::from(times) / page.bytes() * page.bytes();
    let mut drive = SimulatedSsd::new(config, 1).unwrap();
    drive.fill_at_once().unwrap();
    let ends = [0, drive.info().capacity.bytes() - page.bytes()];
    assert!(ends.iter().all(|&byte| drive.channel_of(ByteSize(byte)).is_some()));
}

#[test]
#[ignore = "a process that another test measures"]
fn fills_500_gb_at_once_in_a_process_of_its_own() {
    fill_at_once(1, ByteSize::kib(4));
    println!("{PEAK}{}", peak_bytes() >> 10);
}

#[test]
#[ignore = "a process that another test measures"]
fn fills_8_tb_at_once_in_a_process_of_its_own() {
    fill_at_once(16, ByteSize::kib(16));
    println!("{PEAK}{}", peak_bytes() >> 10);
}

/// The peak of a process that runs one of the tests alone, bytes.
fn peak_of(test: &str) -> u64 {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let output = String::from_utf8(child.stdout).unwrap();
    let peak = output.lines().find_map(|line| line.split_once(PEAK)).map(|(_, kib)| kib.trim()).expect(&output);
    peak.parse::<u64>().unwrap() << 10
}

#[test]
fn a_drive_that_is_filled_at_once_takes_at_most_64_mb_whatever_its_size() {
    for test in ["fills_500_gb_at_once_in_a_process_of_its_own", "fills_8_tb_at_once_in_a_process_of_its_own"] {
        let peak = peak_of(test);
        println!("{test}: {} KiB", peak >> 10);
        assert!(peak <= 64_000_000, "{test}: {peak} bytes");
    }
}

#[test]
fn a_drive_takes_at_most_16_bytes_a_logical_page_and_64_mib() {
    let (peak, pages) = (peak_of("fills_a_drive_in_a_process_of_its_own"), ByteSize::gib(64).bytes() / 4096);
    println!("{:.2} bytes a logical page", peak as f64 / pages as f64);
    assert!(peak <= 16 * pages + ByteSize::mib(64).bytes(), "{peak} bytes for {pages} logical pages");
}
