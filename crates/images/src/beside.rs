//! Several things done beside each other. After the first failure no more are begun; those that have are waited for.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Does `work` for each item, for so many at once.
pub(crate) fn beside<T: Sync, E: Send>(
    items: &[T],
    at_once: usize,
    work: impl Fn(&T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let (next, failure) = (AtomicUsize::new(0), Mutex::new(None));
    let work_on = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = work(item) {
                next.store(items.len(), Ordering::Relaxed);
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        }
    };
    std::thread::scope(|scope| {
        // The calling thread is one of them.
        (1..at_once.min(items.len())).for_each(|_| drop(scope.spawn(work_on)));
        work_on();
    });
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_done_or_the_first_failure_ends_it() {
        let items: Vec<usize> = (0..100).collect();
        let done = AtomicUsize::new(0);
        let count = |_: &usize| -> Result<(), usize> {
            done.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        assert_eq!(beside(&items, 4, count), Ok(()));
        assert_eq!(done.load(Ordering::Relaxed), 100);
        assert_eq!(beside(&[], 4, count), Ok(()));
        let begun = AtomicUsize::new(0);
        let fail = |item: &usize| {
            begun.fetch_add(1, Ordering::Relaxed);
            if *item == 3 { Err(*item) } else { Ok(()) }
        };
        assert_eq!(beside(&items, 1, fail), Err(3));
        assert_eq!(begun.load(Ordering::Relaxed), 4);
    }
}
