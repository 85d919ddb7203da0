// Counts the values in each bin of a range. Values outside count in the first or the last bin, NaN
// in the first.
//
//   clear       bins of 0
//   histogram   counts; `in_shared` where the bins of a block fit in its shared memory
//
// The part of a value is its distance from `low` divided by `step`, as in QUOTIENT. Floats are multiplied by the
// reciprocal of the step first, if that has all its bits (else it is NaN): only near a bound of parts is that not enough.
//
// Defines: DTYPE, the element; COUNT, of the result; QUOTIENT, in which parts are found: f64.
#include "count.cuh"

typedef choose<sizeof(COUNT) == 8, u64, u32> Bin;
#define KERNEL extern "C" __global__ void __launch_bounds__(256, 4)

struct Range {
    u64 parts;
    QUOTIENT step;
    DTYPE low;
    f32 reciprocal;
};
static_assert(sizeof(Range) == (sizeof(DTYPE) == 8 ? 32 : 24), "the host's layout");

KERNEL clear(Bin* bins, u64 size) { clear_bins(bins, size); }

DEVICE i64 part_of(DTYPE x, const Range& range) {
    const DTYPE distance = sub(x > range.low ? x : range.low, range.low);
    if constexpr (is_same<DTYPE, f32>) {
        const f32 near = distance * range.reciprocal, bound = rintf(near);
        // Two roundings and that of the reciprocal, with room to spare.
        const bool is_far = fabsf(near - bound) > near * 1e-6f && near < (f32)range.parts * (1.0f - 1e-6f);
        if (is_far) return (i64)near;
    }
    const QUOTIENT part = (QUOTIENT)distance / range.step;
    // So that NaN is in the first.
    if (!(part > (QUOTIENT)0)) return 0;
    return part < (QUOTIENT)range.parts ? (i64)part : (i64)range.parts - 1;
}

KERNEL histogram(Bin* __restrict__ bins, const DTYPE* __restrict__ x, u64 items, Range range, u32 in_shared) {
    const auto place = [=](u64 i) { return part_of(load_constant(x + i), range); };
    count_bins(bins, range.parts, in_shared, items, place, [](u64) { return (Bin)1; });
}
