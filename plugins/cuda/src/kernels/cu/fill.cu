// Tensors of one value.
//
// Entry points, of which LAYOUT chooses one:
//   fill(const DTYPE* value, DTYPE* y, INDEX count): y[i] = value[0], which is in device memory             SCALARS
//   fill_bits(u64 bits, DTYPE* y, INDEX count): y[i] has the lowest bits of `bits`                          SAME
//
// Elements are moved: DTYPE is the unsigned integer of their size. Macros: DTYPE, INDEX, LANES, LAYOUT (see
// elementwise.cuh).
#include "elementwise.cuh"

DEVICE void fill_with(DTYPE value, DTYPE* y, INDEX count) {
    const INDEX packs = count / LANES, step = threads_of_grid<INDEX>();
    const auto pack = splat<LANES>(value);
    for (INDEX i = thread_of_grid<INDEX>(); i < packs; i += step) store_pack(y, i, pack);
    for (INDEX i = packs * LANES + thread_of_grid<INDEX>(); i < count; i += step) y[i] = value;
}

#if COMPILES(SCALARS)
KERNEL fill(const DTYPE* value, DTYPE* y, INDEX count) { fill_with(load_constant(value), y, count); }
#endif

#if COMPILES(SAME)
KERNEL fill_bits(u64 bits, DTYPE* y, INDEX count) { fill_with((DTYPE)bits, y, count); }
#endif
