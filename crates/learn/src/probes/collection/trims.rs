//! What trims are worth: writes to one half of the drive, when the other is trimmed.

use flashwise_block::{ByteSize, Progress};
use flashwise_profile::Figure;

use crate::LearnError;
use crate::draft::{Because, ProfileDraft, key};
use crate::prober::{Prober, SECTION, anywhere};
use crate::stats::graded::widened;
use crate::verdict::{Doubt, Wording, applying, doubt};

use super::overwrites::{
    A_PASS_ROUNDS, A_ROUND_WINDOWS, BLOCK, Load, Overwritten, ROUNDS_MIN, of_one_past, until_steady,
};

/// Overwrites before and after the trim.
struct TrimEvidence<'a> {
    before: &'a Overwritten,
    after: &'a Overwritten,
}

impl TrimEvidence<'_> {
    /// Why a gain by trim may be inconclusive.
    const TRIM_DOUBTS: [Doubt<Self>; 2] = [
        doubt("not steady before the trim", Wording::Nothing, |evidence| !evidence.before.is_steady),
        doubt("not steady after the trim", Wording::Nothing, |evidence| !evidence.after.is_steady),
    ];
}

/// Share within which write amplification before and after a trim is the same: less than the interval of a steady
/// mean.
const NO_GAIN_SHARE: f64 = 0.03;

/// What trimming half of the drive is worth to writes to the other half.
pub(super) fn probe(
    prober: &mut Prober<'_>,
    uniform: &Overwritten,
    wears: ByteSize,
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    let half = ByteSize(prober.capacity().bytes() / 2 / SECTION.bytes() * SECTION.bytes());
    let recipe = "the upper half of the steady drive is trimmed, then the lower half overwritten until steady";
    prober.flush()?;
    let mut at = half;
    while at < prober.capacity() {
        let length = ByteSize::mib(64).min(prober.capacity() - at);
        if !prober.trim(at, length)? {
            let reason = "the drive does not support trim".to_owned();
            draft.settle(key!(trim_gain), Figure::absent(), Because { recipe, reason, curve: None });
            return Ok(());
        }
        at += length;
    }
    let mut lower = anywhere(half, BLOCK);
    let (name, rounds) = ("overwrites after trim", ROUNDS_MIN.0);
    let of = Load { bytes: half, windows: A_PASS_ROUNDS * A_ROUND_WINDOWS, rounds_min: rounds, wears };
    let after = until_steady(prober, of, name, &mut lower, progress)?;
    let (before, now) = (uniform.level(), after.level());
    let gain = before.mean / now.mean;
    let figure = if (gain - 1.0).abs() < NO_GAIN_SHARE {
        Figure::absent()
    } else {
        // The ends of the two intervals in the worst case, narrowed because they do not both come true.
        let narrowed = |end: f64| gain + (end - gain) / std::f64::consts::SQRT_2;
        let (low, high) = widened(gain, narrowed(before.low / now.high), narrowed(before.high / now.low));
        let doubts = applying(&TrimEvidence::TRIM_DOUBTS, &TrimEvidence { before: uniform, after: &after });
        of_one_past(doubts.judge(Figure::certain(gain, low, high)))
    };
    let reason = format!("write amplification {:.2} before, {:.2} after", before.mean, now.mean);
    draft.settle(key!(trim_gain), figure, Because { recipe, reason, curve: None });
    Ok(())
}
