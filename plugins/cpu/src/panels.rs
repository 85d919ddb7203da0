//! Scratch memory for work that several threads share: a panel for each thread that works at a
//! time.

use crate::{lane::Compute, split::Parts};
use std::{any::TypeId, sync::Mutex};
use tenon_sdk::{
    KernelError, abi::MemoryKind, author::ComputeContext, element::Number, growth, pages::LINE,
};

#[cold]
fn too_large() -> KernelError {
    KernelError::new(tenon_sdk::Code::RESOURCE_EXHAUSTED, "scratch size overflows")
}

/// Returns host memory for `count` elements, valid until the call completes, with any contents.
///
/// # Errors
/// No memory.
pub fn uninitialised<'a, T: Number>(
    c: &ComputeContext<'a>,
    count: usize,
) -> Result<&'a mut [T], KernelError> {
    if count == 0 {
        return Ok(&mut []);
    }
    let bytes = count.checked_mul(size_of::<T>()).ok_or_else(too_large)?;
    let data = c.scratch(bytes, MemoryKind::HOST)?.cast::<T>();
    // SAFETY: this is new host memory from the host for `count` elements, which only this call uses
    // until it completes; every bit pattern is a number.
    Ok(unsafe { std::slice::from_raw_parts_mut(data, count) })
}

/// The same elements, if both types are one.
#[inline(always)]
pub fn as_same<A: 'static, B: 'static>(x: &[A]) -> Option<&[B]> {
    if TypeId::of::<A>() != TypeId::of::<B>() {
        return None;
    }
    // SAFETY: the types are the same one.
    Some(unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), x.len()) })
}

/// [`as_same`] for elements to write.
#[inline(always)]
pub fn as_same_mut<A: 'static, B: 'static>(x: &mut [A]) -> Option<&mut [B]> {
    if TypeId::of::<A>() != TypeId::of::<B>() {
        return None;
    }
    // SAFETY: the types are the same one.
    Some(unsafe { std::slice::from_raw_parts_mut(x.as_mut_ptr().cast(), x.len()) })
}

/// The same elements, if the type computes in itself.
#[inline(always)]
pub fn as_wide<T: Compute>(x: &mut [T]) -> Option<&mut [T::Wide]> {
    as_same_mut(x)
}

/// The same elements, if the type computes in itself.
#[inline(always)]
pub fn as_itself<T: Compute>(x: &[T]) -> Option<&[T::Wide]> {
    as_same(x)
}

/// The same elements in the narrow type, if it computes in itself.
#[inline(always)]
pub fn as_narrow<T: Compute>(x: &mut [T::Wide]) -> Option<&mut [T]> {
    as_same_mut(x)
}

/// A set of panels of one size.
pub struct Panels<'a, T> {
    /// The panels, `stride` elements apart.
    all: Parts<'a, T>,
    stride: usize,
    len: usize,
    free: Mutex<Free<'a>>,
}

/// The panels that are not in use: the first `count` numbers of the list.
struct Free<'a> {
    numbers: &'a mut [u32],
    count: usize,
}

impl Free<'_> {
    fn pop(&mut self) -> Option<u32> {
        self.count = self.count.checked_sub(1)?;
        Some(self.numbers[self.count])
    }

    fn push(&mut self, number: u32) {
        self.numbers[self.count] = number;
        self.count += 1;
    }
}

/// A panel in use; it returns to its set when dropped.
pub struct Panel<'p, 'a, T> {
    from: &'p Panels<'a, T>,
    memory: Memory<'p, T>,
}

enum Memory<'p, T> {
    /// A panel of the set, and its number.
    Lent(&'p mut [T], u32),
    /// The panel has memory of its own: a block of a loop took two panels.
    Own(Vec<T>),
}

impl<'a, T: Number> Panels<'a, T> {
    /// Returns panels of `len` elements for the given count of work units.
    ///
    /// # Errors
    /// No memory.
    pub fn new(
        c: &ComputeContext<'a>,
        units: usize,
        len: usize,
    ) -> Result<Panels<'a, T>, KernelError> {
        let count = units.min(c.parallelism());
        // No two panels share a line.
        let stride = len.checked_next_multiple_of((LINE / size_of::<T>()).max(1));
        let stride = stride.ok_or_else(too_large)?;
        let all = uninitialised(c, stride.checked_mul(count).ok_or_else(too_large)?)?;
        let numbers = uninitialised::<u32>(c, count)?;
        (0..).zip(&mut *numbers).for_each(|(number, place)| *place = number);
        let free = Mutex::new(Free { numbers, count });
        Ok(Panels { all: Parts::new(all), stride, len, free })
    }

    /// Takes a panel, with any contents.
    pub fn take(&self) -> Panel<'_, 'a, T> {
        let number = self.free.lock().unwrap_or_else(|poison| poison.into_inner()).pop();
        let own = || Memory::Own(growth::or_end(growth::filled(self.len, T::ZERO)));
        let memory = number.map_or_else(own, |number| {
            let first = number as usize * self.stride;
            // SAFETY: panels do not overlap, and no other panel of this number is in use: it is out
            // of the list until this one is dropped.
            Memory::Lent(unsafe { self.all.part(first..first + self.len) }, number)
        });
        Panel { from: self, memory }
    }
}

impl<T> std::ops::Deref for Panel<'_, '_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match &self.memory {
            Memory::Lent(panel, _) => panel,
            Memory::Own(panel) => panel,
        }
    }
}

impl<T> std::ops::DerefMut for Panel<'_, '_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.memory {
            Memory::Lent(panel, _) => panel,
            Memory::Own(panel) => panel,
        }
    }
}

impl<T> Drop for Panel<'_, '_, T> {
    fn drop(&mut self) {
        if let Memory::Lent(_, number) = self.memory {
            self.from.free.lock().unwrap_or_else(|poison| poison.into_inner()).push(number);
        }
    }
}
