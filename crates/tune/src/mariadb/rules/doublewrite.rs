//! `innodb_doublewrite`: pages are written twice, so that a torn one can be repaired.
//!
//! Disabling it is never proposed: no parameter in a profile proves that a write of a page cannot be torn. A flush that
//! costs nothing indicates a buffer that survives a power cut, not that the drive writes a page atomically.
//!
//! Source: MariaDB documentation, "InnoDB Doublewrite Buffer" and "Atomic Write Support": for drives that are known to
//! write 16 KiB atomically, the server itself omits it (`innodb_use_atomic_writes`).

use super::super::settings::Variable;
use super::{Facts, Ruling};

pub(super) fn judge(_: &Facts<'_>, now: &Variable) -> Result<Ruling, String> {
    match now.value.as_str() {
        "OFF" => Err(
            "it is off: safe only if the drive or the file system writes a page atomically, which no parameter in the \
             profile proves"
                .to_owned(),
        ),
        _ => Err("no parameter in the profile proves that a write of a page cannot be torn".to_owned()),
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
