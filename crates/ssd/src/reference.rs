//! The keys of a drive's file, for programs as JSON Schema and for people as a page of the book.

use std::fmt::Write;

use schemars::schema_for;
use serde_json::Value;

use crate::DeviceConfig;

/// The JSON Schema (2020-12) of a drive's file.
pub fn device_schema() -> Value {
    schema_for!(DeviceConfig).to_value()
}

/// `docs/formats/device.md`: every key with its kind, its default and its meaning, made from [`device_schema`].
///
/// A key's name ends in its unit: `_ns` nanoseconds, `_bytes` bytes, `_per_s` per second, `_nj` nanojoules,
/// `_share` a share of 1.
pub fn device_reference() -> String {
    let schema = device_schema();
    let mut page = PREFACE.to_owned();
    let mut tables = vec![(String::new(), schema.clone())];
    while let Some((path, table)) = tables.pop() {
        let mut below = table_of(&schema, &path, &table, &mut page);
        below.reverse();
        tables.extend(below);
    }
    page
}

const PREFACE: &str = "# Drive configuration

A drive is one TOML file. `flashwise device show PRESET` prints a preset with the source of each figure, `flashwise
device check FILE` reports what is wrong with a file, and `flashwise device schema` prints this reference as JSON
Schema.

A key's name ends in its unit: `_ns` nanoseconds, `_bytes` bytes, `_per_s` per second, `_nj` nanojoules, `_share` and
`_ratio` a share of 1. A key without a default is required. Unknown keys are errors.

This page is generated from the program (`crates/ssd/src/reference.rs`).
";

/// Writes one table of keys; gives the tables within it.
fn table_of(schema: &Value, path: &str, table: &Value, page: &mut String) -> Vec<(String, Value)> {
    let Some(properties) = table["properties"].as_object() else { return Vec::new() };
    let heading = if path.is_empty() { "The file".to_owned() } else { format!("`[{path}]`") };
    let _ = write!(page, "\n## {heading}\n\n{}\n\n", text(table));
    page.push_str("| key | kind | default | meaning |\n|---|---|---|---|\n");
    let required = table["required"].as_array().cloned().unwrap_or_default();
    let mut below = Vec::new();
    for (key, property) in properties {
        let target = resolve(schema, property);
        let full = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        if target["properties"].is_object() {
            below.push((full, described(target.clone(), property)));
            continue;
        }
        let default = match (&property["default"], required.contains(&Value::from(key.as_str()))) {
            (_, true) => "–".to_owned(),
            (Value::Null, false) => "none".to_owned(),
            (default, false) => format!("`{default}`"),
        };
        let meaning = meaning(property, &target);
        let _ = writeln!(page, "| `{key}` | {} | {default} | {meaning} |", kind(schema, &target));
    }
    below
}

/// A table with the words of the key that names it, where it has none of its own.
fn described(mut table: Value, property: &Value) -> Value {
    if table["description"].is_null() {
        table["description"] = property["description"].clone();
    }
    table
}

/// What a key's schema means: references followed, and what may also be missing taken as it is when it is there.
fn resolve(schema: &Value, property: &Value) -> Value {
    let is_null = |option: &Value| option["type"] == "null";
    let options = property["anyOf"].as_array().or(property["allOf"].as_array());
    if let Some(option) = options.and_then(|options| options.iter().find(|option| !is_null(option))) {
        return resolve(schema, option);
    }
    match property["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
        Some(name) => resolve(schema, &schema["$defs"][name]),
        None => property.clone(),
    }
}

fn meaning(property: &Value, target: &Value) -> String {
    let own = text(property);
    let variants = variants(target);
    let told: Vec<_> = variants.iter().map(|(name, words)| format!("`\"{name}\"`: {words}")).collect();
    [own, told.join(" ")].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// The words that may stand for a value, with their meanings.
fn variants(target: &Value) -> Vec<(String, String)> {
    let one = |option: &Value| Some((option["const"].as_str()?.to_owned(), text(option)));
    match (target["oneOf"].as_array(), target["enum"].as_array()) {
        (Some(options), _) => options.iter().filter_map(one).collect(),
        (None, Some(words)) => {
            words.iter().filter_map(|word| Some((word.as_str()?.to_owned(), String::new()))).collect()
        }
        _ => Vec::new(),
    }
}

fn kind(schema: &Value, target: &Value) -> String {
    if !variants(target).is_empty() {
        return "word".to_owned();
    }
    let name = match &target["type"] {
        Value::String(name) => name.as_str(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).find(|name| *name != "null").unwrap_or_default(),
        _ => "",
    };
    match name {
        "integer" => "whole number".to_owned(),
        "boolean" => "yes or no".to_owned(),
        "string" => "text".to_owned(),
        "array" => format!("list, each a {}", kind(schema, &resolve(schema, &target["items"]))),
        other => other.to_owned(),
    }
}

/// A description in one line.
fn text(value: &Value) -> String {
    let words = value["description"].as_str().unwrap_or_default();
    words.split_whitespace().collect::<Vec<_>>().join(" ").replace("\\[", "[").replace("\\]", "]")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every key with its meaning, table by table.
    fn keys(schema: &Value, table: &Value, path: &str, found: &mut Vec<(String, String)>) {
        let Some(properties) = table["properties"].as_object() else { return };
        for (key, property) in properties {
            let (full, target) = (format!("{path}{key}"), resolve(schema, property));
            found.push((full.clone(), meaning(property, &target)));
            keys(schema, &target, &format!("{full}."), found);
        }
    }

    #[test]
    fn every_key_has_a_meaning_and_stands_in_the_page() {
        let (schema, page) = (device_schema(), device_reference());
        let mut found = Vec::new();
        keys(&schema, &schema, "", &mut found);
        assert!(found.len() > 30, "{found:?}");
        for (path, meaning) in found {
            let last = path.rsplit('.').next().unwrap();
            assert!(!meaning.is_empty(), "{path} has no meaning");
            assert!(page.contains(&format!("| `{last}` |")) || page.contains(&format!("`[{path}]`")), "{path}");
        }
    }

    #[test]
    fn the_page_of_the_book_is_the_one_that_the_program_makes() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/device.md");
        if std::env::var_os("FLASHWISE_BLESS").is_some() {
            std::fs::write(path, device_reference()).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            written == device_reference(),
            "docs/formats/device.md is out of date: regenerate it with FLASHWISE_BLESS=1 cargo test -p flashwise-ssd \
             reference"
        );
    }

    #[test]
    fn every_preset_follows_the_schema_s_names() {
        let schema = device_schema();
        for preset in crate::Preset::all() {
            let drive = serde_json::to_value(crate::DeviceConfig::preset(preset.name).unwrap()).unwrap();
            for (name, table) in drive.as_object().unwrap() {
                let target = resolve(&schema, &schema["properties"][name]);
                for key in table.as_object().into_iter().flat_map(|table| table.keys()) {
                    assert!(target["properties"][key].is_object(), "{}: {name}.{key}", preset.name);
                }
            }
        }
    }
}
