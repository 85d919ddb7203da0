// RMSNorm over the last dimension, y = x / sqrt(mean(x * x) + epsilon) * weight, in float and bfloat16: a kernel for
// every processor, a variant for AVX2, and the reference that `tenon check` holds both against.
#define TENON_PLUGIN_NAME "rmsnorm"
#define TENON_PLUGIN_VERSION "0.1.0"
#include "tenon.hpp"

using tenon::bfloat16, tenon::kernels;

// y has the shape of x, whose last dimension is that of weight.
static void rms_shape(tenon::ShapeCall &call)
{
    const auto x = call.with_rank_at_least(call.input(0), 1);
    const auto weight = call.with_rank(call.input(1), 1);
    call.set_output(0, call.replace_dim(x, -1, call.merge(call.dim(x, -1), call.dim(weight, 0))));
}

// What all have in common: the attribute, the shapes, the threads. `Row` computes one row.
template <class T, class Row> struct RmsNorm {
    double epsilon;

    explicit RmsNorm(const tenon::Create &create) : epsilon(create.attr<float>("epsilon")) {}

    void compute(tenon::Call &call) const
    {
        const auto x = call.input<T>(0), weight = call.input<T>(1);
        if (x.rank() < 1 || weight.dims() != tenon::Dims{ x.dim(-1) }) {
            throw tenon::invalid_argument("weight: expected [%" PRId64 "] for x %s, found %s", x.dim(-1),
                                          x.dims().text().c_str(), weight.dims().text().c_str());
        }
        const auto y = call.output_like<T>(0, x);
        const uint64_t n = x.row_size();
        call.parallel_each(x.rows(), 10 + double(n), [&](uint64_t at) {
            Row::norm(y.row(at), x.row(at), weight.data(), n, epsilon);
        });
    }
};

// In double: no square of a float overflows there, and no product of two is denormal.
struct Plain {
    template <class T> static double squares(const T *x, uint64_t n)
    {
        double sum = 0;
        for (uint64_t at = 0; at < n; at++) {
            sum += double(x[at]) * double(x[at]);
        }
        return sum;
    }
    template <class T> static void scale(T *y, const T *x, const T *weight, uint64_t n, double scale)
    {
        for (uint64_t at = 0; at < n; at++) {
            y[at] = double(x[at]) * scale * double(weight[at]);
        }
    }
    template <class T> static void norm(T *y, const T *x, const T *weight, uint64_t n, double epsilon)
    {
        scale(y, x, weight, n, 1 / std::sqrt(squares(x, n) / double(n) + epsilon));
    }
};

// The specification: the formula, from the last element to the first.
struct Formula {
    template <class T> static void norm(T *y, const T *x, const T *weight, uint64_t n, double epsilon)
    {
        long double mean = 0;
        for (uint64_t at = n; at-- > 0;) {
            mean += static_cast<long double>(x[at]) * x[at] / n;
        }
        for (uint64_t at = n; at-- > 0;) {
            y[at] = double(x[at] / std::sqrt(mean + epsilon) * weight[at]);
        }
    }
};

template <class T> using Ordinary = RmsNorm<T, Plain>;
template <class T> using Reference = RmsNorm<T, Formula>;

TENON_REGISTER(
    tenon::op("RmsNorm").inputs("x: T", "weight: T").outputs("y: T").shape<rms_shape>()
        .attrs("T: {float, bfloat16}", "epsilon: float = 0.000001").summary("x / sqrt(mean(x * x) + epsilon) * weight")
        .cases("rows; x: [m, n]; weight: [n]", "row; x: [n]; weight: [n]", "deep; x: [a, b, n]; weight: [n]"),
    kernels<Ordinary, float, bfloat16>("RmsNorm", "T").numerics(tenon::ulps(1)),
    kernels<Reference, float, bfloat16>("RmsNorm", "T").on_request().label("reference").numerics(tenon::ulps(1)));

#if defined(__x86_64__)
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2,fma"))) static

// Four elements at a time, as doubles.
struct Avx2 {
    AVX2 __m256d load(const float *x) { return _mm256_cvtps_pd(_mm_loadu_ps(x)); }
    AVX2 __m256d load(const bfloat16 *x)
    {
        const __m128i bits = _mm_cvtepu16_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(x)));
        return _mm256_cvtps_pd(_mm_castsi128_ps(_mm_slli_epi32(bits, 16)));
    }
    template <class T> AVX2 void norm(T *y, const T *x, const T *weight, uint64_t n, double epsilon)
    {
        const uint64_t fours = n / 4 * 4;
        __m256d sums = _mm256_setzero_pd();
        for (uint64_t at = 0; at < fours; at += 4) {
            sums = _mm256_fmadd_pd(load(x + at), load(x + at), sums);
        }
        const double squares = sums[0] + sums[1] + sums[2] + sums[3] + Plain::squares(x + fours, n - fours);
        const double scale = 1 / std::sqrt(squares / double(n) + epsilon);
        for (uint64_t at = 0; at < fours; at += 4) {
            const __m256d row = _mm256_mul_pd(_mm256_mul_pd(load(x + at), _mm256_set1_pd(scale)), load(weight + at));
            float floats[4];
            _mm_storeu_ps(floats, _mm256_cvtpd_ps(row));
            std::copy_n(floats, 4, y + at);
        }
        Plain::scale(y + fours, x + fours, weight + fours, n - fours, scale);
    }
};

template <class T> using OfAvx2 = RmsNorm<T, Avx2>;
TENON_REGISTER(kernels<OfAvx2, float, bfloat16>("RmsNorm", "T").numerics(tenon::ulps(1))
                   .label("avx2").priority(1).features("avx2", "fma"));
#endif
TENON_PLUGIN();
