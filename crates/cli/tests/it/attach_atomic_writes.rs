//! Pages of a database on attached drives that promise to write them atomically, and whose power is cut: one keeps its
//! promise, the other does not.
//!
//! ```text
//!   pages of 16 KiB, direct I/O, no doublewrite ─▶ ext4 ─▶ loop device ─▶ the drive
//!   attach cut ─▶ mounted again ─▶ is each page one version of itself as a whole?
//! ```
//!
//! Both drives promise the same unit (AWUPF of NVMe; `host.atomic_write_bytes`). One has capacitors, so that what it
//! has accepted gets to flash; the other has none and programs the logical pages of a write as they come. Only a power
//! cut shows which is which: that is why `innodb_doublewrite = OFF` is called the drive's promise.
//!
//! `FLASHWISE_ATOMIC_POWER_CUTS` asks for more than a few cuts.

use crate::mounted;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mounted::{Drive, Power, assert_nothing_left, place, power_fails, run, small_drive, turn};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rustix::fs::OFlags;
use rustix::process::Signal;
use support::Place;

use crate::support;

/// InnoDB's page.
const PAGE: usize = 16 << 10;
/// Pages of the file.
const PAGES: u64 = 512;
/// Threads that write pages, as a server's do.
const WRITERS: u64 = 8;
/// Unit of the stamps that show which version a part of a page is of: a drive's smallest block.
const PART: usize = 512;

/// Cuts of each drive.
fn cuts() -> u64 {
    std::env::var("FLASHWISE_ATOMIC_POWER_CUTS").ok().map_or(8, |text| text.parse().unwrap())
}

/// Memory for a page, aligned for direct I/O.
struct Page(Vec<u8>);

impl Page {
    fn new() -> Self {
        Self(vec![0; 2 * PAGE])
    }

    fn bytes(&mut self) -> &mut [u8] {
        let start = self.0.as_ptr().align_offset(PAGE);
        &mut self.0[start..start + PAGE]
    }

    fn stamp(&mut self, version: u64) {
        self.bytes().chunks_mut(PART).for_each(|part| part[..8].copy_from_slice(&version.to_le_bytes()));
    }

    /// Whether its parts are of one version.
    fn is_whole(&mut self) -> bool {
        let bytes = self.bytes();
        let version = bytes[..8].to_vec();
        bytes.chunks(PART).all(|part| part[..8] == version)
    }
}

fn open(path: &Path) -> File {
    let direct = OFlags::DIRECT.bits().cast_signed();
    OpenOptions::new().read(true).write(true).custom_flags(direct).open(path).unwrap()
}

/// Writes pages until the power fails.
fn write(path: &Path, power: &Power, writer: u64, seed: u64) {
    let (file, mut page, mut random) = (open(path), Page::new(), Pcg64Mcg::seed_from_u64(seed));
    while power.is_on() {
        // Each has pages of its own: no two writes of a page are in flight.
        let at = random.random_range(0..PAGES / WRITERS) * WRITERS + writer;
        page.stamp(random.random());
        if file.write_all_at(page.bytes(), at * PAGE as u64).is_err() {
            return;
        }
    }
}

/// Cuts the power in the middle of writes; gives how many pages are torn.
fn torn_by_a_cut(place: &Place, device: &str, seed: u64) -> usize {
    let (path, power) = (place.path("on/pages"), Arc::new(Power::default()));
    let start = |writer: u64| {
        let (path, power) = (path.clone(), Arc::clone(&power));
        std::thread::spawn(move || write(&path, &power, writer, seed * WRITERS + writer))
    };
    let writers: Vec<_> = (0..WRITERS).map(start).collect();
    std::thread::sleep(Duration::from_micros(Pcg64Mcg::seed_from_u64(seed).random_range(50_000..300_000)));
    power_fails(place, device, &power, || writers.into_iter().for_each(|writer| writer.join().unwrap()));
    let (file, mut page) = (open(&path), Page::new());
    let mut is_torn = |number: u64| {
        file.read_exact_at(page.bytes(), number * PAGE as u64).unwrap();
        !page.is_whole()
    };
    (0..PAGES).filter(|&number| is_torn(number)).count()
}

/// Torn pages after each cut of a drive with or without capacitors.
fn torn(has_capacitors: bool) -> Vec<usize> {
    let place = place();
    small_drive(&place);
    let drive = place.read("drive.toml");
    let line = |has: bool| format!("power_loss_protection = {has}");
    let drive = drive.replace(&line(!has_capacitors), &line(has_capacitors));
    assert!(drive.contains(&line(has_capacitors)));
    let drive = drive.replace("[host]\n", &format!("[host]\natomic_write_bytes = {PAGE}\n"));
    place.write("drive.toml", &drive);
    let more = ["--power-cuts", "--time-scale", "4"];
    let drive = Drive::of(&place, &[&["attach", "drive.toml", "--mount", "on"], &more[..]].concat());
    let pages = vec![0; PAGE * PAGES as usize];
    std::fs::write(place.path("on/pages"), pages).unwrap();
    run("sync", &["--file-system", &place.path("on").display().to_string()]);
    let torn = (0..cuts()).map(|seed| torn_by_a_cut(&place, &drive.device(), seed)).collect();
    let process = drive.number();
    drive.signal(Signal::INT);
    drive.ended().expect(0);
    assert_nothing_left(&place, process);
    torn
}

#[test]
fn a_drive_that_keeps_its_promise_tears_no_page_and_one_that_breaks_it_is_found() {
    let Some(_turn) = turn(&["mkfs.ext4"]) else { return };
    let (keeps, breaks) = (torn(true), torn(false));
    eprintln!("torn pages after each cut: with capacitors {keeps:?}, without {breaks:?}");
    assert!(keeps.iter().all(|&pages| pages == 0), "{keeps:?}");
    assert!(breaks.iter().any(|&pages| pages > 0), "{breaks:?}");
}
