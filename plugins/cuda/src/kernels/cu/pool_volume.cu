// Poolings over planes, rows and columns: the greatest element of each window, or the mean of those that are there.
//
//   pool_volume, pool_volume_packed(y, x, p)
//
// Channels are last; with channels first, each channel is an image of its own with one channel. An item is an output in
// one channel, or in as many as fill 16 bytes (packed: channels in whole packs, images aligned to 16 bytes). Threads
// take items in steps of the grid.
//
// Defines: T (f16 bf16 f32 f64); FOLD (Greatest or Mean).
#include "pool.cuh"
#include "windows.cuh"

struct Pooling {
    Axis planes, rows, columns;
    VolumeItems items;
    u32 channels;
};

static_assert(sizeof(Pooling) == 128, "the host's layout");

template <int LANES> DEVICE void fold(T* __restrict__ y, const T* __restrict__ x, const Pooling& p) {
    typedef Pack<T, LANES> P;
    const i64 line = (i64)p.columns.input * p.channels, plane = p.rows.input * line;
    const u32 step = threads_of_grid<u32>();
    for (u32 item = thread_of_grid<u32>(); item < p.items.count; item += step) {
        const DivMod<u32> channel = p.items.parts[0].divide_with_rest(item);
        const DivMod<u32> column = p.items.parts[1].divide_with_rest(channel.quotient);
        const DivMod<u32> row = p.items.parts[2].divide_with_rest(column.quotient);
        const DivMod<u32> depth = p.items.parts[3].divide_with_rest(row.quotient);
        const i32 front = p.planes.first((i32)depth.remainder), back = p.planes.end((i32)depth.remainder);
        const i32 top = p.rows.first((i32)row.remainder), bottom = p.rows.end((i32)row.remainder);
        const i32 left = p.columns.first((i32)column.remainder), right = p.columns.end((i32)column.remainder);
        const T* const image = x + depth.quotient * (p.planes.input * plane) + (i64)channel.remainder * LANES;
        FOLD::W states[LANES];
#pragma unroll
        for (int lane = 0; lane < LANES; ++lane) states[lane] = FOLD::start();
        for (i32 kz = front; kz < back; ++kz) {
            for (i32 ky = top; ky < bottom; ++ky) {
                const T* pixel = image + kz * plane + ky * line + left * (i64)p.channels;
                // Two loads under way: windows are seldom wider than 3.
#pragma unroll 2
                for (i32 kx = left; kx < right; ++kx, pixel += p.channels) {
                    const P pack = load_constant(reinterpret_cast<const P*>(pixel));
#pragma unroll
                    for (int lane = 0; lane < LANES; ++lane)
                        states[lane] = FOLD::take(states[lane], widen(pack.at[lane]));
                }
            }
        }
        const i64 count = (i64)(back - front) * (bottom - top) * (right - left);
        P pack;
#pragma unroll
        for (int lane = 0; lane < LANES; ++lane) pack.at[lane] = FOLD::finish(states[lane], count);
        store_at_once(reinterpret_cast<P*>(y) + item, pack);
    }
}

#define ENTRY(NAME, LANES) \
    extern "C" __global__ void __launch_bounds__(256, 3) \
        NAME(T* __restrict__ y, const T* __restrict__ x, const Pooling p) { \
        fold<LANES>(y, x, p); \
    }

ENTRY(pool_volume, 1)
ENTRY(pool_volume_packed, 16 / sizeof(T))
