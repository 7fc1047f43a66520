//! "Is … meant?": the known name that a misspelt one comes nearest to.

/// The known name that is nearest to a misspelt one: at most a third of its letters away.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A name as long as a page is no misspelling, and comparing it takes time in proportion to its length.
    if name.len() > 256 {
        return None;
    }
    let distances = known.into_iter().map(|candidate| (edit_distance(name, candidate), candidate));
    let (distance, candidate) = distances.min()?;
    (distance <= name.chars().count().div_ceil(3)).then_some(candidate)
}

/// Levenshtein's distance, letters in either case alike.
pub fn edit_distance(a: &str, b: &str) -> usize {
    let [a, b] = [a, b].map(|text| text.to_lowercase().chars().collect::<Vec<_>>());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_found_and_a_strange_one_is_not() {
        let known = ["Flash_Channel_Count", "Flash_Channel_Width", "Seed"];
        assert_eq!(nearest("Flash_Chanel_Count", known), Some("Flash_Channel_Count"));
        assert_eq!(nearest("seed", known), Some("Seed"));
        assert_eq!(nearest("Colour", known), None);
        assert_eq!((edit_distance("", "abc"), edit_distance("kitten", "sitting")), (3, 3));
    }
}
