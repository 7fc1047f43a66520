//! The drive of `fit --attached`: attached by a second process of this program.

use std::path::PathBuf;

use flashwise_attach::FileSystem;
use flashwise_ssd::DeviceConfig;
use flashwise_studies::attached::{Attached, Attachment, Cores, answers_were_late};
use flashwise_tune::{AttachDrive, AttachedDrive, TuneError, Written};

/// Attaches a drive on half of the processors.
#[derive(Debug)]
pub struct OnThisMachine;

/// The drive, and the processors that are its client's; the drive ends first.
struct Mounted {
    drive: Attached,
    _cores: Cores,
}

impl AttachDrive for OnThisMachine {
    fn attach(
        &self,
        config: &DeviceConfig,
        slower: u32,
        file_system: &str,
    ) -> Result<Box<dyn AttachedDrive>, TuneError> {
        let known = [FileSystem::Ext4, FileSystem::Xfs].into_iter().find(|known| known.name() == file_system);
        let file_system = known.ok_or_else(|| {
            TuneError::Options(format!("--attached: {file_system} cannot be mounted; ext4 and xfs can"))
        })?;
        let failed = |error: flashwise_studies::StudyError| TuneError::Missing(format!("--attached: {error}"));
        let cores = Cores::share().map_err(failed)?;
        let how = Attachment { time_scale: Some(slower.into()), file_system, ..Attachment::default() };
        let program = std::env::current_exe().ok();
        let drive = Attached::start(program.as_deref(), config, &how, &cores).map_err(failed)?;
        Ok(Box::new(Mounted { drive, _cores: cores }))
    }
}

impl AttachedDrive for Mounted {
    fn directory(&self) -> PathBuf {
        self.drive.directory()
    }

    fn was_late(&self) -> bool {
        self.drive.stat().is_ok_and(|stat| answers_were_late(&stat))
    }

    fn written(&self) -> Option<Written> {
        let counters = self.drive.stat().ok()?.counters;
        Some(Written { host_bytes: counters.host_bytes_written, flash_bytes: counters.flash?.bytes_programmed })
    }
}
