//! What is learned through a file counts from the start of the drive below it, or says that it does not.

use crate::support;
use flashwise_block::{
    BlockDevice, BlockError, ByteSize, DeviceInfo, Extent, ExtentMap, PlacementUnknown, Request, Silent,
};
use flashwise_learn::{Effort, LearnOptions, learn};
use flashwise_profile::{DeviceProfile, Verdict};
use flashwise_ssd::config::Placement;
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use support::{REGION, entry, reason};

/// A file on a drive, in extents that the file system reports, or does not.
struct File {
    drive: SimulatedSsd,
    info: DeviceInfo,
    map: ExtentMap,
    reports: bool,
}

impl File {
    /// Of pieces of so many bytes at these places of the drive.
    fn on(drive: SimulatedSsd, pieces: &[(u64, u64)]) -> Self {
        let mut offset = 0;
        let extents: Vec<Extent> = pieces
            .iter()
            .map(|&(drive_offset, length)| {
                let extent =
                    Extent { offset: ByteSize(offset), drive_offset: ByteSize(drive_offset), length: ByteSize(length) };
                offset += length;
                extent
            })
            .collect();
        let map = ExtentMap::new("sim", extents, ByteSize(offset)).unwrap();
        let info = DeviceInfo { capacity: ByteSize(offset), ..drive.info().clone() };
        Self { drive, info, map, reports: true }
    }
}

impl BlockDevice for File {
    flashwise_block::forward!(drive: now wait outstanding pause counters);

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn submit(&mut self, request: Request) -> Result<(), BlockError> {
        let offset = self.map.to_drive(request.offset).expect("requests lie in the file");
        // What crosses from one piece to the next is sent to the first: the probes of layout must not do it.
        self.drive.submit(Request { offset, ..request })
    }

    fn extents(&self) -> Result<ExtentMap, PlacementUnknown> {
        if self.reports {
            Ok(self.map.clone())
        } else {
            Err(PlacementUnknown("the file system does not tell".to_owned()))
        }
    }
}

/// Of the two ways to lay out data: in the order in which it comes, and by its address.
const PLACEMENTS: [Placement; 2] = [Placement::Stripe, Placement::Static];

fn samsung(placement: Placement) -> SimulatedSsd {
    let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
    config.ftl.placement = placement;
    SimulatedSsd::new(config, 1).unwrap()
}

fn learned(device: &mut dyn BlockDevice) -> DeviceProfile {
    let options = LearnOptions { region: REGION, effort: Effort::Quick, ..LearnOptions::new("a directory") };
    learn(device, &options, &mut Silent).unwrap()
}

const MIB: u64 = 1 << 20;
/// A place that no chunk starts at, and that is far enough from one for another place to be hot.
const ODD: u64 = 7 * MIB + 20_480;

#[test]
fn through_a_file_that_begins_anywhere_the_layout_of_the_drive_is_learned() {
    let pieces = [(ODD, 40 * MIB + 4096), (300 * MIB + 36_864, 30 * MIB)];
    let [_, through] = PLACEMENTS.map(|placement| {
        let direct = learned(&mut samsung(placement));
        let through = learned(&mut File::on(samsung(placement), &pieces));
        for key in ["chunk_bytes", "hot_location", "write_unit_bytes"] {
            let (direct, through) = (entry(&direct, key).figure, entry(&through, key).figure);
            assert_eq!(direct.verdict, Verdict::Certain, "{placement:?}: {key}");
            assert_eq!((through.value, through.verdict), (direct.value, direct.verdict), "{placement:?}: {key}");
        }
        through
    });
    let reason = reason(&through, "hot_location").unwrap();
    assert!(reason.ends_with("offsets count from the start of sim, where the file has 2 extents"), "{reason}");
}

#[test]
fn a_file_of_unknown_place_tells_nothing_for_certain_that_depends_on_it() {
    for placement in PLACEMENTS {
        let mut file = File { reports: false, ..File::on(samsung(placement), &[(ODD, 80 * MIB)]) };
        let through = learned(&mut file);
        assert_ne!(entry(&through, "hot_location").figure.verdict, Verdict::Certain, "{placement:?}");
    }
    let mut file = File { reports: false, ..File::on(samsung(Placement::Stripe), &[(ODD, 80 * MIB)]) };
    let through = learned(&mut file);
    let reason = reason(&through, "hot_location").unwrap();
    assert!(reason.contains("offsets count from the start of the file: its location on the drive is un"), "{reason}");
}
