//! `debug_io_direct` (from 16 on): pages without the kernel's page cache.
//!
//! It is never proposed: PostgreSQL's documentation lists it under "Developer Options", "not meant for production". It
//! is named because it decides what other settings do: read-ahead of the kernel, and who waits for writes.

use super::super::settings::{Setting, Settings};
use super::{Facts, Ruling};

/// Whether reads and writes of data files bypass the page cache.
pub(in super::super) fn is_direct(settings: &Settings) -> bool {
    let value = settings.get("debug_io_direct").map_or("", |setting| setting.value.as_str());
    value.split(',').any(|files| files.trim() == "data")
}

pub(super) fn judge(facts: &Facts<'_>, _: &Setting) -> Result<Ruling, String> {
    Ok(Ruling::Fits(match is_direct(facts.settings) {
        true => {
            "a developer option, not meant for production: no page cache and no read-ahead of the kernel".to_owned()
        }
        false => "data goes through the kernel's page cache; what bypasses it is a developer option".to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, fits};
    use super::*;

    #[test]
    fn it_is_called_what_it_is_and_left() {
        let mut bench = Bench::of(16);
        assert!(fits(judge(&bench.facts(), bench.setting("debug_io_direct"))).contains("page cache"));
        bench.set("debug_io_direct", "wal, data");
        assert!(is_direct(&bench.settings));
        assert!(fits(judge(&bench.facts(), bench.setting("debug_io_direct"))).contains("developer option"));
        bench.set("debug_io_direct", "wal");
        assert!(!is_direct(&bench.settings) && !is_direct(&Bench::of(15).settings));
    }
}
