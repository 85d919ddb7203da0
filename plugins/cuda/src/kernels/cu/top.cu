// The k greatest elements of rows in their order, and their positions.
//
//   top_short    a warp for each row, for few elements of short rows: one after the other is found
//   top_few      a block for each part of each row: few enough to be sorted in shared memory. With several parts, only
//                where they stand goes to `list`, from which a second launch takes its candidates
//   top_many     a block for each row: pairs to be sorted in device memory
//   sort_tiles   a block for each 2048 pairs: steps of the sort that stay among them
//   sort_step    one step of the sort
//   top_write    results from sorted pairs
//
// Defines: DTYPE, the element.
#include "rank.cuh"

typedef KeyOf<DTYPE> Key;
#define KERNEL extern "C" __global__ void

struct Top {
    u32 len, k, padded;
    // Parts of a row; or candidates of each, which `list` has.
    u32 parts, candidates;
    // Bytes of an index.
    u32 size;
};
static_assert(sizeof(Top) == 24, "the host's layout");

// An index that does not fit loses its high bits.
DEVICE void write_result(DTYPE* values, void* indices, const DTYPE* row, u32 place, u32 size, u64 at) {
    values[at] = row[place];
    switch (size) {
        case 2: ((i16*)indices)[at] = (i16)place; break;
        case 4: ((i32*)indices)[at] = (i32)place; break;
        default: ((i64*)indices)[at] = (i64)place;
    }
}

// An element of a short row: `next` is one more than its place, 0 for none yet.
struct Found {
    Key key;
    u32 next;
};

struct Before {
    DEVICE Found operator()(Found a, Found b) const {
        const bool other = b.key > a.key || (b.key == a.key && b.next < a.next);
        return other ? b : a;
    }
};

// Of the elements of this lane that come after `last`, the one that comes before the others.
DEVICE Found next_of_lane(const DTYPE* row, u32 len, Found last) {
    Found best = {0, 0xffffffffu};
    for (u32 i = threadIdx.x % WARP; i < len; i += WARP) {
        const Found one = {key_of(load_constant(row + i)), i + 1};
        const bool after = one.key < last.key || (one.key == last.key && one.next > last.next);
        if (after) best = Before{}(best, one);
    }
    return best;
}

KERNEL __launch_bounds__(256)
    top_short(DTYPE* __restrict__ values, void* __restrict__ indices, const DTYPE* __restrict__ x, Top top, u64 rows) {
    for (u64 row = thread_of_grid<u64>() / WARP; row < rows; row += threads_of_grid<u64>() / WARP) {
        const DTYPE* const from = x + row * top.len;
        Found own = next_of_lane(from, top.len, Found{(Key)~(Key)0, 0});
        for (u32 i = 0; i < top.k; ++i) {
            const Found best = warp_reduce(own, Before{});
            // The lane that has it looks for its next one.
            if (best.next != own.next) continue;
            write_result(values, indices, from, best.next - 1, top.size, row * top.k + i);
            own = next_of_lane(from, top.len, best);
        }
    }
}

// Two blocks at least: left alone, ptxas spills for the sake of a third.
KERNEL __launch_bounds__(512, 2) top_few(
    DTYPE* __restrict__ values, void* __restrict__ indices, const DTYPE* __restrict__ x, u32* list, Top top) {
    extern __shared__ uint4 memory[];
    Key* keys = reinterpret_cast<Key*>(memory);
    const Pairs<Key> pairs = {keys, reinterpret_cast<u32*>(keys + top.padded)};
    const u64 row = blockIdx.x / top.parts;
    const u32 part = blockIdx.x % top.parts;
    const u64 begin = (u64)top.len * part / top.parts, end = (u64)top.len * (part + 1) / top.parts;
    Row<DTYPE> from = {x + row * top.len, nullptr, (u32)begin, (u32)(end - begin)};
    if (top.candidates > 0) from = {from.x, list + row * top.candidates, 0, top.candidates};
    collect(from, top.k, top.padded, pairs);
    sort_steps(pairs, top.padded, 0, 2, top.padded);
    for (u32 i = threadIdx.x; i < top.k; i += blockDim.x) {
        const u64 at = (u64)blockIdx.x * top.k + i;
        if (top.parts > 1) list[at] = pairs.places[i];
        else write_result(values, indices, from.x, pairs.places[i], top.size, at);
    }
}

KERNEL __launch_bounds__(512)
    top_many(Key* __restrict__ keys, u32* __restrict__ places, const DTYPE* __restrict__ x, Top top) {
    const u64 row = blockIdx.x, at = row * top.padded;
    const Row<DTYPE> from = {x + row * top.len, nullptr, 0, top.len};
    collect(from, top.k, top.padded, Pairs<Key>{keys + at, places + at});
}

inline constexpr u32 TILE = 2048;

KERNEL __launch_bounds__(512) sort_tiles(Key* keys, u32* places, u32 padded, u64 from, u64 to) {
    __shared__ Key tile_keys[TILE];
    __shared__ u32 tile_places[TILE];
    const u64 first = (u64)blockIdx.x * TILE;
    for (u32 i = threadIdx.x; i < TILE; i += blockDim.x) {
        tile_keys[i] = keys[first + i];
        tile_places[i] = places[first + i];
    }
    sort_steps(Pairs<Key>{tile_keys, tile_places}, TILE, first & (padded - 1), from, to);
    for (u32 i = threadIdx.x; i < TILE; i += blockDim.x) {
        keys[first + i] = tile_keys[i];
        places[first + i] = tile_places[i];
    }
}

KERNEL __launch_bounds__(256) sort_step(Key* keys, u32* places, u32 padded, u64 count, u64 size, u64 stride) {
    const Pairs<Key> pairs = {keys, places};
    for (u64 i = thread_of_grid<u64>(); i < count / 2; i += threads_of_grid<u64>()) {
        const u64 low = 2 * i - (i & (stride - 1)), high = low + stride;
        const bool ascends = (low & (padded - 1) & size) == 0;
        if (pairs.before(high, low) == ascends) pairs.swap(low, high);
    }
}

KERNEL __launch_bounds__(256) top_write(DTYPE* __restrict__ values, void* __restrict__ indices,
    const DTYPE* __restrict__ x, const u32* __restrict__ places, Top top, u64 rows) {
    for (u64 i = thread_of_grid<u64>(); i < rows * top.k; i += threads_of_grid<u64>()) {
        const u64 row = i / top.k, at = i - row * top.k;
        write_result(values, indices, x + row * top.len, places[row * top.padded + at], top.size, i);
    }
}
