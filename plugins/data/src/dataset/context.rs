//! What the elements of an iterator are made in.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tenon_sdk::prelude::*;

/// How many datasets may be made of each other: each takes of the stack of the thread that asks for an
/// element.
pub const DEEPEST: usize = 200;

/// Belongs to all datasets below one iterator: says when nobody needs the elements any more, and how
/// deep the datasets are.
#[derive(Clone)]
pub struct Context {
    scope: Arc<Scope>,
    depth: usize,
}

type Callback = Box<dyn FnOnce() + Send>;

/// The time for which elements are needed.
#[derive(Default)]
struct Scope {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_over: bool,
    next: u64,
    callbacks: BTreeMap<u64, Callback>,
}

impl Scope {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        let mut state = self.lock();
        state.is_over = true;
        let callbacks = std::mem::take(&mut state.callbacks);
        drop(state);
        callbacks.into_values().for_each(|callback| callback());
    }
}

/// Withdraws a callback when it is dropped.
pub struct Heard {
    scope: Arc<Scope>,
    number: u64,
}

impl Drop for Heard {
    fn drop(&mut self) {
        let callback = self.scope.lock().callbacks.remove(&self.number);
        drop(callback);
    }
}

/// The error for more datasets than [`DEEPEST`].
pub fn check_depth(depth: usize) -> Result<(), KernelError> {
    if depth <= DEEPEST {
        return Ok(());
    }
    Err(KernelError::invalid_argument(format!(
        "a dataset is made of more than {DEEPEST} datasets one inside of the other: combine some of them"
    )))
}

impl Context {
    /// The context of an iterator over a dataset of this depth.
    pub fn new(depth: usize) -> Context {
        Context { scope: Arc::default(), depth }
    }

    /// The context of a dataset of this depth that a function made for an element.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when that is deeper than [`DEEPEST`].
    pub fn inner(&self, depth: usize) -> Result<Context, KernelError> {
        let depth = self.depth.saturating_add(depth);
        check_depth(depth)?;
        Ok(Context { scope: Arc::clone(&self.scope), depth })
    }

    /// A context that ends with this one or before it, and what withdraws it from this one.
    pub fn part(&self) -> (Context, Heard) {
        let scope: Arc<Scope> = Arc::default();
        let ended = Arc::downgrade(&scope);
        let heard = self.on_end(move || {
            if let Some(scope) = ended.upgrade() {
                scope.end();
            }
        });
        (Context { scope, depth: self.depth }, heard)
    }

    /// From now on nobody needs the elements.
    pub fn end(&self) {
        self.scope.end();
    }

    /// Whether nobody needs the elements any more.
    pub fn is_over(&self) -> bool {
        self.scope.lock().is_over
    }

    /// The error of work that nobody needs any more.
    ///
    /// # Errors
    /// `CANCELLED`.
    pub fn check(&self) -> Result<(), KernelError> {
        if !self.is_over() {
            return Ok(());
        }
        Err(KernelError::new(Code::CANCELLED, "the iterator that wanted the element is gone"))
    }

    /// Calls `callback` when the context ends, or at once when it is over.
    pub fn on_end(&self, callback: impl FnOnce() + Send + 'static) -> Heard {
        let mut state = self.scope.lock();
        let number = state.next;
        state.next += 1;
        if state.is_over {
            drop(state);
            callback();
        } else {
            state.callbacks.insert(number, Box::new(callback));
        }
        Heard { scope: Arc::clone(&self.scope), number }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_part_ends_with_the_whole_and_not_the_other_way() {
        let (whole, calls) = (Context::new(1), Arc::new(AtomicUsize::new(0)));
        let ((part, _heard), (other, _other)) = (whole.part(), whole.part());
        let adds = |number| {
            let calls = Arc::clone(&calls);
            move || {
                calls.fetch_add(number, Ordering::SeqCst);
            }
        };
        let _kept = part.on_end(adds(1));
        drop(part.on_end(adds(10)));
        other.end();
        assert!(other.is_over() && !whole.is_over() && !part.is_over());
        whole.end();
        assert!(part.is_over());
        assert_eq!(part.check().unwrap_err().code, Code::CANCELLED);
        assert_eq!(calls.load(Ordering::SeqCst), 1);
        let _late = part.on_end(adds(100));
        assert_eq!(calls.load(Ordering::SeqCst), 101);
    }

    #[test]
    fn datasets_are_not_deeper_than_the_stack() {
        let context = Context::new(DEEPEST - 1).inner(1).unwrap();
        assert_eq!(context.inner(1).err().unwrap().code, Code::INVALID_ARGUMENT);
    }
}
