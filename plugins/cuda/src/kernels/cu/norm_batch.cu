// Batch normalisation: y = (x - mean) * scale / sqrt(variance + epsilon) + offset, with one mean, variance, scale and
// offset for each channel. The mean and variance of a batch are reduce.cu's, with the fold Moments.
//
//   statistics          what comes out beside y, a thread for each channel
//   normalise_rows      channels innermost: a block for `width` threads' channels of `chunk` rows
//   normalise_planes    planes of `inner` neighbours of one channel: a warp for `chunk` of one plane
//
// The same with `_packed`: 16 bytes of x at once, which are aligned, as those of y, mean, variance, scale and offset;
// channels or inner a multiple of as many elements, and chunk in planes.
//
// Defines: DTYPE, a float of at most 32 bits.
#include "fold.cuh"
#include "vector.cuh"

#define KERNEL extern "C" __global__ void __launch_bounds__(256, 2)
inline constexpr int N = lanes_of<DTYPE>;

enum Mode : u32 { GIVEN, BATCH, EMPTY };

struct Statistics {
    const MeanVariance* batch;
    const f32* given[2];
    f32* running[2];
    f32* reserved[2];
    // The third reserved output, or null.
    f32* nothing;
    u32 channels;
    Mode mode;
    // The batch's share in the running statistics, and count / (count - 1).
    f32 share, unbiased;
};
static_assert(sizeof(Statistics) == 80, "the host's layout");

DEVICE f32 running(f32 old, f32 fresh, f32 share) {
    return share == 1.0f ? fresh : add(mul(1.0f - share, old), mul(share, fresh));
}

DEVICE void statistics_of(const Statistics& s, u32 channel, const f32 (&now)[2], const f32 (&reserved)[2]) {
#pragma unroll
    for (int k = 0; k < 2; ++k) {
        s.running[k][channel] = now[k];
        s.reserved[k][channel] = reserved[k];
    }
}

KERNEL statistics(Statistics s) {
    if (s.nothing && thread_of_grid<u32>() == 0) *s.nothing = 0;
    for (u32 c = thread_of_grid<u32>(); c < s.channels; c += threads_of_grid<u32>()) {
        if (s.mode == EMPTY) {
            statistics_of(s, c, {Limits<f32>::nan(), Limits<f32>::nan()}, {0.0f, 0.0f});
            continue;
        }
        if (s.mode == GIVEN) {
            statistics_of(s, c, {s.given[0][c], s.given[1][c]}, {s.given[0][c], s.given[1][c]});
            continue;
        }
        const MeanVariance batch = s.batch[c];
        // With a share of 1 those before are not read: there may be none.
        const f32 old[2] = {s.share == 1.0f ? 0.0f : s.given[0][c], s.share == 1.0f ? 0.0f : s.given[1][c]};
        const f32 variance = mul(batch.variance, s.unbiased);
        const f32 now[2] = {running(old[0], batch.mean, s.share), running(old[1], variance, s.share)};
        statistics_of(s, c, now, {batch.mean, batch.variance});
    }
}

struct Affine {
    const f32* mean;
    const f32* variance;
    const f32* scale;
    const f32* offset;
    f32 epsilon;
    u32 padding;
};

// Of V neighbouring channels.
template <int V> struct Channels {
    f32 mean[V], factor[V], offset[V];
    DEVICE Channels(const Affine& a, u64 first) {
        const auto means = load_constant_pack<V>(a.mean + first, 0);
        const auto variances = load_constant_pack<V>(a.variance + first, 0);
        const auto scales = load_constant_pack<V>(a.scale + first, 0);
        const auto offsets = load_constant_pack<V>(a.offset + first, 0);
#pragma unroll
        for (int v = 0; v < V; ++v) {
            mean[v] = means.at[v];
            factor[v] = scales.at[v] / sqrt(add(variances.at[v], a.epsilon));
            offset[v] = offsets.at[v];
        }
    }
    DEVICE DTYPE of(DTYPE x, int v) const {
        return narrow<DTYPE>(add(mul(sub(widen(x), mean[v]), factor[v]), offset[v]));
    }
};

struct Rows {
    u64 rows, channels, chunk;
    u32 tiles, width;
    Affine affine;
};
static_assert(sizeof(Rows) == 72, "the host's layout");

template <int V> DEVICE void normalise_tile(DTYPE* y, const DTYPE* x, const Rows& r) {
    const u32 tile = blockIdx.x % r.tiles, height = 256 / r.width;
    const u64 channel = ((u64)tile * r.width + threadIdx.x % r.width) * V;
    if (channel >= r.channels) return;
    const Channels<V> channels(r.affine, channel);
    const u64 begin = blockIdx.x / r.tiles * r.chunk, end = begin + r.chunk < r.rows ? begin + r.chunk : r.rows;
#pragma unroll 2
    for (u64 row = begin + threadIdx.x / r.width; row < end; row += height) {
        const u64 at = row * r.channels + channel;
        auto pack = load_pack<V>(x + at, 0);
#pragma unroll
        for (int v = 0; v < V; ++v) pack.at[v] = channels.of(pack.at[v], v);
        store_global_pack<V>(y + at, 0, pack);
    }
}

KERNEL normalise_rows(DTYPE* y, const DTYPE* x, Rows rows) { normalise_tile<1>(y, x, rows); }
KERNEL normalise_rows_packed(DTYPE* y, const DTYPE* x, Rows rows) { normalise_tile<N>(y, x, rows); }

struct Planes {
    u64 planes, inner, chunk;
    u32 chunks, channels;
    Affine affine;
};
static_assert(sizeof(Planes) == 72, "the host's layout");

template <int V> DEVICE void normalise_chunks(DTYPE* y, const DTYPE* x, const Planes& p) {
    const u64 all = p.planes * p.chunks, warps = threads_of_grid<u64>() / WARP;
    for (u64 i = thread_of_grid<u64>() / WARP; i < all; i += warps) {
        const u64 plane = i / p.chunks, begin = i % p.chunks * p.chunk;
        const u64 end = begin + p.chunk < p.inner ? begin + p.chunk : p.inner;
        const Channels<1> channel(p.affine, plane % p.channels);
#pragma unroll 2
        for (u64 k = begin + threadIdx.x % WARP * V; k < end; k += WARP * V) {
            auto pack = load_pack<V>(x + plane * p.inner + k, 0);
#pragma unroll
            for (int v = 0; v < V; ++v) pack.at[v] = channel.of(pack.at[v], 0);
            store_global_pack<V>(y + plane * p.inner + k, 0, pack);
        }
    }
}

KERNEL normalise_planes(DTYPE* y, const DTYPE* x, Planes planes) { normalise_chunks<1>(y, x, planes); }
KERNEL normalise_planes_packed(DTYPE* y, const DTYPE* x, Planes planes) { normalise_chunks<N>(y, x, planes); }
