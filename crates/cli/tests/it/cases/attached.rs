//! How an attached drive reports pages that were never written.

use crate::support::Place;

/// A copy of an empty drive would otherwise move all of its zeros.
#[test]
fn an_empty_drive_is_one_hole_for_nbdinfo_and_nothing_for_qemu() {
    if !["nbdinfo", "qemu-img"].iter().all(|tool| std::process::Command::new(tool).arg("--version").output().is_ok()) {
        return eprintln!("nbdinfo and qemu-img are not installed: not tested");
    }
    let place = Place::new();
    let script = "nbdinfo --map \"$FLASHWISE_NBD\" > map; qemu-img map -f raw \"$FLASHWISE_NBD\" > extents; \
                  nbdcopy --flush - \"$FLASHWISE_NBD\" < one; nbdinfo --map \"$FLASHWISE_NBD\" > after";
    std::fs::write(place.path("one"), [7; 8192]).unwrap();
    let attach = ["attach", "samsung-960-evo", "--nbd", "unix:s.sock", "--time", "none", "--", "sh", "-c", script];
    place.run(&attach).expect(0);
    let map = |name: &str| -> Vec<Vec<String>> {
        place.read(name).lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
    };
    assert_eq!(map("map"), [["0", "500107862016", "3", "hole,zero"]]);
    assert_eq!(map("extents").len(), 1, "qemu's heading alone: {}", place.read("extents"));
    assert_eq!(map("after"), [["0", "8192", "0", "data"], ["8192", "500107853824", "3", "hole,zero"]]);
}
