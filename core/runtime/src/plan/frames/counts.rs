//! The arrivals that a node waits for, in one word.
//!
//! A node other than a `Merge` waits for every edge; it is dead if any arrival was dead:
//!
//! ```text
//! bits 0..32: edges that have not arrived      bit 63: a dead edge arrived
//! ```
//!
//! A `Merge` waits for its control edges, and for the first value or for a dead value on every
//! input. The `Merge` of a loop has one input from an `Enter` and one from a `NextIteration`, of
//! which only one arrives in an iteration; a dead `Enter` alone makes it dead:
//!
//! ```text
//! bits 0..32: control edges that have not arrived
//! bits 32..61: the number of dead inputs, or, once the value has arrived, the number of its input
//! bit 62: a value has arrived      bit 63: it is dead
//! ```
//!
//! `alone` says that no other thread counts, so that a count needs no atomic change.

use std::sync::atomic::{AtomicU64, Ordering};

const WAITING: u64 = 0xffff_ffff;
const INPUT_SHIFT: u32 = 32;
const INPUT: u64 = 0x1fff_ffff << INPUT_SHIFT;
const LIVE: u64 = 1 << 62;
const DEAD: u64 = 1 << 63;

/// An arrival at a `Merge`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// A control edge; whether it is dead does not matter.
    Control,
    /// A value on this input.
    Value(u32),
    /// A dead value.
    Dead,
    /// A dead value from an `Enter`.
    DeadEnter,
}

/// The count of a `Merge` that waits for control edges, and may have its value already.
pub(crate) fn merge(controls: u32, known: Option<u32>) -> u64 {
    u64::from(controls) | known.map_or(0, |input| LIVE | u64::from(input) << INPUT_SHIFT)
}

/// Whether a node waits for nothing more.
pub(crate) fn is_complete(is_merge: bool, count: u64) -> bool {
    count & WAITING == 0 && (!is_merge || count & (LIVE | DEAD) != 0)
}

/// Whether the node is dead.
pub(crate) fn is_dead(count: u64) -> bool {
    count & DEAD != 0
}

/// Replaces a count by what `change` makes of it; returns the count before.
#[inline(always)]
fn update(count: &AtomicU64, alone: bool, change: impl Fn(u64) -> u64) -> u64 {
    if alone {
        let old = count.load(Ordering::Relaxed);
        count.store(change(old), Ordering::Relaxed);
        return old;
    }
    let changed = |old| Some(change(old));
    // The closure always returns a count.
    count.fetch_update(Ordering::AcqRel, Ordering::Acquire, changed).unwrap_or(0)
}

/// Marks a node as dead.
pub(crate) fn mark_dead(count: &AtomicU64) {
    count.fetch_or(DEAD, Ordering::Relaxed);
}

/// The input of a `Merge` that arrived first.
pub(crate) fn first_input(count: u64) -> u32 {
    ((count & INPUT) >> INPUT_SHIFT) as u32
}

/// Counts an edge that arrives at a node other than a `Merge`. If it was the last one, returns
/// whether the node is dead.
#[inline(always)]
pub(crate) fn arrive(count: &AtomicU64, dead: bool, alone: bool) -> Option<bool> {
    let dead = if dead { DEAD } else { 0 };
    let old = match alone || dead != 0 {
        true => update(count, alone, |old| (old | dead).wrapping_sub(1)),
        false => count.fetch_sub(1, Ordering::AcqRel),
    };
    (old & WAITING == 1).then_some((old | dead) & DEAD != 0)
}

/// The count of a `Merge` after an arrival.
fn after(old: u64, inputs: u32, arrival: Arrival) -> u64 {
    if matches!(arrival, Arrival::Control) {
        return old - 1;
    }
    if old & (LIVE | DEAD) != 0 {
        return old;
    }
    match arrival {
        Arrival::Value(input) => (old & WAITING) | LIVE | u64::from(input) << INPUT_SHIFT,
        Arrival::DeadEnter => old | DEAD,
        _ => {
            let new = old + (1 << INPUT_SHIFT);
            if (new & INPUT) >> INPUT_SHIFT >= u64::from(inputs) { new | DEAD } else { new }
        }
    }
}

/// Counts an edge that arrives at a `Merge` with this number of inputs. If the `Merge` runs now,
/// returns whether it is dead.
pub(crate) fn arrive_merge(
    count: &AtomicU64,
    inputs: u32,
    arrival: Arrival,
    alone: bool,
) -> Option<bool> {
    let old = update(count, alone, |old| after(old, inputs, arrival));
    let new = after(old, inputs, arrival);
    let runs = !is_complete(true, old) && is_complete(true, new);
    runs.then_some(new & DEAD != 0)
}

/// The seed of TensorFlow's hash of a text.
const SEED: u64 = 0xDE_CAFC_AFFE;

/// The digest of a name: MurmurHash64A (Austin Appleby's MurmurHash2, the variant for machines of 64 bits), with TensorFlow's
/// seed, since TensorFlow's workers number frames by it.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut hash = SEED ^ (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    for word in words {
        let mut mixed = u64::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        mixed ^= mixed >> SHIFT;
        hash = (hash ^ mixed.wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
    }
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(MULTIPLIER);
    }
    hash = (hash ^ (hash >> SHIFT)).wrapping_mul(MULTIPLIER);
    hash ^ (hash >> SHIFT)
}

/// TensorFlow's `Hash64Combine`.
pub(crate) fn combined(a: u64, b: u64) -> u64 {
    let (left, right) = (a << 10, a >> 4);
    a ^ b.wrapping_add(0x9e37_79b9_7f4a_7800).wrapping_add(left).wrapping_add(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_tensorflow() {
        // What TensorFlow's StringToHashBucket gives for as many buckets.
        let buckets = (1 << 63) - 1;
        let known = [
            ("", 105_434_511_174_508_092u64),
            ("loop", 7_895_890_573_596_176_411),
            ("while/while_context", 4_608_138_368_000_096_215),
            ("abcdefgh", 3_429_851_175_771_700_306),
        ];
        for (name, bucket) in known {
            assert_eq!(digest(name.as_bytes()) % buckets, bucket, "{name}");
        }
    }

    fn merge_of(inputs: u32, controls: u32, arrivals: &[Arrival]) -> Vec<Option<bool>> {
        let count = AtomicU64::new(merge(controls, None));
        let found = arrivals.iter().map(|&arrival| arrive_merge(&count, inputs, arrival, false));
        let found: Vec<_> = found.collect();
        let count = AtomicU64::new(merge(controls, None));
        let alone = arrivals.iter().map(|&arrival| arrive_merge(&count, inputs, arrival, true));
        assert_eq!(alone.collect::<Vec<_>>(), found, "alone");
        found
    }

    #[test]
    fn a_merge_runs_with_the_first_value_and_only_once() {
        use Arrival::{Dead, Value};
        assert_eq!(merge_of(2, 0, &[Dead, Value(1)]), [None, Some(false)]);
        assert_eq!(merge_of(2, 0, &[Value(1), Dead]), [Some(false), None]);
        assert_eq!(merge_of(2, 0, &[Value(0), Value(1)]), [Some(false), None]);
        let count = AtomicU64::new(merge(0, None));
        assert_eq!(arrive_merge(&count, 3, Arrival::Value(2), false), Some(false));
        assert_eq!(arrive_merge(&count, 3, Arrival::Value(1), false), None);
        assert_eq!(first_input(count.load(Ordering::Relaxed)), 2);
    }

    #[test]
    fn a_merge_is_dead_when_all_inputs_are_or_an_enter_is() {
        use Arrival::{Control, Dead, DeadEnter, Value};
        assert_eq!(merge_of(2, 0, &[Dead, Dead]), [None, Some(true)]);
        assert_eq!(merge_of(2, 0, &[DeadEnter]), [Some(true)]);
        assert_eq!(merge_of(2, 1, &[Dead, Dead, Control]), [None, None, Some(true)]);
        assert_eq!(merge_of(2, 2, &[Control, Value(0), Control]), [None, None, Some(false)]);
    }

    #[test]
    fn any_other_node_waits_for_all_and_one_dead_edge_makes_it_dead() {
        for alone in [false, true] {
            let count = AtomicU64::new(3);
            assert_eq!(arrive(&count, false, alone), None);
            assert_eq!(arrive(&count, true, alone), None);
            assert_eq!(arrive(&count, false, alone), Some(true));
            let count = AtomicU64::new(1);
            assert_eq!(arrive(&count, false, alone), Some(false));
            assert!(is_complete(false, count.load(Ordering::Relaxed)));
        }
    }
}
