// What follows a product or a convolution, element by element, before it is written.
//
// STEPS is a list of STEP(NAME, AT): a step of `fused_ops` by its name, and the place of its first input among
// `EpilogueInputs`. Each step rounds to the element type, as the op of its name does.
#pragma once
#include "types.cuh"

inline constexpr int MAX_EPILOGUE_INPUTS = 32;

// Addresses of the steps' inputs, and their attributes.
struct EpilogueInputs {
    const void* at[MAX_EPILOGUE_INPUTS];
    f32 epsilon;
    f32 alpha;
};

static_assert(sizeof(EpilogueInputs) == 8 * MAX_EPILOGUE_INPUTS + 8, "the host's layout");

namespace step {

DEVICE f32 exponential(f32 x) { return expf(x); }
DEVICE f64 exponential(f64 x) { return exp(x); }
DEVICE f32 exponential_minus_1(f32 x) { return expm1f(x); }
DEVICE f64 exponential_minus_1(f64 x) { return expm1(x); }
DEVICE f32 hyperbolic_tangent(f32 x) { return tanhf(x); }
DEVICE f64 hyperbolic_tangent(f64 x) { return tanh(x); }
DEVICE f32 complementary_error_function(f32 x) { return erfcf(x); }
DEVICE f64 complementary_error_function(f64 x) { return erfc(x); }
DEVICE f32 square_root(f32 x) { return sqrtf(x); }
DEVICE f64 square_root(f64 x) { return sqrt(x); }

// Where an element stands: its channel, and its number in the output.
struct Place {
    i64 channel, element;
};

template <typename X> DEVICE Compute<X> input(const EpilogueInputs& inputs, int at, i64 element) {
    return widen(static_cast<const X*>(inputs.at[at])[element]);
}

#define EPILOGUE_STEP(NAME, ...) \
    template <typename X> \
    DEVICE Compute<X> NAME(Compute<X> x, const EpilogueInputs& inputs, int at, Place place) { \
        typedef Compute<X> W; \
        (void)inputs, (void)at, (void)place; \
        __VA_ARGS__ \
    }

EPILOGUE_STEP(BiasAdd, return add(x, input<X>(inputs, at, place.channel));)

EPILOGUE_STEP(Add, return add(x, input<X>(inputs, at, place.element));)

EPILOGUE_STEP(FusedBatchNorm, {
    const W scale = input<X>(inputs, at, place.channel), offset = input<X>(inputs, at + 1, place.channel);
    const W mean = input<X>(inputs, at + 2, place.channel), variance = input<X>(inputs, at + 3, place.channel);
    const W factor = scale / square_root(add(variance, (W)inputs.epsilon));
    return add(mul(sub(x, mean), factor), offset);
})

// NaN stays.
EPILOGUE_STEP(Relu, return x < (W)0 ? (W)0 : x;)
EPILOGUE_STEP(Relu6, return x < (W)0 ? (W)0 : x > (W)6 ? (W)6 : x;)
EPILOGUE_STEP(Elu, return x < (W)0 ? exponential_minus_1(x) : x;)
// Alpha is a number of the element type.
EPILOGUE_STEP(LeakyRelu, return x > (W)0 ? x : mul(x, rounded<X>((W)inputs.alpha));)
EPILOGUE_STEP(Tanh, return hyperbolic_tangent(x);)

// Of the two forms of 1 / (1 + e^-x), that of the exponential below 1.
EPILOGUE_STEP(Sigmoid, {
    const W e = exponential(x < (W)0 ? x : -x);
    return (x < (W)0 ? e : (W)1) / ((W)1 + e);
})

EPILOGUE_STEP(GeluApproximate, {
    const W inner = (W)0.7978845608028654 * (x + (W)0.044715 * x * x * x);
    return (W)0.5 * x * ((W)1 + hyperbolic_tangent(inner));
})

EPILOGUE_STEP(GeluExact, return (W)0.5 * x * complementary_error_function(x * (W)-0.7071067811865476);)

#undef EPILOGUE_STEP

}  // namespace step

// The element that is written for the value of a product.
template <typename X>
DEVICE X with_epilogue(Compute<X> value, const EpilogueInputs& inputs, i64 channel, i64 element) {
    Compute<X> y = rounded<X>(value);
    const step::Place place = {channel, element};
    (void)inputs, (void)place;
#ifdef STEPS
#define STEP(NAME, AT) y = rounded<X>(step::NAME<X>(y, inputs, AT, place));
    STEPS
#undef STEP
#endif
    return narrow<X>(y);
}
