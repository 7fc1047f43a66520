//! `io-properties.yaml`, which ScyllaDB and Redpanda read (`--io-properties-file`).
//!
//! Source: Seastar, `doc/io-properties-file.md` and `disk-params`: all four figures are required, as whole numbers or
//! with a suffix of k, M, G or T.

use std::fmt::Write;

use flashwise_profile::DeviceProfile;

use super::{DriveLimits, ExportedFile, NotCertain, head};

/// Where data is expected if the profile is of no directory: ScyllaDB's own default.
const MOUNTPOINT: &str = "/var/lib/scylla";

/// The limits of a profile for Seastar.
///
/// # Errors
/// [`NotCertain`] where a figure is not.
pub fn seastar_files(profile: &DeviceProfile) -> Result<Vec<ExportedFile>, NotCertain> {
    let DriveLimits { read_iops, read_bandwidth, write_iops, write_bandwidth } = DriveLimits::of_profile(profile)?;
    let target = &profile.device.target;
    let is_directory = target.starts_with('/') && !target.starts_with("/dev/");
    // A string of JSON is one of YAML, whatever is in it.
    let mountpoint = serde_json::json!(if is_directory { target } else { MOUNTPOINT });
    let mut text = head(
        profile,
        &[
            "Any directory on the volume is a mountpoint. ScyllaDB: /etc/scylla.d/io_properties.yaml;",
            "Redpanda: /etc/redpanda/io-config.yaml.",
        ],
    );
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "disks:\n  - mountpoint: {mountpoint}\n    read_iops: {read_iops}\n    read_bandwidth: {read_bandwidth}\n    \
         write_iops: {write_iops}\n    write_bandwidth: {write_bandwidth}\n"
    );
    Ok(vec![ExportedFile { name: "io-properties.yaml", text }])
}
