// The sizes and positions of a convolution over two or three dimensions, and the copies of its
// tiles to shared memory.
//
// The convolution is a product. The left factor is a matrix of patches, with a row for each output
// pixel and a column for each tap and channel of a group; it is never stored. The right factor is
// the filter, whose memory is that matrix. In a tile of patches the taps and channels are
// neighbours, in a tile of the filter the outputs.
//
// Images are planes of rows and columns: one plane, or with VOLUME several, over which windows slide too.
#pragma once
#include "windows.cuh"

#ifndef VOLUME
#define VOLUME 0
#endif

// The host ensures that `depth` is below 2^30.
struct Convolution {
    Axis rows, columns;
    // Divide a row of the filter into its tap and channel, and a tap into its row and column.
    Divisor<u32> by_channels, by_columns;
    // Of a group: input channels and outputs; the number of groups; rows of the filter.
    u32 channels, outputs, groups, depth;
    // The number of output pixels of all images.
    i64 pixels;
    ImageStrides x;
    i64 y_image, y_pixel, y_channel;
    // The number of tiles that the outputs of a group are split into.
    u32 tiles;
    // Whether outputs may be written several at a time: they are neighbours, in multiples of 4, and aligned.
    u32 packed_output;
    // With VOLUME: the planes, the division of a row of taps into its plane and row, the step
    // between planes.
    Axis planes;
    Divisor<u32> by_rows;
    u32 unused;
    i64 x_plane;
};

static_assert(sizeof(Convolution) == 208, "the host's layout");

// A row of a tile: an output pixel.
struct Row {
    // Offset of tap 0 in the group's first channel; it may be outside the image.
    i64 corner;
    // Offset of the pixel in the output; -1 beyond the last one.
    i64 y;
    // Position of tap 0.
    i32 top, left;
#if VOLUME
    i32 front;
#endif
};

DEVICE Row row_of(const Convolution& c, i64 pixel, u32 group) {
    if (pixel >= c.pixels) return {0, -1, -(1 << 30), -(1 << 30)};
    const i64 of_plane = (i64)c.rows.output * c.columns.output;
    const i64 plane = pixel / of_plane;
    const i64 place = pixel - plane * of_plane;
    const i32 line = (i32)(place / c.columns.output), column = (i32)(place - (i64)line * c.columns.output);
    const i32 top = c.rows.start(line), left = c.columns.start(column);
    const i64 corner = (i64)group * c.channels * c.x.channel + top * c.x.row + left * c.x.column;
#if VOLUME
    const i64 image = plane / c.planes.output, depth = plane - image * c.planes.output;
    const i32 front = c.planes.start((i32)depth);
    return {image * c.x.image + corner + front * c.x_plane, image * c.y_image + (depth * of_plane + place) * c.y_pixel, top,
        left, front};
#else
    return {plane * c.x.image + corner, plane * c.y_image + place * c.y_pixel, top, left};
#endif
}

// A column of a tile: a tap of the window and a channel.
struct Tap {
    // Offset from a row's corner.
    i64 offset;
    i32 down, right;
    bool is_there;
#if VOLUME
    i32 back;
#endif
};

DEVICE Tap tap_of(const Convolution& c, u32 k) {
    const DivMod<u32> channel = c.by_channels.divide_with_rest(k);
    const DivMod<u32> column = c.by_columns.divide_with_rest(channel.quotient);
    const i32 right = (i32)column.remainder * c.columns.dilation;
    const i64 offset = right * c.x.column + channel.remainder * c.x.channel;
#if VOLUME
    const DivMod<u32> row = c.by_rows.divide_with_rest(column.quotient);
    const i32 down = (i32)row.remainder * c.rows.dilation, back = (i32)row.quotient * c.planes.dilation;
    return {offset + down * c.x.row + back * c.x_plane, down, right, k < c.depth, back};
#else
    const i32 down = (i32)column.quotient * c.rows.dilation;
    return {offset + down * c.x.row, down, right, k < c.depth};
#endif
}

// Whether a tap of a pixel is inside the image.
DEVICE bool is_inside(const Convolution& c, const Row& row, const Tap& tap) {
    bool inside = tap.is_there && c.rows.has(row.top + tap.down) && c.columns.has(row.left + tap.right);
#if VOLUME
    inside = inside && c.planes.has(row.front + tap.back);
#endif
    return inside;
}

// Copies N elements to shared memory, or zeros where they are not inside; from compute capability
// 8.0 on without waiting for them. `base` is any valid address.
template <int N, typename X> DEVICE void copy_in(X* to, const X* base, i64 offset, bool inside) {
    const X* from = base + (inside ? offset : 0);
#if !defined(TENON_EMULATED) && __CUDA_ARCH__ >= 800
    constexpr int BYTES = N * sizeof(X);
    if constexpr (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     : : "r"((u32)__cvta_generic_to_shared(to)), "l"(from), "r"(inside ? 16 : 0) : "memory");
        return;
    } else if constexpr (BYTES >= 4) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                     : : "r"((u32)__cvta_generic_to_shared(to)), "l"(from), "n"(BYTES), "r"(inside ? BYTES : 0)
                     : "memory");
        return;
    }
#endif
    typedef Pack<X, N> P;
    Words<P> words;
#pragma unroll
    for (int i = 0; i < words_of<P>; ++i) words.words[i] = Word<P>{};
    if (inside) words.value = load_constant(reinterpret_cast<const P*>(from));
    store(reinterpret_cast<P*>(to), words.value);
}

// Ends a group of copies: all copies since the last group.
DEVICE void end_copies() {
#if !defined(TENON_EMULATED) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" : : : "memory");
#endif
}

// Waits for this thread's copies, except those of the last LATER groups.
template <int LATER> DEVICE void wait_for_copies() {
#if !defined(TENON_EMULATED) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" : : "n"(LATER) : "memory");
#endif
}

// Copies a tile of patches, N channels at a time; S is the tile's shape. With channels first,
// threads go along pixels, which are neighbours.
template <typename S, int N, bool ALONG_PIXELS, typename X>
DEVICE void copy_patches(X* to, const Convolution& c, const X* x, const Row* rows, u32 first) {
    const int thread = (int)threadIdx.x;
    if constexpr (ALONG_PIXELS) {
        const int row = thread % S::ROWS;
        const Row pixel = rows[row];
#pragma unroll(N == 1 ? 4 : 1)
        for (int k = thread / S::ROWS; k < S::DEPTH; k += S::THREADS / S::ROWS) {
            const Tap tap = tap_of(c, first + k);
            copy_in<1>(to + row * S::PATCH_PITCH + k, x, pixel.corner + tap.offset, is_inside(c, pixel, tap));
        }
    } else {
        constexpr int CHUNKS = S::DEPTH / N;
        const int k = thread % CHUNKS * N;
        const Tap tap = tap_of(c, first + k);
#pragma unroll(N == 1 ? 4 : 1)
        for (int row = thread / CHUNKS; row < S::ROWS; row += S::THREADS / CHUNKS) {
            const Row pixel = rows[row];
            copy_in<N>(to + row * S::PATCH_PITCH + k, x, pixel.corner + tap.offset, is_inside(c, pixel, tap));
        }
    }
}

// Copies a tile of the filter, N outputs at a time, from row `first` on and the group's output `output` on.
template <typename S, int N, typename X>
DEVICE void copy_filter(X* to, const Convolution& c, const X* filter, u32 first, u32 group, u32 output) {
    constexpr int CHUNKS = S::COLUMNS / N;
    const int column = (int)threadIdx.x % CHUNKS * N;
    const i64 from = (i64)group * c.outputs + output + column, stride = (i64)c.groups * c.outputs;
#pragma unroll(N == 1 ? 4 : 1)
    for (int row = (int)threadIdx.x / CHUNKS; row < S::DEPTH; row += S::THREADS / CHUNKS) {
        const u32 k = first + row;
        const bool inside = k < c.depth && output + column < c.outputs;
        copy_in<N>(to + row * S::FILTER_PITCH + column, filter, from + k * stride, inside);
    }
}
