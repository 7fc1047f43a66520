//! One self-contained page: its style is in it, its plots are in it, and it needs no script.

mod audit;
mod comparison;
mod exhibits;
mod plots;
mod pool;
mod probe_plots;
mod shell;
mod simulation;
mod study;
mod tables;

pub use audit::audit_page;
pub use comparison::comparison_page;
pub use pool::pool_page;
pub use simulation::simulation_page;
pub use study::study_page;

use flashwise_profile::DeviceProfile;
use maud::html;

use crate::text::limits::limits_sentence;

/// The page of one drive.
pub fn profile_page(profile: &DeviceProfile) -> String {
    let grants = limits_sentence(&profile.limits);
    let about = if grants.is_some() { "Limits of" } else { "Hidden parameters of" };
    let title = format!("{about} {}", profile.device.name);
    let body = html! {
        header {
            p.kicker { "flashwise · " (profile.device.target) }
            h1 { (title) }
            @if let Some(sentence) = &grants { p.headline { (sentence) } }
        }
        (tables::parameters(profile))
        (exhibits::section(profile))
    };
    shell::page(&title, &profile.flashwise_version, &body)
}

#[cfg(test)]
mod tests;
