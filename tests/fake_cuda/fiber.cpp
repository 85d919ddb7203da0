// See fiber.h.

#include "fiber.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace fake {

namespace {

constexpr size_t STACK = 256 * 1024;
constexpr size_t PAGE = 64 * 1024;  // the largest page size in use
// Stacks begin at different offsets in their pages, or all would meet in the same few lines of the cache.
constexpr size_t STAGGER = 64 * 7;
constexpr size_t STAGGER_RANGE = 8 * 4096;

struct FiberPool {
    std::mutex mutex;
    std::vector<Fiber*> free;
};

FiberPool& pool() {
    static FiberPool& pool = *new FiberPool;
    return pool;
}

Fiber* make_fiber() {
    void* memory = mmap(nullptr, STACK + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return nullptr;
    }
    mprotect(memory, PAGE, PROT_NONE);
    static std::atomic<size_t> made{0};
    Fiber* fiber = new Fiber;
    fiber->stack = static_cast<unsigned char*>(memory) + PAGE;
    fiber->size = STACK - made++ * STAGGER % STAGGER_RANGE;
    return fiber;
}

}  // namespace

Fiber* take_fiber() {
    {
        const std::lock_guard<std::mutex> guard(pool().mutex);
        if (!pool().free.empty()) {
            Fiber* fiber = pool().free.back();
            pool().free.pop_back();
            return fiber;
        }
    }
    return make_fiber();
}

void give_fiber(Fiber* fiber) {
    const std::lock_guard<std::mutex> guard(pool().mutex);
    pool().free.push_back(fiber);
}

namespace {

// A launch that fails leaves its fibers in the middle of functions, whose stacks the address sanitizer still guards.
void forget_stack(Fiber& fiber) {
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(fiber.stack, fiber.size);
#else
    (void)fiber;
#endif
}

}  // namespace

#if defined(__x86_64__)

void start(Fiber& fiber, void (*function)()) {
    forget_stack(fiber);
    // From the top: a zero return address for the function, and the function, to which the first switch jumps.
    auto* top = reinterpret_cast<uint64_t*>(fiber.stack + fiber.size);
    top[-1] = 0;
    top[-2] = reinterpret_cast<uint64_t>(function);
    fiber.context = top - 2;
}

#else

void start(Fiber& fiber, void (*function)()) {
    forget_stack(fiber);
    if (fiber.context == nullptr) {
        fiber.context = new ucontext_t;
    }
    auto* context = static_cast<ucontext_t*>(fiber.context);
    getcontext(context);
    context->uc_stack.ss_sp = fiber.stack;
    context->uc_stack.ss_size = fiber.size;
    context->uc_link = nullptr;
    makecontext(context, function, 0);
}

void switch_fiber(Fiber& from, Fiber& to) {
    if (from.context == nullptr) {
        from.context = new ucontext_t;
    }
    swapcontext(static_cast<ucontext_t*>(from.context), static_cast<ucontext_t*>(to.context));
}

#endif

}  // namespace fake
