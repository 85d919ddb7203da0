"""Rules of optimisers: variables after the first and the last of 20 updates, whole and by rows, by handle and by reference."""

import zlib

import numpy as np
import tensorflow as tf

from harness import case

tf1 = tf.compat.v1
raw = tf.raw_ops

# Rows of 11 have a packet of eight and a rest, which TensorFlow computes otherwise in 16-bit types.
STEPS, SHAPE, ROWS, UNEVEN = 20, (5, 8), (5,), (5, 11)
REAL, COMPLEX = ["half", "bfloat16", "float", "double"], ["complex64", "complex128"]
# How the results of a rule may differ, and why.
EXACT = "exact"
ROOT = "TensorFlow approximates the reciprocal of a root of a float by an instruction that differs between processors"
POWER = "powers and exponentials are within some units in the last place"
DIVISION = "products, quotients and roots of complex numbers are rounded in another order"
TOLERANCES = {
    "exact": EXACT,
    "wide": {"absolute": 3e-6, "relative": 3e-6},
    "half": {"absolute": 4e-3, "relative": 4e-3},
    "bfloat16": {"absolute": 4e-2, "relative": 4e-2},
    "complex": {"absolute": 1e-5, "relative": 1e-5},
}


class Rule:
    """A rule: its slots with their first values, its scalars, attributes to vary, and why it may not be exact."""

    def __init__(self, slots, scalars, flags=(), types=REAL + COMPLEX, gradient="grad", why=None, why_rows=None):
        self.slots, self.scalars, self.flags, self.types = slots, scalars, flags or [{}], types
        self.gradient, self.why, self.why_rows = gradient, why, why_rows or why


NESTEROV = [{"use_nesterov": False}, {"use_nesterov": True}]
SLOTS = [{"update_slots": True}, {"update_slots": False}]
MULTIPLY = [{"multiply_linear_by_lr": False}, {"multiply_linear_by_lr": True}]
ADAM = {"beta1_power": 0.9, "beta2_power": 0.99, "lr": 0.05, "beta1": 0.9, "beta2": 0.99, "epsilon": 0.001}
RMS = {"lr": 0.05, "rho": 0.9, "momentum": 0.5, "epsilon": 0.01}
FTRL = {"lr": 0.5, "l1": 0.25, "l2": 0.125}
RULES = {
    "GradientDescent": Rule({}, {"alpha": 0.05}, gradient="delta"),
    "Momentum": Rule({"accum": 0}, {"lr": 0.05, "momentum": 0.9}, NESTEROV),
    "KerasMomentum": Rule({"accum": 0}, {"lr": 0.05, "momentum": 0.9}, NESTEROV),
    "Adagrad": Rule({"accum": 0.1}, {"lr": 0.05}, SLOTS, why=ROOT),
    "AdagradV2": Rule({"accum": 0.1}, {"lr": 0.05, "epsilon": 0.01}, SLOTS),
    "AdagradDA": Rule({"gradient_accumulator": 0, "gradient_squared_accumulator": 0.1},
                      {"lr": 0.05, "l1": 0.01, "l2": 0.02}, types=["float", "double"]),
    "Adadelta": Rule({"accum": 0.1, "accum_update": 0.2}, {"lr": 0.5, "rho": 0.9, "epsilon": 0.01}, why=ROOT),
    "RMSProp": Rule({"ms": 1, "mom": 0}, RMS, why_rows=ROOT),
    "CenteredRMSProp": Rule({"mg": 0, "ms": 1, "mom": 0}, RMS, why_rows=ROOT),
    "Adam": Rule({"m": 0, "v": 0.1}, ADAM, NESTEROV),
    "AdamWithAmsgrad": Rule({"m": 0, "v": 0.1, "vhat": 0.2}, ADAM, types=REAL),
    "AdaMax": Rule({"m": 0, "v": 0.1}, {key: ADAM[key] for key in ADAM if key != "beta2_power"},
                   types=["half", "float", "double"]),
    "AddSign": Rule({"m": 0}, {"lr": 0.05, "alpha": 1, "sign_decay": 0.5, "beta": 0.9}, types=REAL),
    "PowerSign": Rule({"m": 0}, {"lr": 0.05, "logbase": 1, "sign_decay": 0.5, "beta": 0.9}, types=REAL, why=POWER),
    "Ftrl": Rule({"accum": 0.1, "linear": 0}, FTRL | {"lr_power": -0.5}, MULTIPLY, types=REAL),
    "FtrlV2": Rule({"accum": 0.1, "linear": 0}, FTRL | {"l2_shrinkage": 0.0625, "lr_power": -0.5}, MULTIPLY,
                   types=REAL),
    "ProximalGradientDescent": Rule({}, {"alpha": 0.05, "l1": 0.25, "l2": 0.125}, types=["float", "double"],
                                    gradient="delta"),
    "ProximalAdagrad": Rule({"accum": 0.1}, {"lr": 0.05, "l1": 0.25, "l2": 0.125}, types=["float", "double"], why=ROOT),
}
# Ftrl with another power, as a rule of its own: its name in cases, and what differs.
POWERED = Rule({"accum": 0.1, "linear": 0}, FTRL | {"lr_power": -0.75}, MULTIPLY, types=REAL, why=POWER)


def numbers(name, shape):
    """Normally distributed numbers that float16 has, seeded by a name."""
    seeded = np.random.RandomState(zlib.crc32(name.encode()))
    return np.float32(np.float16(seeded.standard_normal(shape)))


class Variables:
    """The variables that an update takes, and what gives them their first values."""

    def __init__(self, kind, dtype, first):
        self.start, self.inputs, self.values = [], {}, []
        for argument, value in first.items():
            if kind == "resource":
                own = tf1.get_default_graph().unique_name("variable")
                handle = raw.VarHandleOp(dtype=dtype, shape=value.shape, shared_name=own)
                self.start.append(raw.AssignVariableOp(resource=handle, value=tf.cast(value, dtype), name="set"))
                self.inputs[argument] = handle
            else:
                reference = raw.VariableV2(shape=value.shape, dtype=dtype)
                self.start.append(raw.Assign(ref=reference, value=tf.cast(value, dtype)).op)
                self.inputs[argument] = reference
        for variable in self.inputs.values():
            by_handle = kind == "resource"
            self.values.append(raw.ReadVariableOp(resource=variable, dtype=dtype) if by_handle else tf.identity(variable))


def gradients_of(name, sparse, shape, is_complex):
    """The gradients of all steps, as a constant."""
    of_step = (3,) + shape[1:] if sparse else shape
    real = numbers(f"{name}{shape}", (STEPS,) + of_step)
    return tf.constant(real + 1j * numbers(f"{name}{shape}i", real.shape) if is_complex else real)


def updates(op, rule, kind, sparse, dtype, at, first, gradients):
    """For each variant of a rule: what starts it, what updates it, and the variables together."""
    for flags in rule.flags:
        slots = {slot: np.full(first.shape, value, np.float32) for slot, value in rule.slots.items()}
        made = Variables(kind, dtype, {"var": first} | slots)
        options = {key: tf.cast(value, dtype) for key, value in rule.scalars.items()} | flags
        options["grad" if sparse else rule.gradient] = tf.cast(tf.gather(gradients, at), dtype)
        if sparse:
            rows = np.random.RandomState(7).randint(0, first.shape[0], (STEPS, 3))
            options["indices"] = tf.gather(tf.constant(rows, tf.int32 if dtype in ("float", "half") else tf.int64), at)
        if "AdagradDA" in op:
            options["global_step"] = tf.cast(at + 1, tf.int64)
        update = getattr(raw, op)(**made.inputs, **options)
        yield made.start, update if isinstance(update, tf.Operation) else update.op, tf.stack(made.values)


def trajectory(address, log, op, rule, kind, sparse, types):
    counter = raw.VarHandleOp(dtype=tf.int32, shape=[], shared_name=tf1.get_default_graph().unique_name("counter"))
    at = raw.ReadVariableOp(resource=counter, dtype=tf.int32)
    start, update, values = [raw.AssignVariableOp(resource=counter, value=0)], [], []
    name = op.removeprefix("Resource")
    uneven = [UNEVEN] if (rule.why_rows if sparse else rule.why) == ROOT else []
    for shape in [SHAPE] + [ROWS] * sparse + uneven:
        gradients = gradients_of(name, sparse, shape, types[0] in COMPLEX)
        for dtype in types:
            for made in updates(op, rule, kind, sparse, dtype, at, numbers(f"{name}{shape}first", shape), gradients):
                start, update, values = start + made[0], update + [made[1]], values + [made[2]]
    start = tf.group(*start, name="start")
    with tf.control_dependencies(update):
        update = raw.AssignAddVariableOp(resource=counter, value=1, name="step")
    with tf1.Session(address) as session:
        session.run(start)
        for step in range(STEPS):
            session.run(update)
            if step + 1 in (1, STEPS):
                log.value(f"after {step + 1}", session.run(values))


def classes(rule, why, types):
    """The types of a rule by the tolerance that they need."""
    real = [dtype for dtype in types if dtype in REAL]
    complexes = [dtype for dtype in types if dtype in COMPLEX]
    if why is None:
        yield "exact", real, None
    else:
        yield "wide", [dtype for dtype in real if dtype in ("float", "double")], why
        # The root of a 16-bit type is computed in float and rounded, which hides the instruction.
        if why == ROOT:
            yield "exact", [dtype for dtype in real if dtype in ("half", "bfloat16")], None
        else:
            yield "half", [dtype for dtype in real if dtype == "half"], why
            yield "bfloat16", [dtype for dtype in real if dtype == "bfloat16"], why
    yield "complex", complexes, DIVISION


def each_rule():
    named = [(name, name, rule) for name, rule in RULES.items()]
    named += [("Ftrl", "FtrlPowered", POWERED)]
    for op, name, rule in named:
        for sparse in (False, True):
            for kind in ("reference", "resource"):
                full = ("Resource" if kind == "resource" else "") + ("Sparse" if sparse else "") + "Apply" + op
                if not hasattr(raw, full):
                    continue
                without = ["bfloat16"] if sparse and "RMSProp" in op else []
                types = [dtype for dtype in rule.types if dtype not in without]
                for tolerance, some, why in classes(rule, rule.why_rows if sparse else rule.why, types):
                    if not some:
                        continue

                    def run(address, log, full=full, rule=rule, kind=kind, sparse=sparse, some=some):
                        trajectory(address, log, full, rule, kind, sparse, some)
                    words = "sparse" if sparse else "dense"
                    run.__name__ = f"{name}_{words}_{kind}_{tolerance}".lower()
                    run.__doc__ = f"{full} of {', '.join(some)}"
                    run.tolerance = TOLERANCES[tolerance]
                    run.reason = why
                    case(run)


each_rule()
