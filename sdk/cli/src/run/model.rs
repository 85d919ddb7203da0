//! Models that TensorFlow or Keras saved, as what `tenon run` runs.

use super::{RunArgs, Work};
use crate::{error::CliError, progress::NamedSteps};
use std::{path::PathBuf, sync::Arc};
use tenon_import::{Argument, LoadOptions, LoadedModel, SERVE, SavedModel, SignatureInfo, Stage};
use tenon_runtime::{Runtime, SessionOptions, framework::Tensor};
use tenon_testkit::npy;

/// The signature that runs where none is named.
const DEFAULT: &str = "serving_default";

/// Fails where options make no sense for a model.
pub fn check(args: &RunArgs) -> Result<(), CliError> {
    if !args.place_by_cost {
        return Ok(());
    }
    let (option, file, expected) =
        ("--place-by-cost", args.graph.clone(), "a graph without variables (GRAPH.pb)");
    Err(CliError::OptionOf { option, file, expected })
}

/// Loads the model, and reads the feeds of its signature.
pub fn open(runtime: &Runtime, args: &RunArgs) -> Result<Work, CliError> {
    let model = load(runtime, args)?;
    let key = args.signature.as_deref().unwrap_or(DEFAULT);
    let info = model.info(key)?;
    model.check_ops(key)?;
    let feeds = read_feeds(info, &args.feeds)?;
    let outputs: Vec<&Argument> = match args.fetches.as_slice() {
        [] => info.outputs.iter().collect(),
        names => names.iter().map(|name| info.output(name)).collect::<Result<_, _>>()?,
    };
    Ok(Work {
        session: Arc::clone(model.session()),
        feeds: info.inputs.iter().map(|input| input.tensor.clone()).zip(feeds).collect(),
        fetches: outputs.iter().map(|output| output.tensor.clone()).collect(),
        targets: args.targets.clone(),
        shown: outputs.iter().map(|output| output.name.clone()).collect(),
    })
}

fn load(runtime: &Runtime, args: &RunArgs) -> Result<LoadedModel, CliError> {
    let steps = Arc::new(NamedSteps::new("loading"));
    let told = Arc::clone(&steps);
    let options = LoadOptions {
        session: SessionOptions { device: args.device.clone(), ..SessionOptions::default() },
        progress: Some(Arc::new(move |stage| {
            let at = match stage {
                Stage::Import => 0,
                Stage::Restore => 1,
                Stage::Initialize => 2,
            };
            told.at(at, 3, &stage.to_string());
        })),
        ..LoadOptions::default()
    };
    let tags: Vec<&str> = match args.tags.as_slice() {
        [] => vec![SERVE],
        tags => tags.iter().map(String::as_str).filter(|tag| !tag.is_empty()).collect(),
    };
    let loaded = SavedModel::open(&args.graph)?.load(runtime, &tags, &options);
    drop(options);
    if let Some(steps) = Arc::into_inner(steps) {
        steps.finish();
    }
    Ok(loaded?)
}

/// The values of all inputs of a signature, each as the type that the signature has there.
fn read_feeds(info: &SignatureInfo, feeds: &[(String, PathBuf)]) -> Result<Vec<Tensor>, CliError> {
    let read = |(name, file): &(String, PathBuf)| {
        let input = info.input(name)?;
        Ok((input.name.as_str(), npy::read(file, input.dtype)?))
    };
    let given = feeds.iter().map(read).collect::<Result<Vec<(&str, Tensor)>, CliError>>()?;
    Ok(info.complete(&given)?)
}
