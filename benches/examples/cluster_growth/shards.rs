//! Parameter servers: each worker has a session of its own, gets the variables, computes, and gives the gradients back.
//!
//! The parameters are spread evenly over the shards. Steps are simulated transfer by transfer: one occupies the port of its
//! sender and that of its receiver for its bytes, in the order in which the workers are ready; a worker takes the shard next that
//! is free soonest. A shard further spends processor time on each part of a step, and on the bytes of each gradient. Synchronous
//! steps begin when all gradients of the one before have come.

use super::{
    Step,
    inputs::{Inputs, Model},
};
use std::{cmp::Reverse, collections::BinaryHeap};

/// Steps of each worker, of which the first ones are not counted: queues fill.
const STEPS: usize = 12;
const FIRST: usize = 4;

/// Until when the parts of a shard are occupied, and for how long they were.
#[derive(Debug, Clone, Copy, Default)]
struct Shard {
    out: f64,
    into: f64,
    processor: f64,
    link_busy: f64,
    processor_busy: f64,
}

/// What a worker does next, at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Event {
    time: f64,
    worker: usize,
    /// Whether it has computed, and gives its gradients.
    gives: bool,
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Event) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Event) -> std::cmp::Ordering {
        self.time.total_cmp(&other.time).then(self.worker.cmp(&other.worker))
    }
}

struct Simulation<'s> {
    inputs: &'s Inputs,
    model: &'s Model,
    shards: Vec<Shard>,
    events: BinaryHeap<Reverse<Event>>,
}

impl Simulation<'_> {
    /// Bytes of a shard.
    fn part(&self) -> f64 {
        self.model.bytes / self.shards.len() as f64
    }

    /// Takes the variables of all shards from this time on; when they are there.
    fn take(&mut self, time: f64) -> f64 {
        // Its master calls the shards one after the other.
        let calls = self.shards.len() as f64 * self.inputs.master_cpu;
        let (begin, per) =
            (time + self.inputs.call + calls + self.inputs.part, self.inputs.worker_cpu);
        for shard in &mut self.shards {
            shard.processor = shard.processor.max(begin) + per;
            shard.processor_busy += per;
        }
        let seconds = self.part() / self.inputs.rate;
        let mut port = begin;
        self.each(
            |shard| shard.out.max(shard.processor),
            |shard| {
                let end = shard.out.max(shard.processor).max(port) + seconds;
                (shard.out, port) = (end, end);
                shard.link_busy += seconds;
            },
        );
        port
    }

    /// Gives the gradients to all shards from this time on; when the last one is merged.
    fn give(&mut self, time: f64) -> f64 {
        let (seconds, merge) = (self.part() / self.inputs.rate, self.part() / self.inputs.merge);
        let (mut port, mut last) = (time, time);
        self.each(
            |shard| shard.into,
            |shard| {
                let end = shard.into.max(port) + seconds;
                (shard.into, port) = (end, end);
                shard.processor = shard.processor.max(end) + merge;
                shard.processor_busy += merge;
                last = last.max(shard.processor);
            },
        );
        last
    }

    /// Does something with each shard, those first that are free soonest.
    fn each(&mut self, free: impl Fn(&Shard) -> f64, mut with: impl FnMut(&mut Shard)) {
        let mut order: Vec<usize> = (0..self.shards.len()).collect();
        order.sort_by(|&a, &b| free(&self.shards[a]).total_cmp(&free(&self.shards[b])));
        order.into_iter().for_each(|at| with(&mut self.shards[at]));
    }

    /// Runs all steps; when each worker ended each of its steps.
    fn run(&mut self, workers: usize, is_synchronous: bool) -> Vec<Vec<f64>> {
        let mut ends = vec![Vec::with_capacity(STEPS); workers];
        let mut waiting = Vec::new();
        let starts = (0..workers).map(|worker| Reverse(Event { time: 0.0, worker, gives: false }));
        self.events.extend(starts);
        while let Some(Reverse(Event { time, worker, gives })) = self.events.pop() {
            if !gives {
                let time = self.take(time) + self.model.compute;
                self.events.push(Reverse(Event { time, worker, gives: true }));
                continue;
            }
            let end = self.give(time);
            ends[worker].push(end);
            if ends[worker].len() < STEPS {
                waiting.push(Event { time: end, worker, gives: false });
            }
            if !is_synchronous {
                self.events.extend(waiting.drain(..).map(Reverse));
            } else if self.events.is_empty() {
                let all = waiting.iter().fold(0.0, |most: f64, event| most.max(event.time));
                let next = waiting.drain(..).map(|event| Reverse(Event { time: all, ..event }));
                self.events.extend(next);
            }
        }
        ends
    }
}

/// A step with so many shards.
pub fn step(
    inputs: &Inputs,
    model: &Model,
    workers: usize,
    shards: usize,
    is_synchronous: bool,
) -> Step {
    let shards = vec![Shard::default(); shards];
    let mut simulation = Simulation { inputs, model, shards, events: BinaryHeap::new() };
    let ends = simulation.run(workers, is_synchronous);
    let counted = (STEPS - FIRST) as f64;
    let of_worker = |ends: &Vec<f64>| (ends[STEPS - 1] - ends[FIRST - 1]) / counted;
    let seconds = ends.iter().map(of_worker).sum::<f64>() / workers as f64;
    let busy = |of: fn(&Shard) -> f64| {
        let most = simulation.shards.iter().map(of).fold(0.0, f64::max);
        most / STEPS as f64
    };
    // The shards' time is shared by all workers: what a step of one of them waits for, if nothing else kept it waiting.
    let shares = vec![
        ("compute", model.compute),
        ("call", inputs.call + inputs.part),
        ("master", simulation.shards.len() as f64 * inputs.master_cpu),
        ("worker-link", 2.0 * model.bytes / inputs.rate),
        ("shard-link", busy(|shard| shard.link_busy)),
        ("shard-processor", busy(|shard| shard.processor_busy)),
    ];
    Step { seconds, shares }
}
