//! `full_page_writes`: never proposed.
//!
//! Without them a page that a power cut tears cannot be mended. They are needless where a write of 8 KiB is whole or
//! not at all, from the file system down to the flash; no figure of a profile says that, as no probe cuts the power.
//!
//! Source: PostgreSQL documentation, "Write Ahead Log": "turning this parameter off […] might lead to […] silent data
//! corruption, after a system failure".

use super::super::settings::Setting;
use super::{Facts, Ruling};

pub(super) fn judge(_: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    match now.value.as_str() {
        "on" => Err("no figure of a profile proves that a write of 8 KiB is never torn by a power cut".to_owned()),
        _ => Ok(Ruling::Fits(
            "it is off: a page that a power cut tears cannot be mended, unless something else keeps pages whole"
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
        assert!(fits(judge(&bench.facts(), bench.setting("full_page_writes"))).contains("cannot be mended"));
    }
}
