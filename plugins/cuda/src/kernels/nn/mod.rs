//! What slides windows over images: convolutions, poolings, dilation, and the normalisation over neighbouring channels.

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
