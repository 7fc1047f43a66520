//! What every page has: head, style, a foot that says what made it.

use flashwise_block::shown;
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("style.css");

/// A whole document.
pub(super) fn page(title: &str, version: &str, body: &Markup) -> String {
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                // What a page is known again by (`own.rs`).
                meta name="generator" content={ "flashwise " (version) };
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main { (body) }
                footer { p { "Written by flashwise " (version) "." } }
            }
        }
    };
    shown::lines(&document.into_string()).into_owned()
}
