//! Elementwise ops.

use super::ROUNDED;
use half::{bf16, f16};
use tenon_reference::{math_binary, math_unary, nn};
use tenon_sdk::{
    DType, KernelError,
    author::ComputeContext,
    element::{Float, Number},
    geometry::BroadcastPlan,
    growth,
    reg::Numerics,
    register_kernel,
};

macro_rules! unary {
    ($($name:ident: $bound:ident = $function:path;)*) => {$(
        fn $name<T: $bound>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            let x = c.input::<T>(0)?;
            $function(x.data, c.output::<T>(0, x.dims)?.data);
            Ok(())
        }
    )*};
}

unary! {
    neg: Number = math_unary::neg;
    square: Number = math_unary::square;
    sqrt: Float = math_unary::sqrt;
    rsqrt: Float = math_unary::rsqrt;
    exp: Float = math_unary::exp;
    log: Float = math_unary::log;
    tanh: Float = math_unary::tanh;
    sigmoid: Float = math_unary::sigmoid;
    reciprocal: Float = math_unary::reciprocal;
    expm1: Float = math_unary::expm1;
    log1p: Float = math_unary::log1p;
    sin: Float = math_unary::sin;
    cos: Float = math_unary::cos;
    tan: Float = math_unary::tan;
    asin: Float = math_unary::asin;
    acos: Float = math_unary::acos;
    atan: Float = math_unary::atan;
    sinh: Float = math_unary::sinh;
    cosh: Float = math_unary::cosh;
    asinh: Float = math_unary::asinh;
    acosh: Float = math_unary::acosh;
    atanh: Float = math_unary::atanh;
    erf: Float = math_unary::erf;
    erfc: Float = math_unary::erfc;
    relu: Number = nn::relu;
    relu6: Number = nn::relu6;
}

macro_rules! binary {
    ($($name:ident: $bound:ident = $function:path;)*) => {$(
        fn $name<T: $bound>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            let (x, y) = (c.input::<T>(0)?, c.input::<T>(1)?);
            let plan = BroadcastPlan::new([x.dims, y.dims])?;
            $function(&plan, x.data, y.data, c.output::<T>(0, plan.output_dims())?.data);
            Ok(())
        }
    )*};
}

binary! {
    add: Number = math_binary::add;
    sub: Number = math_binary::sub;
    mul: Number = math_binary::mul;
    real_div: Float = math_binary::real_div;
    squared_difference: Number = math_binary::squared_difference;
    pow: Float = math_binary::pow;
    atan2: Float = math_binary::atan2;
    maximum: Number = math_binary::maximum;
    minimum: Number = math_binary::minimum;
}

fn add_strings(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let plan = BroadcastPlan::new([c.dims(0), c.dims(1)])?;
    let (x, y) = (c.strings(0)?, c.strings(1)?);
    let mut z = growth::filled(plan.len(), [&[][..]; 2])?;
    math_binary::map(&plan, &x, &y, &mut z, |x, y| [*x, *y]);
    c.write_texts(0, plan.output_dims(), |at, text| {
        growth::append(text, z[at][0])?;
        growth::append(text, z[at][1])
    })
}

fn add_n<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let dims = c.dims(0);
    let mut inputs = Vec::new();
    for i in 0..c.input_count() {
        let input = c.input::<T>(i)?;
        if input.dims != dims {
            return Err(KernelError::invalid_argument(format!(
                "inputs must have the same shape: inputs[0] has {dims:?}, inputs[{i}] has {:?}",
                input.dims
            )));
        }
        inputs.push(input.data);
    }
    math_binary::add_n(&inputs, c.output::<T>(0, dims)?.data);
    Ok(())
}

/// Registers a function for its element types.
macro_rules! register {
    ($($op:literal: $name:ident [$($ty:ty),*] $numerics:expr;)*) => {$(
        register_kernel!($op on "CPU": fn $name<T> for "T" in [$($ty),*],
            label = "reference", on_request = true, numerics = $numerics);
    )*};
}

register! {
    "Neg": neg [i8, i16, i32, i64, f16, bf16, f32, f64] Numerics::EXACT;
    "Square": square [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64] Numerics::EXACT;
    "Sqrt": sqrt [f16, bf16, f32, f64] ROUNDED;
    "Rsqrt": rsqrt [f16, bf16, f32, f64] ROUNDED;
    "Exp": exp [f16, bf16, f32, f64] ROUNDED;
    "Log": log [f16, bf16, f32, f64] ROUNDED;
    "Tanh": tanh [f16, bf16, f32, f64] ROUNDED;
    "Sigmoid": sigmoid [f16, bf16, f32, f64] ROUNDED;
    "Relu": relu [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64] Numerics::EXACT;
    "Relu6": relu6 [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64] Numerics::EXACT;
    "Add": add [i8, i16, i32, i64, u8, f16, bf16, f32, f64] Numerics::EXACT;
    "AddV2": add [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64] Numerics::EXACT;
    "Sub": sub [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64] Numerics::EXACT;
    "Mul": mul [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64] Numerics::EXACT;
    "RealDiv": real_div [f16, bf16, f32, f64] Numerics::EXACT;
    "Expm1": expm1 [f16, bf16, f32] ROUNDED;
    "Log1p": log1p [f16, bf16, f32] ROUNDED;
    "Sin": sin [f16, bf16, f32] ROUNDED;
    "Cos": cos [f16, bf16, f32] ROUNDED;
    "Tan": tan [f16, bf16, f32] ROUNDED;
    "Asin": asin [f16, bf16, f32] ROUNDED;
    "Acos": acos [f16, bf16, f32] ROUNDED;
    "Atan": atan [f16, bf16, f32] ROUNDED;
    "Sinh": sinh [f16, bf16, f32] ROUNDED;
    "Cosh": cosh [f16, bf16, f32] ROUNDED;
    "Asinh": asinh [f16, bf16, f32] ROUNDED;
    "Acosh": acosh [f16, bf16, f32] ROUNDED;
    "Atanh": atanh [f16, bf16, f32] ROUNDED;
    "Erf": erf [f16, bf16, f32] ROUNDED;
    "Erfc": erfc [f16, bf16, f32] ROUNDED;
    "Reciprocal": reciprocal [f16, bf16, f32, f64] ROUNDED;
    "Inv": reciprocal [f16, bf16, f32, f64] ROUNDED;
    "Pow": pow [f16, bf16, f32] ROUNDED;
    "Atan2": atan2 [f16, bf16, f32] ROUNDED;
    "Div": real_div [f16, bf16, f32, f64] Numerics::EXACT;
    "SquaredDifference": squared_difference [i32, i64, f16, bf16, f32, f64] ROUNDED;
    "Maximum": maximum [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64] Numerics::EXACT;
    "Minimum": minimum [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64] Numerics::EXACT;
    "AddN": add_n [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64] Numerics::EXACT;
}

register_kernel!("Add" on "CPU": fn add_strings, types = ("T", &[DType::STRING]),
    label = "reference", on_request = true, numerics = Numerics::EXACT);
