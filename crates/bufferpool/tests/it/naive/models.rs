//! The models; index 0 of a list is the end from which pages are evicted. At the end, which policy is compared with
//! which.

use std::collections::BTreeMap;

use super::{Model, Page, State};

fn take(list: &mut Vec<Page>, page: Page) -> bool {
    let found = list.iter().position(|&other| other == page);
    found.map(|at| list.remove(at)).is_some()
}

fn first_free(list: &[Page], state: &State) -> Option<Page> {
    list.iter().copied().find(|&page| state.is_free(page))
}

/// As many pages of the first list as it has too many, the second, the rest of the first.
fn what_is_over_first(first: &[Page], second: &[Page], over: usize, state: &State) -> Vec<Page> {
    let free: Vec<Page> = first.iter().copied().filter(|&page| state.is_free(page)).collect();
    let (over, rest) = free.split_at(over.min(free.len()));
    [over, second, rest].concat()
}

#[derive(Clone, Default)]
pub struct Lru {
    list: Vec<Page>,
}

impl Model for Lru {
    fn hit(&mut self, page: Page, _: bool, _: &State) {
        take(&mut self.list, page);
        self.list.push(page);
    }
    fn victim(&mut self, state: &State) -> Option<Page> {
        first_free(&self.list, state)
    }
    fn evict(&mut self, page: Page, _: &State) {
        take(&mut self.list, page);
    }
    fn load(&mut self, page: Page, _: bool, _: &State) {
        self.list.push(page);
    }
}

#[derive(Clone, Default)]
pub struct Fifo {
    list: Vec<Page>,
}

impl Model for Fifo {
    fn hit(&mut self, _: Page, _: bool, _: &State) {}
    fn victim(&mut self, state: &State) -> Option<Page> {
        first_free(&self.list, state)
    }
    fn evict(&mut self, page: Page, _: &State) {
        take(&mut self.list, page);
    }
    fn load(&mut self, page: Page, _: bool, _: &State) {
        self.list.push(page);
    }
}

/// A queue in which a referenced page goes to the end once more.
#[derive(Clone, Default)]
pub struct SecondChance {
    list: Vec<Page>,
    bits: BTreeMap<Page, u32>,
    at_load: u32,
    most: u32,
}

impl SecondChance {
    pub fn new(at_load: u32, most: u32) -> Self {
        Self { at_load, most, ..Self::default() }
    }
}

impl Model for SecondChance {
    fn hit(&mut self, page: Page, _: bool, _: &State) {
        let bits = self.bits.entry(page).or_default();
        *bits = (*bits + 1).min(self.most);
    }
    fn victim(&mut self, state: &State) -> Option<Page> {
        first_free(&self.list, state)?;
        loop {
            let page = self.list[0];
            if state.is_free(page) {
                match self.bits[&page] {
                    0 => return Some(page),
                    bits => self.bits.insert(page, bits - 1),
                };
            }
            self.list.rotate_left(1);
        }
    }
    fn evict(&mut self, page: Page, _: &State) {
        take(&mut self.list, page);
    }
    fn load(&mut self, page: Page, _: bool, _: &State) {
        self.list.push(page);
        self.bits.insert(page, self.at_load);
    }
}

#[derive(Clone, Default)]
pub struct Lfu {
    /// In the order in which they came to their count.
    list: Vec<Page>,
    counts: BTreeMap<Page, u64>,
    by_count: bool,
}

impl Lfu {
    pub fn new(by_count: bool) -> Self {
        Self { by_count, ..Self::default() }
    }
}

impl Model for Lfu {
    fn hit(&mut self, page: Page, _: bool, _: &State) {
        *self.counts.entry(page).or_default() += 1;
        take(&mut self.list, page);
        self.list.push(page);
    }
    fn victim(&mut self, state: &State) -> Option<Page> {
        let free = self.list.iter().copied().filter(|&page| state.is_free(page));
        free.min_by_key(|page| self.counts[page])
    }
    fn evict(&mut self, page: Page, _: &State) {
        take(&mut self.list, page);
    }
    fn load(&mut self, page: Page, _: bool, _: &State) {
        self.list.push(page);
        self.counts.insert(page, 1);
    }
    fn order(&mut self, state: &State) -> Option<Vec<Page>> {
        let mut order: Vec<_> = self.list.iter().copied().filter(|&page| state.is_free(page)).collect();
        order.sort_by_key(|page| self.counts[page]);
        if !self.by_count {
            // The victim has left when the next page is evicted.
            let lowest = order.get(1).map(|page| self.counts[page]);
            order.retain(|page| Some(self.counts[page]) == lowest);
        }
        Some(order)
    }
}

#[derive(Clone, Default)]
pub struct TwoQ {
    a1in: Vec<Page>,
    a1out: Vec<Page>,
    am: Vec<Page>,
    k_in: usize,
    k_out: usize,
    late: bool,
    lists: bool,
    was_ghost: bool,
}

impl TwoQ {
    pub fn new(frames: usize, late: bool, lists: bool) -> Self {
        Self { k_in: frames / 4, k_out: frames / 2, late, lists, ..Self::default() }
    }
}

impl Model for TwoQ {
    fn hit(&mut self, page: Page, _: bool, _: &State) {
        if take(&mut self.am, page) {
            self.am.push(page);
        }
    }
    fn miss(&mut self, page: Page, _: &State) {
        self.was_ghost = !self.late && take(&mut self.a1out, page);
    }
    fn victim(&mut self, state: &State) -> Option<Page> {
        let (a1in, am) = (first_free(&self.a1in, state), first_free(&self.am, state));
        if self.a1in.len() > self.k_in { a1in.or(am) } else { am.or(a1in) }
    }
    fn evict(&mut self, page: Page, _: &State) {
        if take(&mut self.a1in, page) {
            self.a1out.push(page);
            if self.a1out.len() > self.k_out {
                self.a1out.remove(0);
            }
        }
        take(&mut self.am, page);
    }
    fn load(&mut self, page: Page, _: bool, _: &State) {
        let is_found = take(&mut self.a1out, page) || self.was_ghost;
        if is_found { self.am.push(page) } else { self.a1in.push(page) }
    }
    fn order(&mut self, state: &State) -> Option<Vec<Page>> {
        let over = self.a1in.len().saturating_sub(self.k_in);
        self.lists.then(|| what_is_over_first(&self.a1in, &self.am, over, state))
    }
    fn rest(&self) -> Vec<Page> {
        [&self.a1in[..], &self.am].concat()
    }
}

#[derive(Clone, Copy, Default, PartialEq)]
pub enum ArcOrder {
    #[default]
    NextList,
    Miss,
    Lists,
}

#[derive(Clone, Default)]
pub struct Arc {
    t1: Vec<Page>,
    t2: Vec<Page>,
    b1: Vec<Page>,
    b2: Vec<Page>,
    target: f64,
    /// Where the page that missed was a ghost: 1, 2, or nowhere.
    ghost: u32,
    order: ArcOrder,
    drop_t1: bool,
}

impl Arc {
    pub fn new(order: ArcOrder) -> Self {
        Self { order, ..Self::default() }
    }
}

impl Model for Arc {
    fn hit(&mut self, page: Page, _: bool, _: &State) {
        take(&mut self.t1, page);
        take(&mut self.t2, page);
        self.t2.push(page);
    }
    fn miss(&mut self, page: Page, state: &State) {
        let (b1, b2) = (self.b1.len() as f64, self.b2.len() as f64);
        self.drop_t1 = false;
        let c = state.frames;
        if self.b1.contains(&page) {
            self.target = (self.target + (b2 / b1).max(1.0)).min(c as f64);
            self.ghost = 1;
            take(&mut self.b1, page);
        } else if self.b2.contains(&page) {
            self.target = (self.target - (b1 / b2).max(1.0)).max(0.0);
            self.ghost = 2;
            take(&mut self.b2, page);
        } else {
            self.ghost = 0;
            let total = self.t1.len() + self.t2.len() + self.b1.len() + self.b2.len();
            if self.t1.len() + self.b1.len() == c {
                if self.t1.len() < c {
                    self.b1.remove(0);
                } else {
                    self.drop_t1 = true;
                }
            } else if total == 2 * c {
                self.b2.remove(0);
            }
        }
    }
    fn victim(&mut self, state: &State) -> Option<Page> {
        let (t1, t2) = (first_free(&self.t1, state), first_free(&self.t2, state));
        let size = self.t1.len() as f64;
        let from_t1 = self.drop_t1 || size > self.target || (self.ghost == 2 && size == self.target);
        if from_t1 && !self.t1.is_empty() { t1.or(t2) } else { t2.or(t1) }
    }
    fn evict(&mut self, page: Page, _: &State) {
        if take(&mut self.t1, page) {
            if !self.drop_t1 {
                self.b1.push(page);
            }
        } else if take(&mut self.t2, page) {
            self.b2.push(page);
        }
    }
    fn load(&mut self, page: Page, _: bool, _: &State) {
        if self.ghost == 0 { self.t1.push(page) } else { self.t2.push(page) }
    }
    fn order(&mut self, state: &State) -> Option<Vec<Page>> {
        match self.order {
            ArcOrder::Miss => None,
            ArcOrder::NextList => {
                let mut left = self.clone();
                let victim = left.victim(state)?;
                take(&mut left.t1, victim);
                take(&mut left.t2, victim);
                let t1_first = left.t1.len() as f64 >= left.target;
                Some(if t1_first { [left.t1, left.t2].concat() } else { [left.t2, left.t1].concat() })
            }
            ArcOrder::Lists => {
                let over = (self.t1.len() as f64 - self.target).max(0.0).floor() as usize;
                Some(what_is_over_first(&self.t1, &self.t2, over, state))
            }
        }
    }
    fn rest(&self) -> Vec<Page> {
        [&self.t1[..], &self.t2].concat()
    }
}

#[derive(Clone, Copy, PartialEq)]
pub enum CflruKind {
    Plain,
    Count,
    Erase,
}

#[derive(Clone)]
pub struct Cflru {
    list: Vec<Page>,
    counts: BTreeMap<Page, u64>,
    window: usize,
    kind: CflruKind,
    by_rank: bool,
}

impl Cflru {
    pub fn new(window: usize, kind: CflruKind, by_rank: bool) -> Self {
        Self { list: Vec::new(), counts: BTreeMap::new(), window, kind, by_rank }
    }
}

impl Model for Cflru {
    fn hit(&mut self, page: Page, _: bool, _: &State) {
        take(&mut self.list, page);
        self.list.push(page);
        *self.counts.entry(page).or_default() += 1;
    }
    fn victim(&mut self, state: &State) -> Option<Page> {
        let window = &self.list[..self.window.min(self.list.len())];
        let free = || window.iter().copied().filter(|&page| state.is_free(page));
        let clean = free().find(|&page| !state.is_dirty(page));
        let dirty = || match self.kind {
            CflruKind::Plain => free().next(),
            CflruKind::Count => free().min_by_key(|page| self.counts[page]),
            CflruKind::Erase => free().min_by_key(|&page| state.wear(page)),
        };
        clean.or_else(dirty).or_else(|| first_free(&self.list, state))
    }
    fn evict(&mut self, page: Page, _: &State) {
        take(&mut self.list, page);
    }
    fn load(&mut self, page: Page, _: bool, _: &State) {
        self.list.push(page);
        self.counts.insert(page, 1);
    }
    fn order(&mut self, _: &State) -> Option<Vec<Page>> {
        (!self.by_rank).then(|| self.list.clone())
    }
}

#[derive(Clone)]
pub struct DlCflru {
    clean: Vec<Page>,
    dirty: Vec<Page>,
    window: usize,
    by_rank: bool,
}

impl DlCflru {
    pub fn new(window: usize, by_rank: bool) -> Self {
        Self { clean: Vec::new(), dirty: Vec::new(), window, by_rank }
    }
}

impl Model for DlCflru {
    fn hit(&mut self, page: Page, write: bool, _: &State) {
        let was_clean = take(&mut self.clean, page);
        take(&mut self.dirty, page);
        if write || !was_clean { self.dirty.push(page) } else { self.clean.push(page) }
    }
    fn victim(&mut self, state: &State) -> Option<Page> {
        let window = &self.dirty[..self.window.min(self.dirty.len())];
        let free = window.iter().copied().filter(|&page| state.is_free(page));
        let dirty = free.min_by_key(|&page| state.wear(page));
        first_free(&self.clean, state).or(dirty).or_else(|| first_free(&self.dirty, state))
    }
    fn evict(&mut self, page: Page, _: &State) {
        take(&mut self.clean, page);
        take(&mut self.dirty, page);
    }
    fn load(&mut self, page: Page, write: bool, _: &State) {
        if write { self.dirty.push(page) } else { self.clean.push(page) }
    }
    fn clean(&mut self, page: Page, _: &State) {
        take(&mut self.dirty, page);
        self.clean.push(page);
    }
    fn order(&mut self, _: &State) -> Option<Vec<Page>> {
        (!self.by_rank).then(|| self.dirty.clone())
    }
}

#[derive(Clone, Default)]
pub struct LruWsr {
    list: Vec<Page>,
    cold: BTreeMap<Page, bool>,
    is_simulator: bool,
}

impl LruWsr {
    pub fn new(is_simulator: bool) -> Self {
        Self { is_simulator, ..Self::default() }
    }
}

impl Model for LruWsr {
    fn hit(&mut self, page: Page, _: bool, _: &State) {
        if self.is_simulator && self.list.last() == Some(&page) {
            return;
        }
        take(&mut self.list, page);
        self.list.push(page);
        self.cold.insert(page, false);
    }
    fn victim(&mut self, state: &State) -> Option<Page> {
        first_free(&self.list, state)?;
        let mut at = 0;
        loop {
            let page = self.list[at];
            if !state.is_free(page) {
                at += 1;
                if at == self.list.len() {
                    at = 0;
                }
                continue;
            }
            if !state.is_dirty(page) || self.cold[&page] {
                return Some(page);
            }
            self.cold.insert(page, true);
            let page = self.list.remove(at);
            self.list.push(page);
            if at == self.list.len() - 1 {
                at = 0;
            }
        }
    }
    fn evict(&mut self, page: Page, _: &State) {
        take(&mut self.list, page);
    }
    fn load(&mut self, page: Page, _: bool, _: &State) {
        self.list.push(page);
        self.cold.insert(page, false);
    }
    /// The simulator's walk changes flags; it ends with the batch.
    fn order(&mut self, state: &State) -> Option<Vec<Page>> {
        if !self.is_simulator {
            return None;
        }
        let (mut order, mut at, mut dirty) = (Vec::new(), 0, 0);
        for _ in 0..2 * self.list.len() {
            let Some(&page) = self.list.get(at) else { break };
            if !state.is_free(page) {
                at += 1;
            } else if state.is_dirty(page) && !self.cold[&page] {
                self.cold.insert(page, true);
                self.list.remove(at);
                self.list.push(page);
            } else {
                order.push(page);
                at += 1;
                dirty += usize::from(state.is_dirty(page));
                if dirty == state.batch.min(state.dirty.len()) {
                    break;
                }
            }
        }
        Some(order)
    }
}

#[derive(Clone, Default)]
pub struct Ccflru {
    cold_clean: Vec<Page>,
    mixed: Vec<Page>,
    cold: BTreeMap<Page, bool>,
}

impl Model for Ccflru {
    fn hit(&mut self, page: Page, _: bool, _: &State) {
        take(&mut self.cold_clean, page);
        take(&mut self.mixed, page);
        self.mixed.push(page);
        self.cold.insert(page, false);
    }
    fn victim(&mut self, state: &State) -> Option<Page> {
        loop {
            if let Some(page) = first_free(&self.cold_clean, state) {
                return Some(page);
            }
            let page = first_free(&self.mixed, state)?;
            if self.cold[&page] {
                return Some(page);
            }
            take(&mut self.mixed, page);
            self.cold.insert(page, true);
            if state.is_dirty(page) { self.mixed.push(page) } else { self.cold_clean.push(page) }
        }
    }
    fn evict(&mut self, page: Page, _: &State) {
        take(&mut self.cold_clean, page);
        take(&mut self.mixed, page);
    }
    fn load(&mut self, page: Page, write: bool, _: &State) {
        self.cold.insert(page, true);
        if write { self.mixed.push(page) } else { self.cold_clean.push(page) }
    }
}

#[derive(Clone, Default)]
pub struct Sieve {
    list: Vec<Page>,
    visited: BTreeMap<Page, bool>,
    hand: Option<Page>,
}

impl Model for Sieve {
    fn hit(&mut self, page: Page, _: bool, _: &State) {
        self.visited.insert(page, true);
    }
    fn victim(&mut self, state: &State) -> Option<Page> {
        first_free(&self.list, state)?;
        let mut at = self.hand.and_then(|hand| self.list.iter().position(|&page| page == hand)).unwrap_or(0);
        loop {
            let page = self.list[at];
            if state.is_free(page) && !self.visited[&page] {
                self.hand = Some(page);
                return Some(page);
            }
            if state.is_free(page) {
                self.visited.insert(page, false);
            }
            at = (at + 1) % self.list.len();
        }
    }
    fn evict(&mut self, page: Page, _: &State) {
        let at = self.list.iter().position(|&other| other == page).unwrap();
        if self.hand == Some(page) {
            self.hand = self.list.get(at + 1).copied();
        }
        self.list.remove(at);
    }
    fn load(&mut self, page: Page, _: bool, _: &State) {
        self.list.push(page);
        self.visited.insert(page, false);
    }
}

#[derive(Clone, Default)]
pub struct S3Fifo {
    small: Vec<Page>,
    main: Vec<Page>,
    ghost: Vec<Page>,
    uses: BTreeMap<Page, u32>,
    small_frames: usize,
    ghosts: usize,
    was_ghost: bool,
    /// Until the first page is evicted.
    fills_main: bool,
}

impl S3Fifo {
    pub fn new(frames: usize, fills_main: bool) -> Self {
        Self { small_frames: (frames / 10).max(1), ghosts: frames * 9 / 10, fills_main, ..Self::default() }
    }
}

impl Model for S3Fifo {
    fn hit(&mut self, page: Page, _: bool, _: &State) {
        let uses = self.uses.entry(page).or_default();
        *uses = (*uses + 1).min(3);
    }
    fn miss(&mut self, page: Page, _: &State) {
        self.was_ghost = take(&mut self.ghost, page);
    }
    fn victim(&mut self, state: &State) -> Option<Page> {
        // An eviction that starts in small ends there.
        let from_main = self.small.len() < self.small_frames;
        loop {
            let (small, main) = (first_free(&self.small, state), first_free(&self.main, state));
            if (from_main && main.is_some()) || small.is_none() {
                let page = main?;
                if self.uses[&page] == 0 {
                    return Some(page);
                }
                take(&mut self.main, page);
                self.main.push(page);
                *self.uses.get_mut(&page).unwrap() -= 1;
            } else {
                let page = small?;
                if self.uses[&page] < 2 {
                    return Some(page);
                }
                take(&mut self.small, page);
                self.main.push(page);
                self.uses.insert(page, 0);
            }
        }
    }
    fn evict(&mut self, page: Page, _: &State) {
        self.fills_main = false;
        if take(&mut self.small, page) {
            self.ghost.push(page);
            if self.ghost.len() > self.ghosts {
                self.ghost.remove(0);
            }
        }
        take(&mut self.main, page);
    }
    fn load(&mut self, page: Page, _: bool, _: &State) {
        self.uses.insert(page, 0);
        let to_main = self.was_ghost || (self.fills_main && self.small.len() >= self.small_frames);
        if to_main { self.main.push(page) } else { self.small.push(page) }
    }
}

/// Not referenced and clean, not referenced and dirty, referenced and clean, referenced and dirty.
#[derive(Clone, Default)]
pub struct Nru {
    classes: [Vec<Page>; 4],
    interval: usize,
    accesses: usize,
}

impl Nru {
    pub fn new(interval: usize) -> Self {
        Self { interval, ..Self::default() }
    }

    fn tick(&mut self) {
        self.accesses += 1;
        if self.accesses.is_multiple_of(self.interval) {
            for class in [0, 1] {
                let cleared = std::mem::take(&mut self.classes[class + 2]);
                self.classes[class].extend(cleared);
            }
        }
    }

    fn class(&self, page: Page) -> usize {
        self.classes.iter().position(|class| class.contains(&page)).unwrap()
    }
}

impl Model for Nru {
    fn hit(&mut self, page: Page, write: bool, state: &State) {
        let (from, to) = (self.class(page), 2 + usize::from(write || state.is_dirty(page)));
        if from != to {
            take(&mut self.classes[from], page);
            self.classes[to].push(page);
        }
        self.tick();
    }
    fn victim(&mut self, state: &State) -> Option<Page> {
        self.classes.iter().find_map(|class| first_free(class, state))
    }
    fn evict(&mut self, page: Page, _: &State) {
        self.classes.iter_mut().for_each(|class| {
            take(class, page);
        });
    }
    fn load(&mut self, page: Page, write: bool, _: &State) {
        self.classes[2 + usize::from(write)].push(page);
        self.tick();
    }
    fn clean(&mut self, page: Page, _: &State) {
        let class = self.class(page);
        take(&mut self.classes[class], page);
        self.classes[class - class % 2].push(page);
    }
    /// As if the bits were not cleared meanwhile.
    fn order(&mut self, state: &State) -> Option<Vec<Page>> {
        Some(self.classes.iter().flatten().copied().filter(|&page| state.is_free(page)).collect())
    }
}

#[derive(Clone, Default)]
pub struct LruK {
    /// The last references of a page, the last one first.
    times: BTreeMap<Page, Vec<u64>>,
    ghosts: Vec<Page>,
    k: usize,
    now: u64,
}

impl LruK {
    pub fn new(k: usize) -> Self {
        Self { k, ..Self::default() }
    }

    fn refer(&mut self, page: Page) {
        self.now += 1;
        let times = self.times.entry(page).or_default();
        times.insert(0, self.now);
        times.truncate(self.k);
    }
}

impl Model for LruK {
    fn hit(&mut self, page: Page, _: bool, _: &State) {
        self.refer(page);
    }
    fn miss(&mut self, page: Page, _: &State) {
        take(&mut self.ghosts, page);
    }
    fn victim(&mut self, state: &State) -> Option<Page> {
        let free = state.resident.iter().copied().filter(|&page| state.is_free(page));
        free.min_by_key(|page| {
            let times = &self.times[page];
            (times.get(self.k - 1).copied().unwrap_or(0), times[0])
        })
    }
    fn evict(&mut self, page: Page, state: &State) {
        self.ghosts.push(page);
        if self.ghosts.len() > state.frames {
            let oldest = self.ghosts.remove(0);
            self.times.remove(&oldest);
        }
    }
    fn load(&mut self, page: Page, _: bool, _: &State) {
        self.refer(page);
    }
}

/// Its own sketch: a table of four rows, as a map.
#[derive(Clone, Default)]
pub struct TinyLfu {
    window: Vec<Page>,
    probation: Vec<Page>,
    protected: Vec<Page>,
    counters: BTreeMap<(u64, u64), u64>,
    additions: u64,
    frames: usize,
    window_frames: usize,
    protected_frames: usize,
}

impl TinyLfu {
    pub fn new(frames: usize) -> Self {
        let window_frames = (frames / 100).max(1);
        let protected_frames = (frames - window_frames) * 8 / 10;
        Self { frames, window_frames, protected_frames, ..Self::default() }
    }

    fn counters_of(&self, page: Page) -> [(u64, u64); 4] {
        let seeds = [0x9e37_79b9_7f4a_7c15_u64, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9, 0xd6e8_feb8_6659_fd93];
        let words = self.frames.next_power_of_two().max(8) as u64;
        std::array::from_fn(|row| {
            let hash = (page / 16 + 1).wrapping_mul(seeds[row]);
            let hash = hash ^ (hash >> 32);
            ((hash.wrapping_mul(seeds[0]) >> 20) % words, row as u64 * 4 + hash % 4)
        })
    }

    fn estimate(&self, page: Page) -> u64 {
        let count = |place| self.counters.get(&place).copied().unwrap_or(0);
        self.counters_of(page).map(count).into_iter().min().unwrap()
    }

    fn add(&mut self, page: Page) {
        for place in self.counters_of(page) {
            let count = self.counters.entry(place).or_default();
            *count = (*count + 1).min(15);
        }
        self.additions += 1;
        if self.additions >= 10 * self.frames as u64 {
            self.counters.values_mut().for_each(|count| *count /= 2);
            self.additions /= 2;
        }
    }

    fn is_full(&self) -> bool {
        self.window.len() >= self.window_frames
    }
}

impl Model for TinyLfu {
    fn hit(&mut self, page: Page, _: bool, _: &State) {
        self.add(page);
        if take(&mut self.window, page) {
            self.window.push(page);
            return;
        }
        take(&mut self.probation, page);
        take(&mut self.protected, page);
        self.protected.push(page);
        if self.protected.len() > self.protected_frames {
            let oldest = self.protected.remove(0);
            self.probation.push(oldest);
        }
    }
    fn victim(&mut self, state: &State) -> Option<Page> {
        let main = first_free(&self.probation, state).or(first_free(&self.protected, state));
        let candidate = first_free(&self.window, state);
        let (Some(main), Some(candidate)) = (main, candidate) else { return main.or(candidate) };
        let wins = self.estimate(candidate) > self.estimate(main);
        Some(if !self.is_full() || wins { main } else { candidate })
    }
    fn evict(&mut self, page: Page, _: &State) {
        for list in [&mut self.window, &mut self.probation, &mut self.protected] {
            take(list, page);
        }
    }
    fn load(&mut self, page: Page, _: bool, _: &State) {
        self.add(page);
        self.window.push(page);
        if self.window.len() > self.window_frames {
            let oldest = self.window.remove(0);
            self.probation.push(oldest);
        }
    }
    /// A new page pushes nothing out.
    fn order(&mut self, state: &State) -> Option<Vec<Page>> {
        let mut main = [&self.probation[..], &self.protected].concat();
        let mut window = self.window.clone();
        main.retain(|&page| state.is_free(page));
        window.retain(|&page| state.is_free(page));
        let mut order = Vec::new();
        if !self.is_full() && !main.is_empty() {
            order.push(main.remove(0));
        }
        for candidate in window {
            let wins = main.first().is_some_and(|&first| self.estimate(candidate) > self.estimate(first));
            order.push(if wins { main.remove(0) } else { candidate });
        }
        Some(order)
    }
}

/// Every policy as it is written on a command line, and its model in a pool of some frames: a test each.
macro_rules! with_models {
    ($then:ident) => {
        $then! {
            lru_is_its_model "lru" frames => { let _ = frames; Lru::default() };
            fifo_is_its_model "fifo" frames => { let _ = frames; Fifo::default() };
            nru_is_its_model "nru" frames => Nru::new(frames);
            second_chance_is_its_model "second-chance" frames => { let _ = frames; SecondChance::new(0, 1) };
            second_chance_of_the_textbooks_is_its_model "second-chance:bit=1" frames => { let _ = frames; SecondChance::new(1, 1) };
            clock_is_a_queue_with_second_chances "clock" frames => { let _ = frames; SecondChance::new(0, 1) };
            clock_of_the_textbooks_is_its_model "clock:bit=1" frames => { let _ = frames; SecondChance::new(1, 1) };
            clock_sweep_is_its_model "clock-sweep" frames => { let _ = frames; SecondChance::new(1, 5) };
            lfu_is_its_model "lfu" frames => { let _ = frames; Lfu::new(false) };
            lfu_by_counts_is_its_model "lfu:order=counts" frames => { let _ = frames; Lfu::new(true) };
            two_q_is_its_model "2q" frames => TwoQ::new(frames, false, false);
            two_q_of_the_paper_is_its_model "2q:ghost=late" frames => TwoQ::new(frames, true, false);
            two_q_by_its_lists_is_its_model "2q:order=lists" frames => TwoQ::new(frames, false, true);
            arc_is_its_model "arc" frames => { let _ = frames; Arc::new(ArcOrder::NextList) };
            arc_by_the_fall_is_its_model "arc:order=miss" frames => { let _ = frames; Arc::new(ArcOrder::Miss) };
            arc_by_its_lists_is_its_model "arc:order=lists" frames => { let _ = frames; Arc::new(ArcOrder::Lists) };
            cflru_is_its_model "cflru" frames => Cflru::new(frames / 2, CflruKind::Plain, true);
            cflru_c_is_its_model "cflru-c" frames => Cflru::new(frames / 2, CflruKind::Count, false);
            cflru_c_by_rank_is_its_model "cflru-c:order=rank" frames => Cflru::new(frames / 2, CflruKind::Count, true);
            cflru_e_is_its_model "cflru-e" frames => Cflru::new(frames / 2, CflruKind::Erase, false);
            cflru_e_by_rank_is_its_model "cflru-e:order=rank" frames => Cflru::new(frames / 2, CflruKind::Erase, true);
            dl_cflru_e_is_its_model "dl-cflru-e" frames => DlCflru::new(frames / 2, false);
            dl_cflru_e_by_rank_is_its_model "dl-cflru-e:order=rank" frames => DlCflru::new(frames / 2, true);
            lru_wsr_is_its_model "lru-wsr" frames => { let _ = frames; LruWsr::new(false) };
            lru_wsr_as_the_simulator_is_its_model "lru-wsr:as-simulator=1" frames => { let _ = frames; LruWsr::new(true) };
            ccf_lru_is_its_model "ccf-lru" frames => { let _ = frames; Ccflru::default() };
            s3_fifo_is_its_model "s3-fifo" frames => S3Fifo::new(frames, false);
            s3_fifo_that_fills_main_is_its_model "s3-fifo:fill=main" frames => S3Fifo::new(frames, true);
            sieve_is_its_model "sieve" frames => { let _ = frames; Sieve::default() };
            w_tinylfu_is_its_model "w-tinylfu" frames => TinyLfu::new(frames);
            lru_k_is_its_model "lru-k" frames => { let _ = frames; LruK::new(2) };
            lru_3_is_its_model "lru-k:k=3" frames => { let _ = frames; LruK::new(3) };
        }
    };
}

pub(crate) use with_models;
