// CUDA's mathematical functions on top of the C library. Part of the text in front of kernel sources (see simt.h).
//
// A "fast" function (`__expf`, ...) is the accurate one here: whoever needs its tolerance on a GPU states it in the
// test, not in the fake.
#pragma once

#define FAKE_CUDA_UNARY(name)                                   \
    extern "C" double name(double) noexcept;                    \
    extern "C" float name##f(float) noexcept;                   \
    FAKE_CUDA_INLINE float name(float x) { return name##f(x); }
#define FAKE_CUDA_BINARY(name)                                               \
    extern "C" double name(double, double) noexcept;                         \
    extern "C" float name##f(float, float) noexcept;                         \
    FAKE_CUDA_INLINE float name(float x, float y) { return name##f(x, y); }

FAKE_CUDA_UNARY(acos) FAKE_CUDA_UNARY(acosh) FAKE_CUDA_UNARY(asin) FAKE_CUDA_UNARY(asinh) FAKE_CUDA_UNARY(atan)
FAKE_CUDA_UNARY(atanh) FAKE_CUDA_UNARY(cbrt) FAKE_CUDA_UNARY(ceil) FAKE_CUDA_UNARY(cos) FAKE_CUDA_UNARY(cosh)
FAKE_CUDA_UNARY(erf) FAKE_CUDA_UNARY(erfc) FAKE_CUDA_UNARY(exp) FAKE_CUDA_UNARY(exp10) FAKE_CUDA_UNARY(exp2)
FAKE_CUDA_UNARY(expm1) FAKE_CUDA_UNARY(fabs) FAKE_CUDA_UNARY(floor) FAKE_CUDA_UNARY(j0) FAKE_CUDA_UNARY(j1)
FAKE_CUDA_UNARY(lgamma) FAKE_CUDA_UNARY(log) FAKE_CUDA_UNARY(log10) FAKE_CUDA_UNARY(log1p) FAKE_CUDA_UNARY(log2)
FAKE_CUDA_UNARY(logb) FAKE_CUDA_UNARY(nearbyint) FAKE_CUDA_UNARY(rint) FAKE_CUDA_UNARY(round) FAKE_CUDA_UNARY(sin)
FAKE_CUDA_UNARY(sinh) FAKE_CUDA_UNARY(sqrt) FAKE_CUDA_UNARY(tan) FAKE_CUDA_UNARY(tanh) FAKE_CUDA_UNARY(tgamma)
FAKE_CUDA_UNARY(trunc) FAKE_CUDA_UNARY(y0) FAKE_CUDA_UNARY(y1)

FAKE_CUDA_BINARY(atan2) FAKE_CUDA_BINARY(copysign) FAKE_CUDA_BINARY(fdim) FAKE_CUDA_BINARY(fmax)
FAKE_CUDA_BINARY(fmin) FAKE_CUDA_BINARY(fmod) FAKE_CUDA_BINARY(hypot) FAKE_CUDA_BINARY(nextafter)
FAKE_CUDA_BINARY(pow) FAKE_CUDA_BINARY(remainder)
#undef FAKE_CUDA_UNARY
#undef FAKE_CUDA_BINARY

extern "C" {
double fma(double, double, double) noexcept;
float fmaf(float, float, float) noexcept;
double frexp(double, int*) noexcept;
float frexpf(float, int*) noexcept;
double ldexp(double, int) noexcept;
float ldexpf(float, int) noexcept;
double scalbn(double, int) noexcept;
float scalbnf(float, int) noexcept;
double modf(double, double*) noexcept;
float modff(float, float*) noexcept;
int ilogb(double) noexcept;
int ilogbf(float) noexcept;
long lrint(double) noexcept;
long lrintf(float) noexcept;
long long llrint(double) noexcept;
long long llrintf(float) noexcept;
long lround(double) noexcept;
long lroundf(float) noexcept;
long long llround(double) noexcept;
long long llroundf(float) noexcept;
void sincos(double, double*, double*) noexcept;
void sincosf(float, float*, float*) noexcept;
int abs(int) noexcept;
long labs(long) noexcept;
long long llabs(long long) noexcept;
void* memcpy(void*, const void*, size_t) noexcept;
void* memset(void*, int, size_t) noexcept;
}

FAKE_CUDA_INLINE float fma(float x, float y, float z) { return fmaf(x, y, z); }
FAKE_CUDA_INLINE float ldexp(float x, int e) { return ldexpf(x, e); }
FAKE_CUDA_INLINE float frexp(float x, int* e) { return frexpf(x, e); }
FAKE_CUDA_INLINE float modf(float x, float* whole) { return modff(x, whole); }
FAKE_CUDA_INLINE float abs(float x) { return __builtin_fabsf(x); }
FAKE_CUDA_INLINE double abs(double x) { return __builtin_fabs(x); }
FAKE_CUDA_INLINE long abs(long x) { return labs(x); }
FAKE_CUDA_INLINE long long abs(long long x) { return llabs(x); }

FAKE_CUDA_INLINE float rsqrtf(float x) { return static_cast<float>(1.0 / sqrt(static_cast<double>(x))); }
FAKE_CUDA_INLINE double rsqrt(double x) { return 1.0 / sqrt(x); }
FAKE_CUDA_INLINE float rsqrt(float x) { return rsqrtf(x); }
FAKE_CUDA_INLINE float rcbrtf(float x) { return static_cast<float>(1.0 / cbrt(static_cast<double>(x))); }
FAKE_CUDA_INLINE double rcbrt(double x) { return 1.0 / cbrt(x); }
FAKE_CUDA_INLINE double sinpi(double x) { return sin(3.14159265358979323846 * fmod(x, 2.0)); }
FAKE_CUDA_INLINE double cospi(double x) { return cos(3.14159265358979323846 * fmod(x, 2.0)); }
FAKE_CUDA_INLINE float sinpif(float x) { return static_cast<float>(sinpi(static_cast<double>(x))); }
FAKE_CUDA_INLINE float cospif(float x) { return static_cast<float>(cospi(static_cast<double>(x))); }
FAKE_CUDA_INLINE double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
FAKE_CUDA_INLINE float normcdff(float x) { return static_cast<float>(normcdf(static_cast<double>(x))); }

FAKE_CUDA_INLINE bool isnan(float x) { return __builtin_isnan(x); }
FAKE_CUDA_INLINE bool isnan(double x) { return __builtin_isnan(x); }
FAKE_CUDA_INLINE bool isinf(float x) { return __builtin_isinf(x) != 0; }
FAKE_CUDA_INLINE bool isinf(double x) { return __builtin_isinf(x) != 0; }
FAKE_CUDA_INLINE bool isfinite(float x) { return __builtin_isfinite(x); }
FAKE_CUDA_INLINE bool isfinite(double x) { return __builtin_isfinite(x); }
FAKE_CUDA_INLINE bool signbit(float x) { return __builtin_signbit(x) != 0; }
FAKE_CUDA_INLINE bool signbit(double x) { return __builtin_signbit(x) != 0; }

namespace fake_cuda {

// The inverse of erf: Winitzki's closed approximation (2008), then Newton steps on erf itself, which converge
// quadratically (erf'(x) = 2/sqrt(pi) exp(-x^2)).
static inline double inverse_erf(double y) {
    if (!(y > -1.0 && y < 1.0)) {
        return y == 1.0 ? __builtin_inf() : y == -1.0 ? -__builtin_inf() : __builtin_nan("");
    }
    const double l = ::log((1.0 - y) * (1.0 + y));
    const double t = 4.3307467508 + 0.5 * l;
    double x = ::copysign(::sqrt(::sqrt(t * t - l / 0.147) - t), y);
    for (int step = 0; step < 4; ++step) {
        const double error = y < 0.0 ? (1.0 + y) - ::erfc(-x) : ::erfc(x) - (1.0 - y);
        x += error * 0.88622692545275801365 * ::exp(x * x);
    }
    return x;
}

// Converts with CUDA's saturation: NaN is 0, what lies outside is the nearest end of the range.
template <class To, class From>
FAKE_CUDA_INLINE To saturate(From x) {
    constexpr bool is_signed = static_cast<To>(-1) < static_cast<To>(0);
    constexpr unsigned width = sizeof(To) * 8;
    constexpr To highest = static_cast<To>((1ull << (width - 1)) - 1 + (is_signed ? 0 : 1ull << (width - 1)));
    constexpr To lowest = is_signed ? static_cast<To>(-static_cast<long long>(highest) - 1) : static_cast<To>(0);
    if (__builtin_isnan(x)) {
        return 0;
    }
    if (x <= static_cast<From>(lowest)) {
        return lowest;
    }
    return x >= static_cast<From>(highest) ? highest : static_cast<To>(x);
}

}  // namespace fake_cuda

FAKE_CUDA_INLINE double erfinv(double y) { return fake_cuda::inverse_erf(y); }
FAKE_CUDA_INLINE float erfinvf(float y) { return static_cast<float>(fake_cuda::inverse_erf(static_cast<double>(y))); }

FAKE_CUDA_INLINE float __expf(float x) { return expf(x); }
FAKE_CUDA_INLINE float __exp10f(float x) { return exp10f(x); }
FAKE_CUDA_INLINE float __logf(float x) { return logf(x); }
FAKE_CUDA_INLINE float __log2f(float x) { return log2f(x); }
FAKE_CUDA_INLINE float __log10f(float x) { return log10f(x); }
FAKE_CUDA_INLINE float __sinf(float x) { return sinf(x); }
FAKE_CUDA_INLINE float __cosf(float x) { return cosf(x); }
FAKE_CUDA_INLINE float __tanf(float x) { return tanf(x); }
FAKE_CUDA_INLINE float __tanhf(float x) { return tanhf(x); }
FAKE_CUDA_INLINE void __sincosf(float x, float* s, float* c) { sincosf(x, s, c); }
FAKE_CUDA_INLINE float __powf(float x, float y) { return powf(x, y); }
FAKE_CUDA_INLINE float fdividef(float x, float y) { return x / y; }
FAKE_CUDA_INLINE float __fdividef(float x, float y) { return x / y; }
FAKE_CUDA_INLINE float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
FAKE_CUDA_INLINE float __frsqrt_rn(float x) { return rsqrtf(x); }

#define FAKE_CUDA_ROUNDED(p, T, sqrt_, fma_)                                                        \
    FAKE_CUDA_INLINE T __##p##add_rn(T x, T y) { return x + y; }                                    \
    FAKE_CUDA_INLINE T __##p##sub_rn(T x, T y) { return x - y; }                                    \
    FAKE_CUDA_INLINE T __##p##mul_rn(T x, T y) { return x * y; }                                    \
    FAKE_CUDA_INLINE T __##p##div_rn(T x, T y) { return x / y; }                                    \
    FAKE_CUDA_INLINE T __##p##sqrt_rn(T x) { return sqrt_(x); }                                     \
    FAKE_CUDA_INLINE T __##p##rcp_rn(T x) { return static_cast<T>(1) / x; }
FAKE_CUDA_ROUNDED(f, float, sqrtf, fmaf)
FAKE_CUDA_ROUNDED(d, double, sqrt, fma)
#undef FAKE_CUDA_ROUNDED
FAKE_CUDA_INLINE float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
FAKE_CUDA_INLINE double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
