//! Convolutions and poolings over two dimensions, and poolings over three.

mod conv;
mod conv_cudnn;
mod depthwise;
mod epilogue;
mod pool;
mod pool_argmax;
mod pool_volume;
mod sizes;

use crate::compile::Variant;

pub(super) fn variants() -> Vec<Variant> {
    let families = [
        conv::variants(),
        conv_cudnn::variants(),
        depthwise::variants(),
        pool::variants(),
        pool_argmax::variants(),
        pool_volume::variants(),
    ];
    families.into_iter().flatten().collect()
}
