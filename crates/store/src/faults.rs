//! Faults that are planted into the store on purpose: each must make the crash test fail.

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planted {
    /// A commit does not flush.
    FlushLeftOut,
    /// A delta counts whatever image it belongs to.
    BaseIgnored,
    /// An opening goes on in the epoch of the one before.
    EpochKept,
    /// The old slot is given back before the new one is durable.
    GivenBackEarly,
    /// A page has one delta block instead of two.
    OneDelta,
    /// A split does not log how many buckets there are.
    BucketsNotLogged,
}

#[cfg(not(test))]
pub(crate) const fn is_planted(_fault: Planted) -> bool {
    false
}

#[cfg(test)]
pub(crate) use in_tests::*;

#[cfg(test)]
mod in_tests {
    use std::cell::Cell;

    use super::Planted;

    thread_local! {
        static PLANTED: Cell<Option<Planted>> = const { Cell::new(None) };
    }

    /// Whether this thread's store has the fault.
    pub(crate) fn is_planted(fault: Planted) -> bool {
        PLANTED.get() == Some(fault)
    }

    /// Plants a fault into the stores of this thread, or none.
    pub(crate) fn plant(fault: Option<Planted>) {
        PLANTED.set(fault);
    }
}
