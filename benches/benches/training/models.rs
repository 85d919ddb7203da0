//! The models.

use super::recurrent::Loop;
use tenon_benches::Failure;
use tenon_framework::{DType, Tensor};
use tenon_runtime::graph::{GraphBuilder, Output};
use tenon_training::{
    Initial, Variable, Variables,
    optimizer::{Adagrad, Adam, GradientDescent, MinimizeOptions, Momentum, Optimizer},
};

/// A model with its data and its optimiser.
#[derive(Debug)]
pub struct Model {
    /// The name, which the peers' script has too.
    pub name: &'static str,
    kind: Kind,
    batch: i64,
    optimizer: Rule,
}

#[derive(Debug)]
enum Kind {
    /// Layers of these sizes, with ReLU between them.
    Layers(&'static [i64]),
    /// Two convolutions of 5x5 with poolings, and two layers, on images of 28x28.
    Convolutions,
    /// A residual network.
    Residual,
    /// One layer of LSTM.
    Recurrent(Loop),
    /// Rows of a table of a million, of which some are read.
    Table,
}

#[derive(Debug)]
enum Rule {
    Sgd,
    Momentum,
    Adam,
    Adagrad,
}

const fn model(name: &'static str, kind: Kind, batch: i64, optimizer: Rule) -> Model {
    Model { name, kind, batch, optimizer }
}

const DIGITS: &[i64] = &[784, 512, 512, 10];

/// All models.
pub const MODELS: [Model; 10] = [
    model("mlp-tiny", Kind::Layers(&[64, 64, 64, 10]), 1, Rule::Sgd),
    model("mlp-sgd", Kind::Layers(DIGITS), 32, Rule::Sgd),
    model("mlp-momentum", Kind::Layers(DIGITS), 32, Rule::Momentum),
    model("mlp-adam", Kind::Layers(DIGITS), 32, Rule::Adam),
    model("mlp-big", Kind::Layers(&[784, 4096, 4096, 10]), 64, Rule::Sgd),
    model("cnn", Kind::Convolutions, 32, Rule::Sgd),
    model("resnet20-cifar", Kind::Residual, 32, Rule::Sgd),
    model("lstm-v1", Kind::Recurrent(Loop::Frame), 16, Rule::Sgd),
    model("lstm-v2", Kind::Recurrent(Loop::Functions), 16, Rule::Sgd),
    model("embed", Kind::Table, 4096, Rule::Adagrad),
];

/// Rows and columns of the table.
const TABLE: [i64; 2] = [1_000_000, 64];
/// The learning rate; Adam's is a tenth of it.
const RATE: f64 = 0.01;

/// The names of what is run.
pub struct Built {
    /// Gives the variables their values.
    pub init: String,
    /// The loss before a step.
    pub loss: String,
    /// A step.
    pub train: String,
}

/// Numbers between `-scale` and `scale` that look random, and that the peers' script computes too: a hash of 32 bits (the
/// finaliser of MurmurHash3) of the position and a seed.
fn numbers(dims: &[i64], seed: u32, scale: f32) -> Result<Tensor, Failure> {
    let count = dims.iter().product::<i64>();
    let values: Vec<f32> = (0..count as u32)
        .map(|at| {
            let unit = f64::from(hash(at, seed)) / f64::from(u32::MAX);
            (2.0 * unit - 1.0) as f32 * scale
        })
        .collect();
    Ok(Tensor::from_slice(dims, &values)?)
}

fn hash(at: u32, seed: u32) -> u32 {
    let mut x = at ^ seed.wrapping_mul(0x9e37_79b9);
    x = (x ^ x >> 16).wrapping_mul(0x85eb_ca6b);
    x = (x ^ x >> 13).wrapping_mul(0xc2b2_ae35);
    x ^ x >> 16
}

/// Adds layers, and gives every variable a seed of its own.
pub struct Layers<'b, 'r> {
    /// The graph.
    pub b: &'b mut GraphBuilder<'r>,
    variables: Variables,
    seed: u32,
}

impl Layers<'_, '_> {
    /// Numbers between -1 and 1, as data.
    pub fn data(&mut self, dims: &[i64]) -> Result<Output, Failure> {
        Ok(self.b.constant("x", numbers(dims, 100, 1.0)?)?)
    }

    /// A variable of numbers between `-scale` and `scale`.
    pub fn variable(&mut self, dims: &[i64], scale: f32) -> Result<Variable, Failure> {
        let first = numbers(dims, self.seed + 1, scale)?;
        self.starting(dims, first)
    }

    /// A variable that begins with one number everywhere.
    pub fn filled(&mut self, dims: &[i64], value: f32) -> Result<Variable, Failure> {
        let count = dims.iter().product::<i64>() as usize;
        self.starting(dims, Tensor::from_slice(dims, &vec![value; count])?)
    }

    fn starting(&mut self, dims: &[i64], first: Tensor) -> Result<Variable, Failure> {
        self.seed += 1;
        let initial = Initial::Value(first);
        let name = format!("v{}", self.seed);
        Ok(self.variables.add(self.b, &name, DType::FLOAT, dims, &initial)?)
    }

    /// Weights, about as large as He et al. (2015) draw them, and a bias of zeros.
    pub fn parameters(&mut self, dims: &[i64]) -> Result<[Variable; 2], Failure> {
        let outputs = dims[dims.len() - 1];
        let inputs: i64 = dims[..dims.len() - 1].iter().product();
        let weights = self.variable(dims, (6.0 / inputs as f32).sqrt())?;
        Ok([weights, self.filled(&[outputs], 0.0)?])
    }

    /// `op(x, weights) + bias`, with a ReLU unless the layer is the last one.
    pub fn layer(&mut self, x: Output, dims: &[i64], is_last: bool) -> Result<Output, Failure> {
        let [weights, bias] = self.parameters(dims)?;
        let op = match dims.len() {
            4 => self.b.op("Conv2D").attr("strides", vec![1i64; 4]).attr("padding", "SAME"),
            _ => self.b.op("MatMul"),
        };
        let product = op.input(x).input(weights.value).build()?;
        let sum = self.b.op("BiasAdd").input(product).input(bias.value).build()?;
        if is_last {
            return Ok(sum.into());
        }
        Ok(self.b.op("Relu").input(sum).build()?.into())
    }

    fn pool(&mut self, x: Output) -> Result<Output, Failure> {
        let window = vec![1i64, 2, 2, 1];
        let pool = self.b.op("MaxPool").input(x).attr("ksize", window.clone());
        Ok(pool.attr("strides", window).attr("padding", "SAME").build()?.into())
    }

    fn dense(&mut self, batch: i64, sizes: &[i64]) -> Result<Output, Failure> {
        let mut x = self.data(&[batch, sizes[0]])?;
        for (at, pair) in sizes.windows(2).enumerate() {
            x = self.layer(x, pair, at + 2 == sizes.len())?;
        }
        Ok(x)
    }

    fn convolutions(&mut self, batch: i64) -> Result<Output, Failure> {
        let mut x = self.data(&[batch, 28, 28, 1])?;
        for dims in [[5, 5, 1, 32], [5, 5, 32, 64]] {
            x = self.layer(x, &dims, false)?;
            x = self.pool(x)?;
        }
        let flat = self.b.constant("flat", Tensor::from_slice(&[2], &[-1i32, 3136])?)?;
        x = self.b.op("Reshape").input(x).input(flat).build()?.into();
        x = self.layer(x, &[3136, 512], false)?;
        self.layer(x, &[512, 10], true)
    }

    /// The mean cross entropy with classes that look random.
    fn cross_entropy(&mut self, logits: Output, batch: i64) -> Result<Output, Failure> {
        let labels: Vec<i32> = (0..batch as u32).map(|at| (hash(at, 200) % 10) as i32).collect();
        let labels = self.b.constant("labels", Tensor::from_slice(&[batch], &labels)?)?;
        let losses = self.b.op("SparseSoftmaxCrossEntropyWithLogits").input(logits).input(labels);
        let losses = losses.build()?;
        self.mean(losses.into())
    }

    fn mean(&mut self, losses: Output) -> Result<Output, Failure> {
        let axis = self.b.constant("axis", Tensor::from_slice(&[1], &[0i32])?)?;
        Ok(self.b.op("Mean").name("loss").input(losses).input(axis).build()?.into())
    }

    /// The mean over rows of half the sum of the squares of what is read.
    fn table(&mut self, count: i64) -> Result<Output, Failure> {
        let table = self.variable(&TABLE, 0.05)?;
        let rows: Vec<i32> =
            (0..count as u32).map(|at| (hash(at, 300) % TABLE[0] as u32) as i32).collect();
        let rows = self.b.constant("rows", Tensor::from_slice(&[count], &rows)?)?;
        let read = self.b.op("ResourceGather").input(table.handle).input(rows);
        let read = read.attr("dtype", DType::FLOAT).build()?;
        let total = self.b.op("L2Loss").input(read).build()?;
        let count = self.b.constant("count", Tensor::scalar(count as f32)?)?;
        Ok(self.b.op("RealDiv").name("loss").input(total).input(count).build()?.into())
    }
}

/// Adds a model with its gradients and updates.
///
/// # Errors
/// A plugin is missing.
pub fn build(b: &mut GraphBuilder<'_>, model: &Model) -> Result<Built, Failure> {
    let mut layers = Layers { b, variables: Variables::new(), seed: 0 };
    let loss = match model.kind {
        Kind::Layers(sizes) => {
            let logits = layers.dense(model.batch, sizes)?;
            layers.cross_entropy(logits, model.batch)?
        }
        Kind::Convolutions => {
            let logits = layers.convolutions(model.batch)?;
            layers.cross_entropy(logits, model.batch)?
        }
        Kind::Residual => {
            let logits = layers.residual(model.batch)?;
            layers.cross_entropy(logits, model.batch)?
        }
        Kind::Recurrent(how) => {
            let logits = layers.recurrent(model.batch, how)?;
            layers.cross_entropy(logits, model.batch)?
        }
        Kind::Table => layers.table(model.batch)?,
    };
    let Layers { b, mut variables, .. } = layers;
    let optimizer: Box<dyn Optimizer> = match model.optimizer {
        Rule::Sgd => Box::new(GradientDescent::new(RATE)),
        Rule::Momentum => Box::new(Momentum { momentum: 0.9, ..Momentum::new(RATE) }),
        Rule::Adam => Box::new(Adam::new(RATE / 10.0)),
        Rule::Adagrad => Box::new(Adagrad::new(RATE)),
    };
    let options = MinimizeOptions::default();
    let train = optimizer.minimize(b, &mut variables, loss, &options)?;
    let init = variables.initializer(b, "init")?;
    let graph = b.graph();
    Ok(Built {
        init: graph.node(init).name.clone(),
        loss: graph.output_name(loss),
        train: graph.node(train).name.clone(),
    })
}
