//! Internal volumes: parts of a drive that writes reach by their address alone.
//!
//! One bit of the address of random writes is held at 0 or 1. Where the bit selects a volume, only half of them work, and
//! saturated throughput halves; where it does not, nothing changes. The bits and one run without any bit held come in
//! random order, several times over.
//!
//! Source: Kim et al., "SSDcheck", MICRO 2018, allocation-volume bits. Added: the rank test against runs without a bit,
//! instead of a person with a plot.

use flashwise_block::{ByteSize, Operation, Progress};
use flashwise_profile::{Figure, ProbeCurve};

use crate::LearnError;
use crate::findings::{Because, Findings, point};
use crate::prober::Prober;
use crate::stats::{median, rank};

use super::throughput::settling;

const BLOCK: ByteSize = ByteSize::kib(4);
/// Writes in flight.
const DEPTH: usize = 64;
/// Writes of one run after the buffer is full.
const WRITES: usize = 2048;
/// Runs of each bit.
const RUNS: usize = 5;
/// A bit selects a volume if throughput falls to at most this share: half, and something for what limits it besides.
const HALVED_SHARE: f64 = 0.75;
const NAME: &str = "writes with one bit held";

/// Measures the bits of the region's addresses.
pub(crate) fn probe(
    prober: &mut Prober<'_>,
    findings: &mut Findings,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    prober.fill_region(progress)?;
    let lowest = BLOCK.bytes().trailing_zeros();
    let bits: Vec<u32> = (lowest..prober.region().bytes().ilog2()).collect();
    let settle = (settling(findings.parameters.write_buffer_bytes.known()) / BLOCK) as usize;
    let visits = prober.shuffled((0..=bits.len()).flat_map(|i| std::iter::repeat_n(i, RUNS)));
    let mut rates = vec![Vec::with_capacity(RUNS); bits.len() + 1];
    for (n, &i) in visits.iter().enumerate() {
        prober.advance(progress, "internal volumes", n as f64 / visits.len() as f64)?;
        let held = bits.get(i).map(|&bit| (bit, (rates[i].len() % 2) as u64));
        let rate = run(prober, held, settle)?;
        prober.sample(NAME, bits.get(i).map_or(0.0, |&bit| f64::from(bit)), rate);
        rates[i].push(rate);
    }
    prober.flush()?;
    let free = rates.pop().unwrap_or_default();
    let selects: Vec<u32> =
        std::iter::zip(&bits, &rates).filter(|(_, held)| halves(held, &free)).map(|(&bit, _)| bit).collect();
    tell(findings, &bits, &rates, &selects);
    Ok(())
}

/// Requests a second of random writes with a bit held.
fn run(prober: &mut Prober<'_>, held: Option<(u32, u64)>, settle: usize) -> Result<f64, LearnError> {
    let mut anywhere = crate::prober::anywhere(ByteSize(1 << prober.region().bytes().ilog2()), BLOCK);
    let mut place = |random: &mut rand_pcg::Pcg64Mcg| {
        let offset = anywhere(random).bytes();
        ByteSize(held.map_or(offset, |(bit, value)| offset & !(1 << bit) | value << bit))
    };
    while prober.wait()?.is_some() {}
    prober.keep_in_flight(Operation::Write, BLOCK, DEPTH, settle, &mut place)?;
    prober.rate(Operation::Write, BLOCK, DEPTH, WRITES, &mut place)
}

fn halves(held: &[f64], free: &[f64]) -> bool {
    let test = rank::compare(free, held);
    test.delta >= 0.9 && median(held.to_vec()) <= HALVED_SHARE * median(free.to_vec())
}

fn tell(findings: &mut Findings, bits: &[u32], rates: &[Vec<f64>], selects: &[u32]) {
    let recipe = "random 4 KiB writes, 64 in flight, with one address bit held; throughput in the long run";
    let points = std::iter::zip(bits, rates).map(|(&bit, rates)| point(f64::from(bit), rates));
    findings.keep(ProbeCurve {
        name: NAME.to_owned(),
        x: "bit of the byte address".to_owned(),
        y: "writes a second".to_owned(),
        points: points.collect(),
        fit: Vec::new(),
    });
    let p = &mut findings.parameters;
    let reason = if selects.is_empty() {
        (p.internal_volumes, p.internal_volume_bits) = (Figure::absent(), Figure::absent());
        "no bit changes throughput".to_owned()
    } else {
        let mask = selects.iter().fold(0, |mask, bit| mask | 1 << bit);
        let count = 1 << selects.len();
        p.internal_volumes = Figure::certain(count, count, count);
        p.internal_volume_bits = Figure::certain(mask, mask, mask);
        format!("with any of bits {selects:?} held, throughput falls to at most {:.0} %", HALVED_SHARE * 100.0)
    };
    for key in ["internal_volumes", "internal_volume_bits"] {
        findings.because(key, Because { recipe, reason: reason.clone(), curve: Some(NAME) });
    }
}
