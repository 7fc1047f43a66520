//! Windows of writes: what happened in each, by the clock and by what the drive counts.

use flashwise_block::{ByteSize, FlashCounters};

use crate::prober::Prober;

/// What happened in one window of writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Host bytes.
    pub(super) bytes: u64,
    /// Writes a second.
    pub(super) rate: f64,
    /// Flash bytes ÷ host bytes, where the drive counts.
    pub(super) amplification: Option<f64>,
    /// Erases, where it counts them.
    pub(super) erases: Option<u64>,
}

/// Counts of one moment.
pub(super) struct Mark {
    at_ns: u64,
    flash: Option<FlashCounters>,
}

impl Mark {
    pub(super) fn now(prober: &Prober<'_>) -> Self {
        Self { at_ns: prober.now().0, flash: prober.counters().flash }
    }

    /// Flash bytes programmed from here until now, none where the drive does not count.
    pub(super) fn programmed(&self, prober: &Prober<'_>) -> ByteSize {
        let flash = prober.counters().flash.zip(self.flash);
        flash.map_or(ByteSize(0), |(now, then)| now.since(&then).bytes_programmed)
    }

    /// The window from here until now, of `requests` of `length`.
    pub(super) fn window(&self, prober: &Prober<'_>, requests: u64, length: ByteSize) -> Window {
        let now = Self::now(prober);
        let bytes = (length * requests).bytes();
        let seconds = (now.at_ns - self.at_ns).max(1) as f64 / 1e9;
        let flash = now.flash.zip(self.flash).map(|(now, then)| now.since(&then));
        let amplification = flash.map(|flash| flash.bytes_programmed.bytes() as f64 / bytes as f64);
        Window { bytes, rate: requests as f64 / seconds, amplification, erases: flash.map(|flash| flash.erases) }
    }
}

/// Flash bytes of a window, where the drive counts.
pub(super) fn programmed(window: &Window) -> Option<f64> {
    Some(window.amplification? * window.bytes as f64)
}

/// Some windows as one.
pub(super) fn join(windows: &[Window]) -> Window {
    let bytes: u64 = windows.iter().map(|window| window.bytes).sum();
    let seconds: f64 = windows.iter().map(|window| window.bytes as f64 / window.rate).sum();
    let programmed: Option<f64> = windows.iter().map(programmed).sum();
    let amplification = programmed.map(|p| p / bytes.max(1) as f64);
    let erases = windows.iter().map(|window| window.erases).sum();
    Window { bytes, rate: bytes as f64 / seconds.max(1e-9), amplification, erases }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_join_by_bytes() {
        let window = |bytes, rate, wa| Window { bytes, rate, amplification: Some(wa), erases: Some(1) };
        let joined = join(&[window(100, 10.0, 1.0), window(300, 30.0, 2.0)]);
        assert_eq!((joined.bytes, joined.rate), (400, 20.0));
        assert!((joined.amplification.unwrap() - 1.75).abs() < 1e-12);
        assert_eq!(joined.erases, Some(2));
    }
}
