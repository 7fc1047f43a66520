//! Wear, bit errors, error correction and retention.
//!
//! ```text
//!   P/E cycles and age of a block ─▶ raw bit error rate ─▶ probability that a codeword has more wrong bits than its code
//!   corrects ─▶ one draw a read ─▶ sensed again at a lower error rate ─▶ … ─▶ corrected, or failed after the last retry
//! ```
//!
//! Errors of different bits are taken as independent, so that the wrong bits of a codeword of *n* bits follow a
//! binomial distribution; measured ones spread wider (Taranalli et al., "Channel Models for Multi-Level Cell Flash
//! Memories Based on Empirical Error Analysis", IEEE Trans. Comm. 64(8), 2016), which a lower `correctable_bits` stands
//! in for. The age of a block's data is that of its oldest page. Where blocks differ in the cycles that they endure,
//! each has a limit of its own, drawn when the drive is made. A cycle in SLC mode counts as the share of a block's life
//! that it takes; its bit errors are those of the same wear in the other mode, which is too many. Formula and
//! coefficients of the error rate: [`crate::config::ReliabilityConfig`]. All functions are `libm`'s, which give the
//! same bits on every machine.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::command::{FlashAddress, FlashOp, FlashOpKind};
use crate::config::{DeviceConfig, Mapping, ReliabilityConfig};

const NS_PER_HOUR: f64 = 3.6e12;

/// Separates the draws of this model from those of the jitter.
const STREAM: u64 = 0x9e37_79b9_7f4a_7c15;

/// Separates the draws of the blocks' limits from both.
const LIMITS: u64 = 0x2545_f491_4f6c_dd1d;

/// What is known of the same block of all planes of a parallel unit.
#[derive(Clone, Copy)]
struct Block {
    /// Erase commands to any of the unit's dies.
    erases: u32,
    /// Of these, those while its cells held one bit each.
    slc_erases: u32,
    /// When its first page was programmed; `None` while it is clean.
    programmed_ns: Option<u64>,
    /// The terms of the error rate that change only with an erase.
    base_and_wear: f64,
    retention: f64,
}

/// What becomes of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) failed: bool,
    /// How often a page is sensed again.
    pub(super) retries: u32,
}

/// Wear and errors of all blocks of a drive.
pub(super) struct Reliability {
    config: ReliabilityConfig,
    blocks: Vec<Block>,
    erases_per_cycle: u32,
    /// A cycle in SLC mode wears a block as much as so many in which its cells hold all bits.
    wear_of_slc_cycle: f64,
    /// What a bit error rate is in SLC mode, as a share of what it is without.
    rber_factor_of_slc: f64,
    /// P/E cycles after which each further erase fails: of all blocks, or where they differ of each.
    limits: Vec<u32>,
    /// Without bit errors only wear is left of the model.
    errs: bool,
    retry_ns: u64,
    correction: Correction,
    random: Pcg64Mcg,
}

/// What is left of the model where a configuration speaks of P/E cycles alone.
fn without_errors() -> ReliabilityConfig {
    let none =
        ReliabilityConfig { rber_base: 0.0, rber_wear: 0.0, rber_retention: 0.0, ..ReliabilityConfig::default() };
    ReliabilityConfig { codeword_bytes: 64, correctable_bits: 0, ..none }
}

/// The limits of so many blocks.
fn limits(config: &DeviceConfig, blocks: usize, seed: u64) -> Vec<u32> {
    let Some(mean) = config.pe_cycles_limit() else { return Vec::new() };
    let spread = config.flash.endurance.map_or(0.0, |endurance| endurance.spread);
    if spread == 0.0 {
        return vec![mean];
    }
    let mut random = Pcg64Mcg::seed_from_u64(seed ^ LIMITS);
    let limit = |_| (f64::from(mean) * (1.0 + spread * normal(&mut random))).round().max(1.0) as u32;
    (0..blocks).map(limit).collect()
}

/// A draw of the standard normal distribution (Box and Muller, Annals of Mathematical Statistics 29(2), 1958).
fn normal(random: &mut Pcg64Mcg) -> f64 {
    let mut unit = || ((random.random::<u64>() >> 11) as f64 + 0.5) * (0.5_f64).powi(53);
    let (radius, angle) = (libm::sqrt(-2.0 * libm::log(unit())), 2.0 * std::f64::consts::PI * unit());
    radius * libm::cos(angle)
}

impl Reliability {
    /// The model that a configuration asks for.
    pub(super) fn new(config: &DeviceConfig, seed: u64) -> Option<Self> {
        let wears = config.flash.endurance.is_some() && config.ftl.mapping == Mapping::Page;
        let model = config.flash.reliability.or_else(|| wears.then(without_errors))?;
        let blocks = config.units() as usize * config.flash.blocks_per_plane as usize;
        let worn = block_after(&model, 0);
        Some(Self {
            config: model,
            blocks: vec![worn; blocks],
            erases_per_cycle: config.ftl.superpage_channels * config.ftl.superpage_ways,
            wear_of_slc_cycle: config.wear_of_slc_cycle(),
            rber_factor_of_slc: config.flash.slc_mode.map_or(1.0, |mode| mode.rber_factor()),
            limits: limits(config, blocks, seed),
            errs: config.flash.reliability.is_some(),
            retry_ns: model.read_retry_ns.unwrap_or(config.flash.read_ns),
            correction: Correction::new(model.codeword_bytes * 8, model.correctable_bits),
            random: Pcg64Mcg::seed_from_u64(seed ^ STREAM),
        })
    }

    /// What one retry takes.
    pub(super) fn retry_ns(&self) -> u64 {
        self.retry_ns
    }

    /// What correcting a read's data takes.
    pub(super) fn decode_ns(&self) -> u64 {
        self.config.ecc_decode_ns
    }

    /// What becomes of a command that the array starts now, in a block in SLC mode or not.
    pub(super) fn outcome(&mut self, op: &FlashOp, is_slc: bool, now_ns: u64) -> Outcome {
        match op.kind {
            FlashOpKind::Read => self.read(&op.at, op.transfer_bytes, is_slc, now_ns),
            FlashOpKind::Program => self.program(&op.at, now_ns),
            FlashOpKind::Erase => self.erase(&op.at, is_slc),
        }
    }

    fn read(&mut self, at: &FlashAddress, bytes: u32, is_slc: bool, now_ns: u64) -> Outcome {
        if !self.errs {
            return Outcome::default();
        }
        let mut rber = self.rber(at.block, now_ns) * if is_slc { self.rber_factor_of_slc } else { 1.0 };
        let codewords = f64::from(bytes.div_ceil(self.config.codeword_bytes));
        for retries in 0..=self.config.read_retries_max {
            let one = self.correction.uncorrectable(rber);
            let any = -libm::expm1(codewords * libm::log1p(-one));
            if !self.happens(any) {
                return Outcome { failed: false, retries };
            }
            rber *= self.config.read_retry_rber_factor;
        }
        Outcome { failed: true, retries: self.config.read_retries_max }
    }

    fn program(&mut self, at: &FlashAddress, now_ns: u64) -> Outcome {
        let block = &mut self.blocks[at.block as usize];
        block.programmed_ns.get_or_insert(now_ns);
        let probability = self.failure(self.config.program_failure_probability, at.block);
        Outcome { failed: self.happens(probability), retries: 0 }
    }

    fn erase(&mut self, at: &FlashAddress, is_slc: bool) -> Outcome {
        let block = &mut self.blocks[at.block as usize];
        block.erases += 1;
        block.slc_erases += u32::from(is_slc);
        let Block { erases, slc_erases, .. } = *block;
        if erases.is_multiple_of(self.erases_per_cycle) {
            let cycles = worn(erases, slc_erases, self.wear_of_slc_cycle) / self.erases_per_cycle;
            self.blocks[at.block as usize] = Block { erases, slc_erases, ..block_after(&self.config, cycles) };
        }
        let begun = worn(erases, slc_erases, self.wear_of_slc_cycle).div_ceil(self.erases_per_cycle);
        let cycles = self.config.initial_pe_cycles.saturating_add(begun);
        let worn_out = self.limit(at.block).is_some_and(|limit| cycles > limit);
        let probability = self.failure(self.config.erase_failure_probability, at.block);
        Outcome { failed: self.happens(probability) || worn_out, retries: 0 }
    }

    /// P/E cycles that a block endures; `None` where there is no limit.
    fn limit(&self, block: u32) -> Option<u32> {
        self.limits.get(block as usize).or(self.limits.first()).copied()
    }

    /// The raw bit error rate of a block's data.
    fn rber(&self, block: u32, now_ns: u64) -> f64 {
        let Block { programmed_ns, base_and_wear, retention, .. } = self.blocks[block as usize];
        let age_ns = now_ns - programmed_ns.unwrap_or(now_ns);
        let hours = self.config.retention_hours + age_ns as f64 / NS_PER_HOUR;
        (base_and_wear + retention * libm::pow(hours, self.config.rber_retention_time_exponent)).min(0.5)
    }

    fn failure(&self, probability: f64, block: u32) -> f64 {
        if probability == 0.0 {
            return 0.0;
        }
        let Block { erases, slc_erases, .. } = self.blocks[block as usize];
        let ended = worn(erases, slc_erases, self.wear_of_slc_cycle) / self.erases_per_cycle;
        let cycles = self.config.initial_pe_cycles.saturating_add(ended);
        let share = f64::from(cycles) / f64::from(self.config.failure_pe_cycles);
        (probability * libm::pow(share, self.config.failure_exponent)).min(1.0)
    }

    fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && (self.random.random::<u64>() >> 11) as f64 * (0.5_f64).powi(53) < probability
    }
}

/// The wear of so many erases, some of them in SLC mode, as a number of erases in which cells held all bits.
fn worn(erases: u32, in_slc_mode: u32, wear_of_slc_cycle: f64) -> u32 {
    match in_slc_mode {
        0 => erases,
        slc => erases - slc + libm::ceil(f64::from(slc) * wear_of_slc_cycle) as u32,
    }
}

/// A clean block after so many cycles.
fn block_after(model: &ReliabilityConfig, cycles: u32) -> Block {
    let cycles = f64::from(model.initial_pe_cycles.saturating_add(cycles));
    let power = |factor: f64, exponent| if factor == 0.0 { 0.0 } else { factor * libm::pow(cycles, exponent) };
    Block {
        erases: 0,
        slc_erases: 0,
        programmed_ns: None,
        base_and_wear: model.rber_base + power(model.rber_wear, model.rber_wear_exponent),
        retention: power(model.rber_retention, model.rber_retention_wear_exponent),
    }
}

/// A code of so many bits: how likely its codewords cannot be corrected.
struct Correction {
    /// At an error rate of 2^(n ÷ 64 − 40).
    probability: Vec<f64>,
}

const PER_OCTAVE: f64 = 64.0;
const OCTAVES: f64 = 40.0;

impl Correction {
    fn new(bits: u32, correctable: u32) -> Self {
        let mut log_factorial = vec![0.0; bits as usize + 1];
        for n in 1..=bits as usize {
            log_factorial[n] = log_factorial[n - 1] + libm::log(n as f64);
        }
        let steps = (PER_OCTAVE * OCTAVES) as u32;
        let rate = |n: u32| libm::exp2(f64::from(n) / PER_OCTAVE - OCTAVES);
        let probability = (0..steps).map(|n| more_than(correctable, bits, rate(n), &log_factorial)).collect();
        Self { probability }
    }

    /// The probability that a codeword has more wrong bits than can be corrected.
    fn uncorrectable(&self, rber: f64) -> f64 {
        let at = (libm::log2(rber.max(1e-300)) + OCTAVES) * PER_OCTAVE;
        if at < 0.0 {
            return 0.0;
        }
        let (below, share) = (at as usize, at - libm::floor(at));
        let entry = |n: usize| self.probability.get(n).or(self.probability.last()).copied().unwrap_or(0.0);
        entry(below) * (1.0 - share) + entry(below + 1) * share
    }
}

/// P(X > `most`) for X binomial over `bits` bits with the rate `p`.
fn more_than(most: u32, bits: u32, p: f64, log_factorial: &[f64]) -> f64 {
    let (log_p, log_q) = (libm::log(p), libm::log1p(-p));
    let term = |k: u32| {
        let choose = log_factorial[bits as usize] - log_factorial[k as usize] - log_factorial[(bits - k) as usize];
        libm::exp(choose + f64::from(k) * log_p + f64::from(bits - k) * log_q)
    };
    // Sum the side that does not hold the mean, from the border outwards, until nothing is added any more.
    let sum_of = |mut terms: Box<dyn Iterator<Item = u32>>| {
        let mut sum = 0.0;
        let _ = terms.try_for_each(|k| {
            let (before, part) = (sum, term(k));
            sum += part;
            (part == 0.0 || sum > before).then_some(())
        });
        sum
    };
    if f64::from(most) < f64::from(bits) * p {
        return 1.0 - sum_of(Box::new((0..=most).rev()));
    }
    sum_of(Box::new(most + 1..=bits))
}

crate::state::state! { Block { saved { erases, slc_erases, programmed_ns, base_and_wear, retention } } }

crate::state::state! {
    Reliability {
        saved { blocks, random }
        built {
            config, erases_per_cycle, wear_of_slc_cycle, rber_factor_of_slc, limits, errs, retry_ns, correction,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{CellType, EnduranceConfig, SlcModeConfig};
    use crate::flash::Owner;

    fn model(change: impl FnOnce(&mut ReliabilityConfig)) -> Reliability {
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
        let mut reliability = ReliabilityConfig::default();
        change(&mut reliability);
        config.flash.reliability = Some(reliability);
        Reliability::new(&config, 1).unwrap()
    }

    fn command(kind: FlashOpKind, bytes: u32) -> FlashOp {
        let at = FlashAddress { planes: 1, block: 3, ..FlashAddress::default() };
        FlashOp::new(kind, Owner::None, at, bytes)
    }

    #[test]
    fn a_codeword_is_uncorrectable_as_often_as_the_binomial_tail_says() {
        let factorials = |n: usize| (0..=n).map(|n| (1..=n).map(|k| (k as f64).ln()).sum()).collect::<Vec<f64>>();
        let tail = more_than(1, 3, 0.25, &factorials(3));
        assert!((tail - (3.0 * 0.0625 * 0.75 + 0.015_625)).abs() < 1e-12, "{tail}");
        let tail = more_than(0, 3, 0.5, &factorials(3));
        assert!((tail - 0.875).abs() < 1e-12, "{tail}");
        let code = Correction::new(8192, 72);
        assert!(code.uncorrectable(1e-4) < 1e-60);
        assert!((code.uncorrectable(72.5 / 8192.0) - 0.5).abs() < 0.03);
        assert!(code.uncorrectable(0.02) > 0.999_999);
        assert!((code.uncorrectable(0.5) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn error_rates_follow_the_formula_with_cycles_and_age() {
        let mut young = model(|_| ());
        assert!((young.rber(3, 0) - 1.48e-3).abs() < 1e-12);
        let worn = model(|c| (c.initial_pe_cycles, c.retention_hours) = (3_000, 720.0));
        let expected = 1.48e-3 + 3.90e-10 * 3000_f64.powf(2.05) + 6.28e-5 * 3000_f64.powf(0.14) * 720_f64.powf(0.54);
        assert!((worn.rber(3, 0) / expected - 1.0).abs() < 1e-9);
        young.outcome(&command(FlashOpKind::Erase, 0), false, 0);
        young.outcome(&command(FlashOpKind::Program, 0), false, 1_000);
        let after_an_hour = young.rber(3, 1_000 + NS_PER_HOUR as u64);
        assert!((after_an_hour - (1.48e-3 + 3.90e-10 + 6.28e-5)).abs() < 1e-9, "{after_an_hour}");
    }

    #[test]
    fn each_retry_lowers_the_error_rate_and_the_last_one_gives_up() {
        let mut often = model(|c| c.rber_base = 72.5 / 8192.0);
        let outcomes: Vec<_> = (0..2_000).map(|_| often.outcome(&command(FlashOpKind::Read, 1024), false, 0)).collect();
        let first_try = outcomes.iter().filter(|o| o.retries == 0).count();
        assert!((900..1_100).contains(&first_try), "{first_try}");
        assert!(outcomes.iter().all(|o| !o.failed && o.retries <= 1));
        let mut hopeless = model(|c| (c.rber_base, c.read_retry_rber_factor, c.read_retries_max) = (0.1, 1.0, 3));
        let outcome = hopeless.outcome(&command(FlashOpKind::Read, 1024), false, 0);
        assert_eq!(outcome, Outcome { failed: true, retries: 3 });
    }

    #[test]
    fn limits_of_blocks_are_normally_distributed_about_the_mean_and_come_from_the_seed() {
        let endurance = |spread, seed| {
            let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
            config.flash.endurance =
                Some(EnduranceConfig { pe_cycles: Some(1_000), spread, ..EnduranceConfig::default() });
            let model = Reliability::new(&config, seed).unwrap();
            (0..model.blocks.len() as u32).map(|block| f64::from(model.limit(block).unwrap())).collect::<Vec<_>>()
        };
        assert!(endurance(0.0, 1).iter().all(|&limit| limit == 1_000.0));
        let limits = endurance(0.1, 1);
        assert!(limits == endurance(0.1, 1) && limits != endurance(0.1, 2));
        let count = limits.len() as f64;
        let mean = limits.iter().sum::<f64>() / count;
        let deviation = (limits.iter().map(|limit| (limit - mean).powi(2)).sum::<f64>() / count).sqrt();
        // Four standard errors of the mean, 100 ÷ √n, and of the deviation, 100 ÷ √2n.
        let error = 4.0 * 100.0 / count.sqrt();
        assert!((mean - 1_000.0).abs() < error && (deviation - 100.0).abs() < error, "{mean} ± {deviation} of {count}");
        let within = limits.iter().filter(|&&limit| (limit - 1_000.0).abs() <= 100.0).count() as f64 / count;
        assert!((within - 0.683).abs() < 4.0 * (0.683 * 0.317 / count).sqrt(), "{within} within one deviation");
        assert!(endurance(0.5, 3).iter().all(|&limit| limit >= 1.0));
    }

    #[test]
    fn with_a_limit_alone_flash_wears_out_and_never_errs() {
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
        config.flash.endurance = Some(EnduranceConfig { pe_cycles: Some(2), ..EnduranceConfig::default() });
        let mut model = Reliability::new(&config, 1).unwrap();
        let old = 100 * 365 * 24 * NS_PER_HOUR as u64;
        model.outcome(&command(FlashOpKind::Program, 4096), false, 0);
        assert_eq!(model.outcome(&command(FlashOpKind::Read, 4096), false, old), Outcome::default());
        let erases: Vec<bool> =
            (0..4).map(|_| model.outcome(&command(FlashOpKind::Erase, 0), false, 0).failed).collect();
        assert_eq!(erases, [false, false, true, true]);
        assert_eq!(model.decode_ns(), 0);
    }

    #[test]
    fn a_cycle_in_slc_mode_takes_its_own_share_of_a_blocks_life() {
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
        config.flash.cell = Some(CellType::Tlc);
        config.flash.endurance = Some(EnduranceConfig { pe_cycles: Some(2), ..EnduranceConfig::default() });
        config.flash.slc_mode =
            Some(SlcModeConfig { read_ns: 1, program_ns: 1, erase_ns: None, pe_cycles: Some(8), rber_factor: None });
        let erase = |modes: &[bool]| {
            let mut model = Reliability::new(&config, 1).unwrap();
            modes
                .iter()
                .map(|&is_slc| model.outcome(&command(FlashOpKind::Erase, 0), is_slc, 0).failed)
                .collect::<Vec<_>>()
        };
        assert_eq!(erase(&[true; 10]).iter().position(|&failed| failed), Some(8), "the ninth");
        assert_eq!(erase(&[true, true, true, true, false, false]), [false, false, false, false, false, true]);
        assert_eq!(erase(&[false, true, true, true, true, true]), [false, false, false, false, false, true]);
    }

    #[test]
    fn data_in_slc_mode_is_read_as_if_so_much_less_were_wrong_with_it() {
        let retries = |rber_factor, is_slc| {
            let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
            config.flash.slc_mode =
                Some(SlcModeConfig { read_ns: 1, program_ns: 1, erase_ns: None, pe_cycles: None, rber_factor });
            let worn = ReliabilityConfig { rber_base: 9e-3, codeword_bytes: 1024, ..ReliabilityConfig::default() };
            config.flash.reliability = Some(worn);
            let mut model = Reliability::new(&config, 1).unwrap();
            (0..200).map(|_| model.outcome(&command(FlashOpKind::Read, 1024), is_slc, 0).retries).sum::<u32>()
        };
        let full = retries(None, false);
        assert!(full > 50, "{full}");
        assert_eq!(retries(Some(1.0), true), full, "the same chance");
        assert!(retries(Some(0.9), true) < full);
        assert_eq!(retries(None, true), 0);
    }

    #[test]
    fn a_block_fails_for_ever_beyond_its_limit_and_ever_more_often_before() {
        let mut limited = model(|c| c.pe_cycles_limit = Some(2));
        let erases: Vec<bool> =
            (0..4).map(|_| limited.outcome(&command(FlashOpKind::Erase, 0), false, 0).failed).collect();
        assert_eq!(erases, [false, false, true, true]);
        let failures = |cycles| {
            let mut worn = model(|c| (c.initial_pe_cycles, c.program_failure_probability) = (cycles, 0.4));
            (0..1_000).filter(|_| worn.outcome(&command(FlashOpKind::Program, 0), false, 0).failed).count()
        };
        assert_eq!(failures(0), 0);
        assert!((70..130).contains(&failures(1_500)), "a quarter of 0.4 at half the cycles");
        assert!((350..450).contains(&failures(3_000)));
    }
}
