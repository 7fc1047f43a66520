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

use flashwise_profile::DeviceProfile;
use flashwise_ssd::simulation::Simulation;
use flashwise_tune::Comparison;
use maud::html;

/// The page of one `fit`: the result first, then how it came about.
pub fn comparison_page(comparison: &Comparison) -> String {
    comparison::page(comparison)
}

/// The page of one audit: what was found, then the requests by time and address.
pub fn audit_page(audit: &crate::audit::AuditDocument) -> String {
    audit::page(audit)
}

/// The page of one simulation: the figures, then how they came about over time.
pub fn simulation_page(simulation: &Simulation) -> String {
    simulation::page(simulation)
}

/// The page of buffer pools: misses, write-backs and costs over the sizes of the pool.
pub fn pool_page(report: &flashwise_bufferpool::simulate::PoolReport) -> String {
    pool::page(report)
}

/// The page of one study: claims, then measurements.
pub fn study_page(study: &crate::study::StudyDocument) -> String {
    study::page(study)
}

/// The page of one drive.
pub fn profile_page(profile: &DeviceProfile) -> String {
    let title = format!("What {} hides", profile.device.name);
    let body = html! {
        header {
            p.kicker { "flashwise · " (profile.device.target) }
            h1 { (title) }
        }
        (tables::parameters(profile))
        (exhibits::section(profile))
    };
    shell::page(&title, &profile.flashwise_version, &body)
}

#[cfg(test)]
mod tests;
