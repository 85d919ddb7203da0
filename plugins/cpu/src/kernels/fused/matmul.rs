//! `_FusedMatMul`: the product, then its epilogue over the rows, in place.
//!
//! Bias, sums and `Relu` round as the single ops do.

use crate::{
    kernels::{
        elementary::Elementary,
        linalg::{
            matmul::{Transposed, operands},
            product::{Factor, Target, parallel_product},
        },
    },
    split::for_rows,
};
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel, Supported},
    fused::{Epilogue, EpilogueStep},
    geometry::MatMulGeometry,
    reg::Numerics,
    register_kernel,
};

/// Most further inputs of one product.
const MOST_ARGS: usize = 8;

struct FusedMatMul<T> {
    transposed: Transposed,
    epilogue: Epilogue,
    alpha: f32,
    element: PhantomData<T>,
}

fn epilogue(c: &CreateContext<'_>) -> Result<Epilogue, KernelError> {
    let names: Vec<&str> = c.attr("fused_ops")?;
    Ok(Epilogue::parse(&names)?)
}

impl<T: Factor + Elementary> Kernel for FusedMatMul<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let alpha = c.attr("leakyrelu_alpha")?;
        let transposed = Transposed::new(c)?;
        Ok(FusedMatMul { transposed, epilogue: epilogue(c)?, alpha, element: PhantomData })
    }

    fn supports(c: &CreateContext<'_>) -> Supported {
        let steps = match epilogue(c) {
            Ok(epilogue) => epilogue,
            Err(error) => return Supported::No(error.message),
        };
        let other = [EpilogueStep::FusedBatchNorm, EpilogueStep::GeluExact];
        match steps.steps().iter().find(|step| other.contains(step)) {
            Some(step) => {
                Supported::No(format!("{} after a product is not there yet", step.name()))
            }
            None if steps.args() > MOST_ARGS => {
                Supported::No(format!("at most {MOST_ARGS} further inputs, found {}", steps.args()))
            }
            None => Supported::Yes,
        }
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (a, b) = (c.input::<T>(0)?, c.input::<T>(1)?);
        let g = MatMulGeometry::new(a.dims, b.dims, self.transposed.a, self.transposed.b)?;
        let args = self.args(c, [g.m as i64, g.n as i64])?;
        let y = c.output::<T>(0, &[g.m as i64, g.n as i64])?.data;
        let (a, b) = operands(&g, a.data, b.data);
        // SAFETY: the target is the whole output.
        parallel_product(c, a, b, unsafe { Target::new(y.as_mut_ptr(), g.m, g.n, [g.n, 1]) })?;
        let alpha = T::from_f64(f64::from(self.alpha));
        for_rows(c, y, g.n, 2.0 * g.n as f64, |first, y| {
            for (row, y) in (first..).zip(y.chunks_exact_mut(g.n)) {
                for (step, first) in self.epilogue.placed() {
                    let arg = args.get(first).copied().unwrap_or_default();
                    let own = if step == EpilogueStep::Add {
                        &arg[row * g.n..(row + 1) * g.n]
                    } else {
                        arg
                    };
                    apply(step, y, own, alpha);
                }
            }
        })
    }
}

impl<T: Factor> FusedMatMul<T> {
    /// The further inputs, each checked against what its step takes. Held in place: a step allocates nothing.
    fn args<'a>(
        &self,
        c: &ComputeContext<'a>,
        product: [i64; 2],
    ) -> Result<[&'a [T]; MOST_ARGS], KernelError> {
        self.epilogue.check_args(c.input_count() - 2)?;
        let mut args: [&[T]; MOST_ARGS] = [&[]; MOST_ARGS];
        for (step, first) in self.epilogue.placed().filter(|(step, _)| step.args() > 0) {
            let arg = c.input::<T>(2 + first)?;
            let expected = if step == EpilogueStep::Add { &product[..] } else { &product[1..] };
            if arg.dims != expected {
                return Err(KernelError::invalid_argument(format!(
                    "{}: expected an input of shape {expected:?}, found {:?}",
                    step.name(),
                    arg.dims
                )));
            }
            if let Some(place) = args.get_mut(first) {
                *place = arg.data;
            }
        }
        Ok(args)
    }
}

fn each<T: Copy>(y: &mut [T], f: impl Fn(T) -> T) {
    y.iter_mut().for_each(|y| *y = f(*y));
}

/// One step on one row.
fn apply<T: Elementary>(step: EpilogueStep, y: &mut [T], arg: &[T], alpha: T) {
    match step {
        EpilogueStep::BiasAdd | EpilogueStep::Add => {
            y.iter_mut().zip(arg).for_each(|(y, arg)| *y = y.add(*arg));
        }
        EpilogueStep::Relu => each(y, |x| x.clamped(T::HIGHEST)),
        EpilogueStep::Relu6 => each(y, |x| x.clamped(T::from_f64(6.0))),
        EpilogueStep::Elu => each(y, |x| if x > T::ZERO { x } else { x.exp().sub(T::ONE) }),
        EpilogueStep::LeakyRelu => each(y, |x| if x > T::ZERO { x } else { x.mul(alpha) }),
        EpilogueStep::Tanh => each(y, Elementary::tanh),
        EpilogueStep::Sigmoid => each(y, Elementary::sigmoid),
        EpilogueStep::GeluApproximate => each(y, gelu),
        // `supports` has refused them.
        EpilogueStep::FusedBatchNorm | EpilogueStep::GeluExact => {}
    }
}

/// `0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`.
fn gelu<T: Elementary>(x: T) -> T {
    let cube = T::from_f64(0.044_715).mul(x).mul(x).mul(x);
    let inner = T::from_f64(0.797_884_560_802_865_4).mul(x.add(cube));
    T::from_f64(0.5).mul(x).mul(T::ONE.add(inner.tanh()))
}

register_kernel!("_FusedMatMul" on "CPU": FusedMatMul<T> for "T" in [f32],
    numerics = Numerics::relative(1e-6, 4e-6).accumulation(DType::FLOAT));
register_kernel!("_FusedMatMul" on "CPU": FusedMatMul<T> for "T" in [f64],
    numerics = Numerics::relative(1e-14, 8e-15).accumulation(DType::DOUBLE));
