// Functions of one element, each under the name of its op, in namespace op: `op::Sqrt::of<X>(x)`.
//
// X is the element type, the argument and the result are of the type in which X computes (of the tests, bool); who
// calls rounds the result. `parameter` is the attribute of the ops that have one. Only the function that is named is
// instantiated.
//
// What X may be:
//   f16 bf16 f32 f64                Sqrt Rsqrt Reciprocal Inv Exp Expm1 Log Log1p Sin Cos Tan Asin Acos Atan Sinh Cosh
//                                   Tanh Asinh Acosh Atanh Sigmoid Erf Erfc Lgamma Digamma Floor Ceil Rint IsNan IsInf
//                                   IsFinite Elu Selu LeakyRelu (parameter: alpha) Softplus Softsign GeluExact
//                                   GeluApproximate
//   floats and signed integers      Abs Neg Sign
//   floats and i32 i64              Round
//   floats and all integers         Square Relu Relu6
//   integers                        Invert PopulationCount (result: u8)
//   boolean                         LogicalNot
//   any, to any Y                   Cast, CastTruncate: `to<X, Y>(x)`, see op_cast.cuh
#pragma once
#include "math.cuh"
#include "op_cast.cuh"

// A function whose result has the type of its argument, W; and one whose result is a truth value.
#define UNARY(NAME, ...) \
    struct NAME { \
        template <typename X> static DEVICE Compute<X> of(Compute<X> x, f32 parameter = 0.0f) { \
            typedef Compute<X> W; \
            (void)parameter; \
            return (W)(__VA_ARGS__); \
        } \
    };
#define UNARY_TEST(NAME, ...) \
    struct NAME { \
        template <typename X> static DEVICE bool of(Compute<X> x, f32 = 0.0f) { \
            typedef Compute<X> W; \
            return __VA_ARGS__; \
        } \
    };

namespace op {

template <typename W> DEVICE W magnitude(W x) {
    if constexpr (is_float<W>) return math::absolute(x);
    else return x < (W)0 ? sub((W)0, x) : x;
}

template <typename W> DEVICE W negative(W x) {
    if constexpr (is_float<W>) return -x;
    else return sub((W)0, x);
}

template <typename W> DEVICE W nearest(W x) {
    if constexpr (is_float<W>) return math::nearest_even(x);
    else return x;
}

// Bits that are set, of an integer no wider than 32 bits without what its sign fills.
template <typename W> DEVICE u8 bits_set(W x) {
    const u64 bits = (u64)x & (~(u64)0 >> (64 - 8 * sizeof(W)));
#ifdef TENON_EMULATED
    return (u8)__builtin_popcountll(bits);
#else
    return (u8)__popcll(bits);
#endif
}

UNARY(Abs, magnitude(x))
UNARY(Neg, negative(x))
UNARY(Sign, is_nan(x) ? x : (W)((i32)(x > (W)0) - (i32)(x < (W)0)))
UNARY(Square, mul(x, x))
UNARY(Sqrt, math::square_root(x))
UNARY(Rsqrt, math::reciprocal_root(x))
UNARY(Reciprocal, (W)1 / x)
typedef Reciprocal Inv;
UNARY(Exp, math::exponential(x))
UNARY(Expm1, math::exponential_minus_1(x))
UNARY(Log, math::logarithm(x))
UNARY(Log1p, math::logarithm_of_1_plus(x))
UNARY(Sin, math::sine(x))
UNARY(Cos, math::cosine(x))
UNARY(Tan, math::tangent(x))
UNARY(Asin, math::arc_sine(x))
UNARY(Acos, math::arc_cosine(x))
UNARY(Atan, math::arc_tangent(x))
UNARY(Sinh, math::hyperbolic_sine(x))
UNARY(Cosh, math::hyperbolic_cosine(x))
UNARY(Tanh, math::hyperbolic_tangent(x))
UNARY(Asinh, math::inverse_hyperbolic_sine(x))
UNARY(Acosh, math::inverse_hyperbolic_cosine(x))
UNARY(Atanh, math::inverse_hyperbolic_tangent(x))
UNARY(Sigmoid, math::logistic(x))
UNARY(Erf, math::error_function(x))
UNARY(Erfc, math::complementary_error_function(x))
UNARY(Lgamma, math::log_gamma(x))
UNARY(Digamma, math::digamma((f64)x))
UNARY(Floor, math::floor_of(x))
UNARY(Ceil, math::ceil_of(x))
UNARY(Round, nearest(x))
UNARY(Rint, nearest(x))
UNARY_TEST(IsNan, x != x)
UNARY_TEST(IsInf, math::absolute(x) == Limits<W>::infinity())
UNARY_TEST(IsFinite, math::absolute(x) < Limits<W>::infinity())
UNARY_TEST(LogicalNot, (W)!x)
UNARY(Invert, ~x)

struct PopulationCount {
    template <typename X> static DEVICE u8 of(X x, f32 = 0.0f) { return bits_set(x); }
};

// NaN stays. The constants of Selu are those of G. Klambauer et al., "Self-Normalizing Neural Networks" (2017), and
// the product of both.
UNARY(Relu, x < (W)0 ? (W)0 : x)
UNARY(Relu6, x < (W)0 ? (W)0 : x > (W)6 ? (W)6 : x)
UNARY(Elu, x < (W)0 ? math::exponential_minus_1(x) : x)
UNARY(Selu, x < (W)0 ? (W)1.7580993408473766 * math::exponential_minus_1(x) : (W)1.0507009873554805 * x)
UNARY(Softplus, math::soft_plus(x))
UNARY(Softsign, x / ((W)1 + math::absolute(x)))
// `_FusedGelu`. erfc would keep the digits of a result near 0, but takes twice the instructions:
// more than a multiprocessor can issue while memory delivers the numbers.
UNARY(GeluExact, (W)0.5 * x * ((W)1 + math::error_function(x * (W)0.7071067811865476)))
UNARY(GeluApproximate,
    (W)0.5 * x * ((W)1 + math::hyperbolic_tangent((W)0.7978845608028654 * (x + (W)0.044715 * x * x * x))))
// `Cast`, also with its attribute Truncate.
struct Cast {
    template <typename X, typename Y> static DEVICE Compute<Y> to(Compute<X> x) { return convert<X, Y>(x); }
};

struct CastTruncate {
    template <typename X, typename Y> static DEVICE Compute<Y> to(Compute<X> x) {
        return convert<X, Y>(without_low_bits<X, Y>(x));
    }
};

// Alpha is a number of the element type.
UNARY(LeakyRelu, x > (W)0 ? x : x * rounded<X>((W)parameter))

}  // namespace op
