"""Training on a cluster of `tenon serve` whose tasks are killed or stopped in turn: it goes on by itself, and ends where an
undisturbed training on TensorFlow's servers does.

    python killed.py TENON [PLUGIN...]

The script is stock TensorFlow 1 code: MonitoredTrainingSession restores the last checkpoint when it has lost its session. A
task that ended is started again, as `tenon cluster up --restart` or a launcher would. Another client loads the cluster
meanwhile.
"""

import os
import signal
import sys
import tempfile
import threading
import time

import numpy as np

from clusters import Cluster

STEPS = 60


def graph(tf1, tf):
    """A network whose variables are at the ps, and whose batch is chosen by the global step, so that a restored training
    goes on with the batch that is next."""
    numbers = np.random.RandomState(11)
    inputs = numbers.randn(STEPS, 16, 6).astype(np.float32)
    wanted = numbers.randint(0, 3, [STEPS, 16])
    with tf.device("/job:ps/task:0"), tf1.variable_scope("net", use_resource=True):
        first = tf1.get_variable("first", initializer=numbers.randn(6, 8).astype(np.float32))
        second = tf1.get_variable("second", initializer=numbers.randn(8, 3).astype(np.float32))
        step = tf1.train.get_or_create_global_step()
    with tf.device("/job:worker/task:0"):
        before = tf.identity(step)
        at = tf.minimum(before, STEPS - 1)
        hidden = tf.nn.relu(tf.matmul(tf.gather(inputs, at), first))
    with tf.device("/job:worker/task:1"):
        logits = tf.matmul(hidden, second)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.gather(wanted, at), logits=logits)
        loss = tf.reduce_mean(losses)
    # The step is read before the update.
    with tf.control_dependencies([before]):
        train = tf1.train.MomentumOptimizer(0.05, 0.9).minimize(loss, global_step=step)
    return train, loss, before


class Tasks(Cluster):
    """A ps and two workers; all are ours, or all TensorFlow's."""

    def __init__(self, tenon, kind, plugins):
        super().__init__(tenon, kind * 2, plugins)
        from harness import free_port
        self.kinds["worker/1"] = kind
        self.spec["worker"].append(f"localhost:{free_port()}")
        self.is_open = True

    def keep(self):
        """Starts tasks that ended, until the cluster is closed."""
        while self.is_open:
            for task, process in list(self.processes.items()):
                if self.is_open and process.poll() is not None:
                    self.start(task)
                    self.ready(task)
            time.sleep(0.1)


class Disturb:
    """Sends a signal to a task when the training has come to a step, once for each entry."""

    def __init__(self, cluster, plan):
        self.cluster, self.plan, self.done = cluster, list(plan), []

    def at(self, step):
        if not self.plan or step < self.plan[0][0]:
            return
        _, task, kind = self.plan.pop(0)
        process = self.cluster.processes[task]
        self.done.append((step, task, kind))
        if kind == "kill":
            process.kill()
        else:
            process.send_signal(signal.SIGSTOP)
            threading.Timer(8, process.send_signal, [signal.SIGCONT]).start()


def load(cluster, stop):
    """Another client, whose steps use all tasks; what becomes of them does not matter."""
    import tensorflow as tf
    tf1 = tf.compat.v1
    built = tf.Graph()
    with built.as_default():
        with tf.device("/job:ps/task:0"):
            a = tf.ones([64, 64]) * 0.01
        with tf.device("/job:worker/task:1"):
            b = tf.matmul(a, a)
        with tf.device("/job:worker/task:0"):
            c = tf.reduce_sum(tf.matmul(b, a))
    while not stop.is_set():
        try:
            with tf1.Session(cluster.workers[0], graph=built) as session:
                while not stop.is_set():
                    session.run(c, options=tf1.RunOptions(timeout_in_ms=5000))
        except tf.errors.OpError:
            time.sleep(0.2)


def train(cluster, plan, is_loaded=False):
    """The losses by step, and what was sent to whom."""
    import tensorflow as tf
    tf1 = tf.compat.v1
    losses, disturb, stop = {}, Disturb(cluster, plan), threading.Event()
    loader = threading.Thread(target=load, args=[cluster, stop])
    if is_loaded:
        loader.start()
    try:
        with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
            operation, loss, before = graph(tf1, tf)
            config = tf1.ConfigProto(operation_timeout_in_ms=60000)
            with tf1.train.MonitoredTrainingSession(
                    cluster.workers[0], is_chief=True, checkpoint_dir=folder, save_checkpoint_steps=5,
                    save_summaries_steps=None, save_summaries_secs=None, log_step_count_steps=None, config=config,
                    hooks=[tf1.train.StopAtStepHook(last_step=STEPS)]) as session:
                while not session.should_stop():
                    found, at, _ = session.run([loss, before, operation])
                    losses[int(at)] = float(found)
                    disturb.at(int(at))
    finally:
        stop.set()
        if is_loaded:
            loader.join()
    return losses, disturb


PLANS = {
    "killed": [(8, "ps/0", "kill"), (18, "worker/1", "kill"), (28, "worker/0", "kill"), (38, "ps/0", "kill")],
    "stopped": [(8, "ps/0", "stop"), (18, "worker/1", "stop"), (28, "worker/0", "stop")],
}


def main(tenon, plugins):
    import tensorflow as tf
    tf.compat.v1.disable_eager_execution()
    tf.compat.v1.logging.set_verbosity("ERROR")
    with Tasks(tenon, "t", plugins) as cluster:
        expected, _ = train(cluster, [])
    last = max(expected)
    for name, plan in PLANS.items():
        for is_loaded in (False, True):
            with Tasks(tenon, "o", plugins) as cluster:
                keeper = threading.Thread(target=cluster.keep)
                keeper.start()
                begun = time.monotonic()
                try:
                    found, disturb = train(cluster, plan, is_loaded)
                finally:
                    cluster.is_open = False
                    keeper.join()
            assert not disturb.plan, f"{name}: not all tasks were {name}: {disturb.plan}"
            assert max(found) == last, (max(found), last)
            difference = abs(found[last] - expected[last])
            assert difference < 1e-5, f"{name}: the last loss is {found[last]}, expected {expected[last]}"
            took = time.monotonic() - begun
            print(f"{name}{' under load' if is_loaded else ''}: {disturb.done}, last loss {found[last]:.6f} of "
                  f"{expected[last]:.6f}, {took:.0f} s", flush=True)
    print("killed: the training goes on after each task was killed or stopped, and ends as undisturbed")


if __name__ == "__main__":
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    main(sys.argv[1], sys.argv[2:])
