// Every element type, and arithmetic on those that have it.
#include "zoo.hpp"

// Whatever it is.
template <class T> struct Copy {
    void compute(tenon::Call &call) const
    {
        const auto x = call.input<T>(0);
        std::copy(x.begin(), x.end(), call.output_like<T>(0, x).begin());
    }
};

// x * x + 1, rounded once for the floats of 16 bits.
template <class T> struct Square {
    void compute(tenon::Call &call) const
    {
        const auto both = call.in_place<T>(0, 0);
        for (uint64_t at = 0; at < both.size; at++) {
            both.y[at] = static_cast<T>(both.x[at] * both.x[at] + T(1));
        }
    }
};

// The quantised bytes are read as their integers.
static void negate_bytes(tenon::Call &call)
{
    const auto x = call.input<int8_t>(0);
    const auto y = call.output_like<int8_t>(0, x);
    std::transform(x.begin(), x.end(), y.begin(), [](int8_t value) { return static_cast<int8_t>(-value); });
}

// Doubles to the floats of 16 bits: one rounding.
template <class T> struct Narrow {
    void compute(tenon::Call &call) const
    {
        const auto x = call.input<double>(0);
        const auto y = call.output_like<T>(0, x);
        for (uint64_t at = 0; at < x.size(); at++) {
            y[at] = x[at];
        }
    }
};

// Several registrations on one line, as a macro of an author's makes them.
#define COPIES(...) TENON_REGISTER(tenon::kernels<Copy, __VA_ARGS__>("ZooCppCopy", "T").numerics(tenon::exact))
TENON_REGISTER(tenon::op("ZooCppCopy").inputs("x: T").outputs("y: T").attrs("T: type").shape<tenon::same_shape>());
COPIES(float, double, tenon::half, tenon::bfloat16, bool); COPIES(int8_t, int16_t, int32_t, int64_t);
COPIES(uint8_t, uint16_t, uint32_t, uint64_t); COPIES(std::complex<float>, std::complex<double>);
COPIES(tenon::qint8, tenon::quint8, tenon::qint16, tenon::quint16, tenon::qint32);

TENON_REGISTER(
    tenon::op("ZooCppSquare").inputs("x: T").outputs("y: T").shape<tenon::same_shape>()
        .attrs("T: {float, double, half, bfloat16, int32, int64, uint8, complex64}"),
    tenon::kernels<Square, float, double, tenon::half, tenon::bfloat16, int32_t, int64_t, uint8_t, std::complex<float>>(
        "ZooCppSquare", "T").in_place(0, 0).numerics(tenon::ulps(1)).cost(50, 0.5),
    tenon::op("ZooCppNegateBytes").inputs("x: T").outputs("y: T").attrs("T: {int8, qint8}").shape<tenon::same_shape>(),
    tenon::kernel<negate_bytes>("ZooCppNegateBytes").types<int8_t, tenon::qint8>("T"),
    tenon::op("ZooCppNarrow").inputs("x: double").outputs("y: T").attrs("T: {half, bfloat16}")
        .shape<tenon::same_shape>(),
    tenon::kernels<Narrow, tenon::half, tenon::bfloat16>("ZooCppNarrow", "T"));
