// Updates of whole variables by the rules of optimisers, in place: each element of the state is read and written once.
//
// Entry point:
//   train(State state, const T* gradient, Scalars scalars, u64 count)
//     `state` has the addresses of the rule's variables, the trained one first; `scalars` those of its scalar inputs, which
//     are elements in the device's memory. Every tensor but the scalars has `count` elements; no two variables overlap.
//
// The rules have the formulas, and the order of operations, of plugins/train, so that results are the same: each
// operation rounds to T. They are classes with the numbers of variables and scalars, which are made of the scalars and
// change the elements at one index. FLAG is the rule's attribute of type bool.
//
// Macros: T, RULE, FLAG (0 or 1; 0 if it is not set), STEP (1 where the last scalar is the number of the step, of type
// i64; 0 if it is not set), INDEX, LANES (see elementwise.cuh).
#include "elementwise.cuh"
#include "math.cuh"

#ifndef FLAG
#define FLAG 0
#endif
#ifndef STEP
#define STEP 0
#endif

// A number; each operation rounds to T.
struct Number {
    Compute<T> value;
};

DEVICE Number number(Compute<T> value) { return {rounded<T>(value)}; }
DEVICE Number operator+(Number x, Number y) { return number(add(x.value, y.value)); }
DEVICE Number operator-(Number x, Number y) { return number(sub(x.value, y.value)); }
DEVICE Number operator*(Number x, Number y) { return number(mul(x.value, y.value)); }
DEVICE Number operator/(Number x, Number y) { return number(x.value / y.value); }
DEVICE Number operator-(Number x) { return {-x.value}; }
DEVICE bool operator<(Number x, Number y) { return x.value < y.value; }
DEVICE bool operator>(Number x, Number y) { return x.value > y.value; }

DEVICE Number of(f32 value) { return number((Compute<T>)value); }
DEVICE Number square(Number x) { return x * x; }
DEVICE Number root(Number x) { return number(math::square_root(x.value)); }
// Of 16-bit floats rounded once, as TensorFlow's packets are; of others twice.
DEVICE Number reciprocal_root(Number x) { return number((Compute<T>)1 / math::square_root(x.value)); }
DEVICE Number exponential(Number x) { return number(math::exponential(x.value)); }
DEVICE Number magnitude(Number x) { return {math::absolute(x.value)}; }
DEVICE Number larger(Number x, Number y) { return x < y ? y : x; }
// 1, -1, or 0 for zeros and NaN.
DEVICE Number sign(Number x) { return x > of(0.0f) ? of(1.0f) : x < of(0.0f) ? of(-1.0f) : of(0.0f); }

// var -= alpha delta.
struct GradientDescent {
    static constexpr int VARIABLES = 1, SCALARS = 1;
    Number alpha;
    DEVICE explicit GradientDescent(const Number* s) : alpha(s[0]) {}
    DEVICE void update(Number* x, Number gradient) const { x[0] = x[0] - gradient * alpha; }
};

// accum = accum momentum + grad; var -= lr accum. With FLAG, Nesterov's momentum: var -= lr grad + lr momentum accum.
struct Momentum {
    static constexpr int VARIABLES = 2, SCALARS = 2;
    Number lr, momentum;
    DEVICE explicit Momentum(const Number* s) : lr(s[0]), momentum(s[1]) {}
    DEVICE void update(Number* x, Number gradient) const {
        x[1] = x[1] * momentum + gradient;
        x[0] = x[0] - (FLAG == 1 ? gradient * lr + x[1] * momentum * lr : x[1] * lr);
    }
};

// accum = accum momentum - lr grad; var += accum. With FLAG, Nesterov's momentum: var += accum momentum - lr grad.
struct KerasMomentum {
    static constexpr int VARIABLES = 2, SCALARS = 2;
    Number lr, momentum;
    DEVICE explicit KerasMomentum(const Number* s) : lr(s[0]), momentum(s[1]) {}
    DEVICE void update(Number* x, Number gradient) const {
        x[1] = x[1] * momentum - gradient * lr;
        x[0] = x[0] + (FLAG == 1 ? x[1] * momentum - gradient * lr : x[1]);
    }
};

// accum += grad^2 with FLAG; var -= lr grad / sqrt(accum).
struct Adagrad {
    static constexpr int VARIABLES = 2, SCALARS = 1;
    Number lr;
    DEVICE explicit Adagrad(const Number* s) : lr(s[0]) {}
    DEVICE void update(Number* x, Number gradient) const {
        if (FLAG == 1) x[1] = x[1] + square(gradient);
        x[0] = x[0] - gradient * lr * reciprocal_root(x[1]);
    }
};

// accum += grad^2 with FLAG; var -= lr grad / (sqrt(accum) + epsilon).
struct AdagradV2 {
    static constexpr int VARIABLES = 2, SCALARS = 2;
    Number lr, epsilon;
    DEVICE explicit AdagradV2(const Number* s) : lr(s[0]), epsilon(s[1]) {}
    DEVICE void update(Number* x, Number gradient) const {
        if (FLAG == 1) x[1] = x[1] + square(gradient);
        x[0] = x[0] - gradient * lr / (root(x[1]) + epsilon);
    }
};

// The sums g of the gradients and gg of their squares;
// var = -lr sign(g) max(|g| - step l1, 0) / (l2 step lr + sqrt(gg)), where l1 is not positive -lr g / (...).
struct AdagradDa {
    static constexpr int VARIABLES = 3, SCALARS = 4;
    Number factor, l1, threshold, offset;
    DEVICE explicit AdagradDa(const Number* s)
        : factor(s[0] * of(-1.0f)), l1(s[1]), threshold(s[3] * s[1]), offset(s[2] * (s[3] * s[0])) {}
    DEVICE void update(Number* x, Number gradient) const {
        x[1] = x[1] + gradient;
        x[2] = x[2] + square(gradient);
        const Number cut = factor * sign(x[1]) * larger(magnitude(x[1]) - threshold, of(0.0f));
        x[0] = (l1 > of(0.0f) ? cut : factor * x[1]) / (offset + root(x[2]));
    }
};

// What shrinks a weight: sign(p) max(|p| - rate l1, 0) / (1 + l2 rate); where l1 is not positive, p / (1 + l2 rate).
struct Shrinking {
    Number l1, l2;
    DEVICE Number shrunk(Number weight, Number rate) const {
        const Number cut = sign(weight) * larger(magnitude(weight) - rate * l1, of(0.0f));
        return (l1 > of(0.0f) ? cut : weight) / (of(1.0f) + l2 * rate);
    }
};

// p = var - alpha delta; var is p, shrunk at the rate alpha.
struct ProximalGradientDescent {
    static constexpr int VARIABLES = 1, SCALARS = 3;
    Number alpha;
    Shrinking shrinking;
    DEVICE explicit ProximalGradientDescent(const Number* s) : alpha(s[0]), shrinking{s[1], s[2]} {}
    DEVICE void update(Number* x, Number gradient) const { x[0] = shrinking.shrunk(x[0] - gradient * alpha, alpha); }
};

// accum += grad^2; a = lr / sqrt(accum); p = var - a grad; var is p, shrunk at the rate a.
struct ProximalAdagrad {
    static constexpr int VARIABLES = 2, SCALARS = 3;
    Number lr;
    Shrinking shrinking;
    DEVICE explicit ProximalAdagrad(const Number* s) : lr(s[0]), shrinking{s[1], s[2]} {}
    DEVICE void update(Number* x, Number gradient) const {
        x[1] = x[1] + square(gradient);
        const Number rate = lr * reciprocal_root(x[1]);
        x[0] = shrinking.shrunk(x[0] - gradient * rate, rate);
    }
};

// accum = rho accum + (1 - rho) grad^2; u = grad sqrt(accum_update + epsilon) / sqrt(accum + epsilon);
// var -= lr u; accum_update = rho accum_update + (1 - rho) u^2.
struct Adadelta {
    static constexpr int VARIABLES = 3, SCALARS = 3;
    Number lr, rho, epsilon;
    DEVICE explicit Adadelta(const Number* s) : lr(s[0]), rho(s[1]), epsilon(s[2]) {}
    DEVICE void update(Number* x, Number gradient) const {
        const Number rest = of(1.0f) - rho;
        x[1] = x[1] * rho + square(gradient) * rest;
        const Number step = root(x[2] + epsilon) * reciprocal_root(x[1] + epsilon) * gradient;
        x[0] = x[0] - step * lr;
        x[2] = x[2] * rho + square(step) * rest;
    }
};

// ms += (grad^2 - ms) (1 - rho); mom = mom momentum + lr grad / sqrt(ms + epsilon); var -= mom.
struct RmsProp {
    static constexpr int VARIABLES = 3, SCALARS = 4;
    Number lr, rest, momentum, epsilon;
    DEVICE explicit RmsProp(const Number* s) : lr(s[0]), rest(of(1.0f) - s[1]), momentum(s[2]), epsilon(s[3]) {}
    DEVICE void update(Number* x, Number gradient) const {
        x[1] = x[1] + (square(gradient) - x[1]) * rest;
        x[2] = x[2] * momentum + gradient * lr / root(x[1] + epsilon);
        x[0] = x[0] - x[2];
    }
};

// Variables var, mg, ms, mom. As RmsProp, with ms - mg^2 + epsilon in the place of ms + epsilon, and
// mg += (grad - mg) (1 - rho).
struct CenteredRmsProp {
    static constexpr int VARIABLES = 4, SCALARS = 4;
    Number lr, rest, momentum, epsilon;
    DEVICE explicit CenteredRmsProp(const Number* s) : lr(s[0]), rest(of(1.0f) - s[1]), momentum(s[2]), epsilon(s[3]) {}
    DEVICE void update(Number* x, Number gradient) const {
        x[2] = x[2] + (square(gradient) - x[2]) * rest;
        x[1] = x[1] + (gradient - x[1]) * rest;
        const Number variance = x[2] - square(x[1]) + epsilon;
        x[3] = x[3] * momentum + gradient * lr / root(variance);
        x[0] = x[0] - x[3];
    }
};

// The scalars of Adam: beta1_power, beta2_power, lr, beta1, beta2, epsilon.
struct OfAdam {
    static constexpr int SCALARS = 6;
    // lr sqrt(1 - beta2_power) / (1 - beta1_power), beta1, 1 - beta1, 1 - beta2.
    Number alpha, beta1, rest1, rest2, epsilon;
    DEVICE explicit OfAdam(const Number* s)
        : alpha(s[2] * root(of(1.0f) - s[1]) / (of(1.0f) - s[0])), beta1(s[3]), rest1(of(1.0f) - s[3]),
          rest2(of(1.0f) - s[4]), epsilon(s[5]) {}
    DEVICE void moments(Number* x, Number gradient) const {
        x[1] = x[1] + (gradient - x[1]) * rest1;
        x[2] = x[2] + (square(gradient) - x[2]) * rest2;
    }
};

// m += (grad - m) (1 - beta1); v += (grad^2 - v) (1 - beta2); var -= alpha m / (sqrt(v) + epsilon). With FLAG,
// Nesterov's momentum beta1 m + (1 - beta1) grad instead of m.
struct Adam : OfAdam {
    static constexpr int VARIABLES = 3;
    DEVICE explicit Adam(const Number* s) : OfAdam(s) {}
    DEVICE void update(Number* x, Number gradient) const {
        moments(x, gradient);
        const Number direction = FLAG == 1 ? gradient * rest1 + beta1 * x[1] : x[1];
        x[0] = x[0] - direction * alpha / (root(x[2]) + epsilon);
    }
};

// As Adam; vhat = max(vhat, v) takes the place of v in the update of var.
struct Amsgrad : OfAdam {
    static constexpr int VARIABLES = 4;
    DEVICE explicit Amsgrad(const Number* s) : OfAdam(s) {}
    DEVICE void update(Number* x, Number gradient) const {
        moments(x, gradient);
        x[3] = larger(x[3], x[2]);
        x[0] = x[0] - x[1] * alpha / (root(x[3]) + epsilon);
    }
};

// m += (grad - m) (1 - beta1); v = max(beta2 v, |grad|); var -= lr / (1 - beta1_power) m / (v + epsilon).
struct AdaMax {
    static constexpr int VARIABLES = 3, SCALARS = 5;
    Number rate, rest1, beta2, epsilon;
    DEVICE explicit AdaMax(const Number* s)
        : rate(s[1] / (of(1.0f) - s[0])), rest1(of(1.0f) - s[2]), beta2(s[3]), epsilon(s[4]) {}
    DEVICE void update(Number* x, Number gradient) const {
        x[1] = x[1] + (gradient - x[1]) * rest1;
        x[2] = larger(beta2 * x[2], magnitude(gradient));
        x[0] = x[0] - rate * (x[1] / (x[2] + epsilon));
    }
};

// m = m beta + (1 - beta) grad; var -= lr (alpha + sign_decay sign(grad) sign(m)) grad.
struct AddSign {
    static constexpr int VARIABLES = 2, SCALARS = 4;
    Number lr, alpha, sign_decay, beta;
    DEVICE explicit AddSign(const Number* s) : lr(s[0]), alpha(s[1]), sign_decay(s[2]), beta(s[3]) {}
    DEVICE void update(Number* x, Number gradient) const {
        x[1] = x[1] * beta + gradient * (of(1.0f) - beta);
        const Number scale = alpha + sign_decay * (sign(gradient) * sign(x[1]));
        x[0] = x[0] - lr * scale * gradient;
    }
};

// m = m beta + (1 - beta) grad; var -= lr e^(logbase sign_decay sign(grad) sign(m)) grad.
struct PowerSign {
    static constexpr int VARIABLES = 2, SCALARS = 4;
    Number lr, beta;
    // The factors of lr grad where the signs agree, and where they differ; 1 where one of them is 0.
    Number same, other;
    DEVICE explicit PowerSign(const Number* s)
        : lr(s[0]), beta(s[3]), same(exponential(s[1] * s[2])), other(exponential(-(s[1] * s[2]))) {}
    DEVICE void update(Number* x, Number gradient) const {
        x[1] = x[1] * beta + gradient * (of(1.0f) - beta);
        const Number both = sign(gradient) * sign(x[1]);
        const Number scale = both > of(0.0f) ? same : both < of(0.0f) ? other : of(1.0f);
        x[0] = x[0] - lr * scale * gradient;
    }
};

// Variables var, accum, linear; scalars lr, l1, l2, lr_power and, in the second version, l2_shrinkage.
//   n = accum + grad^2; linear += grad - (n^p - accum^p) / lr var; accum = n, with p = -lr_power;
//   var = (sign(linear) l1 - linear) / (n^p / lr + 2 l2) where |linear| > l1, else 0.
// With FLAG, linear is multiplied by lr. SHRINKS adds 2 l2_shrinkage var to the gradient in the sum.
template <bool SHRINKS> struct OfFtrl {
    static constexpr int VARIABLES = 3, SCALARS = SHRINKS ? 5 : 4;
    Number lr, threshold, offset, shrinkage, power;
    DEVICE explicit OfFtrl(const Number* s)
        : lr(s[0]), threshold(FLAG == 1 ? s[1] * lr : s[1]),
          offset(FLAG == 1 ? of(2.0f) * s[2] * lr : of(2.0f) * s[2]),
          shrinkage(of(2.0f) * s[SHRINKS ? 4 : 0]), power(-s[3]) {}
    DEVICE Number powered(Number x) const {
        return power.value == (Compute<T>)0.5f ? root(x) : number(math::power(x.value, power.value));
    }
    DEVICE void update(Number* x, Number gradient) const {
        const Number shifted = SHRINKS ? gradient + shrinkage * x[0] : gradient;
        const Number after = x[1] + square(gradient), of_after = powered(after);
        const Number growth = of_after - powered(x[1]);
        const Number loss = FLAG == 1 ? growth * x[0] : growth / lr * x[0];
        const Number divisor = FLAG == 1 ? of_after : of_after / lr;
        x[1] = after;
        x[2] = x[2] + ((FLAG == 1 ? shifted * lr : shifted) - loss);
        const Number weight = (threshold * sign(x[2]) - x[2]) / (divisor + offset);
        x[0] = magnitude(x[2]) > threshold ? weight : of(0.0f);
    }
};
typedef OfFtrl<false> Ftrl;
typedef OfFtrl<true> FtrlV2;

struct State {
    T* at[RULE::VARIABLES];
};

struct Scalars {
    const T* at[RULE::SCALARS];
};

// What a thread has loaded: a pack of each variable and of the gradient.
struct Loaded {
    Pack<T, LANES> at[RULE::VARIABLES + 1];
};

// The new elements of the variables at one index.
DEVICE void change(const RULE& rule, T* elements, T gradient) {
    Number numbers[RULE::VARIABLES];
#pragma unroll
    for (int v = 0; v < RULE::VARIABLES; ++v) numbers[v] = {widen(elements[v])};
    rule.update(numbers, {widen(gradient)});
#pragma unroll
    for (int v = 0; v < RULE::VARIABLES; ++v) elements[v] = narrow<T>(numbers[v].value);
}

KERNEL train(const State state, const T* gradient, const Scalars scalars, u64 count) {
    await_previous();
    Number given[RULE::SCALARS];
#pragma unroll
    for (int s = 0; s < RULE::SCALARS - STEP; ++s) given[s] = {widen(load(scalars.at[s]))};
    // A float first, whatever T is, as on the CPU.
    if (STEP == 1) given[RULE::SCALARS - 1] = of((f32)*(const i64*)scalars.at[RULE::SCALARS - 1]);
    const RULE rule(given);
    const INDEX packs = (INDEX)(count / LANES), step = threads_of_grid<INDEX>();
    for (INDEX i = thread_of_grid<INDEX>(); i < packs; i += step) {
        Loaded loaded;
#pragma unroll
        for (int v = 0; v < RULE::VARIABLES; ++v) loaded.at[v] = load_pack<LANES>(state.at[v], i);
        loaded.at[RULE::VARIABLES] = load_pack<LANES>(gradient, i);
#pragma unroll
        for (int k = 0; k < LANES; ++k) {
            T elements[RULE::VARIABLES];
#pragma unroll
            for (int v = 0; v < RULE::VARIABLES; ++v) elements[v] = loaded.at[v].at[k];
            change(rule, elements, loaded.at[RULE::VARIABLES].at[k]);
#pragma unroll
            for (int v = 0; v < RULE::VARIABLES; ++v) loaded.at[v].at[k] = elements[v];
        }
#pragma unroll
        for (int v = 0; v < RULE::VARIABLES; ++v) store_pack(state.at[v], i, loaded.at[v]);
    }
    for (INDEX i = packs * LANES + thread_of_grid<INDEX>(); i < (INDEX)count; i += step) {
        T elements[RULE::VARIABLES];
#pragma unroll
        for (int v = 0; v < RULE::VARIABLES; ++v) elements[v] = state.at[v][i];
        change(rule, elements, gradient[i]);
#pragma unroll
        for (int v = 0; v < RULE::VARIABLES; ++v) state.at[v][i] = elements[v];
    }
}
