// Products of matrices: see gemm.cuh for what a launch does and for most defines.
//
// Defines: T, A_TRANSPOSED, B_TRANSPOSED, BM, BN, THREADS; TM, TN and DEPTH (terms of a tile) for sums in registers. Where TENSOR_CORES is
// there, it is the least __CUDA_ARCH__ whose tensor cores multiply T; WM, WN and STAGES are for those.
#include "gemm.cuh"

#if defined(TENSOR_CORES) && (defined(TENON_EMULATED) || __CUDA_ARCH__ >= TENSOR_CORES)
#include "gemm_mma.cuh"
#else
#include "gemm_fma.cuh"
#endif

// A count of blocks, whatever it is, keeps ptxas from spilling for the sake of more of them.
extern "C" __global__ void __launch_bounds__(THREADS, BM * BN < 128 * 128 ? 2 : 1) gemm(Gemm p) {
    compute_tile(p);
}
