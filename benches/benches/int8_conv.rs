//! Quantised convolutions through the loaded plugin, on one thread and on two: `int8/conv/HxWxC-RxSxF` and
//! `int8/depthwise/HxWxC-RxS` with layers of ResNet-50 and MobileNet, one image, quint8 by qint8 with bias and
//! requantisation to quint8. The filter is packed once, as a constant is. Ids of two threads end in `/2`.

use criterion::{Criterion, criterion_group, criterion_main};
use quantised::{THREADS, bytes, time};
use short::short;
use tenon_benches::{Failure, kernel};
use tenon_framework::{DType, Tensor, attr::AttrValue};
use tenon_runtime::{Runtime, host::instance::KernelInstance};

#[path = "shared/quantised.rs"]
mod quantised;
#[path = "shared/short.rs"]
mod short;

/// A layer: rows, columns and channels of the image, rows and columns of the window, outputs of all channels or of each,
/// stride.
struct Layer {
    image: [i64; 3],
    window: [i64; 2],
    outputs: i64,
    stride: i64,
    depthwise: bool,
}

const fn conv(image: [i64; 3], window: [i64; 2], outputs: i64, stride: i64) -> Layer {
    Layer { image, window, outputs, stride, depthwise: false }
}

const fn depthwise(image: [i64; 3], stride: i64) -> Layer {
    Layer { image, window: [3, 3], outputs: 1, stride, depthwise: true }
}

const LAYERS: [Layer; 10] = [
    conv([224, 224, 3], [7, 7], 64, 2),
    conv([56, 56, 64], [3, 3], 64, 1),
    conv([28, 28, 128], [3, 3], 128, 1),
    conv([14, 14, 256], [3, 3], 256, 1),
    conv([7, 7, 512], [3, 3], 512, 1),
    conv([56, 56, 256], [1, 1], 64, 1),
    conv([56, 56, 256], [1, 1], 512, 2),
    depthwise([112, 112, 32], 1),
    depthwise([56, 56, 128], 2),
    depthwise([14, 14, 512], 1),
];

impl Layer {
    fn name(&self) -> String {
        let [height, width, channels] = self.image;
        let ([rows, columns], outputs) = (self.window, self.outputs);
        if self.depthwise {
            return format!("depthwise/{height}x{width}x{channels}-{rows}x{columns}");
        }
        format!("conv/{height}x{width}x{channels}-{rows}x{columns}x{outputs}")
    }

    fn kernel(&self, runtime: &Runtime) -> Result<KernelInstance, Failure> {
        let op = match self.depthwise {
            true => "_QuantizedFusedDepthwiseConv2dNative",
            false => "_QuantizedFusedConv2D",
        };
        let attrs = [
            ("Ta", AttrValue::Type(DType::QUINT8)),
            ("Tb", AttrValue::Type(DType::QINT8)),
            ("Tout", AttrValue::Type(DType::QUINT8)),
            ("num_bias", AttrValue::Int(1)),
            ("strides", AttrValue::from(vec![1, self.stride, self.stride, 1])),
            ("padding", AttrValue::from("SAME")),
        ];
        kernel(runtime, op, attrs)
    }

    fn inputs(&self) -> Result<Vec<Tensor>, Failure> {
        let ([height, width, channels], [rows, columns]) = (self.image, self.window);
        let image = [1, height, width, channels];
        let filter = [rows, columns, channels, self.outputs];
        let values = |dims: [i64; 4], salt| bytes(dims.iter().product::<i64>() as usize, salt);
        let all = if self.depthwise { channels * self.outputs } else { self.outputs };
        let bias: Vec<i32> = (0..all as i32).map(|at| at * 7 - 500).collect();
        Ok(vec![
            Tensor::from_bytes(DType::QUINT8, &image, &values(image, 1))?,
            Tensor::from_bytes(DType::QINT8, &filter, &values(filter, 5))?,
            Tensor::scalar(0.02f32)?,
            Tensor::scalar(121i32)?,
            Tensor::from_slice(&[all], &vec![0.01f32; all as usize])?,
            Tensor::scalar(0i32)?,
            Tensor::scalar(0.3f32)?,
            Tensor::scalar(128i32)?,
            Tensor::from_slice(&[all], &bias)?,
        ])
    }
}

fn run(c: &mut Criterion) -> Result<(), Failure> {
    for threads in THREADS {
        for layer in &LAYERS {
            let (id, inputs) = (layer.name(), layer.inputs()?);
            time(c, (&id, threads), |runtime| layer.kernel(runtime), &inputs)?;
        }
    }
    Ok(())
}

fn benches(c: &mut Criterion) {
    if let Err(error) = run(c) {
        panic!("{error}");
    }
}

criterion_group! {
    name = each;
    config = short();
    targets = benches
}
criterion_main!(each);
