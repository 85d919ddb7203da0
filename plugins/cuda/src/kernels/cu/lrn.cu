// Local response normalisation (A. Krizhevsky et al., "ImageNet classification with deep convolutional neural
// networks", 2012, section 3.3) over neighbouring channels, which are last: y[j] = x[j] n[j]^-beta with
// n[j] = bias + alpha * (the sum of x[k]^2 over the channels k at most `radius` from j).
//
//   lrn, lrn_packed(y, x, r)
//
// An item is a channel of a pixel, or as many as fill 16 bytes (packed: channels in whole packs, images aligned to 16
// bytes). Sums are taken anew for each channel, in the order of their terms: one that slides would keep an infinity, and
// what its differences round off. Threads take items in steps of the grid.
//
// Defines: T (f16 f32).
#include "dims.cuh"
#include "math.cuh"
#include "vector.cuh"

struct Response {
    // Items of a pixel; of all pixels.
    Divisor<u64> of_pixel;
    u64 items;
    // The radius is at most the number of channels, which is below 2^30.
    i32 channels, radius;
    f32 bias, alpha, beta;
};

static_assert(sizeof(Response) == 56, "the host's layout");

// n^-beta: by roots for the exponents that networks have.
DEVICE f32 factor_of(f32 n, f32 beta) {
    const f32 root = math::reciprocal_root(n);
    if (beta == 0.5f) return root;
    if (beta == 0.75f) return root * math::square_root(root);
    return math::power(n, -beta);
}

template <int LANES> DEVICE void normalise(T* __restrict__ y, const T* __restrict__ x, const Response& r) {
    const u64 step = threads_of_grid<u64>();
    for (u64 item = thread_of_grid<u64>(); item < r.items; item += step) {
        const i32 first = (i32)r.of_pixel.divide_with_rest(item).remainder * LANES, last = first + LANES - 1;
        const T* const pixel = x + item * LANES - first;
        const i32 from = first > r.radius ? (first - r.radius) / LANES : 0;
        const i32 to = (last + r.radius < r.channels ? last + r.radius : r.channels - 1) / LANES;
        f32 squares[LANES] = {};
        for (i32 at = from; at <= to; ++at) {
            const Pack<T, LANES> pack = load_constant_pack<LANES>(pixel, at);
#pragma unroll
            for (int k = 0; k < LANES; ++k) {
                const f32 value = widen(pack.at[k]);
#pragma unroll
                for (int lane = 0; lane < LANES; ++lane) {
                    const i32 distance = at * LANES + k - (first + lane);
                    if (distance >= -r.radius && distance <= r.radius)
                        squares[lane] = math::multiply_add(value, value, squares[lane]);
                }
            }
        }
        Pack<T, LANES> pack = load_constant_pack<LANES>(x, item);
#pragma unroll
        for (int lane = 0; lane < LANES; ++lane) {
            const f32 n = math::multiply_add(r.alpha, squares[lane], r.bias);
            pack.at[lane] = narrow<T>(widen(pack.at[lane]) * factor_of(n, r.beta));
        }
        store_global_pack<LANES>(y, item, pack);
    }
}

extern "C" __global__ void __launch_bounds__(256, 4) lrn(T* __restrict__ y, const T* __restrict__ x, const Response r) {
    normalise<1>(y, x, r);
}

extern "C" __global__ void __launch_bounds__(256, 4) lrn_packed(T* __restrict__ y, const T* __restrict__ x,
    const Response r) {
    normalise<16 / sizeof(T)>(y, x, r);
}
