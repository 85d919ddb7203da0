// Fibers: stacks of their own between which a thread of the host switches in a few instructions. On x86-64 a switch
// changes the stack and jumps; elsewhere it is swapcontext.
#pragma once

#include <cstddef>

namespace fake {

// A fiber runs the function given to `start`, which must never return. It belongs to one host thread at a time.
struct Fiber {
    void* context = nullptr;  // where it goes on: a stack pointer, or a ucontext_t
    unsigned char* stack = nullptr;
    size_t size = 0;
};

// A fiber from the pool that all host threads share; null where the system has no memory for a stack.
Fiber* take_fiber();
void give_fiber(Fiber* fiber);

// Lets `fiber` begin with `function` at the next switch to it, whatever it did before.
void start(Fiber& fiber, void (*function)());

#if defined(__x86_64__)

// Goes on in `to`, and comes back when something switches to `from`. The stack of a fiber that waits begins with the
// address at which it goes on. This is not a function, and it jumps instead of returning: the processor foretells
// returns from the calls that it has seen, and those of the fibers that a warp's lanes run on are alike. The 128 bytes
// below the stack's end may be in use (System V ABI). Registers that the compiler uses it saves itself.
inline __attribute__((always_inline)) void switch_fiber(Fiber& from, Fiber& to) {
    void** save = &from.context;
    void* load = to.context;
    asm volatile(
        "leaq -128(%%rsp), %%rsp\n"
        "pushq %%rbp\n"
        "leaq 1f(%%rip), %%rax\n"
        "pushq %%rax\n"
        "movq %%rsp, (%0)\n"
        "movq %1, %%rsp\n"
        "popq %%rax\n"
        "jmpq *%%rax\n"
        "1:\n"
        "popq %%rbp\n"
        "leaq 128(%%rsp), %%rsp\n"
        : "+D"(save), "+S"(load)
        :
        : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2",
          "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
          "memory", "cc");
}

#else

void switch_fiber(Fiber& from, Fiber& to);

#endif

}  // namespace fake
