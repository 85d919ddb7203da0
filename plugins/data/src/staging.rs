//! Staging areas: elements wait between steps, in order (`area`) or under keys (`map`, whose state is
//! `keyed`).
//!
//! The ops of an area name it alike; the first of them that runs makes it, with its limits: of elements,
//! and of bytes, where they are not 0. A tensor stays as it is while it waits: nothing is copied.

mod area;
mod keyed;
mod map;

use std::sync::Arc;
use tenon_sdk::prelude::*;

/// How much an area has room for.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    elements: u64,
    bytes: u64,
}

impl Limits {
    /// The attributes `capacity` and `memory_limit`.
    fn new(c: &CreateContext<'_>) -> Result<Limits, KernelError> {
        let limit = |name| {
            let found: i64 = c.attr(name)?;
            u64::try_from(found).map_err(|_| {
                let message = format!("{name}: expected at least 0, no limit, found {found}");
                KernelError::invalid_argument(message)
            })
        };
        Ok(Limits { elements: limit("capacity")?, bytes: limit("memory_limit")? })
    }

    /// Whether there is room for one more element.
    fn has_place(&self, elements: usize) -> bool {
        self.elements == 0 || (elements as u64) < self.elements
    }

    /// Whether there is room for more bytes.
    fn has_bytes(&self, there: u64, more: u64) -> bool {
        self.bytes == 0 || there.saturating_add(more) <= self.bytes
    }

    /// Refuses what will never have room.
    fn check(&self, bytes: u64, label: &str) -> Result<(), KernelError> {
        if self.has_bytes(0, bytes) {
            return Ok(());
        }
        Err(KernelError::new(
            Code::RESOURCE_EXHAUSTED,
            format!(
                "values: expected at most {} bytes, the memory limit of {label}, found {bytes}",
                self.bytes
            ),
        ))
    }
}

/// The inputs from `first` on.
fn values(c: &ComputeContext<'_>, first: usize) -> Result<Vec<Arc<Kept>>, KernelError> {
    (first..c.input_count()).map(|at| c.keep(at).map(Arc::new)).collect()
}

/// The bytes of a tensor, with those of its strings.
fn bytes_of(tensor: &Kept) -> u64 {
    let strings = tensor.strings().unwrap_or_default();
    tensor.slot().bytes + strings.iter().map(|string| string.len() as u64).sum::<u64>()
}
