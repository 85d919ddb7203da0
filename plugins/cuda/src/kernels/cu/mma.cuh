// Tensor cores: products of small matrices by a warp, and the loads of their operands.
//
// The fragments are those of the PTX ISA, "Matrix Fragments for mma.m16n8k16" and "... m16n8k32". With g = lane / 4 and
// t = lane % 4, of 16-bit elements
//
//   A (16 x 16)   words 0..3: row g (+ 8 in words 1 and 3), columns 2t, 2t+1 (+ 8 in words 2 and 3)
//   B (16 x 8)    words 0..1: rows 2t, 2t+1 (+ 8 in word 1), column g
//   C (16 x 8)    values 0..3: row g (+ 8 in values 2 and 3), columns 2t, 2t+1
//
// and of bytes A is 16 x 32, B 32 x 8, and a word has 4 bytes side by side instead of two elements.
//
// Under TENON_EMULATED the same fragments are computed in plain C, through memory that the lanes
// share.
#pragma once
#include "reduce.cuh"

// Loads four matrices of 8 rows of 16 bytes, one word of each for this lane. Lane i gives the
// address of row i % 8 of matrix i / 8, a multiple of 16 in shared memory. Word j is that of row g
// and bytes 4t to 4t+3 of matrix j.
DEVICE void load_matrices(u32 (&words)[4], const void* row);

// Loads the same matrices, each transposed as 8 x 8 elements of 16 bits.
DEVICE void load_transposed(u32 (&words)[4], const void* row);

// C += A B.
DEVICE void multiply_add(f32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2], f16);
DEVICE void multiply_add(f32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2], bf16);
// C += A B for bytes. The sums wrap.
template <typename A, typename B> DEVICE void multiply_add(i32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2], A, B);

// Copies 16 bytes to shared memory, or writes zeros there, at some time before `wait_for_copies`;
// before sm_80 at once.
DEVICE void copy_later(void* shared, const void* global, bool is_there);
// Ends a group of copies of this thread.
DEVICE void end_copies();
// Waits until all but the last PENDING groups of this thread have arrived.
template <int PENDING> DEVICE void wait_for_copies();

#ifndef TENON_EMULATED

DEVICE u32 shared_address(const void* p) {
    u32 address;
    asm("{ .reg .u64 all; cvta.to.shared.u64 all, %1; cvt.u32.u64 %0, all; }" : "=r"(address) : "l"(p));
    return address;
}

DEVICE void load_matrices(u32 (&words)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(shared_address(row))
                 : "memory");
}

DEVICE void load_transposed(u32 (&words)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(shared_address(row))
                 : "memory");
}

#if __CUDA_ARCH__ >= 800

#define MMA_OF_4(shape, types, c, a, b, constraint)                                                        \
    asm("mma.sync.aligned." shape ".row.col." types " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
        : constraint(c[0]), constraint(c[1]), constraint(c[2]), constraint(c[3])                            \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

DEVICE void multiply_add(f32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2], f16) {
    MMA_OF_4("m16n8k16", "f32.f16.f16.f32", c, a, b, "+f");
}

DEVICE void multiply_add(f32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2], bf16) {
    MMA_OF_4("m16n8k16", "f32.bf16.bf16.f32", c, a, b, "+f");
}

template <typename A, typename B> DEVICE void multiply_add(i32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2], A, B) {
    if constexpr (is_same<A, u8> && is_same<B, u8>) MMA_OF_4("m16n8k32", "s32.u8.u8.s32", c, a, b, "+r");
    if constexpr (is_same<A, u8> && is_same<B, i8>) MMA_OF_4("m16n8k32", "s32.u8.s8.s32", c, a, b, "+r");
    if constexpr (is_same<A, i8> && is_same<B, u8>) MMA_OF_4("m16n8k32", "s32.s8.u8.s32", c, a, b, "+r");
    if constexpr (is_same<A, i8> && is_same<B, i8>) MMA_OF_4("m16n8k32", "s32.s8.s8.s32", c, a, b, "+r");
}

#undef MMA_OF_4

DEVICE void copy_later(void* shared, const void* global, bool is_there) {
    // With a size of 0, all 16 bytes become zeros and nothing is read.
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(shared_address(shared)), "l"(global), "r"(is_there ? 16 : 0)
                 : "memory");
}

DEVICE void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int PENDING> DEVICE void wait_for_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory"); }

#else  // Turing: half the depth at once, and no bfloat16.

DEVICE void multiply_add(f32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2], f16) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
    }
}

#define MMA_OF_2(types, c, a, b)                                                                            \
    asm("mma.sync.aligned.m8n8k16.row.col." types " {%0, %1}, {%2}, {%3}, {%0, %1};"                        \
        : "+r"(c[0]), "+r"(c[1])                                                                            \
        : "r"(a), "r"(b))

// Rows in halves of 8, depth in halves of 16: the words of a fragment of 16 x 32 are those of four of 8 x 16.
template <typename A, typename B> DEVICE void multiply_add(i32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2], A, B) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int rows = 0; rows < 2; ++rows) {
            i32* to = c + 2 * rows;
            const u32 x = a[2 * half + rows], y = b[half];
            if constexpr (is_same<A, u8> && is_same<B, u8>) MMA_OF_2("s32.u8.u8.s32", to, x, y);
            if constexpr (is_same<A, u8> && is_same<B, i8>) MMA_OF_2("s32.u8.s8.s32", to, x, y);
            if constexpr (is_same<A, i8> && is_same<B, u8>) MMA_OF_2("s32.s8.u8.s32", to, x, y);
            if constexpr (is_same<A, i8> && is_same<B, i8>) MMA_OF_2("s32.s8.s8.s32", to, x, y);
        }
    }
}

#undef MMA_OF_2

DEVICE void copy_later(void* shared, const void* global, bool is_there) {
    *(uint4*)shared = is_there ? __ldg((const uint4*)global) : make_uint4(0, 0, 0, 0);
}

DEVICE void end_copies() {}

template <int PENDING> DEVICE void wait_for_copies() {}

#endif

#else  // Emulated.

inline constexpr int MOST_WARPS = 8;

DEVICE const u8* row_of_lane(const void* row, int lane) {
    return (const u8*)__shfl_sync(ALL_LANES, (unsigned long long)row, lane);
}

DEVICE void load_matrices(u32 (&words)[4], const void* row) {
    const int lane = threadIdx.x % WARP;
    for (int i = 0; i < 4; ++i) {
        const u8* from = row_of_lane(row, i * 8 + lane / 4) + 4 * (lane % 4);
        __builtin_memcpy(&words[i], from, 4);
    }
    __syncwarp();
}

DEVICE void load_transposed(u32 (&words)[4], const void* row) {
    const int lane = threadIdx.x % WARP;
    for (int i = 0; i < 4; ++i) {
        u16 both[2];
        for (int j = 0; j < 2; ++j) {
            const u8* from = row_of_lane(row, i * 8 + 2 * (lane % 4) + j) + 2 * (lane / 4);
            __builtin_memcpy(&both[j], from, 2);
        }
        __builtin_memcpy(&words[i], both, 4);
    }
    __syncwarp();
}

// Both factors of a warp's product, of TERMS terms, in the type of sums.
template <typename C, int TERMS> struct Factors {
    C a[16][TERMS];
    C b[8][TERMS];
};

// Puts the elements of a word at their position in the fragment; `half` selects the half of the
// terms.
template <typename X, typename C, int TERMS> DEVICE void put_word(C (&line)[TERMS], u32 word, int half) {
    constexpr int EACH = 4 / sizeof(X);
    for (int i = 0; i < EACH; ++i) {
        X x;
        __builtin_memcpy(&x, (const u8*)&word + i * sizeof(X), sizeof(X));
        line[half * TERMS / 2 + threadIdx.x % 4 * EACH + i] = (C)x;
    }
}

template <typename C, typename A, typename B>
DEVICE void multiply_add_all(C (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    constexpr int TERMS = 32 / sizeof(A);
    __shared__ Factors<C, TERMS> all[MOST_WARPS];
    Factors<C, TERMS>& own = all[threadIdx.x / WARP];
    const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
    // The readers of the previous call are done.
    __syncwarp();
    for (int i = 0; i < 4; ++i) put_word<A>(own.a[g + i % 2 * 8], a[i], i / 2);
    for (int i = 0; i < 2; ++i) put_word<B>(own.b[g], b[i], i);
    __syncwarp();
    for (int i = 0; i < 4; ++i) {
        const C(&x)[TERMS] = own.a[g + i / 2 * 8];
        const C(&y)[TERMS] = own.b[2 * t + i % 2];
        for (int k = 0; k < TERMS; ++k) c[i] = add(c[i], mul(x[k], y[k]));
    }
}

DEVICE void multiply_add(f32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2], f16) {
    multiply_add_all<f32, f16, f16>(c, a, b);
}

DEVICE void multiply_add(f32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2], bf16) {
    multiply_add_all<f32, bf16, bf16>(c, a, b);
}

template <typename A, typename B> DEVICE void multiply_add(i32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2], A, B) {
    multiply_add_all<i32, A, B>(c, a, b);
}

DEVICE void copy_later(void* shared, const void* global, bool is_there) {
    if (is_there) __builtin_memcpy(shared, global, 16);
    else __builtin_memset(shared, 0, 16);
}

DEVICE void end_copies() {}

template <int PENDING> DEVICE void wait_for_copies() {}

#endif
