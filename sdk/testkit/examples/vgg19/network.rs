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

/// VGG19, or a smaller network of the same layers.
pub struct Network {
    /// Rows and columns of the image.
    pub size: i64,
    /// Divides the number of channels.
    pub scale: i64,
}

type Built<T> = Result<T, Box<dyn Error>>;

impl Network {
    /// From `image` [n, size, size, 3] to `probabilities` [n, 1000].
    pub fn build(&self, b: &mut GraphBuilder<'_>, weights: &Weights<'_>) -> Built<()> {
        let shape = PartialShape::new(&[-1, self.size, self.size, 3])?;
        let mut x = b.placeholder("image", DType::FLOAT, shape)?;
        // Torchvision numbers its layers: a convolution and its ReLU are two, a pooling is one.
        let (mut layer, mut channels, mut size) = (0, 3, self.size);
        for (count, outputs) in BLOCKS {
            let outputs = outputs / self.scale;
            for _ in 0..count {
                x = convolution(b, weights, x, &format!("features.{layer}"), channels, outputs)?;
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
        x = dense(b, weights, x, "classifier.0", [channels, size, size, hidden])?;
        x = b.op("Relu").input(x).build()?.into();
        x = dense(b, weights, x, "classifier.3", [hidden, 1, 1, hidden])?;
        x = b.op("Relu").input(x).build()?.into();
        x = dense(b, weights, x, "classifier.6", [hidden, 1, 1, CLASSES])?;
        b.op("Softmax").name("probabilities").input(x).build()?;
        Ok(())
    }
}

/// 3x3, bias, ReLU. The graph has the weights as the file has them, [outputs, inputs, 3, 3]; constant folding turns them
/// into a filter when the step is compiled.
fn convolution(
    b: &mut GraphBuilder<'_>,
    weights: &Weights<'_>,
    x: Output,
    layer: &str,
    inputs: i64,
    outputs: i64,
) -> Built<Output> {
    let filter = format!("{layer}.weight");
    let filter = b.constant(&filter, weights.get(&filter, &[outputs, inputs, 3, 3])?)?;
    let filter = transposed(b, filter, &[2, 3, 1, 0])?;
    let product = b.op("Conv2D").input(x).input(filter);
    let strides = vec![1_i64, 1, 1, 1];
    let product = product.attr("strides", strides).attr("padding", "SAME").build()?;
    let sum = biased(b, weights, product.into(), layer, outputs)?;
    Ok(b.op("Relu").name(&format!("{layer}.relu")).input(sum).build()?.into())
}

fn pool(b: &mut GraphBuilder<'_>, x: Output) -> Built<Output> {
    let window = vec![1_i64, 2, 2, 1];
    let pool = b.op("MaxPool").input(x).attr("ksize", window.clone());
    Ok(pool.attr("strides", window).attr("padding", "VALID").build()?.into())
}

/// A dense layer. The file's rows are outputs; its columns run over channels, rows and columns of the image, ours over
/// rows, columns and channels.
fn dense(
    b: &mut GraphBuilder<'_>,
    weights: &Weights<'_>,
    x: Output,
    layer: &str,
    [channels, rows, columns, outputs]: [i64; 4],
) -> Built<Output> {
    let name = format!("{layer}.weight");
    let flat = channels * rows * columns;
    let matrix = weights.get(&name, &[outputs, flat])?;
    let matrix = b.constant(&name, matrix.reshaped(&[outputs, channels, rows, columns])?)?;
    let matrix = transposed(b, matrix, &[2, 3, 1, 0])?;
    let sizes = Tensor::from_slice(&[2], &[flat as i32, outputs as i32])?;
    let sizes = b.constant(&format!("{layer}.sizes"), sizes)?;
    let matrix = b.op("Reshape").input(matrix).input(sizes).build()?;
    let product = b.op("MatMul").name(layer).input(x).input(matrix).build()?;
    biased(b, weights, product.into(), layer, outputs)
}

fn biased(
    b: &mut GraphBuilder<'_>,
    weights: &Weights<'_>,
    x: Output,
    layer: &str,
    outputs: i64,
) -> Built<Output> {
    let name = format!("{layer}.bias");
    let bias = b.constant(&name, weights.get(&name, &[outputs])?)?;
    Ok(b.op("BiasAdd").input(x).input(bias).build()?.into())
}

fn transposed(b: &mut GraphBuilder<'_>, x: Output, order: &[i32; 4]) -> Built<Output> {
    let name = format!("order_{}", b.graph().len());
    let order = b.constant(&name, Tensor::from_slice(&[4], order)?)?;
    Ok(b.op("Transpose").input(x).input(order).build()?.into())
}
