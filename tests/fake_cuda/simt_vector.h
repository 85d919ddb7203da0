// CUDA's built-in vector types and their make_ functions. Part of the text in front of kernel sources (see simt.h).
//
// Alignments are CUDA's: a vector of 2 or 4 elements is aligned to its size, at most to 16 bytes.
#pragma once

#define FAKE_CUDA_VECTORS(name, T, align2, align4) \
    struct name##1 { T x; }; \
    struct __attribute__((aligned(align2))) name##2 { T x, y; }; \
    struct __attribute__((aligned(align4))) name##4 { T x, y, z, w; }; \
    FAKE_CUDA_INLINE name##1 make_##name##1(T x) { return {x}; } \
    FAKE_CUDA_INLINE name##2 make_##name##2(T x, T y) { return {x, y}; } \
    FAKE_CUDA_INLINE name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

#define FAKE_CUDA_VECTOR3(name, T) \
    struct name { T x, y, z; }; \
    FAKE_CUDA_INLINE name make_##name(T x, T y, T z) { return {x, y, z}; }

FAKE_CUDA_VECTORS(char, signed char, 2, 4)
FAKE_CUDA_VECTORS(uchar, unsigned char, 2, 4)
FAKE_CUDA_VECTORS(short, short, 4, 8)
FAKE_CUDA_VECTORS(ushort, unsigned short, 4, 8)
FAKE_CUDA_VECTORS(int, int, 8, 16)
FAKE_CUDA_VECTORS(uint, unsigned, 8, 16)
FAKE_CUDA_VECTORS(long, long, 16, 16)
FAKE_CUDA_VECTORS(ulong, unsigned long, 16, 16)
FAKE_CUDA_VECTORS(longlong, long long, 16, 16)
FAKE_CUDA_VECTORS(ulonglong, unsigned long long, 16, 16)
FAKE_CUDA_VECTORS(float, float, 8, 16)
FAKE_CUDA_VECTORS(double, double, 16, 16)

FAKE_CUDA_VECTOR3(char3, signed char)
FAKE_CUDA_VECTOR3(uchar3, unsigned char)
FAKE_CUDA_VECTOR3(short3, short)
FAKE_CUDA_VECTOR3(ushort3, unsigned short)
FAKE_CUDA_VECTOR3(int3, int)
FAKE_CUDA_VECTOR3(long3, long)
FAKE_CUDA_VECTOR3(ulong3, unsigned long)
FAKE_CUDA_VECTOR3(longlong3, long long)
FAKE_CUDA_VECTOR3(ulonglong3, unsigned long long)
FAKE_CUDA_VECTOR3(float3, float)
FAKE_CUDA_VECTOR3(double3, double)
FAKE_CUDA_INLINE uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }

#undef FAKE_CUDA_VECTORS
#undef FAKE_CUDA_VECTOR3
