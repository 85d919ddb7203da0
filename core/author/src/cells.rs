//! Elements that several calls read and write at the same time.

use std::{
    marker::PhantomData,
    mem::MaybeUninit,
    sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed},
};
use tenon_abi::Slot;
use tenon_framework::element::Element;

/// A word of an element.
macro_rules! word {
    ($atomic:ident, $element:expr, $at:expr) => {
        $atomic::from_ptr($element.cast::<$atomic>().add($at).cast())
    };
}

/// The elements of a variable that calls share. Each is read and written whole by relaxed atomic operations, a
/// complex128 by two: calls that update one element at the same time may lose updates, and nothing else.
pub struct Cells<'v, T> {
    first: *mut T,
    len: usize,
    dims: Vec<i64>,
    is_written: bool,
    lent: PhantomData<&'v T>,
}

// SAFETY: all accesses to the elements are atomic, so that threads of one call may make them as calls do.
unsafe impl<T: Element> Sync for Cells<'_, T> {}

impl<T: Element> Cells<'_, T> {
    /// # Safety
    /// The slot shows host memory with elements of this type, aligned to 8 bytes, of a variable that stays locked for
    /// the lifetime; other calls that share the lock access them by atomic operations. They may be written if
    /// `is_written`.
    pub(super) unsafe fn of(slot: &Slot, is_written: bool) -> Self {
        Cells {
            first: slot.data.cast(),
            len: slot.elements as usize,
            // SAFETY: a filled slot.
            dims: unsafe { slot.shape() }.to_vec(),
            is_written,
            lent: PhantomData,
        }
    }

    /// Dimensions of the value.
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The element at a position.
    ///
    /// # Panics
    /// When there is no such element.
    #[inline]
    pub fn get(&self, at: usize) -> T {
        assert!(at < self.len, "element {at} of {}", self.len);
        let mut value = MaybeUninit::<T>::uninit();
        let to = value.as_mut_ptr();
        // SAFETY: an element of the slot, of 1, 2, 4, 8 or 16 bytes, aligned to its words as the slot is to 8 bytes;
        // each of its words is read whole and makes up an element that was written whole.
        unsafe {
            let from = self.first.add(at);
            match size_of::<T>() {
                1 => to.cast::<u8>().write(AtomicU8::from_ptr(from.cast()).load(Relaxed)),
                2 => to.cast::<u16>().write_unaligned(word!(AtomicU16, from, 0).load(Relaxed)),
                4 => to.cast::<u32>().write_unaligned(word!(AtomicU32, from, 0).load(Relaxed)),
                size => (0..size / 8).for_each(|at| {
                    let word = word!(AtomicU64, from, at).load(Relaxed);
                    to.cast::<u64>().add(at).write_unaligned(word);
                }),
            }
            value.assume_init()
        }
    }

    /// Writes the element at a position.
    ///
    /// # Panics
    /// When there is no such element, or the variable is locked for reading only.
    #[inline]
    pub fn set(&self, at: usize, value: T) {
        assert!(self.is_written && at < self.len, "element {at} of {}", self.len);
        let from = std::ptr::from_ref(&value);
        // SAFETY: as in `get`, of a variable whose elements may be written.
        unsafe {
            let to = self.first.add(at);
            match size_of::<T>() {
                1 => AtomicU8::from_ptr(to.cast()).store(from.cast::<u8>().read(), Relaxed),
                2 => word!(AtomicU16, to, 0).store(from.cast::<u16>().read_unaligned(), Relaxed),
                4 => word!(AtomicU32, to, 0).store(from.cast::<u32>().read_unaligned(), Relaxed),
                size => (0..size / 8).for_each(|at| {
                    let word = from.cast::<u64>().add(at).read_unaligned();
                    word!(AtomicU64, to, at).store(word, Relaxed);
                }),
            }
        }
    }

    /// Reads elements from a position on.
    ///
    /// # Panics
    /// When there are not as many.
    #[inline]
    pub fn read(&self, at: usize, to: &mut [T]) {
        assert!(at <= self.len && to.len() <= self.len - at, "elements from {at} of {}", self.len);
        to.iter_mut().enumerate().for_each(|(offset, to)| *to = self.get(at + offset));
    }

    /// Writes elements from a position on.
    ///
    /// # Panics
    /// When there are not as many, or the variable is locked for reading only.
    #[inline]
    pub fn write(&self, at: usize, from: &[T]) {
        assert!(
            at <= self.len && from.len() <= self.len - at,
            "elements from {at} of {}",
            self.len
        );
        from.iter().enumerate().for_each(|(offset, &from)| self.set(at + offset, from));
    }
}

#[cfg(test)]
mod tests {
    use super::Cells;
    use std::{ffi::c_void, fmt::Debug};
    use tenon_abi::Slot;
    use tenon_framework::element::Complex;
    use tenon_framework::element::Element;

    fn round<T: Element + Debug>(values: [T; 3]) {
        #[repr(align(64))]
        struct Aligned<T>([T; 3]);
        let mut memory = Aligned([T::default(); 3]);
        let data = (&raw mut memory.0).cast::<c_void>();
        let slot = Slot { data, elements: 3, dtype: T::DTYPE, ..Slot::EMPTY };
        // SAFETY: three elements, which no other code uses.
        let cells = unsafe { Cells::<T>::of(&slot, true) };
        values.iter().enumerate().for_each(|(at, &value)| cells.set(at, value));
        assert_eq!([0, 1, 2].map(|at| cells.get(at)), values);
        let mut read = [T::default(); 2];
        cells.read(1, &mut read);
        assert_eq!(read, values[1..]);
        cells.write(0, &read);
        assert_eq!([0, 1, 2].map(|at| cells.get(at)), [values[1], values[2], values[2]]);
    }

    #[test]
    fn elements_of_each_size_come_back() {
        round([true, false, true]);
        round([-1i16, 2, 3]);
        round([1.5f32, -2.0, 3.0]);
        round([u64::MAX, 0, 7]);
        round([1.0, 2.0, 3.0].map(|re| Complex::new(re, -1.0f32)));
        round([1.0, 2.0, 3.0].map(|re| Complex::new(re, -1.0f64)));
    }
}
