//! Sums of gradients among workers, each with a session of its own at its task; and one session for all workers.

use super::{
    Step,
    inputs::{Inputs, Model},
};

/// The questions of all members to the leader, which answers one after the other.
fn joins(inputs: &Inputs, variables: f64, workers: usize) -> f64 {
    match workers {
        1 => 0.0,
        _ => inputs.join + (workers - 1) as f64 * variables * inputs.question_cpu(),
    }
}

/// Seconds of the exchanges, of the bytes that each link carries, and of merging them. Each member sends and receives each of
/// its parts, which are as many as there are members, once to merge and once to pass on.
fn around_ring(inputs: &Inputs, bytes: f64, workers: usize) -> [f64; 3] {
    let (all, others) = (workers as f64, (workers - 1) as f64);
    let exchanges = 2.0 * others * inputs.exchange;
    [exchanges, 2.0 * others / all * bytes / inputs.rate, others / all * bytes / inputs.merge]
}

/// The same by halves: exchanges of a half, a quarter and so on, and back. Members beyond the largest power of two give all that
/// they have to another one first, and get the result last.
fn by_halves(inputs: &Inputs, bytes: f64, workers: usize) -> [f64; 3] {
    let within = 1usize << workers.ilog2();
    let beyond = f64::from(workers > within);
    let (rounds, part) = (f64::from(within.ilog2()), (within - 1) as f64 / within as f64);
    let exchanges = 2.0 * (rounds + beyond) * inputs.exchange;
    let sent = 2.0 * (part + beyond) * bytes;
    [exchanges, sent / inputs.rate, (part + beyond) * bytes / inputs.merge]
}

/// A sum of so many bytes by itself; larger ones than 64 KiB go around a ring.
pub fn sum(inputs: &Inputs, bytes: f64, workers: usize) -> f64 {
    let how = if bytes <= 65_536.0 { by_halves } else { around_ring };
    joins(inputs, 1.0, workers) + how(inputs, bytes, workers).iter().sum::<f64>()
}

fn step(inputs: &Inputs, model: &Model, workers: usize, parts: [f64; 3]) -> Step {
    let [latency, link, merge] = parts;
    Step::of(vec![
        ("compute", model.compute),
        ("call", inputs.call),
        ("leader", joins(inputs, model.variables, workers)),
        ("latency", latency),
        ("link", link),
        ("merge", merge),
    ])
}

/// Gradients are summed around a ring after the computation; the sums of all variables are on their way together.
pub fn ring(inputs: &Inputs, model: &Model, workers: usize) -> Step {
    step(inputs, model, workers, around_ring(inputs, model.bytes, workers))
}

/// Gradients are summed by halves.
pub fn halving(inputs: &Inputs, model: &Model, workers: usize) -> Step {
    step(inputs, model, workers, by_halves(inputs, model.bytes, workers))
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
