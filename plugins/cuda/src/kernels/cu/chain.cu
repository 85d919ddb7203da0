// A chain of elementwise ops as one kernel: the fused node's program on every element, with the functors that the ops
// have alone. Each result is rounded to T, as between the ops, and no product and sum become one.
//
// Entry point:
//   chain(ChainInputs inputs, T* y, u64 count)
//     y[i] = PROGRAM of element i of the inputs. y may be an input of kind FULL. The host's layout of `ChainInputs`: an
//     array of 8 pointers, then an array of 8 `Divisor<INDEX>` (dims.cuh), of which the first INPUTS are read, and of the
//     divisors those of rows: they divide by the row's number of elements.
//
// Macros: T, INDEX, LANES (see elementwise.cuh), and in the generated text
//   INPUTS    number of inputs, 1 to 8
//   KINDS     a kind for each, with commas: FULL (the output's shape), ROW (trailing dimensions of it, whose number of
//             elements is a multiple of LANES), RAGGED (of any other number), SCALAR (one element)
//   PROGRAM   statements that return the result, where v[k] is the element of input k. An instruction is
//             `const Value rN = one<op::NAME>(a);` or `const Value rN = two<op::NAME>(a, b);`. The program
//             "AddV2 i0 i1; Relu %0" is
//               const Value r0 = two<op::AddV2>(v[0], v[1]); const Value r1 = one<op::Relu>(r0); return r1;
// What T may be: as for each of the ops (op_unary.cuh, op_binary.cuh).
#include "elementwise.cuh"
#include "op_binary.cuh"
#include "op_unary.cuh"

inline constexpr int MOST_INPUTS = 8;
static_assert(INPUTS >= 1 && INPUTS <= MOST_INPUTS, "inputs of a chain");

enum Kind { FULL, ROW, RAGGED, SCALAR };

DEVICE constexpr Kind kind(int input) {
    const Kind kinds[] = {KINDS};
    return kinds[input];
}

typedef Compute<T> Value;
typedef Pack<T, LANES> Values;

template <typename Op> DEVICE Value one(Value x) { return rounded<T>(Op::template of<T>(x)); }
template <typename Op> DEVICE Value two(Value x, Value y) { return rounded<T>(Op::template of<T>(x, y)); }

struct ChainInputs {
    const T* at[MOST_INPUTS];
    Divisor<INDEX> rows[MOST_INPUTS];
};

// An element, or a pack, of each input.
template <typename P> struct Loaded {
    P at[INPUTS];
};

DEVICE T apply(const T* x) {
    Value v[INPUTS];
#pragma unroll
    for (int j = 0; j < INPUTS; ++j) v[j] = widen(x[j]);
    const auto run = [&]() -> Value { PROGRAM };
    return narrow<T>(run());
}

DEVICE INDEX in_row(const Divisor<INDEX>& row, INDEX i) { return row.divide_with_rest(i).remainder; }

// Element i of input j.
DEVICE T element(const ChainInputs& inputs, int j, INDEX i) {
    switch (kind(j)) {
        case FULL: return load(inputs.at[j] + i);
        case SCALAR: return load_constant(inputs.at[j]);
        default: return load_constant(inputs.at[j] + in_row(inputs.rows[j], i));
    }
}

// Pack `pack` of input j.
DEVICE Values values(const ChainInputs& inputs, int j, INDEX pack) {
    const T* x = inputs.at[j];
    if (kind(j) == FULL) return load_pack<LANES>(x, pack);
    if (kind(j) == ROW) return load_constant_pack<LANES>(x + in_row(inputs.rows[j], pack * LANES), 0);
    if (kind(j) == SCALAR) return splat<LANES>(load_constant(x));
    Values all;
#pragma unroll
    for (int k = 0; k < LANES; ++k) all.at[k] = element(inputs, j, pack * LANES + k);
    return all;
}

DEVICE Values apply_packs(const Loaded<Values>& loaded) {
    Values y;
#pragma unroll
    for (int k = 0; k < LANES; ++k) {
        T x[INPUTS];
#pragma unroll
        for (int j = 0; j < INPUTS; ++j) x[j] = loaded.at[j].at[k];
        y.at[k] = apply(x);
    }
    return y;
}

// A count of blocks keeps ptxas from spilling numbers of f64 for the sake of more of them; 0 leaves it to ptxas.
extern "C" __global__ __launch_bounds__(256, sizeof(T) == 8 ? 2 : 0) void chain(const ChainInputs inputs, T* y, u64 count) {
    await_previous();
    for_packs<LANES>(
        (INDEX)count,
        [&](INDEX i) {
            Loaded<Values> loaded;
#pragma unroll
            for (int j = 0; j < INPUTS; ++j) loaded.at[j] = values(inputs, j, i);
            return loaded;
        },
        [&](INDEX i, const Loaded<Values>& loaded) { store_pack(y, i, apply_packs(loaded)); },
        [&](INDEX i) {
            T x[INPUTS];
#pragma unroll
            for (int j = 0; j < INPUTS; ++j) x[j] = element(inputs, j, i);
            y[i] = apply(x);
        });
}
