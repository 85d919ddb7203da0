"""A script of clusters.py: a session that names the tasks of the cluster anew."""

import numpy as np


def named_by_the_session(workers, log, cluster):
    """A session that names the tasks anew: the master's is /job:near, the other one /job:far."""
    import tensorflow as tf
    tf1 = tf.compat.v1
    near = workers[0].removeprefix("grpc://")
    far = next(address for addresses in cluster.spec.values() for address in addresses if address != near)
    named = tf.train.ClusterSpec({"near": [near], "far": {3: far}}).as_cluster_def()
    x = tf1.placeholder(tf.float32, [None])
    with tf.device("/job:far/task:3"):
        v = tf1.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
        checked = tf.debugging.check_numerics(x, "no number")
        product = v * x
    with tf.device("/job:near/task:0"):
        y, added = product + 1, v.assign_add(x)
    config = tf1.ConfigProto(cluster_def=named)
    with tf1.Session(workers[0], config=config) as session:
        with log.refused("not initialised"):
            session.run(y, {x: [1.0]})
        session.run(v.initializer)
        log.value("y", session.run(y, {x: [3.0, 4.0]}))
        session.run(added, {x: [1.0, 1.0]})
        options, metadata = tf1.RunOptions(trace_level=3), tf1.RunMetadata()
        log.value("y after", session.run(y, {x: [3.0, 4.0]}, options=options, run_metadata=metadata))
        log.same("timed", sorted({it.device for it in metadata.step_stats.dev_stats if it.device.endswith("CPU:0")}))
        log.same("devices", sorted(it.name for it in session.list_devices() if it.device_type == "CPU"))
        with log.refused("a number that is none"):
            session.run(checked, {x: [np.nan]})
    with tf1.Session(workers[0], config=config) as session, log.refused("a value of another session"):
        session.run(y, {x: [1.0]})
    config.experimental.share_session_state_in_clusterspec_propagation = True
    with tf1.Session(workers[0], config=config) as session:
        session.run(v.initializer)
    with tf1.Session(workers[0], config=config) as session:
        log.value("shared", session.run(y, {x: [3.0, 4.0]}))
    for what, tasks in [("without the master", {"far": [far]}), ("the master twice", {"near": [near], "again": [near]})]:
        config = tf1.ConfigProto(cluster_def=tf.train.ClusterSpec(tasks).as_cluster_def())
        with tf1.Session(workers[0], config=config) as session, log.refused(what):
            session.run(tf.constant(1.0))
