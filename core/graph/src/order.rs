//! Topological order.

use std::collections::VecDeque;

/// Returns the positions `0..count` in an order in which each source precedes its users. Equal
/// inputs give equal orders. `sources` gives the sources of a position, without those of back
/// edges. Positions on a cycle, and those that depend on one, are missing from the result.
///
/// # Panics
/// Panics if a source is not below `count`.
///
/// ```
/// let sources = [vec![1, 2], vec![2], vec![]];
/// let order = tenon_graph::topological(3, |at| sources[at].iter().copied());
/// assert_eq!(order, [2, 1, 0]);
/// ```
pub fn topological<I>(count: usize, sources: impl Fn(usize) -> I) -> Vec<usize>
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
