//! Matrix products to compute.

use cudarc::cublaslt::sys::{cublasComputeType_t, cublasLtEpilogue_t, cudaDataType_t};

/// Element type of all operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Element {
    /// IEEE binary32.
    Float,
    /// IEEE binary32, whose factors may be rounded to the 19 bits of TF32.
    Tf32,
    /// IEEE binary64.
    Double,
    /// IEEE binary16, summed in binary32.
    Half,
    /// bfloat16, summed in binary32.
    Bfloat16,
}

impl Element {
    /// Bytes of an element.
    pub fn size(self) -> u64 {
        match self {
            Element::Double => 8,
            Element::Float | Element::Tf32 => 4,
            Element::Half | Element::Bfloat16 => 2,
        }
    }

    pub(super) fn data(self) -> cudaDataType_t {
        match self {
            Element::Float | Element::Tf32 => cudaDataType_t::CUDA_R_32F,
            Element::Double => cudaDataType_t::CUDA_R_64F,
            Element::Half => cudaDataType_t::CUDA_R_16F,
            Element::Bfloat16 => cudaDataType_t::CUDA_R_16BF,
        }
    }

    /// The type of sums, and that of the factors before them.
    pub(super) fn compute(self) -> (cublasComputeType_t, cudaDataType_t) {
        match self {
            Element::Double => {
                (cublasComputeType_t::CUBLAS_COMPUTE_64F, cudaDataType_t::CUDA_R_64F)
            }
            Element::Tf32 => {
                (cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32, cudaDataType_t::CUDA_R_32F)
            }
            _ => (cublasComputeType_t::CUBLAS_COMPUTE_32F, cudaDataType_t::CUDA_R_32F),
        }
    }
}

/// The operation that the library applies to sums before it writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Epilogue {
    /// Nothing.
    None,
    /// `max(x, 0)`.
    Relu,
    /// The approximation of GELU by `tanh`, which is what the library calls GELU.
    GeluByTanh,
    /// Adds a vector of one value per column.
    Bias,
    /// `Bias`, then `Relu`.
    BiasRelu,
    /// `Bias`, then `GeluByTanh`.
    BiasGeluByTanh,
}

impl Epilogue {
    /// Whether a vector is added.
    pub fn has_bias(self) -> bool {
        matches!(self, Epilogue::Bias | Epilogue::BiasRelu | Epilogue::BiasGeluByTanh)
    }

    pub(super) fn raw(self) -> cublasLtEpilogue_t {
        match self {
            Epilogue::None => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_DEFAULT,
            Epilogue::Relu => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_RELU,
            Epilogue::GeluByTanh => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_GELU,
            Epilogue::Bias => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS,
            Epilogue::BiasRelu => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_RELU_BIAS,
            Epilogue::BiasGeluByTanh => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_GELU_BIAS,
        }
    }
}

/// Products `C = A B` of dense, row-major matrices: `A` is `[m, k]`, or `[k, m]` where it is
/// transposed, `B` is `[k, n]` or `[n, k]`, `C` is `[m, n]`. All sizes are positive.
///
/// The library's matrices are column-major, so that a row-major matrix is the transpose of a
/// library matrix; the library computes `C' = B' A'`, with the factors in the other order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Element type.
    pub element: Element,
    /// Rows.
    pub m: u64,
    /// Columns.
    pub n: u64,
    /// Terms of each sum.
    pub k: u64,
    /// Whether `A` and `B` are transposed.
    pub transposed: [bool; 2],
    /// Number of products.
    pub count: u32,
    /// Elements from one matrix to the next, of `A` and `B`; 0 uses the same matrix each time. The
    /// matrices of `C` are contiguous.
    pub strides: [u64; 2],
    /// Whether a matrix of `C`'s form is added to the products, before the epilogue.
    pub adds: bool,
    /// The operation that the library applies to the sums.
    pub epilogue: Epilogue,
    /// Alignment in bytes, at most 256, of the addresses of `A`, `B`, `C`, the added matrix and the
    /// vector; 256 for an absent operand. Algorithms depend on all of them: they determine how much
    /// is read at once.
    pub alignments: [u32; 5],
}

/// Operations from which on a product is worth a search: below, launching it costs more than
/// computing it.
const LARGE: u128 = 1 << 20;

impl Problem {
    /// The alignment of an address, for [`Problem::alignments`]; the greatest for 0, an absent
    /// operand.
    pub fn alignment(address: u64) -> u32 {
        1 << address.trailing_zeros().min(8)
    }

    /// Whether the product is so large that searching for the fastest algorithm is worthwhile.
    pub fn is_large(&self) -> bool {
        let sizes = [self.m, self.n, self.k, u64::from(self.count), 2];
        sizes.into_iter().map(u128::from).fold(1, u128::saturating_mul) >= LARGE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_of_81_are_worth_a_search_and_small_ones_are_not() {
        let square = |m| Problem {
            element: Element::Float,
            m,
            n: m,
            k: m,
            transposed: [false; 2],
            count: 1,
            strides: [0; 2],
            adds: false,
            epilogue: Epilogue::None,
            alignments: [256; 5],
        };
        assert!(square(81).is_large() && square(u64::MAX).is_large());
        assert!(!square(80).is_large());
        assert_eq!([0, 256, 4, 6, 4096].map(Problem::alignment), [256, 256, 4, 2, 256]);
    }
}
