"""_FusedElementwise: programs of standard ops, which TensorFlow runs one by one in the type of the elements."""

import math

import numpy as np
import tensorflow as tf

from .composed import ComposedSuite
from .data import FLOATS, array, normal, seeded, small, specials
from .suite import EXACT, ulp

VIA = "composition"
TYPES = FLOATS + ["int32", "int64"]
SAME = ((3, 5), (3, 5))


def parsed(program):
    """Instructions as an op's name and its operands."""
    return [(name, operands) for name, *operands in (text.split() for text in program.split(";"))]


def compose(inputs, attrs):
    values = {f"i{at}": x for at, x in enumerate(inputs)}
    for at, (name, operands) in enumerate(parsed(attrs["program"])):
        op, args = getattr(tf.raw_ops, name), [values[operand] for operand in operands]
        names = ("x", "y") if len(args) == 2 else ("features",) if name in FEATURES else ("x",)
        values[f"%{at}"] = op(**dict(zip(names, args)))
    return values[f"%{at}"]


FEATURES = ("Elu", "Relu", "Relu6", "Softplus")
EXACT_OPS = {
    "Abs": np.abs,
    "AddV2": np.add,
    "Ceil": np.ceil,
    "Div": np.divide,
    "Elu": lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x),
    "Erf": np.vectorize(math.erf, otypes=[np.longdouble]),
    "Exp": np.exp,
    "Floor": np.floor,
    "Log": np.log,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Mul": np.multiply,
    "Neg": np.negative,
    "RealDiv": np.divide,
    "Relu": lambda x: np.maximum(x, 0),
    "Relu6": lambda x: np.minimum(np.maximum(x, 0), 6),
    "Rsqrt": lambda x: 1 / np.sqrt(x),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Softplus": lambda x: np.logaddexp(x, 0),
    "Sqrt": np.sqrt,
    "Square": np.square,
    "SquaredDifference": lambda x, y: np.square(x - y),
    "Sub": np.subtract,
    "Tanh": np.tanh,
}


def exact(case):
    """Every result but the last is rounded to the type of the elements."""
    values = {f"i{at}": x.astype(np.longdouble) for at, x in enumerate(case.inputs)}
    for at, (name, operands) in enumerate(parsed(case.attrs["program"])):
        result = EXACT_OPS[name](*(values[operand] for operand in operands))
        values[f"%{at}"] = result.astype(case.inputs[0].dtype).astype(np.longdouble)
    return [result]


PROGRAMS = {  # label: (program, shapes of the inputs)
    "sum": ("AddV2 i0 i1; Relu %0", SAME),
    "affine": ("Mul i0 i1; AddV2 %0 i2", ((3, 5), (5,), ())),
    "tree": ("AddV2 i0 i1; Sub i0 i1; Mul %0 %1; Neg %2", ((7,), (7,))),
    "alone": ("Abs i0; Square %0", ((2, 3, 5),)),
    "ends": ("Maximum i0 i1; Minimum %0 i2; Relu6 %1", (*SAME, ())),
    "difference": ("Sub i0 i1; SquaredDifference %0 i1", ((3, 5), (5,))),
    "scalars": ("AddV2 i0 i1; Mul %0 i0", ((), ())),
    "empty": ("AddV2 i0 i1; Relu %0", ((0, 3), (3,))),
}
# Of floating-point numbers alone.
FUNCTIONS = {
    "swish": ("Sigmoid i0; Mul i0 %0", ((3, 5),)),
    "root": ("Square i0; AddV2 %0 i1; Rsqrt %1; Mul i0 %2", ((3, 5), ())),
    "quotient": ("Abs i0; Sqrt %0; Floor i1; Ceil i1; Sub %3 %2; AddV2 %1 %4; RealDiv i1 %5", SAME),
    "ratio": ("Square i1; Div i0 %0", SAME),
    "log": ("Abs i0; AddV2 %0 i1; Abs %1; Log %2", ((3, 5), (5,))),
    **{name.lower(): (f"AddV2 i0 i1; {name} %0", ((3, 5), (5,))) for name in ("Elu", "Erf", "Exp", "Softplus", "Tanh")},
}
LONG = {"long": ("Mul i0 i1; AddV2 %0 i2; Relu %1; Sub %2 i0; Square %3", ((1031,), (1031,), ()))}


def drawn(rng, dtype, shape):
    return normal(rng, dtype, shape) if dtype in FLOATS else small(rng, dtype, shape, -99, 100)


def compared(dtype, label):
    """Where each op rounds once there is one result; TensorFlow rounds the difference before it is squared."""
    if dtype not in FLOATS:
        return {"tolerance": EXACT}
    if label in FUNCTIONS or label == "difference":
        return {"tolerance": ulp(2), "reference": exact}
    return {"tolerance": ulp(0)}


def program_case(suite, dtype, label, program, inputs, **options):
    attrs = {"N": len(inputs), "program": program}
    suite.case(f"{dtype}_{label}", inputs, attrs, via=VIA, **options)


class ProgramSuite(ComposedSuite):
    """Nothing is widened: each result is rounded, as the op by itself does."""

    def __init__(self, folder):
        super().__init__(folder, "_FusedElementwise", ["inputs: N * T"], {"program": ("string", None)}, compose)

    @staticmethod
    def widened(x):
        return x


def elementwise(folder):
    """_FusedElementwise."""
    suite = ProgramSuite(folder)
    for dtype in TYPES:
        programs = PROGRAMS | (FUNCTIONS if dtype in FLOATS else {}) | (LONG if dtype == "float" else {})
        for label, (program, shapes) in programs.items():
            inputs = [drawn(seeded(suite.op, dtype, label, at), dtype, shape) for at, shape in enumerate(shapes)]
            program_case(suite, dtype, label, program, inputs, **compared(dtype, label))
    for dtype in FLOATS:
        x = specials(dtype)
        inputs = [x, x[::-1].copy(), array(0.5, dtype)]
        program_case(suite, dtype, "special", "Maximum i0 i1; Relu %0; Mul %1 i2; Neg %2", inputs, tolerance=ulp(0))
    yield suite.finish()


GROUPS = [elementwise]
