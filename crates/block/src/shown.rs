//! Foreign text for display: its control characters are visible and have no effect.
//!
//! The name of a drive or a file, or a line of SQL or of a trace, may contain anything. Sent to a terminal unmodified,
//! it moves the cursor, sets the window's title or makes the terminal reply; in a file it turns half of a comment into
//! a line of its own; marks for the direction of writing make it look like something else. Each such character is shown
//! as Rust and most other languages write it: `\u{1b}`, `\n`.
//!
//! Source: ECMA-48; Unicode Technical Report 36, section 2.10; Boucher and Anderson, *Trojan Source*, 2021.

use std::borrow::Cow;

/// Whether a character does something else than to be seen.
fn is_control(c: char) -> bool {
    // Separators of lines and paragraphs, and characters that change the direction of writing.
    let formats = ['\u{61c}', '\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}', '\u{feff}'];
    c.is_control()
        || formats.contains(&c)
        || ('\u{202a}'..='\u{202e}').contains(&c)
        || ('\u{2066}'..='\u{2069}').contains(&c)
}

fn escaped_but(text: &str, kept: impl Fn(char) -> bool, escape: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let is_escaped = |c: char| is_control(c) && !kept(c);
    if !text.chars().any(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_escaped(c) { escape(c, &mut shown) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

fn as_rust(c: char, shown: &mut String) {
    shown.extend(c.escape_default());
}

/// A text that is one line: a name, a comment's rest, an error.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped_but(text, |_| false, as_rust)
}

/// A text that may have several lines.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped_but(text, |c| c == '\n', as_rust)
}

/// A JSON document, where the same characters have a JSON escape; its value does not change.
pub fn json(document: &str) -> Cow<'_, str> {
    escaped_but(
        document,
        |c| c == '\n',
        |c, shown| {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| shown.push_str(&format!("\\u{unit:04x}")));
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_something_is_shown_and_the_rest_is_as_it_was() {
        assert_eq!(line("a\u{1b}]0;x\u{7}b\r\n"), "a\\u{1b}]0;x\\u{7}b\\r\\n");
        assert_eq!(lines("a\u{9b}31m\nb\tc\u{7f}"), "a\\u{9b}31m\nb\\tc\\u{7f}");
        assert_eq!(line("user\u{202e}txt.exe\u{2066}\u{2028}"), "user\\u{202e}txt.exe\\u{2066}\\u{2028}");
        for plain in ["", "Größe 5 µs · 木 \u{a0}\u{1f600}", "a\\u{1b}"] {
            assert!(matches!(line(plain), Cow::Borrowed(text) if text == plain));
        }
    }

    #[test]
    fn a_json_document_means_the_same() {
        let value = serde_json::json!({ "name": "a\u{1b}\u{9b}\u{7f}\u{202e}\nb" });
        let document = format!("{value:#}\n");
        let shown = json(&document);
        assert!(
            !shown.contains(['\u{9b}', '\u{7f}', '\u{202e}']) && shown.contains("\\u009b\\u007f\\u202e"),
            "{shown}"
        );
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
