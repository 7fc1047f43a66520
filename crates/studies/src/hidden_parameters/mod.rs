//! What nine drives hide, learned blind, beside what two papers published of them.
//!
//! ```text
//!   published row ─▶ its preset ─▶ simulated drive ─▶ learn (sees a block device) ─▶ profile ─┬─▶ claimed beside learned
//!                                                                                             └─▶ k by another definition
//! ```
//!
//! Kakaraparthy et al. give write unit, stripe, chunk, hot locations and page of four drives; Papon and Athanassoulis
//! give asymmetry α and concurrency k of reads and writes, at 4 and 8 KiB, of five. The presets were fitted to these
//! figures in structure and timing; the learner sees neither preset nor figure. So what is tested is whether such a
//! structure can show all of a drive's figures at once, and whether the probes find what is there.
//!
//! - [`layout`]: the four drives;
//! - [`concurrency`]: the five drives;
//! - [`definition`]: what k is when it is read from the curve in another way;
//! - [`learned`]: a preset and a seed in, a profile out.

mod concurrency;
mod definition;
mod layout;
mod learned;

use crate::{Findings, Progress, StudyError, StudyOptions};

/// Runs the study.
pub(crate) fn run(options: &StudyOptions, progress: Progress<'_>) -> Result<Findings, StudyError> {
    let drives = learned::all(options, progress)?;
    let claims = [layout::claims(&drives)?, concurrency::claims(&drives)?].concat();
    let sections = vec![layout::section(&drives)?, concurrency::section(&drives)?, definition::section(&drives)?];
    let limits = vec![
        "The presets were fitted to the published figures. Agreement shows that one structure explains a row and that \
         the learner finds it; it does not show that the real drive is built that way."
            .to_owned(),
        "The fitted knee and the published one are different readings of a curve; the paper's curves exist as images \
         only."
            .to_owned(),
        "The drives were fresh and learned in 256 MiB: without garbage collection or a larger cache.".to_owned(),
    ];
    Ok(Findings { claims, sections, limits })
}
