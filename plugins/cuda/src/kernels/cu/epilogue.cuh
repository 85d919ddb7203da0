// The steps that follow a product before it is written. Each step rounds to T, as the op of its
// name does.
//
// EPILOGUE is a list of steps without separators, each with the number of its first further input:
// `STEP_BiasAdd(0) STEP_Add(1) STEP_Relu(2)`. T is the element type.
#pragma once
#include "types.cuh"

inline constexpr int MAX_ARGUMENTS = 12;

// Further inputs of the steps, and attributes, in the host's layout.
template <typename X> struct Arguments {
    const X* inputs[MAX_ARGUMENTS];
    f32 epsilon;
    f32 alpha;
};

#ifndef EPILOGUE
#define EPILOGUE
#endif

// Functions of f32 and f64 under one name, from the math library without its fast variants.
#define EPILOGUE_FUNCTION(NAME, FUNCTION)       \
    DEVICE f32 NAME(f32 x) { return FUNCTION##f(x); } \
    DEVICE f64 NAME(f64 x) { return FUNCTION(x); }

namespace epilogue {

EPILOGUE_FUNCTION(exponential, exp)
EPILOGUE_FUNCTION(exponential_minus_1, expm1)
EPILOGUE_FUNCTION(hyperbolic_tangent, tanh)
EPILOGUE_FUNCTION(complementary_error_function, erfc)
EPILOGUE_FUNCTION(square_root, sqrt)

#undef EPILOGUE_FUNCTION

template <typename X> DEVICE X relu(X x) { return x < (X)0 ? (X)0 : x; }
template <typename X> DEVICE X relu6(X x) { return x > (X)6 ? (X)6 : relu(x); }
template <typename X> DEVICE X elu(X x) { return x < (X)0 ? exponential_minus_1(x) : x; }
template <typename X> DEVICE X sigmoid(X x) { return (X)1 / ((X)1 + exponential(-x)); }

// 0.5 x (1 + erf(x / sqrt(2))), by erfc: for a large negative x, 1 + erf would cancel.
template <typename X> DEVICE X gelu(X x) {
    return (X)0.5 * x * complementary_error_function(-x * (X)0.70710678118654752);
}

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
template <typename X> DEVICE X gelu_by_tanh(X x) {
    const X inner = (X)0.79788456080286536 * (x + (X)0.044715 * x * x * x);
    return (X)0.5 * x * ((X)1 + hyperbolic_tangent(inner));
}

template <typename X> DEVICE X tanh_grad(X x, X y) { return mul(x, sub((X)1, mul(y, y))); }
template <typename X> DEVICE X sigmoid_grad(X x, X y) { return mul(mul(y, sub((X)1, y)), x); }

// (x - mean) * (scale / sqrt(variance + epsilon)) + offset.
template <typename X> DEVICE X batch_norm(X x, X scale, X offset, X mean, X variance, X epsilon) {
    const X factor = scale / square_root(add(variance, epsilon));
    return add(mul(sub(x, mean), factor), offset);
}

}  // namespace epilogue

#define STEP_INPUT(at, index) widen(arguments.inputs[at][index])
#define STEP_BiasAdd(at) x = rounded<T>(add(x, STEP_INPUT(at, column)));
#define STEP_Add(at) x = rounded<T>(add(x, STEP_INPUT(at, element)));
#define STEP_FusedBatchNorm(at)                                                                                    \
    x = rounded<T>(epilogue::batch_norm(x, STEP_INPUT(at, column), STEP_INPUT(at + 1, column),                     \
                                        STEP_INPUT(at + 2, column), STEP_INPUT(at + 3, column),                    \
                                        (Compute<T>)arguments.epsilon));
#define STEP_Relu(at) x = epilogue::relu(x);
#define STEP_Relu6(at) x = epilogue::relu6(x);
#define STEP_Elu(at) x = rounded<T>(epilogue::elu(x));
#define STEP_LeakyRelu(at) x = x > (Compute<T>)0 ? x : rounded<T>(mul(x, rounded<T>((Compute<T>)arguments.alpha)));
#define STEP_Tanh(at) x = rounded<T>(epilogue::hyperbolic_tangent(x));
#define STEP_Sigmoid(at) x = rounded<T>(epilogue::sigmoid(x));
#define STEP_GeluApproximate(at) x = rounded<T>(epilogue::gelu_by_tanh(x));
#define STEP_GeluExact(at) x = rounded<T>(epilogue::gelu(x));

// Gradients of activations from their outputs; 0 times an infinity is NaN.
#define STEP_ReluGrad(at) x = mul(x, STEP_INPUT(at, element) > (Compute<T>)0 ? (Compute<T>)1 : (Compute<T>)0);
#define STEP_TanhGrad(at) x = rounded<T>(epilogue::tanh_grad(x, (Compute<T>)STEP_INPUT(at, element)));
#define STEP_SigmoidGrad(at) x = rounded<T>(epilogue::sigmoid_grad(x, (Compute<T>)STEP_INPUT(at, element)));

// The result for a sum in column `column` that is element `element` of the product: a value of T,
// widened.
DEVICE Compute<T> finish(const Arguments<T>& arguments, Compute<T> sum, u32 column, u64 element) {
    Compute<T> x = rounded<T>(sum);
    EPILOGUE
    (void)arguments, (void)column, (void)element;
    return x;
}
