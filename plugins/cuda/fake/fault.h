// Faults of kernels: a signal raised while a kernel runs ends the launch, not the process.
#pragma once

#include <csetjmp>
#include <cstdint>

namespace fake {

// Where a launch goes on after a fault, and what happened. `number` is the signal.
struct FaultFrame {
    sigjmp_buf env;
    volatile int number = 0;
    volatile uint64_t address = 0;
};

// A thread that runs kernels needs a stack of its own for signals.
void prepare_kernel_thread();
void release_kernel_thread();

// From here on, and until called with null, faults of this thread jump to the frame.
void set_fault_frame(FaultFrame* frame);

}  // namespace fake
