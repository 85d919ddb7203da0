//! Runs a signature of a saved model: `saved_model DIR`. The model is that of `sdk/docs/saved-model.md`.

use std::{error::Error, process::ExitCode};
use tenon_import::{LoadOptions, SERVE, SavedModel};
use tenon_runtime::{Runtime, RuntimeOptions, framework::Tensor};

fn run(folder: &str) -> Result<(), Box<dyn Error>> {
    let (runtime, _) = Runtime::new(RuntimeOptions::default())?;
    let model = SavedModel::open(folder)?;
    println!("tags: {:?}", model.tag_sets());
    let model = model.load(&runtime, &[SERVE], &LoadOptions::default())?;
    for signature in model.signatures() {
        println!("{}: {} inputs", signature.key, signature.inputs.len());
    }

    let counted = model.signature("counted")?;
    let a = Tensor::from_slice(&[2], &[1.5f32, -2.0])?;
    let negate = Tensor::from_slice(&[], &[false])?;
    for _ in 0..2 {
        let results = counted.run(&[("a", a.clone()), ("negate", negate.clone())])?;
        let (a, count) = (results["a"].as_slice::<f32>()?, results["count"].as_slice::<i64>()?);
        println!("a = {a:?}, count = {count:?}");
    }
    Ok(())
}

fn main() -> ExitCode {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("expected the folder of a model");
        return ExitCode::from(2);
    };
    match run(&folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
