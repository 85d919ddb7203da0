// Atomic functions and cached loads and stores. Part of the text in front of kernel sources (see simt.h).
//
// Real atomic instructions, as kernels of several streams may run at the same time on several host threads.
#pragma once

namespace fake_cuda {

// Applies `change` to `*address` as one step and returns what was there before.
template <class T, class B, class Change>
FAKE_CUDA_INLINE T update(T* address, Change change) {
    B* place = reinterpret_cast<B*>(address);
    B before = __atomic_load_n(place, __ATOMIC_RELAXED);
    for (;;) {
        const T old = bits<T>(before);
        const B after = bits<B>(static_cast<T>(change(old)));
        if (__atomic_compare_exchange_n(place, &before, after, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
            return old;
        }
    }
}

}  // namespace fake_cuda

#define FAKE_CUDA_ATOMIC(name, T, B, expression)                                                     \
    FAKE_CUDA_INLINE T name(T* address, T value) {                                                   \
        return fake_cuda::update<T, B>(address, [=](T old) -> T { (void)old; return expression; });  \
    }                                                                                                \
    FAKE_CUDA_INLINE T name##_block(T* address, T value) { return name(address, value); }            \
    FAKE_CUDA_INLINE T name##_system(T* address, T value) { return name(address, value); }

#define FAKE_CUDA_ATOMICS(T)                                                       \
    FAKE_CUDA_ATOMIC(atomicMin, T, T, (value < old ? value : old))                 \
    FAKE_CUDA_ATOMIC(atomicMax, T, T, (value > old ? value : old))                 \
    FAKE_CUDA_ATOMIC(atomicAnd, T, T, (old & value))                               \
    FAKE_CUDA_ATOMIC(atomicOr, T, T, (old | value))                                \
    FAKE_CUDA_ATOMIC(atomicXor, T, T, (old ^ value))                               \
    FAKE_CUDA_ATOMIC(atomicExch, T, T, value)                                      \
    FAKE_CUDA_INLINE T atomicCAS(T* address, T expected, T value) {                \
        __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
        return expected;                                                           \
    }

FAKE_CUDA_ATOMICS(int)
FAKE_CUDA_ATOMICS(unsigned)
FAKE_CUDA_ATOMICS(long long)
FAKE_CUDA_ATOMICS(unsigned long long)
FAKE_CUDA_ATOMIC(atomicAdd, int, unsigned,
                 static_cast<int>(static_cast<unsigned>(old) + static_cast<unsigned>(value)))
FAKE_CUDA_ATOMIC(atomicAdd, unsigned, unsigned, (old + value))
FAKE_CUDA_ATOMIC(atomicAdd, unsigned long long, unsigned long long, (old + value))
FAKE_CUDA_ATOMIC(atomicAdd, float, unsigned, (old + value))
FAKE_CUDA_ATOMIC(atomicAdd, double, unsigned long long, (old + value))
FAKE_CUDA_ATOMIC(atomicSub, int, unsigned,
                 static_cast<int>(static_cast<unsigned>(old) - static_cast<unsigned>(value)))
FAKE_CUDA_ATOMIC(atomicSub, unsigned, unsigned, (old - value))
FAKE_CUDA_ATOMIC(atomicInc, unsigned, unsigned, (old >= value ? 0 : old + 1))
FAKE_CUDA_ATOMIC(atomicDec, unsigned, unsigned, (old == 0 || old > value ? value : old - 1))
FAKE_CUDA_ATOMIC(atomicExch, float, unsigned, value)
#undef FAKE_CUDA_ATOMICS
#undef FAKE_CUDA_ATOMIC

FAKE_CUDA_INLINE unsigned short atomicCAS(unsigned short* address, unsigned short expected, unsigned short value) {
    __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
}

template <class T>
FAKE_CUDA_INLINE T __ldg(const T* address) { return *address; }
template <class T>
FAKE_CUDA_INLINE T __ldca(const T* address) { return *address; }
template <class T>
FAKE_CUDA_INLINE T __ldcg(const T* address) { return *address; }
template <class T>
FAKE_CUDA_INLINE T __ldcs(const T* address) { return *address; }
template <class T>
FAKE_CUDA_INLINE T __ldcv(const T* address) { return *static_cast<const volatile T*>(address); }
template <class T>
FAKE_CUDA_INLINE T __ldlu(const T* address) { return *address; }
template <class T>
FAKE_CUDA_INLINE void __stwb(T* address, T value) { *address = value; }
template <class T>
FAKE_CUDA_INLINE void __stcg(T* address, T value) { *address = value; }
template <class T>
FAKE_CUDA_INLINE void __stcs(T* address, T value) { *address = value; }
template <class T>
FAKE_CUDA_INLINE void __stwt(T* address, T value) { *address = value; }
