// Grey-scale dilation: the greatest sum of pixel and filter element over each window. Pixels
// outside the image are ignored; NaN is skipped. Channels are last.
//
//   dilation, dilation_packed(y, x, filter, d)
//
// An item is 4 neighbouring outputs of a row in one channel, or in as many as fill 16 bytes (packed: channels in whole
// packs, images and filter aligned to 16 bytes). Threads take items in steps of the grid.
//
// Defines: T (a float or an integer).
#include "pool.cuh"
#include "windows.cuh"

struct Dilation {
    Axis rows, columns;
    Items items;
    u32 channels;
    u32 unused;
    ImageStrides x, y;
};

static_assert(sizeof(Dilation) == 160, "the host's layout");

inline constexpr int COLUMNS = 4;

template <int LANES>
DEVICE void dilate(T* __restrict__ y, const T* __restrict__ x, const T* __restrict__ filter, const Dilation& d) {
    typedef Pack<T, LANES> P;
    const u32 step = threads_of_grid<u32>();
    for (u32 item = thread_of_grid<u32>(); item < d.items.count; item += step) {
        const Output out = output_of<false, LANES, COLUMNS>(d.items, item);
        const i32 top = d.rows.start(out.row), left = d.columns.start(out.column);
        const T* const image = x + out.image * d.x.image + out.channel;
        Greatest::W best[COLUMNS][LANES];
#pragma unroll
        for (int i = 0; i < COLUMNS * LANES; ++i) best[i / LANES][i % LANES] = Greatest::start();
        for (i32 ky = 0; ky < d.rows.kernel; ++ky) {
            const i32 row = top + ky * d.rows.dilation;
            if (!d.rows.has(row)) continue;
            const T* const line = image + row * d.x.row;
            const T* const taps = filter + (i64)ky * d.columns.kernel * d.channels + out.channel;
#pragma unroll 1
            for (i32 kx = 0; kx < d.columns.kernel; ++kx) {
                const P elements = load_constant(reinterpret_cast<const P*>(taps + (i64)kx * d.channels));
#pragma unroll
                for (int i = 0; i < COLUMNS; ++i) {
                    const i32 column = left + i * d.columns.stride + kx * d.columns.dilation;
                    if (!d.columns.has(column)) continue;
                    const P pixel = load_constant(reinterpret_cast<const P*>(line + column * d.x.column));
#pragma unroll
                    for (int lane = 0; lane < LANES; ++lane) {
                        const auto sum = rounded<T>(add(widen(pixel.at[lane]), widen(elements.at[lane])));
                        best[i][lane] = Greatest::take(best[i][lane], sum);
                    }
                }
            }
        }
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
            if (out.column + i >= d.columns.output) break;
            P pack;
#pragma unroll
            for (int lane = 0; lane < LANES; ++lane) pack.at[lane] = Greatest::finish(best[i][lane], 0);
            store_at_once(reinterpret_cast<P*>(y + place(d.y, out.image, out.row, out.column + i, out.channel)), pack);
        }
    }
}

#define ENTRY(NAME, LANES) \
    extern "C" __global__ void __launch_bounds__(256, 2) NAME(T* __restrict__ y, const T* __restrict__ x, \
        const T* __restrict__ filter, const Dilation d) { \
        dilate<LANES>(y, x, filter, d); \
    }

ENTRY(dilation, 1)
ENTRY(dilation_packed, 16 / sizeof(T))
