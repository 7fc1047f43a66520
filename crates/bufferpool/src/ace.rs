//! ACE: when a dirty page must be evicted, as many dirty pages are written as the drive writes at once.
//!
//! ```text
//!   victim clean ─▶ it is evicted
//!   victim dirty ─▶ Writer: the victim and the next dirty pages that would be evicted, written together, clean from then on
//!                   Evictor: the victim is evicted; with prefetching the first n_e pages that would be evicted
//!                   Reader: the page that missed and n_e − 1 prefetched ones, together
//! ```
//!
//! One adapter over every policy: all it asks of one is [`order`](crate::policy::Policy::order).
//! Source: T. I. Papon, M. Athanassoulis, *ACEing the Bufferpool Management Paradigm for Modern Storage Devices*, ICDE
//! 2023; names of the variants: *A Parametric I/O Model for Modern Storage Devices*, DaMoN 2021.

use serde::Serialize;

use crate::cost::DriveModel;
use crate::prefetch::Prefetch;

/// Which dirty pages a batch may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// COW(n): those among the next n pages that would be evicted.
    Positions,
    /// COW-X(n): the next n dirty pages, however far away.
    Dirty,
}

/// How pages are written back and evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Ace {
    /// n_w: most pages that are written together; the drive's k_w.
    pub write_back_batch: usize,
    /// How far a batch reaches.
    pub reach: Reach,
    /// n_e: pages that are evicted when the victim is dirty; `None` for one, or n_w with prefetching.
    pub evict: Option<usize>,
}

impl Ace {
    /// One write for one read: the classic pool.
    pub const CLASSIC: Self = Self { write_back_batch: 1, reach: Reach::Dirty, evict: Some(1) };

    /// COW-X(n), the published method's final form.
    pub const fn of(write_back_batch: usize) -> Self {
        Self { write_back_batch, reach: Reach::Dirty, evict: None }
    }

    /// Whether more than the victim may be written or are evicted.
    pub(crate) const fn is_batching(&self) -> bool {
        self.write_back_batch > 1 || matches!(self.evict, Some(2..))
    }

    /// What its authors call it, such as COW-X(8).
    pub fn name(&self) -> String {
        let reach = match self.reach {
            Reach::Positions => "COW",
            Reach::Dirty => "COW-X",
        };
        let evict = if self.evict.is_some_and(|evict| evict > 1) { ",E" } else { "" };
        format!("{reach}({}{evict})", self.write_back_batch)
    }
}

/// Pages of a batch where neither the user nor a drive says how many.
const BATCH: usize = 8;

/// Which ways to write back are asked for; each figure that is given asks for ACE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AceRequest {
    /// ACE instead of the classic way.
    pub ace: bool,
    /// Both ways.
    pub compare: bool,
    /// Most pages of a batch; otherwise the drive's k_w, or 8.
    pub write_back_batch: Option<u32>,
    /// COW(n) instead of COW-X(n).
    pub near: bool,
    /// Pages that are evicted when the victim is dirty.
    pub evict: Option<u32>,
}

impl AceRequest {
    /// The ways to write back, classic first.
    pub fn write_backs(&self, model: Option<DriveModel>, prefetch: Prefetch) -> Vec<Ace> {
        let asked = self.write_back_batch.map(|batch| batch as usize);
        let learned = model.and_then(|model| usize::try_from(model.write_concurrency).ok());
        let ace = Ace {
            reach: if self.near { Reach::Positions } else { Reach::Dirty },
            evict: self.evict.map(|evict| evict as usize),
            ..Ace::of(asked.or(learned).unwrap_or(BATCH))
        };
        let is_ace = self.ace || self.near || asked.or(ace.evict).is_some() || prefetch != Prefetch::None;
        match (self.compare, is_ace) {
            (true, _) => vec![Ace::CLASSIC, ace],
            (false, true) => vec![ace],
            (false, false) => vec![Ace::CLASSIC],
        }
    }
}
