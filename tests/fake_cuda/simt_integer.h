// CUDA's integer intrinsics, conversions, min and max. Part of the text in front of kernel sources (see simt.h).
#pragma once

#define FAKE_CUDA_MINMAX(R, A, B)                                                                                   \
    FAKE_CUDA_INLINE R min(A a, B b) { return static_cast<R>(a) < static_cast<R>(b) ? static_cast<R>(a) : static_cast<R>(b); } \
    FAKE_CUDA_INLINE R max(A a, B b) { return static_cast<R>(a) < static_cast<R>(b) ? static_cast<R>(b) : static_cast<R>(a); }
FAKE_CUDA_MINMAX(int, int, int)
FAKE_CUDA_MINMAX(unsigned, unsigned, unsigned)
FAKE_CUDA_MINMAX(unsigned, int, unsigned)
FAKE_CUDA_MINMAX(unsigned, unsigned, int)
FAKE_CUDA_MINMAX(long, long, long)
FAKE_CUDA_MINMAX(unsigned long, unsigned long, unsigned long)
FAKE_CUDA_MINMAX(unsigned long, long, unsigned long)
FAKE_CUDA_MINMAX(unsigned long, unsigned long, long)
FAKE_CUDA_MINMAX(long long, long long, long long)
FAKE_CUDA_MINMAX(unsigned long long, unsigned long long, unsigned long long)
FAKE_CUDA_MINMAX(unsigned long long, long long, unsigned long long)
FAKE_CUDA_MINMAX(unsigned long long, unsigned long long, long long)
#undef FAKE_CUDA_MINMAX
FAKE_CUDA_INLINE float min(float a, float b) { return fminf(a, b); }
FAKE_CUDA_INLINE float max(float a, float b) { return fmaxf(a, b); }
FAKE_CUDA_INLINE double min(double a, double b) { return fmin(a, b); }
FAKE_CUDA_INLINE double max(double a, double b) { return fmax(a, b); }
FAKE_CUDA_INLINE double min(float a, double b) { return fmin(a, b); }
FAKE_CUDA_INLINE double max(float a, double b) { return fmax(a, b); }
FAKE_CUDA_INLINE double min(double a, float b) { return fmin(a, b); }
FAKE_CUDA_INLINE double max(double a, float b) { return fmax(a, b); }

FAKE_CUDA_INLINE int __float_as_int(float x) { return fake_cuda::bits<int>(x); }
FAKE_CUDA_INLINE unsigned __float_as_uint(float x) { return fake_cuda::bits<unsigned>(x); }
FAKE_CUDA_INLINE float __int_as_float(int x) { return fake_cuda::bits<float>(x); }
FAKE_CUDA_INLINE float __uint_as_float(unsigned x) { return fake_cuda::bits<float>(x); }
FAKE_CUDA_INLINE long long __double_as_longlong(double x) { return fake_cuda::bits<long long>(x); }
FAKE_CUDA_INLINE double __longlong_as_double(long long x) { return fake_cuda::bits<double>(x); }
FAKE_CUDA_INLINE int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
FAKE_CUDA_INLINE int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
FAKE_CUDA_INLINE double __hiloint2double(int high, int low) {
    const unsigned long long upper = static_cast<unsigned>(high), lower = static_cast<unsigned>(low);
    return fake_cuda::bits<double>(upper << 32 | lower);
}

FAKE_CUDA_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
FAKE_CUDA_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
FAKE_CUDA_INLINE int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
FAKE_CUDA_INLINE int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
FAKE_CUDA_INLINE int __ffs(int x) { return __builtin_ffs(x); }
FAKE_CUDA_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
FAKE_CUDA_INLINE unsigned __brev(unsigned x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}
FAKE_CUDA_INLINE unsigned long long __brevll(unsigned long long x) {
    return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 | __brev(static_cast<unsigned>(x >> 32));
}
FAKE_CUDA_INLINE int __mulhi(int a, int b) { return static_cast<int>(static_cast<long long>(a) * b >> 32); }
FAKE_CUDA_INLINE unsigned __umulhi(unsigned a, unsigned b) {
    return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
FAKE_CUDA_INLINE long long __mul64hi(long long a, long long b) {
    return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}
FAKE_CUDA_INLINE unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
FAKE_CUDA_INLINE int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
FAKE_CUDA_INLINE unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
FAKE_CUDA_INLINE int __hadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b) >> 1); }
FAKE_CUDA_INLINE unsigned __sad(int a, int b, unsigned c) {
    return c + (a > b ? static_cast<unsigned>(a) - static_cast<unsigned>(b) : static_cast<unsigned>(b) - static_cast<unsigned>(a));
}
FAKE_CUDA_INLINE unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    const unsigned long long both = static_cast<unsigned long long>(y) << 32 | x;
    unsigned result = 0;
    for (unsigned i = 0; i < 4; ++i) {
        result |= static_cast<unsigned>(both >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
    }
    return result;
}
FAKE_CUDA_INLINE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>(((static_cast<unsigned long long>(high) << 32 | low) << (shift & 31)) >> 32);
}
FAKE_CUDA_INLINE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (shift & 31));
}

// The dot product of four signed or unsigned bytes each, added to `c` modulo 2^32 (the PTX instruction dp4a).
FAKE_CUDA_INLINE int __dp4a(int a, int b, int c) {
    unsigned sum = static_cast<unsigned>(c);
    for (int i = 0; i < 32; i += 8) {
        sum += static_cast<unsigned>(static_cast<signed char>(a >> i) * static_cast<signed char>(b >> i));
    }
    return static_cast<int>(sum);
}
FAKE_CUDA_INLINE unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    for (int i = 0; i < 32; i += 8) {
        c += static_cast<unsigned>(static_cast<unsigned char>(a >> i)) * static_cast<unsigned char>(b >> i);
    }
    return c;
}

#define FAKE_CUDA_TO_INTEGER(from, F, to, T, suffix)                                                             \
    FAKE_CUDA_INLINE T __##from##2##to##_rn(F x) { return fake_cuda::saturate<T>(__builtin_rint##suffix(x)); }   \
    FAKE_CUDA_INLINE T __##from##2##to##_rz(F x) { return fake_cuda::saturate<T>(__builtin_trunc##suffix(x)); }  \
    FAKE_CUDA_INLINE T __##from##2##to##_rd(F x) { return fake_cuda::saturate<T>(__builtin_floor##suffix(x)); }  \
    FAKE_CUDA_INLINE T __##from##2##to##_ru(F x) { return fake_cuda::saturate<T>(__builtin_ceil##suffix(x)); }
FAKE_CUDA_TO_INTEGER(float, float, int, int, f)
FAKE_CUDA_TO_INTEGER(float, float, uint, unsigned, f)
FAKE_CUDA_TO_INTEGER(float, float, ll, long long, f)
FAKE_CUDA_TO_INTEGER(float, float, ull, unsigned long long, f)
FAKE_CUDA_TO_INTEGER(double, double, int, int, )
FAKE_CUDA_TO_INTEGER(double, double, uint, unsigned, )
FAKE_CUDA_TO_INTEGER(double, double, ll, long long, )
FAKE_CUDA_TO_INTEGER(double, double, ull, unsigned long long, )
#undef FAKE_CUDA_TO_INTEGER

FAKE_CUDA_INLINE float __int2float_rn(int x) { return static_cast<float>(x); }
FAKE_CUDA_INLINE float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
FAKE_CUDA_INLINE float __ll2float_rn(long long x) { return static_cast<float>(x); }
FAKE_CUDA_INLINE float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
FAKE_CUDA_INLINE double __int2double_rn(int x) { return static_cast<double>(x); }
FAKE_CUDA_INLINE double __uint2double_rn(unsigned x) { return static_cast<double>(x); }
FAKE_CUDA_INLINE double __ll2double_rn(long long x) { return static_cast<double>(x); }
FAKE_CUDA_INLINE double __ull2double_rn(unsigned long long x) { return static_cast<double>(x); }
FAKE_CUDA_INLINE float __double2float_rn(double x) { return static_cast<float>(x); }
