// Faults of kernels: a signal raised while a kernel runs ends the launch, not the process. A kernel that runs too long
// gets one, too.
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

// From here on, and until called with null, faults of this thread jump to the frame; after `seconds` of its processor
// time, if not 0, the signal TIMEOUT_SIGNAL does.
void set_fault_frame(FaultFrame* frame, unsigned seconds);
extern const int TIMEOUT_SIGNAL;

}  // namespace fake
