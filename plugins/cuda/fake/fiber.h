// Fibers: stacks of their own between which a thread of the host switches in a few instructions.
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
// Goes on in `to`, and comes back when something switches to `from`.
void switch_fiber(Fiber& from, Fiber& to);

}  // namespace fake
