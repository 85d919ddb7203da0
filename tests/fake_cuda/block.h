// Running one launch: blocks one after the other, the threads of a block as fibers.
#pragma once

#include "state.h"

namespace fake {

struct Launch {
    std::shared_ptr<Module> module;
    const fake_cuda::Entry* entry = nullptr;
    fake_cuda::Index grid = {1, 1, 1};
    fake_cuda::Index block = {1, 1, 1};
    unsigned shared = 0;  // dynamic, in bytes
};

// Runs the kernel with these arguments; gives the error of the launch.
CUresult run_launch(const Launch& launch, void** arguments);

// What compiled kernels call.
const fake_cuda::Runtime& kernel_runtime();

}  // namespace fake
