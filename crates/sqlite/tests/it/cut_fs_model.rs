//! The file system whose power can be cut, compared with a naive model of what a crash may leave of names, renames and
//! contents: every admissible state is enumerated, and what survives must be one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

use proptest::prelude::*;

use crate::cut_fs::{Change, CutFs, Image, Name, ROOT, State, is_possible};

/// Most changes of names that are not durable: all of their subsets are tried.
const MOST_OPEN: usize = 8;

#[derive(Clone, Debug)]
enum Step {
    Create(u8, u8),
    Directory,
    Remove(u8, u8),
    Rename((u8, u8), (u8, u8)),
    Write(u8, u8),
    Sync(u8, u8),
    SyncNames(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = || (0..2_u8, 0..3_u8);
    let step = prop_oneof![
        3 => place().prop_map(|(directory, name)| Step::Create(directory, name)),
        1 => Just(Step::Directory),
        1 => place().prop_map(|(directory, name)| Step::Remove(directory, name)),
        4 => (place(), place()).prop_map(|(from, to)| Step::Rename(from, to)),
        2 => place().prop_map(|(directory, name)| Step::Write(directory, name)),
        2 => place().prop_map(|(directory, name)| Step::Sync(directory, name)),
        1 => (0..2_u8).prop_map(Step::SyncNames),
    ];
    prop::collection::vec(step, 1..24)
}

/// A change of names that happened.
struct Happened {
    names: Vec<(Name, Option<u64>)>,
    is_durable: bool,
}

/// The contents that a file may have.
#[derive(Default)]
struct Content {
    is_directory: bool,
    allowed: Vec<Vec<u8>>,
}

/// All that happened, in order.
#[derive(Default)]
struct Model {
    happened: Vec<Happened>,
    contents: BTreeMap<u64, Content>,
}

fn share_a_name(one: &Happened, other: &Happened) -> bool {
    one.names.iter().any(|(name, _)| other.names.iter().any(|(same, _)| same == name))
}

impl Model {
    fn note(&mut self, names: Vec<(Name, Option<u64>)>) {
        self.happened.push(Happened { names, is_durable: false });
    }

    fn sync_names(&mut self, directory: u64) {
        for change in &mut self.happened {
            change.is_durable |= change.names.iter().any(|((parent, _), _)| *parent == directory);
        }
        // What a durable change follows on is durable.
        for later in (0..self.happened.len()).rev().filter(|&later| self.happened[later].is_durable).collect::<Vec<_>>()
        {
            self.with_earlier(later);
        }
    }

    fn with_earlier(&mut self, later: usize) {
        for earlier in (0..later).rev() {
            if !self.happened[earlier].is_durable && share_a_name(&self.happened[earlier], &self.happened[later]) {
                self.happened[earlier].is_durable = true;
                self.with_earlier(earlier);
            }
        }
    }

    fn open(&self) -> Vec<usize> {
        (0..self.happened.len()).filter(|&at| !self.happened[at].is_durable).collect()
    }

    /// What names may mean after a cut: of the open changes any that miss no earlier one of the same name.
    fn admissible(&self) -> Vec<BTreeMap<Name, u64>> {
        let open = self.open();
        let chosen = |subset: u32, at: usize| match open.iter().position(|&place| place == at) {
            Some(bit) => subset >> bit & 1 == 1,
            None => true,
        };
        let is_closed = |&subset: &u32| {
            let survivors = (0..self.happened.len()).filter(|&at| chosen(subset, at));
            survivors.clone().all(|later| {
                (0..later).all(|earlier| {
                    chosen(subset, earlier) || !share_a_name(&self.happened[earlier], &self.happened[later])
                })
            })
        };
        let names_of = |subset: u32| {
            let mut names = BTreeMap::new();
            for change in (0..self.happened.len()).filter(|&at| chosen(subset, at)).map(|at| &self.happened[at]) {
                for (name, node) in &change.names {
                    match node {
                        Some(node) => names.insert(name.clone(), *node),
                        None => names.remove(name),
                    };
                }
            }
            names
        };
        (0..1 << open.len()).filter(is_closed).map(names_of).collect()
    }

    /// Whether an image is what these names lead to.
    fn is_image(&self, names: &BTreeMap<Name, u64>, image: &Image) -> bool {
        let mut paths = BTreeMap::from([(ROOT.0, PathBuf::new())]);
        let (mut files, mut directories) = (BTreeMap::new(), BTreeSet::new());
        // Directories are in the first one alone.
        for _ in 0..2 {
            for ((parent, name), node) in names {
                let Some(path) = paths.get(parent).map(|parent| parent.join(name)) else { continue };
                if self.contents[node].is_directory {
                    directories.insert(path.clone());
                    paths.insert(*node, path);
                } else {
                    files.insert(path, *node);
                }
            }
        }
        let has_content = |(path, node): (&PathBuf, &u64)| self.contents[node].allowed.contains(&image.files[path]);
        directories == image.directories && files.keys().eq(image.files.keys()) && files.iter().all(has_content)
    }
}

/// Does a step in both, where it is possible.
fn step(state: &mut State, model: &mut Model, step: &Step) {
    // The second directory is whatever has the name `2` in the first.
    let directory = |state: &State, number: u8| match number {
        0 => Some(ROOT.0),
        _ => state.find(&(ROOT.0, "2".into())),
    };
    let is_directory = |model: &Model, node: u64| node == ROOT.0 || model.contents[&node].is_directory;
    let place = |state: &State, model: &Model, (number, name): (u8, u8)| {
        let directory = directory(state, number).filter(|&node| is_directory(model, node))?;
        Some((directory, OsString::from(name.to_string())))
    };
    let file = |state: &State, model: &Model, at: (u8, u8)| {
        let name = place(state, model, at)?;
        let node = state.find(&name)?;
        (!is_directory(model, node)).then_some((name, node))
    };
    let is_full = model.open().len() >= MOST_OPEN;
    match *step {
        Step::Create(..) | Step::Directory | Step::Remove(..) | Step::Rename(..) if is_full => {}
        Step::Create(number, name) => {
            let Some(name) = place(state, model, (number, name)).filter(|name| state.find(name).is_none()) else {
                return;
            };
            let node = state.create(name.clone(), false);
            model.contents.insert(node, Content { is_directory: false, allowed: vec![vec![]] });
            model.note(vec![(name, Some(node))]);
        }
        Step::Directory => {
            let name = (ROOT.0, OsString::from("2"));
            if state.find(&name).is_none() {
                let node = state.create(name.clone(), true);
                model.contents.insert(node, Content { is_directory: true, allowed: vec![] });
                model.note(vec![(name, Some(node))]);
            }
        }
        Step::Remove(number, name) => {
            if let Some((name, _)) = file(state, model, (number, name)) {
                state.remove(name.clone());
                model.note(vec![(name, None)]);
            }
        }
        Step::Rename(from, to) => {
            let (Some((from, node)), Some(to)) = (file(state, model, from), place(state, model, to)) else { return };
            if from != to && state.find(&to).is_none_or(|node| !is_directory(model, node)) {
                state.rename(from.clone(), to.clone(), node);
                model.note(vec![(from, None), (to, Some(node))]);
            }
        }
        Step::Write(number, name) => {
            let Some((_, node)) = file(state, model, (number, name)) else { return };
            let bytes = vec![node as u8; 3];
            state.change(node, Change::Write { offset: 0, bytes: bytes.clone() });
            // A sector is whole; where it is lost, the size may have been noted.
            let allowed = &mut model.contents.get_mut(&node).unwrap().allowed;
            if !allowed.contains(&bytes) {
                allowed.extend([bytes, vec![0; 3]]);
            }
        }
        Step::Sync(number, name) => {
            let Some((_, node)) = file(state, model, (number, name)) else { return };
            state.sync(node);
            let content = model.contents.get_mut(&node).unwrap();
            let written = vec![node as u8; 3];
            content.allowed = vec![if content.allowed.contains(&written) { written } else { vec![] }];
        }
        Step::SyncNames(number) => {
            let Some(node) = directory(state, number).filter(|&node| is_directory(model, node)) else { return };
            state.sync_names(node);
            model.sync_names(node);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn what_survives_a_cut_is_one_of_the_states_that_a_naive_model_admits(steps in steps(), seeds in 0..u64::MAX / 16) {
        for seed in seeds..seeds + 8 {
            let (mut state, mut model) = (State::of(&Image::default()), Model::default());
            steps.iter().for_each(|one| step(&mut state, &mut model, one));
            let image = state.survivors(seed);
            let admissible = model.admissible();
            prop_assert!(admissible.iter().any(|names| model.is_image(names, &image)), "{:?} of {:?}", image, admissible);
        }
    }
}

/// A file with three bytes that are durable, if `is_synced`, in a directory of its own; renamed into the first one.
fn renamed(is_synced: bool, synced_names: Option<bool>, seed: u64) -> Image {
    let mut image = Image::default();
    image.directories.insert("2".into());
    let mut state = State::of(&image);
    let directory = state.find(&(ROOT.0, "2".into())).unwrap();
    let from = (directory, OsString::from("new"));
    let node = state.create(from.clone(), false);
    state.sync_names(directory);
    state.change(node, Change::Write { offset: 0, bytes: vec![7; 3] });
    if is_synced {
        state.sync(node);
    }
    state.rename(from, (ROOT.0, "a.db".into()), node);
    match synced_names {
        Some(true) => state.sync_names(ROOT.0),
        Some(false) => state.sync_names(directory),
        None => {}
    }
    state.survivors(seed)
}

#[test]
fn a_renamed_file_has_one_of_its_names_until_a_directory_is_synced_and_the_new_one_afterwards() {
    let found = |image: &Image| image.files.keys().cloned().collect::<Vec<_>>();
    let [old, new] = ["2/new", "a.db"].map(|path| vec![PathBuf::from(path)]);
    let images: Vec<Image> = (0..64).map(|seed| renamed(true, None, seed)).collect();
    assert!(images.iter().all(|image| found(image) == old || found(image) == new));
    assert!(images.iter().any(|image| found(image) == old) && images.iter().any(|image| found(image) == new));
    assert!(images.iter().all(|image| image.files.values().all(|content| *content == [7; 3])));
    for directory in [true, false] {
        assert!((0..64).all(|seed| found(&renamed(true, Some(directory), seed)) == new));
    }
    let is_empty = |seed| renamed(false, Some(true), seed).files[&new[0]].is_empty();
    assert!((0..64).any(is_empty), "a name without its content, which nobody synced");
}

#[test]
fn programs_make_directories_rename_and_list_in_it() {
    if !is_possible() {
        return;
    }
    let fs = CutFs::mount(&Image::default(), u64::MAX).unwrap();
    let at = |path: &str| fs.path(path);
    std::fs::create_dir(at("made")).unwrap();
    std::fs::write(at("made/new"), "new").unwrap();
    std::fs::write(at("old"), "old").unwrap();
    std::fs::rename(at("made/new"), at("old")).unwrap();
    std::fs::write(at("made/left"), "left").unwrap();
    assert!(std::fs::remove_dir(at("made")).is_err());
    let mut names: Vec<_> = std::fs::read_dir(at("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["made", "old"]);
    assert_eq!(std::fs::read(at("old")).unwrap(), b"new");
    let named = tempfile::NamedTempFile::new_in(fs.path("made")).unwrap();
    assert!(named.persist_noclobber(at("old")).is_err());
    std::fs::remove_dir_all(at("made")).unwrap();
    std::fs::File::open(at("")).unwrap().sync_all().unwrap();
    std::fs::File::open(at("old")).unwrap().sync_all().unwrap();
    let image = fs.cut(1);
    assert_eq!(image.files, BTreeMap::from([(PathBuf::from("old"), b"new".to_vec())]));
    assert!(image.directories.is_empty());
}
