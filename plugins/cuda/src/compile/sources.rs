//! The texts of `kernels/cu`.

/// A text in CUDA C.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// Name of its file.
    pub name: &'static str,
    /// Contents.
    pub text: &'static str,
}

/// A source by the name of its file in `kernels/cu`.
#[macro_export]
#[doc(hidden)]
macro_rules! source {
    ($name:literal) => {
        $crate::compile::Source {
            name: $name,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/kernels/cu/", $name)),
        }
    };
}

/// What sources include. Every one is handed to the compiler with every source.
pub static HEADERS: &[Source] = &[
    source!("types.cuh"),
    source!("vector.cuh"),
    source!("dims.cuh"),
    source!("reduce.cuh"),
    source!("conv.cuh"),
    source!("conv_steps.cuh"),
    source!("windows.cuh"),
    source!("pool.cuh"),
    source!("math.cuh"),
    source!("trigonometry.cuh"),
    source!("elementwise.cuh"),
    source!("op_unary.cuh"),
    source!("op_binary.cuh"),
    source!("op_cast.cuh"),
    source!("fold.cuh"),
    source!("rows.cuh"),
    source!("rank.cuh"),
    source!("count.cuh"),
    source!("online.cuh"),
    source!("words.cuh"),
    source!("epilogue.cuh"),
    source!("gemm.cuh"),
    source!("gemm_fma.cuh"),
    source!("gemm_mma.cuh"),
    source!("mma.cuh"),
    source!("quantized_output.cuh"),
];
