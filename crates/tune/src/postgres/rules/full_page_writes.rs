//! `full_page_writes`: never proposed.
//!
//! Without them a page torn by a power cut cannot be repaired. They are unnecessary if every layer writes 8 KiB
//! atomically. PostgreSQL writes through the kernel's page cache, which writes back in units of its own and promises
//! nothing: Linux knows atomic writes only for direct I/O (`RWF_ATOMIC`), which PostgreSQL does not use, also with
//! `debug_io_direct`. So what file system and drive report does not matter here.
//!
//! Source: PostgreSQL documentation, "Write Ahead Log": "turning this parameter off […] might lead to […] silent data
//! corruption, after a system failure".

use super::super::settings::Setting;
use super::{Facts, Ruling};

pub(super) fn judge(_: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    match now.value.as_str() {
        "on" => Err(
            "PostgreSQL writes through the kernel's page cache, which promises nothing: a power cut may tear a write of \
             8 KiB, whatever the drive promises"
                .to_owned(),
        ),
        _ => Ok(Ruling::Fits(
            "it is off: a page torn by a power cut cannot be repaired, unless the layers below write pages atomically"
                .to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, fits, untold};
    use super::*;

    #[test]
    fn they_are_never_turned_off() {
        let mut bench = Bench::new();
        assert!(untold(judge(&bench.facts(), bench.setting("full_page_writes"))).contains("power cut"));
        bench.set("full_page_writes", "off");
        assert!(fits(judge(&bench.facts(), bench.setting("full_page_writes"))).contains("cannot be repaired"));
    }
}
