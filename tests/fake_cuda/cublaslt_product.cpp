// The arithmetic of the fake cuBLASLt: one product, element by element, as the library's documentation defines it.

#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "cublaslt_types.h"

namespace fake_cublaslt {

namespace {

float from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

uint32_t to_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

float half_value(uint16_t bits) {
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const float sign = bits & 0x8000 ? -1.0f : 1.0f;
    if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
    return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

// Rounds to nearest, ties to even.
uint16_t half_bits(float x) {
    const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
    const double magnitude = std::fabs(static_cast<double>(x));
    if (std::isnan(x)) return 0x7fff;
    if (magnitude >= 65520.0) return sign | 0x7c00;
    int exponent;
    std::frexp(magnitude, &exponent);
    // The unit of the last place: 11 bits, and not below 2^-24.
    const int unit = exponent - 11 < -24 ? -24 : exponent - 11;
    const double rounded = std::ldexp(std::nearbyint(std::ldexp(magnitude, -unit)), unit);
    if (rounded < std::ldexp(1.0, -14)) return sign | static_cast<uint16_t>(std::ldexp(rounded, 24));
    const double fraction = std::frexp(rounded, &exponent);
    const auto mantissa = static_cast<uint16_t>(std::ldexp(fraction, 11)) & 1023;
    return static_cast<uint16_t>(sign | (exponent + 14) << 10 | mantissa);
}

uint16_t bfloat16_bits(float x) {
    const uint32_t bits = to_bits(x);
    if (std::isnan(x)) return 0x7fff;
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// The factor that TF32 multiplies: 10 bits behind the point, to nearest, ties away from zero.
float tf32_value(float x) {
    return std::isfinite(x) ? from_bits((to_bits(x) + 0x1000) & 0xffffe000u) : x;
}

double read(const void* data, int type, uint64_t at) {
    switch (type) {
        case R_64F: return static_cast<const double*>(data)[at];
        case R_16F: return half_value(static_cast<const uint16_t*>(data)[at]);
        case R_16BF: return from_bits(static_cast<uint32_t>(static_cast<const uint16_t*>(data)[at]) << 16);
        default: return static_cast<const float*>(data)[at];
    }
}

void write(void* data, int type, uint64_t at, double x) {
    switch (type) {
        case R_64F: static_cast<double*>(data)[at] = x; break;
        case R_16F: static_cast<uint16_t*>(data)[at] = half_bits(static_cast<float>(x)); break;
        case R_16BF: static_cast<uint16_t*>(data)[at] = bfloat16_bits(static_cast<float>(x)); break;
        default: static_cast<float*>(data)[at] = static_cast<float>(x);
    }
}

uint64_t place(const Layout& layout, int operation, uint64_t row, uint64_t column) {
    if (operation == OP_T) return row * static_cast<uint64_t>(layout.ld) + column;
    return column * static_cast<uint64_t>(layout.ld) + row;
}

double followed(const Desc& desc, double x, double bias) {
    if (desc.epilogue & EPILOGUE_BIAS) x += bias;
    // As a maximum of hardware does it: of NaN and 0 that is 0.
    if (desc.epilogue & EPILOGUE_RELU) x = x > 0.0 ? x : 0.0;
    if (desc.epilogue & EPILOGUE_GELU) {
        x = 0.5 * x * (1.0 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    }
    return x;
}

}  // namespace

void multiply(const Product& p) {
    std::this_thread::sleep_for(std::chrono::milliseconds(p.milliseconds));
    // What is lent to work in may be written all over.
    if (p.workspace_bytes > 0) memset(p.workspace, 0xa5, p.workspace_bytes);
    const uint64_t terms = p.desc.transa == OP_T ? p.a.rows : p.a.columns;
    const bool rounds = p.desc.compute == COMPUTE_32F_FAST_TF32;
    const auto factor = [rounds](double x) { return rounds ? tf32_value(static_cast<float>(x)) : x; };
    for (int batch = 0; batch < p.d.batch_count; ++batch) {
        const auto first = [batch](const Layout& layout) {
            return static_cast<uint64_t>(batch * layout.batch_stride);
        };
        for (uint64_t column = 0; column < p.d.columns; ++column) {
            for (uint64_t row = 0; row < p.d.rows; ++row) {
                double sum = 0.0;
                for (uint64_t k = 0; k < terms; ++k) {
                    const double x = read(p.a_data, p.a.type, first(p.a) + place(p.a, p.desc.transa, row, k));
                    const double y = read(p.b_data, p.b.type, first(p.b) + place(p.b, p.desc.transb, k, column));
                    sum += factor(x) * factor(y);
                }
                const bool has_bias = p.desc.epilogue & EPILOGUE_BIAS;
                const auto* bias_data = reinterpret_cast<const void*>(p.desc.bias);
                const double bias = has_bias ? read(bias_data, p.d.type, row) : 0.0;
                const uint64_t at = first(p.d) + place(p.d, OP_N, row, column);
                const double added = p.beta == 0.0 ? 0.0 : p.beta * read(p.c_data, p.d.type, at);
                const double value = followed(p.desc, p.alpha * sum + added, bias);
                write(p.d_data, p.d.type, at, value);
            }
        }
    }
}

}  // namespace fake_cublaslt
