//! Quantised products through the loaded plugin, on one thread and on two: `int8/u8s8s32/MxNxK`, the sums alone, and
//! `int8/pipeline/MxNxK`, quint8 by quint8 with zero points, bias and requantisation to quint8. The right matrix is
//! packed once, as a constant is. Ids of two threads end in `/2`. `record.py` prints the lines beside the peers'.

use criterion::{Criterion, criterion_group, criterion_main};
use std::time::Duration;
use tenon_benches::{Failure, environment, kernel, plugin};
use tenon_framework::{DType, Tensor, attr::AttrValue};
use tenon_runtime::{
    Runtime, RuntimeOptions,
    host::instance::{KernelInstance, PackCache, PreparedCall},
};

const OP: &str = "_QuantizedFusedMatMul";
const THREADS: [usize; 2] = [1, 2];
/// Rows, columns and depth, as the peers' scripts have them.
const SIZES: [[usize; 3]; 12] = [
    [64, 64, 64],
    [128, 128, 128],
    [256, 256, 256],
    [512, 512, 512],
    [1024, 1024, 1024],
    [2048, 2048, 2048],
    [1, 1024, 1024],
    [8, 1024, 1024],
    [32, 1024, 4096],
    [3136, 64, 576],
    [784, 128, 1152],
    [196, 256, 2304],
];

/// What is done to the sums.
struct Form {
    name: &'static str,
    types: [DType; 2],
    out: DType,
    zero_points: [i32; 3],
    bias: bool,
}

const FORMS: [Form; 2] = [
    Form {
        name: "u8s8s32",
        types: [DType::QUINT8, DType::QINT8],
        out: DType::QINT32,
        zero_points: [0; 3],
        bias: false,
    },
    Form {
        name: "pipeline",
        types: [DType::QUINT8; 2],
        out: DType::QUINT8,
        zero_points: [3, 121, 128],
        bias: true,
    },
];

impl Form {
    fn kernel(&self, runtime: &Runtime) -> Result<KernelInstance, Failure> {
        let attrs = [
            ("Ta", AttrValue::Type(self.types[0])),
            ("Tb", AttrValue::Type(self.types[1])),
            ("Tout", AttrValue::Type(self.out)),
            ("num_bias", AttrValue::Int(self.bias.into())),
        ];
        kernel(runtime, OP, attrs)
    }

    fn inputs(&self, [m, n, k]: [usize; 3]) -> Result<Vec<Tensor>, Failure> {
        let bytes = |count: usize, salt: usize| -> Vec<u8> {
            (0..count).map(|at| ((at + salt).wrapping_mul(2_654_435_761) >> 13) as u8).collect()
        };
        let dims = |a: usize, b: usize| [a as i64, b as i64];
        let [a_zero, b_zero, out_zero] = self.zero_points;
        let mut inputs = vec![
            Tensor::from_bytes(self.types[0], &dims(m, k), &bytes(m * k, 1))?,
            Tensor::from_bytes(self.types[1], &dims(k, n), &bytes(k * n, 5))?,
            Tensor::scalar(0.02f32)?,
            Tensor::scalar(a_zero)?,
            Tensor::scalar(0.01f32)?,
            Tensor::scalar(b_zero)?,
            Tensor::scalar(0.3f32)?,
            Tensor::scalar(out_zero)?,
        ];
        if self.bias {
            let bias: Vec<i32> = (0..n as i32).map(|j| j * 7 - 500).collect();
            inputs.push(Tensor::from_slice(&[n as i64], &bias)?);
        }
        Ok(inputs)
    }
}

fn time(c: &mut Criterion, threads: usize, form: &Form, size: [usize; 3]) -> Result<(), Failure> {
    let options = RuntimeOptions {
        threads: Some(threads),
        ..RuntimeOptions::with_plugins([plugin("int8")?])
    };
    let (runtime, report) = Runtime::new(options)?;
    report.into_result()?;
    let mut kernel = form.kernel(&runtime)?;
    let inputs = form.inputs(size)?;
    if !kernel.prepack(1, &inputs[1], &PackCache::new(), "b")? {
        return Err("the right matrix was not packed".into());
    }
    let env = environment(&runtime);
    let mut call = PreparedCall::new(&kernel, &inputs, &env)?;
    call.run()?;
    let [m, n, k] = size;
    let end = if threads == 1 { String::new() } else { format!("/{threads}") };
    c.bench_function(&format!("int8/{}/{m}x{n}x{k}{end}", form.name), |b| {
        b.iter(|| call.run().expect("it ran before"));
    });
    Ok(())
}

fn benches(c: &mut Criterion) {
    for threads in THREADS {
        for form in &FORMS {
            for size in SIZES {
                if let Err(error) = time(c, threads, form, size) {
                    panic!("{error}");
                }
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
