//! Lists of element types that registrations share.

use tenon_sdk::{DType, reg::join_types};

/// Floating-point types.
pub(super) const FLOATS: &[DType] = &[DType::HALF, DType::BFLOAT16, DType::FLOAT, DType::DOUBLE];
/// Floating-point types of ops without bfloat16.
pub(super) const WITHOUT_BF16: &[DType] = &[DType::HALF, DType::FLOAT, DType::DOUBLE];
/// Floating-point types of 32 and 64 bits.
pub(super) const DOUBLES: &[DType] = &[DType::FLOAT, DType::DOUBLE];
/// Types of `Mod` and `TruncateMod`.
pub(super) const DIVIDED: &[DType] = &[DType::FLOAT, DType::DOUBLE, DType::INT32, DType::INT64];
/// Integers.
pub(super) const INTEGERS: &[DType] = &[
    DType::INT8,
    DType::INT16,
    DType::INT32,
    DType::INT64,
    DType::UINT8,
    DType::UINT16,
    DType::UINT32,
    DType::UINT64,
];
/// Signed integers.
pub(super) const SIGNED_INTEGERS: &[DType] =
    &[DType::INT8, DType::INT16, DType::INT32, DType::INT64];
/// Floats and signed integers.
pub(super) const SIGNED: &[DType] = &join_types::<8>(FLOATS, SIGNED_INTEGERS);
/// Floats and integers.
pub(super) const NUMBERS: &[DType] = &join_types::<12>(FLOATS, INTEGERS);
/// Every type that these kernels support.
pub(super) const ALL: &[DType] = &join_types::<13>(NUMBERS, &[DType::BOOL]);
/// Types of `Add`.
pub(super) const ADDED: &[DType] = &join_types::<9>(SIGNED, &[DType::UINT8]);
/// Types of `Round`.
pub(super) const ROUNDED: &[DType] = &join_types::<6>(FLOATS, &[DType::INT32, DType::INT64]);
/// Types of `ClipByValue`.
pub(super) const CLIPPED: &[DType] = &join_types::<10>(SIGNED, &[DType::UINT8, DType::UINT16]);

/// Types that represent the others, which differ from them only in width.
pub(super) const EXAMPLES: &[DType] = &[
    DType::HALF,
    DType::BFLOAT16,
    DType::FLOAT,
    DType::DOUBLE,
    DType::INT32,
    DType::INT64,
    DType::BOOL,
];
