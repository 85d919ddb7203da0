"""Clusters of TensorFlow's servers, of ours, and of both: the same scripts on all, which have to give the same values.

    python clusters.py TENON [--only PATTERN]

A script gets the address of the master and a log, as a case of `cases_*.py` does. It runs on a cluster of TensorFlow's
servers, whose results are those that are expected, and then on all other arrangements: a letter for the task of
/job:ps and one for that of /job:worker, `t` for TensorFlow's server and `o` for ours. The session is on the worker, or on
the ps if `p` follows.
"""

import argparse
import fnmatch
import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

from harness import Log, compare, free_port
from propagated import named_by_the_session
from replicated import synchronous_replicas_with_a_backup

SCRIPTS = {}
THEIRS = """
import json, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
config = tf.compat.v1.ConfigProto()
config.experimental.collective_group_leader = "/job:ps/replica:0/task:0"
server = tf.distribute.Server(json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3]), config=config)
print(server.target, flush=True)
server.join()
"""


def script(function):
    """Marks a function (addresses of the workers, log, and the cluster if it asks for it) as a script."""
    SCRIPTS[function.__name__] = function
    return function


class Cluster:
    """Servers of an arrangement such as `to`: one ps and one worker, while the block runs."""

    def __init__(self, tenon, arrangement, plugins):
        kinds, self.master = dict(zip(["ps/0", "worker/0"], arrangement)), "worker"
        if arrangement.endswith("p"):
            self.master = "ps"
        self.tenon, self.kinds, self.plugins, self.processes, self.environment = tenon, kinds, plugins, {}, {}
        self.spec = {"ps": [], "worker": []}
        for task in kinds:
            self.spec[task.split("/")[0]].append(f"localhost:{free_port()}")

    def start(self, task):
        spec, (job, number) = json.dumps(self.spec), task.split("/")
        theirs = [sys.executable, "-c", THEIRS, spec, job, number]
        ours = [self.tenon, "serve", "--cluster", spec, "--job", job, "--task", number, "--absent", "10",
                "--allow-files", "any", *self.plugins]
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", **self.environment}
        command = theirs if self.kinds[task] == "t" else ours
        self.processes[task] = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self.errors, text=True, env=environment)

    def __enter__(self):
        self.errors = tempfile.TemporaryFile()
        for task in self.kinds:
            self.start(task)
        for task in self.kinds:
            self.ready(task)
        self.workers = [f"grpc://{address}" for address in self.spec[self.master]]
        return self

    def ready(self, task):
        if not self.processes[task].stdout.readline().startswith("grpc://"):
            raise RuntimeError(f"{task} does not start: {self.said()}")

    def check(self):
        """Fails if a server is gone: no later script has a chance."""
        for task, process in self.processes.items():
            if process.poll() is not None:
                raise RuntimeError(f"{task} has ended: {self.said()}")

    def said(self):
        self.errors.seek(0)
        return self.errors.read().decode()[-2000:]

    def __exit__(self, *_):
        for process in self.processes.values():
            process.kill()
            process.wait()


def loss_of(tf1, tf, job="/job:worker/task:0"):
    """A network of two layers whose variables are at the ps, and its loss."""
    numbers = np.random.RandomState(7)
    with tf.device("/job:ps/task:0"):
        first = tf1.get_variable("first", initializer=numbers.randn(6, 8).astype(np.float32))
        bias = tf1.get_variable("bias", initializer=np.zeros(8, np.float32))
        second = tf1.get_variable("second", initializer=numbers.randn(8, 3).astype(np.float32))
    with tf.device(job):
        x = tf1.placeholder(tf.float32, [None, 6], name="x")
        label = tf1.placeholder(tf.int32, [None], name="label")
        hidden = tf.nn.relu(tf.matmul(x, first) + bias)
        logits = tf.matmul(hidden, second)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=logits)
        return x, label, tf.reduce_mean(losses)


def batches(count):
    numbers = np.random.RandomState(3)
    for _ in range(count):
        yield numbers.randn(16, 6).astype(np.float32), numbers.randint(0, 3, 16)


def train(optimizer, workers, log, resources=True):
    import tensorflow as tf
    tf1 = tf.compat.v1
    with tf1.variable_scope("net", use_resource=resources):
        x, label, loss = loss_of(tf1, tf)
    step = optimizer(tf1.train).minimize(loss)
    with tf1.Session(workers[0]) as session:
        session.run(tf1.global_variables_initializer())
        for values, labels in batches(20):
            found, _ = session.run([loss, step], {x: values, label: labels})
            log.value("loss", found)
        for variable in tf1.global_variables():
            log.value(variable.name, session.run(variable))


@script
def gradient_descent(workers, log):
    train(lambda train: train.GradientDescentOptimizer(0.1), workers, log)


@script
def momentum(workers, log):
    train(lambda train: train.MomentumOptimizer(0.05, 0.9), workers, log)


@script
def adam_of_reference_variables(workers, log):
    train(lambda train: train.AdamOptimizer(0.01), workers, log, resources=False)


@script
def devices(workers, log):
    import tensorflow as tf
    with tf.compat.v1.Session(workers[0]) as session:
        found = [device.name for device in session.list_devices() if device.device_type == "CPU"]
        log.same("devices", sorted(found))


@script
def placed_over_tasks(workers, log):
    import tensorflow as tf
    tf1 = tf.compat.v1
    x, words = tf1.placeholder(tf.float32, [None]), tf1.placeholder(tf.string, [None])
    with tf.device("/job:ps/task:0"):
        a, text = x * 2, tf.identity(words)
        count = tf1.get_variable("count", initializer=0, use_resource=True)
        counted = tf1.assign_add(count, 1)
    with tf.device("/job:worker/task:0"), tf.control_dependencies([counted]):
        b, given, same = a + x, tf.identity(text), tf.identity(a)
    with tf1.Session(workers[0]) as session:
        session.run(count.initializer)
        for values in ([1.0, 2.0], [3.0]):
            log.value("b", session.run([b, given, same], {x: values, words: ["a", "bc"]}))
        log.value("count", session.run(count))
        log.value("fed", session.run([a, x], {a: [5.0], x: [7.0]}))
        call = session.make_callable([b, given], [x, words])
        log.value("called", call([4.0, 5.0], ["d"]))


@script
def conditionals(workers, log):
    import tensorflow as tf
    tf1 = tf.compat.v1
    tf1.disable_control_flow_v2()
    x, yes = tf1.placeholder(tf.float32, []), tf1.placeholder(tf.bool, [])

    def there():
        with tf.device("/job:ps/task:0"):
            return x * 10

    def here():
        with tf.device("/job:worker/task:0"):
            return x - 1

    with tf.device("/job:worker/task:0"):
        y = tf1.cond(yes, there, here)
    with tf1.Session(workers[0]) as session:
        for taken in (True, False, True):
            log.value("y", session.run(y, {x: 3.0, yes: taken}))


@script
def loops(workers, log):
    import tensorflow as tf
    tf1 = tf.compat.v1
    tf1.disable_control_flow_v2()
    n, x = tf1.placeholder(tf.int32, []), tf1.placeholder(tf.float32, [2])

    def body(i, v):
        with tf.device("/job:ps/task:0"):
            v = v * 2
        return i + 1, v + 1

    with tf.device("/job:worker/task:0"):
        _, y = tf1.while_loop(lambda i, _: i < n, body, [0, x])
    with tf1.Session(workers[0]) as session:
        for count in (0, 1, 6):
            log.value("y", session.run(y, {n: count, x: [1.0, 2.0]}))


@script
def refusals(workers, log):
    import tensorflow as tf
    tf1 = tf.compat.v1
    x = tf1.placeholder(tf.float32, [None])
    with tf.device("/job:ps/task:0"):
        checked = tf.debugging.check_numerics(x, "no number")
        unset = tf1.get_variable("unset", initializer=[1.0], use_resource=True)
        empty = tf1.FIFOQueue(2, [tf.float32], [[]], shared_name="empty")
        taken = empty.dequeue()
        closed = empty.close()
    with tf.device("/job:worker/task:0"):
        y, z, w = checked + 1, unset + 1, taken + 1
    with tf1.Session(workers[0]) as session:
        with log.refused("a number that is none"):
            session.run(y, {x: [np.nan]})
        log.value("y", session.run(y, {x: [1.0]}))
        with log.refused("not initialised"):
            session.run(z)
        with log.refused("too late"):
            session.run(w, options=tf1.RunOptions(timeout_in_ms=300))
        session.run(closed)
        with log.refused("closed"):
            session.run(w)
    with tf.device("/job:nobody/task:0"):
        lost = x + 5
    with tf1.Session(workers[0]) as session:
        with log.refused("no such task"):
            session.run(lost, {x: [1.0]})


@script
def times_of_nodes(workers, log):
    import tensorflow as tf
    tf1 = tf.compat.v1
    x = tf1.placeholder(tf.float32, [None])
    with tf.device("/job:ps/task:0"):
        a = tf.exp(x, name="there")
    with tf.device("/job:worker/task:0"):
        b = tf.exp(a, name="here")
    with tf1.Session(workers[0]) as session:
        options, metadata = tf1.RunOptions(trace_level=3), tf1.RunMetadata()
        log.value("b", session.run(b, {x: [0.5]}, options=options, run_metadata=metadata))
        found = set()
        for device in metadata.step_stats.dev_stats:
            found.update(f"{device.device} {node.node_name.split('/')[-1]}" for node in device.node_stats
                         if node.node_name.split("/")[-1] in ("there", "here"))
        log.same("nodes", sorted(found))


@script
def reset(workers, log):
    import tensorflow as tf
    tf1 = tf.compat.v1
    with tf.device("/job:ps/task:0"):
        v = tf1.get_variable("v", initializer=[1.0], use_resource=True)
    session = tf1.Session(workers[0])
    session.run(v.initializer)
    log.value("v", session.run(v))
    tf1.Session.reset(workers[0])
    with log.refused("the session is gone"):
        session.run(v)
    with tf1.Session(workers[0]) as session, log.refused("the value is gone"):
        session.run(v)


@script
def partial_runs(workers, log):
    import tensorflow as tf
    tf1 = tf.compat.v1
    a, b, c = [tf1.placeholder(tf.float32, []) for _ in range(3)]
    with tf.device("/job:ps/task:0"):
        first = a + b
    with tf.device("/job:worker/task:0"):
        second = first * c
    with tf1.Session(workers[0]) as session:
        for _ in range(2):
            handle = session.partial_run_setup([first, second], [a, b, c])
            found = session.partial_run(handle, first, {a: 1.0, b: 2.0})
            log.value("first", found)
            log.value("second", session.partial_run(handle, second, {c: found * 17}))
        with log.refused("a run that is over"):
            session.partial_run(handle, second, {c: 1.0})
        handle = session.partial_run_setup([first, second], [a, b, c])
        with log.refused("a feed is missing"):
            session.partial_run(handle, second, {c: 1.0})
        log.value("whole", session.run(second, {a: 1.0, b: 2.0, c: 3.0}))


def sizes(metadata):
    """Bytes of the largest transfer between tasks, by the labels of the timeline."""
    import re
    units = {"B": 1, "KB": 1024, "MB": 1 << 20}
    labels = [node.timeline_label for device in metadata.step_stats.dev_stats for node in device.node_stats
              if node.node_name == "RecvTensor"]
    found = [re.match(r"\[([0-9.]+)(B|KB|MB)\]", label).groups() for label in labels]
    return max(float(count) * units[unit] for count, unit in found)


@script
def rows_of_an_embedding(workers, log):
    """Only the rows that a batch uses cross, and only their gradients: the table has 2.5 MB."""
    import tensorflow as tf
    tf1 = tf.compat.v1
    numbers = np.random.RandomState(5)
    with tf.device("/job:ps/task:0"):
        table = tf1.get_variable("table", initializer=numbers.randn(10000, 64).astype(np.float32), use_resource=True)
    ids = tf1.placeholder(tf.int32, [None])
    with tf.device("/job:worker/task:0"):
        rows = tf.nn.embedding_lookup(table, ids)
        loss = tf.reduce_mean(tf.square(rows))
    step = tf1.train.AdagradOptimizer(0.5).minimize(loss)
    with tf1.Session(workers[0]) as session:
        session.run(tf1.global_variables_initializer())
        for _ in range(5):
            batch = numbers.randint(0, 10000, 20)
            options, metadata = tf1.RunOptions(trace_level=3), tf1.RunMetadata()
            found, _ = session.run([loss, step], {ids: batch}, options=options, run_metadata=metadata)
            log.value("loss", found)
            log.same("only rows", sizes(metadata) < 20 * 64 * 4 * 3)
        log.value("used", session.run(rows, {ids: batch}))


@script
def monitored(workers, log):
    import tensorflow as tf
    tf1 = tf.compat.v1
    with tf1.variable_scope("net", use_resource=True):
        x, label, loss = loss_of(tf1, tf)
    with tf.device("/job:ps/task:0"):
        step = tf1.train.get_or_create_global_step()
    train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    with tf1.train.MonitoredTrainingSession(workers[0], is_chief=True) as session:
        for values, labels in batches(5):
            found, _, at = session.run([loss, train_op, step], {x: values, label: labels})
            log.value("loss", found)


@script
def killed_and_started_anew(workers, log, cluster):
    """The ps is killed while a step waits there; a session that is opened anew begins from nothing."""
    import tensorflow as tf
    tf1 = tf.compat.v1
    with tf.device("/job:ps/task:0"):
        v = tf1.get_variable("v", initializer=[1.0], use_resource=True)
        taken = tf1.FIFOQueue(2, [tf.float32], [[]]).dequeue()
    with tf.device("/job:worker/task:0"):
        y, z = v + 1, taken + 1
    with tf1.Session(workers[0]) as session:
        session.run(v.initializer)
        log.value("y", session.run(y))
        timer = threading.Timer(0.5, cluster.processes["ps/0"].kill)
        timer.start()
        begun = time.monotonic()
        try:
            session.run(z)
            log.same("ended", "not refused")
        except (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError):
            log.same("ended", "in time" if time.monotonic() - begun < 15 else "late")
        cluster.processes["ps/0"].wait()
        cluster.start("ps/0")
        cluster.ready("ps/0")
        try:
            session.run(y)
            log.same("after", "not refused")
        except (tf.errors.UnavailableError, tf.errors.AbortedError):
            log.same("after", "refused")
    with tf1.Session(workers[0]) as session:
        with log.refused("the value is gone"):
            session.run(y)
        session.run(v.initializer)
        log.value("y", session.run(y))


script(named_by_the_session)
script(synchronous_replicas_with_a_backup)


def play(cluster, names):
    """What the scripts log on a cluster, by name."""
    import tensorflow as tf
    outcomes = {}
    for name in names:
        log = Log()
        try:
            cluster.check()
            with tf.Graph().as_default(), tf.compat.v1.variable_scope(name):
                takes_cluster = "cluster" in inspect.signature(SCRIPTS[name]).parameters
                SCRIPTS[name](cluster.workers, log, *([cluster] if takes_cluster else []))
            outcomes[name] = ("done", log.entries)
        except Exception as error:  # noqa: BLE001 (whatever ends a script is its result)
            outcomes[name] = ("failed", f"{type(error).__name__}: {error}"[:1500])
    return outcomes


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("tenon")
    arguments.add_argument("--only", default="*")
    arguments.add_argument("--arrangements", default="oo,to,ot,oop,top,otp")
    arguments.add_argument("options", nargs="*")
    given = arguments.parse_args()
    names = [name for name in SCRIPTS if fnmatch.fnmatch(name, given.only)]
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    tf.compat.v1.disable_eager_execution()
    tf.compat.v1.logging.set_verbosity("ERROR")
    with Cluster(given.tenon, "tt", given.options) as cluster:
        expected = play(cluster, names)
    failed, compared = 0, 0
    for arrangement in given.arrangements.split(","):
        with Cluster(given.tenon, arrangement, given.options) as cluster:
            # A client of a master that is killed waits for it.
            played = [name for name in names if cluster.master != "ps" or not name.startswith("killed")]
            found = play(cluster, played)
        compared += len(played)
        for name in played:
            why = compare(found[name], expected[name])
            failed += why is not None
            print(f"{arrangement} {name}: {why or 'ok'}", flush=True)
    print(f"{failed} of {compared} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
