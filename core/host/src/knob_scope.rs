//! Whose values a plugin sees when it reads a knob.
//!
//! A knob has one value for each session. What a plugin reads does not say for which session it reads, so the
//! thread does: while a kernel is asked what it supports, is created or packs a constant, a [`KnobScope`] on that
//! thread names the values of its session. Everywhere else (in a running kernel, in a device's entries, on a
//! thread of the plugin's own) the values are those of the runtime.

use std::{cell::RefCell, marker::PhantomData, sync::Arc};
use tenon_framework::knob::Knobs;

thread_local! {
    static CURRENT: RefCell<Option<Arc<Knobs>>> = const { RefCell::new(None) };
}

/// While it lives, plugins that read knobs on this thread see these values.
#[must_use = "it ends when it is dropped"]
pub struct KnobScope {
    outer: Option<Arc<Knobs>>,
    /// It ends on the thread where it began.
    _thread: PhantomData<*const ()>,
}

impl KnobScope {
    /// Begins. An inner scope hides the outer one.
    pub fn enter(knobs: &Arc<Knobs>) -> KnobScope {
        let outer = CURRENT.with(|current| current.replace(Some(Arc::clone(knobs))));
        KnobScope { outer, _thread: PhantomData }
    }

    /// The values of the innermost scope on this thread.
    pub(crate) fn current() -> Option<Arc<Knobs>> {
        CURRENT.with(|current| current.borrow().clone())
    }
}

impl Drop for KnobScope {
    fn drop(&mut self) {
        let outer = self.outer.take();
        CURRENT.with(|current| current.replace(outer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_nest_and_are_of_one_thread() {
        let (outer, inner) = (Arc::new(Knobs::default()), Arc::new(Knobs::default()));
        let is = |knobs: &Arc<Knobs>| {
            KnobScope::current().is_some_and(|current| Arc::ptr_eq(&current, knobs))
        };
        assert!(KnobScope::current().is_none());
        let scope = KnobScope::enter(&outer);
        {
            let _scope = KnobScope::enter(&inner);
            assert!(is(&inner));
            std::thread::spawn(|| assert!(KnobScope::current().is_none())).join().unwrap();
        }
        assert!(is(&outer));
        drop(scope);
        assert!(KnobScope::current().is_none());
    }
}
