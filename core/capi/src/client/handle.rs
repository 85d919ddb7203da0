//! Handles: what C holds of objects.
//!
//! A handle is a number in the form of a pointer. Each kind of object has a table from numbers to objects; no number is given twice
//! in a process. So a handle that was deleted is recognised, and an object lives as long as a call uses it.

use crate::{
    fail::{Failure, Fallback},
    raw::Array,
};
use std::{
    collections::HashMap,
    ffi::c_int,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tenon_framework::{Code, sync::Mutex};

/// The number of the next object. Numbers are not addresses: a page at 0 is never mapped, and numbers are odd.
static NEXT: AtomicUsize = AtomicUsize::new(0x1001);

/// The objects of one kind.
pub struct Table<T>(Mutex<HashMap<usize, Arc<T>>>);

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table(Mutex::new(HashMap::new()))
    }
}

/// A kind of object that C has handles of.
pub trait Kept: Send + Sync + Sized + 'static {
    /// What it is called in messages.
    const KIND: &'static str;

    /// The objects.
    fn table() -> &'static Table<Self>;
}

/// Gives kinds their tables.
macro_rules! kept {
    ($($kind:ty => $name:literal),* $(,)?) => {
        $(impl $crate::client::handle::Kept for $kind {
            const KIND: &'static str = $name;

            fn table() -> &'static $crate::client::handle::Table<$kind> {
                static TABLE: std::sync::LazyLock<$crate::client::handle::Table<$kind>> =
                    std::sync::LazyLock::new(Default::default);
                &TABLE
            }
        })*
    };
}

/// A handle: null, or the number of an object.
#[repr(transparent)]
pub struct Handle<T>(*mut T);

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> Fallback for Handle<T> {
    fn fallback() -> Handle<T> {
        Handle(ptr::null_mut())
    }
}

impl<T: Kept> Handle<T> {
    /// No object.
    pub const NULL: Handle<T> = Handle(ptr::null_mut());

    /// A handle for a new object.
    pub fn new(value: T) -> Handle<T> {
        let number = NEXT.fetch_add(2, Ordering::Relaxed);
        T::table().0.lock().insert(number, Arc::new(value));
        Handle(ptr::without_provenance_mut(number))
    }

    /// The object.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for null, and for a handle that was deleted or is of another kind.
    pub fn get(self) -> Result<Arc<T>, Failure> {
        if self.0.is_null() {
            return Err(Failure::null(T::KIND));
        }
        let found = T::table().0.lock().get(&self.0.addr()).cloned();
        found.ok_or_else(|| self.stale())
    }

    /// The object; `None` for null.
    ///
    /// # Errors
    /// As [`Handle::get`], but for null.
    pub fn optional(self) -> Result<Option<Arc<T>>, Failure> {
        if self.0.is_null() { Ok(None) } else { self.get().map(Some) }
    }

    /// Takes the object out of its table, after which the handle is stale.
    ///
    /// # Errors
    /// As [`Handle::get`].
    pub fn take(self) -> Result<Arc<T>, Failure> {
        if self.0.is_null() {
            return Err(Failure::null(T::KIND));
        }
        let found = T::table().0.lock().remove(&self.0.addr());
        found.ok_or_else(|| self.stale())
    }

    fn stale(self) -> Failure {
        Failure::invalid(format!(
            "expected {}, found a handle that was deleted or is of another kind: make a new one",
            T::KIND
        ))
    }

    /// Deletes the object, and gives the code of a status: that of success for null.
    pub fn delete(self) -> c_int {
        if self.0.is_null() {
            return Code::OK.0;
        }
        match self.take() {
            Ok(object) => {
                drop(object);
                Code::OK.0
            }
            Err(failure) => {
                tracing::error!("delete: {}", failure.message);
                failure.code.0
            }
        }
    }
}

impl<T: Kept> Array<'_, Handle<T>> {
    /// The objects of an array of handles.
    ///
    /// # Errors
    /// As [`Handle::get`], for each of them; null with a number that is not 0.
    pub fn objects(self, count: usize, what: &str) -> Result<Vec<Arc<T>>, Failure> {
        self.required(count, what)?.iter().map(|handle| handle.get()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Thing;
    struct Other;
    kept! { Thing => "a thing", Other => "another thing" }

    #[test]
    fn stale_and_foreign_handles_are_refused() {
        let handle = Handle::new(Thing);
        let foreign = Handle::<Other>(handle.0.cast());
        assert!(foreign.get().is_err());
        assert_eq!(foreign.delete(), Code::INVALID_ARGUMENT.0);
        let held = handle.get().unwrap();
        assert_eq!(handle.delete(), 0);
        assert_eq!(Arc::strong_count(&held), 1);
        assert!(handle.get().is_err_and(|failure| failure.message.contains("a thing")));
        assert_eq!(handle.delete(), Code::INVALID_ARGUMENT.0);
        assert_eq!(Handle::<Thing>::NULL.delete(), 0);
        assert!(Handle::<Thing>::NULL.get().is_err());
    }
}
