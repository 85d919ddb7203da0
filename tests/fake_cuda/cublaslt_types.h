// The part of the cuBLASLt interface that the fake has: handles, descriptions, attributes.
//
// Numbers and layouts are those of the published interface; descriptions are opaque.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fake_cublaslt {

enum Status : int {
    SUCCESS = 0,
    NOT_INITIALIZED = 1,
    ALLOC_FAILED = 3,
    INVALID_VALUE = 7,
    EXECUTION_FAILED = 13,
    NOT_SUPPORTED = 15,
};

// cudaDataType_t.
enum Type : int { R_32F = 0, R_64F = 1, R_16F = 2, R_16BF = 14 };

// cublasComputeType_t.
enum Compute : int { COMPUTE_32F = 68, COMPUTE_64F = 70, COMPUTE_32F_FAST_TF32 = 77 };

enum Operation : int { OP_N = 0, OP_T = 1 };

// cublasLtEpilogue_t: bits.
enum Epilogue : int { EPILOGUE_DEFAULT = 1, EPILOGUE_RELU = 2, EPILOGUE_BIAS = 4, EPILOGUE_GELU = 32 };

enum DescAttribute : int { DESC_TRANSA = 3, DESC_TRANSB = 4, DESC_EPILOGUE = 7, DESC_BIAS_POINTER = 8 };

enum LayoutAttribute : int { LAYOUT_BATCH_COUNT = 5, LAYOUT_STRIDED_BATCH_OFFSET = 6 };

enum PreferenceAttribute : int {
    PREF_MAX_WORKSPACE_BYTES = 1,
    PREF_REDUCTION_SCHEME_MASK = 3,
    PREF_MIN_ALIGNMENT_A_BYTES = 5,
    PREF_MIN_ALIGNMENT_D_BYTES = 8,
};

// Column after column: element (r, c) is number c * ld + r.
struct Layout {
    int type;
    uint64_t rows, columns;
    int64_t ld;
    int32_t batch_count = 1;
    int64_t batch_stride = 0;
};

struct Desc {
    int compute, scale;
    int32_t transa = OP_N, transb = OP_N;
    uint32_t epilogue = EPILOGUE_DEFAULT;
    uint64_t bias = 0;
};

struct Preference {
    uint64_t workspace = 0;
    uint32_t reduction_schemes = ~0u;
    uint32_t alignments[4] = {256, 256, 256, 256};
};

// What an algorithm of the fake is: for which problem it was given, and what it needs.
struct Algorithm {
    uint64_t problem;
    uint64_t workspace;
    uint32_t alignments[4];
    uint64_t bias_alignment;
    uint64_t number;
    uint64_t unused[2];
};
static_assert(sizeof(Algorithm) == 64, "cublasLtMatmulAlgo_t has 64 bytes");

struct HeuristicResult {
    Algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};
static_assert(sizeof(HeuristicResult) == 96, "cublasLtMatmulHeuristicResult_t has 96 bytes");

// All of one product.
struct Product {
    Desc desc;
    Layout a, b, d;
    const void* a_data;
    const void* b_data;
    const void* c_data;
    void* d_data;
    double alpha, beta;
    unsigned char* workspace;
    uint64_t workspace_bytes;
    uint64_t milliseconds;  // it takes at least so long
};

// Computes it: D = epilogue(alpha op(A) op(B) + beta C + bias), where C is not read if beta is 0.
void multiply(const Product& product);

}  // namespace fake_cublaslt
