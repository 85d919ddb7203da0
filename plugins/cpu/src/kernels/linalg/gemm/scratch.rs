//! Memory for packed factors: lines of the cache, and those that a thread keeps from one product to the next.

use std::cell::Cell;
use tenon_sdk::element::Number;

/// Bytes of a line.
pub const LINE: usize = 64;
/// Lines beyond which memory is given back after a product.
const KEPT: usize = (4 << 20) / LINE;

/// Packed factors begin at a cache line.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct Line([u8; LINE]);

impl Line {
    /// Nothing packed.
    pub const ZERO: Line = Line([0; LINE]);
}

/// Lines that hold so many numbers; `None` where there are too many.
pub fn lines<S>(count: usize) -> Option<usize> {
    Some(count.checked_mul(size_of::<S>())?.div_ceil(LINE))
}

/// Lines as numbers.
pub fn numbers<S: Number>(lines: &[Line]) -> &[S] {
    // SAFETY: lines are bytes without padding at aligned addresses; every bit pattern is a number.
    unsafe {
        std::slice::from_raw_parts(lines.as_ptr().cast(), size_of_val(lines) / size_of::<S>())
    }
}

/// [`numbers`] to be written.
pub fn numbers_mut<S: Number>(lines: &mut [Line]) -> &mut [S] {
    let count = size_of_val(lines) / size_of::<S>();
    // SAFETY: as there, and every number is bytes.
    unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), count) }
}

/// What a thread packs.
#[derive(Debug, Clone, Copy)]
pub enum Side {
    /// Rows of the left factor.
    Left,
    /// Columns of the right one.
    Right,
}

thread_local! {
    static KEPT_LEFT: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
    static KEPT_RIGHT: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

/// Calls with memory for so many numbers, with any contents.
///
/// Panics when there are too many.
pub fn with<S: Number, R>(side: Side, count: usize, body: impl FnOnce(&mut [S]) -> R) -> R {
    let count = lines::<S>(count).expect("packed factors fit the address space");
    let place = match side {
        Side::Left => &KEPT_LEFT,
        Side::Right => &KEPT_RIGHT,
    };
    let mut memory = place.take();
    if memory.len() < count {
        memory = vec![Line::ZERO; count];
    }
    let result = body(numbers_mut(&mut memory[..count]));
    if memory.len() <= KEPT {
        place.set(memory);
    }
    result
}
