"""Training by several workers, through TensorFlow's own client: ours beside TensorFlow's servers.

    replicas.py TENON [--seconds S] [--only PATTERN] [--peers NAMES] [--small]

Prints one JSON line for each row, peer and number of workers, and one with the ratio that has a limit. Each worker is a server
with one thread that computes, and has batches of its own. Rows:

`mlp-big/collective`: synchronous steps (784-4096-4096-10, 64 rows of each worker, SGD) of workers that have variables of their own
and sum their gradients by CollectiveReduce, each with a session of its own; the limit is that two workers take 1.8 times the
examples of one. `mlp-big/ps`: the same with the variables at a ps, in one session that has all workers; the same limit.
`mlp/async`: asynchronous steps (784-512-512-10, 32 rows, SGD) of workers with sessions of their own and variables at a ps; the
limit is 1.5 times TensorFlow's steps, for each number of workers.

`--small` has layers of 32, and compares instead of measuring: losses and variables of all peers after a few steps.
"""

import argparse
import fnmatch
import json
import os
import pathlib
import statistics
import sys
import threading
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "tests" / "client"))
import clusters  # noqa: E402
from harness import free_port  # noqa: E402

PEERS = {"tf": ("t", []), "tenon-tcp": ("o", ["--data-plane", "tcp"]), "tenon-shm": ("o", ["--data-plane", "shm"])}
MODELS = {"mlp-big": ([784, 4096, 4096, 10], 64), "mlp": ([784, 512, 512, 10], 32)}
RATE = 0.01
# Rounds in which the peers take turns.
ROUNDS = 3


class Cluster(clusters.Cluster):
    """A ps and two workers of one kind, each with one thread that computes."""

    def __init__(self, tenon, kind, options):
        super().__init__(tenon, kind * 2, [*options, *(["--threads", "1"] if kind == "o" else [])])
        self.kinds = {task: kind for task in ["ps/0", "worker/0", "worker/1"]}
        self.spec["worker"].append(f"localhost:{free_port()}")
        self.environment = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}


def job(task):
    return f"/job:worker/task:{task}/device:CPU:0"


def layers(sizes, make):
    """The weights of each layer, with the same values in all graphs."""
    numbers = np.random.RandomState(1)
    return [make(layer, numbers.randn(rows, columns).astype(np.float32) / np.float32(np.sqrt(rows)))
            for layer, (rows, columns) in enumerate(zip(sizes, sizes[1:]))]


def loss_of(tf, sizes, count, weights, worker):
    """The loss of a worker's batch."""
    numbers = np.random.RandomState(100 + worker)
    value = tf.constant(numbers.randn(count, sizes[0]).astype(np.float32))
    labels = tf.constant(numbers.randint(0, sizes[-1], count))
    for at, weight in enumerate(weights):
        value = tf.matmul(value, weight)
        value = tf.nn.relu(value) if at + 1 < len(weights) else value
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=value))


def variables(tf, sizes, device, name):
    def make(layer, start):
        with tf.device(device):
            return tf.compat.v1.get_variable(f"{name}{layer}", initializer=start, use_resource=True)
    return layers(sizes, make)


def descent(tf, weights, gradients):
    """One node that takes a part of each gradient off its weights."""
    pairs = zip(weights, gradients)
    return tf.group(*[weight.assign_sub(RATE * gradient, read_value=False) for weight, gradient in pairs])


def collective(tf, sizes, count, workers):
    """Steps of each worker, whose gradients are means over all; the losses, and the variables."""
    from tensorflow.python.ops import gen_collective_ops
    steps, losses, held = [], [], []
    for worker in range(workers):
        weights = variables(tf, sizes, job(worker), f"own{worker}_")
        with tf.device(job(worker)):
            loss = loss_of(tf, sizes, count, weights, worker)
            gradients = tf.gradients(loss, weights)
            if workers > 1:
                gradients = [gen_collective_ops.collective_reduce(
                    gradient, group_size=workers, group_key=1, instance_key=1 + at, merge_op="Add", final_op="Div",
                    subdiv_offsets=[0]) for at, gradient in enumerate(gradients)]
            steps.append(descent(tf, weights, gradients))
        losses.append(loss)
        held.append(weights)
    return [[step] for step in steps], losses, held


def at_ps(tf, sizes, count, workers):
    """One step of all workers, whose mean gradients the ps applies."""
    weights = variables(tf, sizes, "/job:ps/task:0/device:CPU:0", "shared")
    losses, gradients = [], []
    for worker in range(workers):
        with tf.device(job(worker)):
            losses.append(loss_of(tf, sizes, count, weights, worker))
            gradients.append(tf.gradients(losses[-1], weights))
    with tf.device("/job:ps/task:0/device:CPU:0"):
        means = [sum(of_one) / workers if workers > 1 else of_one[0] for of_one in zip(*gradients)]
        return [[descent(tf, weights, means)]], losses, [weights]


def alone(tf, sizes, count, workers):
    """Steps of each worker by itself, over the same variables at the ps."""
    weights = variables(tf, sizes, "/job:ps/task:0/device:CPU:0", "async")
    steps, losses = [], []
    for worker in range(workers):
        with tf.device(job(worker)):
            losses.append(loss_of(tf, sizes, count, weights, worker))
            gradients = tf.gradients(losses[-1], weights)
        with tf.device("/job:ps/task:0/device:CPU:0"):
            steps.append(descent(tf, weights, gradients))
    return [[step] for step in steps], losses, [weights]


# The model of a row, how its graph is made, and whether the workers of a step wait for each other.
ROWS = {"mlp-big/collective": ("mlp-big", collective, True), "mlp-big/ps": ("mlp-big", at_ps, True),
        "mlp/async": ("mlp", alone, False)}


class Run:
    """The sessions of a row at one cluster: one for each member that runs a step of its own."""

    def __init__(self, tf, cluster, made, init, is_synchronous):
        tf1 = tf.compat.v1
        self.steps, self.losses, self.weights = made
        self.is_synchronous = is_synchronous
        self.options = tf1.RunOptions(timeout_in_ms=120_000)
        if len(self.steps) > 1 and is_synchronous:
            self.options.experimental.collective_graph_key = 1
        config = tf1.ConfigProto(allow_soft_placement=False)
        config.experimental.collective_group_leader = "/job:worker/replica:0/task:0"
        targets = [f"grpc://{address}" for address in cluster.spec["worker"]][:len(self.steps)]
        self.sessions = [tf1.Session(target, config=config) for target in targets]
        self.sessions[0].run(init)

    def member(self, at, until, times):
        while not until():
            begin = time.perf_counter()
            self.sessions[at].run(self.steps[at], options=self.options)
            times.append(time.perf_counter() - begin)

    def go(self, seconds=None, count=None):
        """Seconds of the members' steps for some time, or a number of them; and how long they all took."""
        times, begin = [[] for _ in self.steps], time.perf_counter()

        def until(at):
            if count is not None:
                return lambda: len(times[at]) >= count
            # All members of a collective do as many steps as the first one.
            if self.is_synchronous and at > 0:
                return lambda: self.ended is not None and len(times[at]) >= self.ended
            return lambda: self.first_ends(times[0], begin, seconds)

        self.ended, failures = None, []

        def run(at):
            try:
                self.member(at, until(at), times[at])
            except Exception as error:  # noqa: BLE001 (of a thread: raised below)
                failures.append(error)

        threads = [threading.Thread(target=run, args=[at]) for at in range(len(self.steps))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return times, time.perf_counter() - begin

    def first_ends(self, times, begin, seconds):
        """Whether the time is over. The first member of a synchronous step decides one step ahead: the others may have begun."""
        if not self.is_synchronous or len(self.steps) == 1:
            return time.perf_counter() - begin >= seconds
        if self.ended is None and time.perf_counter() - begin >= seconds:
            self.ended = len(times) + 2
        return self.ended is not None and len(times) >= self.ended

    def close(self):
        for session in self.sessions:
            session.close()


def graph_of(tf, row, workers, is_small):
    model, make, is_synchronous = ROWS[row]
    sizes, count = MODELS[model]
    sizes = [32 if size > 784 or size == 512 else size for size in sizes] if is_small else sizes
    made = make(tf, sizes, count, workers)
    return made, tf.compat.v1.global_variables_initializer(), is_synchronous, count


def measure(tf, started, row, workers, seconds):
    """Examples and steps in a second of each peer, which take turns."""
    found = {}
    with tf.Graph().as_default():
        made, init, is_synchronous, count = graph_of(tf, row, workers, False)
        runs = {name: Run(tf, cluster, made, init, is_synchronous) for name, cluster in started.items()}
        samples = {name: ([], 0.0) for name in runs}
        for run in runs.values():
            run.go(count=2)
        for _ in range(ROUNDS):
            for name, run in runs.items():
                times, took = run.go(seconds=seconds / ROUNDS)
                samples[name] = (samples[name][0] + [it for of_one in times for it in of_one], samples[name][1] + took)
        for name, (times, took) in samples.items():
            times.sort()
            # The session of a ps runs a step of all workers at once.
            rows = count * (workers if len(made[0]) == 1 else 1)
            found[name] = len(times) / took
            print(json.dumps({
                "bench": f"cluster/{row}/{workers}", "peer": name, "version": tf.__version__ if name == "tf" else "tree",
                "median_ns": round(statistics.median(times) * 1e9), "min_ns": round(times[0] * 1e9),
                "p90_ns": round(times[len(times) * 9 // 10] * 1e9), "samples": len(times),
                "steps_per_s": round(found[name], 3), "examples_per_s": round(found[name] * rows, 1),
            }), flush=True)
            found[name] *= rows
            runs[name].close()
    return found


def ratios(row, found):
    """The ratios that have limits: of two workers to one, or of ours to TensorFlow's."""
    if ROWS[row][2]:
        lines = [(name, found[2][name] / found[1][name], "two workers to one", 1.8) for name in found[2]]
    else:
        lines = [(f"{name}/{workers}", of[name] / of["tf"], "to TensorFlow's", 1.5)
                 for workers, of in found.items() for name in of if name != "tf" and "tf" in of]
    for name, ratio, of, limit in lines:
        print(json.dumps({"bench": f"cluster/{row}/ratio", "peer": name, "of": of, "ratio": round(ratio, 3),
                          "limit": limit, "holds": ratio >= limit}), flush=True)


def compare(tf, started, row, workers):
    """Runs a few steps at each peer, and compares losses and variables with the first one's."""
    expected = None
    for name, cluster in started.items():
        with tf.Graph().as_default():
            made, init, is_synchronous, _ = graph_of(tf, row, workers, True)
            run = Run(tf, cluster, made, init, is_synchronous)
            before = run.sessions[0].run(run.losses)
            run.go(count=5)
            found = [run.sessions[0].run(it) for it in (run.losses, run.weights)]
            for own in found[1][1:]:
                for one, other in zip(found[1][0], own):
                    np.testing.assert_array_equal(one, other, err_msg=f"{row}: the replicas of {name}")
            if not all(after < first for first, after in zip(before, found[0])):
                raise AssertionError(f"{row}: {name} does not learn: losses {before}, then {found[0]}")
            run.close()
        expected = expected or found
        # Asynchronous steps of several workers have no order.
        if is_synchronous or workers == 1:
            for one, other in zip(tf.nest.flatten(found), tf.nest.flatten(expected)):
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5, err_msg=f"{row}: {name}")
        print(f"{row}/{workers} {name}: losses {np.round(before, 4)} -> {np.round(found[0], 4)}, as expected", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon")
    parser.add_argument("--seconds", type=float, default=30.0, help="for each row, peer and number of workers")
    parser.add_argument("--only", default="*", help="rows of a pattern")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--small", action="store_true")
    parser.add_argument("options", nargs="*", help="for each tenon serve")
    given = parser.parse_args()
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    tf.compat.v1.disable_eager_execution()
    tf.compat.v1.logging.set_verbosity("ERROR")
    kinds = {name: PEERS[name] for name in given.peers.split(",")}
    started = {name: Cluster(given.tenon, kind, [*options, *given.options]) for name, (kind, options) in kinds.items()}
    try:
        for cluster in started.values():
            cluster.__enter__()
        for row in (row for row in ROWS if fnmatch.fnmatch(row, given.only)):
            if given.small:
                for workers in (1, 2):
                    compare(tf, started, row, workers)
            else:
                ratios(row, {workers: measure(tf, started, row, workers, given.seconds) for workers in (1, 2)})
    finally:
        for cluster in started.values():
            if cluster.processes:
                cluster.__exit__()


if __name__ == "__main__":
    main()
