//! Sums of gradients among workers, each with a session of its own at its task; and one session for all workers.

use super::{
    Step,
    inputs::{Inputs, Model},
};

/// What a member does for a sum: exchanges, the seconds of the bytes on each link, and those of merging them.
struct Way {
    exchanges: f64,
    link: f64,
    merge: f64,
}

/// Each member sends and receives each of its parts, which are as many as there are members, once to merge and once to pass on.
fn around_ring(inputs: &Inputs, bytes: f64, workers: usize) -> Way {
    let (all, others) = (workers as f64, (workers - 1) as f64);
    Way {
        exchanges: 2.0 * others,
        link: 2.0 * others / all * bytes / inputs.rate,
        merge: others / all * bytes / inputs.merge,
    }
}

/// The same by halves: exchanges of a half, a quarter and so on, and back. Members beyond the largest power of two give all that
/// they have to another one first, and get the result last.
fn by_halves(inputs: &Inputs, bytes: f64, workers: usize) -> Way {
    let within = 1usize << workers.ilog2();
    let beyond = f64::from(workers > within);
    let (rounds, part) = (f64::from(within.ilog2()), (within - 1) as f64 / within as f64);
    let sent = 2.0 * (part + beyond) * bytes;
    Way {
        exchanges: 2.0 * (rounds + beyond),
        link: sent / inputs.rate,
        merge: (part + beyond) * bytes / inputs.merge,
    }
}

/// A sum of so many bytes by itself, as the records have it: its members asked the leader of their group, which they do no
/// longer. Larger ones than 64 KiB go around a ring.
pub fn sum(inputs: &Inputs, bytes: f64, workers: usize) -> f64 {
    let way = if bytes <= 65_536.0 { by_halves } else { around_ring };
    let way = way(inputs, bytes, workers);
    inputs.join + way.exchanges * inputs.exchange + way.link + way.merge
}

/// The sums of all variables are on their way together: one of them waits for each exchange, and the others add the messages.
fn step(inputs: &Inputs, model: &Model, way: &Way) -> Step {
    Step::of(vec![
        ("compute", model.compute),
        ("call", inputs.call),
        ("latency", way.exchanges * inputs.exchange),
        ("messages", (model.variables - 1.0) * way.exchanges * inputs.tensor),
        ("link", way.link),
        ("merge", way.merge),
    ])
}

/// Gradients are summed around a ring after the computation.
pub fn ring(inputs: &Inputs, model: &Model, workers: usize) -> Step {
    step(inputs, model, &around_ring(inputs, model.bytes, workers))
}

/// Gradients are summed by halves.
pub fn halving(inputs: &Inputs, model: &Model, workers: usize) -> Step {
    step(inputs, model, &by_halves(inputs, model.bytes, workers))
}

/// One session has the parts of all workers: its master calls each of them in each step, and nothing is exchanged.
pub fn one_master(inputs: &Inputs, model: &Model, workers: usize) -> Step {
    let others = (workers - 1) as f64;
    let part = if workers > 1 { inputs.part } else { 0.0 };
    Step::of(vec![
        ("compute", model.compute),
        ("call", inputs.call),
        ("part", part),
        ("master", others * inputs.master_cpu),
    ])
}
