//! `innodb_doublewrite`: pages are written twice, so that a torn one can be mended.
//!
//! It is never proposed to switch it off: no figure of a profile proves that a write of a page cannot be torn. That a
//! flush costs nothing shows a buffer that survives a power cut, not that the drive takes a page as a whole.
//!
//! Source: MariaDB documentation, "InnoDB Doublewrite Buffer" and "Atomic Write Support": for drives that are known to
//! write 16 KiB as a whole, the server itself leaves it out (`innodb_use_atomic_writes`).

use super::super::settings::Variable;
use super::{Facts, Ruling};

pub(super) fn judge(_: &Facts<'_>, now: &Variable) -> Result<Ruling, String> {
    match now.value.as_str() {
        "OFF" => Err(
            "it is off: right only where the drive or the file system cannot tear a write of a page, which no figure \
                      proves"
                .to_owned(),
        ),
        _ => Err("no figure proves that a write of a page cannot be torn".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, untold};
    use super::*;

    #[test]
    fn it_is_never_proposed_to_go_without() {
        let mut bench = Bench::new();
        assert!(untold(bench.judge(judge, "innodb_doublewrite")).contains("torn"));
        bench.set("innodb_doublewrite", "OFF");
        assert!(untold(bench.judge(judge, "innodb_doublewrite")).starts_with("it is off"));
    }
}
