//! One value for each type in this library, at an address of its own, by which the boundary distinguishes types.
//!
//! A constant of a generic type has no such address: the compiler may make several of one, or one of two.

use std::{
    any::TypeId,
    collections::BTreeMap,
    sync::{PoisonError, RwLock},
};

/// The values that were made so far; they live as long as the library.
pub(super) struct Interned<V: 'static>(RwLock<BTreeMap<TypeId, &'static V>>);

impl<V: Sync> Interned<V> {
    /// Makes one without values.
    pub const fn new() -> Interned<V> {
        Interned(RwLock::new(BTreeMap::new()))
    }

    /// The value for `T`, which the first call makes.
    pub fn of<T: 'static>(&self, make: impl FnOnce() -> V) -> &'static V {
        let id = TypeId::of::<T>();
        if let Some(value) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&id) {
            return value;
        }
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.entry(id).or_insert_with(|| Box::leak(Box::new(make())))
    }
}

#[cfg(test)]
mod tests {
    use super::Interned;

    #[test]
    fn each_type_has_one_value_at_one_address() {
        static VALUES: Interned<u64> = Interned::new();
        let (first, second) = (VALUES.of::<u8>(|| 7), VALUES.of::<i8>(|| 7));
        assert!(std::ptr::eq(first, VALUES.of::<u8>(|| panic!("made once"))));
        assert!(!std::ptr::eq(first, second));
        let threads: Vec<_> = (0..4)
            .map(|_| std::thread::spawn(|| VALUES.of::<u16>(|| 9) as *const u64 as usize))
            .collect();
        let found: Vec<usize> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(found.iter().all(|at| *at == found[0]));
    }
}
