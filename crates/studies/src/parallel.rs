//! Independent experiments on all cores; the results are in the order of the inputs, whoever was faster.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use flashwise_block::interrupt;

use crate::{Progress, StudyError};

/// Runs `work` on each input; after a failure or an interrupt none is started.
pub(crate) fn map<I: Sync, O: Send>(
    what: &str,
    inputs: &[I],
    progress: Progress<'_>,
    work: impl Fn(&I) -> Result<O, StudyError> + Sync,
) -> Result<Vec<O>, StudyError> {
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let has_failed = AtomicBool::new(false);
    let results: Vec<Mutex<Option<Result<O, StudyError>>>> = inputs.iter().map(|_| Mutex::new(None)).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(inputs.len());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !has_failed.load(Ordering::Relaxed) {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let Some((input, result)) = inputs.get(n).zip(results.get(n)) else { return };
                    let output = interrupt::check().map_err(StudyError::from).and_then(|()| work(input));
                    if output.is_err() {
                        has_failed.store(true, Ordering::Relaxed);
                    }
                    if let Ok(mut slot) = result.lock() {
                        *slot = Some(output);
                    }
                    let done = 1 + done.fetch_add(1, Ordering::Relaxed);
                    progress(what, done as f64 / inputs.len() as f64);
                }
            });
        }
    });
    // What a thread has taken it runs, so that what was not run is behind what failed.
    let value = |slot: Mutex<Option<_>>| slot.into_inner().ok().flatten().unwrap_or(Err(StudyError::Lost));
    results.into_iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_the_order_of_the_inputs() {
        let inputs: Vec<u64> = (0..100).collect();
        let results = map("squares", &inputs, &|_, _| {}, |&n| Ok(n * n)).unwrap();
        assert_eq!(results, inputs.iter().map(|n| n * n).collect::<Vec<_>>());
    }

    #[test]
    fn after_a_failure_no_experiment_is_started() {
        let started = AtomicUsize::new(0);
        let fail = |_: &u64| {
            started.fetch_add(1, Ordering::Relaxed);
            Err::<(), _>(StudyError::Missing("nothing works".to_owned()))
        };
        let error = map("failures", &(0..10_000).collect::<Vec<u64>>(), &|_, _| {}, fail).unwrap_err();
        assert!(matches!(error, StudyError::Missing(_)), "{error}");
        assert!(started.into_inner() <= std::thread::available_parallelism().map_or(1, usize::from));
    }
}
