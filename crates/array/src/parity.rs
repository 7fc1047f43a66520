//! Parity of a row, and its chunks from the others.
//!
//! ```text
//!   P = D₀ + D₁ + … + Dₙ₋₁        Q = g⁰·D₀ + g¹·D₁ + … + gⁿ⁻¹·Dₙ₋₁        over the bytes at the same place
//! ```
//!
//! A row is a list of chunks, the columns first, then P, then Q; a chunk that is missing is `None`. Source: H. P.
//! Anvin, *The mathematics of RAID-6*, section 4 for one and two lost chunks.

use super::galois::{add_multiple, inverse, multiply, power};

/// The bytes of each chunk of a row, or of the same part of each.
pub(super) type Row = Vec<Option<Vec<u8>>>;

/// What a column counts for in the parity of a number: 0 is P, 1 is Q.
pub(super) fn weight(parity: usize, column: usize) -> u8 {
    if parity == 0 { 1 } else { power(column) }
}

/// The parity of that number over all columns, which are present.
pub(super) fn parity_of(row: &Row, columns: usize, parity: usize, length: usize) -> Vec<u8> {
    let mut sum = vec![0; length];
    for (column, data) in row.iter().take(columns).enumerate() {
        add_multiple(&mut sum, data.as_deref().unwrap_or_default(), weight(parity, column));
    }
    sum
}

/// Fills in the columns that are missing; `false` where fewer parities are present than columns are missing.
pub(super) fn restore(row: &mut Row, columns: usize, length: usize) -> bool {
    let missing: Vec<usize> = (0..columns).filter(|&column| row[column].is_none()).collect();
    // What each parity has of the missing columns: its sum less those that are present.
    let of_missing = |parity: usize| {
        let mut sum = row.get(columns + parity)?.clone()?;
        for (column, data) in row.iter().take(columns).enumerate() {
            add_multiple(&mut sum, data.as_deref().unwrap_or_default(), weight(parity, column));
        }
        debug_assert_eq!(sum.len(), length);
        Some(sum)
    };
    match *missing.as_slice() {
        [] => true,
        [x] => {
            let (sum, parity) = match of_missing(0) {
                Some(sum) => (sum, 0),
                None => match of_missing(1) {
                    Some(sum) => (sum, 1),
                    None => return false,
                },
            };
            row[x] = Some(multiple(&sum, inverse(weight(parity, x))));
            true
        }
        [x, y] => {
            let (Some(p), Some(q)) = (of_missing(0), of_missing(1)) else { return false };
            // Dx + Dy = p and g^x·Dx + g^y·Dy = q, so (g^x + g^y)·Dx = q + g^y·p.
            let mut first = q;
            add_multiple(&mut first, &p, power(y));
            let first = multiple(&first, inverse(power(x) ^ power(y)));
            let mut second = p;
            add_multiple(&mut second, &first, 1);
            (row[x], row[y]) = (Some(first), Some(second));
            true
        }
        _ => false,
    }
}

fn multiple(bytes: &[u8], factor: u8) -> Vec<u8> {
    bytes.iter().map(|&byte| multiply(byte, factor)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    const LENGTH: usize = 64;

    fn random_row(columns: usize, parities: usize, random: &mut Pcg64Mcg) -> Row {
        let mut row: Row = (0..columns).map(|_| Some((0..LENGTH).map(|_| random.random()).collect())).collect();
        let parity: Vec<_> = (0..parities).map(|parity| Some(parity_of(&row, columns, parity, LENGTH))).collect();
        row.extend(parity);
        row
    }

    #[test]
    fn every_loss_of_one_or_two_chunks_is_restored() {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        for columns in [1, 2, 3, 6, 30] {
            let whole = random_row(columns, 2, &mut random);
            for a in 0..columns + 2 {
                for b in a..columns + 2 {
                    let mut row = whole.clone();
                    (row[a], row[b]) = (None, None);
                    assert!(restore(&mut row, columns, LENGTH), "{columns} columns without {a} and {b}");
                    assert_eq!(row[..columns], whole[..columns], "{columns} columns without {a} and {b}");
                }
            }
        }
    }

    #[test]
    fn what_is_lost_beyond_the_parities_is_not_made_up() {
        let mut random = Pcg64Mcg::seed_from_u64(2);
        let mut row = random_row(4, 1, &mut random);
        (row[0], row[2]) = (None, None);
        assert!(!restore(&mut row, 4, LENGTH));
        let mut row = random_row(4, 2, &mut random);
        (row[0], row[2], row[4]) = (None, None, None);
        assert!(!restore(&mut row, 4, LENGTH));
    }
}
