//! Which of many findings may be chance.
//!
//! Source: Holm, Scandinavian Journal of Statistics 6 (1979): the k-th smallest of n probabilities is compared with α ÷
//! (n − k + 1), and the first that fails takes all larger ones with it.

/// For each probability whether its finding is at the family-wise level `alpha`.
pub(crate) fn stands(probabilities: &[f64], alpha: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|&a, &b| probabilities[a].total_cmp(&probabilities[b]));
    let mut stands = vec![false; probabilities.len()];
    for (k, &i) in order.iter().enumerate() {
        if probabilities[i] > alpha / (probabilities.len() - k) as f64 {
            break;
        }
        stands[i] = true;
    }
    stands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_four_findings_keeps_two() {
        assert_eq!(stands(&[0.01, 0.04, 0.03, 0.005], 0.05), [true, false, false, true]);
    }

    #[test]
    fn one_failure_takes_all_less_probable_findings_with_it() {
        assert_eq!(stands(&[0.03, 0.03, 0.049], 0.05), [false; 3]);
        assert_eq!(stands(&[], 0.05), Vec::<bool>::new());
    }
}
