"""Runs of quantised graphs by NumPy, node by node in integers of 64 bits: the oracle of what `tenon quantize` writes.

The graphs in quantize/ are its results for graphs/cnn.pb, graphs/mlp.pb and frozen/resnet50.pb; what each of their nodes
on 8 bits gives is computed here from the formulas of plugins/int8/docs/quantization.md. Nothing of Tenon runs.
"""

import numpy as np
from tensorflow.core.framework import graph_pb2
from tensorflow.python.framework import tensor_util

from . import store
from .data import Quantised, seeded
from .quantised_between import add, average_pool, limits, lookup, mean, quantize
from .quantised_product import bounds
from .suite import describe_tensor

NAME = {11: "qint8", 12: "quint8", 1: "float", 3: "int32"}


def attributes(node):
    """Attributes by name, as Python has them; those that are not written have their default."""
    values = {"activation": "NONE", "clamp_min": 0.0, "clamp_max": 6.0, "keep_dims": False, "T": None}
    values |= {"transpose_a": False, "transpose_b": False, "dilations": [1, 1, 1, 1], "explicit_paddings": []}
    for name, attr in node.attr.items():
        kind = attr.WhichOneof("value")
        value = getattr(attr, kind)
        readers = {"s": bytes.decode, "list": lambda x: list(x.i), "type": lambda x: NAME.get(x, x)}
        values[name] = readers.get(kind, lambda x: x)(value)
    return values


def paddings(size, tap, stride, dilation, padding, explicit):
    """Values before and behind a dimension, and outputs along it."""
    reach = (tap - 1) * dilation + 1
    if padding == "SAME":
        out = -(-size // stride)
        total = max(0, (out - 1) * stride + reach - size)
        return total // 2, total - total // 2, out
    before, behind = explicit if padding == "EXPLICIT" else (0, 0)
    return before, behind, (size + before + behind - reach) // stride + 1


def convolved(x, filters, attrs, depthwise):
    """Sums over windows of x, whose padding stands for 0 and so is 0: zero points are taken off before."""
    (n, *sizes, channels), (*taps, _, last) = x.shape, filters.shape
    explicit = attrs["explicit_paddings"] or [0] * 8
    strides, dilations = attrs["strides"][1:3], attrs["dilations"][1:3]
    forms = [
        paddings(size, tap, stride, dilation, attrs["padding"], explicit[2 * at + 2 : 2 * at + 4])
        for at, (size, tap, stride, dilation) in enumerate(zip(sizes, taps, strides, dilations))
    ]
    x = np.pad(x, [(0, 0), *((before, behind) for before, behind, _ in forms), (0, 0)])
    outs = [out for *_, out in forms]
    sums = np.zeros((n, *outs, channels * last if depthwise else last), np.int64)
    for r, s in np.ndindex(*taps):
        rows, columns = (
            slice(tap * d, tap * d + (out - 1) * stride + 1, stride)
            for tap, d, out, stride in zip((r, s), dilations, outs, strides)
        )
        window = x[:, rows, columns]
        if depthwise:
            sums += (window[..., None] * filters[r, s]).reshape(sums.shape)
        else:
            sums += window @ filters[r, s]
    return sums


def product(op, inputs, attrs):
    """A layer: the sums, and what becomes of them."""
    a, b, a_scale, a_zero, b_scale, b_zero, out_scale, out_zero, *bias = inputs
    if op == "_QuantizedFusedMatMul":
        a, b = (x.T if attrs[f"transpose_{name}"] else x for x, name in ((a, "a"), (b, "b")))
        sums = (a - a_zero) @ (b - b_zero)
    else:
        sums = convolved(a - a_zero, b - b_zero, attrs, "Depthwise" in op)
    sums = sums + sum(bias, 0)
    assert np.all(np.abs(sums) < 2**31)
    low, high = bounds(attrs)
    scale = float(a_scale) * b_scale.astype(np.float64)
    if attrs["Tout"] == "float":
        return np.clip(sums.astype(np.float32) * scale.astype(np.float32), np.float32(low), np.float32(high))
    by = (scale / float(out_scale)).astype(np.float32)
    steps = np.rint(sums.astype(np.float32).astype(np.float64) * by.astype(np.float64))
    least, most = limits(attrs["Tout"])
    bound = lambda x: np.clip(np.rint(x / float(out_scale)) + int(out_zero), least, most)
    return np.clip(steps + int(out_zero), bound(low), bound(high)).astype(np.int64)


def max_pool(x, attrs):
    (n, *sizes, channels), taps = x.shape, attrs["ksize"][1:3]
    strides = attrs["strides"][1:3]
    forms = [paddings(*form, 1, attrs["padding"], None) for form in zip(sizes, taps, strides)]
    x = np.pad(x, [(0, 0), *((before, behind) for before, behind, _ in forms), (0, 0)], constant_values=-1)
    outs = [out for *_, out in forms]
    at = lambda tap, out, stride: slice(tap, tap + (out - 1) * stride + 1, stride)
    windows = [x[:, at(r, outs[0], strides[0]), at(s, outs[1], strides[1])] for r, s in np.ndindex(*taps)]
    return np.max(windows, axis=0)


def computed(op, inputs, attrs):
    """What a node gives; codes are integers of 64 bits."""
    codes = lambda result: result.values.astype(np.int64)
    attrs = attrs | {"T": attrs["T"] or "quint8"}
    if op in ("_QuantizedFusedMatMul", "_QuantizedFusedConv2D", "_QuantizedFusedDepthwiseConv2dNative"):
        return product(op, inputs, attrs)
    moves = {
        "QuantizedMaxPool": lambda x, *_: max_pool(x, attrs),
        "PadV2": lambda x, pads, zero: np.pad(x, pads, constant_values=int(zero)),
        "ConcatV2": lambda *values: np.concatenate(values[:-1], int(values[-1])),
        "Reshape": lambda x, shape: x.reshape(shape),
    }
    if op in moves:
        return moves[op](*inputs)
    between = {
        "_AffineQuantize": quantize,
        "_QuantizedFusedAdd": add,
        "_QuantizedFusedMean": mean,
        "_QuantizedFusedAvgPool": average_pool,
        "_QuantizedLookup": lookup,
    }
    return codes(between[op](inputs, attrs))


def run(graph, feeds):
    """The values of all nodes on 8 bits, and of the floats that layers give."""
    values, layers = dict(feeds), {}
    for node in graph.node:
        if node.op == "Placeholder":
            continue
        if node.op == "Const":
            value = tensor_util.MakeNdarray(node.attr["value"].tensor)
            is_code = NAME.get(node.attr["dtype"].type) in ("qint8", "quint8")
            values[node.name] = as_codes(node, value) if is_code else value
            continue
        names = [name for name in node.input if not name.startswith("^")]
        if not all(name in values for name in names):
            continue
        attrs = attributes(node)
        values[node.name] = computed(node.op, [values[name] for name in names], attrs)
        layers[node.name] = typed(values[node.name])
        if values[node.name].dtype == np.float32:
            # What follows is computed in floats.
            del values[node.name]
    return layers


def as_codes(node, value):
    """Codes of a constant, which TensorFlow's reader gives as pairs of a field."""
    value = value.view(np.int8 if NAME[node.attr["dtype"].type] == "qint8" else np.uint8)
    shape = [dim.size for dim in node.attr["value"].tensor.tensor_shape.dim]
    return value.reshape(shape).astype(np.int64)


def typed(value):
    return value if value.dtype == np.float32 else Quantised("quint8", value)


def write(folder):
    """The index and the arrays of each graph in the folder."""
    entries = []
    for path in sorted(folder.glob("*.pb")):
        graph = graph_pb2.GraphDef.FromString(path.read_bytes())
        [feed] = [node for node in graph.node if node.op == "Placeholder"]
        shape = [2 if dim.size < 0 else dim.size for dim in feed.attr["shape"].shape.dim]
        x = seeded("quantize", path.stem).standard_normal(shape).astype(np.float32)
        layers = run(graph, {feed.name: x})
        arrays = {"run0.feed0": x}
        arrays |= {f"run0.out{at}": value for at, value in enumerate(layers.values())}
        describe = lambda name, key: {"tensor": f"{name}:0", "array": key, **describe_tensor(arrays[key])}
        fetches = [describe(name, f"run0.out{at}") for at, name in enumerate(layers)]
        entry = {"name": path.stem, "about": "As tenon quantize writes it.", "file": path.name}
        entry |= {"arrays": f"{path.stem}.npz", "ops": sorted({node.op for node in graph.node})}
        entry |= {"nodes": len(graph.node), "tolerance": "exact"}
        entry |= {"runs": [{"feeds": [describe(feed.name, "run0.feed0")], "fetches": fetches}]}
        store.write_npz(folder / f"{path.stem}.npz", arrays)
        entries.append(entry)
    store.write_index(folder / "index.json", {"numpy": np.__version__}, "graphs", entries)
    return len(entries)
