//! Kernels of elementwise arithmetic, matrix products and reductions.

use super::Launch;
use tenon_reference::{
    Accumulate, LowestFinite, linalg, math_binary, math_unary, nn,
    reduction::{self, IndexElement},
};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::{Float, Number},
    geometry::{ArgGeometry, BroadcastPlan, MatMulGeometry, ReducePlan},
    register_kernel,
};

type Unary<T> = fn(&[T], &mut [T]);
type Binary<T> = fn(&BroadcastPlan<2>, &[T], &[T], &mut [T]);
type Reduction<T> = fn(&ReducePlan, &[T], &mut [T]);

fn unary<T: Number>(
    c: &ComputeContext<'_>,
    name: &'static str,
    function: Unary<T>,
) -> Result<(), KernelError> {
    let launch = Launch::new(c)?;
    let (x, y) = (launch.input::<T>(0)?, launch.output::<T>(0, c.dims(0))?);
    launch.enqueue(name, move |memory| {
        let x = x.read(memory)?;
        y.write(memory, |y| function(&x, y))
    })
}

fn binary<T: Number>(
    c: &ComputeContext<'_>,
    name: &'static str,
    function: Binary<T>,
) -> Result<(), KernelError> {
    let plan = BroadcastPlan::new([c.dims(0), c.dims(1)])?;
    let launch = Launch::new(c)?;
    let (x, y) = (launch.input::<T>(0)?, launch.input::<T>(1)?);
    let z = launch.output::<T>(0, plan.output_dims())?;
    launch.enqueue(name, move |memory| {
        let (x, y) = (x.read(memory)?, y.read(memory)?);
        z.write(memory, |z| function(&plan, &x, &y, z))
    })
}

/// Kernel functions `fn name(context)`, each over a function of the reference, with their
/// registrations.
macro_rules! elementwise {
    ($($form:ident $name:ident<$bound:ident> = $function:path, for $types:tt: $($op:literal),+;)*) => {$(
        fn $name<T: $bound>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            $form::<T>(c, stringify!($name), $function)
        }
        $(register_kernel!($op on "ACCEL": fn $name<T> for "T" in $types);)+
    )*};
}

elementwise! {
    binary add<Number> = math_binary::add, for [f32, f64, i32]: "Add", "AddV2";
    binary sub<Number> = math_binary::sub, for [f32, f64, i32]: "Sub";
    binary mul<Number> = math_binary::mul, for [f32, f64, i32]: "Mul";
    binary real_div<Float> = math_binary::real_div, for [f32, f64]: "RealDiv";
    binary maximum<Number> = math_binary::maximum, for [f32, f64, i32]: "Maximum";
    binary minimum<Number> = math_binary::minimum, for [f32, f64, i32]: "Minimum";
    unary neg<Number> = math_unary::neg, for [f32, f64, i32]: "Neg";
    unary square<Number> = math_unary::square, for [f32, f64, i32]: "Square";
    unary exp<Float> = math_unary::exp, for [f32, f64]: "Exp";
    unary tanh<Float> = math_unary::tanh, for [f32, f64]: "Tanh";
    unary sigmoid<Float> = math_unary::sigmoid, for [f32, f64]: "Sigmoid";
    unary relu<Number> = nn::relu, for [f32, f64, i32]: "Relu";
}

/// `MatMul`.
struct MatMul<T> {
    transpose_a: bool,
    transpose_b: bool,
    element: std::marker::PhantomData<fn() -> T>,
}

impl<T: Accumulate> Kernel for MatMul<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MatMul {
            transpose_a: c.attr("transpose_a")?,
            transpose_b: c.attr("transpose_b")?,
            element: std::marker::PhantomData,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let plan = MatMulGeometry::new(c.dims(0), c.dims(1), self.transpose_a, self.transpose_b)?;
        let launch = Launch::new(c)?;
        let (x, y) = (launch.input::<T>(0)?, launch.input::<T>(1)?);
        let z = launch.output::<T>(0, &[plan.m as i64, plan.n as i64])?;
        launch.enqueue("matmul", move |memory| {
            let (x, y) = (x.read(memory)?, y.read(memory)?);
            z.write(memory, |z| linalg::matmul(&plan, &x, &y, z))
        })
    }
}

register_kernel!("MatMul" on "ACCEL": MatMul<T> for "T" in [f32, f64, i32]);

/// `Sum`, `Mean`: a reduction over axes that are given with the call.
struct Reduce<T, const MEAN: bool> {
    keep_dims: bool,
    element: std::marker::PhantomData<fn() -> T>,
}

impl<T: Accumulate, const MEAN: bool> Kernel for Reduce<T, MEAN> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Reduce { keep_dims: c.attr("keep_dims")?, element: std::marker::PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let axes = c.integer_list(1, "reduction_indices")?;
        let plan = ReducePlan::new(c.dims(0), &axes, self.keep_dims)?;
        let (name, function): (_, Reduction<T>) =
            if MEAN { ("mean", reduction::mean) } else { ("sum", reduction::sum) };
        let launch = Launch::new(c)?;
        let (x, y) = (launch.input::<T>(0)?, launch.output::<T>(0, plan.output_dims())?);
        launch.enqueue(name, move |memory| {
            let x = x.read(memory)?;
            y.write(memory, |y| function(&plan, &x, y))
        })
    }
}

type Sum<T> = Reduce<T, false>;
type Mean<T> = Reduce<T, true>;

register_kernel!(
    "Sum" on "ACCEL": Sum<T> for "T" in [f32, f64, i32], host_memory = &["reduction_indices"]
);
register_kernel!(
    "Mean" on "ACCEL": Mean<T> for "T" in [f32, f64], host_memory = &["reduction_indices"]
);

fn arg_max<T: Number + LowestFinite>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    match c.output_slot(0)?.dtype {
        DType::INT16 => arg_max_as::<T, i16>(c),
        DType::UINT16 => arg_max_as::<T, u16>(c),
        DType::INT32 => arg_max_as::<T, i32>(c),
        _ => arg_max_as::<T, i64>(c),
    }
}

fn arg_max_as<T: Number + LowestFinite, I: Number + IndexElement>(
    c: &ComputeContext<'_>,
) -> Result<(), KernelError> {
    let plan = ArgGeometry::new(c.dims(0), c.integer(1, "dimension")?)?;
    let launch = Launch::new(c)?;
    let (x, y) = (launch.input::<T>(0)?, launch.output::<I>(0, &plan.output)?);
    launch.enqueue("arg_max", move |memory| {
        let x = x.read(memory)?;
        y.write(memory, |y| reduction::arg_max(&plan, &x, y))
    })
}

register_kernel!(
    "ArgMax" on "ACCEL": fn arg_max<T> for "T" in [f32, f64, i32], host_memory = &["dimension"]
);
