// The steps on each element of a product or a convolution, before it is written.
//
// STEPS is a list of STEP(NAME, AT): the name of a step of `fused_ops`, and the position of its
// first input among `EpilogueInputs`. Each step rounds to the element type, as the op of its name
// does.
#pragma once
#include "math.cuh"

inline constexpr int MAX_EPILOGUE_INPUTS = 32;

// The addresses of the steps' inputs, and their attributes.
struct EpilogueInputs {
    const void* at[MAX_EPILOGUE_INPUTS];
    f32 epsilon;
    f32 alpha;
};

static_assert(sizeof(EpilogueInputs) == 8 * MAX_EPILOGUE_INPUTS + 8, "the host's layout");

namespace step {

// The position of an element: its channel, and its number in the output.
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
    const W factor = scale / math::square_root(add(variance, (W)inputs.epsilon));
    return add(mul(sub(x, mean), factor), offset);
})

// NaN stays.
EPILOGUE_STEP(Relu, return x < (W)0 ? (W)0 : x;)
EPILOGUE_STEP(Relu6, return x < (W)0 ? (W)0 : x > (W)6 ? (W)6 : x;)
EPILOGUE_STEP(Elu, return x < (W)0 ? math::exponential_minus_1(x) : x;)
// Alpha is a number of the element type.
EPILOGUE_STEP(LeakyRelu, return x > (W)0 ? x : mul(x, rounded<X>((W)inputs.alpha));)
EPILOGUE_STEP(Tanh, return math::hyperbolic_tangent(x);)

EPILOGUE_STEP(Sigmoid, return math::logistic(x);)
EPILOGUE_STEP(GeluApproximate, {
    const W inner = (W)0.7978845608028654 * (x + (W)0.044715 * x * x * x);
    return (W)0.5 * x * ((W)1 + math::hyperbolic_tangent(inner));
})

EPILOGUE_STEP(GeluExact, return (W)0.5 * x * math::complementary_error_function(x * (W)-0.7071067811865476);)

// Gradients of activations from their outputs; 0 times an infinity is NaN.
EPILOGUE_STEP(ReluGrad, return mul(x, input<X>(inputs, at, place.element) > (W)0 ? (W)1 : (W)0);)

EPILOGUE_STEP(TanhGrad, {
    const W y = input<X>(inputs, at, place.element);
    return mul(x, sub((W)1, mul(y, y)));
})

EPILOGUE_STEP(SigmoidGrad, {
    const W y = input<X>(inputs, at, place.element);
    return mul(mul(y, sub((W)1, y)), x);
})

#undef EPILOGUE_STEP

}  // namespace step

// The element to write for the value of a product.
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
