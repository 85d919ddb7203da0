//! How the time of a training step grows from 1 to 1,000 workers, by a model whose inputs were measured between two tasks.
//!
//!     cargo run --release -p tenon-benches --example cluster_growth
//!
//! Nobody here has a thousand machines: this says what the measured costs add up to, and which resource is full first. Each
//! worker and each shard of the parameters is taken to be a machine of its own, with the link that two tasks had over TCP, full
//! in both directions at once, behind a switch that is never full. What is left out makes real clusters slower: no worker is
//! late, nothing fails, and links to far machines have no further latency.
//!
//! Prints JSON lines: the inputs; what the model says of rows that were measured with two tasks and are not inputs, beside them;
//! a line for each model, method and number of workers; and where each method breaks, which is where half of the workers' time is
//! lost.
//!
//! | file | content |
//! |---|---|
//! | `inputs.rs` | the measured costs, from the records |
//! | `collective.rs` | sums around a ring and by halves, and one master for all workers |
//! | `shards.rs` | parameter servers, simulated transfer by transfer |

mod collective;
mod inputs;
mod shards;

use inputs::{Inputs, Model};
use serde_json::json;
use tenon_benches::Failure;

/// The numbers of workers.
const WORKERS: [usize; 11] = [1, 2, 4, 8, 16, 32, 64, 125, 250, 500, 1000];
/// The numbers of shards of the parameters.
const SHARDS: [usize; 3] = [1, 8, 64];
/// The part of the workers' time below which a method is said to break.
const HALF: f64 = 0.5;

/// A step of all workers: what one of them waits for, in seconds by resource.
#[derive(Debug, Clone, Default)]
pub struct Step {
    /// From the end of a step to that of the next one, of one worker.
    pub seconds: f64,
    /// What it consists of, or how busy what is shared was; the largest one besides the computation is what bounds it.
    pub shares: Vec<(&'static str, f64)>,
}

impl Step {
    /// A step whose parts follow each other.
    pub fn of(shares: Vec<(&'static str, f64)>) -> Step {
        Step { seconds: shares.iter().map(|(_, seconds)| seconds).sum(), shares }
    }

    /// What takes most of it besides the computation.
    fn bound(&self) -> &'static str {
        let others = self.shares.iter().filter(|(name, _)| *name != "compute");
        others.max_by(|a, b| a.1.total_cmp(&b.1)).map_or("nothing", |(name, _)| name)
    }
}

/// How the workers exchange gradients.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Method {
    Ring,
    Halving,
    Master,
    Shards { count: usize, is_synchronous: bool },
}

impl Method {
    fn all() -> Vec<Method> {
        let shards = [true, false].into_iter().flat_map(|is_synchronous| {
            SHARDS.map(|count| Method::Shards { count, is_synchronous })
        });
        [Method::Ring, Method::Halving, Method::Master].into_iter().chain(shards).collect()
    }

    fn name(self) -> String {
        match self {
            Method::Ring => "ring".to_owned(),
            Method::Halving => "halving".to_owned(),
            Method::Master => "one-master".to_owned(),
            Method::Shards { count, is_synchronous } => {
                format!("ps-{count}-{}", if is_synchronous { "sync" } else { "async" })
            }
        }
    }

    fn step(self, inputs: &Inputs, model: &Model, workers: usize) -> Step {
        match self {
            Method::Ring => collective::ring(inputs, model, workers),
            Method::Halving => collective::halving(inputs, model, workers),
            Method::Master => collective::one_master(inputs, model, workers),
            Method::Shards { count, is_synchronous } => {
                shards::step(inputs, model, workers, count, is_synchronous)
            }
        }
    }
}

/// The part of the workers' time that is left for the step of one worker alone.
fn efficiency(inputs: &Inputs, model: &Model, step: &Step) -> f64 {
    (model.compute + inputs.call) / step.seconds
}

/// Prints the lines of a method, and where it breaks.
fn grow(inputs: &Inputs, model: &Model, method: Method) {
    let mut last: Option<usize> = None;
    let mut breaks = None;
    for workers in WORKERS {
        let step = method.step(inputs, model, workers);
        let efficiency = efficiency(inputs, model, &step);
        let shares: serde_json::Map<_, _> = step
            .shares
            .iter()
            .map(|(name, seconds)| ((*name).to_owned(), json!(seconds * 1e3)))
            .collect();
        println!(
            "{}",
            json!({
                "bench": "cluster_growth", "model": model.name, "method": method.name(), "workers": workers,
                "step_ms": step.seconds * 1e3, "efficiency": efficiency, "speedup": efficiency * workers as f64,
                "bound": step.bound(), "shares_ms": shares,
            })
        );
        if efficiency >= HALF {
            last = Some(workers);
        } else if breaks.is_none() {
            breaks = Some((workers, step.bound()));
        }
    }
    let (at, bound) = breaks.unzip();
    println!(
        "{}",
        json!({
            "bench": "cluster_growth/breaks", "model": model.name, "method": method.name(), "half_up_to": last,
            "breaks_at": at, "bound": bound,
        })
    );
}

fn main() -> Result<(), Failure> {
    let inputs = Inputs::read()?;
    println!("{}", inputs.line());
    inputs.compare()?.iter().for_each(|line| println!("{line}"));
    for model in Model::all()? {
        for method in Method::all() {
            grow(&inputs, &model, method);
        }
    }
    Ok(())
}
