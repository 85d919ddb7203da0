//! Products of values of 8 bits: the sums and the output stages of plugins/int8, to the bit.
//!
//! The arithmetic is written down in `plugins/int8/docs/quantization.md`; `quantized_output.cuh` has its output stages.
//! Scales, zero points and bias are read on the host, where they are checked as there; what belongs to columns goes to the
//! device as parameters of launches, so that nothing has to outlive the call.
//!
//! | file | what |
//! |---|---|
//! | `product.rs` | a product as launches of `quantized_gemm.cu` |
//! | `parameters.rs` | the parameters of fused products, checked, and what they are for each column |
//! | `fused.rs` | `_QuantizedFusedMatMul` |
//! | `ranges.rs`, `matmul.rs` | ranges of codes, and `QuantizedMatMul`, whose zero points follow from them |

mod fused;
mod matmul;
mod parameters;
mod product;
mod ranges;

pub(super) use product::variants;
