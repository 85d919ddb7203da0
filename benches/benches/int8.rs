//! Quantised products through the loaded plugin, on one thread and on two: `int8/u8s8s32/MxNxK`, the sums alone, and
//! `int8/pipeline/MxNxK`, quint8 by quint8 with zero points, bias and requantisation to quint8. The right matrix is
//! packed once, as a constant is. Ids of two threads end in `/2`. `record.py` prints the lines beside the peers'.

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

const OP: &str = "_QuantizedFusedMatMul";
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

fn run(c: &mut Criterion) -> Result<(), Failure> {
    for threads in THREADS {
        for form in &FORMS {
            for size in SIZES {
                let [m, n, k] = size;
                let id = format!("{}/{m}x{n}x{k}", form.name);
                let inputs = form.inputs(size)?;
                time(c, (&id, threads), |runtime| form.kernel(runtime), &inputs)?;
            }
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
