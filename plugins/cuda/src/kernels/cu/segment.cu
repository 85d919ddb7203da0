// Reductions of rows of one segment to one row. The rows of segment s are those from begins[s] to begins[s + 1], or
// those that `rows` names there.
//
//   segments, segments_packed   a group of `width` times `height` threads for each `width` columns of each part of a
//                               segment; packs of 16 bytes where rows are whole aligned ones
//   merge_segments              a thread for each element: of several parts
//
// With several parts, what each comes to lies at partial[part * outputs + output].
//
// Defines: DTYPE, the element; FOLD, one of those below. Blocks have 256 threads. The order of operations depends on
// the arguments alone.
#include "fold.cuh"
#include "vector.cuh"

template <typename X> struct SegmentSum : Sum<X> {};
template <typename X> struct SegmentProd : Prod<X> {};

// 0 of nothing.
template <typename X, typename Fold> struct OrZero : Fold {
    static DEVICE X finish(typename Fold::State state, u64 count) {
        return count == 0 ? narrow<X>((Compute<X>)0) : Fold::finish(state, count);
    }
};

template <typename X> struct SegmentMean : OrZero<X, Mean<X>> {};
template <typename X> struct SegmentMax : OrZero<X, Max<X>> {};
template <typename X> struct SegmentMin : OrZero<X, Min<X>> {};

// Never beyond what is finite.
template <typename X> struct UnsortedSegmentMax : Max<X> {
    static DEVICE Acc<X> start() { return Limits<X>::lowest(); }
};
template <typename X> struct UnsortedSegmentMin : Min<X> {
    static DEVICE Acc<X> start() { return Limits<X>::highest(); }
};

typedef FOLD Fold;
typedef Fold::State State;

inline constexpr u32 THREADS = 256;
#define KERNEL extern "C" __global__ void __launch_bounds__(256, 2)

struct Segments {
    u64 segments, inner;
    u32 parts, tiles, width, height;
};
static_assert(sizeof(Segments) == 32, "the host's layout");

template <int V> DEVICE void take_row(State (&states)[V], Pack<DTYPE, V> pack) {
#pragma unroll
    for (int v = 0; v < V; ++v) states[v] = Fold::take(states[v], widen(pack.at[v]), 0);
}

// One thread's steps: rows from, from + step, ... below to.
template <int V>
DEVICE void fold_rows(State (&states)[V], const DTYPE* x, const u32* rows, u64 inner, u64 from, u64 to, u32 step) {
    // Fewer rows at once where each has many states, which are in registers too.
    constexpr int ROWS = V > 4 ? 2 : 4;
    const auto row = [=](u64 i) {
        return load_constant_pack<V>(x + (rows ? (u64)load_constant(rows + i) : i) * inner, 0);
    };
    u64 i = from;
#pragma unroll 1
    for (; i + (ROWS - 1) * (u64)step < to; i += ROWS * step) {
        Pack<DTYPE, V> loaded[ROWS];
#pragma unroll
        for (int k = 0; k < ROWS; ++k) loaded[k] = row(i + k * step);
#pragma unroll
        for (int k = 0; k < ROWS; ++k) take_row<V>(states, loaded[k]);
    }
#pragma unroll 1
    for (; i < to; i += step) take_row<V>(states, row(i));
}

// Merges what the threads of one column of a group have, which are `width` apart; the first of them gets it.
template <int V> DEVICE void merge_rows(State (&states)[V], u32 width, u32 height) {
    __shared__ alignas(16) unsigned char memory[V * THREADS * sizeof(State)];
    State* all = reinterpret_cast<State*>(memory);
    const u32 row = threadIdx.x / width % height;
    // Readers of the call before are done.
    __syncthreads();
#pragma unroll
    for (int v = 0; v < V; ++v) all[v * THREADS + threadIdx.x] = states[v];
    for (u32 rows = height / 2; rows > 0; rows /= 2) {
        __syncthreads();
        if (row >= rows) continue;
#pragma unroll
        for (int v = 0; v < V; ++v) {
            State* mine = all + v * THREADS + threadIdx.x;
            *mine = Fold::merge(*mine, mine[rows * width]);
        }
    }
#pragma unroll
    for (int v = 0; v < V; ++v) states[v] = all[v * THREADS + threadIdx.x];
}

template <int V>
DEVICE void fold_segments(
    State* partial, DTYPE* y, const DTYPE* x, const u32* begins, const u32* rows, const Segments& s) {
    const u32 size = s.width * s.height, groups = THREADS / size, row = threadIdx.x % size / s.width;
    const u64 tasks = s.segments * s.parts * s.tiles;
#pragma unroll 1
    for (u64 first = (u64)blockIdx.x * groups; first < tasks; first += (u64)gridDim.x * groups) {
        const u64 task = first + threadIdx.x / size, rest = s.tiles == 1 ? task : task / s.tiles;
        const u64 segment = s.parts == 1 ? rest : rest / s.parts, part = rest - segment * s.parts;
        const u64 column = ((task - rest * s.tiles) * s.width + threadIdx.x % s.width) * V;
        const bool inside = task < tasks && column < s.inner;
        State states[V];
#pragma unroll
        for (int v = 0; v < V; ++v) states[v] = Fold::start();
        u64 count = 0;
        if (inside) {
            const u64 begin = begins[segment];
            count = begins[segment + 1] - begin;
            const u64 from = begin + count * part / s.parts, to = begin + count * (part + 1) / s.parts;
            fold_rows<V>(states, x + column, rows, s.inner, from + row, to, s.height);
        }
        if (s.height > 1) merge_rows<V>(states, s.width, s.height);
        if (!inside || row > 0) continue;
        const u64 output = segment * s.inner + column;
        if (s.parts > 1) {
#pragma unroll
            for (int v = 0; v < V; ++v) partial[part * (s.segments * s.inner) + output + v] = states[v];
            continue;
        }
        Pack<DTYPE, V> pack;
#pragma unroll
        for (int v = 0; v < V; ++v) pack.at[v] = Fold::finish(states[v], count);
        store_global_pack<V>(y + output, 0, pack);
    }
}

#define SEGMENTS(NAME, V)                                                                                       \
    KERNEL NAME(State* __restrict__ partial, DTYPE* __restrict__ y, const DTYPE* __restrict__ x,                \
        const u32* __restrict__ begins, const u32* __restrict__ rows, Segments segments) {                      \
        fold_segments<V>(partial, y, x, begins, rows, segments);                                                \
    }
SEGMENTS(segments, 1)
SEGMENTS(segments_packed, lanes_of<DTYPE>)

KERNEL merge_segments(
    DTYPE* __restrict__ y, const State* __restrict__ partial, const u32* __restrict__ begins, Segments s) {
    const u64 outputs = s.segments * s.inner;
    for (u64 output = thread_of_grid<u64>(); output < outputs; output += threads_of_grid<u64>()) {
        const u64 segment = output / s.inner;
        State state = Fold::start();
#pragma unroll 4
        for (u32 part = 0; part < s.parts; ++part) state = Fold::merge(state, partial[part * outputs + output]);
        y[output] = Fold::finish(state, begins[segment + 1] - begins[segment]);
    }
}
