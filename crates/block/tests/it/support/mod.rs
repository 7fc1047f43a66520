//! Loop devices and what can be put on them. Where the machine cannot have them, a test says so and passes.

#![allow(dead_code, reason = "each test file uses its share")]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs a program to its end; what it said when it failed or is not there.
pub fn run(program: &str, arguments: &[&dyn AsRef<OsStr>]) -> Result<String, String> {
    let mut command = Command::new(program);
    let path = std::env::var("PATH").unwrap_or_default();
    // Tools of the administrator are not in everybody's path.
    command.env("PATH", format!("{path}:/usr/sbin:/sbin")).stdin(Stdio::null());
    command.args(arguments.iter().map(|argument| argument.as_ref()));
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// A loop device over a file, detached at the end with everything that a test put on it.
pub struct LoopDevice {
    path: PathBuf,
    partitions: Vec<u32>,
}

impl LoopDevice {
    /// A loop device over a file, or `None`, said aloud.
    pub fn over(file: &Path) -> Option<Self> {
        Self::with(file, &[])
    }

    /// The same with options of losetup.
    pub fn with(file: &Path, options: &[&str]) -> Option<Self> {
        let mut arguments: Vec<&dyn AsRef<OsStr>> = vec![&"--find", &"--show"];
        arguments.extend(options.iter().map(|option| option as &dyn AsRef<OsStr>));
        arguments.push(&file);
        // One at a time, whichever process: who looks for a free device opens it for a moment.
        let control = fs::File::open("/dev/loop-control");
        let _turn = control.as_ref().is_ok_and(|control| control.lock().is_ok());
        match run("losetup", &arguments) {
            Ok(path) => {
                let device = Self { path: path.into(), partitions: Vec::new() };
                // Left behind by whoever had a loop device of this name before: the kernel keeps them.
                (1..=4).for_each(|number| device.remove_partition(number));
                Some(device)
            }
            Err(why) => {
                eprintln!("SKIPPED, no loop device here (it needs root and losetup): {why}");
                None
            }
        }
    }

    /// A loop device over a new file of zeros.
    pub fn new(file: &Path, mib: u64) -> Option<Self> {
        fs::File::create_new(file).unwrap().set_len(mib << 20).unwrap();
        Self::over(file)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Tells the kernel of a partition, in sectors of 512 bytes. Not through a table, which not every kernel reads.
    pub fn add_partition(&mut self, number: u32, start: u64, length: u64) -> Option<PathBuf> {
        let [index, start, length] = [u64::from(number), start, length].map(|value| value.to_string());
        if let Err(why) = run("addpart", &[&self.path, &index, &start, &length]) {
            eprintln!("SKIPPED, no partitions here: {why}");
            return None;
        }
        self.partitions.push(number);
        let path = PathBuf::from(format!("{}p{number}", self.path.display()));
        if !path.exists() {
            eprintln!("SKIPPED: {} does not appear here", path.display());
            return None;
        }
        Some(path)
    }

    fn remove_partition(&self, number: u32) {
        let path = format!("{}p{number}", self.path.display());
        if Path::new(&path).exists() {
            let _ = run("delpart", &[&self.path, &number.to_string()]);
        }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        self.partitions.iter().for_each(|&number| self.remove_partition(number));
        let _ = run("losetup", &[&"--detach", &self.path]);
    }
}

/// A device of the device mapper, removed at the end.
pub struct MappedVolume(String);

impl MappedVolume {
    /// One with this table, or `None`, said aloud.
    pub fn new(table: &str) -> Option<Self> {
        let name = format!("flashwise-test-{}", std::process::id());
        match run("dmsetup", &[&"create", &name, &"--table", &table]) {
            Ok(_) => Some(Self(name)),
            Err(why) => {
                eprintln!("SKIPPED, no device mapper here (it needs root, dmsetup and the kernel's dm module): {why}");
                None
            }
        }
    }

    pub fn path(&self) -> PathBuf {
        Path::new("/dev/mapper").join(&self.0)
    }
}

impl Drop for MappedVolume {
    fn drop(&mut self) {
        if let Err(why) = run("dmsetup", &[&"remove", &"--retry", &self.0]) {
            eprintln!("{} stays: {why}", self.0);
        }
    }
}

/// A mounted device, unmounted at the end.
pub struct Mounted(PathBuf);

impl Mounted {
    pub fn new(device: &Path, place: &Path) -> Result<Self, String> {
        fs::create_dir_all(place).unwrap();
        run("mount", &[&device, &place])?;
        Ok(Self(place.to_owned()))
    }

    /// A file system that writes nothing by itself, as others do a while after they were mounted.
    pub fn read_only(device: &Path, place: &Path) -> Result<Self, String> {
        fs::create_dir_all(place).unwrap();
        run("mount", &[&"-o", &"ro", &device, &place])?;
        Ok(Self(place.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // What is being closed by the kernel in the background keeps it busy for a moment.
        for _ in 0..200 {
            if run("umount", &[&self.0]).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        eprintln!("{} stays mounted", self.0.display());
    }
}
