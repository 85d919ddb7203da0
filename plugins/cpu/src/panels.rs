//! Scratch memory for work that several threads share: a panel for each thread that works at a
//! time.

use crate::lane::Compute;
use std::{any::TypeId, sync::Mutex};
use tenon_sdk::{KernelError, abi::MemoryKind, author::ComputeContext, element::Number, growth};

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
    let bytes = count.checked_mul(size_of::<T>()).ok_or_else(|| {
        KernelError::new(tenon_sdk::Code::RESOURCE_EXHAUSTED, "scratch size overflows")
    })?;
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
    free: Mutex<Vec<&'a mut [T]>>,
    len: usize,
}

/// A panel in use; it returns to its set when dropped.
pub struct Panel<'p, 'a, T> {
    from: &'p Panels<'a, T>,
    memory: Memory<'a, T>,
}

enum Memory<'a, T> {
    Lent(&'a mut [T]),
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
        let free = (0..count).map(|_| uninitialised(c, len)).collect::<Result<_, _>>()?;
        Ok(Panels { free: Mutex::new(free), len })
    }

    /// Takes a panel, with any contents.
    pub fn take(&self) -> Panel<'_, 'a, T> {
        let lent = self.free.lock().unwrap_or_else(|poison| poison.into_inner()).pop();
        let memory = lent.map_or_else(
            || Memory::Own(growth::or_end(growth::filled(self.len, T::ZERO))),
            Memory::Lent,
        );
        Panel { from: self, memory }
    }
}

impl<T> std::ops::Deref for Panel<'_, '_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match &self.memory {
            Memory::Lent(panel) => panel,
            Memory::Own(panel) => panel,
        }
    }
}

impl<T> std::ops::DerefMut for Panel<'_, '_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.memory {
            Memory::Lent(panel) => panel,
            Memory::Own(panel) => panel,
        }
    }
}

impl<T> Drop for Panel<'_, '_, T> {
    fn drop(&mut self) {
        if let Memory::Lent(panel) = std::mem::replace(&mut self.memory, Memory::Own(Vec::new())) {
            self.from.free.lock().unwrap_or_else(|poison| poison.into_inner()).push(panel);
        }
    }
}
