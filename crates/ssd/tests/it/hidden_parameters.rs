//! What a probe finds must follow from geometry, placement and timing, as the paper explains it.
use crate::support;

use support::{durable_write_us, exact, fill, read_us};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

#[test]
fn on_the_samsung_a_chunk_read_from_its_middle_is_served_by_two_channels() {
    let mut drive = exact("samsung-960-evo");
    fill(&mut drive, 0, 64 * MIB);
    let at = |drive: &mut _, kib: u64| read_us(drive, 8 * MIB + kib * KIB, 64 * KIB);
    let curve: Vec<f64> = (0..32).map(|step| at(&mut drive, 4 * step)).collect();
    let (fastest, _) = curve[..16].iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1)).unwrap();
    assert_eq!(fastest, 8, "fastest at 32 KiB");
    assert_eq!(curve[..16], curve[16..], "the curve repeats every 64 KiB");
    assert!(curve[0] / curve[8] > 1.4, "{} / {}", curve[0], curve[8]);
    assert!(curve[..=8].is_sorted_by(|a, b| a > b), "latency falls all the way to the middle");
}

#[test]
fn on_the_samsung_a_hot_location_is_destroyed_by_one_chunk_write_and_kept_by_two_halves() {
    let hot = 8 * MIB + 32 * KIB;
    let after = |pieces: &[u64]| {
        let mut drive = exact("samsung-960-evo");
        fill(&mut drive, 0, 64 * MIB);
        let mut at = hot;
        for &length in pieces {
            durable_write_us(&mut drive, at, length);
            at += length;
        }
        read_us(&mut drive, hot, 64 * KIB)
    };
    let untouched = after(&[]);
    let one_write = after(&[64 * KIB]);
    let two_halves = after(&[32 * KIB; 2]);
    let four_quarters = after(&[16 * KIB; 4]);
    assert!(one_write > 1.3 * untouched, "{one_write} {untouched}");
    assert!(two_halves < 1.05 * untouched, "{two_halves} {untouched}");
    assert!(four_quarters < two_halves, "{four_quarters} {two_halves}");
}

#[test]
fn a_durable_write_costs_one_more_program_beyond_each_write_unit() {
    for (preset, unit) in [("samsung-960-evo", 32 * KIB), ("toshiba-xg5", 64 * KIB), ("micron-m500", 64 * KIB)] {
        let mut drive = exact(preset);
        let mut at = 0;
        let mut latency = |length| {
            at += 4 * MIB;
            durable_write_us(&mut drive, at, length)
        };
        let inside = latency(unit) - latency(unit - 4 * KIB);
        let beyond = latency(unit + 4 * KIB) - latency(unit);
        assert!(beyond > 3.0 * inside, "{preset}: {inside} µs inside the unit, {beyond} µs beyond");
    }
}

#[test]
fn data_written_in_less_than_a_stripe_at_a_time_reads_back_slower_and_in_more_no_faster() {
    for preset in ["samsung-960-evo", "toshiba-xg5", "micron-m500"] {
        let read_back: Vec<f64> = (2..10)
            .map(|shift| {
                let mut drive = exact(preset);
                let length = KIB << shift;
                (0..4 * MIB).step_by(length as usize).for_each(|at| {
                    durable_write_us(&mut drive, at, length);
                });
                read_us(&mut drive, MIB, 512 * KIB)
            })
            .collect();
        let (shorter, stripe_and_longer) = read_back.split_at(4); // 4 KiB << 4 is the stripe
        let stripe = stripe_and_longer[0];
        assert!(shorter.iter().all(|r| r / stripe > 1.15), "{preset} {read_back:?}");
        assert!(stripe_and_longer.iter().all(|r| (r / stripe - 1.0).abs() < 0.02), "{preset} {read_back:?}");
    }
}

#[test]
fn touching_two_flash_pages_costs_more_than_touching_one_where_pages_are_read_whole() {
    for preset in ["intel-optane-905p", "toshiba-xg5", "micron-m500"] {
        let mut drive = exact(preset);
        fill(&mut drive, 0, 8 * MIB);
        let inside = read_us(&mut drive, MIB, KIB);
        let across = read_us(&mut drive, MIB + 4 * KIB - 512, KIB);
        let whole = read_us(&mut drive, MIB, 4 * KIB);
        assert!(across > inside, "{preset}: {across} {inside}");
        assert!(whole - inside < 10.0, "{preset}: {whole} {inside}");
    }
}

#[test]
fn xpoint_reads_back_the_same_however_it_was_written_and_pays_for_parts_of_a_granule() {
    let mut drive = exact("intel-optane-905p");
    let read_back = [KIB, 4 * KIB, 64 * KIB, 512 * KIB].map(|length| {
        (0..4 * MIB).step_by(length as usize).for_each(|at| {
            durable_write_us(&mut drive, at, length);
        });
        read_us(&mut drive, MIB, 512 * KIB)
    });
    assert!(read_back.iter().all(|r| *r == read_back[0]), "{read_back:?}");
    let [part, granule, two] = [512, KIB, 2 * KIB].map(|length| durable_write_us(&mut drive, 0, length));
    assert!(part > granule && two > granule, "{part} {granule} {two}");
}
