"""Recurrent cells in one op."""

import numpy as np

from .data import array, seeded
from .suite import Suite

CLOSE = {
    "float": {"tolerance": {"absolute": 1e-5, "relative": 1e-5}, "reason": "products of matrices, step after step"},
    "half": {"tolerance": {"absolute": 1e-2, "relative": 1e-2}, "reason": "TensorFlow rounds each operation to half"},
}
# label: (steps, rows, inputs, cells)
SIZES = {"small": (3, 2, 3, 2), "one": (1, 1, 1, 1), "wide": (2, 3, 5, 19), "long": (9, 2, 4, 5)}


def numbers(dtype, *key, shape, scale=0.5):
    return array(seeded(*key, dtype).standard_normal(shape) * scale, dtype)


def weights(dtype, label, inputs, cells):
    """w, three diagonals, b."""
    diagonals = [numbers(dtype, label, name, shape=(cells,)) for name in ("wci", "wcf", "wco")]
    return [numbers(dtype, label, "w", shape=(inputs + cells, 4 * cells)), *diagonals, numbers(dtype, label, "b", shape=(4 * cells,))]


def state(dtype, label, rows, cells):
    """cs_prev and h_prev."""
    return [numbers(dtype, label, name, shape=(rows, cells)) for name in ("cs", "h")]


def run(op, inputs, attrs):
    """What TensorFlow's own op gives for these inputs, which gradients take."""
    import tensorflow as tf

    names = ["seq_len_max"] if op != "lstm_block_cell" else []
    names += ["x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b"]
    call = getattr(tf.raw_ops, {"lstm_block_cell": "LSTMBlockCell", "block_lstm": "BlockLSTM", "block_lstmv2": "BlockLSTMV2"}[op])
    return [x.numpy() for x in call(**dict(zip(names, inputs)), **attrs)]


def one_step(folder):
    """LSTMBlockCell and its gradient."""
    forward = Suite(folder, "recurrent", "LSTMBlockCell")
    grad = Suite(folder, "recurrent", "LSTMBlockCellGrad")
    for dtype in ("float", "half"):
        for label, (_, rows, inputs, cells) in SIZES.items():
            given = [numbers(dtype, label, "x", shape=(rows, inputs)), *state(dtype, label, rows, cells), *weights(dtype, label, inputs, cells)]
            for peephole in (False, True):
                attrs = {"use_peephole": peephole, "forget_bias": 0.5, "cell_clip": 0.4 if label == "wide" else 0.0}
                name = f"{dtype}_{label}_{peephole}"
                forward.case(name, given, attrs, **dict(CLOSE[dtype]))
                i, cs, f, o, ci, co, _ = run("lstm_block_cell", given, attrs)
                grads = [numbers(dtype, label, name, shape=(rows, cells)) for name in ("cs_grad", "h_grad")]
                grad.case(name, [*given, i, cs, f, o, ci, co, *grads], {"use_peephole": peephole}, **dict(CLOSE[dtype]))
    rows, cells = 2, 3
    x, before, w = numbers("float", "x", shape=(2, 4)), state("float", "bad", 2, 3), weights("float", "bad", 4, 3)
    forward.error("rows", [x[:1], *before, *w])
    forward.error("w_rows", [x[:, :3], *before, *w])
    forward.error("w_columns", [x, *before, w[0][:, :8], *w[1:]])
    forward.error("b", [x, *before, *w[:4], w[4][:8]])
    forward.error("wci", [x, *before, w[0], w[1][:2], *w[2:]], {"use_peephole": True})
    yield forward.finish()
    yield grad.finish()


def sequences(folder):
    """BlockLSTM, BlockLSTMV2 and their gradients."""
    for version, name in (("", "block_lstm"), ("V2", "block_lstmv2")):
        forward = Suite(folder, "recurrent", f"BlockLSTM{version}")
        grad = Suite(folder, "recurrent", f"BlockLSTMGrad{version}")
        for dtype in ("float", "half"):
            for label, (steps, rows, inputs, cells) in SIZES.items():
                for peephole in (False, True):
                    for count in (steps, steps - 1) if label == "small" else (steps,):
                        given = [np.int64(count), numbers(dtype, label, "x", shape=(steps, rows, inputs)), *state(dtype, label, rows, cells), *weights(dtype, label, inputs, cells)]
                        attrs = {"use_peephole": peephole, "cell_clip": 0.4 if label == "wide" else 0.0}
                        case = f"{dtype}_{label}_{peephole}_{count}"
                        if count == steps:
                            forward.case(case, given, attrs, const=[0], **dict(CLOSE[dtype]))
                        outputs = [np.array(x) for x in run(name, given, attrs)]
                        for output in outputs:
                            # Steps that are not computed are as they were allocated; here they are 0.
                            output[count:] = 0
                        grads = [numbers(dtype, label, which, shape=(steps, rows, cells)) for which in ("cs_grad", "h_grad")]
                        grad.case(case, [*given, *outputs, *grads], {"use_peephole": peephole}, const=[0], **dict(CLOSE[dtype]))
        x, before, w = numbers("float", "x", shape=(3, 2, 4)), state("float", "bad", 2, 3), weights("float", "bad", 4, 3)
        forward.error("rows", [np.int64(3), x[:, :1], *before, *w], const=[0])
        forward.error("w_rows", [np.int64(3), x[:, :, :3], *before, *w], const=[0])
        forward.error("w_columns", [np.int64(3), x, *before, w[0][:, :8], *w[1:]], const=[0])
        yield forward.finish()
        yield grad.finish()


def gru(folder):
    """GRUBlockCell and its gradient."""
    import tensorflow as tf

    forward = Suite(folder, "recurrent", "GRUBlockCell")
    grad = Suite(folder, "recurrent", "GRUBlockCellGrad")
    shapes = lambda rows, inputs, cells: {"x": (rows, inputs), "h_prev": (rows, cells), "w_ru": (inputs + cells, 2 * cells), "w_c": (inputs + cells, cells), "b_ru": (2 * cells,), "b_c": (cells,)}
    for label, (_, rows, inputs, cells) in SIZES.items():
        given = {name: numbers("float", "gru", label, name, shape=shape) for name, shape in shapes(rows, inputs, cells).items()}
        forward.case(label, list(given.values()), **dict(CLOSE["float"]))
        r, u, c, _ = (x.numpy() for x in tf.raw_ops.GRUBlockCell(**given))
        d_h = numbers("float", "gru", label, "d_h", shape=(rows, cells))
        grad.case(label, [*given.values(), r, u, c, d_h], **dict(CLOSE["float"]))
    given = [numbers("float", "gru", name, shape=shape) for name, shape in shapes(2, 4, 3).items()]
    forward.error("rows", [given[0][:1], *given[1:]])
    forward.error("w_ru", [*given[:2], given[2][:, :5], *given[3:]])
    forward.error("w_c", [*given[:3], given[3][:5], *given[4:]])
    forward.error("b_c", [*given[:5], given[5][:2]])
    yield forward.finish()
    yield grad.finish()


GROUPS = [one_step, sequences, gru]
