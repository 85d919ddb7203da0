// What a compiled kernel file and the fake driver say to one another.
//
// A kernel file is a shared library with one exported `fake_cuda_module`; the driver fills in `runtime` before the
// first launch and writes the built-in indices before each thread runs. No system header may be included here: the
// same text goes in front of kernel sources that bring their own typedefs.
#pragma once

namespace fake_cuda {

constexpr unsigned ABI_VERSION = 2;
constexpr unsigned DYNAMIC_SHARED_BYTES = 227 * 1024 + 1024;

struct Index {
    unsigned x, y, z;
};

// What the lanes of a warp do together.
enum WarpKind {
    WARP_SYNC,
    WARP_SHUFFLE,
    WARP_SHUFFLE_UP,
    WARP_SHUFFLE_DOWN,
    WARP_SHUFFLE_XOR,
    WARP_BALLOT,
    WARP_MATCH_ANY,
    WARP_MATCH_ALL,
    WARP_ADD,
    WARP_MIN_SIGNED,
    WARP_MAX_SIGNED,
    WARP_MIN_UNSIGNED,
    WARP_MAX_UNSIGNED,
    WARP_AND,
    WARP_OR,
    WARP_XOR,
};

enum FailCode { FAIL_ASSERT = 710, FAIL_TRAP = 719 };

struct Runtime {
    // Returns how many threads of the block came with a true predicate; `*threads` is how many came at all.
    unsigned (*barrier)(int predicate, int line, unsigned* threads);
    // What a lane brings to a `WarpKind`. By value: six registers, where memory would be written and read at once.
    unsigned long long (*warp)(int kind, unsigned mask, unsigned long long value, int argument, int width, int line);
    unsigned (*active_mask)();
    void (*fail)(int code, const char* what, const char* file, int line);
};

struct Entry {
    const char* name;
    void (*call)(void** arguments);
    unsigned count;
    const unsigned* sizes;
    const unsigned* aligns;
    unsigned max_threads;
};

struct Module {
    unsigned abi;
    unsigned entry_count;
    const Entry* const* entries;
    const Runtime** runtime;
    Index* thread_index;
    Index* block_index;
    Index* block_size;
    Index* grid_size;
    unsigned char* dynamic_shared;
    unsigned dynamic_capacity;
};

}  // namespace fake_cuda
