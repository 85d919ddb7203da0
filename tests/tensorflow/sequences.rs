//! Sequences of steps of one session, as TensorFlow's server gave them to its own client (tests/client/record.py):
//! state, functions and control flow.

use crate::graph_goldens::check;
use std::path::Path;
use tenon_runtime::{Runtime, Session, SessionOptions};
use tenon_testkit::graphs::{GraphGolden, read_sequences};
use tenon_tests::session::runtime;

/// Runs a sequence with state of its own; what is wrong with it.
fn run(runtime: &Runtime, golden: &GraphGolden) -> Result<(), String> {
    let options = SessionOptions { isolate_state: true, ..SessionOptions::default() };
    let session = Session::new(runtime, options);
    let session = session.map_err(|error| error.to_string())?;
    session.extend(&golden.graph).map_err(|error| error.to_string())?;
    for run in &golden.runs {
        check(&session, golden, run).map_err(|error| format!("step {}: {error}", run.number))?;
    }
    Ok(())
}

#[test]
fn sequences_give_what_tensorflow_gave() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/sequences");
    let goldens = read_sequences(&folder).unwrap();
    assert!(goldens.len() > 740, "found {}", goldens.len());
    let plugins = ["tenon_cpu", "tenon_data", "tenon_text", "tenon_train"];
    let runtime = runtime(&plugins, &[("cpu.devices", "2")]);
    let wrong: Vec<String> = goldens
        .iter()
        .filter_map(|golden| {
            run(&runtime, golden).err().map(|error| format!("{}: {error}", golden.name))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), goldens.len(), wrong.join("\n"));
}
