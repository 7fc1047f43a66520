//! What the operating system knows of this process.

/// The largest memory that the process has held so far, bytes (`VmHWM`); `None` where `/proc` does not tell.
pub(super) fn peak_memory_bytes() -> Option<u64> {
    parse(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn parse(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_high_water_mark_is_read_and_nothing_else() {
        assert_eq!(parse("Name:\tx\nVmPeak:\t  900 kB\nVmHWM:\t   2084 kB\n"), Some(2084 << 10));
        assert_eq!(parse("Name:\tx\n"), None);
        assert_eq!(parse("VmHWM:\tmuch"), None);
    }
}
