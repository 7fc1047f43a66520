//! Reads a table and compares: buckets with keys, counters with records, extents with pages.

use super::{Table, extent_buckets, head_of, parts, side_key, sort_key, span_of};
use crate::error::Result;
use crate::pages::table::{BucketRef, Counts, record_bytes};
use crate::pages::{Item, PageId, Pages};
use crate::tree::{Checker, Target};

/// What one bucket has.
#[derive(Default)]
struct Content {
    counts: Counts,
    chains: Vec<(Vec<u8>, crate::pages::Reference)>,
    exceptions: u64,
}

impl Checker<'_> {
    /// Checks a table; `is_whole`: it is not being dropped.
    pub(crate) fn table(&mut self, table: &Table, is_whole: bool) {
        let keys = self.findings.keys;
        self.tree(table.side);
        self.findings.keys = keys;
        self.see(table.id.root);
        for (extent, first) in table.extents().iter().copied().enumerate() {
            (first..first + extent_buckets(extent)).for_each(|page| self.see(page));
        }
        let (mut counts, mut exceptions, mut is_readable) = (Counts::default(), 0, true);
        for bucket in 0..table.buckets() {
            match bucket_content(self.pages, table, bucket) {
                Ok(content) => {
                    counts.buckets += 1;
                    counts.keys += content.counts.keys;
                    counts.bytes += content.counts.bytes;
                    exceptions += content.exceptions;
                    for (key, chain) in content.chains {
                        self.chain(table.id.number, &key, chain);
                    }
                }
                Err(error) => {
                    is_readable = false;
                    self.findings.add(error.to_string());
                }
            }
        }
        self.findings.keys += counts.keys;
        if !is_whole || !is_readable {
            return;
        }
        match head_of(self.pages, table.id) {
            Ok(head) if head.counts == counts => {}
            Ok(head) => {
                let what = format!("it has counted {:?}, and its buckets have {counts:?}", head.counts);
                self.note(table.id.root, &what);
            }
            Err(error) => self.findings.add(error.to_string()),
        }
        match count_aside(self.pages, table) {
            Ok(aside) if aside == exceptions => {}
            Ok(aside) => {
                let what = format!("it has {aside} records, and the buckets count {exceptions}");
                self.note(table.side.root, &what);
            }
            Err(error) => self.findings.add(error.to_string()),
        }
    }
}

fn page_of(pages: &Pages, table: &Table, bucket: u64) -> Result<PageId> {
    table.page_of(bucket).ok_or_else(|| pages.cache.damaged(table.id.root, "it has no page for a bucket"))
}

fn bucket_content(pages: &Pages, table: &Table, bucket: u64) -> Result<Content> {
    let (page, seed) = (page_of(pages, table, bucket)?, pages.cache.layout.seed);
    let (low, high) = span_of(bucket, table.buckets());
    let frame = pages.cache.get(page)?;
    let read = frame.read(|page| {
        let found = BucketRef(&page.bytes);
        if !found.is(table.id.number, bucket) {
            return Err("it is not the bucket that it should be");
        }
        found.check()?;
        let mut content = Content { exceptions: found.exceptions(), ..Content::default() };
        for record in found.records() {
            let sort_key = sort_key(seed, record.key);
            if sort_key < low || high.as_ref().is_some_and(|high| sort_key >= *high) {
                return Err("a key belongs to another bucket");
            }
            content.add(record.key, &Item::of(record.value), record.value.bytes().len());
        }
        Ok(content)
    })?;
    let mut content = read.map_err(|what| pages.cache.damaged(page, what))?;
    if content.exceptions == 0 {
        return Ok(content);
    }
    let aside = table.exceptions(pages, &low, high.as_deref())?;
    if aside.len() as u64 != content.exceptions {
        return Err(pages.cache.damaged(page, "the side tree does not have the exceptions that it counts"));
    }
    for (sort_key, item) in &aside {
        let length = match item {
            Item::Value(value) => value.len(),
            Item::Reference(reference) => reference.encode().len(),
        };
        content.add(parts(sort_key).1, item, length);
    }
    Ok(content)
}

impl Content {
    fn add(&mut self, key: &[u8], item: &Item, value_bytes: usize) {
        self.counts.keys += 1;
        self.counts.bytes += record_bytes(key.len(), value_bytes) as u64;
        if let Item::Reference(chain) = item {
            self.chains.push((key.to_vec(), *chain));
        }
    }
}

/// Records of the side tree that are exceptions, whatever their bucket.
fn count_aside(pages: &Pages, table: &Table) -> Result<u64> {
    let (mut low, mut count) = (side_key(b""), 0);
    loop {
        let Some(leaf) = pages.copy_leaf(table.side, Target::At(&low))? else { return Ok(count) };
        count += leaf.records.iter().filter(|record| record.0 >= low).count() as u64;
        match leaf.high {
            Some(high) => low = high,
            None => return Ok(count),
        }
    }
}
