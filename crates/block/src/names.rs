//! "Did you mean …?": the known name that is nearest to an unknown one.

/// The end of a message about an unknown name: the known name that was probably meant, and all known names.
pub fn choices<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let all = known.join(", ");
    match meant(name, &known) {
        Some(near) => format!("did you mean '{near}'? Choose one of {all}"),
        None => format!("choose one of {all}"),
    }
}

/// The name that was probably meant: the nearest one, or the first that contains what was given.
fn meant<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    /// Shorter texts are part of too many names.
    const LETTERS: usize = 3;
    let part = name.to_lowercase();
    let contains = || known.iter().copied().find(|known| part.len() >= LETTERS && known.to_lowercase().contains(&part));
    nearest(name, known.iter().copied()).or_else(contains)
}

/// A message of serde about an unknown field or variant, with the known one that was probably meant.
pub fn with_suggestion(message: String) -> String {
    let Some(list) = message.strip_prefix("unknown field `").or(message.strip_prefix("unknown variant `")) else {
        return message;
    };
    let mut names = list.split('`').step_by(2);
    let near = names.next().and_then(|unknown| nearest(unknown, names));
    near.map_or_else(|| message.clone(), |near| format!("{message}; did you mean `{near}`?"))
}

/// The known name that is nearest to a misspelt one: at most a third of its letters differ.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Such a long name is not a misspelling, and comparing it would take long.
    if name.len() > 256 {
        return None;
    }
    let distances = known.into_iter().map(|candidate| (edit_distance(name, candidate), candidate));
    let (distance, candidate) = distances.min()?;
    (distance <= name.chars().count().div_ceil(3)).then_some(candidate)
}

/// Levenshtein's distance, ignoring case.
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
        assert_eq!(nearest("", known), None);
        assert_eq!((edit_distance("", "abc"), edit_distance("kitten", "sitting")), (3, 3));
    }

    #[test]
    fn a_message_about_an_unknown_field_names_the_field_that_was_probably_meant() {
        let message = |name: &str| with_suggestion(format!("unknown field `{name}`, expected one of `seed`, `name`"));
        assert!(message("sed").ends_with("`name`; did you mean `seed`?"));
        assert!(message("colour").ends_with("`name`"));
        assert_eq!(with_suggestion("missing field `seed`".to_owned()), "missing field `seed`");
    }

    #[test]
    fn choices_name_what_was_probably_meant_and_all_that_is_known() {
        let choices = |name| choices(name, ["samsung-960-evo", "micron-m500"]);
        assert_eq!(choices("samsung"), "did you mean 'samsung-960-evo'? Choose one of samsung-960-evo, micron-m500");
        assert!(choices("micron-m600").starts_with("did you mean 'micron-m500'?"));
        assert_eq!(choices("x"), "choose one of samsung-960-evo, micron-m500");
    }
}
