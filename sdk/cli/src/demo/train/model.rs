//! The graph of the training: the classifier of `tenon demo` with variables in the place of its constants, its loss, the
//! updates by the gradients, and what saves and restores the variables.

use crate::{demo::train::data::BATCH, error::CliError};
use tenon_runtime::{
    Runtime,
    framework::{DType, PartialShape, Tensor},
    graph::{GraphBuilder, Output},
};
use tenon_training::{
    Initial, SaverOptions, Scaffold, TrainError, Variable, VariableOptions, Variables, global_step,
    optimizer::{MinimizeOptions, Momentum, compute_gradients},
    schedule::Schedule,
    towers,
};

/// Names of layers, with the shapes of their weights. Biases have the length of the last dimension.
const LAYERS: [(&str, &[i64]); 4] = [
    ("conv1", &[3, 3, 1, 16]),
    ("conv2", &[3, 3, 16, 32]),
    ("dense1", &[128, 64]),
    ("dense2", &[64, 10]),
];
/// The learning rate at first; it falls in a line to a hundredth.
const RATE: f64 = 0.05;
const MOMENTUM: f64 = 0.9;
/// Where variables are, and where gradients are averaged.
const PARAMETERS: &str = "/device:CPU:0";

/// What is fed to a step.
pub const IMAGES: &str = "images";
/// What is fed to a step.
pub const LABELS: &str = "labels";
/// Images that are classified without an update.
pub const HELD_OUT: &str = "held_out";

/// A graph, and the names of what is run in it.
pub struct Model {
    /// The graph, with what initialises, saves and restores its variables.
    pub scaffold: Scaffold,
    /// The mean loss of a batch.
    pub loss: String,
    /// The update.
    pub train: String,
    /// The classes of the images that are fed as [`HELD_OUT`].
    pub classes: String,
    /// The weights.
    pub weights: Vec<String>,
}

impl Model {
    /// Builds the graph with one tower on each of `devices`, for a training of that many steps.
    ///
    /// # Errors
    /// A plugin with one of the ops is missing.
    pub fn build(runtime: &Runtime, devices: &[&str], steps: u64) -> Result<Model, CliError> {
        let registry = runtime.registry();
        build(&mut GraphBuilder::new(&registry), devices, steps).map_err(CliError::Train)
    }
}

fn build(b: &mut GraphBuilder<'_>, devices: &[&str], steps: u64) -> Result<Model, TrainError> {
    let mut variables = Variables::new();
    let weights = add_weights(b, &mut variables)?;
    let step = global_step(b, &mut variables)?;
    let batch = BATCH as i64;
    let images = b.placeholder(IMAGES, DType::FLOAT, PartialShape::new(&[batch, 8, 8, 1])?)?;
    let labels = b.placeholder(LABELS, DType::INT32, PartialShape::new(&[batch])?)?;
    let images = split(b, "split_images", images, devices.len())?;
    let labels = split(b, "split_labels", labels, devices.len())?;

    let known = variables.clone();
    let towers = towers(b, devices, PARAMETERS, |b, _, at| {
        let logits = network(b, images[at], &weights)?;
        let loss = mean_loss(b, logits, labels[at])?;
        Ok((loss, compute_gradients(b, &known, loss, &MinimizeOptions::default())?))
    })?;
    let rate = Schedule::linear(RATE, steps as f64, RATE / 100.0);
    let rate = rate.build(b, "rate", &step, DType::FLOAT)?;
    let optimizer = Momentum { momentum: MOMENTUM, ..Momentum::new(rate) };
    let (train, loss) = towers.synchronous(b, &mut variables, &optimizer, Some(&step))?;

    let held_out = b.placeholder(HELD_OUT, DType::FLOAT, PartialShape::new(&[-1, 8, 8, 1])?)?;
    let classes = b.with_name_scope("classify", |b| classify(b, held_out, &weights))?;
    let scaffold = Scaffold::build(b, &variables, SaverOptions::default())?;
    let graph = b.graph();
    Ok(Model {
        loss: graph.output_name(loss),
        train: graph.node(train).name.clone(),
        classes: graph.output_name(classes),
        weights: weights.iter().map(|weight| graph.output_name(weight.value)).collect(),
        scaffold,
    })
}

/// Adds weights and biases, one after the other: weights as He et al. (2015) draw them, biases of zeros.
fn add_weights(
    b: &mut GraphBuilder<'_>,
    variables: &mut Variables,
) -> Result<Vec<Variable>, TrainError> {
    let mut added = Vec::new();
    for (seed, (name, dims)) in (1..).zip(LAYERS) {
        let (outputs, inputs) =
            (dims[dims.len() - 1], dims[..dims.len() - 1].iter().product::<i64>());
        let drawn =
            Initial::TruncatedNormal { stddev: (2.0 / inputs as f64).sqrt(), seed: (seed, 1) };
        let parameters: [(_, &[i64], _); 2] =
            [("weights", dims, drawn), ("bias", &[outputs], Initial::Zeros)];
        for (kind, dims, initial) in parameters {
            let (name, device) = (format!("{name}/{kind}"), PARAMETERS.to_owned());
            let options = VariableOptions { device, ..VariableOptions::default() };
            added.push(variables.add_with(b, &name, DType::FLOAT, dims, &initial, options)?);
        }
    }
    Ok(added)
}

/// Equal parts along the first dimension.
fn split(
    b: &mut GraphBuilder<'_>,
    name: &str,
    value: Output,
    parts: usize,
) -> Result<Vec<Output>, TrainError> {
    if parts == 1 {
        return Ok(vec![value]);
    }
    let axis = b.constant(&format!("{name}/axis"), Tensor::scalar(0i32)?)?;
    let split = b.op("Split").name(name).device(PARAMETERS).input(axis).input(value);
    let node = split.attr("num_split", parts as i64).build()?;
    Ok((0..parts as u32).map(|output| Output { node, output }).collect())
}

/// The logits of images.
fn network(
    b: &mut GraphBuilder<'_>,
    images: Output,
    weights: &[Variable],
) -> Result<Output, TrainError> {
    let mut x = images;
    for (at, layer) in weights.chunks_exact(2).enumerate() {
        let [weight, bias] = [0, 1].map(|of| layer[of].value);
        let is_convolution = at < 2;
        let op = match is_convolution {
            true => b.op("Conv2D").attr("strides", vec![1i64; 4]).attr("padding", "SAME"),
            false => b.op("MatMul"),
        };
        let product = op.input(x).input(weight).build()?;
        x = b.op("BiasAdd").input(product).input(bias).build()?.into();
        if at < 3 {
            x = b.op("Relu").input(x).build()?.into();
        }
        if is_convolution {
            let window = vec![1i64, 2, 2, 1];
            let pool = b.op("MaxPool").input(x).attr("ksize", window.clone());
            x = pool.attr("strides", window).attr("padding", "VALID").build()?.into();
        }
        if at == 1 {
            let flat = b.op("Const").attr("dtype", DType::INT32);
            let flat = flat.attr("value", Tensor::from_slice(&[2], &[-1i32, 128])?).build()?;
            x = b.op("Reshape").input(x).input(flat).build()?.into();
        }
    }
    Ok(x)
}

fn mean_loss(
    b: &mut GraphBuilder<'_>,
    logits: Output,
    labels: Output,
) -> Result<Output, TrainError> {
    let losses = b.op("SparseSoftmaxCrossEntropyWithLogits").input(logits).input(labels).build()?;
    let axis = b.op("Const").attr("dtype", DType::INT32);
    let axis = axis.attr("value", Tensor::from_slice(&[1], &[0i32])?).build()?;
    Ok(b.op("Mean").input(losses).input(axis).build()?.into())
}

fn classify(
    b: &mut GraphBuilder<'_>,
    images: Output,
    weights: &[Variable],
) -> Result<Output, TrainError> {
    let logits = network(b, images, weights)?;
    let axis = b.op("Const").attr("dtype", DType::INT32).attr("value", Tensor::scalar(1i32)?);
    let axis = axis.build()?;
    Ok(b.op("ArgMax").input(logits).input(axis).build()?.into())
}
