"""Training by TensorFlow: losses, variables and slots of ten steps with each optimiser; rates of schedules; clipped
gradients; moving averages. `python generate.py` writes training.json beside this file."""

import json
import os
import pathlib

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
STEPS = 10
TYPES = {"float": tf.float32, "double": tf.float64}

X = np.array([[0.5, -1.0, 0.25], [1.5, 0.75, -0.5], [-0.25, 0.5, 1.0], [2.0, -0.5, 0.125]])
Y = np.array([[0.5, -0.25], [-0.75, 0.5], [0.25, 1.0], [-0.5, 0.125]])
W = np.array([[0.25, -0.5], [0.75, 0.125], [-0.375, 1.0]])
B = np.array([0.125, -0.0625])
E = np.array([[0.5, -0.25], [1.0, 0.75], [-0.5, 0.25], [0.125, -1.0], [0.375, 0.625]])
V = np.array([[0.5, -0.75], [0.25, 1.0]])
IDS = [[1, 3, 1, 0], [2, 2, 2, 2], [4, 0, 1, 3], [3, 3, 0, 0]]


def ids(step):
    return IDS[step % len(IDS)]


def values(dtype):
    """The initial values of the variables of each model."""
    cast = lambda array: array.astype(dtype.as_numpy_dtype)
    return {"dense": {"w": cast(W), "b": cast(B)}, "sparse": {"e": cast(E), "v": cast(V)}}


def loss_of(model, variables, dtype, indices):
    y = tf.constant(Y, dtype)
    if model == "dense":
        out = tf.tanh(tf.matmul(tf.constant(X, dtype), variables["w"]) + variables["b"])
    else:
        out = tf.matmul(tf.gather(variables["e"], indices), variables["v"])
    return tf.reduce_mean(tf.square(out - y))


def listed(array):
    array = np.asarray(array)
    assert np.isfinite(array).all(), array
    return [float(value) for value in array.reshape(-1)]


def by_v1(make, model, dtype):
    """Losses and all variables, by a graph."""
    with tf.Graph().as_default(), v1.Session() as session:
        indices = v1.placeholder(tf.int32, [None])
        initial = values(dtype)[model]
        variables = {name: v1.get_variable(name, initializer=value, use_resource=True) for name, value in initial.items()}
        step = v1.train.get_or_create_global_step()
        loss = loss_of(model, variables, dtype, indices)
        train = make(dtype).minimize(loss, global_step=step)
        session.run(v1.global_variables_initializer())
        losses = []
        for at in range(STEPS):
            # In one step, the loss might be of variables that are already updated.
            losses.append(session.run(loss, {indices: ids(at)}))
            session.run(train, {indices: ids(at)})
        found = {variable.op.name: variable for variable in v1.global_variables()}
        return listed(losses), {name: listed(session.run(variable)) for name, variable in sorted(found.items())}


def by_keras(make, model, dtype, slots):
    """Losses, variables and slots, in eager mode."""
    variables = {name: tf.Variable(value, name=name) for name, value in values(dtype)[model].items()}
    trained = list(variables.values())
    optimizer = make()
    losses = []
    for at in range(STEPS):
        with tf.GradientTape() as tape:
            loss = loss_of(model, variables, dtype, tf.constant(ids(at)))
        losses.append(loss.numpy())
        # Keras does not add slices of one index up before it squares them; as tensors, they are added up.
        gradients = [tf.convert_to_tensor(gradient) for gradient in tape.gradient(loss, trained)]
        optimizer.apply_gradients(zip(gradients, trained))
    found = {name: listed(variable) for name, variable in variables.items()}
    for attribute, end in slots.items():
        for name, slot in zip(variables, getattr(optimizer, attribute)):
            found[f"{name}/{end}"] = listed(slot)
    return listed(losses), found


def number(value, dtype):
    """A hyperparameter, which TensorFlow would otherwise round to a float."""
    return tf.constant(value, dtype)


train = v1.train
keras = tf.keras.optimizers
V1 = {
    "gradient_descent": lambda t: train.GradientDescentOptimizer(number(0.1, t)),
    "momentum": lambda t: train.MomentumOptimizer(number(0.1, t), number(0.9, t)),
    "nesterov": lambda t: train.MomentumOptimizer(number(0.1, t), number(0.9, t), use_nesterov=True),
    "adagrad": lambda t: train.AdagradOptimizer(number(0.1, t)),
    "rms_prop": lambda t: train.RMSPropOptimizer(number(0.01, t), number(0.9, t), number(0.5, t), number(1e-10, t)),
    "rms_prop_centered": lambda t: train.RMSPropOptimizer(
        number(0.01, t), number(0.9, t), number(0.5, t), number(1e-5, t), centered=True),
    "adam": lambda t: train.AdamOptimizer(number(0.01, t), number(0.9, t), number(0.999, t), number(1e-8, t)),
    "adadelta": lambda t: train.AdadeltaOptimizer(number(1.0, t), number(0.95, t), number(1e-6, t)),
    # Its constructor compares its arguments, so these are exact in float.
    "ftrl": lambda t: train.FtrlOptimizer(
        0.125, initial_accumulator_value=0.125, l1_regularization_strength=0.0078125, l2_regularization_strength=0.015625),
    "ftrl_power": lambda t: train.FtrlOptimizer(0.125, learning_rate_power=-0.25, initial_accumulator_value=0.125),
    "ftrl_shrinkage": lambda t: train.FtrlOptimizer(
        0.125, initial_accumulator_value=0.125, l2_shrinkage_regularization_strength=0.0625),
    "ftrl_beta": lambda t: train.FtrlOptimizer(0.125, initial_accumulator_value=0.125, beta=0.25),
    "scheduled": lambda t: train.MomentumOptimizer(
        train.exponential_decay(number(0.1, t), train.get_global_step(), 3, 0.5), number(0.9, t)),
}

# Keras rounds its numbers to floats, so these are exact.
BETAS = {"beta_1": 0.875, "beta_2": 0.96875, "epsilon": 2.0**-20}
MOMENTS = {"_momentums": "Adam", "_velocities": "Adam_1"}
KERAS = {
    "keras_sgd": (lambda: keras.SGD(0.125), {}),
    "keras_nesterov": (lambda: keras.SGD(0.125, momentum=0.875, nesterov=True), {}),
    "keras_adam": (lambda: keras.Adam(0.0078125, **BETAS), MOMENTS),
    "keras_amsgrad": (
        lambda: keras.Adam(0.0078125, amsgrad=True, **BETAS), {**MOMENTS, "_velocity_hats": "Adam_2"}),
    "keras_adamw": (
        lambda: keras.AdamW(0.0078125, weight_decay=0.0625, **BETAS),
        {"_momentums": "AdamW", "_velocities": "AdamW_1"}),
    "keras_adamax": (lambda: keras.Adamax(0.0078125, **BETAS), {"_m": "Adamax", "_u": "Adamax_1"}),
}


def optimizers():
    cases = []
    for dtype_name, dtype in TYPES.items():
        for model in ("dense", "sparse"):
            runs = [(name, lambda make=make: by_v1(make, model, dtype)) for name, make in V1.items()]
            runs += [
                (name, lambda make=make, slots=slots: by_keras(make, model, dtype, slots))
                for name, (make, slots) in KERAS.items()
                # Of a tensor, the momentum of all rows decays; for slices, v1 has an op for rows.
                if (name, model) != ("keras_nesterov", "sparse")
            ]
            for name, run in runs:
                losses, found = run()
                cases.append(dict(name=name, model=model, dtype=dtype_name, losses=losses, variables=found))
    return cases


def schedules():
    """The rates of the steps 0 to 13."""
    one = lambda name, make: (name, make)
    makes = [
        one("exponential", lambda r, s: train.exponential_decay(r(0.1), s, 4, r(0.5))),
        one("exponential_stairs", lambda r, s: train.exponential_decay(r(0.1), s, 4, r(0.5), staircase=True)),
        one("natural", lambda r, s: train.natural_exp_decay(r(0.1), s, 4, r(0.5))),
        one("inverse_time", lambda r, s: train.inverse_time_decay(r(0.1), s, 4, r(0.5))),
        one("inverse_time_stairs", lambda r, s: train.inverse_time_decay(r(0.1), s, 4, r(0.5), staircase=True)),
        one("piecewise", lambda r, s: train.piecewise_constant(s, [3, 7], [r(0.1), r(0.01), r(0.001)])),
        one("polynomial", lambda r, s: train.polynomial_decay(r(0.1), s, 8, r(0.01), r(2.0))),
        one("polynomial_cycle", lambda r, s: train.polynomial_decay(r(0.1), s, 5, r(0.01), r(1.0), cycle=True)),
        one("cosine", lambda r, s: train.cosine_decay(r(0.1), s, 10, 0.125)),
        one("restarts", lambda r, s: train.cosine_decay_restarts(r(0.1), s, 3, 2.0, 0.5, 0.125)),
        one("restarts_equal", lambda r, s: train.cosine_decay_restarts(r(0.1), s, 5, 1.0, 0.5, 0.0)),
    ]
    cases = []
    for dtype_name, dtype in TYPES.items():
        for name, make in makes:
            if dtype == tf.float64 and name in ("polynomial_cycle", "cosine", "restarts", "restarts_equal"):
                continue  # TensorFlow mixes types there.
            with tf.Graph().as_default(), v1.Session() as session:
                step = v1.placeholder(tf.int64, [])
                rate = make(lambda value: number(value, dtype), step)
                rates = [session.run(rate, {step: at}) for at in range(14)]
                cases.append(dict(name=name, dtype=dtype_name, rates=listed(rates)))
    warm = keras.schedules.CosineDecay(0.0, 8, alpha=0.125, warmup_target=0.5, warmup_steps=4)
    cases.append(dict(name="warmup", dtype="float", rates=listed([warm(at) for at in range(14)])))
    return cases


def clips():
    """A tensor and slices, with what is left of them."""
    tensor, slices = np.array([[3.0, -4.0, 0.5], [0.0, 1.25, -2.0]]), np.array([[1.0, -2.0], [0.25, 4.0]])
    cases = []
    for dtype_name, dtype in TYPES.items():
        t, s = tf.constant(tensor, dtype), tf.constant(slices, dtype)
        of = {
            "by_value": lambda x: tf.clip_by_value(x, number(-1.0, dtype), number(2.0, dtype)),
            "by_norm": lambda x: tf.clip_by_norm(x, number(2.5, dtype)),
            "by_norm_above": lambda x: tf.clip_by_norm(x, number(100.0, dtype)),
        }
        if dtype == tf.float32:
            of["by_average_norm"] = lambda x: v1.clip_by_average_norm(x, 0.25)
        for name, clip in of.items():
            cases.append(dict(name=name, dtype=dtype_name, tensor=listed(clip(t)), slices=listed(clip(s))))
        pair = [t, tf.IndexedSlices(s, tf.constant([1, 1]), tf.constant([3, 2]))]
        for name, limit in (("by_global_norm", 2.0), ("by_global_norm_above", 64.0)):
            (a, b), norm = tf.clip_by_global_norm(pair, number(limit, dtype))
            cases.append(
                dict(name=name, dtype=dtype_name, tensor=listed(a), slices=listed(b.values), norm=float(norm)))
    return cases


def averages():
    """Moving averages of a variable that is trained, and of its loss."""
    cases = []
    for name, options in (("plain", {}), ("with_updates", {"num_updates": True}), ("debiased", {"zero_debias": True})):
        for dtype_name, dtype in TYPES.items():
            with tf.Graph().as_default(), v1.Session() as session:
                initial = values(dtype)["dense"]
                variables = {
                    key: v1.get_variable(key, initializer=value, use_resource=True) for key, value in initial.items()}
                step = train.get_or_create_global_step()
                loss = tf.identity(loss_of("dense", variables, dtype, None), name="loss")
                with tf.control_dependencies([loss]):
                    update = train.GradientDescentOptimizer(number(0.1, dtype)).minimize(loss, global_step=step)
                given = dict(options)
                if given.pop("num_updates", False):
                    given["num_updates"] = step
                average = train.ExponentialMovingAverage(0.75, **given)
                with tf.control_dependencies([update]):
                    train_op = average.apply([variables["w"], variables["b"], loss])
                session.run(v1.global_variables_initializer())
                for _ in range(STEPS):
                    session.run(train_op)
                found = {variable.op.name: listed(session.run(variable)) for variable in v1.global_variables()}
                restore = {key: variable.op.name for key, variable in average.variables_to_restore().items()}
                cases.append(dict(name=name, dtype=dtype_name, variables=found, restore=restore))
    return cases


def partitions():
    """Variables in parts, with the slots of their optimiser, after ten steps."""
    cases = []
    for name, partitioner in (
        ("fixed", v1.fixed_size_partitioner(2)),
        ("fixed_columns", v1.fixed_size_partitioner(5, axis=1)),
        ("min_max", v1.min_max_variable_partitioner(max_partitions=4, min_slice_size=8)),
        ("min_max_few", v1.min_max_variable_partitioner(max_partitions=8, min_slice_size=16)),
    ):
        with tf.Graph().as_default(), v1.Session() as session:
            initial = values(tf.float32)["dense"]
            make = lambda key, cut: v1.get_variable(
                key, initializer=tf.constant(initial[key]), use_resource=True, partitioner=cut)
            variables = {"w": tf.convert_to_tensor(make("w", partitioner)), "b": make("b", None)}
            loss = loss_of("dense", variables, tf.float32, None)
            train_op = train.MomentumOptimizer(0.1, 0.9).minimize(loss)
            session.run(v1.global_variables_initializer())
            for _ in range(STEPS):
                session.run(train_op)
            found, slices = {}, {}
            for variable in v1.global_variables():
                found[variable.op.name] = listed(session.run(variable))
                info = variable._save_slice_info
                if info:
                    slices[variable.op.name] = [info.full_name, *map(list, (info.full_shape, info.var_offset, info.var_shape))]
            cases.append(dict(name=name, variables=found, slices=slices))
    return cases


def main():
    found = {
        "tensorflow": tf.__version__,
        "optimizers": optimizers(),
        "schedules": schedules(),
        "clips": clips(),
        "averages": averages(),
        "partitions": partitions(),
    }
    lines = []
    for key, cases in found.items():
        if isinstance(cases, str):
            lines.append(f"{json.dumps(key)}: {json.dumps(cases)}")
        else:
            rows = ",\n".join(json.dumps(case, allow_nan=False) for case in cases)
            lines.append(f"{json.dumps(key)}: [\n{rows}\n]")
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (pathlib.Path(__file__).parent / "training.json").write_text(text)


if __name__ == "__main__":
    main()
