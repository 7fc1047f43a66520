//! The drive below a server: learned where no profile of it is given, and looked up where no drive is named.

use std::borrow::Cow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use flashwise_block::{ByteSize, Progress};
use flashwise_learn::{Effort, LearnOptions, QuickLimits, Scope, learn};
use flashwise_profile::DeviceProfile;

use crate::sqlite::{LEARN_REGION, learn_options};
use crate::{DEFAULT_TARGET, Target, TuneError};

/// Seed of the probes.
const SEED: u64 = 1;

/// The drive of a server's data.
#[derive(Clone, Debug)]
pub enum DataDrive {
    /// Its profile.
    Known(Box<DeviceProfile>),
    /// Where to learn it, which takes minutes on a real drive: the other options are checked first.
    Unlearned(Target),
    /// Not named: the drive below the server's data, or without a server the embedded one.
    Unnamed,
}

/// A drive that is named.
pub(crate) enum NamedDrive<'a> {
    /// By its profile.
    Known(&'a DeviceProfile),
    /// By where to learn it.
    Unlearned(Cow<'a, Target>),
}

/// What a server says of its data.
#[derive(Clone, Debug)]
pub(crate) struct ServerData<'a> {
    /// The server, in messages.
    pub(crate) server: &'a str,
    /// Its directory; `None` where the user may not see it.
    pub(crate) directory: Option<&'a Path>,
    /// Whether the server was reached by a socket in a file system of this machine.
    pub(crate) is_here: bool,
}

impl DataDrive {
    /// The drive, named in any case.
    ///
    /// # Errors
    /// When it is not named, and the directory of the server's data is not known or cannot be used.
    pub(crate) fn named(&self, data: Option<ServerData<'_>>) -> Result<NamedDrive<'_>, TuneError> {
        Ok(match (self, data) {
            (Self::Known(profile), _) => NamedDrive::Known(profile),
            (Self::Unlearned(target), _) => NamedDrive::Unlearned(Cow::Borrowed(target)),
            (Self::Unnamed, None) => NamedDrive::Unlearned(Cow::Owned(Target::parse(DEFAULT_TARGET)?)),
            (Self::Unnamed, Some(data)) => {
                let directory = data.directory_beside()?.display().to_string();
                NamedDrive::Unlearned(Cow::Owned(Target::parse(&directory)?))
            }
        })
    }

    /// A note for a reader who named neither a server nor a drive.
    pub(crate) fn note(&self, has_server: bool) -> Option<String> {
        (matches!(self, Self::Unnamed) && !has_server).then(|| {
            format!("No drive was given: the settings are for {DEFAULT_TARGET}, a simulated one. Name yours with --on.")
        })
    }
}

impl ServerData<'_> {
    /// The directory in which the one of the data stands, on the same file system: nothing is written among the data.
    fn directory_beside(&self) -> Result<PathBuf, TuneError> {
        let refused = |why: String| {
            let way_out = "name a directory on that drive with --on, or its profile with --profile";
            Err(TuneError::Options(format!("{}: {why}; {way_out}", self.server)))
        };
        let Some(data) = self.directory else {
            return refused("it does not show this user where its data are".to_owned());
        };
        let named = data.display();
        if !self.is_here {
            return refused(format!("its data are in {named}, on the machine of the server"));
        }
        let found = data.canonicalize().and_then(|data| {
            let beside = data.parent().unwrap_or(&data).to_owned();
            Ok((data.metadata()?.dev() == beside.metadata()?.dev()).then_some(beside))
        });
        match found {
            Ok(Some(beside)) => Ok(beside),
            Ok(None) => refused(format!("its data fill the file system of {named}")),
            Err(error) => refused(format!("its data are in {named}, which cannot be examined: {error}")),
        }
    }
}

impl From<DeviceProfile> for DataDrive {
    fn from(profile: DeviceProfile) -> Self {
        Self::Known(Box::new(profile))
    }
}

/// Learns the drive of a target for the rules of a server, as `learn --quick` does: they need the time of a flush and
/// the gain by compression, too, and requests of these sizes.
///
/// # Errors
/// When the target cannot be opened or learned.
pub(crate) fn learn_drive(
    target: &Target,
    request_sizes: &[ByteSize],
    progress: &mut dyn Progress,
) -> Result<DeviceProfile, TuneError> {
    let mut device = target.open(SEED, LEARN_REGION)?;
    let (write, time_budget) = target.quick_limits(device.info().capacity).unzip();
    let options = LearnOptions {
        scope: Scope::Complete,
        effort: Effort::Quick,
        max_write: write.into_iter().chain(target.write_limit()).min(),
        time_budget,
        quick_limits: QuickLimits { write: write.is_some(), time: time_budget.is_some() },
        request_sizes: request_sizes.to_vec(),
        ..learn_options(target, SEED, device.info().clock)
    };
    Ok(learn(&mut *device, &options, progress)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(directory: Option<&Path>, is_here: bool) -> String {
        ServerData { server: "db:5432", directory, is_here }.directory_beside().unwrap_err().to_string()
    }

    fn target(drive: &NamedDrive<'_>) -> String {
        let NamedDrive::Unlearned(target) = drive else { panic!("it has no profile") };
        target.to_string()
    }

    #[test]
    fn a_drive_that_is_not_named_is_learned_beside_the_server_s_data_and_never_among_them() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path().join("main");
        std::fs::create_dir(&data).unwrap();
        let of = |directory| ServerData { server: "/run", directory: Some(directory), is_here: true };
        let beside = place.path().canonicalize().unwrap();
        assert_eq!(of(&data).directory_beside().unwrap(), beside);
        // Where the data are reached by a link, it is their drive that counts.
        let elsewhere = tempfile::tempdir().unwrap();
        let link = elsewhere.path().join("link");
        std::os::unix::fs::symlink(&data, &link).unwrap();
        let named = DataDrive::Unnamed.named(Some(of(&link))).unwrap();
        assert_eq!(target(&named), beside.display().to_string());
    }

    #[test]
    fn where_a_server_has_its_data_out_of_reach_a_line_says_what_to_name() {
        for (directory, is_here, reason) in [
            (None, true, "does not show this user"),
            (Some("/var/lib/postgresql"), false, "/var/lib/postgresql, on the machine of the server"),
            (Some("/no/such/directory"), true, "cannot be examined"),
            // A file system of its own on every machine.
            (Some("/proc"), true, "fill the file system of /proc"),
        ] {
            let words = words(directory.map(Path::new), is_here);
            assert!(words.starts_with("db:5432: ") && words.contains(reason), "{words}");
            assert!(words.contains("--on") && words.contains("--profile"), "{words}");
        }
    }

    #[test]
    fn without_a_server_the_drive_is_the_embedded_one_and_a_note_says_so() {
        let named = DataDrive::Unnamed.named(None).unwrap();
        assert_eq!(target(&named), DEFAULT_TARGET);
        assert!(DataDrive::Unnamed.note(false).unwrap().contains(DEFAULT_TARGET));
        let given = DataDrive::Unlearned(Target::parse("/").unwrap());
        assert_eq!([DataDrive::Unnamed.note(true), given.note(false)], [None, None]);
    }
}
