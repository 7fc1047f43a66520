//! The crates' arrows go one way: a crate depends on those that stand above it in ARCHITECTURE's table.

use std::path::Path;

/// The crates in the order of the table: its rows begin with `crates/NAME`.
fn order(architecture: &str) -> Vec<&str> {
    let rows = architecture.lines().filter_map(|line| line.strip_prefix("| `crates/"));
    rows.filter_map(|row| row.split_once('`')).map(|(name, _)| name).filter(|name| !name.contains('/')).collect()
}

/// The crates of the project that a manifest depends on, apart from those that only its tests need.
fn dependencies(manifest: &str) -> Vec<&str> {
    let (_, behind) = manifest.split_once("\n[dependencies]\n").unwrap_or_default();
    let section = behind.split("\n[").next().unwrap_or(behind);
    let names = section.lines().filter_map(|line| line.strip_prefix("flashwise-"));
    names.filter_map(|line| line.split(['.', ' ', '=']).next()).collect()
}

#[test]
fn a_crate_depends_only_on_those_above_it_in_the_table_of_crates() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let architecture = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let order = order(&architecture);
    let place = |name: &str| order.iter().position(|crate_| *crate_ == name);
    let mut wrong = Vec::new();
    let mut seen = 0;
    for folder in std::fs::read_dir(root.join("crates")).unwrap() {
        let folder = folder.unwrap();
        let name = folder.file_name().into_string().unwrap();
        let Ok(manifest) = std::fs::read_to_string(folder.path().join("Cargo.toml")) else { continue };
        let own = place(&name).unwrap_or_else(|| panic!("ARCHITECTURE's table of crates lacks crates/{name}"));
        for dependency in dependencies(&manifest) {
            let at = place(dependency).unwrap_or_else(|| panic!("crates/{name}: no crate '{dependency}' in the table"));
            if at >= own {
                wrong.push(format!("crates/{name} depends on {dependency}, which stands below it"));
            }
        }
        seen += 1;
    }
    assert_eq!(seen, order.len(), "each row of the table is a crate");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
