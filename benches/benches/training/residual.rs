//! A residual network of 20 layers on images of 32x32 (K. He et al., Deep residual learning for
//! image recognition, 2015, section 4.2), with batch normalisation by the statistics of the batch.

use super::models::Layers;
use tenon_benches::Failure;
use tenon_framework::Tensor;
use tenon_runtime::graph::Output;

/// Blocks of a stage, each of two convolutions.
const BLOCKS: usize = 3;
/// Channels of the stages; each stage but the first one halves rows and columns.
const CHANNELS: [i64; 3] = [16, 32, 64];

impl Layers<'_, '_> {
    /// The logits of the classes of images.
    pub fn residual(&mut self, batch: i64) -> Result<Output, Failure> {
        let images = self.data(&[batch, 32, 32, 3])?;
        let x = self.convolution(images, [3, 3, CHANNELS[0]], 1)?;
        let mut x = self.normalised(x, CHANNELS[0], true)?;
        let mut from = CHANNELS[0];
        for (stage, channels) in CHANNELS.into_iter().enumerate() {
            for block in 0..BLOCKS {
                let stride = if stage > 0 && block == 0 { 2 } else { 1 };
                x = self.block(x, [from, channels], stride)?;
                from = channels;
            }
        }
        let axes = self.b.constant("pixels", Tensor::from_slice(&[2], &[1i32, 2])?)?;
        let pooled = self.b.op("Mean").input(x).input(axes).build()?;
        self.layer(pooled.into(), &[from, 10], true)
    }

    /// A block; where it changes the number of channels, its shortcut is a convolution of 1x1.
    fn block(&mut self, x: Output, [from, to]: [i64; 2], stride: i64) -> Result<Output, Failure> {
        let first = self.convolution(x, [3, from, to], stride)?;
        let first = self.normalised(first, to, true)?;
        let second = self.convolution(first, [3, to, to], 1)?;
        let second = self.normalised(second, to, false)?;
        let shortcut = if from == to { x } else { self.convolution(x, [1, from, to], stride)? };
        let sum = self.b.op("AddV2").input(second).input(shortcut).build()?;
        Ok(self.b.op("Relu").input(sum).build()?.into())
    }

    fn convolution(
        &mut self,
        x: Output,
        [side, from, to]: [i64; 3],
        stride: i64,
    ) -> Result<Output, Failure> {
        let inputs = side * side * from;
        let filter = self.variable(&[side, side, from, to], (6.0 / inputs as f32).sqrt())?;
        let node = self.b.op("Conv2D").input(x).input(filter.value).attr("padding", "SAME");
        Ok(node.attr("strides", vec![1, stride, stride, 1]).build()?.into())
    }

    fn normalised(&mut self, x: Output, channels: i64, is_active: bool) -> Result<Output, Failure> {
        let scale = self.filled(&[channels], 1.0)?;
        let offset = self.filled(&[channels], 0.0)?;
        let none = Tensor::from_slice::<f32>(&[0], &[])?;
        let none = self.b.op("Const").attr("dtype", none.dtype()).attr("value", none).build()?;
        let node = self.b.op("FusedBatchNormV3").input(x).input(scale.value).input(offset.value);
        let node = node.input(none).input(none).attr("epsilon", 1e-3f32);
        let normal = node.attr("is_training", true).build()?;
        if !is_active {
            return Ok(normal.into());
        }
        Ok(self.b.op("Relu").input(normal).build()?.into())
    }
}
