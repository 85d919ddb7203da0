//! Saved models.

use crate::{
    client::{
        handle::Handle,
        info::ValueInfo,
        runtime::{Runtime, texts},
        status::Status,
        step::{Asked, RunOptions, forget, write},
        tensor::Tensor,
        text::List,
        versioned::{Filled, Options},
    },
    fail::Failure,
    raw::{Array, Out, Text},
};
use std::ffi::c_int;
use tenon_framework::{Code, Tensor as Value};
use tenon_import::{Argument, LoadOptions, LoadedModel, SERVE, SavedModel, SignatureInfo};

/// A saved model that is ready to run.
pub struct Model(LoadedModel);

kept! { Model => "a model" }

/// The signature that a null key means.
const SERVING: &str = "serving_default";

fn load(runtime: &tenon_runtime::Runtime, folder: &str, tags: &[&str]) -> Result<Model, Failure> {
    let tags = if tags.is_empty() { &[SERVE] } else { tags };
    let options = LoadOptions::default();
    Ok(Model(SavedModel::open(folder)?.load(runtime, tags, &options)?))
}

impl Model {
    fn key(key: Text<'_>) -> Result<&str, Failure> {
        key.get().map_or(Ok(SERVING), |_| key.required("the key of the signature"))
    }

    fn signature(&self, key: Text<'_>) -> Result<&SignatureInfo, Failure> {
        Ok(self.0.info(Model::key(key)?)?)
    }

    /// Runs a signature, and gives the results that were asked for.
    fn run(
        &self,
        key: &str,
        asked: &Asked,
        inputs: &[(&str, Value)],
        outputs: &[&str],
    ) -> Result<Vec<Value>, Failure> {
        let signature = self.0.signature(key)?;
        let known = signature.info();
        for name in outputs {
            known.output(name)?;
        }
        let made = signature.run_with(inputs, &asked.run)?;
        asked.tell(&signature.callable().nodes()?)?;
        outputs.iter().map(|name| made.get(*name).cloned().ok_or_else(|| lost(name))).collect()
    }
}

fn lost(name: &str) -> Failure {
    Failure::new(Code::INTERNAL, format!("result '{name}' was not given; please report it"))
}

fn tell(argument: &Argument, info: &Filled<'_, ValueInfo>) -> Result<bool, Failure> {
    info.set(&ValueInfo::of(argument.dtype, &argument.shape))?;
    Ok(true)
}

api! {
    /// Loads a SavedModel: imports the graph that has exactly these tags, restores its variables, and runs its initial op. No tags mean
    /// "serve" alone. The caller deletes the model.
    fn tn_model_load(
        runtime: Handle<Runtime>,
        folder: Text<'_>,
        tags: Array<'_, Text<'_>>,
        tag_count: usize,
        status: Option<&mut Status>,
    ) -> Handle<Model> [status] {
        let folder = folder.required("the folder of the model")?;
        let tags = texts(tags, tag_count, "a tag of the graph")?;
        load(&runtime.get()?.0, folder, &tags).map(Handle::new)
    }

    /// Deletes a model.
    fn tn_model_delete(model: Handle<Model>) -> c_int { model.delete() }

    /// The keys of its signatures, sorted. The caller deletes the list.
    fn tn_model_signatures(model: Handle<Model>, status: Option<&mut Status>) -> Handle<List> [status] {
        let model = model.get()?;
        Ok(List::of(model.0.signatures().map(|signature| signature.key.as_str())))
    }

    /// The names of the inputs of a signature; a null key means "serving_default". The caller deletes the list.
    fn tn_model_inputs(
        model: Handle<Model>,
        signature: Text<'_>,
        status: Option<&mut Status>,
    ) -> Handle<List> [status] {
        let model = model.get()?;
        Ok(List::of(model.signature(signature)?.inputs.iter().map(|it| it.name.as_str())))
    }

    /// The names of the outputs of a signature; a null key means "serving_default". The caller deletes the list.
    fn tn_model_outputs(
        model: Handle<Model>,
        signature: Text<'_>,
        status: Option<&mut Status>,
    ) -> Handle<List> [status] {
        let model = model.get()?;
        Ok(List::of(model.signature(signature)?.outputs.iter().map(|it| it.name.as_str())))
    }

    /// Writes the element type and the shape of an input of a signature.
    fn tn_model_input_info(
        model: Handle<Model>,
        signature: Text<'_>,
        name: Text<'_>,
        info: Filled<'_, ValueInfo>,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let (model, name) = (model.get()?, name.required("the name of the input")?);
        tell(model.signature(signature)?.input(name)?, &info)
    }

    /// Writes the element type and the shape of an output of a signature.
    fn tn_model_output_info(
        model: Handle<Model>,
        signature: Text<'_>,
        name: Text<'_>,
        info: Filled<'_, ValueInfo>,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let (model, name) = (model.get()?, name.required("the name of the output")?);
        tell(model.signature(signature)?.output(name)?, &info)
    }

    /// Runs a signature with inputs by name, in any order; one that has a default may be left out. Writes the values of "outputs" as
    /// new tensors, which the caller deletes. A null key means "serving_default"; "options" may be null. The step of a signature
    /// is compiled at its first call. On failure all results are null.
    fn tn_model_run(
        model: Handle<Model>,
        signature: Text<'_>,
        options: Options<'_, RunOptions>,
        inputs: Array<'_, Text<'_>>,
        values: Array<'_, Handle<Tensor>>,
        input_count: usize,
        outputs: Array<'_, Text<'_>>,
        results: Out<'_, Handle<Tensor>>,
        output_count: usize,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let outputs = texts(outputs, output_count, "an output")?;
        forget(&results, output_count)?;
        let model = model.get()?;
        let asked = Asked::read(&options, None)?;
        let names = texts(inputs, input_count, "an input")?;
        let values = values.objects(input_count, "the values of the inputs")?;
        let values = values.iter().map(|tensor| tensor.value.clone());
        let inputs: Vec<(&str, Value)> = names.into_iter().zip(values).collect();
        write(&results, model.run(Model::key(signature)?, &asked, &inputs, &outputs)?)?;
        Ok(true)
    }
}
