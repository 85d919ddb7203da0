"""Training steps of the peers: the models of benches/benches/training, with the same initial values and the same data.

    training.py losses OUT.jsonl [--match M]             50 steps of each model in each peer, the loss before every step
    training.py time PEER [--match M] [--threads N]      one line per model; PEER is tensorflow, torch or jax
    training.py memory PEER [--match M] [--threads N]    the peak memory of three steps, each model in a process of its own
    training.py compare OURS.jsonl OUT.jsonl             whether all losses agree within 1e-5

`tensorflow` is a v1 graph called by make_callable, data as constants; `torch` runs eagerly, with the fused optimiser;
`jax` is one jit with donated parameters. Lines have the form of benches/records.
"""

import argparse
import json
import os
import sys

import numpy as np

DIGITS = (784, 512, 512, 10)
# name: layers or kind, batch, optimiser
MODELS = {
    "mlp-tiny": ((64, 64, 64, 10), 1, "sgd"),
    "mlp-sgd": (DIGITS, 32, "sgd"),
    "mlp-momentum": (DIGITS, 32, "momentum"),
    "mlp-adam": (DIGITS, 32, "adam"),
    "mlp-big": ((784, 4096, 4096, 10), 64, "sgd"),
    "cnn": ("cnn", 32, "sgd"),
    "resnet20-cifar": ("resnet", 32, "sgd"),
    "lstm-v1": ("lstm", 16, "sgd"),
    "lstm-v2": ("lstm", 16, "sgd"),
    "embed": ("table", 4096, "adagrad"),
}
TABLE = (1_000_000, 64)
# A sequence: its steps, features of an input, and units of the layer.
TIME, FEATURES, UNITS = 64, 64, 128
# A residual network: blocks of a stage, and channels of the stages.
BLOCKS, CHANNELS = 3, (16, 32, 64)
RATE = 0.01
STEPS = 50


def hashed(count, seed):
    x = np.arange(count, dtype=np.uint32) ^ np.uint32(seed * 0x9E3779B9 & 0xFFFFFFFF)
    x = (x ^ x >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    x = (x ^ x >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return x ^ x >> np.uint32(16)


def numbers(shape, seed, scale):
    unit = hashed(int(np.prod(shape)), seed).astype(np.float64) / (2**32 - 1)
    return ((2.0 * unit - 1.0).astype(np.float32) * np.float32(scale)).reshape(shape)


def shapes(kind):
    """Shapes of the layers' weights."""
    if kind == "cnn":
        return [(5, 5, 1, 32), (5, 5, 32, 64), (3136, 512), (512, 10)]
    if kind == "lstm":
        return [(FEATURES + UNITS, 4 * UNITS), (UNITS, 10)]
    return list(zip(kind, kind[1:]))


def blocks():
    """The blocks of the residual network: channels before and after, and the stride."""
    before = CHANNELS[0]
    for stage, channels in enumerate(CHANNELS):
        for block in range(BLOCKS):
            yield before, channels, 2 if stage > 0 and block == 0 else 1
            before = channels


def residual_parameters():
    """Filters, each but a shortcut's with scale and offset of the normalisation after it, and the last layer."""
    made = []

    def filters(side, before, after):
        inputs = np.float32(side * side * before)
        made.append(numbers((side, side, before, after), len(made) + 1, np.sqrt(np.float32(6.0) / inputs)))

    def normalised(side, before, after):
        filters(side, before, after)
        made.extend([np.ones(after, np.float32), np.zeros(after, np.float32)])

    normalised(3, 3, CHANNELS[0])
    for before, after, _ in blocks():
        normalised(3, before, after)
        normalised(3, after, after)
        if before != after:
            filters(1, before, after)
    inputs = np.float32(CHANNELS[-1])
    made.append(numbers((CHANNELS[-1], 10), len(made) + 1, np.sqrt(np.float32(6.0) / inputs)))
    return made + [np.zeros(10, np.float32)]


def residual(x, made, convolve, normalise, relu, pool):
    """The features that the residual network gives the last layer."""
    given = iter(made)
    layer = lambda x, stride=1: normalise(convolve(x, next(given), stride), next(given), next(given))
    x = relu(layer(x))
    for before, after, stride in blocks():
        y = layer(relu(layer(x, stride)))
        x = relu(y + (x if before == after else convolve(x, next(given), stride)))
    return pool(x)


def parameters(kind):
    """Weights and biases, in order."""
    if kind == "table":
        return [numbers(TABLE, 1, 0.05)]
    if kind == "resnet":
        return residual_parameters()
    made, seed = [], 0
    for shape in shapes(kind):
        inputs = np.float32(int(np.prod(shape[:-1])))
        made += [numbers(shape, seed + 1, np.sqrt(np.float32(6.0) / inputs)), np.zeros(shape[-1], np.float32)]
        seed += 2
    return made


def data(kind, batch):
    """Inputs and labels, or the rows of the table."""
    if kind == "table":
        return ((hashed(batch, 300) % np.uint32(TABLE[0])).astype(np.int32),)
    shapes = {"cnn": (batch, 28, 28, 1), "resnet": (batch, 32, 32, 3), "lstm": (TIME, batch, FEATURES)}
    shape = shapes[kind] if kind in shapes else (batch, kind[0])
    return numbers(shape, 100, 1.0), (hashed(batch, 200) % np.uint32(10)).astype(np.int32)


class TensorFlow:
    def __init__(self, name, threads):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        import tensorflow as tf

        self.version = tf.__version__
        tf1 = tf.compat.v1
        kind, batch, optimiser = MODELS[name]
        graph = tf.Graph()
        (tf1.disable_control_flow_v2 if name == "lstm-v1" else tf1.enable_control_flow_v2)()
        with graph.as_default():
            given = [tf.constant(value) for value in data(kind, batch)]
            values = parameters(kind)
            holders = [tf1.placeholder(tf.float32, value.shape) for value in values]
            made = [tf1.Variable(holder, use_resource=True) for holder in holders]
            loss = self.loss(tf, kind, batch, made, given)
            rule = {
                "sgd": lambda: tf1.train.GradientDescentOptimizer(RATE),
                "momentum": lambda: tf1.train.MomentumOptimizer(RATE, 0.9),
                "adam": lambda: tf1.train.AdamOptimizer(RATE / 10),
                "adagrad": lambda: tf1.train.AdagradOptimizer(RATE),
            }[optimiser]()
            # Constants of the gradient's frame that wait for the loss would be outside of the frame.
            with tf.control_dependencies([] if name == "lstm-v1" else [loss]):
                train = rule.minimize(loss)
            config = tf1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=1)
            session = tf1.Session(graph=graph, config=config)
            session.run(tf1.global_variables_initializer(), dict(zip(holders, values)))
            both = session.make_callable([loss, train])
            self.step = lambda: both()[0]

    @staticmethod
    def loss(tf, kind, batch, made, given):
        if kind == "table":
            return tf.nn.l2_loss(tf.nn.embedding_lookup(made[0], given[0])) / np.float32(batch)
        x, labels = given
        if kind == "resnet":
            x = residual(
                x,
                made,
                lambda x, filters, stride: tf.nn.conv2d(x, filters, stride, "SAME"),
                lambda x, scale, offset: tf.compat.v1.nn.fused_batch_norm(x, scale, offset, epsilon=1e-3)[0],
                tf.nn.relu,
                lambda x: tf.reduce_mean(x, [1, 2]),
            )
        elif kind == "lstm":
            x = TensorFlow.lstm(tf, x, batch, *made[:2])
        made = made[-2:] if kind in ("resnet", "lstm") else made
        layers = list(zip(made[::2], made[1::2]))
        for at, (weights, bias) in enumerate(layers):
            if len(weights.shape) == 4:
                x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, weights, 1, "SAME"), bias))
                x = tf.nn.max_pool2d(x, 2, 2, "SAME")
                continue
            if len(x.shape) == 4:
                x = tf.reshape(x, [-1, 3136])
            x = tf.nn.bias_add(tf.matmul(x, weights), bias)
            x = x if at + 1 == len(layers) else tf.nn.relu(x)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x))


    @staticmethod
    def lstm(tf, x, batch, weights, bias):
        def body(at, output, state):
            sums = tf.nn.bias_add(tf.matmul(tf.concat([tf.gather(x, at), output], 1), weights), bias)
            into, new, forget, shown = tf.split(sums, 4, 1)
            state = state * tf.sigmoid(forget) + tf.sigmoid(into) * tf.tanh(new)
            return at + 1, tf.tanh(state) * tf.sigmoid(shown), state

        start = tf.zeros((batch, UNITS))
        return tf.while_loop(lambda at, *_: at < TIME, body, (0, start, start))[1]


class Torch:
    def __init__(self, name, threads):
        import torch

        self.version = torch.__version__
        torch.set_num_threads(threads)
        kind, batch, optimiser = MODELS[name]
        # Convolutions read images and filters with channels first there.
        images = lambda value: np.ascontiguousarray(value.transpose(0, 3, 1, 2)) if value.ndim == 4 else value
        filters = lambda value: np.ascontiguousarray(value.transpose(3, 2, 0, 1)) if value.ndim == 4 else value
        values = self.lstm_parameters() if kind == "lstm" else parameters(kind)
        made = [torch.tensor(filters(value), requires_grad=True) for value in values]
        given = [torch.tensor(images(value)) for value in data(kind, batch)]
        rule = {
            "sgd": lambda: torch.optim.SGD(made, lr=RATE, fused=True),
            "momentum": lambda: torch.optim.SGD(made, lr=RATE, momentum=0.9, fused=True),
            "adam": lambda: torch.optim.Adam(made, lr=RATE / 10, fused=True),
            "adagrad": lambda: torch.optim.Adagrad(made, lr=RATE, initial_accumulator_value=0.1, eps=0),
        }[optimiser]()
        if kind == "table":
            given[0] = given[0].long()
        elif given[1].dtype == torch.int32:
            given[1] = given[1].long()

        def step():
            rule.zero_grad(set_to_none=True)
            loss = self.loss(torch, kind, batch, made, given)
            loss.backward()
            rule.step()
            return loss.detach()

        self.step = step

    @staticmethod
    def loss(torch, kind, batch, made, given):
        functional = torch.nn.functional
        if kind == "table":
            rows = functional.embedding(given[0], made[0], sparse=True)
            return 0.5 * (rows * rows).sum() / batch
        x, labels = given
        if kind == "resnet":
            x = residual(
                x,
                made,
                lambda x, filters, stride: Torch.convolve(functional, x, filters, stride),
                lambda x, scale, offset: functional.batch_norm(x, None, None, scale, offset, True, eps=1e-3),
                torch.relu,
                lambda x: x.mean((2, 3)),
            )
        elif kind == "lstm":
            start = torch.zeros(1, batch, UNITS)
            fixed = [*made[:3], torch.zeros(4 * UNITS)]
            x = torch.lstm(x, (start, start), fixed, True, 1, 0.0, True, False, False)[0][-1]
        made = made[-2:] if kind in ("resnet", "lstm") else made
        layers = list(zip(made[::2], made[1::2]))
        for at, (weights, bias) in enumerate(layers):
            if weights.dim() == 4:
                x = torch.relu(functional.conv2d(x, weights, bias, padding="same"))
                x = functional.max_pool2d(x, 2)
                continue
            if x.dim() == 4:
                x = x.permute(0, 2, 3, 1).reshape(batch, -1)
            x = torch.addmm(bias, x, weights)
            x = x if at + 1 == len(layers) else torch.relu(x)
        return functional.cross_entropy(x, labels)


    @staticmethod
    def convolve(functional, x, filters, stride):
        """With TensorFlow's padding of even sizes, which is on the far side where the stride is 2."""
        side = filters.shape[-1]
        if stride == 2 and side == 3:
            return functional.conv2d(functional.pad(x, (0, 1, 0, 1)), filters, stride=2)
        return functional.conv2d(x, filters, stride=stride, padding=side // 2)

    @staticmethod
    def lstm_parameters():
        """The layer's weights as PyTorch has them: of inputs and of outputs apart, gates as rows, the third one second."""
        weights, bias, *last = parameters("lstm")
        order = lambda value: np.ascontiguousarray(np.concatenate([np.split(value, 4)[at] for at in (0, 2, 1, 3)]))
        return [order(weights[:FEATURES].T), order(weights[FEATURES:].T), order(bias), *last]


class Jax:
    def __init__(self, name, threads):
        os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}"
        os.environ["JAX_PLATFORMS"] = "cpu"
        import jax
        import jax.numpy as jnp

        self.version = jax.__version__
        kind, batch, optimiser = MODELS[name]
        made = [jnp.array(value) for value in parameters(kind)]
        given = [jnp.array(value) for value in data(kind, batch)]
        loss = lambda made: self.loss(jax, jnp, kind, batch, made, given)
        start = 0.1 if optimiser == "adagrad" else 0.0
        slots = {"sgd": 0, "momentum": 1, "adagrad": 1, "adam": 2}[optimiser]
        state = [[jnp.full_like(value, start) for value in made] for _ in range(slots)]

        def update(at, made, state, powers):
            value, gradients = jax.value_and_grad(loss)(made)
            for i, g in enumerate(gradients):
                if optimiser == "sgd":
                    change = RATE * g
                elif optimiser == "momentum":
                    state[0][i] = 0.9 * state[0][i] + g
                    change = RATE * state[0][i]
                elif optimiser == "adagrad":
                    state[0][i] = state[0][i] + g * g
                    change = RATE * g * jax.lax.rsqrt(state[0][i])
                else:
                    state[0][i] = 0.9 * state[0][i] + 0.1 * g
                    state[1][i] = 0.999 * state[1][i] + 0.001 * g * g
                    rate = RATE / 10 * jnp.sqrt(1 - powers[1]) / (1 - powers[0])
                    change = rate * state[0][i] / (jnp.sqrt(state[1][i]) + 1e-8)
                made[i] = made[i] - change
            return value, made, state, [powers[0] * 0.9, powers[1] * 0.999]

        compiled = jax.jit(lambda made, state, powers: update(0, made, state, powers), donate_argnums=(0, 1, 2))
        held = [made, state, [jnp.float32(0.9), jnp.float32(0.999)]]

        def step():
            value, *held[:] = compiled(*held)
            return value.block_until_ready()

        self.step = step

    @staticmethod
    def loss(jax, jnp, kind, batch, made, given):
        if kind == "table":
            rows = made[0][given[0]]
            return 0.5 * jnp.sum(rows * rows) / batch
        x, labels = given
        if kind == "resnet":
            numbers = ("NHWC", "HWIO", "NHWC")

            def normalise(x, scale, offset):
                mean, variance = jnp.mean(x, (0, 1, 2)), jnp.var(x, (0, 1, 2))
                return (x - mean) * jax.lax.rsqrt(variance + 1e-3) * scale + offset

            convolve = lambda x, filters, stride: jax.lax.conv_general_dilated(
                x, filters, (stride, stride), "SAME", dimension_numbers=numbers
            )
            x = residual(x, made, convolve, normalise, jax.nn.relu, lambda x: jnp.mean(x, (1, 2)))
        elif kind == "lstm":

            def body(held, x):
                output, state = held
                sums = jnp.concatenate([x, output], 1) @ made[0] + made[1]
                into, new, forget, shown = jnp.split(sums, 4, 1)
                state = state * jax.nn.sigmoid(forget) + jax.nn.sigmoid(into) * jnp.tanh(new)
                return (jnp.tanh(state) * jax.nn.sigmoid(shown), state), None

            start = jnp.zeros((batch, UNITS))
            x = jax.lax.scan(body, (start, start), x)[0][0]
        made = made[-2:] if kind in ("resnet", "lstm") else made
        layers = list(zip(made[::2], made[1::2]))
        for at, (weights, bias) in enumerate(layers):
            if weights.ndim == 4:
                x = jax.lax.conv_general_dilated(x, weights, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
                x = jax.nn.relu(x + bias)
                x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")
                continue
            x = x.reshape(batch, -1) @ weights + bias
            x = x if at + 1 == len(layers) else jax.nn.relu(x)
        return -jnp.mean(jax.nn.log_softmax(x)[jnp.arange(batch), labels])


PEERS = {"tensorflow": TensorFlow, "torch": Torch, "jax": Jax}


def losses(out, match):
    with open(out, "w") as file:
        for peer, side in PEERS.items():
            for name in filter(lambda name: match in name, MODELS):
                try:
                    made = side(name, 1)
                except ImportError as error:
                    print(f"{peer}: {error}", file=sys.stderr)
                    break
                found = [float(np.asarray(made.step())) for _ in range(STEPS)]
                print(json.dumps({"peer": peer, "model": name, "losses": found}), file=file, flush=True)


def compare(ours, theirs):
    """Prints the largest difference by model and peer, and fails where one is above 1e-5."""
    read = lambda file: [json.loads(line) for line in open(file) if line.startswith("{")]
    expected = {row["model"]: row["losses"] for row in read(ours)}
    failed = False
    for row in read(theirs):
        off = float(np.max(np.abs(np.subtract(expected[row["model"]], row["losses"]))))
        failed |= not off <= 1e-5
        print(f"{row['model']:14} {row['peer']:11} {off:.1e}")
    sys.exit(failed)


def time_peer(peer, match, threads, seconds):
    import timing

    cpus = sorted(os.sched_getaffinity(0))[:threads]
    os.sched_setaffinity(0, cpus)
    for name in filter(lambda name: match in name, MODELS):
        made = PEERS[peer](name, threads)
        for _ in range(3):
            made.step()
        row = {"bench": "training", "peer": peer, "version": made.version, "size": name, "threads": threads}
        timing.line(row, timing.measure(made.step, seconds), 1, "Gstep/s")


def memory_of(peer, name, threads):
    """Prints the peak memory of this process after three steps, and what it was before there was a model."""
    import importlib

    import timing

    importlib.import_module(peer)
    imported = timing.peak_rss()
    made = PEERS[peer](name, threads)
    for _ in range(3):
        made.step()
    row = {"bench": "training-memory", "peer": peer, "version": made.version, "size": name, "threads": threads}
    print(json.dumps(row | {"peak_rss_bytes": timing.peak_rss(), "import_rss_bytes": imported}), flush=True)


def memory(peer, match, threads):
    for name in filter(lambda name: match in name, MODELS):
        child = os.fork()
        if child == 0:
            memory_of(peer, name, threads)
            os._exit(0)
        os.waitpid(child, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    for part, words in {"losses": ["out"], "time": ["peer"], "memory": ["peer"], "compare": ["ours", "theirs"]}.items():
        sub = parts.add_parser(part)
        for word in words:
            sub.add_argument(word, **({"choices": PEERS} if word == "peer" else {}))
        sub.add_argument("--match", default="")
        sub.add_argument("--threads", type=int, default=1)
        sub.add_argument("--seconds", type=float, default=3.0)
    given = parser.parse_args()
    if given.part == "losses":
        losses(given.out, given.match)
    elif given.part == "time":
        time_peer(given.peer, given.match, given.threads, given.seconds)
    elif given.part == "memory":
        memory(given.peer, given.match, given.threads)
    else:
        compare(given.ours, given.theirs)


if __name__ == "__main__":
    main()
