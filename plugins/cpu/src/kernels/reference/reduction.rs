//! Reductions.

use super::ROUNDED;
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_reference::{
    Accumulate, LowestFinite,
    reduction::{self, IndexElement},
};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::{Element, Number},
    geometry::{ArgGeometry, ReducePlan},
    reg::Numerics,
    register_kernel,
};

/// One of the reductions over a plan.
trait Reduction<T>: Send + Sync + 'static {
    fn reduce(plan: &ReducePlan, x: &[T], y: &mut [T]);
}

macro_rules! reductions {
    ($($name:ident, $alias:ident: $bound:ident = $function:path;)*) => {$(
        struct $name;

        impl<T: $bound> Reduction<T> for $name {
            fn reduce(plan: &ReducePlan, x: &[T], y: &mut [T]) {
                $function(plan, x, y);
            }
        }

        type $alias<T> = Reduce<T, $name>;
    )*};
}

struct All;
struct Any;

impl Reduction<bool> for All {
    fn reduce(plan: &ReducePlan, x: &[bool], y: &mut [bool]) {
        reduction::all(plan, x, y);
    }
}

impl Reduction<bool> for Any {
    fn reduce(plan: &ReducePlan, x: &[bool], y: &mut [bool]) {
        reduction::any(plan, x, y);
    }
}

type AllOf = Reduce<bool, All>;
type AnyOf = Reduce<bool, Any>;

reductions! {
    Sum, SumOf: Accumulate = reduction::sum;
    Mean, MeanOf: Accumulate = reduction::mean;
    Max, MaxOf: Number = reduction::max;
    Min, MinOf: Number = reduction::min;
    Prod, ProdOf: Accumulate = reduction::prod;
    Norm, NormOf: Accumulate = reduction::euclidean_norm;
}

struct Reduce<T, R> {
    keep_dims: bool,
    kind: PhantomData<(T, R)>,
}

impl<T: Element, R: Reduction<T>> Kernel for Reduce<T, R> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Reduce { keep_dims: c.attr("keep_dims")?, kind: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<T>(0)?;
        let axes = c.integer_list(1, "reduction_indices")?;
        let plan = ReducePlan::new(x.dims, &axes, self.keep_dims)?;
        R::reduce(&plan, x.data, c.output::<T>(0, plan.output_dims())?.data);
        Ok(())
    }
}

struct ArgMax<T> {
    output: DType,
    element: PhantomData<T>,
}

impl<T: LowestFinite> ArgMax<T> {
    fn write<I: IndexElement>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<T>(0)?;
        let g = ArgGeometry::new(x.dims, c.integer(1, "dimension")?)?;
        reduction::arg_max(&g, x.data, c.output::<I>(0, &g.output)?.data);
        Ok(())
    }
}

impl<T: LowestFinite> Kernel for ArgMax<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(ArgMax { output: c.attr("output_type")?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        match self.output {
            DType::INT16 => Self::write::<i16>(c),
            DType::UINT16 => Self::write::<u16>(c),
            DType::INT32 => Self::write::<i32>(c),
            _ => Self::write::<i64>(c),
        }
    }
}

register_kernel!("Sum" on "CPU": SumOf<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    label = "reference", on_request = true, host_memory = &["reduction_indices"], numerics = ROUNDED);
register_kernel!("Mean" on "CPU": MeanOf<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    label = "reference", on_request = true, host_memory = &["reduction_indices"], numerics = ROUNDED);
register_kernel!("Prod" on "CPU": ProdOf<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    label = "reference", on_request = true, host_memory = &["reduction_indices"], numerics = ROUNDED);
register_kernel!("EuclideanNorm" on "CPU": NormOf<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    label = "reference", on_request = true, host_memory = &["reduction_indices"], numerics = ROUNDED);
register_kernel!("Min" on "CPU": MinOf<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    label = "reference", on_request = true, host_memory = &["reduction_indices"],
    numerics = Numerics::EXACT);
register_kernel!("All" on "CPU": AllOf, label = "reference", on_request = true,
    host_memory = &["reduction_indices"], numerics = Numerics::EXACT);
register_kernel!("Any" on "CPU": AnyOf, label = "reference", on_request = true,
    host_memory = &["reduction_indices"], numerics = Numerics::EXACT);
register_kernel!("Max" on "CPU": MaxOf<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    label = "reference", on_request = true, host_memory = &["reduction_indices"],
    numerics = Numerics::EXACT);
register_kernel!("ArgMax" on "CPU": ArgMax<T>
    for "T" in [bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    label = "reference", on_request = true, host_memory = &["dimension"], numerics = Numerics::EXACT);
