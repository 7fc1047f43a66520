//! What is known of a probe before it runs: its name, its figures, and when it may run.

/// One step of learning.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    /// Its name, in profiles and messages.
    pub(crate) name: &'static str,
    /// The figures that it becomes steady.
    pub(crate) figures: &'static [&'static str],
    /// Whether it is among those that lay out a database.
    pub(crate) layout: bool,
    /// Times that it writes the whole drive, at most; 0 if it does not.
    pub(crate) overwrites: u64,
    /// Whether it finds something on a drive that may only be read.
    pub(crate) reads_alone: bool,
    /// Whether it runs only where other sizes of requests were requested.
    pub(crate) at_sizes: bool,
    /// The step whose figures it works on; without them it does not start.
    pub(crate) after: Option<&'static str>,
}

impl Step {
    /// A step that writes, and runs where every figure is requested.
    pub(crate) const fn new(name: &'static str, figures: &'static [&'static str]) -> Self {
        Self { name, figures, layout: false, overwrites: 0, reads_alone: false, at_sizes: false, after: None }
    }

    /// The same among those that lay out a database.
    pub(crate) const fn layout(self) -> Self {
        Self { layout: true, ..self }
    }

    /// The same, also on a drive that may only be read.
    pub(crate) const fn reads_alone(self) -> Self {
        Self { reads_alone: true, ..self }
    }
}
