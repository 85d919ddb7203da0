// Sorts rows by their segment, and keeps the order of the rows of a segment: a radix sort by 8 bits
// at a time from the lowest, each pass by counting (D. Merrill, A. Grimshaw, "High performance and
// scalable radix sorting", 2011).
//
//   segment_keys    what is sorted: the segment; `segments` where the id is outside, which comes last
//   count_digits    a block for each chunk: counts[digit * chunks + chunk]
//   scan_counts     one block: where each digit of each chunk goes
//   place_digits    a block for each chunk: keys and rows to their places
//   segment_begins  where each segment begins among sorted keys, and where the last ends
//
// A chunk is whole tiles of 2048. Nothing depends on the order in which blocks or threads run.
#include "reduce.cuh"
#include "vector.cuh"

inline constexpr u32 THREADS = 256, DIGITS = 256, WARPS = THREADS / WARP;
// Keys of a thread in a tile.
inline constexpr int ITEMS = 8;
inline constexpr u32 TILE = THREADS * ITEMS;
#define KERNEL extern "C" __global__ void

KERNEL __launch_bounds__(256) segment_keys(
    u32* __restrict__ keys, const void* __restrict__ ids, u32 size, u32 count, u32 segments) {
    for (u32 i = thread_of_grid<u32>(); i < count; i += threads_of_grid<u32>()) {
        const i64 id = load_integer(ids, size, i);
        keys[i] = (u64)id < segments ? (u32)id : segments;
    }
}

struct Chunk {
    u32 begin, end;
};

DEVICE Chunk chunk_of(u32 block, u32 chunk, u32 count) {
    const u64 begin = (u64)block * chunk, end = begin + chunk;
    return {(u32)begin, end < count ? (u32)end : count};
}

KERNEL __launch_bounds__(256)
    count_digits(u32* __restrict__ counts, const u32* __restrict__ keys, u32 count, u32 chunk, u32 shift) {
    __shared__ u32 bins[DIGITS];
    bins[threadIdx.x] = 0;
    __syncthreads();
    const Chunk mine = chunk_of(blockIdx.x, chunk, count);
    for (u64 i = mine.begin + threadIdx.x; i < mine.end; i += THREADS) atomicAdd(&bins[keys[i] >> shift & 255], 1u);
    __syncthreads();
    counts[threadIdx.x * gridDim.x + blockIdx.x] = bins[threadIdx.x];
}

// The sum of the threads before this one; `all` is that of all.
DEVICE u32 sum_before(u32 mine, u32& all) {
    __shared__ u32 totals[WARPS];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    u32 sum = mine;
#pragma unroll
    for (u32 distance = 1; distance < WARP; distance *= 2) {
        const u32 other = shuffle_up(sum, (int)distance);
        if (lane >= distance) sum += other;
    }
    // Readers of the call before are done.
    __syncthreads();
    if (lane == WARP - 1) totals[warp] = sum;
    __syncthreads();
    u32 before = 0;
    all = 0;
#pragma unroll
    for (u32 w = 0; w < WARPS; ++w) {
        if (w == warp) before = all;
        all += totals[w];
    }
    return before + sum - mine;
}

KERNEL __launch_bounds__(256) scan_counts(u32* __restrict__ counts, u32 count) {
    u32 carry = 0;
#pragma unroll 1
    for (u32 base = 0; base < count; base += TILE) {
        const u32 first = base + threadIdx.x * ITEMS;
        u32 own[ITEMS], sum = 0, all;
#pragma unroll
        for (int k = 0; k < ITEMS; ++k) own[k] = first + k < count ? counts[first + k] : 0;
#pragma unroll
        for (int k = 0; k < ITEMS; ++k) sum += own[k];
        u32 before = carry + sum_before(sum, all);
        carry += all;
#pragma unroll
        for (int k = 0; k < ITEMS; ++k) {
            if (first + k < count) counts[first + k] = before;
            before += own[k];
        }
    }
}

struct Keys {
    u32 *keys, *rows;
};

// Where the tile that begins at `base` goes: places[d] is where the next key with digit d goes, for all tiles before.
DEVICE void place_tile(Keys to, const u32* keys, const u32* rows, u32 base, u32 end, u32 shift, u32* places) {
    // Of each warp, the keys with each digit; then where the next of them goes.
    __shared__ u32 next[WARPS][DIGITS];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    // Readers of the tile before are done.
    __syncthreads();
#pragma unroll
    for (u32 w = 0; w < WARPS; ++w) next[w][threadIdx.x] = 0;
    __syncthreads();
    u32 own[ITEMS], before[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        const u64 i = (u64)base + warp * (WARP * ITEMS) + k * WARP + lane;
        own[k] = i < end ? keys[i] : 0;
        const u32 digit = i < end ? own[k] >> shift & 255 : DIGITS;
        const u32 same = __match_any_sync(ALL_LANES, digit), lower = same & ((1u << lane) - 1);
        before[k] = digit < DIGITS ? next[warp][digit] + __popc(lower) : 0;
        __syncwarp();
        if (digit < DIGITS && lower == 0) next[warp][digit] += __popc(same);
        __syncwarp();
    }
    __syncthreads();
    u32 place = places[threadIdx.x];
#pragma unroll
    for (u32 w = 0; w < WARPS; ++w) {
        const u32 count = next[w][threadIdx.x];
        next[w][threadIdx.x] = place;
        place += count;
    }
    places[threadIdx.x] = place;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        const u64 i = (u64)base + warp * (WARP * ITEMS) + k * WARP + lane;
        if (i >= end) continue;
        const u32 at = next[warp][own[k] >> shift & 255] + before[k];
        to.keys[at] = own[k];
        to.rows[at] = rows ? rows[i] : (u32)i;
    }
}

KERNEL __launch_bounds__(256) place_digits(Keys to, const u32* __restrict__ keys, const u32* __restrict__ rows,
    const u32* __restrict__ counts, u32 count, u32 chunk, u32 shift) {
    __shared__ u32 places[DIGITS];
    places[threadIdx.x] = counts[threadIdx.x * gridDim.x + blockIdx.x];
    const Chunk mine = chunk_of(blockIdx.x, chunk, count);
#pragma unroll 1
    for (u64 base = mine.begin; base < mine.end; base += TILE) {
        place_tile(to, keys, rows, (u32)base, mine.end, shift, places);
    }
}

KERNEL __launch_bounds__(256)
    segment_begins(u32* __restrict__ begins, const u32* __restrict__ keys, u32 count, u32 segments) {
    for (u64 s = thread_of_grid<u64>(); s <= segments; s += threads_of_grid<u64>()) {
        u32 low = 0, high = count;
        while (low < high) {
            const u32 middle = low + (high - low) / 2;
            if (keys[middle] < s) low = middle + 1;
            else high = middle;
        }
        begins[s] = low;
    }
}
