//! Normalisations of rows and channels: softmax, layer and batch normalisation.
//!
//! | file | what |
//! |---|---|
//! | `rows.rs` | which entry point processes rows of a length |
//! | `softmax.rs` | `Softmax`, `LogSoftmax` |
//! | `loss.rs` | `SoftmaxCrossEntropyWithLogits` |
//! | `layer.rs` | `_FusedLayerNorm` |
//! | `batch.rs` | `FusedBatchNorm`, `FusedBatchNormV2`, `FusedBatchNormV3` |
//! | `batch_cudnn.rs` | the same by [`crate::cudnn`]: label `cudnn`, with lower priority |

mod batch;
mod batch_cudnn;
mod layer;
mod loss;
mod rows;
mod softmax;

use crate::compile::Variant;

pub(super) fn variants() -> Vec<Variant> {
    let mut all = softmax::variants();
    all.extend(layer::variants());
    all.extend(loss::variants());
    all.extend(batch::variants());
    all
}
