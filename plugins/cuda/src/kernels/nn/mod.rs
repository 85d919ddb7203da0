//! What slides windows over images: convolutions, poolings, dilation, and the normalisation over neighbouring channels.

/// Registers a convolution over two dimensions and its fused form. Bounds are relative to the sum of the absolute terms,
/// as the host's processor has it; those of fused ones with their functions.
macro_rules! convolutions {
    ($kernel:ty: $plain:literal, $fused:literal) => {
        convolutions! { $kernel, $plain, $fused;
            FLOAT, FLOAT, [1e-30, 4e-6], [1e-6, 8e-6];
            DOUBLE, DOUBLE, [1e-300, 8e-15], [1e-14, 1.6e-14];
            HALF, FLOAT, [6e-8, 2e-3], [1e-3, 4e-3];
            BFLOAT16, FLOAT, [1e-30, 1.6e-2], [8e-3, 3.2e-2];
        }
    };
    ($kernel:ty, $plain:literal, $fused:literal; $(
        $ty:ident, $accumulation:ident, [$absolute:expr, $relative:expr], [$rounded:expr, $by:expr];
    )*) => {$(
        register_kernel!($plain on "CUDA": $kernel, types = ("T", &[DType::$ty]),
            numerics = Numerics::relative($absolute, $relative).accumulation(DType::$accumulation));
        register_kernel!($fused on "CUDA": $kernel, types = ("T", &[DType::$ty]),
            numerics = Numerics::relative($rounded, $by).accumulation(DType::$accumulation));
    )*};
}

mod call;
mod conv;
mod conv_cudnn;
mod conv_filter;
mod conv_tiles;
mod conv_volume;
mod depthwise;
mod dilation;
mod epilogue;
mod lrn;
mod pool;
mod pool_argmax;
mod pool_cudnn;
mod pool_volume;
mod sizes;

use crate::compile::Variant;

pub(super) fn variants() -> Vec<Variant> {
    let families = [
        conv::variants(),
        conv_filter::variants(),
        conv_volume::variants(),
        depthwise::variants(),
        dilation::variants(),
        lrn::variants(),
        pool::variants(),
        pool_argmax::variants(),
        pool_volume::variants(),
    ];
    families.into_iter().flatten().collect()
}
