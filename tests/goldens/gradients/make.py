"""Makes TensorFlow's gradients of the standard ops, for the test tests/tensorflow/gradients.rs.

Usage: python make.py              all ops
       python make.py linalg fft   prints what it would write for these families, and writes nothing

The inputs are those of the golden cases of the ops (`../<family>/<Op>.json`). For each op that has a gradient in
TensorFlow, some small cases of double precision are taken, of single precision where the op has no double, of complex
numbers, and of half and bfloat16, in which TensorFlow's kernels compute then. What is differentiated is the sum of the outputs' products with fixed weights, which `weights` makes
here and the test makes there. `index.json` has one line per case, `gradients.npz` the results:

op, family, case   the golden case
outputs            numbers of the outputs that are in the sum
inputs             numbers of the inputs by which the sum is differentiated: those of floats and complex numbers
zeros              those of them that have no gradient (`None`); the others are arrays `<op>.<case>.<outputs>.d<input>`
numeric            those of them of which differences of the sum, in double precision, gave the gradient too
second             the sum of the gradients' products with weights is differentiated too, `<...>.dd<input>`; a list as
                   `inputs`, without those that have no gradient; only for the ops in SECOND
tolerance          the largest deviation of an element that is allowed, in units of the largest of the array's
                   absolute values, or of 1 if these are smaller

Lines with `none` are ops whose gradient is `None`, lines with `absent` ops without an entry: both are to be so here.
"""

import json
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from gen import session, store  # noqa: E402  (sets TensorFlow's environment before TensorFlow is imported)
from gen.data import BFLOAT16, EPSILON  # noqa: E402
from gen.suite import set_attr  # noqa: E402

import tensorflow as tf  # noqa: E402
from tensorflow.python.framework import ops as tf_ops  # noqa: E402

FAMILIES = ["math_unary", "math_binary", "reduction", "linalg", "fft", "array", "nn", "nn_grad", "image", "quantization", "random", "logging", "ragged", "recurrent", "speech"]
REAL, COMPLEX, SHORT = {"float", "double"}, {"complex64", "complex128"}, {"half", "bfloat16"}
# Cases with these words in their names have values at which nothing can be differentiated.
WORDS = ("special", "edge", "denormal", "nan", "infinite", "extreme", "pole", "huge", "overflow", "tiny", "cut")
MOST_ELEMENTS, MOST_CASES, MOST_SHORT_CASES = 400, 6, 2
# Forms whose gradients TensorFlow's CPU refuses; of these ops alone it takes channels first.
FIRST = ("NCHW", "NCDHW")
TAKE_FIRST = ("BiasAdd", "BiasAddGrad", "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
# TensorFlow's own slips: of complex numbers it takes the derivatives without conjugates, and transposes for adjoints.
SLIPS = {op: COMPLEX for op in ("Xdivy", "Xlogy", "Xlog1py", "ClipByValue", "MatrixSquareRoot", "TridiagonalSolve")}
# It takes this one's diagonals from the other end, as those of MatrixDiagV3.
SLIPS["MatrixDiagV2"] = REAL | COMPLEX | SHORT
# Ops whose gradients are differentiated again.
SECOND = """Abs Acos Acosh Asin Asinh Atan Atanh Cos Cosh Digamma Erf Erfc Exp Expm1 Inv Lgamma Log Log1p Neg Reciprocal Rsqrt
Sigmoid Sin Sinh Softplus Sqrt Square Tan Tanh Elu Selu Relu Relu6 LeakyRelu Add AddV2 Sub Mul Div RealDiv Pow Maximum Minimum
SquaredDifference Atan2 Xdivy Xlogy Xlog1py MulNoNan DivNoNan AddN Select SelectV2 Sum Mean Prod Max Min Cumsum Cumprod EuclideanNorm
SegmentSum UnsortedSegmentSum MatMul BatchMatMul BatchMatMulV2 BatchMatMulV3 Einsum MatrixInverse MatrixDeterminant MatrixSolve
MatrixTriangularSolve Cholesky Diag DiagPart MatrixDiag MatrixDiagV3 MatrixBandPart L2Loss Softmax LogSoftmax
SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits Conv2D Conv3D DepthwiseConv2dNative AvgPool MaxPool AvgPool3D MaxPool3D
BiasAdd FusedBatchNormV3 Reshape Transpose ConcatV2 Split Slice StridedSlice Gather GatherV2 GatherNd Tile Pad MirrorPad FFT IFFT
ResizeBilinear ResizeNearestNeighbor ReluGrad SigmoidGrad TanhGrad SqrtGrad BiasAddGrad AvgPoolGrad MaxPoolGrad""".split()
# Four roundings of a type, the distance from 1 to the next larger number each.
SHORT_TOLERANCES = {name: 4 * EPSILON[name] for name in SHORT}
# TensorFlow computes the losses of CTC in logarithms of float.
LOOSE = {"Svd": 1e-6, "SelfAdjointEigV2": 1e-6, "Qr": 1e-6, "IgammaGradA": 1e-8, "CTCLoss": 1e-6}
# Ops whose gradients are not compared: TensorFlow has the gates in another order.
LEFT = ("BlockLSTMV2",)


def weights(dtype, shape, start):
    """The fixed weights: small fractions without a pattern that matters, from element number `start` on."""
    k = np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape) + start
    real = ((7 * k + 3) % 11 - 5) / 4 + 0.125
    if dtype in COMPLEX:
        real = real + 1j * (((5 * k + 1) % 13 - 6) / 4)
    return real.astype(dtype_of(dtype))


def dtype_of(name):
    names = {"float": np.float32, "double": np.float64, "half": np.float16, "bfloat16": BFLOAT16}
    return np.dtype(names.get(name, name))


def elements(described):
    return int(np.prod(described["shape"], dtype=np.int64))


def kind_of(case):
    """The type of the inputs that are differentiated; None if there are others. A short type may have floats beside it."""
    kinds = {x["dtype"] for x in case["inputs"]} & (REAL | COMPLEX | SHORT)
    if len(kinds & SHORT) == 1 and kinds <= SHORT | {"float"}:
        return (kinds & SHORT).pop()
    return kinds.pop() if len(kinds) == 1 else ("mixed" if kinds <= REAL and kinds else None)


def usable(op, case):
    if "error" in case or any(word in case["name"] for word in WORDS) or kind_of(case) in SLIPS.get(op, ()):
        return False
    if op not in TAKE_FIRST and case["attrs"].get("data_format", {}).get("string") in FIRST:
        return False
    # TensorFlow's CPU takes no account of the dilations in these gradients.
    if op == "DepthwiseConv2dNative" and set(case["attrs"]["dilations"]["list(int)"]) != {1}:
        return False
    # Other integers as indices end TensorFlow's process where its shape functions read them.
    if not {x["dtype"] for x in case["inputs"] + case["outputs"]} <= REAL | COMPLEX | SHORT | {"bool", "int32", "int64"}:
        return False
    sizes = [elements(x) for x in case["inputs"]] + [elements(x) for x in case["outputs"]]
    # What is reserved may be empty.
    first = [elements(x) for x in case["inputs"][:1] + case["outputs"][:1]]
    return kind_of(case) is not None and min(first) > 0 and sum(sizes) <= MOST_ELEMENTS


def form_of(case):
    """What tells cases apart besides their numbers: attributes that are no types, and which sizes are 1."""
    attrs = {name: value for name, value in case["attrs"].items() if "type" not in value and "list(type)" not in value}
    shapes = [(len(x["shape"]), [size == 1 for size in x["shape"]]) for x in case["inputs"]]
    return json.dumps([attrs, shapes], sort_keys=True)


def rank(case):
    """Cases with more inputs to differentiate by come first, then larger ones."""
    return -sum(x["dtype"] in REAL | COMPLEX | SHORT for x in case["inputs"]), -sum(map(elements, case["inputs"]))


def chosen(op, cases):
    """Some small cases of differing forms: of double precision, else single, some complex ones, and some of short types."""
    usable_cases = [case for case in cases if usable(op, case)]
    kinds = {kind_of(case) for case in usable_cases}
    wanted = [next((kind for kind in ("double", "float", "mixed") if kind in kinds), None)]
    wanted.append(next((kind for kind in ("complex128", "complex64") if kind in kinds), None))
    result = []
    for kind in [*filter(None, wanted), *sorted(kinds & SHORT)]:
        most = MOST_SHORT_CASES if kind in SHORT else MOST_CASES
        forms = {}
        for case in sorted(usable_cases, key=rank):
            if kind_of(case) == kind:
                forms.setdefault(form_of(case), case)
        # Evenly over all forms, so that late ones are not left out.
        step = max(1, -(-len(forms) // most))
        result += list(forms.values())[::step][:most]
    return result


class Run:
    """One golden case as a graph of TensorFlow."""

    def __init__(self, op, case, arrays):
        self.case, self.graph = case, tf.Graph()
        graph_def = tf.compat.v1.GraphDef()
        graph_def.versions.producer = tf.version.GRAPH_DEF_VERSION
        # TensorFlow has removed TopK; its gradient is that of TopKV2, whose k is an input.
        node = graph_def.node.add(op="TopKV2" if op == "TopK" else op, name="y")
        attrs = {name: value for name, value in case["attrs"].items() if (op, name) != ("TopK", "k")}
        for name, value in attrs.items():
            ((kind, value),) = value.items()
            set_attr(node.attr[name], kind, arrays[value] if kind == "tensor" else value)
        with self.graph.as_default():
            self.x, self.values = [], []
            for i, described in enumerate(case["inputs"]):
                value = arrays[f"{case['name']}.in{i}"]
                value = value.view(BFLOAT16) if described["dtype"] == "bfloat16" else value
                dtype = tf.as_dtype(dtype_of(described["dtype"]))
                constant = i in case["const_inputs"]
                x = tf.constant(value, dtype) if constant else tf.compat.v1.placeholder(dtype, value.shape)
                self.x.append(x)
                self.values.append(value)
                graph_def.node.add(op="Placeholder", name=f"in{i}").attr["dtype"].type = dtype.as_datatype_enum
                node.input.append(f"in{i}:0")
            mapped = {f"in{i}:0": x for i, x in enumerate(self.x)}
            if op == "TopK":
                graph_def.node.add(op="Placeholder", name="k").attr["dtype"].type = tf.int32.as_datatype_enum
                node.input.append("k:0")
                mapped["k:0"] = tf.constant(case["attrs"]["k"]["int"], tf.int32)
            operation = tf.import_graph_def(graph_def, input_map=mapped, return_elements=["y"], name="op")[0]
        self.y = operation.outputs
        self.inputs = [i for i, x in enumerate(self.x) if trainable(x)]
        self.session = tf.compat.v1.Session(graph=self.graph, config=session.config())

    def feeds(self):
        return {x: value for i, (x, value) in enumerate(zip(self.x, self.values)) if i not in self.case["const_inputs"]}

    def gradients(self, outputs):
        """Gradients by the inputs, and the weights that were used; `None` where there is none."""
        with self.graph.as_default():
            given = [tf.constant(w) for w in self.weights(outputs)]
            return dense(tf.gradients([self.y[i] for i in outputs], [self.x[i] for i in self.inputs], given))

    def weights(self, outputs):
        described = [self.case["outputs"][i] for i in outputs]
        return [weights(y["dtype"], y["shape"], 17 * i) for i, y in zip(outputs, described)]

    def second(self, first):
        """Gradients of the sum of the gradients' products with weights, in the order of `inputs`."""
        there = [(i, dx) for i, dx in zip(self.inputs, first) if dx is not None]
        with self.graph.as_default():
            given = [tf.constant(weights(self.case["inputs"][i]["dtype"], self.case["inputs"][i]["shape"], 5 + i)) for i, _ in there]
            return dense(tf.gradients([dx for _, dx in there], [self.x[i] for i in self.inputs], given))

    def run(self, tensors):
        results = iter(self.session.run([t for t in tensors if t is not None], self.feeds()))
        return [None if t is None else next(results) for t in tensors]

    def differences(self, outputs, at):
        """The gradient by an input of reals in double precision, by central differences."""
        x, ws = self.values[at], self.weights(outputs)
        result = np.zeros(x.shape)
        feeds = self.feeds()
        fetches = [self.y[i] for i in outputs]
        for place in np.ndindex(x.shape):
            if not np.isfinite(x[place]):
                return np.full(x.shape, np.nan)
            step = 1e-6 * max(1.0, min(abs(x[place]), 1e100))
            ends = []
            for sign in (1, -1):
                moved = np.array(x)
                moved[place] += sign * step
                ys = self.session.run(fetches, feeds | {self.x[at]: moved})
                ends.append(sum(float(np.sum(np.real(np.conj(w) * y))) for w, y in zip(ws, ys)))
            result[place] = (ends[0] - ends[1]) / (2 * step)
        return result


def trainable(tensor):
    return tensor.dtype.is_floating or tensor.dtype.is_complex


def dense(gradients):
    return [None if g is None else tf.convert_to_tensor(g) for g in gradients]


def is_near(found, expected, tolerance):
    scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    return bool(np.all(np.isfinite(expected)) and np.max(np.abs(found - expected), initial=0.0) <= tolerance * scale)


def sums_of(run):
    """Which outputs are in a sum: the first alone, and all of them."""
    differentiable = [i for i, y in enumerate(run.y) if trainable(y) and run.case["outputs"][i].get("compare") != "shape"]
    return [differentiable[:1], *([differentiable] if len(differentiable) > 1 else [])] if differentiable else []


def lines_of(family, op, case, golden, arrays):
    """The lines of one case; its gradients are added to the arrays."""
    run = Run(op, case, golden)
    for outputs in sums_of(run):
        gradients = run.gradients(outputs)
        values = run.run(gradients)
        line = {"op": op, "family": family, "case": case["name"], "outputs": outputs, "inputs": run.inputs}
        prefix = f"{op}.{case['name']}." + "".join(map(str, outputs))
        line["zeros"] = [i for i, value in zip(run.inputs, values) if value is None]
        there = [(i, value) for i, value in zip(run.inputs, values) if value is not None]
        arrays.update({f"{prefix}.d{i}": value for i, value in there})
        is_double = [i for i, _ in there if case["inputs"][i]["dtype"] == "double" and i not in case["const_inputs"]]
        if case["outputs"][outputs[0]]["dtype"] in ("double", "complex128") and op != "RandomGamma":
            line["numeric"] = [i for i, value in there if i in is_double and is_near(run.differences(outputs, i), value, 1e-6)]
        if op in SECOND and there and len(outputs) == 1 and has_second(case):
            second = run.run(run.second(gradients))
            line["second"] = [i for i, value in zip(run.inputs, second) if value is not None]
            arrays.update({f"{prefix}.dd{i}": value for i, value in zip(run.inputs, second) if value is not None})
        yield line | {"tolerance": tolerance_of(op, case)}


def tolerance_of(op, case):
    kinds = {x["dtype"] for x in case["inputs"] + case["outputs"]}
    if kind_of(case) in SHORT:
        return SHORT_TOLERANCES[kind_of(case)]
    return 1e-4 if kinds & (SHORT | {"float", "complex64"}) else LOOSE.get(op, 1e-9)


def has_second(case):
    """Second gradients of poolings have no explicit paddings. Those of short types would compare roundings of roundings."""
    return kind_of(case) not in SHORT and case["attrs"].get("padding", {}).get("string") != "EXPLICIT"


def lines_of_op(family, op, arrays):
    """The lines of one op."""
    index = json.loads((HERE.parent / family / f"{op}.json").read_text())
    try:
        entry = tf_ops._gradient_registry.lookup(op)  # pylint: disable=protected-access
    except LookupError:
        return [{"op": op, "family": family, "absent": True}]
    if entry is None:
        return [{"op": op, "family": family, "none": True}]
    with np.load(HERE.parent / family / f"{op}.npz") as archive:
        golden = dict(archive)
    lines, refused = [], set()
    for case in chosen(op, index["cases"]):
        added = {}
        try:
            lines += list(lines_of(family, op, case, golden, added))
            arrays.update(added)
        except (LookupError, ValueError, TypeError, NotImplementedError, tf.errors.OpError) as error:
            refused.add(f"{case['name']}: {type(error).__name__}: {str(error).splitlines()[0][:150]}")
    for reason in sorted(refused):
        print(f"  {op} {reason}")
    if not lines:
        print(f"  {op}: no case")
    return lines


def main(families):
    entries, arrays = [], {}
    for family in families or FAMILIES:
        for path in sorted((HERE.parent / family).glob("*.json")):
            if path.stem in LEFT:
                continue
            lines = lines_of_op(family, path.stem, arrays)
            entries += lines
            if families:
                print(path.stem, [{k: v for k, v in line.items() if k not in ("op", "family")} for line in lines])
        print(f"{family}: {len(entries)} lines so far, {sum(a.nbytes for a in arrays.values())} bytes")
    if not families:
        store.write_npz(HERE / "gradients.npz", arrays)
        store.write_index(HERE / "index.json", {"tensorflow": tf.__version__}, "gradients", entries)


if __name__ == "__main__":
    main(sys.argv[1:])
