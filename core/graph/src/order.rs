//! Topological order.

use std::collections::VecDeque;

/// The positions `0..count` in an order in which every source stands before those that use it; equal inputs
/// give equal orders. `sources` leaves back edges out. What stands in a cycle is missing from the result.
pub(crate) fn topological<I>(count: usize, sources: impl Fn(usize) -> I) -> Vec<usize>
where
    I: Iterator<Item = usize>,
{
    let mut waiting = vec![0usize; count];
    let mut consumers: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (at, waits) in waiting.iter_mut().enumerate() {
        for source in sources(at) {
            consumers[source].push(at);
            *waits += 1;
        }
    }
    let mut ready: VecDeque<usize> = (0..count).filter(|&at| waiting[at] == 0).collect();
    let mut order = Vec::with_capacity(count);
    while let Some(at) = ready.pop_front() {
        order.push(at);
        for &consumer in &consumers[at] {
            waiting[consumer] -= 1;
            if waiting[consumer] == 0 {
                ready.push_back(consumer);
            }
        }
    }
    order
}
