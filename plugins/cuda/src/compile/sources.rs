//! The CUDA C sources in `kernels/cu`.

/// A source in CUDA C.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// Name of its file.
    pub name: &'static str,
    /// Contents.
    pub text: &'static str,
    /// Whether each entry begins with `await_previous`, so that a launch may begin before the one
    /// before it ends.
    pub overlaps: bool,
}

/// A [`Source`] by the name of its file in `kernels/cu`; with `overlaps`, one whose launches may
/// overlap.
#[macro_export]
#[doc(hidden)]
macro_rules! source {
    ($name:literal) => {
        $crate::source!($name, false)
    };
    ($name:literal, overlaps) => {
        $crate::source!($name, true)
    };
    ($name:literal, $overlaps:expr) => {
        $crate::compile::Source {
            name: $name,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/kernels/cu/", $name)),
            overlaps: $overlaps,
        }
    };
}

/// Headers of the sources. The compiler receives every header with every source.
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

#[cfg(test)]
mod tests {
    /// Each entry of such a source begins with the call, or reads what the launch before may still
    /// be writing.
    #[test]
    fn sources_whose_launches_overlap_wait_first_in_every_entry() {
        let mut overlapping = 0;
        for variant in crate::kernels::variants().iter().filter(|it| it.source().overlaps) {
            let text = variant.source().text;
            let entries = text.matches("\nKERNEL ").count() + text.matches("__global__").count();
            let waiting = text.matches(") {\n    await_previous();\n").count();
            assert!(entries > 0 && entries == waiting, "{variant}: {waiting} of {entries} entries");
            overlapping += usize::from(variant.overlaps());
        }
        assert!(overlapping > 0, "an example of such a variant is compiled");
    }
}
