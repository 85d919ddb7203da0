// Poolings over rows and columns, or over neighbouring channels: the greatest element of each window, or the mean of
// those that are there.
//
//   pool, pool_packed(y, x, p)
//
// An item is an output in one channel, or in as many as fill 16 bytes (packed: channels last, channels in whole packs,
// images aligned to 16 bytes, no window over channels). Threads take items in steps of the grid.
//
// Defines: T (f16 bf16 f32 f64, and of Greatest i8 i16 i32 i64 u8 u16); FOLD (Greatest or Mean); CHANNELS_FIRST (0 or 1).
#include "pool.cuh"
#include "windows.cuh"

struct Pooling {
    Axis rows, columns;
    Items items;
    // Neighbouring channels that make one of the output.
    u32 depth;
    u32 unused;
    ImageStrides x, y;
};

static_assert(sizeof(Pooling) == 160, "the host's layout");

template <int LANES> DEVICE void fold(T* __restrict__ y, const T* __restrict__ x, const Pooling& p) {
    typedef Pack<T, LANES> P;
    const u32 step = threads_of_grid<u32>();
    for (u32 item = thread_of_grid<u32>(); item < p.items.count; item += step) {
        const Output out = output_of<CHANNELS_FIRST, LANES, 1>(p.items, item);
        const i32 top = p.rows.start(out.row), left = p.columns.start(out.column);
        const T* const image = x + out.image * p.x.image + out.channel * p.depth * p.x.channel;
        FOLD::W states[LANES];
        u32 count = 0;
#pragma unroll
        for (int lane = 0; lane < LANES; ++lane) states[lane] = FOLD::start();
        for (i32 ky = 0; ky < p.rows.kernel; ++ky) {
            if (!p.rows.has(top + ky)) continue;
            const T* const line = image + (top + ky) * p.x.row;
            for (i32 kx = 0; kx < p.columns.kernel; ++kx) {
                if (!p.columns.has(left + kx)) continue;
                const T* pixel = line + (left + kx) * p.x.column;
                // One, but for windows over channels.
#pragma unroll 1
                for (u32 d = 0; d < p.depth; ++d, pixel += p.x.channel) {
                    const P pack = load_constant(reinterpret_cast<const P*>(pixel));
#pragma unroll
                    for (int lane = 0; lane < LANES; ++lane)
                        states[lane] = FOLD::take(states[lane], widen(pack.at[lane]));
                    ++count;
                }
            }
        }
        P pack;
#pragma unroll
        for (int lane = 0; lane < LANES; ++lane) pack.at[lane] = FOLD::finish(states[lane], count);
        store_at_once(reinterpret_cast<P*>(y + place(p.y, out.image, out.row, out.column, out.channel)), pack);
    }
}

#define ENTRY(NAME, LANES) \
    extern "C" __global__ void __launch_bounds__(256, 3) \
        NAME(T* __restrict__ y, const T* __restrict__ x, const Pooling p) { \
        fold<LANES>(y, x, p); \
    }

ENTRY(pool, 1)
#if !CHANNELS_FIRST
ENTRY(pool_packed, 16 / sizeof(T))
#endif
