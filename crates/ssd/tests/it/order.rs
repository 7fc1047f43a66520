//! The arrows inside the crate go one way: a module imports those that are before it in the list in `src/lib.rs`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const LIB: &str = include_str!("../../src/lib.rs");

/// The modules in the order of the crate's first page.
fn order() -> Vec<&'static str> {
    let (_, list) = LIB.split_once("//! # Order").unwrap();
    let (_, list) = list.split_once("```text").unwrap();
    let (list, _) = list.split_once("```").unwrap();
    list.split_whitespace().filter(|word| *word != "//!").collect()
}

/// The module that each name is in which the crate exports at its root.
fn exported() -> BTreeMap<&'static str, &'static str> {
    let uses = LIB.lines().filter_map(|line| line.strip_prefix("pub use ")?.strip_suffix(';'));
    let names = uses.flat_map(|path| {
        let module = path.split("::").next().unwrap();
        path.split(|c: char| !c.is_alphanumeric() && c != '_').map(move |name| (name, module))
    });
    names.collect()
}

/// The source files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// What a file names of the crate, apart from its tests and comments: the first word behind each `crate::`.
fn imports(source: &str) -> Vec<&str> {
    let code = source.split("#[cfg(test)]\nmod ").next().unwrap_or(source);
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let named = lines.flat_map(|line| line.split("crate::").skip(1));
    named.flat_map(words).collect()
}

/// `a::b` names `a`; `{a::b, c}` names `a` and `c`.
fn words(path: &str) -> Vec<&str> {
    let first = |path: &'_ str| path.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(path.len());
    match path.strip_prefix('{') {
        None => vec![&path[..first(path)]],
        Some(list) => {
            let list = list.split('}').next().unwrap_or(list);
            list.split(',').map(str::trim).map(|one| &one[..first(one)]).filter(|one| !one.is_empty()).collect()
        }
    }
}

#[test]
fn a_module_imports_only_those_before_it_in_the_order_of_the_first_page() {
    let (order, exported) = (order(), exported());
    let place = |name: &str| order.iter().position(|module| *module == name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for file in files(&source) {
        let path = file.strip_prefix(&source).unwrap();
        let name = path.components().next().unwrap().as_os_str().to_str().unwrap().trim_end_matches(".rs");
        let is_test = path.file_name().is_some_and(|name| name == "tests.rs" || name == "naive.rs");
        if name == "lib" || is_test {
            continue;
        }
        let own = place(name).unwrap_or_else(|| panic!("the order in src/lib.rs does not name '{name}'"));
        let text = std::fs::read_to_string(&file).unwrap();
        for import in imports(&text) {
            let module = exported.get(import).copied().unwrap_or(import);
            let at = place(module).unwrap_or_else(|| panic!("{}: 'crate::{import}' is in no module", path.display()));
            if at > own {
                wrong.push(format!("{}: '{module}' stands behind '{name}' in the order", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "imports against the order of src/lib.rs:\n{}", wrong.join("\n"));
}

#[test]
fn every_module_has_its_place_in_the_order_once() {
    let mut order = order();
    let declared = LIB.lines().filter_map(|line| {
        let line = line.strip_prefix("pub ").unwrap_or(line);
        line.strip_prefix("mod ")?.strip_suffix(';')
    });
    let mut declared: Vec<&str> = declared.collect();
    order.sort_unstable();
    declared.sort_unstable();
    assert_eq!(order, declared);
}
