// Reductions.
//
// Elements are those of (outer, reduced, inner), or of strided dimensions. A reduction with few
// results is done in `parts` by different blocks, of `chunk` steps each; the state of each part is
// written to partial[part * outputs + output] and merged by a second launch. With one part, results
// are written at once and `partial` is not used.
//
//   reduce_lanes          inner = 1: `lanes` threads side by side (1, 2, 4, ... 32) for each row
//   reduce_blocks         inner = 1: a block for each part of each row
//   reduce_columns        a block for `width` threads' columns (1, 2, 4, ... 256) of one part
//   reduce_columns_packed the same where a thread has as many columns as fill 16 bytes: inner a multiple of that, x and
//                         y aligned to 16 bytes
//   reduce_strided        a thread for each part of each output
//   reduce_strided_blocks a block for each part of each output
//   merge                 `lanes` threads for the parts of each output
//
// Defines: DTYPE, the element; FOLD, a fold of fold.cuh. Blocks have 256 threads. The order of operations depends on
// the arguments, and on where rows begin in 16 bytes, but on nothing else.
#include "dims.cuh"
#include "fold.cuh"
#include "vector.cuh"

typedef FOLD Fold;
typedef Fold::State State;
typedef Fold::Result Result;

inline constexpr u32 THREADS = 256;
// Loads of a thread that are under way at once.
inline constexpr int UNROLL = 4;
#define KERNEL extern "C" __global__ void __launch_bounds__(256, 2)

struct Merge {
    DEVICE State operator()(State one, State other) const { return Fold::merge(one, other); }
};

// The reduction over each group of `lanes` threads side by side.
DEVICE State reduce_group(State state, u32 lanes) {
    for (u32 mask = lanes / 2; mask > 0; mask /= 2) state = Fold::merge(state, shuffle_xor(state, (int)mask));
    return state;
}

template <int N> DEVICE State reduce_states(const State (&states)[N]) {
    State state = states[0];
#pragma unroll
    for (int k = 1; k < N; ++k) state = Fold::merge(state, states[k]);
    return state;
}

template <int N> DEVICE void take_pack(State (&states)[N], Pack<DTYPE, N> pack, u32 index) {
#pragma unroll
    for (int k = 0; k < N; ++k) states[k] = Fold::take(states[k], widen(pack.at[k]), index + k);
}

// What thread `thread` of `threads` takes of `count` neighbours, of which the first has the index `first`: whole
// packs where they are aligned, single elements before and after.
DEVICE State fold_span(const DTYPE* x, u64 count, u32 first, u32 thread, u32 threads) {
    constexpr int N = lanes_of<DTYPE>;
    State states[N];
#pragma unroll
    for (int k = 0; k < N; ++k) states[k] = Fold::start();
    u64 head = (0 - reinterpret_cast<u64>(x) / sizeof(DTYPE)) % N;
    if (head > count) head = count;
    const u64 packs = (count - head) / N, tail = head + packs * N;
#pragma unroll 1
    for (u64 i = thread; i < head; i += threads) states[0] = Fold::take(states[0], widen(x[i]), first + (u32)i);
    u64 i = thread;
#pragma unroll 1
    for (; i + (UNROLL - 1) * (u64)threads < packs; i += UNROLL * threads) {
        Pack<DTYPE, N> loaded[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) loaded[k] = load_constant_pack<N>(x + head, i + k * threads);
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) take_pack<N>(states, loaded[k], first + (u32)(head + (i + k * threads) * N));
    }
#pragma unroll 1
    for (; i < packs; i += threads) {
        take_pack<N>(states, load_constant_pack<N>(x + head, i), first + (u32)(head + i * N));
    }
#pragma unroll 1
    for (u64 j = tail + thread; j < count; j += threads) states[0] = Fold::take(states[0], widen(x[j]), first + (u32)j);
    return reduce_states<N>(states);
}

// The same for one thread, in the order of the elements.
DEVICE State fold_in_order(const DTYPE* x, u64 count) {
    constexpr int N = lanes_of<DTYPE>;
    State state = Fold::start();
    u64 i = 0;
#pragma unroll 1
    while (i < count) {
        if (i + N > count || reinterpret_cast<u64>(x + i) % 16 != 0) {
            state = Fold::take(state, widen(x[i]), (u32)i);
            ++i;
            continue;
        }
        const auto pack = load_constant_pack<N>(x + i, 0);
#pragma unroll
        for (int k = 0; k < N; ++k) state = Fold::take(state, widen(pack.at[k]), (u32)i + k);
        i += N;
    }
    return state;
}

// The part of `total` steps that begins at part * chunk.
DEVICE u64 part_begin(u32 part, u64 chunk, u64 total) { return part * chunk < total ? part * chunk : total; }

DEVICE void finish_part(
    State* partial, Result* y, State state, u64 output, u64 outputs, u32 part, u32 parts, u64 count) {
    if (parts == 1) y[output] = Fold::finish(state, count);
    else partial[part * outputs + output] = state;
}

KERNEL reduce_lanes(Result* __restrict__ y, const DTYPE* __restrict__ x, u64 rows, u64 reduced, u32 lanes) {
    const u32 group = threadIdx.x % WARP / lanes, groups = WARP / lanes, lane = threadIdx.x % lanes;
    const u64 step = threads_of_grid<u64>() / lanes;
    // The lanes of a warp leave together.
    for (u64 first = thread_of_grid<u64>() / WARP * groups; first < rows; first += step) {
        const u64 row = first + group;
        const DTYPE* from = x + row * reduced;
        State state = Fold::start();
        if (lanes == 1) state = row < rows ? fold_in_order(from, reduced) : state;
        else state = reduce_group(row < rows ? fold_span(from, reduced, 0, lane, lanes) : state, lanes);
        if (lane == 0 && row < rows) y[row] = Fold::finish(state, reduced);
    }
}

KERNEL reduce_blocks(State* __restrict__ partial, Result* __restrict__ y, const DTYPE* __restrict__ x, u64 reduced,
    u64 chunk, u32 parts) {
    const u64 row = blockIdx.x / parts, rows = gridDim.x / parts;
    const u32 part = blockIdx.x % parts;
    const u64 begin = part_begin(part, chunk, reduced), end = part_begin(part + 1, chunk, reduced);
    State state = fold_span(x + row * reduced + begin, end - begin, (u32)begin, threadIdx.x, THREADS);
    state = block_reduce(state, Merge(), Fold::start());
    if (threadIdx.x == 0) finish_part(partial, y, state, row, rows, part, parts, reduced);
}

// Merges the states of the threads of one column, which are `width` apart. The first `width`
// threads get the result.
template <int V> DEVICE void merge_columns(State (&states)[V], u32 width) {
    __shared__ alignas(16) unsigned char memory[V * THREADS * sizeof(State)];
    State* all = reinterpret_cast<State*>(memory);
#pragma unroll
    for (int k = 0; k < V; ++k) all[k * THREADS + threadIdx.x] = states[k];
    for (u32 threads = THREADS / 2; threads >= width; threads /= 2) {
        __syncthreads();
        if (threadIdx.x < threads) {
#pragma unroll
            for (int k = 0; k < V; ++k) {
                State* mine = all + k * THREADS + threadIdx.x;
                *mine = Fold::merge(*mine, mine[threads]);
            }
        }
    }
    // Each thread that reads now wrote last what it reads.
#pragma unroll
    for (int k = 0; k < V; ++k) states[k] = all[k * THREADS + threadIdx.x];
}

template <int V> DEVICE void take_row(State (&states)[V], Pack<DTYPE, V> pack, u32 index) {
#pragma unroll
    for (int v = 0; v < V; ++v) states[v] = Fold::take(states[v], widen(pack.at[v]), index);
}

// One thread's steps of V columns side by side: rows begin, begin + height, ... below end.
template <int V>
DEVICE void fold_columns(State (&states)[V], const DTYPE* x, u64 inner, u64 begin, u64 end, u32 height) {
    // Fewer rows at once where each has many states, which are in registers too.
    constexpr int ROWS = V > 4 ? 2 : UNROLL;
    u64 i = begin;
#pragma unroll 1
    for (; i + (ROWS - 1) * (u64)height < end; i += ROWS * height) {
        Pack<DTYPE, V> loaded[ROWS];
#pragma unroll
        for (int k = 0; k < ROWS; ++k) loaded[k] = load_constant_pack<V>(x + (i + k * height) * inner, 0);
#pragma unroll
        for (int k = 0; k < ROWS; ++k) take_row<V>(states, loaded[k], (u32)(i + k * height));
    }
#pragma unroll 1
    for (; i < end; i += height) take_row<V>(states, load_constant_pack<V>(x + i * inner, 0), (u32)i);
}

struct Columns {
    u64 inner, reduced, chunk;
    u32 outer, parts, tiles, width;
};
static_assert(sizeof(Columns) == 40, "the host's layout");

template <int V> DEVICE void reduce_tile(State* partial, Result* y, const DTYPE* x, const Columns& c) {
    const u32 tile = blockIdx.x % c.tiles, other = blockIdx.x / c.tiles;
    const u32 part = other % c.parts, outer = other / c.parts;
    const u32 height = THREADS / c.width, row = threadIdx.x / c.width;
    const u64 column = ((u64)tile * c.width + threadIdx.x % c.width) * V, output = outer * c.inner + column;
    const bool inside = column < c.inner;
    State states[V];
#pragma unroll
    for (int v = 0; v < V; ++v) states[v] = Fold::start();
    if (inside) {
        const u64 begin = part_begin(part, c.chunk, c.reduced), end = part_begin(part + 1, c.chunk, c.reduced);
        fold_columns<V>(states, x + outer * c.reduced * c.inner + column, c.inner, begin + row, end, height);
    }
    merge_columns<V>(states, c.width);
    if (!inside || row > 0) return;
    if (c.parts > 1) {
#pragma unroll
        for (int v = 0; v < V; ++v) partial[part * (c.outer * c.inner) + output + v] = states[v];
        return;
    }
    Pack<Result, V> pack;
#pragma unroll
    for (int v = 0; v < V; ++v) pack.at[v] = Fold::finish(states[v], c.reduced);
    store_global_pack<V>(y + output, 0, pack);
}

KERNEL reduce_columns(
    State* __restrict__ partial, Result* __restrict__ y, const DTYPE* __restrict__ x, Columns columns) {
    reduce_tile<1>(partial, y, x, columns);
}

KERNEL reduce_columns_packed(
    State* __restrict__ partial, Result* __restrict__ y, const DTYPE* __restrict__ x, Columns columns) {
    reduce_tile<lanes_of<DTYPE>>(partial, y, x, columns);
}

// What a thread takes of the elements begin, begin + step, ... below end along the reduced dimensions.
template <typename I>
DEVICE State fold_strided(const DTYPE* x, const Strided<I, 1>& reduced, u64 begin, u64 end, u32 step) {
    State state = Fold::start();
#pragma unroll 1
    for (u64 i = begin; i < end; i += step) {
        state = Fold::take(state, widen(x[offsets_of(reduced, (I)i).at[0]]), (u32)i);
    }
    return state;
}

struct Parts {
    u64 outputs, reduced, chunk;
    u32 parts;
};
static_assert(sizeof(Parts) == 32, "the host's layout");

template <typename I>
DEVICE void each_output(State* partial, Result* y, const DTYPE* x, const Parts& p, const Strided<I, 1>& kept,
    const Strided<I, 1>& reduced) {
    const u64 all = p.outputs * p.parts;
    for (u64 i = thread_of_grid<u64>(); i < all; i += threads_of_grid<u64>()) {
        const u32 part = (u32)(i / p.outputs);
        const u64 output = i % p.outputs;
        const u64 begin = part_begin(part, p.chunk, p.reduced), end = part_begin(part + 1, p.chunk, p.reduced);
        const State state = fold_strided<I>(x + offsets_of(kept, (I)output).at[0], reduced, begin, end, 1);
        finish_part(partial, y, state, output, p.outputs, part, p.parts, p.reduced);
    }
}

template <typename I>
DEVICE void block_of_output(State* partial, Result* y, const DTYPE* x, const Parts& p, const Strided<I, 1>& kept,
    const Strided<I, 1>& reduced) {
    const u32 part = blockIdx.x % p.parts, output = blockIdx.x / p.parts;
    const u64 begin = part_begin(part, p.chunk, p.reduced), end = part_begin(part + 1, p.chunk, p.reduced);
    const DTYPE* from = x + offsets_of(kept, (I)output).at[0];
    State state = fold_strided<I>(from, reduced, begin + threadIdx.x, end, THREADS);
    state = block_reduce(state, Merge(), Fold::start());
    if (threadIdx.x == 0) finish_part(partial, y, state, output, p.outputs, part, p.parts, p.reduced);
}

// Below 2^31 elements, and from there on.
#define STRIDED(NAME, BODY, I)                                                                                 \
    KERNEL NAME(State* __restrict__ partial, Result* __restrict__ y, const DTYPE* __restrict__ x, Parts parts, \
        Strided<I, 1> kept, Strided<I, 1> reduced) {                                                           \
        BODY<I>(partial, y, x, parts, kept, reduced);                                                          \
    }
STRIDED(reduce_strided, each_output, u32)
STRIDED(reduce_strided_wide, each_output, u64)
STRIDED(reduce_strided_blocks, block_of_output, u32)
STRIDED(reduce_strided_blocks_wide, block_of_output, u64)

KERNEL merge(Result* __restrict__ y, const State* __restrict__ partial, u64 outputs, u32 parts, u64 count, u32 lanes) {
    const u32 group = threadIdx.x % WARP / lanes, groups = WARP / lanes, lane = threadIdx.x % lanes;
    const u64 step = threads_of_grid<u64>() / lanes;
    for (u64 first = thread_of_grid<u64>() / WARP * groups; first < outputs; first += step) {
        const u64 output = first + group;
        State state = Fold::start();
        for (u32 part = lane; output < outputs && part < parts; part += lanes) {
            state = Fold::merge(state, partial[part * outputs + output]);
        }
        state = reduce_group(state, lanes);
        if (lane == 0 && output < outputs) y[output] = Fold::finish(state, count);
    }
}
