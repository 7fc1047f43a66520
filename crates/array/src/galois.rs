//! The field of 256 elements that the second parity of RAID-6 is computed in.
//!
//! Elements are polynomials over GF(2) modulo x⁸ + x⁴ + x³ + x² + 1 (0x11d), of which x (2) generates all that are not
//! zero. Source: H. P. Anvin, *The mathematics of RAID-6*, sections 1 and 2.

/// The polynomial without its highest term.
const POLYNOMIAL: u8 = 0x1d;

/// Elements that are not zero.
const ORDER: usize = 255;

/// Powers of the generator, twice over, and logarithms to its base.
struct Tables {
    powers: [u8; 2 * ORDER],
    logarithms: [u8; 256],
}

static TABLES: Tables = tables();

const fn tables() -> Tables {
    let (mut powers, mut logarithms) = ([0; 2 * ORDER], [0; 256]);
    let (mut element, mut exponent) = (1_u8, 0);
    while exponent < ORDER {
        powers[exponent] = element;
        powers[exponent + ORDER] = element;
        logarithms[element as usize] = exponent as u8;
        element = (element << 1) ^ (if element & 0x80 != 0 { POLYNOMIAL } else { 0 });
        exponent += 1;
    }
    Tables { powers, logarithms }
}

/// The generator to a power.
pub(super) fn power(exponent: usize) -> u8 {
    TABLES.powers[exponent % ORDER]
}

/// The product of two elements.
pub(super) fn multiply(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    let logarithm = |element: u8| usize::from(TABLES.logarithms[usize::from(element)]);
    TABLES.powers[logarithm(a) + logarithm(b)]
}

/// The element that gives 1 with this one, which is not zero.
pub(super) fn inverse(a: u8) -> u8 {
    debug_assert!(a != 0, "zero has no inverse");
    TABLES.powers[ORDER - usize::from(TABLES.logarithms[usize::from(a)])]
}

/// Adds `factor · from` to `into`, byte by byte.
pub(super) fn add_multiple(into: &mut [u8], from: &[u8], factor: u8) {
    if factor == 1 {
        into.iter_mut().zip(from).for_each(|(into, &from)| *into ^= from);
        return;
    }
    let mut products = [0; 256];
    (0..=u8::MAX).for_each(|byte| products[usize::from(byte)] = multiply(byte, factor));
    into.iter_mut().zip(from).for_each(|(into, &from)| *into ^= products[usize::from(from)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The product by the school's method: shift, add, reduce.
    fn slowly(mut a: u8, mut b: u8) -> u8 {
        let mut product = 0;
        while b != 0 {
            product ^= if b & 1 != 0 { a } else { 0 };
            a = (a << 1) ^ (if a & 0x80 != 0 { POLYNOMIAL } else { 0 });
            b >>= 1;
        }
        product
    }

    #[test]
    fn products_are_those_of_polynomials() {
        for a in 0..=u8::MAX {
            (0..=u8::MAX).for_each(|b| assert_eq!(multiply(a, b), slowly(a, b), "{a} · {b}"));
        }
        (1..=u8::MAX).for_each(|a| assert_eq!(multiply(a, inverse(a)), 1));
    }

    #[test]
    fn the_generator_comes_to_every_element_before_it_comes_back() {
        let mut seen: Vec<u8> = (0..ORDER).map(power).collect();
        seen.sort_unstable();
        assert_eq!(seen, (1..=u8::MAX).collect::<Vec<_>>());
        assert_eq!(power(8), POLYNOMIAL);
    }
}
