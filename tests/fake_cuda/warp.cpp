// See warp.h. The choice of a shuffle's source lane follows the description of shfl.sync in the PTX ISA.

#include "warp.h"

namespace fake {

namespace {

// What a lane gets from one that takes no part: NaN as a float or a double.
constexpr uint64_t UNDEFINED = 0xfff7dead7ff7deadull;

unsigned source_lane(const WarpCall& call, unsigned lane) {
    const unsigned width = static_cast<unsigned>(call.width);
    const unsigned first = lane & ~(width - 1);
    const unsigned last = first + width - 1;
    const unsigned by = static_cast<unsigned>(call.argument) & 31;
    unsigned source = lane;
    switch (call.kind) {
        case fake_cuda::WARP_SHUFFLE:
            source = first | (by & (width - 1));
            break;
        case fake_cuda::WARP_SHUFFLE_UP:
            source = lane >= first + by ? lane - by : lane;
            break;
        case fake_cuda::WARP_SHUFFLE_DOWN:
            source = lane + by;
            break;
        default:
            source = lane ^ by;
            break;
    }
    return source <= last ? source : lane;
}

uint64_t combine(int kind, uint64_t a, uint64_t b) {
    const auto x = static_cast<uint32_t>(a);
    const auto y = static_cast<uint32_t>(b);
    const bool less = static_cast<int32_t>(x) < static_cast<int32_t>(y);
    switch (kind) {
        case fake_cuda::WARP_ADD:
            return x + y;
        case fake_cuda::WARP_MIN_SIGNED:
            return less ? x : y;
        case fake_cuda::WARP_MAX_SIGNED:
            return less ? y : x;
        case fake_cuda::WARP_MIN_UNSIGNED:
            return x < y ? x : y;
        case fake_cuda::WARP_MAX_UNSIGNED:
            return x < y ? y : x;
        case fake_cuda::WARP_AND:
            return x & y;
        case fake_cuda::WARP_OR:
            return x | y;
        default:
            return x ^ y;
    }
}

// The lanes of `needed` whose value is `value`.
unsigned equal_lanes(const WarpState& state, unsigned needed, uint64_t value) {
    unsigned mask = 0;
    for (unsigned open = needed; open != 0; open &= open - 1) {
        const unsigned lane = static_cast<unsigned>(__builtin_ctz(open));
        mask |= state.calls[lane].value == value ? 1u << lane : 0;
    }
    return mask;
}

uint64_t reduce(const WarpState& state, unsigned needed) {
    unsigned open = needed;
    uint64_t all = state.calls[__builtin_ctz(open)].value;
    for (open &= open - 1; open != 0; open &= open - 1) {
        const WarpCall& call = state.calls[__builtin_ctz(open)];
        all = combine(call.kind, all, call.value);
    }
    return all;
}

uint64_t shuffled(const WarpState& state, unsigned needed, unsigned lane) {
    const unsigned source = source_lane(state.calls[lane], lane);
    return (needed >> source & 1) != 0 ? state.calls[source].value : UNDEFINED;
}

}  // namespace

std::string warp_disagreement(const WarpState& state, unsigned needed) {
    const WarpCall& first = state.calls[__builtin_ctz(needed)];
    const auto width = static_cast<unsigned>(first.width);
    if (width == 0 || width > WARP || (width & (width - 1)) != 0) {
        return "a shuffle in line " + std::to_string(first.line) + " has a width that is not a power of two up to 32";
    }
    for (unsigned open = needed; open != 0; open &= open - 1) {
        const WarpCall& call = state.calls[__builtin_ctz(open)];
        if (call.mask != first.mask || call.kind != first.kind || call.line != first.line) {
            return "lanes of one warp meet in different warp operations, in line " + std::to_string(first.line) +
                   " and line " + std::to_string(call.line);
        }
    }
    return std::string();
}

void warp_results(WarpState& state, unsigned needed) {
    const WarpCall& first = state.calls[__builtin_ctz(needed)];
    uint64_t common = 0;
    if (first.kind == fake_cuda::WARP_BALLOT) {
        common = equal_lanes(state, needed, 1);
    } else if (first.kind == fake_cuda::WARP_MATCH_ALL) {
        common = equal_lanes(state, needed, first.value) == needed ? needed : 0;
    } else if (first.kind >= fake_cuda::WARP_ADD) {
        common = reduce(state, needed);
    }
    for (unsigned open = needed; open != 0; open &= open - 1) {
        const unsigned lane = static_cast<unsigned>(__builtin_ctz(open));
        switch (first.kind) {
            case fake_cuda::WARP_SHUFFLE:
            case fake_cuda::WARP_SHUFFLE_UP:
            case fake_cuda::WARP_SHUFFLE_DOWN:
            case fake_cuda::WARP_SHUFFLE_XOR:
                state.results[lane] = shuffled(state, needed, lane);
                break;
            case fake_cuda::WARP_MATCH_ANY:
                state.results[lane] = equal_lanes(state, needed, state.calls[lane].value);
                break;
            default:
                state.results[lane] = common;
                break;
        }
    }
}

}  // namespace fake
