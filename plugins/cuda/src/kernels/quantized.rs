//! Products of 8-bit values: with the sums and the output stages of plugins/int8, bit for bit.
//!
//! `plugins/int8/docs/quantization.md` defines the arithmetic; `quantized_output.cuh` implements
//! its output stages. The host reads and checks scales, zero points and bias as plugins/int8 does.
//! Values per column are passed to the device as launch parameters, so that nothing has to outlive
//! the call.
//!
//! | file | what |
//! |---|---|
//! | `product.rs` | a product as launches of `quantized_gemm.cu` |
//! | `parameters.rs` | the parameters of fused products, checked, and the values for each column |
//! | `fused.rs` | `_QuantizedFusedMatMul` |
//! | `ranges.rs`, `matmul.rs` | ranges of codes, and `QuantizedMatMul`, which derives its zero points from them |

mod fused;
mod matmul;
mod parameters;
mod product;
mod ranges;

pub(super) use product::variants;
