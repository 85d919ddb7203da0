"""Trains over three actors, kills one of them on the way, and compares the losses with those of TensorFlow in one process.

    python test_train.py TENON
"""

import os
import signal
import sys

import numpy as np
import ray

import tenon_ray

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf  # noqa: E402

tf1 = tf.compat.v1
STEPS, SAVED, KILLED = 20, 5, 12


def batches():
    numbers = np.random.RandomState(3)
    return [(numbers.randn(16, 6).astype(np.float32), numbers.randint(0, 3, 16)) for _ in range(STEPS)]


def model(server, workers):
    """A network of two layers with its variables on one device, and half of each batch on each of the others."""
    numbers = np.random.RandomState(7)
    with tf.device(server):
        first = tf1.get_variable("first", initializer=numbers.randn(6, 8).astype(np.float32))
        second = tf1.get_variable("second", initializer=numbers.randn(8, 3).astype(np.float32))
        x = tf1.placeholder(tf.float32, [16, 6], name="x")
        label = tf1.placeholder(tf.int32, [16], name="label")
    losses = []
    for worker, values, labels in zip(workers, tf.split(x, 2), tf.split(label, 2)):
        with tf.device(worker):
            logits = tf.matmul(tf.nn.relu(tf.matmul(values, first)), second)
            losses.append(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    with tf.device(server):
        loss = tf.reduce_mean(tf.concat(losses, 0))
        return x, label, loss, tf1.train.MomentumOptimizer(0.05, 0.9).minimize(loss)


def expected():
    """The losses in one process of TensorFlow."""
    with tf.Graph().as_default(), tf1.Session() as session:
        x, label, loss, step = model("/cpu:0", ["/cpu:0", "/cpu:0"])
        session.run(tf1.global_variables_initializer())
        return [session.run([loss, step], {x: values, label: labels})[0] for values, labels in batches()]


def train(cluster):
    """The losses over the cluster, whose worker 1 is killed on the way."""
    found, at, killed = [None] * STEPS, 0, False
    with tf.Graph().as_default():
        x, label, loss, step = model("/job:ps/task:0", ["/job:worker/task:0", "/job:worker/task:1"])
        state = tf1.global_variables()
        values = [tf1.placeholder(variable.dtype, variable.shape) for variable in state]
        restore = [tf1.assign(variable, value) for variable, value in zip(state, values)]
        initialise, saved = tf1.global_variables_initializer(), None
        while at < STEPS:
            try:
                with tf1.Session(cluster.target("worker", 0)) as session:
                    if saved is None:
                        session.run(initialise)
                    else:
                        at = saved[0]
                        session.run(restore, dict(zip(values, saved[1])))
                    while at < STEPS:
                        if at == KILLED and not killed:
                            killed = True
                            process, _ = ray.get(cluster.actors["worker", 1].processes.remote())
                            os.kill(process, signal.SIGKILL)
                        batch = batches()[at]
                        found[at] = session.run([loss, step], {x: batch[0], label: batch[1]})[0]
                        at += 1
                        if at % SAVED == 0:
                            saved = at, session.run(state)
            except (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError) as error:
                print(f"step {at}: {type(error).__name__}", flush=True)
                healed = cluster.heal()
                print(f"started again: {healed}", flush=True)
    assert killed
    return found


def main(tenon):
    tf1.disable_eager_execution()
    ray.init(num_cpus=4, include_dashboard=False, logging_level="ERROR")
    with tenon_ray.Cluster({"ps": 1, "worker": 2}, tenon=tenon, strategy="PACK", host="127.0.0.1") as cluster:
        servers = [ray.get(actor.processes.remote())[1] for actor in cluster.actors.values()]
        found = train(cluster)
        restarted = [ray.get(actor.processes.remote())[1] for actor in cluster.actors.values()]
        assert sum(a != b for a, b in zip(servers, restarted)) == 1, (servers, restarted)
    np.testing.assert_allclose(found, expected(), rtol=1e-5)
    for process in restarted:
        assert not os.path.exists(f"/proc/{process}"), "a server outlives the cluster"
    print(f"ray: {STEPS} losses over three actors, of which one was killed, are TensorFlow's; the last is {found[-1]:.6f}")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
