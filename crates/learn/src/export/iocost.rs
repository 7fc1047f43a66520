//! The kernel's `io.cost.model` and `io.cost.qos` (cgroup v2), and systemd's hwdb, which sets both at boot.
//!
//! Sources: Linux, `Documentation/admin-guide/cgroup-v2.rst` and `block/blk-iocost.c`; systemd, `hwdb(7)` and
//! `rules.d/90-iocost.rules`.
//!
//! A volume's limit does not depend on the order of addresses, so sequential and random IOPS are the same figure. The
//! limit is known, so the kernel has nothing to find by latency: its rate is fixed (`min` = `max`). Below a limiter
//! that holds requests it is fixed at 95 %, for the reason of [`flashwise_block::Governor`].

use std::fmt::Write;

use flashwise_block::RateLimits;
use flashwise_profile::DeviceProfile;

use super::{DriveLimits, ExportedFile, NotCertain, head};

/// The limits of a profile for `io.cost`.
///
/// # Errors
/// [`NotCertain`] where a figure is not.
pub fn iocost_files(profile: &DeviceProfile) -> Result<Vec<ExportedFile>, NotCertain> {
    let DriveLimits { read_iops, read_bandwidth, write_iops, write_bandwidth } = DriveLimits::of_profile(profile)?;
    let model = format!(
        "rbps={read_bandwidth} rseqiops={read_iops} rrandiops={read_iops} wbps={write_bandwidth} \
         wseqiops={write_iops} wrandiops={write_iops}"
    );
    let holds = profile.limits.throttle_hold_ns.known().is_some();
    let percent = if holds { RateLimits::SHARE_OF_LIMIT * 100.0 } else { 100.0 };
    let qos = format!("rpct=0.00 rlat=0 wpct=0.00 wlat=0 min={percent:.2} max={percent:.2}");
    let mut files = vec![
        ExportedFile { name: "io.cost.model", text: format!("ctrl=user model=linear {model}\n") },
        ExportedFile { name: "io.cost.qos", text: format!("enable=1 ctrl=user {qos}\n") },
    ];
    if let Some(name) = model_pattern(&profile.device.name) {
        let mut text = head(
            profile,
            &[
                "Copy to /etc/udev/hwdb.d/90-iocost-tune.hwdb, then systemd-hwdb update and udevadm trigger.",
                "Needs systemd 254 or newer. It applies to every drive of this model.",
            ],
        );
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "\nblock:*:name:{name}:*\n  IOCOST_SOLUTIONS=naive\n  IOCOST_MODEL_NAIVE={model}\n  \
             IOCOST_QOS_NAIVE={qos}\n"
        );
        files.push(ExportedFile { name: "90-iocost-tune.hwdb", text });
    }
    Ok(files)
}

/// A drive's model as a pattern of hwdb; `None` where the name is that of a file or directory, or has nothing to match.
/// What has a meaning there, or may be written in another way, matches any character.
fn model_pattern(name: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '+' | '_');
    let pattern: String = name.trim().chars().map(|c| if is_plain(c) { c } else { '?' }).collect();
    (!name.contains('/') && pattern.contains(|c: char| c.is_ascii_alphanumeric())).then_some(pattern)
}
