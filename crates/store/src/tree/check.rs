//! Reads everything and compares: fences with parents, chains with references, the maps with what is referred to.

use rustc_hash::FxHashSet;

use super::TreeId;
use crate::error::{Result, StoreError};
use crate::pages::page::{Kind, PageRef, map_bits};
use crate::pages::{Frame, Item, PageId, Pages, Reference};

/// Damage that is listed; more is counted.
const LISTED_MAX: usize = 100;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    pub keys: u64,
    pub pages: u64,
    /// Places and what is wrong there.
    pub damage: Vec<String>,
    pub unlisted: u64,
}

impl Findings {
    pub(crate) fn add(&mut self, what: String) {
        if self.damage.len() < LISTED_MAX {
            self.damage.push(what);
        } else {
            self.unlisted += 1;
        }
    }
}

/// What a page must be by the page that refers to it.
struct Expected {
    page: PageId,
    level: Option<u8>,
    low: Vec<u8>,
    high: Option<Vec<u8>>,
}

/// What one page refers to.
struct Content {
    level: u8,
    children: Vec<Expected>,
    chains: Vec<(Vec<u8>, Reference)>,
    keys: u64,
}

/// A check under way. The writer's lock is held.
pub(crate) struct Checker<'a> {
    pub pages: &'a Pages,
    seen: FxHashSet<PageId>,
    pub findings: Findings,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(pages: &'a Pages) -> Self {
        Self { pages, seen: FxHashSet::default(), findings: Findings::default() }
    }

    /// Checks a tree.
    pub(crate) fn tree(&mut self, tree: TreeId) {
        let mut stack = vec![Expected { page: tree.root, level: None, low: Vec::new(), high: None }];
        while let Some(expected) = stack.pop() {
            if !self.seen.insert(expected.page) {
                self.note(expected.page, "two pages refer to it");
                continue;
            }
            match self.content(tree, &expected) {
                Ok(content) => {
                    self.findings.keys += content.keys;
                    for (key, chain) in content.chains {
                        self.chain(tree.number, &key, chain);
                    }
                    let level = content.level.wrapping_sub(1);
                    stack.extend(content.children.into_iter().map(|child| Expected { level: Some(level), ..child }));
                }
                Err(error) => self.findings.add(error.to_string()),
            }
        }
    }

    /// A page that something else refers to.
    pub(crate) fn see(&mut self, page: PageId) {
        if !self.seen.insert(page) {
            self.note(page, "two things refer to it");
        }
    }

    pub(crate) fn note(&mut self, page: PageId, what: &str) {
        let error = self.pages.cache.damaged(page, what);
        self.findings.add(error.to_string());
    }

    fn content(&self, tree: TreeId, expected: &Expected) -> Result<Content> {
        let frame = self.pages.cache.get(expected.page)?;
        let read = frame.read(|page| content_of(page.view(), tree, expected))?;
        read.map_err(|what| self.pages.cache.damaged(expected.page, what))
    }

    pub(crate) fn chain(&mut self, owner: u32, key: &[u8], chain: Reference) {
        let mut ids = Vec::new();
        let walked = self.pages.walk_chain(owner, chain, |frame: &std::sync::Arc<Frame>, _| ids.push(frame.id));
        for id in ids {
            if !self.seen.insert(id) {
                self.note(id, "two values are in it");
            }
        }
        match walked {
            Ok(true) => {}
            Ok(false) => {
                let what = format!("it does not have the value of key {}", key.escape_ascii());
                self.note(chain.first, &what);
            }
            Err(error) => self.findings.add(error.to_string()),
        }
    }

    /// Compares the maps with the pages that were seen.
    pub(crate) fn maps(&mut self, maps: u64) {
        let bits = map_bits(self.pages.cache.layout.page_bytes);
        self.seen.extend((0..maps).map(|map| map * bits));
        let mut marked = 0;
        for map in 0..maps {
            let read = self.pages.cache.get(map * bits).and_then(|frame| {
                frame.read(|page| {
                    let page = page.view();
                    (page.kind() == Kind::Map)
                        .then(|| (0..bits).filter(|&bit| page.bit(bit as usize)).collect::<Vec<u64>>())
                })
            });
            match read {
                Ok(Some(set)) => {
                    for id in set.into_iter().map(|bit| map * bits + bit) {
                        marked += 1;
                        if !self.seen.contains(&id) {
                            self.note(id, "it is in use by the map, and nothing refers to it");
                        }
                    }
                }
                Ok(None) => self.note(map * bits, "it is not the map that it should be"),
                Err(error) => self.findings.add(error.to_string()),
            }
        }
        self.findings.pages = self.seen.len() as u64;
        if marked < self.findings.pages {
            let what = format!("{} pages are in use, and the maps have {marked}", self.findings.pages);
            self.findings.add(StoreError::corrupt("the maps of pages in use", what).to_string());
        }
    }
}

fn content_of(page: PageRef<'_>, tree: TreeId, expected: &Expected) -> std::result::Result<Content, &'static str> {
    page.check()?;
    if page.tree() != tree.number || !matches!(page.kind(), Kind::Leaf | Kind::Inner) {
        return Err("it belongs to something else");
    }
    if expected.level.is_some_and(|level| level != page.level()) {
        return Err("its level does not follow that of its parent");
    }
    if page.low() != expected.low || page.high() != expected.high.as_deref() {
        return Err("its fences differ from its parent's keys");
    }
    let mut content = Content { level: page.level(), children: Vec::new(), chains: Vec::new(), keys: 0 };
    for index in 0..page.count() {
        let key = page.key(index);
        if !page.serves(tree.number, &key) {
            return Err("a key is beyond its fences");
        }
        if page.kind() == Kind::Leaf {
            content.keys += 1;
            if let Item::Reference(chain) = Item::of(page.value(index)) {
                content.chains.push((key, chain));
            }
            continue;
        }
        if index == 0 && key != page.low() {
            return Err("its first child does not start with it");
        }
        let high = match index + 1 < page.count() {
            true => Some(page.key(index + 1)),
            false => page.high().map(<[u8]>::to_vec),
        };
        content.children.push(Expected { page: page.child(index), level: None, low: key, high });
    }
    Ok(content)
}
