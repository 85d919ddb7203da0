// The greatest element of each window, of equal ones the first, and its position. A NaN stays if it
// is the first of all elements, and is skipped otherwise. Channels last.
//
//   pool_argmax(y, indices, x, p, from_input)
//
// An index counts from the image's first element, or with `from_input` from the input's. Threads take outputs in steps
// of the grid.
//
// Defines: T, the element (any but boolean); INDEX (i32 i64).
#include "windows.cuh"

struct Pooling {
    Axis rows, columns;
    Items items;
    u32 depth;
    u32 unused;
    ImageStrides x, y;
};

static_assert(sizeof(Pooling) == 160, "the host's layout");

extern "C" __global__ void __launch_bounds__(256, 4) pool_argmax(T* __restrict__ y, INDEX* __restrict__ indices,
    const T* __restrict__ x, const Pooling p, u32 from_input) {
    const u32 step = threads_of_grid<u32>();
    for (u32 item = thread_of_grid<u32>(); item < p.items.count; item += step) {
        const Output out = output_of<false, 1, 1>(p.items, item);
        const i32 top = p.rows.start(out.row), left = p.columns.start(out.column);
        const T* const image = x + out.image * p.x.image;
        T best;
        i64 at = -1;
        for (i32 row = top; row < top + p.rows.kernel; ++row) {
            if (!p.rows.has(row)) continue;
            for (i32 column = left; column < left + p.columns.kernel; ++column) {
                if (!p.columns.has(column)) continue;
                const i64 here = place(p.x, 0, row, column, out.channel);
                const T value = load_constant(image + here);
                if (at < 0 || widen(best) < widen(value)) {
                    best = value;
                    at = here;
                }
            }
        }
        // No window of the allowed paddings is empty.
        if (at < 0) continue;
        const i64 element = place(p.y, out.image, out.row, out.column, out.channel);
        y[element] = best;
        indices[element] = (INDEX)(at + (from_input ? out.image * p.x.image : 0));
    }
}
