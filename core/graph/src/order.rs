//! Topological order.

use std::collections::VecDeque;

/// The positions `0..count` in an order in which every source stands before those that use it; equal inputs
/// give equal orders. `sources` leaves back edges out. What stands in a cycle is missing from the result.
pub(crate) fn topological<I>(count: usize, sources: impl Fn(usize) -> I) -> Vec<usize>
where
    I: Iterator<Item = usize>,
{
    // Edges in two lists, by source: no list of its own for each position.
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
