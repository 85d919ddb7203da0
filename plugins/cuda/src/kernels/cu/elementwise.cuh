// Code shared by the elementwise families: their macros, the number of elements in a pack, and
// broadcast operands.
//
// Macros, set by who compiles:
//   T       element type of the inputs
//   U   element type of the output; T if it is not set
//   OP          name of the functor, that of the op
//   INDEX       u32 (fewer than 2^31 elements, in each operand too) or u64; u32 if it is not set
//   LANES       elements in a pack, a power of two; if it is not set, as many as fill 16 bytes of the wider type.
//               1 where a pointer is not aligned to packs
//   LAYOUT      the one entry point to compile, by its name in capitals; all if it is not set
//
// Numbers of elements are u64 whatever INDEX is. Blocks have up to 256 threads; grids have one
// dimension and any number of blocks, and the kernels loop over the remaining elements.
#pragma once
#include "dims.cuh"
#include "vector.cuh"

#ifndef U
#define U T
#endif
#ifndef INDEX
#define INDEX u32
#endif
#ifndef LANES
#define LANES (lanes_of<T, U>)
#endif

#define KERNEL extern "C" __global__ __launch_bounds__(256) void

// Layouts. A test `#if COMPILES(SAME)` is true where LAYOUT is SAME, or not set.
#define LAYOUT_SAME 1
#define LAYOUT_SCALAR_LEFT 2
#define LAYOUT_SCALAR_RIGHT 3
#define LAYOUT_SCALARS 4
#define LAYOUT_BROADCAST 5
#define TENON_JOIN(A, B) A##B
#define TENON_LAYOUT(NAME) TENON_JOIN(LAYOUT_, NAME)
#ifdef LAYOUT
#define COMPILES(NAME) (TENON_LAYOUT(LAYOUT) == LAYOUT_##NAME)
#else
#define COMPILES(NAME) 1
#endif

// Every entry calls this first. With OVERLAP, launches follow each other without a gap (knob
// `overlap_launches`): the next launch may begin when all blocks of this one have begun, and this
// one continues when the previous launch has ended and its writes are visible (CUDA C++ Programming
// Guide, "Programmatic Dependent Launch"). Before this call, an entry may read only its parameters.
DEVICE void await_previous() {
#if defined(OVERLAP) && !defined(TENON_EMULATED) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory");
#endif
}

// A broadcast operand's N elements for a pack of the output that starts at `offset`: side by side,
// or one repeated. Dimension 0 of the output is counted in packs, so the operand's stride there is
// N or 0. With N = 1 any stride is valid.
template <int N, typename X, typename O> DEVICE Pack<X, N> load_broadcast(const X* x, O offset, i64 stride) {
    if constexpr (N == 1) return {load(x + offset)};
    else {
        if (stride == 0) return splat<N>(load(x + offset));
        return load_pack<N>(x + offset, 0);
    }
}
