// Reductions of rows of one segment to one row. The rows of segment s are those from begins[s] to begins[s + 1], or
// those that `rows` names there.
//
//   segments, segments_packed   a group of `width` times `height` threads for each `width` columns of each part of a
//                               segment; packs of 16 bytes where rows are whole aligned ones
//   merge_segments              a thread for each element: of several parts
//   pieces, pieces_packed       a block for each piece of all rows and each tile: what long segments have there
//   merge_pieces, merge_pieces_packed
//                               a block for each long segment: of its rows before the first whole piece, and its pieces
//
// With several parts, the state of each is at partial[part * outputs + output]; that of a piece at
// partial[piece * inner + column]. Segments of more than `limit` rows are long: `segments` skips
// them.
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
// NaN where there is one: rows are taken in no order, so that none can be said to come after it.
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
    u32 limit, piece;
};
static_assert(sizeof(Segments) == 40, "the host's layout");

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
        bool inside = task < tasks && column < s.inner;
        State states[V];
#pragma unroll
        for (int v = 0; v < V; ++v) states[v] = Fold::start();
        u64 begin = 0, count = 0;
        if (inside) {
            begin = begins[segment];
            count = begins[segment + 1] - begin;
            inside = count <= s.limit;
        }
        if (inside) {
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

// The segment that has a row: the last one that begins there or before, since the others are empty.
DEVICE u64 segment_of(const u32* begins, u64 segments, u64 row) {
    u64 low = 0, high = segments;
    while (high - low > 1) {
        const u64 middle = low + (high - low) / 2;
        if (begins[middle] <= row) low = middle;
        else high = middle;
    }
    return low;
}

// The place of a thread in a block of `width` columns: its column, and its rows, `height` apart from `row` on.
struct Place {
    u64 column;
    u32 row, height;
    bool inside;
};

template <int V> DEVICE Place place_of(const Segments& s, u64 tile) {
    const u64 column = (tile * s.width + threadIdx.x % s.width) * V;
    return {column, threadIdx.x / s.width, THREADS / s.width, column < s.inner};
}

template <int V>
DEVICE void fold_pieces(State* partial, const DTYPE* x, const u32* begins, const u32* rows, const Segments& s) {
    const u64 end = begins[s.segments], tasks = (end + s.piece - 1) / s.piece * s.tiles;
#pragma unroll 1
    for (u64 task = blockIdx.x; task < tasks; task += gridDim.x) {
        const u64 piece = task / s.tiles, first = piece * s.piece, segment = segment_of(begins, s.segments, first);
        const u64 last = begins[segment + 1];
        if (last - begins[segment] <= s.limit) continue;
        const Place at = place_of<V>(s, task % s.tiles);
        State states[V];
#pragma unroll
        for (int v = 0; v < V; ++v) states[v] = Fold::start();
        const u64 to = last < first + s.piece ? last : first + s.piece;
        if (at.inside) fold_rows<V>(states, x + at.column, rows, s.inner, first + at.row, to, at.height);
        merge_rows<V>(states, s.width, at.height);
        if (!at.inside || at.row > 0) continue;
#pragma unroll
        for (int v = 0; v < V; ++v) partial[piece * s.inner + at.column + v] = states[v];
    }
}

template <int V>
DEVICE void merge_long(DTYPE* y, const State* partial, const DTYPE* x, const u32* rows, const Segments& s, u64 segment,
    u64 begin, u64 end) {
    const u64 piece = (begin + s.piece - 1) / s.piece, first = piece * s.piece < end ? piece * s.piece : end;
#pragma unroll 1
    for (u64 tile = 0; tile < s.tiles; ++tile) {
        const Place at = place_of<V>(s, tile);
        State states[V];
#pragma unroll
        for (int v = 0; v < V; ++v) states[v] = Fold::start();
        if (at.inside) {
            fold_rows<V>(states, x + at.column, rows, s.inner, begin + at.row, first, at.height);
            for (u64 i = piece + at.row; i * s.piece < end; i += at.height) {
#pragma unroll
                for (int v = 0; v < V; ++v)
                    states[v] = Fold::merge(states[v], partial[i * s.inner + at.column + v]);
            }
        }
        merge_rows<V>(states, s.width, at.height);
        if (!at.inside || at.row > 0) continue;
        Pack<DTYPE, V> pack;
#pragma unroll
        for (int v = 0; v < V; ++v) pack.at[v] = Fold::finish(states[v], end - begin);
        store_global_pack<V>(y + segment * s.inner + at.column, 0, pack);
    }
}

// Each block looks for long ones among as many segments as it has threads, and merges them one after the other.
template <int V>
DEVICE void find_long(
    DTYPE* y, const State* partial, const DTYPE* x, const u32* begins, const u32* rows, const Segments& s) {
    __shared__ u32 found[THREADS / WARP];
#pragma unroll 1
    for (u64 base = (u64)blockIdx.x * THREADS; base < s.segments; base += (u64)gridDim.x * THREADS) {
        const u64 own = base + threadIdx.x;
        const bool is_long = own < s.segments && begins[own + 1] - begins[own] > s.limit;
        const u32 votes = __ballot_sync(ALL_LANES, is_long);
        // Readers of the step before are done.
        __syncthreads();
        if (threadIdx.x % WARP == 0) found[threadIdx.x / WARP] = votes;
        __syncthreads();
#pragma unroll 1
        for (u32 warp = 0; warp < THREADS / WARP; ++warp) {
#pragma unroll 1
            for (u32 left = found[warp]; left != 0; left &= left - 1) {
                const u64 segment = base + warp * WARP + __popc((left & (0 - left)) - 1);
                merge_long<V>(y, partial, x, rows, s, segment, begins[segment], begins[segment + 1]);
            }
        }
    }
}

#define PIECES(NAME, V)                                                                                          \
    KERNEL NAME(State* __restrict__ partial, const DTYPE* __restrict__ x, const u32* __restrict__ begins,       \
        const u32* __restrict__ rows, Segments segments) {                                                      \
        fold_pieces<V>(partial, x, begins, rows, segments);                                                     \
    }                                                                                                           \
    KERNEL merge_##NAME(DTYPE* __restrict__ y, const State* __restrict__ partial, const DTYPE* __restrict__ x,  \
        const u32* __restrict__ begins, const u32* __restrict__ rows, Segments segments) {                      \
        find_long<V>(y, partial, x, begins, rows, segments);                                                    \
    }
PIECES(pieces, 1)
PIECES(pieces_packed, lanes_of<DTYPE>)

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
