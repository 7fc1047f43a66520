//! The compiled half of the Python package `flashwise`: calls of the libraries, whose results are the program's
//! documents.
//!
//! ```text
//!   flashwise/*.py   arguments ─▶ JSON ─▶ input.rs ─▶ the libraries, on a thread of their own (running.rs)
//!                                                        │
//!   flashwise/results.py   classes with types ◀── JSON ──┤ document.rs: also text, page and table (arrow.rs)
//!                                                        ▼
//!   exceptions                              ◀── failure.rs: the command line's words
//! ```
//!
//! What people see is in `flashwise/`, with its types and its documentation; nothing here is called by them.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro))]

mod arrow;
mod document;
mod drive;
mod failure;
mod input;
mod policy;
mod running;
mod runs;
mod studies;
mod sweeps;
mod trace;

use pyo3::prelude::*;

/// The compiled half of `flashwise`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<arrow::Columns>()?;
    module.add_class::<document::Document>()?;
    module.add_function(wrap_pyfunction!(document::restore, module)?)?;
    module.add_function(wrap_pyfunction!(drive::presets, module)?)?;
    module.add_function(wrap_pyfunction!(drive::preset, module)?)?;
    module.add_function(wrap_pyfunction!(drive::random, module)?)?;
    module.add_function(wrap_pyfunction!(drive::describe, module)?)?;
    module.add_function(wrap_pyfunction!(drive::changed, module)?)?;
    module.add_function(wrap_pyfunction!(drive::to_toml, module)?)?;
    module.add_function(wrap_pyfunction!(drive::workload_names, module)?)?;
    module.add_function(wrap_pyfunction!(drive::policy_names, module)?)?;
    module.add_function(wrap_pyfunction!(runs::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(runs::pool, module)?)?;
    module.add_function(wrap_pyfunction!(runs::audit, module)?)?;
    module.add_function(wrap_pyfunction!(runs::learn, module)?)?;
    module.add_function(wrap_pyfunction!(runs::profile, module)?)?;
    module.add_function(wrap_pyfunction!(studies::studies, module)?)?;
    module.add_function(wrap_pyfunction!(studies::study, module)?)?;
    module.add_class::<sweeps::Sweeping>()?;
    module.add_function(wrap_pyfunction!(sweeps::run_sent, module)?)?;
    module.add_function(wrap_pyfunction!(trace::trace_format, module)?)?;
    module.add_function(wrap_pyfunction!(trace::trace_info, module)?)?;
    module.add_function(wrap_pyfunction!(trace::trace_stream, module)?)?;
    Ok(())
}
