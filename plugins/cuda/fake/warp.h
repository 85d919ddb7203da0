// What the lanes of a warp compute together.
#pragma once

#include <cstdint>
#include <string>

#include "simt_abi.h"
#include "types.h"

namespace fake {

// The lanes that live and those that wait in a warp operation, with what each called.
struct WarpState {
    unsigned live = 0;
    unsigned waiting = 0;
    bool backwards = false;
    fake_cuda::WarpCall calls[WARP] = {};
};

// Why the lanes in `needed` do not run the same operation; empty where they do.
std::string warp_disagreement(const WarpState& state, unsigned needed);

// What the operation gives to each lane in `needed`.
void warp_results(const WarpState& state, unsigned needed, uint64_t* results);

}  // namespace fake
