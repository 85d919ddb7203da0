//! Numbers and names that nobody had before.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// 64 random bits.
fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// A handle that no session had before: 64 random bits.
pub(crate) fn new_handle() -> String {
    format!("{:016x}", random())
}

/// The number of a step that no other master gives: 57 random bits, as TensorFlow's masters choose it.
pub(crate) fn new_step() -> i64 {
    (random() >> 7).cast_signed().max(1)
}

/// The number of a request, which no other process gives; not 0.
pub(crate) fn new_request() -> i64 {
    static NEXT: LazyLock<AtomicU64> = LazyLock::new(|| AtomicU64::new(random()));
    let number = NEXT.fetch_add(1, Ordering::Relaxed).cast_signed();
    if number == 0 { new_request() } else { number }
}
