//! How much memory a drive takes: at most 16 bytes a logical page and 64 MiB, when every page was written.
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

#[test]
fn a_drive_takes_at_most_16_bytes_a_logical_page_and_64_mib() {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "fills_a_drive_in_a_process_of_its_own", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let output = String::from_utf8(child.stdout).unwrap();
    let peak = output.lines().find_map(|line| line.split_once(PEAK)).map(|(_, kib)| kib.trim()).expect(&output);
    let (peak, pages) = (peak.parse::<u64>().unwrap() << 10, ByteSize::gib(64).bytes() / 4096);
    println!("{:.2} bytes a logical page", peak as f64 / pages as f64);
    assert!(peak <= 16 * pages + ByteSize::mib(64).bytes(), "{peak} bytes for {pages} logical pages");
}
