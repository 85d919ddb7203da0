// Functions of two elements, each under the name of its op, in namespace op: `op::AddV2::of<X>(x, y)`.
//
// As in op_unary.cuh: X is the element type of both arguments; arguments and result have the type
// in which X computes (bool for comparisons), and the caller rounds the result.
//
// What X may be:
//   f16 bf16 f32 f64        RealDiv Atan2 Xdivy Xlogy Xlog1py MulNoNan DivNoNan; gradients: EluGrad SeluGrad
//                           LeakyReluGrad (parameter: alpha) SoftplusGrad SoftsignGrad SigmoidGrad TanhGrad SqrtGrad
//                           RsqrtGrad ReciprocalGrad InvGrad
//   floats, all integers    Add AddV2 Sub Mul BiasAdd SquaredDifference Maximum Minimum Less LessEqual Greater
//                           GreaterEqual ReluGrad Relu6Grad, Div FloorDiv FloorMod TruncateDiv TruncateMod Mod Pow
//   and boolean             Equal NotEqual
//   integers                BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift
//   boolean                 LogicalAnd LogicalOr
//   f32 f64                 NextAfter ApproximateEqual (parameter: tolerance)
//
// An integer divided by 0 gives 0, its remainder is 0, and an integer to a negative power is 0: a
// kernel cannot refuse values in the device's memory. TensorFlow's functors give the same results
// where they report the error (safe_div_or_mod_op and safe_scalar_binary_pow_op in
// core/kernels/cwise_ops.h); its GPU kernels do not check divisors, so that their results are
// arbitrary. The least integer divided by -1 gives itself.
#pragma once
#include "math.cuh"

// As in op_unary.cuh.
#define BINARY(NAME, ...) \
    struct NAME { \
        template <typename X> static DEVICE Compute<X> of(Compute<X> x, Compute<X> y, f32 parameter = 0.0f) { \
            typedef Compute<X> W; \
            (void)parameter; \
            return (W)(__VA_ARGS__); \
        } \
    };
#define BINARY_TEST(NAME, ...) \
    struct NAME { \
        template <typename X> static DEVICE bool of(Compute<X> x, Compute<X> y, f32 parameter = 0.0f) { \
            typedef Compute<X> W; \
            (void)parameter; \
            return __VA_ARGS__; \
        } \
    };

namespace op {

// x where the condition holds, else 0 times x: infinities and NaN give NaN, as in TensorFlow's
// product.
template <typename W> DEVICE W masked(W x, bool keep) { return mul(x, keep ? (W)1 : (W)0); }

// The value, or 0 where its factor is 0, whatever the value.
template <typename W> DEVICE W unless_zero(W factor, W value) { return factor == (W)0 ? (W)0 : value; }

template <typename W> DEVICE W quotient(W x, W y) {
    if constexpr (is_float<W>) return x / y;
    else if constexpr (is_signed<W>) return y == (W)0 ? (W)0 : y == (W)-1 ? sub((W)0, x) : (W)(x / y);
    else return y == (W)0 ? (W)0 : (W)(x / y);
}

// The remainder with the sign of x.
template <typename W> DEVICE W remainder(W x, W y) {
    if constexpr (is_float<W>) return math::remainder_of(x, y);
    else if constexpr (is_signed<W>) return y == (W)0 || y == (W)-1 ? (W)0 : (W)(x % y);
    else return y == (W)0 ? (W)0 : (W)(x % y);
}

// The remainder with the sign of y. NaN does not equal 0, and stays.
template <typename W> DEVICE W floor_remainder(W x, W y) {
    const W rest = remainder(x, y);
    return rest != (W)0 && (rest < (W)0) != (y < (W)0) ? add(rest, y) : rest;
}

// The quotient is rounded to X before it is rounded to a whole number.
template <typename X, typename W = Compute<X>> DEVICE W truncated_quotient(W x, W y) {
    if constexpr (is_float<W>) return math::truncated(rounded<X>(x / y));
    else return quotient(x, y);
}

template <typename X, typename W = Compute<X>> DEVICE W floor_quotient(W x, W y) {
    if constexpr (is_float<W>) return math::floor_of(rounded<X>(x / y));
    else {
        const W rest = remainder(x, y);
        return sub(quotient(x, y), (W)(rest != (W)0 && (rest < (W)0) != (y < (W)0) ? 1 : 0));
    }
}

// The power of integers, by squaring.
template <typename W> DEVICE W power(W x, W y) {
    if constexpr (is_float<W>) return math::power(x, y);
    else {
        W result = y < (W)0 ? (W)0 : (W)1;
#pragma unroll 1
        for (; y > (W)0; y = (W)(y >> 1), x = mul(x, x)) {
            if (y & (W)1) result = mul(result, x);
        }
        return result;
    }
}

// A shift distance, clamped to between 0 and the number of bits less one.
template <typename W> DEVICE u32 distance(W y) {
    constexpr u32 last = 8 * sizeof(W) - 1;
    if (y <= (W)0) return 0u;
    return y > (W)last ? last : (u32)y;
}

BINARY(AddV2, add(x, y))
typedef AddV2 Add;
typedef AddV2 BiasAdd;
BINARY(Sub, sub(x, y))
BINARY(Mul, mul(x, y))
BINARY(Div, quotient(x, y))
BINARY(RealDiv, x / y)
BINARY(FloorDiv, floor_quotient<X>(x, y))
BINARY(FloorMod, floor_remainder(x, y))
BINARY(TruncateDiv, truncated_quotient<X>(x, y))
BINARY(TruncateMod, remainder(x, y))
typedef TruncateMod Mod;
BINARY(Pow, power(x, y))
// NaN where either is.
BINARY(Maximum, y > x || is_nan(y) ? y : x)
BINARY(Minimum, y < x || is_nan(y) ? y : x)
BINARY(SquaredDifference, mul(sub(x, y), sub(x, y)))
BINARY(Atan2, math::angle(x, y))
BINARY(Xdivy, unless_zero(x, x / y))
BINARY(Xlogy, unless_zero(x, x * math::logarithm(y)))
BINARY(Xlog1py, unless_zero(x, x * math::logarithm_of_1_plus(y)))
BINARY(MulNoNan, unless_zero(y, x * y))
BINARY(DivNoNan, unless_zero(y, x / y))
BINARY(NextAfter, math::next_after(x, y))

BINARY_TEST(Less, x < y)
BINARY_TEST(LessEqual, x <= y)
BINARY_TEST(Greater, x > y)
BINARY_TEST(GreaterEqual, x >= y)
BINARY_TEST(Equal, x == y)
BINARY_TEST(NotEqual, x != y)
BINARY_TEST(ApproximateEqual, x - y < (W)parameter && x - y > -(W)parameter)
BINARY_TEST(LogicalAnd, (W)(x && y))
BINARY_TEST(LogicalOr, (W)(x || y))

BINARY(BitwiseAnd, x & y)
BINARY(BitwiseOr, x | y)
BINARY(BitwiseXor, x ^ y)
BINARY(LeftShift, (Bits<W>)x << distance(y))
BINARY(RightShift, x >> distance(y))

// Gradients from the gradient x of the output and the input y; for Elu and Selu y is their output.
BINARY(ReluGrad, masked(x, y > (W)0))
BINARY(Relu6Grad, masked(x, y > (W)0 && y < (W)6))
BINARY(LeakyReluGrad, y > (W)0 ? x : x * rounded<X>((W)parameter))
BINARY(EluGrad, y < (W)0 ? (y + (W)1) * x : x)
BINARY(SeluGrad, x * (y < (W)0 ? y + (W)1.7580993408473766 : (W)1.0507009873554805))
BINARY(SoftplusGrad, x / (math::exponential(-y) + (W)1))
BINARY(SoftsignGrad, x / (((W)1 + math::absolute(y)) * ((W)1 + math::absolute(y))))
// Gradients from the output x and its gradient y; they are 0 where y is 0, even for an infinite or
// NaN output.
BINARY(SigmoidGrad, x * ((W)1 - x) * y)
BINARY(TanhGrad, y * sub((W)1, mul(x, x)))
BINARY(SqrtGrad, unless_zero(y, (W)0.5 * y / x))
BINARY(RsqrtGrad, unless_zero(y, (W)-0.5 * (y * x) * (x * x)))
BINARY(ReciprocalGrad, unless_zero(y, -x * (x * y)))
typedef ReciprocalGrad InvGrad;

}  // namespace op
