//! Constants of the library's headers that cudarc does not name.
//!
//! `.ci/cuda-libraries` compares them, and the constants of cudarc in use, with the headers of CUDA
//! 12 and 13.

use super::{
    SYMBOLS,
    descriptors::{Operation, Preference, layouts},
    problem::{Element, Epilogue, Problem},
    require,
};
use cudarc::cublaslt::sys::{
    cublasLtMatmulAlgo_t, cublasLtMatmulDescAttributes_t as Desc, cublasLtMatmulHeuristicResult_t,
    cublasLtMatmulPreferenceAttributes_t as Preferred, cublasLtMatrixLayoutAttribute_t as Matrix,
    cublasStatus_t as Status,
};
use std::mem::offset_of;
use tenon_sdk::KernelError;

/// `cublasOperation_t`.
pub(super) const OPERATION_NONE: i32 = 0;
pub(super) const OPERATION_TRANSPOSE: i32 = 1;

/// `cublasLtReductionScheme_t`: bits.
pub(super) const REDUCTION_IN_PLACE: u32 = 1;
pub(super) const REDUCTION_COMPUTE_TYPE: u32 = 2;

const ELEMENTS: [Element; 5] =
    [Element::Float, Element::Tf32, Element::Double, Element::Half, Element::Bfloat16];

const EPILOGUES: [Epilogue; 6] = [
    Epilogue::None,
    Epilogue::Relu,
    Epilogue::GeluByTanh,
    Epilogue::Bias,
    Epilogue::BiasRelu,
    Epilogue::BiasGeluByTanh,
];

/// The plugin's assumptions about the library: lines of `value`, `size`, `offset` and `symbol`,
/// fields separated by tabs.
#[doc(hidden)]
pub fn believed() -> Vec<String> {
    let value =
        |name: &dyn std::fmt::Debug, value: u32| format!("value\tcublasLt.h\t{name:?}\t{value}");
    let plain = |name: &str, value: u32| format!("value\tcublasLt.h\t{name}\t{value}");
    let mut lines = vec![
        plain("CUBLAS_OP_N", OPERATION_NONE as u32),
        plain("CUBLAS_OP_T", OPERATION_TRANSPOSE as u32),
        plain("CUBLASLT_REDUCTION_SCHEME_INPLACE", REDUCTION_IN_PLACE),
        plain("CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE", REDUCTION_COMPUTE_TYPE),
    ];
    for element in ELEMENTS {
        let (compute, scale) = element.compute();
        lines.push(value(&compute, compute as u32));
        lines.push(value(&scale, scale as u32));
        lines.push(value(&element.data(), element.data() as u32));
    }
    lines.extend(EPILOGUES.map(|epilogue| value(&epilogue.raw(), epilogue.raw() as u32)));
    lines.extend(attributes());
    lines.extend(STATUSES.map(|status| value(&status, status as u32)));
    let size = |name: &str, size: usize| format!("size\tcublasLt.h\t{name}\t{size}");
    lines.push(size("cublasLtMatmulAlgo_t", size_of::<cublasLtMatmulAlgo_t>()));
    type Found = cublasLtMatmulHeuristicResult_t;
    lines.push(size("cublasLtMatmulHeuristicResult_t", size_of::<Found>()));
    let offset = |field: &str, at: usize| {
        format!("offset\tcublasLt.h\tcublasLtMatmulHeuristicResult_t\t{field}\t{at}")
    };
    lines.push(offset("workspaceSize", offset_of!(Found, workspaceSize)));
    lines.push(offset("state", offset_of!(Found, state)));
    let symbol = |name: &&std::ffi::CStr| format!("symbol\tcublasLt\t{}", name.to_string_lossy());
    lines.extend(SYMBOLS.iter().map(symbol));
    lines
}

/// Every result that the library may return: a value outside the Rust enum would be undefined
/// behaviour.
const STATUSES: [Status; 10] = [
    Status::CUBLAS_STATUS_SUCCESS,
    Status::CUBLAS_STATUS_NOT_INITIALIZED,
    Status::CUBLAS_STATUS_ALLOC_FAILED,
    Status::CUBLAS_STATUS_INVALID_VALUE,
    Status::CUBLAS_STATUS_ARCH_MISMATCH,
    Status::CUBLAS_STATUS_MAPPING_ERROR,
    Status::CUBLAS_STATUS_EXECUTION_FAILED,
    Status::CUBLAS_STATUS_INTERNAL_ERROR,
    Status::CUBLAS_STATUS_NOT_SUPPORTED,
    Status::CUBLAS_STATUS_LICENSE_ERROR,
];

fn attributes() -> Vec<String> {
    let matrix = [
        Matrix::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
        Matrix::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
    ];
    let desc = [
        Desc::CUBLASLT_MATMUL_DESC_TRANSA,
        Desc::CUBLASLT_MATMUL_DESC_TRANSB,
        Desc::CUBLASLT_MATMUL_DESC_EPILOGUE,
        Desc::CUBLASLT_MATMUL_DESC_BIAS_POINTER,
    ];
    let preferred = [
        Preferred::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
        Preferred::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        Preferred::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        Preferred::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        Preferred::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        Preferred::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
    ];
    let line = |name: String, value: u32| format!("value\tcublasLt.h\t{name}\t{value}");
    let matrix = matrix.map(|it| line(format!("{it:?}"), it as u32));
    let desc = desc.map(|it| line(format!("{it:?}"), it as u32));
    let preferred = preferred.map(|it| line(format!("{it:?}"), it as u32));
    matrix.into_iter().chain(desc).chain(preferred).collect()
}

/// Makes the library create and fill every descriptor that products need, which takes no device;
/// returns their number.
///
/// # Errors
/// The library is missing, or rejects a descriptor.
#[doc(hidden)]
pub fn describe() -> Result<usize, KernelError> {
    require()?;
    let mut made = 0;
    for (element, epilogue) in ELEMENTS.iter().flat_map(|it| EPILOGUES.map(|end| (*it, end))) {
        for count in [1, 3] {
            let problem = Problem {
                element,
                m: 5,
                n: 7,
                k: 3,
                transposed: [count > 1, false],
                count,
                strides: [15, 0],
                adds: false,
                epilogue,
                alignments: [16, 4, 256, 256, 8],
            };
            made += layouts(&problem)?.len();
            Operation::new(&problem, 256)?;
            Preference::new(&problem, 1 << 25)?;
            made += 2;
        }
    }
    Ok(made)
}
