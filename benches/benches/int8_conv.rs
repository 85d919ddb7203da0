//! Quantised convolutions through the loaded plugin, on one thread and on two: `int8/conv/HxWxC-RxSxF` and
//! `int8/depthwise/HxWxC-RxS` with layers of ResNet-50 and MobileNet, one image, quint8 by qint8 with bias and
//! requantisation to quint8. The filter is packed once, as a constant is. Ids of two threads end in `/2`.

use criterion::{Criterion, criterion_group, criterion_main};
use std::time::Duration;
use tenon_benches::{Failure, environment, kernel, plugin};
use tenon_framework::{DType, Tensor, attr::AttrValue};
use tenon_runtime::{
    Runtime, RuntimeOptions,
    host::instance::{KernelInstance, PackCache, PreparedCall},
};

const THREADS: [usize; 2] = [1, 2];

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
        let bytes = |dims: [i64; 4], salt: i64| -> Vec<u8> {
            let count = dims.iter().product::<i64>();
            (0..count).map(|at| ((at + salt).wrapping_mul(2_654_435_761) >> 13) as u8).collect()
        };
        let all = if self.depthwise { channels * self.outputs } else { self.outputs };
        let bias: Vec<i32> = (0..all as i32).map(|at| at * 7 - 500).collect();
        Ok(vec![
            Tensor::from_bytes(DType::QUINT8, &image, &bytes(image, 1))?,
            Tensor::from_bytes(DType::QINT8, &filter, &bytes(filter, 5))?,
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

fn time(c: &mut Criterion, threads: usize, layer: &Layer) -> Result<(), Failure> {
    let options = RuntimeOptions {
        threads: Some(threads),
        ..RuntimeOptions::with_plugins([plugin("int8")?])
    };
    let (runtime, report) = Runtime::new(options)?;
    report.into_result()?;
    let mut kernel = layer.kernel(&runtime)?;
    let inputs = layer.inputs()?;
    if !layer.depthwise && !kernel.prepack(1, &inputs[1], &PackCache::new(), "filter")? {
        return Err("the filter was not packed".into());
    }
    let env = environment(&runtime);
    let mut call = PreparedCall::new(&kernel, &inputs, &env)?;
    call.run()?;
    let end = if threads == 1 { String::new() } else { format!("/{threads}") };
    c.bench_function(&format!("int8/{}{end}", layer.name()), |b| {
        b.iter(|| call.run().expect("it ran before"));
    });
    Ok(())
}

fn benches(c: &mut Criterion) {
    for threads in THREADS {
        for layer in &LAYERS {
            if let Err(error) = time(c, threads, layer) {
                panic!("{error}");
            }
        }
    }
}

fn short() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1200))
        .sample_size(20)
}

criterion_group! {
    name = each;
    config = short();
    targets = benches
}
criterion_main!(each);
