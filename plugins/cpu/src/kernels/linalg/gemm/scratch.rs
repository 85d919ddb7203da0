//! Memory for packed factors and for results, which a thread keeps between products.

use std::cell::Cell;
use tenon_sdk::{
    element::Number,
    growth,
    pages::{LINE, Line},
};

/// Number of lines above which memory is freed after a product.
const KEPT: usize = (4 << 20) / LINE;

/// What a thread keeps in the memory.
#[derive(Debug, Clone, Copy)]
pub enum Side {
    /// Rows of the left factor.
    Left,
    /// Columns of the right one.
    Right,
    /// Results.
    Result,
}

thread_local! {
    static KEPT_LEFT: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
    static KEPT_RIGHT: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
    static KEPT_RESULT: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

/// Calls `body` with memory for `count` numbers, with undefined contents.
///
/// Panics if the size overflows. If memory is missing the call ends, as [`growth::or_end`]
/// describes.
#[inline]
pub fn with<S: Number, R>(side: Side, count: usize, body: impl FnOnce(&mut [S]) -> R) -> R {
    let count = Line::count::<S>(count).expect("packed factors fit the address space");
    let place = match side {
        Side::Left => &KEPT_LEFT,
        Side::Right => &KEPT_RIGHT,
        Side::Result => &KEPT_RESULT,
    };
    let mut memory = place.take();
    if memory.len() < count {
        memory = grown(memory, count);
    }
    let result = body(Line::numbers_mut(&mut memory[..count]));
    if memory.len() <= KEPT {
        place.set(memory);
    }
    result
}

/// Allocates more memory in place of this, which is freed before.
#[cold]
fn grown(memory: Vec<Line>, count: usize) -> Vec<Line> {
    drop(memory);
    growth::or_end(growth::filled(count, Line::ZERO))
}
