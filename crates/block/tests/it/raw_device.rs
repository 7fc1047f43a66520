//! Raw devices as they are: loop devices, with everything on them that must not be lost.
//!
//! Each test has its own loop devices over its own files and can run beside the others. What the machine cannot do (no
//! root, no loop devices, no tool, no kernel support) is said aloud and skipped.

use crate::support;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};

use flashwise_block::{
    BlockDevice, BlockError, ByteSize, FileDevice, IoBuffer, RawPlan, Refusal, Request, WriteConsent, execute,
};
use support::{LoopDevice, MappedVolume, Mounted, run};

const MIB: ByteSize = ByteSize::mib(1);

pub(crate) fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Consent to the first 4 MiB of the device over `image`, 8 MiB in all.
pub(crate) fn consent_to(image: &Path) -> WriteConsent {
    WriteConsent {
        confirmation: Some(fs::canonicalize(image).unwrap().display().to_string()),
        allowed_signatures: Vec::new(),
        region: ByteSize::mib(4),
        max_write: ByteSize::mib(8),
    }
}

pub(crate) fn refusals(path: &Path, consent: &WriteConsent) -> Vec<Refusal> {
    RawPlan::of(path, Some(consent)).unwrap().refusals
}

/// Refused by the plan and by the open; nothing has changed.
pub(crate) fn must_refuse(path: &Path, consent: &WriteConsent, image: &Path) -> Vec<Refusal> {
    let before = checksum(image);
    let found = refusals(path, consent);
    assert!(!found.is_empty(), "nothing speaks against {}", path.display());
    match FileDevice::raw_destructive(path, consent) {
        Err(BlockError::Refused(why)) => {
            assert!(why.starts_with(&format!("{}: nothing is written: ", path.display())), "{why}");
            assert!(!why.contains('\n'), "{why}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(checksum(image), before);
    found
}

/// A number that changes with any byte that does.
fn checksum(image: &Path) -> u64 {
    let bytes = fs::read(image).unwrap();
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn is_mounted(refusals: &[Refusal]) -> bool {
    refusals.iter().any(|refusal| matches!(refusal, Refusal::Mounted { .. }))
}

/// Whether `holds` does within two seconds.
fn soon(mut holds: impl FnMut() -> bool) -> bool {
    (0..100).any(|_| {
        holds() || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            false
        }
    })
}

fn fails_as_refused(device: &mut FileDevice, request: Request) {
    let described = format!("{request:?}");
    let error = device.submit(request).unwrap_err();
    assert!(matches!(error, BlockError::Refused(_)), "{described}: {error:?}");
}

#[test]
fn without_consent_a_device_is_read_and_every_change_is_refused() {
    let directory = directory();
    let image = directory.path().join("image");
    fs::write(&image, vec![0x5a; 8 << 20]).unwrap();
    let Some(device) = LoopDevice::over(&image) else { return };
    let mut drive = FileDevice::raw_read_only(device.path()).unwrap();
    assert_eq!((drive.info().capacity, drive.writable()), (ByteSize::mib(8), ByteSize(0)));
    for request in [
        Request::write(ByteSize(0), MIB),
        Request::write(ByteSize(0), MIB).with_fua(),
        Request::write_zeroes(ByteSize(0), MIB),
        Request::trim(ByteSize(0), MIB),
    ] {
        fails_as_refused(&mut drive, request);
    }
    let read = Request::read(ByteSize::mib(7), MIB).with_buffer(IoBuffer::zeroed(1 << 20));
    let bytes = execute(&mut drive, read).unwrap().buffer.unwrap();
    assert!(bytes.iter().all(|&byte| byte == 0x5a));
    execute(&mut drive, Request::flush()).unwrap();
    drop(drive);
    drop(device);
    assert!(fs::read(&image).unwrap().iter().all(|&byte| byte == 0x5a));
}

#[test]
fn an_accepted_write_stays_inside_the_region_and_the_budget() {
    let directory = directory();
    let image = directory.path().join("image");
    fs::write(&image, vec![0x5a; 16 << 20]).unwrap();
    let Some(device) = LoopDevice::over(&image) else { return };
    let mut drive = FileDevice::raw_destructive(device.path(), &consent_to(&image)).unwrap();
    let region = ByteSize::mib(4);
    assert_eq!((drive.writable(), drive.info().capacity), (region, ByteSize::mib(16)));
    let block = drive.info().logical_block;
    for request in [
        Request::write(region, block),
        Request::write(ByteSize(region.0 - block.0), ByteSize(2 * block.0)),
        Request::write_zeroes(ByteSize::mib(15), MIB),
        Request::trim(ByteSize::mib(3), ByteSize::mib(2)),
        Request::trim(ByteSize(0), ByteSize::mib(16)),
    ] {
        fails_as_refused(&mut drive, request);
    }
    for n in 0..7 {
        execute(&mut drive, Request::write(MIB * (n % 4), MIB)).unwrap();
    }
    execute(&mut drive, Request::write_zeroes(ByteSize::mib(3), MIB)).unwrap();
    // 8 MiB are spent.
    fails_as_refused(&mut drive, Request::write(ByteSize(0), block));
    fails_as_refused(&mut drive, Request::write_zeroes(ByteSize(0), block));
    execute(&mut drive, Request::flush()).unwrap();
    drop(drive);
    drop(device);
    let bytes = fs::read(&image).unwrap();
    assert!(bytes[..3 << 20].chunks(4096).all(|block| block.iter().any(|&byte| byte != 0x5a)), "written");
    assert!(bytes[3 << 20..4 << 20].iter().all(|&byte| byte == 0), "zeroed");
    assert!(bytes[4 << 20..].iter().all(|&byte| byte == 0x5a), "behind the region nothing changes");
}

#[test]
fn a_device_that_is_being_written_cannot_be_opened_a_second_time() {
    let directory = directory();
    let image = directory.path().join("image");
    let Some(device) = LoopDevice::new(&image, 16) else { return };
    let consent = consent_to(&image);
    let first = FileDevice::raw_destructive(device.path(), &consent).unwrap();
    // Another test may be starting a command: between fork and exec the child has the descriptors of all, and is the
    // process that is named. It goes; `first` stays.
    let second = || FileDevice::raw_destructive(device.path(), &consent).unwrap_err();
    let told = soon(|| matches!(second(), BlockError::Refused(why) if why.contains("it is in use")));
    assert!(told, "{:?}", second());
    drop(first);
    let opened = soon(|| FileDevice::raw_destructive(device.path(), &consent).is_ok());
    assert!(opened, "it can be opened again when nobody has it any more");
}

#[test]
fn a_mounted_device_is_refused_by_any_name() {
    let directory = directory();
    let image = directory.path().join("image");
    let Some(device) = LoopDevice::new(&image, 64) else { return };
    if let Err(why) = run("mkfs.ext4", &[&"-q", &device.path()]) {
        return eprintln!("SKIPPED: {why}");
    }
    let mounted = match Mounted::read_only(device.path(), &directory.path().join("mnt")) {
        Ok(mounted) => mounted,
        Err(why) => return eprintln!("SKIPPED: {why}"),
    };
    let by_id = directory.path().join("ata-Some_Drive_S3RIAL");
    symlink(device.path(), &by_id).unwrap();
    let twice = directory.path().join("link-to-a-link");
    symlink(&by_id, &twice).unwrap();
    let mut consent = consent_to(&image);
    // Even where everything that can be overridden is.
    consent.allowed_signatures = flashwise_block::SignatureKind::all();
    for path in [device.path(), &by_id, &twice] {
        let found = must_refuse(path, &consent, &image);
        assert!(matches!(&found[0], Refusal::Mounted { at, .. } if at.ends_with("/mnt")), "{found:?}");
    }
    drop(mounted);
    assert!(refusals(device.path(), &consent).is_empty());
}

/// A file system on a partition of the device; the partition's path.
fn partitioned(device: &mut LoopDevice) -> Option<PathBuf> {
    let partition = device.add_partition(1, 2048, 64 * 2048)?;
    device.add_partition(2, 70 * 2048, 16 * 2048)?;
    if let Err(why) = run("mkfs.ext4", &[&"-q", &partition]) {
        eprintln!("SKIPPED: {why}");
        return None;
    }
    Some(partition)
}

#[test]
fn a_mounted_partition_refuses_its_disk_and_itself_but_not_its_sibling() {
    let directory = directory();
    let image = directory.path().join("image");
    let Some(mut device) = LoopDevice::new(&image, 100) else { return };
    let Some(partition) = partitioned(&mut device) else { return };
    let mounted = match Mounted::read_only(&partition, &directory.path().join("mnt")) {
        Ok(mounted) => mounted,
        Err(why) => return eprintln!("SKIPPED: {why}"),
    };
    let mut consent = consent_to(&image);
    let disk = must_refuse(device.path(), &consent, &image);
    assert!(is_mounted(&disk), "{disk:?}");
    let by_id = directory.path().join("by-id");
    symlink(device.path(), &by_id).unwrap();
    assert!(is_mounted(&must_refuse(&by_id, &consent, &image)));
    consent.confirmation = consent.confirmation.map(|name| name + "-part1");
    assert!(is_mounted(&must_refuse(&partition, &consent, &image)));

    let sibling = PathBuf::from(format!("{}p2", device.path().display()));
    consent.confirmation = consent.confirmation.map(|name| name.replace("-part1", "-part2"));
    let mut drive = FileDevice::raw_destructive(&sibling, &consent).unwrap();
    execute(&mut drive, Request::write(ByteSize(0), MIB)).unwrap();
    drop(drive);
    drop(mounted);
    run("e2fsck", &[&"-fn", &partition]).unwrap();
}

#[test]
fn what_a_partition_carries_refuses_the_disk_even_when_it_is_not_mounted() {
    let directory = directory();
    let image = directory.path().join("image");
    let Some(mut device) = LoopDevice::new(&image, 100) else { return };
    if partitioned(&mut device).is_none() {
        return;
    }
    let mut consent = consent_to(&image);
    let found = must_refuse(device.path(), &consent, &image);
    assert!(
        matches!(&found[..], [Refusal::Signature { device, signature }]
            if device.starts_with("its partition ") && signature.kind.to_string() == "ext4"),
        "{found:?}"
    );
    consent.allowed_signatures = vec!["ext4".parse().unwrap()];
    assert_eq!(refusals(device.path(), &consent), []);
}

#[test]
fn a_loop_device_on_the_device_holds_it_and_what_it_lies_on_protects_it() {
    let directory = directory();
    let image = directory.path().join("image");
    let Some(below) = LoopDevice::new(&image, 64) else { return };
    let Some(above) = LoopDevice::over(below.path()) else { return };
    let consent = consent_to(&image);
    let found = must_refuse(below.path(), &consent, &image);
    assert!(matches!(&found[..], [Refusal::Held { device }] if device.contains("is backed by it")), "{found:?}");

    let consent_above = WriteConsent { confirmation: Some(below.path().display().to_string()), ..consent_to(&image) };
    assert_eq!(refusals(above.path(), &consent_above), []);
    if let Err(why) = run("mkfs.ext4", &[&"-q", &below.path()]) {
        return eprintln!("SKIPPED: {why}");
    }
    let Ok(_mounted) = Mounted::read_only(below.path(), &directory.path().join("mnt")) else { return };
    assert!(is_mounted(&must_refuse(above.path(), &consent_above, &image)));
}

#[test]
fn another_loop_device_over_the_same_file_is_in_the_way() {
    let directory = directory();
    let image = directory.path().join("image");
    let Some(device) = LoopDevice::new(&image, 16) else { return };
    let Some(_twin) = LoopDevice::over(&image) else { return };
    let found = must_refuse(device.path(), &consent_to(&image), &image);
    assert!(matches!(&found[..], [Refusal::Held { device }] if device.contains("shares bytes with it")), "{found:?}");
}

#[test]
fn a_mounted_file_system_is_not_overwritten_through_a_second_loop_device_whose_file_has_no_name_any_more() {
    let directory = directory();
    let image = directory.path().join("image");
    let Some(mounted_device) = LoopDevice::new(&image, 64) else { return };
    let Some(device) = LoopDevice::over(&image) else { return };
    if let Err(why) = run("mkfs.ext4", &[&"-q", &mounted_device.path()]) {
        return eprintln!("SKIPPED: {why}");
    }
    let mounted = match Mounted::read_only(mounted_device.path(), &directory.path().join("mnt")) {
        Ok(mounted) => mounted,
        Err(why) => return eprintln!("SKIPPED: {why}"),
    };
    // A second name keeps the bytes in reach of the test; the one that the kernel knows is gone, or means another file.
    let kept = directory.path().join("kept");
    fs::hard_link(&image, &kept).unwrap();
    let mut consent = consent_to(&image);
    consent.allowed_signatures = flashwise_block::SignatureKind::all();
    consent.confirmation = consent.confirmation.map(|name| name + " (deleted)");
    fs::remove_file(&image).unwrap();
    for _ in 0..2 {
        let found = must_refuse(device.path(), &consent, &kept);
        assert!(is_mounted(&found), "{found:?}");
        assert!(found.iter().any(|found| matches!(found, Refusal::Held { device } if device.contains("shares bytes"))));
        fs::write(&image, "another file of that name").unwrap();
    }
    drop(mounted);
    assert!(!is_mounted(&refusals(device.path(), &consent)));
}

#[test]
fn a_mounted_map_over_the_same_bytes_refuses_the_other_map_and_one_beside_it_does_not() {
    let directory = directory();
    let image = directory.path().join("image");
    let Some(device) = LoopDevice::new(&image, 128) else { return };
    let name = |which: &str| format!("flashwise-test-{which}-{}", std::process::id());
    let map = |which: &str, start: u64| {
        let table = format!("0 65536 linear {} {start}", device.path().display());
        run("dmsetup", &[&"create", &name(which), &"--table", &table])
    };
    let made = [map("one", 0), map("same", 2048), map("beside", 131_072)];
    let look = || -> Result<_, String> {
        made.iter().cloned().collect::<Result<Vec<_>, _>>()?;
        let path = |which: &str| PathBuf::from(format!("/dev/mapper/{}", name(which)));
        run("mkfs.ext4", &[&"-q", &path("same")])?;
        let mounted = Mounted::read_only(&path("same"), &directory.path().join("mnt"))?;
        let consent = |which: &str| WriteConsent { confirmation: Some(name(which)), ..consent_to(&image) };
        let found = [refusals(&path("one"), &consent("one")), refusals(&path("beside"), &consent("beside"))];
        drop(mounted);
        Ok(found)
    };
    let found = look();
    for which in ["one", "same", "beside"] {
        let _ = run("dmsetup", &[&"remove", &"--retry", &name(which)]);
    }
    match found {
        Ok([same, beside]) => {
            assert!(is_mounted(&same), "{same:?}");
            assert_eq!(beside, []);
        }
        Err(why) => eprintln!("SKIPPED, no device mapper here: {why}"),
    }
}

#[test]
fn a_file_that_another_process_writes_to_refuses_the_loop_device_over_it() {
    let directory = directory();
    let image = directory.path().join("image");
    let Some(device) = LoopDevice::new(&image, 16) else { return };
    let writer = OpenOptions::new().write(true).open(&image).unwrap();
    let mut child = std::process::Command::new("sleep").arg("60").stdout(writer).spawn().unwrap();
    let found = refusals(device.path(), &consent_to(&image));
    child.kill().unwrap();
    child.wait().unwrap();
    let is_it = |found: &Refusal| matches!(found, Refusal::Written { pid, device, .. } if *pid == child.id() && device.contains("the file"));
    assert!(found.iter().any(is_it), "{found:?}");
    assert!(soon(|| refusals(device.path(), &consent_to(&image)).is_empty()), "nobody has it any more");
}

#[test]
fn swap_is_refused_while_it_is_used_and_afterwards_by_what_it_carries() {
    let directory = directory();
    let image = directory.path().join("image");
    let Some(device) = LoopDevice::new(&image, 16) else { return };
    if let Err(why) = run("mkswap", &[&device.path()]).and_then(|_| run("swapon", &[&device.path()])) {
        return eprintln!("SKIPPED: {why}");
    }
    let used = must_refuse(device.path(), &consent_to(&image), &image);
    run("swapoff", &[&device.path()]).unwrap();
    assert!(used.contains(&Refusal::Swap { device: "it".into() }), "{used:?}");
    let unused = refusals(device.path(), &consent_to(&image));
    assert!(
        matches!(&unused[..], [Refusal::Signature { signature, .. }] if signature.kind.to_string() == "swap"),
        "{unused:?}"
    );
}

#[test]
fn a_device_that_another_process_has_open_for_writing_is_refused() {
    let directory = directory();
    let image = directory.path().join("image");
    let Some(device) = LoopDevice::new(&image, 16) else { return };
    let writer = OpenOptions::new().write(true).open(device.path()).unwrap();
    let mut child = std::process::Command::new("sleep").arg("60").stdout(writer).spawn().unwrap();
    let found = refusals(device.path(), &consent_to(&image));
    child.kill().unwrap();
    child.wait().unwrap();
    // Not alone: what another test starts has the descriptors of all until it runs its program.
    assert!(found.iter().any(|found| matches!(found, Refusal::Written { pid, .. } if *pid == child.id())), "{found:?}");
    assert!(soon(|| refusals(device.path(), &consent_to(&image)).is_empty()), "nobody has it any more");
}

#[test]
fn a_read_only_loop_device_is_refused_for_writing_and_can_be_read() {
    let directory = directory();
    let image = directory.path().join("image");
    File::create(&image).unwrap().set_len(16 << 20).unwrap();
    let Some(device) = LoopDevice::with(&image, &["--read-only"]) else { return };
    assert_eq!(must_refuse(device.path(), &consent_to(&image), &image), [Refusal::ReadOnly]);
    let mut drive = FileDevice::raw_read_only(device.path()).unwrap();
    execute(&mut drive, Request::read(ByteSize(0), MIB)).unwrap();
}

#[test]
fn what_is_not_named_exactly_is_refused() {
    let directory = directory();
    let image = directory.path().join("image");
    let Some(device) = LoopDevice::new(&image, 16) else { return };
    let right = consent_to(&image).confirmation.unwrap();
    let path = device.path().display().to_string();
    for wrong in [None, Some(String::new()), Some("yes".into()), Some(path), Some(right.clone() + "x")] {
        let consent = WriteConsent { confirmation: wrong, ..consent_to(&image) };
        let found = must_refuse(device.path(), &consent, &image);
        assert!(matches!(found[..], [Refusal::Unconfirmed { has_identity: true, .. }]), "{found:?}");
    }
    assert_eq!(RawPlan::of(device.path(), None).unwrap().identities, [right]);
}

#[test]
fn what_is_no_block_device_is_no_raw_device() {
    let directory = directory();
    let file = directory.path().join("file");
    fs::write(&file, "data").unwrap();
    for path in [&file, Path::new("/dev/null"), directory.path()] {
        let consent = consent_to(&file);
        for error in [
            RawPlan::of(path, Some(&consent)).unwrap_err(),
            FileDevice::raw_read_only(path).unwrap_err(),
            FileDevice::raw_destructive(path, &consent).unwrap_err(),
        ] {
            assert!(matches!(&error, BlockError::Refused(why) if why.contains("not a block device")), "{error:?}");
        }
    }
    assert_eq!(fs::read(&file).unwrap(), b"data");
    assert!(matches!(RawPlan::of(Path::new("/dev/nowhere"), None), Err(BlockError::Os { errno: libc::ENOENT, .. })));
}

/// Volumes of the device mapper and arrays of Linux RAID: the kernel makes them, if it can.
#[test]
fn a_device_that_a_mapped_device_is_made_of_is_held() {
    let directory = directory();
    let image = directory.path().join("image");
    let Some(device) = LoopDevice::new(&image, 64) else { return };
    let name = format!("flashwise-test-{}", std::process::id());
    let table = format!("0 65536 linear {} 0", device.path().display());
    if let Err(why) = run("dmsetup", &[&"create", &name, &"--table", &table]) {
        return eprintln!("SKIPPED, no device mapper here: {why}");
    }
    let found = refusals(device.path(), &consent_to(&image));
    let opened = FileDevice::raw_destructive(device.path(), &consent_to(&image));
    run("dmsetup", &[&"remove", &"--retry", &name]).unwrap();
    assert!(matches!(&found[..], [Refusal::Held { device }] if device.starts_with("dm-")), "{found:?}");
    assert!(matches!(opened, Err(BlockError::Refused(_))), "{opened:?}");
    assert_eq!(refusals(device.path(), &consent_to(&image)), []);
}

#[test]
fn a_member_of_a_running_raid_array_is_held() {
    let directory = directory();
    let image = directory.path().join("image");
    let Some(device) = LoopDevice::new(&image, 64) else { return };
    let array = format!("/dev/md/flashwise-test-{}", std::process::id());
    let arguments: [&dyn AsRef<std::ffi::OsStr>; 7] =
        [&"--create", &array, &"--run", &"--level=linear", &"--force", &"--raid-devices=1", &device.path()];
    if let Err(why) = run("mdadm", &arguments) {
        return eprintln!("SKIPPED, no Linux RAID here: {why}");
    }
    let found = refusals(device.path(), &consent_to(&image));
    run("mdadm", &[&"--stop", &array]).unwrap();
    assert!(found.iter().any(|refusal| matches!(refusal, Refusal::Held { .. })), "{found:?}");
    let stopped = refusals(device.path(), &consent_to(&image));
    assert!(
        matches!(&stopped[..], [Refusal::Signature { signature, .. }] if signature.kind.to_string() == "md"),
        "{stopped:?}"
    );
}

#[test]
fn a_logical_volume_holds_its_physical_volume() {
    let directory = directory();
    let image = directory.path().join("image");
    let Some(device) = LoopDevice::new(&image, 64) else { return };
    let group = format!("flashwise{}", std::process::id());
    let config = format!(
        "backup {{ backup=0 archive=0 }} devices {{ use_devicesfile=0 filter=[\"a|^{}$|\",\"r|.*|\"] }}",
        device.path().display()
    );
    let made = run("pvcreate", &[&"--yes", &"--config", &config, &device.path()])
        .and_then(|_| run("vgcreate", &[&"--config", &config, &group, &device.path()]))
        .and_then(|_| run("lvcreate", &[&"--yes", &"-Zn", &"-Wn", &"--config", &config, &"-L16m", &"-nx", &group]));
    let found = made.as_ref().ok().map(|_| refusals(device.path(), &consent_to(&image)));
    let _ = run("vgremove", &[&"--force", &"--force", &"--config", &config, &group]);
    match (made, found) {
        (Ok(_), Some(found)) => {
            assert!(found.iter().any(|refusal| matches!(refusal, Refusal::Held { .. })), "{found:?}");
        }
        (made, _) => eprintln!("SKIPPED, no LVM here: {made:?}"),
    }
}

/// A file system that is frozen; it thaws in any case, or nothing could be unmounted.
struct Frozen<'a>(&'a Path);

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        let _ = run("fsfreeze", &[&"--unfreeze", &self.0]);
    }
}

#[test]
fn a_drive_that_really_hangs_is_an_error_after_the_time_limit() {
    let directory = directory();
    let (outer, place) = (directory.path().join("outer"), directory.path().join("mnt"));
    let Some(below) = LoopDevice::new(&outer, 96) else { return };
    let _mounted = match run("mkfs.ext4", &[&"-q", &below.path()]).and_then(|_| Mounted::new(below.path(), &place)) {
        Ok(mounted) => mounted,
        Err(why) => return eprintln!("SKIPPED: {why}"),
    };
    let inner = place.join("inner");
    fs::write(&inner, vec![0; 16 << 20]).unwrap();
    let Some(drive) = LoopDevice::over(&inner) else { return };
    let limit = flashwise_block::Nanos::millis(300);
    let mut device = FileDevice::raw_destructive(drive.path(), &consent_to(&inner)).unwrap().with_time_limit(limit);
    execute(&mut device, Request::write(ByteSize(0), MIB)).unwrap();
    let frozen = Frozen(&place);
    if let Err(why) = run("fsfreeze", &[&"--freeze", &place]) {
        return eprintln!("SKIPPED: {why}");
    }
    // A write to a file of a frozen file system waits until it thaws.
    let lost = execute(&mut device, Request::write(MIB, MIB)).unwrap_err();
    assert!(matches!(lost, BlockError::TimedOut { .. }), "{lost:?}");
    assert_eq!(device.wait().unwrap_err(), lost);
    let before = std::time::Instant::now();
    drop(device);
    assert!(before.elapsed().as_secs() < 20, "the drop does not wait either");
    drop(frozen);
}

#[test]
fn a_drive_that_shrinks_says_so() {
    let directory = directory();
    let image = directory.path().join("image");
    let Some(device) = LoopDevice::new(&image, 16) else { return };
    let consent = WriteConsent { region: ByteSize::mib(16), ..consent_to(&image) };
    let mut drive = FileDevice::raw_destructive(device.path(), &consent).unwrap();
    OpenOptions::new().write(true).open(&image).unwrap().set_len(4 << 20).unwrap();
    run("losetup", &[&"--set-capacity", &device.path()]).unwrap();
    for request in [Request::read(ByteSize::mib(8), MIB), Request::write(ByteSize::mib(8), MIB)] {
        let error = execute(&mut drive, request).unwrap_err().to_string();
        assert!(error.contains("it has shrunk from 16 MiB to 4 MiB"), "{error}");
    }
    execute(&mut drive, Request::write(ByteSize(0), MIB)).unwrap();
}

/// A drive with a file system on it, and a scratch file in that.
fn scratch_on(maker: &str, drive: &Path, place: &Path) -> Option<(FileDevice, Mounted)> {
    let mounted = match run(maker, &[&"-q", &drive]).and_then(|_| Mounted::new(drive, place)) {
        Ok(mounted) => mounted,
        Err(why) => {
            eprintln!("SKIPPED, {maker}: {why}");
            return None;
        }
    };
    match FileDevice::scratch(place, ByteSize::mib(64)) {
        Ok(device) => Some((device, mounted)),
        Err(error) => {
            eprintln!("SKIPPED, {maker}: {error}");
            None
        }
    }
}

/// 4 KiB that tell which block they belong to.
fn stamp(block: u64) -> IoBuffer {
    IoBuffer::copy_of(&(0..512u64).flat_map(|word| (block << 16 | word).to_le_bytes()).collect::<Vec<_>>())
}

#[test]
fn what_is_written_through_a_scratch_file_lies_on_the_drive_where_its_extents_say() {
    for maker in ["mkfs.ext4", "mkfs.xfs"] {
        let directory = directory();
        let (image, place) = (directory.path().join("image"), directory.path().join("mnt"));
        let Some(drive) = LoopDevice::new(&image, 1000) else { return };
        let Some((mut device, mounted)) = scratch_on(maker, drive.path(), &place) else { continue };
        let block = ByteSize::kib(4);
        let map = device.extents().unwrap();
        assert_eq!(Some(map.drive()), drive.path().file_name().unwrap().to_str());
        let blocks: Vec<u64> = (0..64).map(|n| n * 251 % (device.info().capacity / block)).collect();
        for &n in &blocks {
            execute(&mut device, Request::write(block * n, block).with_buffer(stamp(n))).unwrap();
        }
        execute(&mut device, Request::flush()).unwrap();
        assert_eq!(device.extents().unwrap(), map, "writing in place moves nothing");
        let raw = File::open(drive.path()).unwrap();
        for &n in &blocks {
            let there = map.to_drive(block * n).unwrap();
            let mut bytes = vec![0; 4096];
            raw.read_exact_at(&mut bytes, there.0).unwrap();
            assert!(bytes == *stamp(n), "{maker}: block {n} is not at byte {there:?}");
            assert_eq!(map.to_device(there), Some(block * n));
        }
        assert_eq!(device.alignment(block), flashwise_block::Alignment::Known(ByteSize(0)));
        drop(device);
        drop(mounted);
    }
}

#[test]
fn on_a_partition_the_extents_are_those_of_the_whole_drive() {
    let directory = directory();
    let (image, place) = (directory.path().join("image"), directory.path().join("mnt"));
    let Some(mut drive) = LoopDevice::new(&image, 1000) else { return };
    let start = ByteSize(2056 * 512);
    let Some(partition) = drive.add_partition(1, 2056, 990 * 2048) else { return };
    let Some((mut device, mounted)) = scratch_on("mkfs.ext4", &partition, &place) else { return };
    let block = ByteSize::kib(4);
    execute(&mut device, Request::write(block * 100, block).with_buffer(stamp(100)).with_fua()).unwrap();
    let there = device.extents().unwrap().to_drive(block * 100).unwrap();
    assert!(there > start);
    let placement = flashwise_block::Placement::of(&place).unwrap();
    assert_eq!((placement.start, placement.layers.len()), (start, 1), "{placement}");
    let mut bytes = vec![0; 4096];
    File::open(drive.path()).unwrap().read_exact_at(&mut bytes, there.0).unwrap();
    assert!(bytes == *stamp(100));
    drop(device);
    drop(mounted);
    let raw = FileDevice::raw_read_only(&partition).unwrap();
    let shift = ByteSize(start.0 % (1 << 16));
    assert_eq!(raw.alignment(ByteSize::kib(64)), flashwise_block::Alignment::Known(shift));
    assert_eq!(raw.extents().unwrap().to_drive(ByteSize(0)), Some(start));
}

#[test]
fn through_a_mapped_volume_the_extents_are_those_of_the_drive_below() {
    let directory = directory();
    let (image, place) = (directory.path().join("image"), directory.path().join("mnt"));
    let Some(drive) = LoopDevice::new(&image, 1000) else { return };
    let (start, block) = (ByteSize(4104 * 512), ByteSize::kib(4));
    let table = format!("0 {} linear {} 4104", 980 * 2048, drive.path().display());
    let Some(volume) = MappedVolume::new(&table) else { return };
    let Some((mut device, mounted)) = scratch_on("mkfs.ext4", &volume.path(), &place) else { return };
    execute(&mut device, Request::write(block * 100, block).with_buffer(stamp(100)).with_fua()).unwrap();
    let map = device.extents().unwrap();
    assert_eq!(Some(map.drive()), drive.path().file_name().unwrap().to_str());
    let there = map.to_drive(block * 100).unwrap();
    assert!(there > start);
    let mut bytes = vec![0; 4096];
    File::open(drive.path()).unwrap().read_exact_at(&mut bytes, there.0).unwrap();
    assert!(bytes == *stamp(100));
    let placement = flashwise_block::Placement::of(&place).unwrap();
    assert_eq!((placement.start, placement.layers.len()), (start, 1), "{placement}");
    drop((device, mounted));
}

#[test]
fn a_file_system_that_moves_data_or_has_no_drive_says_that_it_does_not_know() {
    let directory = directory();
    let (image, place) = (directory.path().join("image"), directory.path().join("mnt"));
    let Some(drive) = LoopDevice::new(&image, 1200) else { return };
    if let Some((device, mounted)) = scratch_on("mkfs.btrfs", drive.path(), &place) {
        let why = device.extents().unwrap_err().to_string();
        assert!(why.contains("btrfs does not keep a file at a fixed place"), "{why}");
        assert!(matches!(device.alignment(MIB), flashwise_block::Alignment::Unknown(_)));
        assert_eq!(flashwise_block::Placement::of(&place).unwrap_err().to_string(), why);
        drop(device);
        drop(mounted);
    }
    match flashwise_block::ScratchFile::create(Path::new("/dev/shm"), ByteSize::mib(64)) {
        Ok(scratch) if scratch.file_system() == "tmpfs" => {
            let why = scratch.extents().unwrap_err().to_string();
            assert!(why.contains("is not on a block device"), "{why}");
        }
        other => eprintln!("SKIPPED, no scratch file on tmpfs here: {other:?}"),
    }
}

#[test]
fn the_directory_may_go_while_it_is_measured_and_nothing_stays_behind() {
    let directory = directory();
    let place = directory.path().join("place");
    fs::create_dir(&place).unwrap();
    let Ok(mut device) = FileDevice::scratch(&place, ByteSize::mib(64)) else {
        return eprintln!("SKIPPED: no scratch file here");
    };
    fs::remove_dir(&place).unwrap();
    execute(&mut device, Request::write(ByteSize(0), MIB).with_fua()).unwrap();
    execute(&mut device, Request::read(ByteSize(0), MIB)).unwrap();
    drop(device);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_full_disk_is_a_clear_error_and_leaves_no_scratch_file() {
    let directory = directory();
    let (image, place) = (directory.path().join("image"), directory.path().join("mnt"));
    let Some(drive) = LoopDevice::new(&image, 1000) else { return };
    let Some((mut device, mounted)) = scratch_on("mkfs.ext4", drive.path(), &place) else { return };
    execute(&mut device, Request::write(ByteSize(0), MIB)).unwrap();
    let everything = device.info().capacity;
    execute(&mut device, Request::trim(ByteSize(0), everything)).unwrap();
    // Somebody else takes what the trim gave back.
    let filler = File::create(place.join("filler")).unwrap();
    let zeros = vec![0; 1 << 20];
    while std::io::Write::write_all(&mut &filler, &zeros).is_ok() {}
    let _ = filler.sync_all();
    let error = execute(&mut device, Request::write(ByteSize(0), ByteSize::mib(8)).with_fua()).unwrap_err();
    assert!(matches!(error, BlockError::Os { errno: libc::ENOSPC, .. }), "{error:?}");
    assert!(error.to_string().contains("free some space on this file system"), "{error}");
    drop(device);
    drop(filler);
    let names: Vec<_> = fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| name == "filler" || name == "lost+found"), "{names:?}");
    assert!(
        matches!(FileDevice::scratch(&place, ByteSize::mib(64)), Err(BlockError::Refused(why)) if why.contains("must be free"))
    );
    drop(mounted);
}
