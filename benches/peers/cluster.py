"""Clusters of two tasks, a ps and a worker, through TensorFlow's own client: ours beside TensorFlow's, and both mixed.

    cluster.py TENON [--seconds S] [--only PATTERN]     prints one JSON line for each row and arrangement

Arrangements, of the ps and the worker: `tf` is TensorFlow's servers; `tf-tenon` and `tenon-tf` are mixed ones, over gRPC;
`tenon-grpc`, `tenon-tcp` and `tenon-shm` are ours, by what carries tensors. All clusters run at the same time, and take turns.

Rows: `noop`, a step of one NoOp at the worker; `transfer/BYTES`, a variable of the ps that the worker takes; `tensors/COUNT`, as
many scalars of the ps, each taken; `reduce/BYTES`, a CollectiveReduce of both tasks: of a step with ten, one after another, a
tenth of its time; `mlp`, a training step (784-512-512-10, a batch of 32, SGD) whose variables are at the ps. The time of a step
includes the client's; `noop` says how much that is.
"""

import argparse
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import signal
import statistics
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "tests" / "client"))
import clusters  # noqa: E402

ARRANGEMENTS = {
    "tf": ("tt", []),
    "tf-tenon": ("to", []),
    "tenon-tf": ("ot", []),
    "tenon-grpc": ("oo", ["--data-plane", "grpc"]),
    "tenon-tcp": ("oo", ["--data-plane", "tcp"]),
    "tenon-shm": ("oo", ["--data-plane", "shm"]),
}
PS, WORKER = "/job:ps/task:0/device:CPU:0", "/job:worker/task:0/device:CPU:0"
TRANSFERS = [4, 4096, 65536, 1 << 20, 16 << 20, 64 << 20]
REDUCTIONS = [4, 65536, 1 << 20, 32 << 20]
LEAST = 7
# Collectives of a step.
CHAIN = 10


def variable(tf, name, count):
    with tf.device(PS):
        return tf.compat.v1.get_variable(name, initializer=tf.ones([count]), use_resource=True)


def mlp(tf):
    tf1, sizes = tf.compat.v1, [784, 512, 512, 10]
    numbers = np.random.RandomState(1)
    with tf.device(WORKER):
        value = tf.constant(numbers.randn(32, sizes[0]).astype(np.float32))
        labels = tf.constant(numbers.randint(0, sizes[-1], 32))
    for layer, (rows, columns) in enumerate(zip(sizes, sizes[1:])):
        with tf.device(PS):
            start = numbers.randn(rows, columns).astype(np.float32) / 30
            weights = tf1.get_variable(f"weights{layer}", initializer=start, use_resource=True)
        with tf.device(WORKER):
            value = tf.matmul(value, weights)
            value = tf.nn.relu(value) if layer + 2 < len(sizes) else value
    with tf.device(WORKER):
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=value))
    return tf1.train.GradientDescentOptimizer(0.01).minimize(loss)


def reduction(tf, count, key):
    """Ten sums one after another, at each member."""
    from tensorflow.python.ops import gen_collective_ops
    members = []
    for device in (PS, WORKER):
        with tf.device(device):
            value = tf.compat.v1.get_variable(f"part{key}_{len(members)}", initializer=tf.zeros([count]), use_resource=True)
            value = value.read_value()
            for at in range(CHAIN):
                value = gen_collective_ops.collective_reduce(
                    value, group_size=2, group_key=1, instance_key=key * CHAIN + at, merge_op="Add", final_op="Id",
                    subdiv_offsets=[0])
            members.append(value.op)
    return members


class Both:
    """A session at the worker and one at the ps: each runs its member of a collective, as TensorFlow's masters need it."""

    def __init__(self, tf1, cluster, config):
        self.worker = tf1.Session(cluster.workers[0], config=config)
        self.ps = tf1.Session(f"grpc://{cluster.spec['ps'][0]}", config=config)
        self.threads = concurrent.futures.ThreadPoolExecutor(1)
        self.options = tf1.RunOptions()
        self.options.experimental.collective_graph_key = 1

    def run(self, step, is_collective=False):
        if not is_collective:
            return self.worker.run(step)
        other = self.threads.submit(self.ps.run, step[0], options=self.options)
        self.worker.run(step[1], options=self.options)
        return other.result()


def rows(tf):
    """What a session runs for each row; only those that a pattern names."""
    tf1 = tf.compat.v1
    with tf.device(WORKER):
        steps = {"noop": tf1.no_op()}
    for size in TRANSFERS:
        value = variable(tf, f"transfer{size}", size // 4).read_value()
        with tf.device(WORKER):
            steps[f"transfer/{size}"] = tf.identity(value).op
    for count in (10, 100):
        values = [variable(tf, f"scalar{count}_{at}", 1).read_value() for at in range(count)]
        with tf.device(WORKER):
            steps[f"tensors/{count}"] = [tf.identity(value).op for value in values]
    for key, size in enumerate(REDUCTIONS, 1):
        steps[f"reduce/{size}"] = reduction(tf, size // 4, key)
    steps["mlp"] = mlp(tf)
    return tf1.global_variables_initializer(), steps


def measure(sessions, row, step, seconds):
    """Seconds of each session's steps, in turns."""
    times, is_collective = {name: [] for name in sessions}, row.startswith("reduce")
    for session in sessions.values():
        for _ in range(3):
            session.run(step, is_collective)
    end = time.monotonic() + seconds * len(sessions)
    while time.monotonic() < end or len(next(iter(times.values()))) < LEAST:
        for name, session in sessions.items():
            begin = time.perf_counter()
            session.run(step, is_collective)
            times[name].append((time.perf_counter() - begin) / (CHAIN if is_collective else 1))
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each row and arrangement")
    parser.add_argument("--only", default="*", help="rows of a pattern")
    given = parser.parse_args()
    # The servers end with this process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    tf1 = tf.compat.v1
    tf1.disable_eager_execution()
    tf1.logging.set_verbosity("ERROR")
    # Grappler would replace what is measured by what its results are.
    config = tf1.ConfigProto(allow_soft_placement=False, operation_timeout_in_ms=30_000)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.experimental.collective_group_leader = "/job:ps/replica:0/task:0"
    started = {name: clusters.Cluster(given.tenon, *arrangement) for name, arrangement in ARRANGEMENTS.items()}
    try:
        with tf.Graph().as_default():
            init, steps = rows(tf)
            sessions = {name: Both(tf1, cluster.__enter__(), config) for name, cluster in started.items()}
            for session in sessions.values():
                session.run(init)
            for row, step in steps.items():
                if not fnmatch.fnmatch(row, given.only):
                    continue
                # A group has tasks of one kind.
                able = {name: it for name, it in sessions.items()
                        if not row.startswith("reduce") or name not in ("tf-tenon", "tenon-tf")}
                for name, taken in measure(able, row, step, given.seconds).items():
                    taken.sort()
                    print(json.dumps({
                        "bench": f"cluster/{row}", "peer": name, "version": tf.__version__ if name == "tf" else "tree",
                        "median_ns": round(statistics.median(taken) * 1e9), "min_ns": round(taken[0] * 1e9),
                        "p90_ns": round(taken[len(taken) * 9 // 10] * 1e9), "samples": len(taken),
                    }), flush=True)
    finally:
        for cluster in started.values():
            if cluster.processes:
                cluster.__exit__()


if __name__ == "__main__":
    main()
