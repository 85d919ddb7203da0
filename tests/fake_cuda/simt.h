// What stands in front of every kernel source: the CUDA C language on top of plain C++17.
//
// Everything that is not a name of CUDA lives in `fake_cuda` or begins with FAKE_CUDA, and no system header is
// included, so that a kernel's own typedefs are free. The qualifiers `__shared__`, `__device__`, `__global__`
// and `__launch_bounds__` are no macros here: the compiler front (nvrtc_source.cpp) looks for them in the preprocessed
// text first.
#pragma once

#define FAKE_CUDA_INLINE static inline __attribute__((always_inline, unused))

#define __host__
#define __constant__ __attribute__((visibility("default")))
#define __managed__ __attribute__((visibility("default")))
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __inline_hint__ inline
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __cudart_builtin__

typedef decltype(sizeof(0)) size_t;
typedef decltype(static_cast<char*>(nullptr) - static_cast<char*>(nullptr)) ptrdiff_t;
typedef long clock_t;

extern "C" int printf(const char*, ...);

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

namespace fake_cuda {

// The built-in variables. They are not const, and have external linkage, so that the compiler reads them anew after
// every call that may suspend the thread.
extern uint3 thread_index;
extern uint3 block_index;
extern uint3 block_size;
extern uint3 grid_size;
extern const Runtime* runtime;
extern unsigned char dynamic_shared[DYNAMIC_SHARED_BYTES];

template <class To, class From>
FAKE_CUDA_INLINE To bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "bits() needs two types of one size");
    To to;
    __builtin_memcpy(&to, &from, sizeof(to));
    return to;
}

FAKE_CUDA_INLINE unsigned long long warp(int kind, unsigned mask, unsigned long long value, int argument, int width,
                                         int line) {
    return runtime->warp(kind, mask, value, argument, width, line);
}

FAKE_CUDA_INLINE void check(bool good, const char* what, const char* file, int line) {
    if (__builtin_expect(!good, 0)) {
        runtime->fail(FAIL_ASSERT, what, file, line);
    }
}

template <class Function, Function function>
struct Wrapper;

template <class... Arguments, void (*function)(Arguments...)>
struct Wrapper<void (*)(Arguments...), function> {
    static constexpr unsigned count = sizeof...(Arguments);
    static constexpr unsigned sizes[] = {static_cast<unsigned>(sizeof(Arguments))..., 0};
    static constexpr unsigned aligns[] = {static_cast<unsigned>(alignof(Arguments))..., 0};
    static_assert((sizeof(Arguments) + ... + 0) <= 4096, "formal parameter space of a kernel exceeds 4096 bytes");

    template <unsigned... indices>
    struct List {};
    template <unsigned n, unsigned... indices>
    struct Count : Count<n - 1, n - 1, indices...> {};
    template <unsigned... indices>
    struct Count<0, indices...> {
        using type = List<indices...>;
    };

    template <unsigned... indices>
    FAKE_CUDA_INLINE void apply(void** arguments, List<indices...>) {
        (void)arguments;
        function(*static_cast<Arguments*>(arguments[indices])...);
    }
    static void call(void** arguments) { apply(arguments, typename Count<count>::type()); }
};

}  // namespace fake_cuda

#define threadIdx fake_cuda::thread_index
#define blockIdx fake_cuda::block_index
#define blockDim fake_cuda::block_size
#define gridDim fake_cuda::grid_size
static constexpr int warpSize = 32;

#define assert(condition) \
    fake_cuda::check(static_cast<bool>(condition), "assertion failed: " #condition, __FILE__, __LINE__)

[[noreturn]] FAKE_CUDA_INLINE void __trap(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    fake_cuda::runtime->fail(fake_cuda::FAIL_TRAP, "trap", file, line);
    __builtin_unreachable();
}
FAKE_CUDA_INLINE void __brkpt() {}
FAKE_CUDA_INLINE void __nanosleep(unsigned) {}
FAKE_CUDA_INLINE void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
FAKE_CUDA_INLINE void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
FAKE_CUDA_INLINE void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

FAKE_CUDA_INLINE void __syncthreads(int line = __builtin_LINE()) {
    unsigned threads;
    fake_cuda::runtime->barrier(0, line, &threads);
}
FAKE_CUDA_INLINE int __syncthreads_count(int predicate, int line = __builtin_LINE()) {
    unsigned threads;
    return static_cast<int>(fake_cuda::runtime->barrier(predicate, line, &threads));
}
FAKE_CUDA_INLINE int __syncthreads_and(int predicate, int line = __builtin_LINE()) {
    unsigned threads;
    const unsigned yes = fake_cuda::runtime->barrier(predicate, line, &threads);
    return yes == threads;
}
FAKE_CUDA_INLINE int __syncthreads_or(int predicate, int line = __builtin_LINE()) {
    unsigned threads;
    return fake_cuda::runtime->barrier(predicate, line, &threads) != 0;
}

FAKE_CUDA_INLINE void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) {
    fake_cuda::warp(fake_cuda::WARP_SYNC, mask, 0, 0, 32, line);
}
FAKE_CUDA_INLINE unsigned __activemask() { return fake_cuda::runtime->active_mask(); }
FAKE_CUDA_INLINE unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
    return static_cast<unsigned>(fake_cuda::warp(fake_cuda::WARP_BALLOT, mask, predicate != 0, 0, 32, line));
}
FAKE_CUDA_INLINE int __any_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
    return __ballot_sync(mask, predicate, line) != 0;
}
FAKE_CUDA_INLINE int __all_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
    return __ballot_sync(mask, predicate == 0, line) == 0;
}
FAKE_CUDA_INLINE int __uni_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
    const unsigned yes = __ballot_sync(mask, predicate, line);
    return predicate != 0 ? __ballot_sync(mask, predicate == 0, line) == 0 : (__ballot_sync(mask, 1, line), yes == 0);
}

#define FAKE_CUDA_SHUFFLE(T, B)                                                                                  \
    FAKE_CUDA_INLINE T __shfl_sync(unsigned mask, T value, int lane, int width = 32,                             \
                                   int line = __builtin_LINE()) {                                                \
        return fake_cuda::bits<T>(static_cast<B>(                                                                \
            fake_cuda::warp(fake_cuda::WARP_SHUFFLE, mask, fake_cuda::bits<B>(value), lane, width, line)));      \
    }                                                                                                            \
    FAKE_CUDA_INLINE T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,                    \
                                      int line = __builtin_LINE()) {                                             \
        return fake_cuda::bits<T>(static_cast<B>(fake_cuda::warp(                                                \
            fake_cuda::WARP_SHUFFLE_UP, mask, fake_cuda::bits<B>(value), static_cast<int>(delta), width, line))); \
    }                                                                                                            \
    FAKE_CUDA_INLINE T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,                  \
                                        int line = __builtin_LINE()) {                                           \
        return fake_cuda::bits<T>(static_cast<B>(fake_cuda::warp(                                                \
            fake_cuda::WARP_SHUFFLE_DOWN, mask, fake_cuda::bits<B>(value), static_cast<int>(delta), width, line))); \
    }                                                                                                            \
    FAKE_CUDA_INLINE T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32,                    \
                                       int line = __builtin_LINE()) {                                            \
        return fake_cuda::bits<T>(static_cast<B>(                                                                \
            fake_cuda::warp(fake_cuda::WARP_SHUFFLE_XOR, mask, fake_cuda::bits<B>(value), lane_mask, width, line))); \
    }                                                                                                            \
    FAKE_CUDA_INLINE unsigned __match_any_sync(unsigned mask, T value, int line = __builtin_LINE()) {            \
        return static_cast<unsigned>(                                                                            \
            fake_cuda::warp(fake_cuda::WARP_MATCH_ANY, mask, fake_cuda::bits<B>(value), 0, 32, line));           \
    }                                                                                                            \
    FAKE_CUDA_INLINE unsigned __match_all_sync(unsigned mask, T value, int* equal, int line = __builtin_LINE()) { \
        const unsigned all = static_cast<unsigned>(                                                              \
            fake_cuda::warp(fake_cuda::WARP_MATCH_ALL, mask, fake_cuda::bits<B>(value), 0, 32, line));           \
        *equal = all != 0;                                                                                       \
        return all;                                                                                              \
    }

FAKE_CUDA_SHUFFLE(int, unsigned)
FAKE_CUDA_SHUFFLE(unsigned, unsigned)
FAKE_CUDA_SHUFFLE(long, unsigned long)
FAKE_CUDA_SHUFFLE(unsigned long, unsigned long)
FAKE_CUDA_SHUFFLE(long long, unsigned long long)
FAKE_CUDA_SHUFFLE(unsigned long long, unsigned long long)
FAKE_CUDA_SHUFFLE(float, unsigned)
FAKE_CUDA_SHUFFLE(double, unsigned long long)
#undef FAKE_CUDA_SHUFFLE

#define FAKE_CUDA_REDUCE(name, T, kind)                                                                   \
    FAKE_CUDA_INLINE T name(unsigned mask, T value, int line = __builtin_LINE()) {                        \
        return static_cast<T>(                                                                            \
            fake_cuda::warp(fake_cuda::kind, mask, static_cast<unsigned>(value), 0, 32, line));           \
    }
FAKE_CUDA_REDUCE(__reduce_add_sync, unsigned, WARP_ADD)
FAKE_CUDA_REDUCE(__reduce_add_sync, int, WARP_ADD)
FAKE_CUDA_REDUCE(__reduce_min_sync, unsigned, WARP_MIN_UNSIGNED)
FAKE_CUDA_REDUCE(__reduce_min_sync, int, WARP_MIN_SIGNED)
FAKE_CUDA_REDUCE(__reduce_max_sync, unsigned, WARP_MAX_UNSIGNED)
FAKE_CUDA_REDUCE(__reduce_max_sync, int, WARP_MAX_SIGNED)
FAKE_CUDA_REDUCE(__reduce_and_sync, unsigned, WARP_AND)
FAKE_CUDA_REDUCE(__reduce_or_sync, unsigned, WARP_OR)
FAKE_CUDA_REDUCE(__reduce_xor_sync, unsigned, WARP_XOR)
#undef FAKE_CUDA_REDUCE

FAKE_CUDA_INLINE unsigned long long fake_cuda_ticks() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    unsigned long long ticks;
    asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
}
FAKE_CUDA_INLINE long long clock64() { return static_cast<long long>(fake_cuda_ticks()); }
FAKE_CUDA_INLINE clock_t clock() { return static_cast<clock_t>(fake_cuda_ticks()); }
