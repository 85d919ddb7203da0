// The greatest elements of a row: their choice, by radix selection (D. E. Knuth, The Art of
// Computer Programming, volume 3, 5.2.5; T. Alabi et al., "Fast k-selection algorithms for graphics
// processing units", 2012), and their order.
//
// An element comes before a smaller one, and equal elements have the order of their positions, so
// that no two elements tie. NaN is less than all others. Blocks are one-dimensional, of whole
// warps; every thread takes part.
#pragma once
#include "reduce.cuh"
#include "vector.cuh"

template <typename X> using KeyOf = choose<sizeof(X) == 8, u64, u32>;

DEVICE u32 bits_of(f16 x) { return x.bits; }
DEVICE u32 bits_of(bf16 x) { return x.bits; }
DEVICE u32 bits_of(f32 x) { return to_bits(x); }
DEVICE u64 bits_of(f64 x) { return to_bits(x); }

// A number of as many bits, greater where the element is greater.
template <typename X> DEVICE KeyOf<X> key_of(X x) {
    typedef KeyOf<X> Key;
    const Key sign = (Key)1 << (8 * sizeof(X) - 1), all = sign | (sign - 1);
    if constexpr (is_float<Compute<X>>) {
        const Compute<X> value = widen(x);
        // Both zeros are equal.
        const Key bits = value == 0 ? (Key)0 : (Key)bits_of(x);
        return is_nan(value) ? (Key)0 : bits & sign ? ~bits & all : bits | sign;
    } else {
        return is_signed<X> ? ((Key)x ^ sign) & all : (Key)x;
    }
}

// Candidates: the elements of a row from `first` on, or those at `places`.
template <typename X> struct Row {
    const X* x;
    const u32* places;
    u32 first, len;
    DEVICE u32 place(u32 i) const { return places ? places[i] : first + i; }
    DEVICE KeyOf<X> key(u32 i) const { return key_of(load_constant(x + place(i))); }
};

// The bits of the least selected key that are `known` so far, the number of elements to select with
// this key, and the number that have it.
template <typename Key> struct Selected {
    Key key, known;
    u32 ties, equal;
};

// Finds the bin of 256, counted from the last, that has the item `needed`; the first warp does it
// for all threads.
DEVICE void find_bin(const u32* bins, u32 needed, u32* found) {
    constexpr u32 EACH = 256 / WARP;
    if (threadIdx.x < WARP) {
        const u32 last = 255 - threadIdx.x * EACH;
        u32 sum = 0;
#pragma unroll
        for (u32 k = 0; k < EACH; ++k) sum += bins[last - k];
        u32 upto = sum;
#pragma unroll
        for (u32 distance = 1; distance < WARP; distance *= 2) {
            const u32 other = shuffle_up(upto, (int)distance);
            if (threadIdx.x >= distance) upto += other;
        }
        u32 before = upto - sum;
        if (before < needed && needed <= upto) {
            u32 bin = last;
            for (; before + bins[bin] < needed; --bin) before += bins[bin];
            found[0] = bin;
            found[1] = needed - before;
            found[2] = bins[bin];
        }
    }
    __syncthreads();
}

// Selects the k greatest: 1 <= k <= row.len. It ends as soon as they are known or, if `last` is
// requested, as soon as the last one is.
template <typename X> DEVICE Selected<KeyOf<X>> select_greatest(const Row<X>& row, u32 k, bool last) {
    typedef KeyOf<X> Key;
    __shared__ u32 bins[256], found[3];
    Selected<Key> selected = {0, 0, k, row.len};
#pragma unroll 1
    for (int shift = 8 * sizeof(X) - 8; shift >= 0; shift -= 8) {
        if (selected.ties == selected.equal && (!last || selected.equal == 1)) break;
        for (u32 bin = threadIdx.x; bin < 256; bin += blockDim.x) bins[bin] = 0;
        __syncthreads();
        for (u64 i = threadIdx.x; i < row.len; i += blockDim.x) {
            const Key other = row.key((u32)i);
            if ((other & selected.known) == selected.key) atomicAdd(&bins[(u32)(other >> shift) & 255], 1u);
        }
        __syncthreads();
        find_bin(bins, selected.ties, found);
        const Key key = selected.key | (Key)found[0] << shift, known = selected.known | (Key)255 << shift;
        selected = {key, known, found[1], found[2]};
        // Readers are done.
        __syncthreads();
    }
    return selected;
}

// The number of earlier threads whose `yes` is set; `all` is the number of all such threads.
DEVICE u32 count_before(bool yes, u32& all) {
    __shared__ u32 totals[WARP];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    const u32 votes = __ballot_sync(ALL_LANES, yes);
    // The readers of the previous call are done.
    __syncthreads();
    if (lane == 0) totals[warp] = __popc(votes);
    __syncthreads();
    u32 before = 0;
    all = 0;
    for (u32 w = 0; w < warps; ++w) {
        if (w == warp) before = all;
        all += totals[w];
    }
    return before + __popc(votes & ((1u << lane) - 1));
}

// Keys and positions side by side.
template <typename Key> struct Pairs {
    Key* keys;
    u32* places;
    // Whether pair i comes before pair j.
    DEVICE bool before(u64 i, u64 j) const {
        return keys[i] > keys[j] || (keys[i] == keys[j] && places[i] < places[j]);
    }
    DEVICE void swap(u64 i, u64 j) const {
        const Key key = keys[i];
        const u32 place = places[i];
        keys[i] = keys[j];
        places[i] = places[j];
        keys[j] = key;
        places[j] = place;
    }
};

// Puts the k greatest at `to`, in any order, followed up to `padded` by pairs that come after all.
template <typename X> DEVICE void collect(const Row<X>& row, u32 k, u32 padded, Pairs<KeyOf<X>> to) {
    typedef KeyOf<X> Key;
    __shared__ u32 count;
    const Selected<Key> selected = select_greatest(row, k, false);
    const bool some = selected.ties < selected.equal;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    for (u64 i = threadIdx.x; i < row.len; i += blockDim.x) {
        const Key key = row.key((u32)i);
        if (key < selected.key || (some && key == selected.key)) continue;
        const u32 at = atomicAdd(&count, 1u);
        to.keys[at] = key;
        to.places[at] = row.place((u32)i);
    }
    // Of equal elements the first ones, after the others.
    u32 taken = 0, all;
#pragma unroll 1
    for (u64 base = 0; some && base < row.len && taken < selected.ties; base += blockDim.x) {
        const u32 i = (u32)(base + threadIdx.x);
        const bool tie = base + threadIdx.x < row.len && row.key(i) == selected.key;
        const u32 at = taken + count_before(tie, all);
        if (tie && at < selected.ties) {
            to.keys[k - selected.ties + at] = selected.key;
            to.places[k - selected.ties + at] = row.place(i);
        }
        taken += all;
    }
    for (u32 i = k + threadIdx.x; i < padded; i += blockDim.x) {
        to.keys[i] = 0;
        to.places[i] = 0xffffffffu;
    }
}

// Steps of a bitonic sort (K. E. Batcher, "Sorting networks and their applications", 1968) over pairs that the block
// shares: runs of `size` from runs of half of it, for sizes from `from` to `to`. The first of the pairs is number `base`
// of all, by which the direction goes.
template <typename Key> DEVICE void sort_steps(Pairs<Key> pairs, u32 count, u64 base, u64 from, u64 to) {
    for (u64 size = from; size <= to; size *= 2) {
        for (u32 stride = size / 2 < count / 2 ? (u32)(size / 2) : count / 2; stride > 0; stride /= 2) {
            __syncthreads();
            for (u32 i = threadIdx.x; i < count / 2; i += blockDim.x) {
                const u32 low = 2 * i - (i & (stride - 1)), high = low + stride;
                if (pairs.before(high, low) == (((base + low) & size) == 0)) pairs.swap(low, high);
            }
        }
    }
    __syncthreads();
}
