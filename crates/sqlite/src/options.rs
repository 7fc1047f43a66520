//! Options of a connection: techniques, with their parameters.
//!
//! A technique is named in the URI of the database (`file:app.db?vfs=flashwise&profile=drive.toml&discard=off`), or in
//! the environment variable `FLASHWISE_SQLITE` for programs whose URIs cannot be changed; it has the same form as the
//! text after the question mark. The profile chooses a technique that is not named, if it was measured to gain on such
//! a drive and leaves the file as it is; without a profile it is off. A technique that changes the file's format is
//! used only where it is named, or by an import ([`VfsOptions::from_text_with`]): nobody is locked into a format by
//! opening a database.
//!
//! | technique | parameter of the profile | value | needs a conversion |
//! |---|---|---|---|
//! | `use-hot-locations` | chunk and hot locations | `CHUNK+OFFSET` | yes |
//! | `write-aligned-stripes` | stripe; unnamed: write unit above 4 KiB, power-loss protection | `STRIPE` | yes |
//! | `contain-write-in-flash-page` | flash page; never unnamed | `PAGE` | yes |
//! | `sparse-log` | gain by compression | `STRIPE` | yes |
//! | `concurrent-write-back` | k_w at 4 KiB | `COUNT` | no |
//! | `concurrent-read-ahead` | k_r at 4 KiB | `COUNT` | no |
//! | `discard` | gain by trim | | no |
//! | `atomic-batch` | none; never unnamed | | yes |
//!
//! `parent` names the VFS below, for all databases: in the environment variable only. `log-sync` names how logs and
//! journals are synced: [`LogSyncs`].
//!
//! The three of the log exclude each other; sparse takes precedence over aligned, and that over contained.
//!
//! # Adding a technique
//!
//! 1. Its name and its choice: a line of [`TECHNIQUES`]. Layouts of files: `layout.rs`, `log_layout.rs`.
//! 2. A section in `docs/formats/sqlite-layout.md`; a test among the power cuts and a configuration of SQLite's own
//!    suite.
//! 3. `fit` tries it automatically; what it excludes or needs beside it: `crates/tune/src/sqlite/knobs.rs`.

use std::io::Read;
use std::path::Path;

use flashwise_block::ByteSize;
use flashwise_block::input::open_regular;
use flashwise_block::names::choices;
use flashwise_profile::{DeviceProfile, Parameters};

use crate::SqliteError;
use crate::layout::{Header, Layout};
use crate::log_layout::LogLayout;

/// The VFS that opens files in directories for this one: one of SQLite's own, which differ in how they lock.
///
/// Any other VFS may change the bytes of a file, or keep its files elsewhere. One that encrypts, for instance, takes a
/// log that is laid out for a file of no database, and leaves it in clear text; so none but these can be named. Such a
/// VFS goes above this one instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parent {
    /// `unix`, SQLite's own default.
    #[default]
    Unix,
    /// `unix-excl`: one process has the database for itself.
    UnixExcl,
    /// `unix-dotfile`: locks are files beside the database.
    UnixDotfile,
    /// `unix-none`: no locks at all.
    UnixNone,
}

impl Parent {
    const ALL: [Self; 4] = [Self::Unix, Self::UnixExcl, Self::UnixDotfile, Self::UnixNone];

    /// The name that SQLite knows it by.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unix => "unix",
            Self::UnixExcl => "unix-excl",
            Self::UnixDotfile => "unix-dotfile",
            Self::UnixNone => "unix-none",
        }
    }

    fn of_name(name: &str) -> Result<Self, SqliteError> {
        let known = Self::ALL.into_iter().find(|parent| parent.name() == name);
        known.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            let why = format!(
                "'{name}' may change the stored bytes; use one of {names}, or stack that VFS above flashwise's"
            );
            refuse("parent", &why)
        })
    }
}

/// How the logs and journals in a directory are synced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogSyncs {
    /// By `fdatasync`, in space that was written before: one flush a commit, however the SQLite below was built. Logs
    /// are extended ahead on ext2, ext3, ext4 and XFS, which overwrite in place.
    #[default]
    Data,
    /// The same, extending logs on any file system: where one of those lies below an overlay, for instance.
    Extend,
    /// By SQLite's own VFS: by `fsync`, or by `fdatasync` if it was built with `HAVE_FDATASYNC`. Logs are not extended.
    Parent,
}

impl LogSyncs {
    const ALL: [Self; 3] = [Self::Data, Self::Extend, Self::Parent];

    const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Extend => "extend",
            Self::Parent => "parent",
        }
    }

    fn of_name(name: &str) -> Result<Self, SqliteError> {
        let known = Self::ALL.into_iter().find(|syncs| syncs.name() == name);
        let names = Self::ALL.map(Self::name).join(", ");
        known.ok_or_else(|| refuse("log-sync", &format!("'{name}' is unknown; use one of {names}")))
    }
}

/// How a VFS is to work. The default is what it does without parameters: no technique, and [`LogSyncs::Data`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VfsOptions {
    /// Layout of *new* databases; a database that exists keeps its own.
    pub layout: Layout,
    /// Layout of the write-ahead logs of *new* databases.
    pub log: LogLayout,
    /// Runs of adjacent page writes that go to the drive together (concurrent-write-back, k_w); up to 1 for one at a
    /// time.
    pub write_back_depth: u32,
    /// Pages that are read ahead of a scan in key order (concurrent-read-ahead, k_r); up to 1 for none.
    pub read_ahead_depth: u32,
    /// Whether the space of pages that the database no longer uses is given back to the drive.
    pub discard: bool,
    /// Whether *new* databases take transactions as atomic batches, without a rollback journal.
    pub atomic_batch: bool,
    /// Whether requests are recorded from the start.
    pub record: bool,
    /// The VFS below, for all files of a VFS; a database cannot choose its own.
    pub parent: Parent,
    /// How logs and journals in a directory are synced.
    pub log_syncs: LogSyncs,
}

impl VfsOptions {
    /// Unmodified SQLite: a VFS with these options leaves everything to SQLite's own.
    pub const PLAIN: Self = Self {
        layout: Layout::Plain,
        log: LogLayout::Plain,
        write_back_depth: 0,
        read_ahead_depth: 0,
        discard: false,
        atomic_batch: false,
        record: false,
        parent: Parent::Unix,
        log_syncs: LogSyncs::Parent,
    };

    /// Checks every figure.
    ///
    /// # Errors
    /// [`SqliteError::Layout`] with the figure that is wrong.
    pub fn check(&self) -> Result<(), SqliteError> {
        self.layout.check()?;
        self.log.check()
    }

    /// The header of a new database; `None` where it is plain.
    pub(crate) fn header(&self, page_bytes: u64) -> Option<Header> {
        Header::new(self.layout, self.log, self.atomic_batch, page_bytes)
    }

    /// Whether a new database is stored in another form than SQLite's own.
    pub fn is_converting(&self) -> bool {
        self.layout != Layout::Plain || self.log != LogLayout::Plain || self.atomic_batch
    }

    /// Whether the frames of a plain log are handed on together.
    pub(crate) fn gathers_log(&self) -> bool {
        self.write_back_depth > 1
    }

    /// Whether logs in a file system in virtual time, ext4 or XFS, are extended.
    pub(crate) fn extends_logs(&self) -> bool {
        self.log_syncs != LogSyncs::Parent
    }

    /// The techniques that are on and the other parameters, as a URI names them, such as `concurrent-write-back=8`.
    pub fn parameters(&self) -> Vec<String> {
        let layout = match self.layout {
            Layout::HotLocations { chunk, offset } => {
                Some(format!("use-hot-locations={}+{}", chunk.bytes(), offset.bytes()))
            }
            Layout::Plain | Layout::Headed => None,
        };
        let log = match self.log {
            LogLayout::Plain => None,
            LogLayout::Aligned { stripe } => Some(format!("write-aligned-stripes={}", stripe.bytes())),
            LogLayout::Contained { flash_page } => Some(format!("contain-write-in-flash-page={}", flash_page.bytes())),
            LogLayout::Sparse { stripe } => Some(format!("sparse-log={}", stripe.bytes())),
        };
        let depth = (self.write_back_depth > 1).then(|| format!("concurrent-write-back={}", self.write_back_depth));
        let ahead = (self.read_ahead_depth > 1).then(|| format!("concurrent-read-ahead={}", self.read_ahead_depth));
        let discard = self.discard.then(|| "discard=on".to_owned());
        let batch = self.atomic_batch.then(|| "atomic-batch=on".to_owned());
        let syncs = (self.log_syncs != LogSyncs::default()).then(|| format!("log-sync={}", self.log_syncs.name()));
        [layout, log, depth, ahead, discard, batch, syncs].into_iter().flatten().collect()
    }

    /// Whether SQLite's own VFS can do all of the work on a plain database.
    pub(crate) fn is_plain(&self) -> bool {
        let [write_back_depth, read_ahead_depth] =
            [self.write_back_depth, self.read_ahead_depth].map(|depth| depth.saturating_sub(1));
        let (parent, log_syncs) = (Self::PLAIN.parent, Self::PLAIN.log_syncs);
        Self { write_back_depth, read_ahead_depth, parent, log_syncs, ..*self } == Self::PLAIN
    }

    /// Whether any of our parameters is given.
    pub(crate) fn is_named_by(named: impl Fn(&str) -> Option<String>) -> bool {
        // A database cannot set its own parent; one that names it keeps the options of the registration.
        names().filter(|&name| name != PARENT).any(|name| named(name).is_some())
    }

    /// The options from parameters: those of [`TECHNIQUES`] by name, and `profile`, a path.
    ///
    /// # Errors
    /// When a value is invalid, a technique is on that the profile has no parameter for, or two exclude each other;
    /// when the profile cannot be read.
    pub fn from_parameters(named: impl Fn(&str) -> Option<String>) -> Result<Self, SqliteError> {
        Self::chosen(named, Unnamed::KeepFormat)
    }

    fn chosen(named: impl Fn(&str) -> Option<String>, unnamed: Unnamed) -> Result<Self, SqliteError> {
        let profile = named(PROFILE).map(|path| read_profile(&path)).transpose()?;
        let known = profile.map(|profile| profile.parameters);
        let parent = named(PARENT).map(|name| Parent::of_name(&name)).transpose()?.unwrap_or_default();
        let log_syncs = named(LOG_SYNC).map(|name| LogSyncs::of_name(&name)).transpose()?.unwrap_or_default();
        let mut options = Self { parent, log_syncs, ..Self::default() };
        for technique in &TECHNIQUES {
            let given = named(technique.name);
            technique.choose(given.as_deref(), known.as_ref(), unnamed, &mut options)?;
        }
        options.check()?;
        Ok(options)
    }

    /// The options in a text such as `profile=drive.toml&discard=off`.
    ///
    /// # Errors
    /// As [`VfsOptions::from_parameters`], and for a name that no parameter has.
    pub fn from_text(text: &str) -> Result<Self, SqliteError> {
        Self::of_text(text, None, Unnamed::KeepFormat)
    }

    /// The same for an import, with the path of a profile beside the text: the profile may choose a format, too.
    ///
    /// # Errors
    /// As [`VfsOptions::from_text`].
    pub fn from_text_with(text: &str, profile: Option<&str>) -> Result<Self, SqliteError> {
        Self::of_text(text, profile, Unnamed::All)
    }

    fn of_text(text: &str, profile: Option<&str>, unnamed: Unnamed) -> Result<Self, SqliteError> {
        let pairs: Vec<(&str, &str)> = text
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| pair.split_once('=').unwrap_or((pair, "on")))
            .collect();
        if let Some((unknown, _)) = pairs.iter().find(|(given, _)| names().all(|name| name != *given)) {
            return Err(refuse(unknown, &format!("unknown technique; {}", choices(unknown, names()))));
        }
        let named = |name: &str| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1);
        Self::chosen(|name| named(name).or(profile.filter(|_| name == PROFILE)).map(str::to_owned), unnamed)
    }
}

/// The parameters that are no techniques.
const OTHERS: [&str; 3] = [LOG_SYNC, PROFILE, PARENT];
const LOG_SYNC: &str = "log-sync";
const PROFILE: &str = "profile";
const PARENT: &str = "parent";

/// The names of all parameters.
fn names() -> impl Iterator<Item = &'static str> {
    TECHNIQUES.iter().map(|technique| technique.name).chain(OTHERS)
}

/// What a profile may choose where a technique is not named.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unnamed {
    /// Every technique that pays.
    All,
    /// None that stores a database in another form than SQLite's own.
    KeepFormat,
}

/// A technique with its name and its choice.
pub struct Technique {
    /// The name, as in a URI.
    pub name: &'static str,
    /// Its effect, in a line.
    pub what: &'static str,
    /// The parameter of the profile that it depends on.
    needs: &'static str,
    /// Sets it from a value that is not `off`; `false` for an invalid value. `on` is valid if no parameter is needed.
    set: fn(&str, &mut VfsOptions) -> bool,
    /// Sets it from a profile; `false` if the profile lacks the parameter.
    from_profile: fn(&Parameters, &mut VfsOptions) -> bool,
    /// Whether it gains on such a drive, as far as measured: otherwise it is off unless it is named.
    pays: fn(&Parameters) -> bool,
    /// Whether another technique has the same effect already.
    is_taken: fn(&VfsOptions) -> bool,
}

/// The techniques, in the order in which they are chosen.
pub static TECHNIQUES: [Technique; 8] = [
    Technique {
        name: "use-hot-locations",
        what: "pages of one chunk start at hot locations",
        needs: "chunk and hot locations",
        set: |value, options| {
            let Some((chunk, offset)) = value.split_once([' ', '+']) else { return false };
            let (Ok(chunk), Ok(offset)) = (chunk.parse(), offset.parse()) else { return false };
            options.layout = Layout::HotLocations { chunk, offset };
            true
        },
        from_profile: |drive, options| match (drive.chunk_bytes.known(), drive.hot_location.known()) {
            (Some(chunk), Some(hot)) if hot.offset_bytes != 0 => {
                options.layout = Layout::HotLocations { chunk: ByteSize(chunk), offset: ByteSize(hot.offset_bytes) };
                true
            }
            _ => false,
        },
        pays: |_| true,
        is_taken: |_| false,
    },
    Technique {
        name: "sparse-log",
        what: "every frame of the log starts at a 4 KiB block and is padded with zeros",
        needs: "gain by compression",
        set: |value, options| set_log(value, options, |stripe| LogLayout::Sparse { stripe }),
        from_profile: |drive, options| {
            let stripe = drive.stripe_bytes.known().map_or(ByteSize::kib(4), ByteSize);
            drive.compression_gain.known().is_some() && {
                options.log = LogLayout::Sparse { stripe };
                true
            }
        },
        pays: |_| true,
        is_taken: |options| options.log != LogLayout::Plain,
    },
    Technique {
        name: "write-aligned-stripes",
        what: "pages in the log start at stripes",
        needs: "stripe",
        set: |value, options| set_log(value, options, |stripe| LogLayout::Aligned { stripe }),
        from_profile: |drive, options| {
            let log = |stripe| options.log = LogLayout::Aligned { stripe: ByteSize(stripe) };
            drive.stripe_bytes.known().map(log).is_some()
        },
        // Frame headers of their own cost a flush more padding than straddling pages do (`study sqlite`), but where a
        // buffer that survives a power cut spares the flush and flash is mapped in longer units than 4 KiB.
        pays: |drive| {
            drive.power_loss_protected.known() == Some(true)
                && drive.write_unit_bytes.known().is_some_and(|unit| unit > 4096)
        },
        is_taken: |options| options.log != LogLayout::Plain,
    },
    Technique {
        name: "contain-write-in-flash-page",
        what: "padding keeps frames of the log from crossing flash pages",
        needs: "flash page",
        set: |value, options| set_log(value, options, |flash_page| LogLayout::Contained { flash_page }),
        from_profile: |drive, options| {
            let log = |page| options.log = LogLayout::Contained { flash_page: ByteSize(page) };
            drive.page_bytes.known().map(log).is_some()
        },
        // It saves flash for logs of 512-byte pages, and costs for all others (`study sqlite`).
        pays: |_| false,
        is_taken: |options| options.log != LogLayout::Plain,
    },
    Technique {
        name: "concurrent-write-back",
        what: "pages are written back in batches of the drive's write concurrency",
        needs: "k_w at 4 KiB",
        set: |value, options| set_depth(value, MAX_DEPTH, &mut options.write_back_depth),
        from_profile: |drive, options| {
            let depth = |depth: u64| options.write_back_depth = depth.clamp(1, u64::from(MAX_DEPTH)) as u32;
            drive.write_concurrency_4k.known().map(depth).is_some()
        },
        pays: |_| true,
        is_taken: |_| false,
    },
    Technique {
        name: "concurrent-read-ahead",
        what: "a scan in key order reads pages ahead with the drive's read concurrency",
        needs: "k_r at 4 KiB",
        set: |value, options| set_depth(value, MAX_AHEAD, &mut options.read_ahead_depth),
        from_profile: |drive, options| {
            let depth = |depth: u64| options.read_ahead_depth = depth.clamp(1, u64::from(MAX_AHEAD)) as u32;
            drive.read_concurrency_4k.known().map(depth).is_some()
        },
        pays: |_| true,
        is_taken: |_| false,
    },
    Technique {
        name: "discard",
        what: "pages that the database no longer uses are trimmed",
        needs: "gain by trim",
        set: |value, options| {
            options.discard = value == ON;
            options.discard
        },
        from_profile: |drive, options| {
            options.discard = drive.trim_gain.known().is_some();
            options.discard
        },
        pays: |_| true,
        is_taken: |_| false,
    },
    Technique {
        name: "atomic-batch",
        what: "transactions are written atomically, without a rollback journal, if SQLite is built for it",
        needs: "",
        set: |value, options| {
            options.atomic_batch = value == ON;
            options.atomic_batch
        },
        from_profile: |_, options| {
            options.atomic_batch = true;
            true
        },
        // SQLite takes it only where it was built for that (SQLITE_ENABLE_BATCH_ATOMIC_WRITE), and not for a log.
        pays: |_| false,
        is_taken: |_| false,
    },
];

/// How a technique is switched on, with or without a parameter of the profile.
const ON: &str = "on";

/// Most runs that are held back.
const MAX_DEPTH: u32 = 512;
/// Most pages that are read ahead: the limit of `RegisteredFile`.
const MAX_AHEAD: u32 = 64;

fn set_depth(value: &str, most: u32, depth: &mut u32) -> bool {
    let Some(given) = value.parse().ok().filter(|given| (1..=most).contains(given)) else { return false };
    *depth = given;
    true
}

fn set_log(value: &str, options: &mut VfsOptions, make: fn(ByteSize) -> LogLayout) -> bool {
    let Ok(unit) = value.parse() else { return false };
    options.log = make(unit);
    true
}

impl Technique {
    /// Switches the technique on as a profile's figures have it; `None` where they say nothing for it, where no layout
    /// can go by them, or where another technique has its place already.
    pub fn recommended(&self, drive: &Parameters, options: &VfsOptions) -> Option<VfsOptions> {
        let mut chosen = *options;
        let is_chosen = !(self.is_taken)(options) && (self.from_profile)(drive, &mut chosen) && chosen.check().is_ok();
        is_chosen.then_some(chosen)
    }

    /// Sets the technique by its name, or else by the profile.
    fn choose(
        &self,
        given: Option<&str>,
        drive: Option<&Parameters>,
        unnamed: Unnamed,
        options: &mut VfsOptions,
    ) -> Result<(), SqliteError> {
        let is_taken = (self.is_taken)(options);
        match given {
            Some("off") => Ok(()),
            None if is_taken => Ok(()),
            Some(_) if is_taken => {
                Err(refuse(self.name, &format!("the log can have only one layout, and has '{}'", options.log.name())))
            }
            Some(ON) if (self.set)(ON, options) => Ok(()),
            Some(ON) => match drive.is_some_and(|drive| (self.from_profile)(drive, options)) {
                true => Ok(()),
                false if drive.is_none() => {
                    Err(refuse(self.name, "is on, but needs a profile of the drive, or a value"))
                }
                false => {
                    Err(refuse(self.name, &format!("is on, but in the profile the {} is not certain", self.needs)))
                }
            },
            Some(value) => match (self.set)(value, options) {
                true => Ok(()),
                false => Err(refuse(self.name, &format!("'{value}' is neither on, nor off, nor a valid value"))),
            },
            None => {
                if let Some(drive) = drive.filter(|drive| (self.pays)(drive)) {
                    let before = *options;
                    (self.from_profile)(drive, options);
                    if unnamed == Unnamed::KeepFormat {
                        let VfsOptions { layout, log, atomic_batch, .. } = before;
                        (options.layout, options.log, options.atomic_batch) = (layout, log, atomic_batch);
                    }
                    // An unusable parameter is no reason to refuse a database for a technique that was not requested.
                    if options.check().is_err() {
                        (options.layout, options.log) = (
                            Some(options.layout).filter(|layout| layout.check().is_ok()).unwrap_or_default(),
                            Some(options.log).filter(|log| log.check().is_ok()).unwrap_or_default(),
                        );
                    }
                }
                Ok(())
            }
        }
    }
}

fn refuse(name: &str, why: &str) -> SqliteError {
    SqliteError::Options(format!("{name}: {why}"))
}

fn read_profile(path: &str) -> Result<DeviceProfile, SqliteError> {
    /// A profile has a few curves; this is a hundred times as much.
    const LONGEST: u64 = 64 << 20;
    let refuse = |why: String| SqliteError::Options(format!("profile {path}: {why}"));
    let failed = |error: std::io::Error| refuse(error.to_string());
    // Whoever opens the database would wait for the other end of a pipe.
    let file = open_regular(Path::new(path)).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    if length > LONGEST {
        return Err(refuse(format!("{} are too many for a profile", ByteSize(length))));
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).map_err(failed)?;
    DeviceProfile::from_toml(&text, path).map_err(|error| SqliteError::Options(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwise_profile::{Figure, HotLocation};

    fn profile(change: impl FnOnce(&mut Parameters)) -> (tempfile::TempDir, String) {
        let mut profile = DeviceProfile::from_toml(&sample(), "sample").unwrap();
        profile.parameters = Parameters::default();
        change(&mut profile.parameters);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("drive.toml");
        std::fs::write(&path, profile.to_toml().unwrap()).unwrap();
        let path = path.to_str().unwrap().to_owned();
        (dir, path)
    }

    fn sample() -> String {
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/samsung-960-evo.toml")).unwrap()
    }

    fn hot(drive: &mut Parameters) {
        drive.chunk_bytes = Figure::certain(65536, 65536, 65536);
        let place = HotLocation { period_bytes: 65536, offset_bytes: 32768 };
        drive.hot_location = Figure::certain(place, place, place);
    }

    #[test]
    fn nothing_named_and_no_profile_is_no_technique_and_logs_are_synced_by_their_data() {
        assert_eq!(VfsOptions::from_text("").unwrap(), VfsOptions::default());
        assert_eq!(VfsOptions::default().log_syncs, LogSyncs::Data);
        assert_eq!(VfsOptions::from_text("log-sync=parent").unwrap(), VfsOptions::PLAIN);
        assert!(VfsOptions::default().is_plain());
        assert!(VfsOptions::PLAIN.is_plain() && VfsOptions { write_back_depth: 1, ..VfsOptions::PLAIN }.is_plain());
        let ahead = |read_ahead_depth| VfsOptions { read_ahead_depth, ..VfsOptions::PLAIN };
        assert!(ahead(1).is_plain() && !ahead(2).is_plain());
    }

    #[test]
    fn a_profile_chooses_what_its_figures_allow() {
        let (_dir, path) = profile(|drive| {
            hot(drive);
            drive.stripe_bytes = Figure::certain(65536, 65536, 65536);
            drive.page_bytes = Figure::certain(16384, 16384, 16384);
            drive.power_loss_protected = Figure::certain(true, true, true);
            drive.write_unit_bytes = Figure::certain(16384, 16384, 16384);
            drive.write_concurrency_4k = Figure::certain(8, 7, 9);
            drive.read_concurrency_4k = Figure::certain(80, 70, 90);
        });
        let chosen = VfsOptions::from_text_with("", Some(&path)).unwrap();
        let opened = VfsOptions::from_text(&format!("profile={path}")).unwrap();
        assert!(!opened.is_converting() && opened.write_back_depth == 8, "opening changes no format");
        let layout = Layout::HotLocations { chunk: ByteSize::kib(64), offset: ByteSize::kib(32) };
        let log = LogLayout::Aligned { stripe: ByteSize::kib(64) };
        let (write_back_depth, read_ahead_depth) = (8, 64);
        let expected = VfsOptions { layout, log, write_back_depth, read_ahead_depth, ..VfsOptions::default() };
        assert_eq!(chosen, expected, "no more than 64 pages are asked for at once");
        let less = format!(
            "profile={path}&use-hot-locations=off&write-aligned-stripes=off&concurrent-write-back=3\
             &concurrent-read-ahead=5&discard"
        );
        let expected = VfsOptions { write_back_depth: 3, read_ahead_depth: 5, discard: true, ..VfsOptions::default() };
        assert_eq!(VfsOptions::from_text(&less).unwrap(), expected);
        let contained = VfsOptions::from_text(&format!("{less}&contain-write-in-flash-page")).unwrap();
        assert_eq!(contained.log, LogLayout::Contained { flash_page: ByteSize::kib(16) }, "named, it has the figure");
    }

    #[test]
    fn what_does_not_pay_on_a_drive_has_to_be_named() {
        let (_dir, path) = profile(|drive| {
            drive.stripe_bytes = Figure::certain(65536, 65536, 65536);
            drive.page_bytes = Figure::certain(16384, 16384, 16384);
        });
        let chosen = |text: &str| VfsOptions::from_text_with(text, Some(&path)).unwrap().log;
        assert_eq!(chosen(""), LogLayout::Plain, "a drive without power-loss protection");
        assert_eq!(chosen("&write-aligned-stripes=on"), LogLayout::Aligned { stripe: ByteSize::kib(64) });
    }

    #[test]
    fn one_of_sqlites_own_vfss_can_be_named_to_stand_below() {
        for parent in Parent::ALL {
            let options = VfsOptions::from_text(&format!("parent={}", parent.name())).unwrap();
            assert!(options.parent == parent && options.is_plain(), "{options:?}");
        }
    }

    #[test]
    fn figures_can_be_given_without_a_profile() {
        let text = "use-hot-locations=64k+32k&sparse-log=4k&concurrent-write-back=16";
        let given = VfsOptions::from_text(text).unwrap();
        assert_eq!(given.log, LogLayout::Sparse { stripe: ByteSize::kib(4) });
        assert_eq!((given.layout.name(), given.write_back_depth), ("hot-locations", 16));
    }

    #[test]
    fn what_is_on_can_be_written_as_it_is_read() {
        for text in [
            "use-hot-locations=65536+32768&sparse-log=4096&concurrent-write-back=16&discard=on",
            "write-aligned-stripes=65536",
            "concurrent-write-back=2&concurrent-read-ahead=32",
            "contain-write-in-flash-page=16384",
            "log-sync=extend",
            "log-sync=parent",
            "",
        ] {
            assert_eq!(VfsOptions::from_text(text).unwrap().parameters().join("&"), text);
        }
    }

    #[test]
    fn what_cannot_be_done_is_told_with_its_reason() {
        let (_dir, path) = profile(hot);
        for (text, words) in [
            ("sparse-log=4k&write-aligned-stripes=64k".to_owned(), "only one layout"),
            ("use-hot-locations=on".to_owned(), "needs a profile"),
            (format!("profile={path}&write-aligned-stripes=on"), "the stripe is not certain"),
            ("use-hot-locations=64k".to_owned(), "neither on, nor off, nor"),
            ("write-aligned-stripes=5000".to_owned(), "multiple of 4 KiB"),
            ("concurrent-write-back=0".to_owned(), "neither on, nor off, nor"),
            ("concurrent-read-ahead=65".to_owned(), "neither on, nor off, nor"),
            ("hot=on".to_owned(), "unknown technique; did you mean 'use-hot-locations'? Choose one of "),
            (
                "log-synch=on".to_owned(),
                "unknown technique; did you mean 'log-sync'? Choose one of use-hot-locations, ",
            ),
            ("slow".to_owned(), ", atomic-batch, log-sync, profile, parent"),
            ("profile=/nowhere/drive.toml".to_owned(), "/nowhere/drive.toml"),
            ("profile=/dev/zero".to_owned(), "give a regular file"),
            ("parent=multipleciphers-unix".to_owned(), "stack that VFS above"),
            ("log-sync=never".to_owned(), "use one of data, extend, parent"),
        ] {
            let told = VfsOptions::from_text(&text).unwrap_err().to_string();
            assert!(told.contains(words), "{text}: {told}");
        }
    }

    #[test]
    fn a_figure_that_no_layout_can_go_by_changes_nothing() {
        let (_dir, path) = profile(|drive| {
            drive.stripe_bytes = Figure::certain(5000, 5000, 5000);
            drive.power_loss_protected = Figure::certain(true, true, true);
            drive.write_unit_bytes = Figure::certain(16384, 16384, 16384);
        });
        assert_eq!(VfsOptions::from_text(&format!("profile={path}")).unwrap(), VfsOptions::default());
    }
}
