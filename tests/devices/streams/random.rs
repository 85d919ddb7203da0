//! Random graphs on one stream and on several.

use super::support::*;
use std::collections::BTreeMap;
use tenon_graph::{GraphBuilder, GraphError, Output};
use tenon_runtime::{Runtime, framework::PartialShape};
use tenon_tests::session::{Account, run, runtime, session, turn};

/// Marsaglia, "Xorshift RNGs", 2003.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// A graph that `seed` decides: up to 40 nodes on two accelerators and the CPU, with control edges.
fn random_graph(b: &mut GraphBuilder<'_>, seed: u64, length: i64) -> Result<(), GraphError> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let shape = if seed.is_multiple_of(3) { PartialShape::UNKNOWN } else { vector(length) };
    let mut made = vec![input(b, "x", shape.clone())?, input(b, "w", shape)?];
    for at in 0..10 + random.below(30) {
        let on = random.of(&[ACCEL, ACCEL, ACCEL, ACCEL, ACCEL, "/device:ACCEL:1", CPU]);
        let unary = random.below(3) == 0;
        let op = match unary {
            true => random.of(&["Neg", "Relu", "Tanh"]),
            false => random.of(&["Add", "Sub", "Maximum", "Minimum"]),
        };
        let name = format!("n{at}");
        let mut node = b.op(op).name(&name).device(on).input(made[random.below(made.len())]);
        if !unary {
            node = node.input(made[random.below(made.len())]);
        }
        if random.below(5) == 0 {
            node = node.control(made[random.below(made.len())].node);
        }
        made.push(node.build()?.into());
    }
    let last: Vec<Output> = made.iter().rev().take(5).copied().collect();
    b.op("AddN").name("sum").inputs(last).device(CPU).build().map(|_| ())
}

/// What three steps over a graph give.
fn steps(runtime: &Runtime, seed: u64, length: i64) -> Vec<Vec<Vec<u32>>> {
    let session = session(runtime, |b| random_graph(b, seed, length));
    let step = |at: usize| {
        let feeds = [("x", feed(length, at)), ("w", feed(length, at + 50))];
        let fetched = run(&session, &feeds, &["sum", "n3", "n7", "n9"]);
        bits(&fetched.unwrap_or_else(|error| panic!("seed {seed}: {error}")))
    };
    (0..3).map(step).collect()
}

#[test]
fn random_graphs_give_the_same_bits_on_one_stream_and_on_several() {
    let _turn = turn();
    let before = Account::now();
    let graphs = || (0..60u64).map(|seed| (seed, if seed.is_multiple_of(4) { LARGE } else { 7 }));
    let one: BTreeMap<u64, _> = {
        let runtime = runtime(BOTH, &[("runtime.streams_per_device", "1")]);
        graphs().map(|(seed, length)| (seed, steps(&runtime, seed, length))).collect()
    };
    for (streams, order) in [("4", "0"), ("4", "17"), ("4", "23"), ("2", "31"), ("9", "47")] {
        let knobs = [
            ("runtime.streams_per_device", streams),
            ("accel.streams", streams),
            ("accel.reorder_seed", order),
        ];
        let runtime = runtime(BOTH, &knobs);
        for (seed, length) in graphs() {
            let found = steps(&runtime, seed, length);
            assert!(found == one[&seed], "graph {seed} on {streams} streams, order {order}");
        }
    }
    before.check("after the devices are closed");
}
