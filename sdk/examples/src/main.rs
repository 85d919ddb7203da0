//! Small programs, one in each module: `tenon-examples NAME` runs one.

mod build_graph;
mod cancel;
mod checkpoints;
mod devices;
mod gradients;
mod loops;
mod prepared_calls;
mod read_graph;
mod server;
mod trace;
mod training;
mod variables;

use std::{env, error::Error, process::ExitCode};

/// The `main` of an example.
type Main = fn() -> Result<(), Box<dyn Error>>;

const EXAMPLES: [(&str, Main); 12] = [
    ("build_graph", build_graph::main),
    ("read_graph", read_graph::main),
    ("prepared_calls", prepared_calls::main),
    ("devices", devices::main),
    ("variables", variables::main),
    ("loops", loops::main),
    ("gradients", gradients::main),
    ("training", training::main),
    ("checkpoints", checkpoints::main),
    ("server", server::main),
    ("cancel", cancel::main),
    ("trace", trace::main),
];

fn main() -> ExitCode {
    let name = env::args().nth(1).unwrap_or_default();
    let Some((_, run)) = EXAMPLES.iter().find(|(example, _)| *example == name) else {
        let names = EXAMPLES.map(|(example, _)| example).join(", ");
        eprintln!("usage: tenon-examples NAME, where NAME is one of {names}");
        return ExitCode::from(2);
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
