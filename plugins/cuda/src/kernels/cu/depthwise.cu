// Depthwise convolutions: each channel with filters of its own.
//
//   depthwise, depthwise_packed(y, x, filter, d, inputs)
//
// An item is 4 neighbouring outputs of a row (channels first: one) in one channel, or in as many as fill 16 bytes
// (packed: channels last, one output a channel, channels in whole packs, images and filter aligned to 16 bytes).
// Threads take items in steps of the grid.
//
// Defines: T (f16 bf16 f32 f64); CHANNELS_FIRST (0 or 1); perhaps STEPS, see conv_steps.cuh.
#include "conv_steps.cuh"
#include "windows.cuh"

struct Depthwise {
    Axis rows, columns;
    Items items;
    // Outputs of a channel, and of all.
    u32 multiplier, outputs;
    ImageStrides x, y;
};

static_assert(sizeof(Depthwise) == 160, "the host's layout");

template <int LANES, int COLUMNS>
DEVICE void convolve(T* __restrict__ y, const T* __restrict__ x, const T* __restrict__ filter, const Depthwise& d,
    const EpilogueInputs& inputs) {
    typedef Compute<T> W;
    typedef Pack<T, LANES> P;
    const u32 step = threads_of_grid<u32>();
    for (u32 item = thread_of_grid<u32>(); item < d.items.count; item += step) {
        const Output out = output_of<CHANNELS_FIRST, LANES, COLUMNS>(d.items, item);
        const i32 top = d.rows.start(out.row), left = d.columns.start(out.column);
        const i64 channel = LANES > 1 ? out.channel : out.channel / d.multiplier;
        const T* const image = x + out.image * d.x.image + channel * d.x.channel;
        W sums[COLUMNS][LANES] = {};
        for (i32 ky = 0; ky < d.rows.kernel; ++ky) {
            const i32 row = top + ky * d.rows.dilation;
            if (!d.rows.has(row)) continue;
            const T* const line = image + row * d.x.row;
            const T* const taps = filter + (i64)ky * d.columns.kernel * d.outputs + out.channel;
            for (i32 kx = 0; kx < d.columns.kernel; ++kx) {
                const P weights = load_constant(reinterpret_cast<const P*>(taps + (i64)kx * d.outputs));
#pragma unroll
                for (int i = 0; i < COLUMNS; ++i) {
                    const i32 column = left + i * d.columns.stride + kx * d.columns.dilation;
                    if (!d.columns.has(column)) continue;
                    const P pixel = load_constant(reinterpret_cast<const P*>(line + column * d.x.column));
#pragma unroll
                    for (int lane = 0; lane < LANES; ++lane)
                        sums[i][lane] += widen(pixel.at[lane]) * widen(weights.at[lane]);
                }
            }
        }
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
            if (out.column + i >= d.columns.output) break;
            const i64 element = place(d.y, out.image, out.row, out.column + i, out.channel);
            P pack;
#pragma unroll
            for (int lane = 0; lane < LANES; ++lane)
                pack.at[lane] = with_epilogue<T>(sums[i][lane], inputs, out.channel + lane, element + lane);
            store_at_once(reinterpret_cast<P*>(y + element), pack);
        }
    }
}

#define ENTRY(NAME, LANES, COLUMNS) \
    extern "C" __global__ void __launch_bounds__(256, 3) NAME(T* __restrict__ y, const T* __restrict__ x, \
        const T* __restrict__ filter, const Depthwise d, const EpilogueInputs inputs) { \
        convolve<LANES, COLUMNS>(y, x, filter, d, inputs); \
    }

#if CHANNELS_FIRST
ENTRY(depthwise, 1, 1)
#else
ENTRY(depthwise, 1, 4)
ENTRY(depthwise_packed, 16 / sizeof(T), 4)
#endif
