// What the lanes of a warp compute together.
#pragma once

#include <cstdint>
#include <string>

#include "simt_abi.h"
#include "types.h"

namespace fake {

// What a lane called.
struct WarpCall {
    int kind;
    unsigned mask;
    uint64_t value;
    int argument;
    int width;
    int line;
};

// The lanes that live and those that wait in a warp operation, with what each called and what it was given last.
struct WarpState {
    unsigned live = 0;
    unsigned waiting = 0;
    bool backwards = false;
    WarpCall calls[WARP] = {};
    uint64_t results[WARP] = {};
};

// Why the lanes in `needed` do not run the same operation; empty where they do.
std::string warp_disagreement(const WarpState& state, unsigned needed);

// Writes what the operation gives to each lane in `needed`.
void warp_results(WarpState& state, unsigned needed);

}  // namespace fake
