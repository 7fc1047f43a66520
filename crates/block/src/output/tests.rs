//! Tests with real directories; a test that needs root or access lists is skipped with a message.

use std::io::Write;
use std::os::unix::fs::symlink;

use super::*;

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A new file with a content: without a name, or, as on file systems that cannot do that, with one.
fn new_file(is_nameless: bool, target: &Path, content: &str, access: &Access) -> OutputFile {
    let mut new = OutputFile::create(target, access.clone()).unwrap();
    assert!(new.named.is_none(), "the directory of tests has files without names");
    if !is_nameless {
        let (file, named) = temporary(directory_of(target), access.initial_mode()).unwrap().into_parts();
        new = OutputFile { file, named: Some(named), ..new };
    }
    new.file().write_all(content.as_bytes()).unwrap();
    new
}

/// The same in both ways, one after the other.
fn news<'a>(target: &'a Path, content: &'a str, access: &'a Access) -> impl Iterator<Item = OutputFile> + 'a {
    [true, false].into_iter().map(move |is_nameless| new_file(is_nameless, target, content, access))
}

fn ours(path: &Path) -> io::Result<Option<Replaceable>> {
    Replaceable::recognise(path, |file| Ok(io::read_to_string(file)?.starts_with("ours")))
}

#[test]
fn a_new_file_has_its_name_only_when_it_is_complete_and_nothing_else_had_it() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("out");
    for new in news(&target, "whole", &Access::Usual) {
        assert!(!target.exists());
        let published = new.publish().unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "whole");
        published.remove().unwrap();
        assert!(names(directory.path()).is_empty());
    }
    fs::write(&target, "mine").unwrap();
    for new in news(&target, "whole", &Access::Usual) {
        assert_eq!(new.publish().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }
    news(&target, "whole", &Access::Usual).for_each(drop);
    assert_eq!(names(directory.path()), ["out"]);
    assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
}

#[test]
fn a_file_that_somebody_makes_while_ours_is_written_stays() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("out");
    for new in news(&target, "ours 2", &Access::Usual) {
        fs::write(&target, "ours 1").unwrap();
        let known = ours(&target).unwrap().unwrap();
        // The same content, another file.
        fs::write(directory.path().join("other"), "ours, edited by hand").unwrap();
        fs::rename(directory.path().join("other"), &target).unwrap();
        assert_eq!(new.replace(&known).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&target).unwrap(), "ours, edited by hand");
        assert_eq!(names(directory.path()), ["out"]);
    }
}

#[test]
fn a_file_that_is_ours_is_replaced_and_one_that_is_gone_is_written_anew() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("out");
    for new in news(&target, "ours 2", &Access::Usual) {
        fs::write(&target, "ours 1").unwrap();
        let known = ours(&target).unwrap().unwrap();
        new.replace(&known).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "ours 2");
        let new = new_file(true, &target, "ours 3", &Access::Usual);
        let known = ours(&target).unwrap().unwrap();
        fs::remove_file(&target).unwrap();
        new.replace(&known).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "ours 3");
        assert_eq!(names(directory.path()), ["out"]);
    }
}

#[test]
fn a_foreign_file_a_link_a_directory_and_a_pipe_are_not_recognised_and_not_opened() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("foreign"), "mine").unwrap();
    fs::write(at("ours"), "ours").unwrap();
    symlink(at("ours"), at("link")).unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    fs::create_dir(at("directory")).unwrap();
    rustix::fs::mknodat(CWD, at("pipe"), rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    for name in ["foreign", "link", "dangling", "directory", "pipe"] {
        assert_eq!(ours(&at(name)).unwrap_err().kind(), io::ErrorKind::AlreadyExists, "{name}");
    }
    assert_eq!(ours(&at("absent")).unwrap(), None);
    assert!(ours(&at("ours")).unwrap().is_some());
}

#[test]
fn a_file_that_stands_for_another_one_has_its_owner_and_mode_and_is_private_before() {
    let directory = tempfile::tempdir().unwrap();
    let (source, target) = (directory.path().join("source"), directory.path().join("target"));
    fs::write(&source, "private").unwrap();
    fs::set_permissions(&source, fs::Permissions::from_mode(0o640)).unwrap();
    let is_root = std::os::unix::fs::chown(&source, Some(1234), Some(4321)).is_ok();
    if !is_root {
        eprintln!("SKIPPED: owners of other users take root");
    }
    let access = Access::of(&source).unwrap();
    for new in news(&target, "private", &access) {
        assert_eq!(new.file.metadata().unwrap().mode() & 0o777, 0o600);
        let published = new.publish().unwrap();
        let (is, wanted) = (fs::metadata(&target).unwrap(), fs::metadata(&source).unwrap());
        assert_eq!((is.uid(), is.gid(), is.mode()), (wanted.uid(), wanted.gid(), wanted.mode()));
        published.remove().unwrap();
    }
    let by_name = OutputPath::create(&target, access).unwrap();
    assert_eq!(fs::metadata(by_name.directory()).unwrap().mode() & 0o777, 0o700);
    fs::write(by_name.path(), "private").unwrap();
    by_name.publish().unwrap();
    let (is, wanted) = (fs::metadata(&target).unwrap(), fs::metadata(&source).unwrap());
    assert_eq!((is.uid(), is.gid(), is.mode()), (wanted.uid(), wanted.gid(), wanted.mode()));
    assert_eq!(names(directory.path()), ["source", "target"]);
}

/// `user:1234:rw-` beside an owner with `rw-`, a group with nothing and a mask of `rw-`.
fn access_list_of_one_more_user() -> Vec<u8> {
    let entry =
        |tag: u16, rights: u16, id: u32| [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat();
    let nobody = u32::MAX;
    let entries = [(1, 6, nobody), (2, 6, 1234), (4, 0, nobody), (16, 6, nobody), (32, 0, nobody)];
    let entries: Vec<u8> = entries.iter().flat_map(|&(tag, rights, id)| entry(tag, rights, id)).collect();
    [&2_u32.to_le_bytes()[..], &entries].concat()
}

#[test]
fn an_access_list_is_taken_over_and_one_of_the_directory_is_not() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let (source, target) = (directory.path().join("source"), directory.path().join("target"));
    let list = access_list_of_one_more_user();
    let set = |path: &Path, name: &str| rustix::fs::setxattr(path, name, &list, rustix::fs::XattrFlags::empty());
    let mut buffer = [0; 256];
    let mut has = |path: &Path| rustix::fs::getxattr(path, "system.posix_acl_access", &mut buffer).is_ok();
    fs::write(&source, "private").unwrap();
    if let Err(error) = set(&source, "system.posix_acl_access") {
        return eprintln!("SKIPPED: no access lists here: {error}");
    }
    for new in news(&target, "private", &Access::of(&source).unwrap()) {
        let published = new.publish().unwrap();
        assert!(has(&target));
        published.remove().unwrap();
    }
    rustix::fs::removexattr(&source, "system.posix_acl_access").unwrap();
    fs::set_permissions(&source, fs::Permissions::from_mode(0o640)).unwrap();
    set(directory.path(), "system.posix_acl_default").unwrap();
    for new in news(&target, "private", &Access::of(&source).unwrap()) {
        let published = new.publish().unwrap();
        assert!(!has(&target), "the list of the directory would admit one more user");
        assert_eq!(fs::metadata(&target).unwrap().mode() & 0o777, 0o640);
        published.remove().unwrap();
    }
}

#[test]
fn of_several_files_all_get_their_names_or_none() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let write =
        |name: &str, content: &str, old: Option<Replaceable>| (new_file(true, &at(name), content, &Access::Usual), old);
    fs::write(at("b"), "ours 1").unwrap();
    fs::write(at("c"), "mine").unwrap();
    let old = ours(&at("b")).unwrap();
    let (path, error) =
        publish_all(vec![write("a", "new", None), write("b", "ours 2", old), write("c", "new", None)]).unwrap_err();
    assert_eq!((path, error.kind()), (at("c"), io::ErrorKind::AlreadyExists));
    assert_eq!(names(directory.path()), ["b", "c"]);
    assert_eq!(fs::read_to_string(at("b")).unwrap(), "ours 1");
    publish_all(vec![write("a", "new", None), write("b", "ours 2", ours(&at("b")).unwrap())]).unwrap();
    assert_eq!(names(directory.path()), ["a", "b", "c"]);
    assert_eq!(fs::read_to_string(at("b")).unwrap(), "ours 2");
}

#[test]
fn what_was_published_is_removed_only_while_it_is_that_file() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("out");
    let published = write_new(&target, b"ours").unwrap();
    fs::write(directory.path().join("other"), "mine").unwrap();
    fs::rename(directory.path().join("other"), &target).unwrap();
    published.remove().unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
    fs::remove_file(&target).unwrap();
    published.remove().unwrap();
}

#[test]
fn directories_are_made_and_taken_back_but_not_what_somebody_put_into_them() {
    let directory = tempfile::tempdir().unwrap();
    let deep = directory.path().join("a/b");
    let made = create_directories(&deep).unwrap();
    fs::write(directory.path().join("a/file"), "mine").unwrap();
    remove_directories(&made);
    assert_eq!(names(&directory.path().join("a")), ["file"]);
    assert!(create_directories(&directory.path().join("a/file/below")).is_err());
    assert_eq!(create_directories(&directory.path().join("a")).unwrap(), [] as [PathBuf; 0]);
}

fn folder(path: &Path, files: &[(&str, &str)]) -> io::Result<()> {
    let mut folder = OutputFolder::open(path, "raw samples")?;
    for (name, content) in files {
        folder.write(name, content.as_bytes())?;
    }
    folder.finish()
}

#[test]
fn a_folder_keeps_foreign_files_out_and_loses_what_a_later_run_does_not_write() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("raw");
    folder(&path, &[("reads.csv", "1"), ("writes.csv", "1")]).unwrap();
    folder(&path, &[("reads.csv", "2")]).unwrap();
    assert_eq!(names(&path), [".flashwise.json", "reads.csv"]);
    assert_eq!(fs::read_to_string(path.join("reads.csv")).unwrap(), "2");
    fs::write(path.join("writes.csv"), "mine").unwrap();
    let error = folder(&path, &[("writes.csv", "3")]).unwrap_err();
    assert!(error.to_string().starts_with("writes.csv: exists and is not one of the raw samples"), "{error}");
    assert_eq!(fs::read_to_string(path.join("writes.csv")).unwrap(), "mine");
    fs::remove_file(path.join("writes.csv")).unwrap();
    fs::write(path.join("reads.csv"), "2, and a note of mine").unwrap();
    assert!(folder(&path, &[("reads.csv", "3")]).is_err());
    assert_eq!(fs::read_to_string(path.join("reads.csv")).unwrap(), "2, and a note of mine");
}

#[test]
fn a_foreign_file_whose_name_is_no_text_keeps_a_folder_from_being_written() {
    use std::os::unix::ffi::OsStrExt;
    let directory = tempfile::tempdir().unwrap();
    let foreign = directory.path().join(std::ffi::OsStr::from_bytes(b"reads\xff.csv"));
    fs::write(&foreign, "mine").unwrap();
    let error = folder(directory.path(), &[("reads.csv", "1")]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{error}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_folder_of_somebody_else_s_or_of_another_kind_is_refused_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("reads.csv"), "mine").unwrap();
    assert!(folder(directory.path(), &[("reads.csv", "1")]).is_err());
    assert_eq!(names(directory.path()), ["reads.csv"]);
    let other = directory.path().join("other");
    OutputFolder::open(&other, "jobs").unwrap().write("a", b"1").unwrap();
    assert!(folder(&other, &[("a", "2")]).unwrap_err().to_string().contains(".flashwise.json: exists"));
    let hostile = directory.path().join("hostile");
    fs::create_dir(&hostile).unwrap();
    let list =
        r#"{"schema":"flashwise.folder","schema_version":1,"kind":"raw samples","files":[["../reads.csv","0"]]}"#;
    fs::write(hostile.join(".flashwise.json"), list).unwrap();
    folder(&hostile, &[("a", "1")]).unwrap();
    assert_eq!(fs::read_to_string(directory.path().join("reads.csv")).unwrap(), "mine");
}

#[test]
fn a_file_that_appears_while_a_folder_is_written_stays() {
    let directory = tempfile::tempdir().unwrap();
    let mut folder = OutputFolder::open(directory.path(), "raw samples").unwrap();
    folder.write("a.csv", b"1").unwrap();
    fs::write(directory.path().join("b.csv"), "mine").unwrap();
    assert_eq!(folder.write("b.csv", b"2").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read_to_string(directory.path().join("b.csv")).unwrap(), "mine");
}
