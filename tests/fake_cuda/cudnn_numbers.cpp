// Numbers in tensors of the fake cuDNN.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cudnn.h"

namespace fake_cudnn {

namespace {

double half_value(unsigned bits) {
    const int exponent = bits >> 10 & 31;
    const double fraction = bits & 1023;
    const double magnitude = exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                             : exponent == 0 ? std::ldexp(fraction, -24)
                                             : std::ldexp(fraction + 1024, exponent - 25);
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// Rounds to so many bits of fraction, ties to even; `least` is the exponent of the least normal number.
double rounded(double x, int bits, int least) {
    if (x == 0 || !std::isfinite(x)) {
        return x;
    }
    int exponent;
    std::frexp(x, &exponent);
    const int unit = std::max(exponent - 1, least) - bits;
    return std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
}

unsigned half_bits(double x) {
    const unsigned sign = std::signbit(x) ? 0x8000 : 0;
    if (std::isnan(x)) {
        return 0x7fff;
    }
    const double y = std::fabs(rounded(x, 10, -14));
    if (y >= 65536) {
        return sign | 0x7c00;
    }
    if (y < std::ldexp(1, -14)) {
        return sign | static_cast<unsigned>(std::ldexp(y, 24));
    }
    int exponent;
    const double fraction = std::frexp(y, &exponent);
    return sign | (static_cast<unsigned>(exponent + 14) << 10) | static_cast<unsigned>(std::ldexp(fraction, 11) - 1024);
}

}  // namespace

double get(int type, const void* data, size_t at) {
    switch (type) {
        case CUDNN_DATA_FLOAT: return static_cast<const float*>(data)[at];
        case CUDNN_DATA_DOUBLE: return static_cast<const double*>(data)[at];
        case CUDNN_DATA_HALF: return half_value(static_cast<const unsigned short*>(data)[at]);
        default: {
            const unsigned bits = static_cast<unsigned>(static_cast<const unsigned short*>(data)[at]) << 16;
            float value;
            std::memcpy(&value, &bits, sizeof value);
            return value;
        }
    }
}

void set(int type, void* data, size_t at, double value) {
    switch (type) {
        case CUDNN_DATA_FLOAT: static_cast<float*>(data)[at] = static_cast<float>(value); break;
        case CUDNN_DATA_DOUBLE: static_cast<double*>(data)[at] = value; break;
        case CUDNN_DATA_HALF: static_cast<unsigned short*>(data)[at] = static_cast<unsigned short>(half_bits(value)); break;
        default: {
            const float narrow = static_cast<float>(rounded(value, 7, -126));
            unsigned bits;
            std::memcpy(&bits, &narrow, sizeof bits);
            static_cast<unsigned short*>(data)[at] = std::isnan(value) ? 0x7fff : static_cast<unsigned short>(bits >> 16);
        }
    }
}

}  // namespace fake_cudnn
