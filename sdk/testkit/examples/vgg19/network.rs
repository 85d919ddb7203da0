//! The layers.

use crate::weights::Weights;
use std::error::Error;
use tenon_runtime::{
    framework::{DType, PartialShape, Tensor},
    graph::{GraphBuilder, Output},
};

/// Convolutions of each block, with their output channels; a pooling follows each block.
const BLOCKS: [(usize, i64); 5] = [(2, 64), (2, 128), (4, 256), (4, 512), (4, 512)];
const HIDDEN: i64 = 4096;
const CLASSES: i64 = 1000;

/// What weights are in a graph: constants, or variables that start with them.
pub trait Parameters {
    /// A weight of these dimensions, whose value a node has.
    ///
    /// # Errors
    /// The graph refuses a node.
    fn parameter(
        &mut self,
        b: &mut GraphBuilder<'_>,
        name: &str,
        value: Output,
        dims: &[i64],
    ) -> Built<Output>;
}

/// Weights that never change.
pub struct Constants;

impl Parameters for Constants {
    fn parameter(
        &mut self,
        _: &mut GraphBuilder<'_>,
        _: &str,
        value: Output,
        _: &[i64],
    ) -> Built<Output> {
        Ok(value)
    }
}

/// Adds layers: with weights from a file, as what the parameters make of them.
struct Layers<'a, 'w> {
    weights: &'a Weights<'w>,
    parameters: &'a mut dyn Parameters,
}

/// VGG19, or a smaller network of the same layers.
pub struct Network {
    /// Rows and columns of the image.
    pub size: i64,
    /// Divides the number of channels.
    pub scale: i64,
}

/// What a part of the graph is, or why it cannot be built.
pub type Built<T> = Result<T, Box<dyn Error>>;

impl Network {
    /// From `image` [n, size, size, 3] to `probabilities` [n, 1000]. Returns their logits.
    ///
    /// # Errors
    /// The weights do not fit, or the graph refuses a node.
    pub fn build(
        &self,
        b: &mut GraphBuilder<'_>,
        weights: &Weights<'_>,
        parameters: &mut dyn Parameters,
    ) -> Built<Output> {
        let mut layers = Layers { weights, parameters };
        let shape = PartialShape::new(&[-1, self.size, self.size, 3])?;
        let mut x = b.placeholder("image", DType::FLOAT, shape)?;
        // Torchvision numbers its layers: a convolution and its ReLU are two, a pooling is one.
        let (mut layer, mut channels, mut size) = (0, 3, self.size);
        for (count, outputs) in BLOCKS {
            let outputs = outputs / self.scale;
            for _ in 0..count {
                x = layers.convolution(b, x, &format!("features.{layer}"), channels, outputs)?;
                layer += 2;
                channels = outputs;
            }
            x = pool(b, x)?;
            layer += 1;
            size /= 2;
        }
        let hidden = HIDDEN / self.scale;
        let flat = size * size * channels;
        let rows = b.constant("rows", Tensor::from_slice(&[2], &[-1, flat as i32])?)?;
        x = b.op("Reshape").input(x).input(rows).build()?.into();
        x = layers.dense(b, x, "classifier.0", [channels, size, size, hidden])?;
        x = b.op("Relu").input(x).build()?.into();
        x = layers.dense(b, x, "classifier.3", [hidden, 1, 1, hidden])?;
        x = b.op("Relu").input(x).build()?.into();
        x = layers.dense(b, x, "classifier.6", [hidden, 1, 1, CLASSES])?;
        b.op("Softmax").name("probabilities").input(x).build()?;
        Ok(x)
    }
}

impl Layers<'_, '_> {
    /// 3x3, bias, ReLU. The graph has the weights as the file has them, [outputs, inputs, 3, 3]; constant folding turns them
    /// into a filter when the step is compiled, and a variable begins as that filter.
    fn convolution(
        &mut self,
        b: &mut GraphBuilder<'_>,
        x: Output,
        layer: &str,
        inputs: i64,
        outputs: i64,
    ) -> Built<Output> {
        let name = format!("{layer}.weight");
        let filter = b.constant(&name, self.weights.get(&name, &[outputs, inputs, 3, 3])?)?;
        let filter = transposed(b, filter, &[2, 3, 1, 0])?;
        let filter = self.parameters.parameter(b, &name, filter, &[3, 3, inputs, outputs])?;
        let product = b.op("Conv2D").input(x).input(filter);
        let strides = vec![1_i64, 1, 1, 1];
        let product = product.attr("strides", strides).attr("padding", "SAME").build()?;
        let sum = self.biased(b, product.into(), layer, outputs)?;
        Ok(b.op("Relu").name(&format!("{layer}.relu")).input(sum).build()?.into())
    }

    /// A dense layer. The file's rows are outputs; its columns run over channels, rows and columns of the image, ours over
    /// rows, columns and channels.
    fn dense(
        &mut self,
        b: &mut GraphBuilder<'_>,
        x: Output,
        layer: &str,
        [channels, rows, columns, outputs]: [i64; 4],
    ) -> Built<Output> {
        let name = format!("{layer}.weight");
        let flat = channels * rows * columns;
        let matrix = self.weights.get(&name, &[outputs, flat])?;
        let matrix = b.constant(&name, matrix.reshaped(&[outputs, channels, rows, columns])?)?;
        let matrix = transposed(b, matrix, &[2, 3, 1, 0])?;
        let sizes = Tensor::from_slice(&[2], &[flat as i32, outputs as i32])?;
        let sizes = b.constant(&format!("{layer}.sizes"), sizes)?;
        let matrix = b.op("Reshape").input(matrix).input(sizes).build()?.into();
        let matrix = self.parameters.parameter(b, &name, matrix, &[flat, outputs])?;
        let product = b.op("MatMul").name(layer).input(x).input(matrix).build()?;
        self.biased(b, product.into(), layer, outputs)
    }

    fn biased(
        &mut self,
        b: &mut GraphBuilder<'_>,
        x: Output,
        layer: &str,
        outputs: i64,
    ) -> Built<Output> {
        let name = format!("{layer}.bias");
        let bias = b.constant(&name, self.weights.get(&name, &[outputs])?)?;
        let bias = self.parameters.parameter(b, &name, bias, &[outputs])?;
        Ok(b.op("BiasAdd").input(x).input(bias).build()?.into())
    }
}

fn pool(b: &mut GraphBuilder<'_>, x: Output) -> Built<Output> {
    let window = vec![1_i64, 2, 2, 1];
    let pool = b.op("MaxPool").input(x).attr("ksize", window.clone());
    Ok(pool.attr("strides", window).attr("padding", "VALID").build()?.into())
}

fn transposed(b: &mut GraphBuilder<'_>, x: Output, order: &[i32; 4]) -> Built<Output> {
    let name = format!("order_{}", b.graph().len());
    let order = b.constant(&name, Tensor::from_slice(&[4], order)?)?;
    Ok(b.op("Transpose").input(x).input(order).build()?.into())
}
