//! Topological order.

use std::collections::VecDeque;

/// The positions `0..count` in an order in which each source precedes its users; equal inputs give
/// equal orders. `sources` must leave out back edges. Positions on a cycle, or behind one, are
/// missing from the result.
pub(crate) fn topological<I>(count: usize, sources: impl Fn(usize) -> I) -> Vec<usize>
where
    I: Iterator<Item = usize>,
{
    // All edges in two lists, ordered by source, instead of one list per position.
    let mut edges: Vec<(usize, usize)> = Vec::with_capacity(2 * count);
    let mut waiting = vec![0usize; count];
    let mut first = vec![0usize; count + 1];
    for (at, waits) in waiting.iter_mut().enumerate() {
        for source in sources(at) {
            edges.push((source, at));
            first[source + 1] += 1;
            *waits += 1;
        }
    }
    for at in 0..count {
        first[at + 1] += first[at];
    }
    let mut next = first.clone();
    let mut consumers = vec![0usize; edges.len()];
    for (source, at) in edges {
        consumers[next[source]] = at;
        next[source] += 1;
    }
    let mut ready: VecDeque<usize> = (0..count).filter(|&at| waiting[at] == 0).collect();
    let mut order = Vec::with_capacity(count);
    while let Some(at) = ready.pop_front() {
        order.push(at);
        for &consumer in &consumers[first[at]..first[at + 1]] {
            waiting[consumer] -= 1;
            if waiting[consumer] == 0 {
                ready.push_back(consumer);
            }
        }
    }
    order
}
