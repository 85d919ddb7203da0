"""Collecting the cases of one op, running them with TensorFlow, measuring it, writing the files."""

import math

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from . import session, store
from .data import COMPLEX, EPSILON, MANTISSA, MIN_EXPONENT, Quantised, dtype_name

EXACT = "exact"


def ulp(n):
    """Tolerance in units in the last place; signed zeros are equal."""
    return {"ulp": n}


class Case:
    """What one case asks; results are added when it has run."""

    def __init__(self, name, inputs, attrs, options):
        self.name = name
        self.inputs = [x if isinstance(x, Quantised) else np.asarray(x) for x in inputs]
        self.attrs = attrs
        self.tolerance = options.pop("tolerance", EXACT)
        self.const = list(options.pop("const", ()))
        self.reference = options.pop("reference", None)
        self.exact_terms = options.pop("terms", None)
        self.stepwise = options.pop("stepwise", False)
        self.worst = options.pop("worst", 8.0)
        self.run_as = options.pop("run_as", None)
        self.shape_only = options.pop("shape_only", ())
        self.notes = options
        self.outputs, self.sums, self.factors = [], [], []


class Suite:
    """All cases of one op. Placeholders have no shape, but where TensorFlow's shape function insists on one."""

    def __init__(self, folder, family, op, stand_in=None, known_shapes=False):
        """`stand_in`: the op that TensorFlow runs in place of one that it has removed; `run_as` of the cases says
        how."""
        self.runs = op_def_registry.get(stand_in or op)
        self.path = folder / family
        self.known_shapes = known_shapes
        self.op = op
        self.op_def = op_def_registry.get(op)
        self.cases, self.failures, self.names = [], [], set()

    def case(self, name, inputs, attrs=None, **options):
        """Adds a case. Options:

        tolerance   EXACT, ulp(n), or for sums None (see terms)
        const       indices of inputs that are constants in real graphs
        reference   function of the case giving, per output, the exact result (ULP tolerances) or a
                    pair of exact result and sum of absolute terms (sums); outputs after the last are exact
        terms       number of terms of a sum, from which its tolerance follows
        stepwise    TensorFlow rounds half and bfloat16 at each of them, not once at the end
        worst       how far TensorFlow may be from such a reference before the generator stops: 8 unless given
        run_as      for forms that TensorFlow's CPU refuses: function giving the inputs, attributes
                    and a function of the results that stand for this form
        shape_only  outputs whose contents TensorFlow leaves undefined
        reason, via notes for the index
        """
        self.add(self.cases, name, inputs, attrs, options)

    def error(self, name, inputs, attrs=None, const=()):
        """Adds an invalid form that TensorFlow must refuse."""
        self.add(self.failures, f"error_{name}", inputs, attrs, {"const": const})

    def add(self, cases, name, inputs, attrs, options):
        assert name not in self.names, f"{self.op}: {name} twice"
        self.names.add(name)
        cases.append(Case(name, inputs, dict(attrs or {}), options))

    def finish(self):
        """Runs everything and writes the two files; returns the number of cases."""
        self.run_cases()
        arrays, entries = {}, []
        for case in self.cases:
            self.measure(case)
            entries.append(self.entry(case, arrays))
        for case in self.failures:
            entry = self.failure_entry(case, arrays)
            if entry:
                entries.append(entry)
        self.path.mkdir(parents=True, exist_ok=True)
        store.write_npz(self.path / f"{self.op}.npz", arrays)
        head = {"op": self.op, "tensorflow": tf.__version__}
        store.write_index(self.path / f"{self.op}.json", head, "cases", entries)
        return len(entries)

    def graph(self, number, inputs, attrs, graph_def):
        """Adds one node with placeholders to a graph; returns its feeds and fetches."""
        node = graph_def.node.add(op=self.runs.name, name=f"case{number}")
        for name, (kind, value) in complete_attrs(self.runs, inputs, attrs).items():
            set_attr(node.attr[name], kind, value)
        feeds = {}
        for i, array in enumerate(inputs):
            name = f"in{number}_{i}"
            placeholder = graph_def.node.add(op="Placeholder", name=name)
            placeholder.attr["dtype"].type = tf.as_dtype(dtype_name(array)).as_datatype_enum
            if self.known_shapes:
                placeholder.attr["shape"].shape.CopyFrom(tf.TensorShape(describe_tensor(array)["shape"]).as_proto())
            else:
                placeholder.attr["shape"].shape.unknown_rank = True
            node.input.append(f"{name}:0")
            feeds[f"{name}:0"] = array
        return feeds, [f"case{number}:{i}" for i in range(output_count(self.runs, node.attr))]

    def run_cases(self):
        """One graph and one step for all valid cases."""
        graph_def, feeds, fetches = tf.compat.v1.GraphDef(), {}, []
        graph_def.versions.producer = tf.version.GRAPH_DEF_VERSION
        backs = []
        for number, case in enumerate(self.cases):
            inputs, attrs, back = (case.run_as or plain)(case)
            fed, fetched = self.graph(number, inputs, attrs, graph_def)
            feeds |= fed
            fetches.append(fetched)
            backs.append(back)
        flat = [f for fetched in fetches for f in fetched]
        try:
            silent = [f"case{number}" for number, fetched in enumerate(fetches) if not fetched]
            results = iter(session.run(graph_def, feeds, flat, silent))
        except (tf.errors.OpError, ValueError) as error:
            raise RuntimeError(f"{self.op}: a case that should be valid is refused: {error}") from error
        for case, fetched, back in zip(self.cases, fetches, backs):
            case.outputs = back([next(results) for _ in fetched])

    def measure(self, case):
        """Sets tolerances from how far TensorFlow itself is from the exact result."""
        if case.reference is None:
            return
        # Special values divide by zero and overflow in the reference as they do in the op.
        with np.errstate(all="ignore"):
            exact = case.reference(case)
            if case.exact_terms is None and any(dtype_name(x) in COMPLEX for x in case.outputs):
                return relate_to_modulus(case, exact)
            if case.exact_terms is None:
                deviation = max(map(ulps_off, case.outputs, exact), default=0.0)
                loosen_ulps(case, deviation)
                return
            case.sums = [both_parts(terms, got) for got, (_, terms) in zip(case.outputs, exact)]
            case.factors = [
                None if i in case.shape_only else sum_factor(case, got, terms_off(got, *pair))
                for i, (got, pair) in enumerate(zip(case.outputs, exact))
            ]
        case.tolerance = {"abs_terms": max(filter(None, case.factors))}
        case.notes.setdefault("reason", f"sum of {case.exact_terms} terms in any order")

    def entry(self, case, arrays):
        """The case's line of the index; its arrays are added to the archive."""
        line = self.describe(case, arrays)
        line["outputs"] = []
        for i, output in enumerate(case.outputs):
            described = describe_tensor(output)
            if i in case.shape_only:
                described["compare"] = "shape"
            else:
                arrays[f"{case.name}.out{i}"] = output
                if len(set(filter(None, case.factors))) > 1:
                    described["tolerance"] = {"abs_terms": case.factors[i]}
                elif case.sums and i >= len(case.sums):
                    described["tolerance"] = EXACT
            line["outputs"].append(described)
        for i, terms in enumerate(case.sums):
            if i not in case.shape_only:
                arrays[f"{case.name}.abs{i}"] = terms
        return line | {"const_inputs": case.const, "tolerance": case.tolerance} | case.notes

    def failure_entry(self, case, arrays):
        """The line of a refused case, or None where TensorFlow accepts it or lacks the form."""
        graph_def = tf.compat.v1.GraphDef()
        graph_def.versions.producer = tf.version.GRAPH_DEF_VERSION
        feeds, fetches = self.graph(0, case.inputs, case.attrs, graph_def)
        code, message = session.error_code(graph_def, feeds, fetches or ["case0"])
        if code is None or code in ("NOT_FOUND", "INTERNAL"):
            print(f"  dropped {self.op} {case.name}: {code} {(message or '')[:160]}")
            return None
        line = self.describe(case, arrays)
        return line | {"outputs": [], "const_inputs": case.const, "error": code}

    def describe(self, case, arrays):
        """Name, attributes and inputs of a line of the index."""
        attrs = {}
        for name, (kind, value) in complete_attrs(self.op_def, case.inputs, case.attrs).items():
            if kind == "tensor":
                arrays[f"{case.name}.{name}"] = value
                value = f"{case.name}.{name}"
            attrs[name] = {kind: value}
        for i, array in enumerate(case.inputs):
            arrays[f"{case.name}.in{i}"] = array
        return {"name": case.name, "attrs": attrs, "inputs": [describe_tensor(x) for x in case.inputs]}


def plain(case):
    """The form in which most cases run: as they are."""
    return case.inputs, case.attrs, lambda results: results


def describe_tensor(array):
    """dtype and shape as the index has them."""
    values = array.values if isinstance(array, Quantised) else np.asarray(array)
    return {"dtype": dtype_name(array), "shape": list(values.shape)}


def complete_attrs(op_def, inputs, given):
    """Every attribute of the op as (kind, value): given, inferred from the inputs, or the default."""
    found, position = {}, 0
    for arg in op_def.input_arg:
        count = 1
        if arg.number_attr:
            count = given.get(arg.number_attr, len(inputs) - len(op_def.input_arg) + 1)
            found[arg.number_attr] = count
        if arg.type_list_attr:
            types = given.get(arg.type_list_attr)
            count = len(inputs) - len(op_def.input_arg) + 1 if types is None else len(types)
            found[arg.type_list_attr] = [dtype_name(x) for x in inputs[position : position + count]]
        if arg.type_attr and position < len(inputs):
            found.setdefault(arg.type_attr, dtype_name(inputs[position]))
        position += count
    result = {}
    for attr in op_def.attr:
        if attr.name in given:
            value = given[attr.name]
        elif attr.name in found:
            value = found[attr.name]
        else:
            value = default_value(attr)
        result[attr.name] = (attr.type, value)
    return result


def default_value(attr):
    """An attribute's default as a Python value."""
    assert attr.HasField("default_value"), attr.name
    value = attr.default_value
    return {
        "bool": lambda: value.b,
        "int": lambda: value.i,
        "float": lambda: value.f,
        "string": lambda: value.s.decode(),
        "type": lambda: graph_name(value.type),
        "list(int)": lambda: list(value.list.i),
        "list(float)": lambda: list(value.list.f),
        "list(string)": lambda: [item.decode() for item in value.list.s],
        "list(type)": lambda: [graph_name(item) for item in value.list.type],
        "list(shape)": lambda: [[d.size for d in item.dim] for item in value.list.shape],
        "shape": lambda: None if value.shape.unknown_rank else [d.size for d in value.shape.dim],
    }[attr.type]()


def graph_name(enum):
    """A dtype's name in an OpDef, where float32 is "float"."""
    name = tf.as_dtype(enum).name
    return {"float32": "float", "float64": "double", "float16": "half"}.get(name, name)


# Lists whose items are plain: the field of an AttrValue's list, and what makes an item of it.
LISTS = {
    "list(int)": ("i", int),
    "list(float)": ("f", float),
    "list(string)": ("s", str.encode),
    "list(type)": ("type", lambda name: tf.as_dtype(name).as_datatype_enum),
}


def output_count(op_def, attrs):
    """How many tensors a node gives."""

    def count(arg):
        if arg.number_attr:
            return attrs[arg.number_attr].i
        return len(attrs[arg.type_list_attr].list.type) if arg.type_list_attr else 1

    return sum(map(count, op_def.output_arg))


def set_attr(attr, kind, value):
    """Fills an AttrValue."""
    if kind == "type":
        attr.type = tf.as_dtype(value).as_datatype_enum
    elif kind in LISTS:
        attr.list.SetInParent()
        field, convert = LISTS[kind]
        getattr(attr.list, field).extend(map(convert, value))
    elif kind == "list(shape)":
        attr.list.SetInParent()
        for shape in value:
            attr.list.shape.add().CopyFrom(tf.TensorShape(shape).as_proto())
    elif kind == "shape":
        attr.shape.SetInParent()
        if value is None:
            attr.shape.unknown_rank = True
        else:
            for size in value:
                attr.shape.dim.add(size=size)
    elif kind == "tensor":
        attr.tensor.CopyFrom(tensor_proto(value))
    else:
        field = {"int": "i", "float": "f", "bool": "b", "string": "s"}[kind]
        setattr(attr, field, value.encode() if kind == "string" else value)


def tensor_proto(value):
    """A TensorProto of an array."""
    if isinstance(value, Quantised):
        proto = tf.make_tensor_proto(value.values)
        proto.dtype = tf.as_dtype(value.name).as_datatype_enum
        return proto
    if value.dtype.kind == "S":
        return tf.make_tensor_proto(value.astype(object), tf.string, value.shape)
    return tf.make_tensor_proto(value, shape=value.shape)


def ulps_off(got, exact):
    """Largest distance of finite results from the exact ones, in ULPs at the exact result."""
    dtype = dtype_name(got)
    got = np.asarray(got).astype(np.longdouble)
    exact = np.asarray(exact, np.longdouble)
    usable = np.isfinite(got) & np.isfinite(exact)
    if not usable.any():
        return 0.0
    got, exact = got[usable], exact[usable]
    _, exponent = np.frexp(exact)
    exponent = np.maximum(exponent - 1, MIN_EXPONENT[dtype])
    return float(np.max(np.abs(got - exact) / np.ldexp(np.longdouble(1), exponent - MANTISSA[dtype])))


def loosen_ulps(case, deviation):
    """A correct kernel may err by the wanted ULPs on one side and TensorFlow on the other."""
    allowed = max(case.tolerance["ulp"], math.ceil(deviation) + 1)
    if allowed > case.tolerance["ulp"]:
        case.notes["reason"] = f"TensorFlow itself is {deviation:.2f} ULP from the exact result"
    case.tolerance = ulp(allowed)


def relate_to_modulus(case, exact):
    """Complex results are compared part by part, with the modulus as the measure of both parts' errors."""
    case.sums = [np.abs(values) for values in exact]
    deviation = max(map(terms_off, case.outputs, exact, case.sums), default=0.0)
    allowed = max(case.tolerance["ulp"], math.ceil(deviation) + 1)
    if allowed > case.tolerance["ulp"]:
        case.notes["reason"] = f"TensorFlow itself is {deviation:.2f} epsilon of the modulus from the exact result"
    case.notes.setdefault("reason", "in units of epsilon times the modulus")
    case.sums = [both_parts(terms, got) for terms, got in zip(case.sums, case.outputs)]
    case.tolerance = {"abs_terms": allowed}


def both_parts(terms, output):
    """The terms as the index has them: once for each part of a complex output."""
    terms = np.asarray(terms, np.float64)
    return np.stack([terms, terms], -1) if dtype_name(output) in COMPLEX else terms


def terms_off(got, exact, terms):
    """Largest distance from the exact sum in units of epsilon times the absolute terms."""
    dtype = dtype_name(got)
    epsilon, wide = EPSILON[dtype], np.complex128 if dtype in COMPLEX else np.float64
    got, exact = np.asarray(got).astype(wide), np.asarray(exact).astype(wide)
    usable = np.isfinite(got) & np.isfinite(exact) & (np.asarray(terms) > 0)
    if not usable.any():
        return 0.0
    return float(np.max((np.abs(got - exact) / (epsilon * np.asarray(terms)))[usable]))


def sum_factor(case, output, deviation):
    """What a sensible kernel needs, plus how far TensorFlow itself is from the exact result.

    Accumulating k terms in the result's own precision errs by about sqrt(k) roundings; half and
    bfloat16 accumulate in float and round once.
    """
    short = dtype_name(output) in ("half", "bfloat16")
    each = 2.0 * math.sqrt(max(case.exact_terms, 1)) + 2.0
    own = 2.0 if short else each
    # More than this is no rounding: the reference or the op's contract is misunderstood.
    limit = max(case.worst, each if case.stepwise else own)
    assert deviation <= limit, f"{case.name}: {deviation} from the exact sum"
    if deviation > max(8.0, own):
        print(f"  {case.name}: TensorFlow is {deviation:.1f} units from the exact value")
    return math.ceil(2 * (own + deviation)) / 2
