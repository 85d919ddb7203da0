// Scans along one dimension of (outer, len, inner): each element of the output is the reduction of those before it and,
// unless the scan is exclusive, of its own. In reverse, those after it.
//
//   scan_rows, scan_rows_packed   inner = 1: a block for each row, packs of 16 bytes where rows are whole aligned ones
//   scan_columns                  a thread for each column
//
// Within a row, threads have neighbouring elements, warps scan the threads' totals by shuffles (W. D. Hillis,
// G. L. Steele, "Data parallel algorithms", 1986), and what came before is carried on.
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
    u32 exclusive, reverse;
};
static_assert(sizeof(Scan) == 32, "the host's layout");

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

template <int V> DEVICE void scan_row(DTYPE* y, const DTYPE* x, const Scan& s) {
    State carry = Fold::start();
#pragma unroll 1
    for (u64 base = 0; base < s.len; base += THREADS * V) {
        const u64 step = base + threadIdx.x * V, at = s.reverse ? s.len - step - V : step;
        const bool inside = step < s.len;
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

template <int V> DEVICE void scan_all_rows(DTYPE* y, const DTYPE* x, const Scan& s) {
    for (u64 row = blockIdx.x; row < s.outer; row += gridDim.x) scan_row<V>(y + row * s.len, x + row * s.len, s);
}

KERNEL scan_rows(DTYPE* __restrict__ y, const DTYPE* __restrict__ x, Scan scan) { scan_all_rows<1>(y, x, scan); }
KERNEL scan_rows_packed(DTYPE* __restrict__ y, const DTYPE* __restrict__ x, Scan scan) {
    scan_all_rows<lanes_of<DTYPE>>(y, x, scan);
}

KERNEL scan_columns(DTYPE* __restrict__ y, const DTYPE* __restrict__ x, Scan s) {
    const u64 columns = s.outer * s.inner;
    for (u64 i = thread_of_grid<u64>(); i < columns; i += threads_of_grid<u64>()) {
        const u64 first = i / s.inner * s.len * s.inner + i % s.inner;
        State state = Fold::start();
#pragma unroll 4
        for (u64 step = 0; step < s.len; ++step) {
            const u64 at = first + (s.reverse ? s.len - 1 - step : step) * s.inner;
            const State next = Fold::take(state, widen(x[at]), 0);
            y[at] = Fold::finish(s.exclusive ? state : next, 1);
            state = next;
        }
    }
}
