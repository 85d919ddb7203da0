// SoftmaxCrossEntropyWithLogits: of each row the loss, the sum of label (ln(sum) - (x - most)), and its gradient,
// e^(x - most) / sum - label, where sum is that of all e^(x - most). SparseSoftmaxCrossEntropyWithLogits: the same with
// the label 1 for one class and 0 for the others; of a class that there is not, loss and gradient are NaN.
//
//   loss_lanes    a few lanes of a warp for each row of up to 256 elements
//   loss_blocks   a block of 1 to 8 warps (of f64 16) for each row of up to 8192 elements, held in registers
//   loss_long     a block for a row of any length, which is read twice
//
// The same with `_packed`: rows of whole packs without gaps between them, every address aligned to
// 16 bytes. Otherwise rows and elements of logits and labels may be any distance apart, 0 where one
// is repeated.
//
// Defines: DTYPE, a float; LABEL, the type of the classes, or DTYPE where each element has a label.
#include "online.cuh"
#include "rows.cuh"

typedef Compute<DTYPE> W;
#define KERNEL(...) extern "C" __global__ void __launch_bounds__(__VA_ARGS__)

struct Matrix {
    const DTYPE* data;
    u64 row, column;
    template <int V> DEVICE Pack<DTYPE, V> at(u64 r, u64 c) const {
        if constexpr (V == 1) return {data[r * row + c * column]};
        else return load_constant_pack<V>(data + r * row + c, 0);
    }
};

// The labels of rows that have a class each, as if they were a matrix.
struct Classes {
    const LABEL* data;
    u64 cols, padding;
    template <int V> DEVICE Pack<DTYPE, V> at(u64 r, u64 c) const {
        const u64 label = (u64)(i64)widen(data[r]);
        Pack<DTYPE, V> pack;
#pragma unroll
        for (int v = 0; v < V; ++v) pack.at[v] = narrow<DTYPE>(label < cols ? (W)(c + v == label) : Limits<W>::nan());
        return pack;
    }
};

inline constexpr bool SPARSE = !is_same<LABEL, DTYPE>;
typedef choose<SPARSE, Classes, Matrix> Labels;
static_assert(sizeof(Classes) == sizeof(Matrix), "one layout of the host");

struct Loss {
    Matrix logits;
    Labels labels;
    DTYPE* loss;
    DTYPE* gradient;
    u64 rows, cols;
};
static_assert(sizeof(Loss) == 80, "the host's layout");

// The gradients of a pack of x - most, whose losses are added to total.
template <int V, typename F>
DEVICE Pack<DTYPE, V> gradient_of(F below, Pack<DTYPE, V> labels, W sum, W log_sum, W& total) {
    Pack<DTYPE, V> pack;
#pragma unroll
    for (int v = 0; v < V; ++v) {
        const W x = below(v), label = widen(labels.at[v]);
        // The other classes add nothing, whatever their logits are.
        if (!SPARSE || label != 0) total = add(total, mul(label, sub(log_sum, x)));
        pack.at[v] = narrow<DTYPE>(sub(exp(x) / sum, label));
    }
    return pack;
}

template <int V, int ELEMENTS, typename Group> DEVICE void loss_rows(const Loss& l, const Group& group) {
    group.each_row(l.rows, [&](u64 at, bool inside) {
        Row<DTYPE, V, ELEMENTS> row(group, inside ? (u32)l.cols : 0);
        row.load_with([&](u32 i) { return l.logits.at<V>(at, row.first + i); });
        W most = GreatestOp<W>::neutral(), sum = 0, total = 0;
        row.each([&](W& x) { most = GreatestOp<W>()(most, x); });
        most = group.reduce(most, GreatestOp<W>(), GreatestOp<W>::neutral());
        row.each([&](W& x) {
            x = sub(x, most);
            sum = add(sum, exp(x));
        });
        sum = group.reduce(sum, SumOp<W>(), (W)0);
        const W log_sum = log(sum);
        row.store_to(l.gradient + at * l.cols, [&](int k, u32 i) {
            const auto labels = l.labels.at<V>(at, row.first + i);
            return gradient_of<V>([&](int v) { return row.at[k][v]; }, labels, sum, log_sum, total);
        });
        total = group.reduce(total, SumOp<W>(), (W)0);
        if (inside && group.thread() == 0) l.loss[at] = narrow<DTYPE>(total);
    });
}

template <int V> DEVICE void loss_long_rows(const Loss& l) {
    Block().each_row(l.rows, [&](u64 at, bool) {
        Online<W> all = Online<W>::nothing();
        for (u64 i = (u64)threadIdx.x * V; i < l.cols; i += LONG<DTYPE> * V) all.take(l.logits.at<V>(at, i));
        all = block_reduce(all, OnlineOp<W>(), Online<W>::nothing());
        const W log_sum = log(all.sum);
        W total = 0;
        for (u64 i = (u64)threadIdx.x * V; i < l.cols; i += LONG<DTYPE> * V) {
            const auto logits = l.logits.at<V>(at, i);
            const auto below = [&](int v) { return sub(widen(logits.at[v]), all.most); };
            const auto pack = gradient_of<V>(below, l.labels.at<V>(at, i), all.sum, log_sum, total);
            store_global_pack<V>(l.gradient + at * l.cols + i, 0, pack);
        }
        total = block_reduce(total, SumOp<W>(), (W)0);
        if (threadIdx.x == 0) l.loss[at] = narrow<DTYPE>(total);
    });
}

#define LOSS(NAME, THREADS, BLOCKS, BODY) \
    KERNEL(THREADS, BLOCKS) NAME(Loss loss) { BODY; }
#define LOSS_ROWS(V, EACH, GROUP) loss_rows<V, EACH>(loss, GROUP)
LOSS(loss_lanes, 256, 1, LOSS_ROWS(1, FEW, Lanes(loss.cols)))
LOSS(loss_lanes_packed, 256, 1, LOSS_ROWS(lanes_of<DTYPE>, FEW, Lanes(loss.cols)))
LOSS(loss_blocks, HOLDS<DTYPE>, 1, LOSS_ROWS(1, MANY<DTYPE>, Block()))
LOSS(loss_blocks_packed, HOLDS<DTYPE>, AT_ONCE<DTYPE>, LOSS_ROWS(lanes_of<DTYPE>, MANY<DTYPE>, Block()))
LOSS(loss_long, LONG<DTYPE>, 1, loss_long_rows<1>(loss))
LOSS(loss_long_packed, LONG<DTYPE>, 1, loss_long_rows<lanes_of<DTYPE>>(loss))
