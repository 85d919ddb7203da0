//! Runs steps of a graph, and nothing else: what `benches/callgrind` counts instructions of.
//!
//! ```text
//! steps chain_1000 200
//! ```
//! Two runs of different length differ by their steps alone.

use tenon_benches::{
    Failure, callable, chain, check_calls, filled, mixed, runtime, session, subgraph, wide,
};
use tenon_runtime::graph::{GraphBuilder, GraphError};

type Make = fn(&mut GraphBuilder<'_>) -> Result<(), GraphError>;

/// The graphs: name, kernels per step, dimensions of what is fed, how one is built.
const GRAPHS: [(&str, usize, &[i64], Make); 5] = [
    ("chain_1000", 1000, &[1], |b| chain(b, 1000)),
    ("mixed_1000", 1000, &[1], |b| mixed(b, 1000)),
    ("wide_1000", 1001, &[1], |b| wide(b, 1000)),
    ("run_1", 1, &[1], |b| chain(b, 1)),
    ("subgraph", 3, &[1, 64], subgraph),
];

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let (name, steps) = (args.next(), args.next());
    let names = GRAPHS.map(|(name, ..)| name).join(", ");
    let name = name.ok_or_else(|| format!("say which graph: {names}"))?;
    let steps: usize = steps.ok_or("say how many steps")?.parse()?;
    let found = GRAPHS.iter().find(|(known, ..)| *known == name);
    let &(_, kernels, dims, make) =
        found.ok_or_else(|| format!("no graph is named {name}: there are {names}"))?;
    let runtime = runtime()?;
    let x = filled(dims, |_| 0.5);
    check_calls(&runtime, kernels, &x, make)?;
    let session = session(&runtime, false, make)?;
    let callable = callable(&session)?;
    let (feeds, mut fetched) = ([x], Vec::new());
    for _ in 0..steps {
        callable.run(&feeds, &mut fetched)?;
    }
    println!("{kernels}");
    Ok(())
}
