// Words that the host has, as a parameter of the launch: nothing has to stay until it is done, and a recording keeps
// them.
#include "vector.cuh"

struct Given {
    u32 words[960];
};

extern "C" __global__ void __launch_bounds__(256)
    upload(u32* __restrict__ to, u32 count, const __grid_constant__ Given given) {
    for (u32 i = thread_of_grid<u32>(); i < count; i += threads_of_grid<u32>()) to[i] = given.words[i];
}
