//! Names the commit that `flashwise --version` shows: that of the repository which this crate is a part of, or that of
//! which it was packaged. Without either the name is empty. Changes that are not committed do not show: this runs again
//! when the commit changes, not with every file.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Digits of the name that are shown: as many as git itself shows in a repository of Linux's size.
const DIGITS: usize = 12;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let crate_folder = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let commit = of_package(&crate_folder).or_else(|| of_repository(&crate_folder)).unwrap_or_default();
    println!("cargo::rustc-env=FLASHWISE_COMMIT={}", commit.get(..DIGITS).unwrap_or_default());
    println!("cargo::rustc-env=FLASHWISE_TARGET={}", std::env::var("TARGET")?);
    Ok(())
}

/// The commit in the file that cargo puts into each package.
fn of_package(crate_folder: &Path) -> Option<String> {
    let path = crate_folder.join(".cargo_vcs_info.json");
    let text = std::fs::read_to_string(&path).ok()?;
    println!("cargo::rerun-if-changed={}", path.display());
    let (_, rest) = text.split_once("\"sha1\"")?;
    Some(rest.split('"').nth(1)?.to_owned())
}

/// The commit of the repository two folders above, and of no other: a package may be unpacked below somebody else's.
fn of_repository(crate_folder: &Path) -> Option<String> {
    let root = crate_folder.parent()?.parent()?;
    if !root.join(".git").exists() {
        return None;
    }
    let commit = git(root, &["rev-parse", "HEAD"])?;
    // Cargo would run this each time if one of the files did not exist: a branch has a file of its own, or is packed
    // and gets one in the folder with its next commit.
    let branch = git(root, &["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD", "packed-refs"].into_iter().map(str::to_owned).chain(branch) {
        let path = root.join(git(root, &["rev-parse", "--git-path", &name])?);
        let watched =
            if name.starts_with("refs/") { path.ancestors().find(|path| path.exists()) } else { Some(&*path) };
        if let Some(watched) = watched.filter(|path| path.exists()) {
            println!("cargo::rerun-if-changed={}", watched.display());
        }
    }
    Some(commit)
}

/// What git prints, without the line's end; nothing if it fails or is not installed.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    // A hook that builds has these set, for the repository that it belongs to.
    let mut git = Command::new("git");
    git.arg("-C").arg(root).args(arguments).env_remove("GIT_DIR").env_remove("GIT_WORK_TREE");
    let output = git.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim_end().to_owned())
}
