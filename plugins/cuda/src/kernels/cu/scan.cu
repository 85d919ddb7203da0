// Scans along one dimension of (outer, len, inner): each element of the output is the reduction of those before it and,
// unless the scan is exclusive, of its own. In reverse, those after it.
//
//   scan_rows, scan_rows_packed   inner = 1: a block for each part of each row, packs of 16 bytes where rows are whole
//                                 aligned ones
//   scan_columns                  a thread for each part of each column
//   total_rows, total_columns     the totals of the parts, where there are several: launched before
//
// Within a part of a row, threads have neighbouring elements, warps scan the threads' totals by shuffles (W. D. Hillis,
// G. L. Steele, "Data parallel algorithms", 1986), and what came before is carried on. Parts are counted in the order of
// the scan; each begins with the totals of those before it (G. E. Blelloch, "Prefix sums and their applications", 1990,
// 1.4).
//
// Defines: DTYPE, the element; FOLD, Sum, Prod or LogSumExp of it.
#include "fold.cuh"
#include "vector.cuh"

typedef FOLD Fold;
typedef Fold::State State;

inline constexpr u32 THREADS = 256;
#define KERNEL extern "C" __global__ void __launch_bounds__(256, 2)

struct Scan {
    u64 outer, len, inner;
    // Elements of a part: of rows, whole steps of a block.
    u64 part;
    u32 parts, exclusive, reverse, unused;
};
static_assert(sizeof(Scan) == 48, "the host's layout");

struct Merge {
    DEVICE State operator()(State one, State other) const { return Fold::merge(one, other); }
};

// Part `number` in the order of the scan.
struct Part {
    u64 number, begin, end;
};

DEVICE Part part_of(const Scan& s, u64 number) {
    const u64 begin = number * s.part, left = s.len - begin;
    return {number, begin, begin + (s.part < left ? s.part : left)};
}

// What a thread's total is added to.
struct Before {
    // The totals of the threads before it, and of all.
    State threads, all;
};

DEVICE Before scan_block(State total) {
    __shared__ alignas(16) unsigned char memory[THREADS / WARP * sizeof(State)];
    State* totals = reinterpret_cast<State*>(memory);
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        const State other = shuffle_up(total, distance);
        if (lane >= distance) total = Fold::merge(other, total);
    }
    const State other = shuffle_up(total, 1);
    // Readers of the call before are done.
    __syncthreads();
    if (lane == WARP - 1) totals[warp] = total;
    __syncthreads();
    Before before = {Fold::start(), Fold::start()};
#pragma unroll
    for (int w = 0; w < THREADS / WARP; ++w) {
        if (w == warp) before.threads = before.all;
        before.all = Fold::merge(before.all, totals[w]);
    }
    if (lane > 0) before.threads = Fold::merge(before.threads, other);
    return before;
}

// The elements of a pack in the order of the scan.
template <int V> DEVICE Pack<DTYPE, V> in_order(Pack<DTYPE, V> pack, bool reverse) {
    Pack<DTYPE, V> other;
#pragma unroll
    for (int v = 0; v < V; ++v) other.at[v] = reverse ? pack.at[V - 1 - v] : pack.at[v];
    return other;
}

template <int V> DEVICE void scan_part(DTYPE* y, const DTYPE* x, const State* totals, const Scan& s, Part part) {
    State carry = Fold::start();
    if (part.number > 0) {
        for (u64 i = threadIdx.x; i < part.number; i += THREADS) carry = Fold::merge(carry, totals[i]);
        carry = block_reduce(carry, Merge(), Fold::start());
    }
#pragma unroll 1
    for (u64 base = part.begin; base < part.end; base += THREADS * V) {
        const u64 step = base + threadIdx.x * V, at = s.reverse ? s.len - step - V : step;
        const bool inside = step < part.end;
        Pack<DTYPE, V> pack;
        State total = Fold::start();
        if (inside) {
            pack = in_order<V>(load_constant_pack<V>(x + at, 0), s.reverse);
#pragma unroll
            for (int v = 0; v < V; ++v) total = Fold::take(total, widen(pack.at[v]), 0);
        }
        const Before before = scan_block(total);
        State state = Fold::merge(carry, before.threads);
        carry = Fold::merge(carry, before.all);
        if (!inside) continue;
#pragma unroll
        for (int v = 0; v < V; ++v) {
            const State next = Fold::take(state, widen(pack.at[v]), 0);
            pack.at[v] = Fold::finish(s.exclusive ? state : next, 1);
            state = next;
        }
        store_global_pack<V>(y + at, 0, in_order<V>(pack, s.reverse));
    }
}

template <int V> DEVICE void scan_all_rows(DTYPE* y, const DTYPE* x, const State* totals, const Scan& s) {
    for (u64 i = blockIdx.x; i < s.outer * s.parts; i += gridDim.x) {
        const u64 row = i / s.parts;
        scan_part<V>(y + row * s.len, x + row * s.len, totals + row * s.parts, s, part_of(s, i % s.parts));
    }
}

KERNEL scan_rows(DTYPE* __restrict__ y, const DTYPE* __restrict__ x, const State* __restrict__ totals, Scan scan) {
    scan_all_rows<1>(y, x, totals, scan);
}
KERNEL scan_rows_packed(
    DTYPE* __restrict__ y, const DTYPE* __restrict__ x, const State* __restrict__ totals, Scan scan) {
    scan_all_rows<lanes_of<DTYPE>>(y, x, totals, scan);
}

KERNEL total_rows(State* __restrict__ totals, const DTYPE* __restrict__ x, Scan s) {
    for (u64 i = blockIdx.x; i < s.outer * s.parts; i += gridDim.x) {
        const Part part = part_of(s, i % s.parts);
        const DTYPE* const from = x + i / s.parts * s.len + (s.reverse ? s.len - part.end : part.begin);
        State total = Fold::start();
#pragma unroll 4
        for (u64 at = threadIdx.x; at < part.end - part.begin; at += THREADS)
            total = Fold::take(total, widen(load_constant(from + at)), 0);
        total = block_reduce(total, Merge(), Fold::start());
        if (threadIdx.x == 0) totals[i] = total;
    }
}

// A part of a column, and where step 0 of the scan would be.
struct Column {
    u64 number, all;
    i64 first, stride;
    Part part;
};

DEVICE Column column_of(const Scan& s, u64 i) {
    const u64 all = s.outer * s.inner, number = i % all;
    const i64 first = (i64)(number / s.inner * s.len * s.inner + number % s.inner), inner = (i64)s.inner;
    const Part part = part_of(s, i / all);
    if (s.reverse) return {number, all, first + ((i64)s.len - 1) * inner, -inner, part};
    return {number, all, first, inner, part};
}

KERNEL scan_columns(
    DTYPE* __restrict__ y, const DTYPE* __restrict__ x, const State* __restrict__ totals, Scan s) {
    for (u64 i = thread_of_grid<u64>(); i < s.outer * s.inner * s.parts; i += threads_of_grid<u64>()) {
        const Column column = column_of(s, i);
        State state = Fold::start();
#pragma unroll 4
        for (u64 part = 0; part < column.part.number; ++part)
            state = Fold::merge(state, totals[part * column.all + column.number]);
#pragma unroll 4
        for (u64 step = column.part.begin; step < column.part.end; ++step) {
            const i64 at = column.first + (i64)step * column.stride;
            const State next = Fold::take(state, widen(load_constant(x + at)), 0);
            y[at] = Fold::finish(s.exclusive ? state : next, 1);
            state = next;
        }
    }
}

KERNEL total_columns(State* __restrict__ totals, const DTYPE* __restrict__ x, Scan s) {
    for (u64 i = thread_of_grid<u64>(); i < s.outer * s.inner * s.parts; i += threads_of_grid<u64>()) {
        const Column column = column_of(s, i);
        State total = Fold::start();
#pragma unroll 4
        for (u64 step = column.part.begin; step < column.part.end; ++step)
            total = Fold::take(total, widen(load_constant(x + column.first + (i64)step * column.stride)), 0);
        totals[i] = total;
    }
}
