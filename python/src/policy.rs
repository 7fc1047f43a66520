//! A replacement policy whose decisions are made in Python.
//!
//! ```text
//!   hit ─▶ touch(page, is_write)     page loaded ─▶ admit(page, is_write)     frame needed ─▶ victim() ─▶ page
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use flashwise_bufferpool::policy::{Parameters, Policy, Taker};
use flashwise_bufferpool::{Directory, Entry, Found, Page, PolicyError, PolicySpec, Shape};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::failure::Failure;

/// The first exception of a policy; it ends the simulation.
#[derive(Clone, Default)]
pub(crate) struct Fault(Arc<Mutex<Option<PyErr>>>);

impl Fault {
    fn set(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    fn is_set(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// The exception, if there was one.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// One pool's policy.
struct PythonPolicy {
    object: Py<PyAny>,
    name: Arc<str>,
    fault: Fault,
    /// The page that was chosen and still has its frame.
    chosen: Option<Entry>,
}

/// A policy object of the user's. Each pool gets a deep copy of it, so that pools do not share what it remembers.
pub(crate) fn policy_of(object: &Bound<'_, PyAny>, fault: &Fault) -> PyResult<PolicySpec> {
    let name: Arc<str> = match object.getattr("name") {
        Ok(name) => name.extract::<String>()?.into(),
        Err(_) => object.get_type().name()?.to_string().into(),
    };
    let (object, fault) = (object.clone().unbind(), fault.clone());
    let made = Arc::clone(&name);
    Ok(PolicySpec::made_by(name.to_string(), move |_: &Shape| {
        let copied = Python::attach(|py| {
            let copy = py.import("copy")?.getattr("deepcopy")?;
            copy.call1((&object,)).map(Bound::unbind)
        });
        match copied {
            Ok(object) => Ok(PythonPolicy { object, name: Arc::clone(&made), fault: fault.clone(), chosen: None }),
            Err(error) => {
                fault.set(error);
                Err(PolicyError::Syntax { text: made.to_string() })
            }
        }
    }))
}

impl PythonPolicy {
    fn call(&self, method: &str, page: Page, is_write: bool) {
        if self.fault.is_set() {
            return;
        }
        let called = Python::attach(|py| self.object.bind(py).call_method1(method, (page.0, is_write)).map(drop));
        if let Err(error) = called {
            self.fault.set(error);
        }
    }

    fn choose(&self, pages: &Directory) -> PyResult<Entry> {
        Python::attach(|py| {
            let answer = self.object.bind(py).call_method1("victim", PyTuple::empty(py))?;
            let page: Option<u32> = answer.extract().ok();
            match page.map(|page| pages.find(Page(page))) {
                Some(Found::Resident(entry)) if pages.is_free(entry) => Ok(entry),
                _ => {
                    let words = format!("{}.victim() returned {answer}, which is no page in a frame", self.name);
                    Err(Failure::usage(words).raise(py))
                }
            }
        })
    }
}

impl Policy for PythonPolicy {
    /// Never called: `policy_of` makes them.
    fn new(_: &Shape, _: &mut Parameters) -> Result<Self, PolicyError> {
        Err(PolicyError::Syntax { text: "a policy in Python".to_owned() })
    }

    fn hit(&mut self, entry: Entry, is_write: bool, pages: &Directory) {
        self.call("touch", pages.page(entry), is_write);
    }

    fn victim(&mut self, pages: &Directory) -> Option<Entry> {
        if self.fault.is_set() {
            return None;
        }
        if self.chosen.is_none() {
            match self.choose(pages) {
                Ok(entry) => self.chosen = Some(entry),
                Err(error) => self.fault.set(error),
            }
        }
        self.chosen
    }

    fn evict(&mut self, entry: Entry, pages: &mut Directory) {
        self.chosen = None;
        pages.forget(entry);
    }

    fn load(&mut self, entry: Entry, is_write: bool, pages: &mut Directory) {
        self.call("admit", pages.page(entry), is_write);
    }

    /// Never called: nothing is prefetched with the classic way to write back.
    fn prefetch(&mut self, _: Entry, _: &mut Directory) {}

    fn order(&mut self, _: &Directory, take: Taker<'_>) {
        if let Some(entry) = self.chosen {
            let _ = take(entry);
        }
    }
}
