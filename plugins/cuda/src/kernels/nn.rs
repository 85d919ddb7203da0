//! Ops that slide windows over images: convolutions, poolings, dilation, and the normalisation over
//! neighbouring channels.

/// Registers a two-dimensional convolution and its fused form, optionally with a label and a
/// priority. As on the host's processor, bounds are relative to the sum of the absolute terms;
/// bounds of the fused form include its functions.
macro_rules! convolutions {
    ($kernel:ty: $plain:literal, $fused:literal $($more:tt)*) => {
        convolutions! { @types $kernel, $plain, $fused, ($($more)*);
            FLOAT, FLOAT, [1e-30, 4e-6], [1e-6, 8e-6];
            DOUBLE, DOUBLE, [1e-300, 8e-15], [1e-14, 1.6e-14];
            HALF, FLOAT, [6e-8, 2e-3], [1e-3, 4e-3];
            BFLOAT16, FLOAT, [1e-30, 1.6e-2], [8e-3, 3.2e-2];
        }
    };
    (@types $kernel:ty, $plain:literal, $fused:literal, $more:tt; $(
        $ty:ident, $sums:ident, [$absolute:expr, $relative:expr], [$rounded:expr, $by:expr];
    )*) => {$(
        convolutions! { @one $kernel, $plain, $ty, $more,
            Numerics::relative($absolute, $relative).accumulation(DType::$sums) }
        convolutions! { @one $kernel, $fused, $ty, $more,
            Numerics::relative($rounded, $by).accumulation(DType::$sums) }
    )*};
    (@one $kernel:ty, $op:literal, $ty:ident, ($($more:tt)*), $numerics:expr) => {
        register_kernel!($op on "CUDA": $kernel, types = ("T", &[DType::$ty]) $($more)*, numerics = $numerics);
    };
}

mod call;
mod conv;
mod conv_cudnn;
mod conv_filter;
mod conv_product;
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
