"""The methods of the master, through the client's own calls."""

import threading
import time

import numpy as np
import tensorflow as tf

from harness import case

tf1 = tf.compat.v1
tf1.disable_control_flow_v2()


def floats(*values):
    return np.array(values, np.float32)


def small_graph():
    """x * 2 and x * 2 + 1 of a vector."""
    x = tf1.placeholder(tf.float32, [None], name="x")
    double = tf.multiply(x, 2.0, name="double")
    return x, double, tf.add(double, 1.0, name="more")


@case
def a_step_gives_what_was_fetched(address, log):
    x, double, more = small_graph()
    with tf1.Session(address) as session:
        log.value("one", session.run(double, {x: floats(1, 2)}))
        log.value("both", session.run([more, double], {x: floats(3)}))
        log.value("nested", session.run({"a": [more, {"b": double}]}, {x: floats(-1)}))


@case
def a_fetch_by_name_and_a_fed_inner_tensor(address, log):
    x, double, more = small_graph()
    with tf1.Session(address) as session:
        log.value("name", session.run(more.name, {x.name: floats(1)}))
        log.value("inner", session.run(more, {double: floats(10, 20)}))
        log.value("same", session.run([more, more], {x: floats(1)}))


@case
def targets_run_without_values(address, log):
    x, double, _ = small_graph()
    with tf1.Session(address) as session:
        log.same("target", session.run(double.op, {x: floats(1)}) is None)
        log.same("group", session.run(tf.group(double.op), {x: floats(1)}) is None)


@case
def the_graph_grows_between_steps(address, log):
    x, double, more = small_graph()
    with tf1.Session(address) as session:
        log.value("before", session.run(more, {x: floats(1)}))
        for at in range(5):
            more = tf.add(more, float(at))
            log.value(f"after {at}", session.run(more, {x: floats(1)}))


@case
def many_sessions_at_once(address, log):
    x, double, more = small_graph()
    sessions = [tf1.Session(address) for _ in range(20)]
    for at, session in enumerate(sessions):
        log.value(f"{at}", session.run(more, {x: floats(at)}))
    for session in sessions:
        session.close()


@case
def a_closed_session_is_refused(address, log):
    x, double, _ = small_graph()
    session = tf1.Session(address)
    session.run(double, {x: floats(1)})
    session.close()
    with log.refused("run"):
        session.run(double, {x: floats(1)})
    session.close()
    log.same("closing twice is fine", True)


@case
def a_placeholder_that_is_not_fed(address, log):
    _, double, _ = small_graph()
    with tf1.Session(address) as session, log.refused("run"):
        session.run(double)


@case
def a_feed_of_another_shape(address, log):
    x = tf1.placeholder(tf.float32, None, name="x")
    y = tf.matmul(tf.reshape(x, [2, 2]), tf.ones([2, 2]))
    with tf1.Session(address) as session:
        log.value("fits", session.run(y, {x: floats(1, 2, 3, 4)}))
        with log.refused("does not"):
            session.run(y, {x: floats(1, 2, 3)})
        log.value("after the error", session.run(y, {x: floats(1, 1, 1, 1)}))


@case
def an_error_of_a_kernel(address, log):
    x = tf1.placeholder(tf.int32, [])
    y = tf.gather(tf.constant([1, 2, 3]), x)
    with tf1.Session(address) as session:
        log.value("inside", session.run(y, {x: 2}))
        with log.refused("outside"):
            session.run(y, {x: 7})


@case
def division_of_integers_by_zero(address, log):
    x = tf1.placeholder(tf.int32, [2])
    y = tf.math.floordiv(tf.constant([7, 8]), x)
    with tf1.Session(address) as session, log.refused("run"):
        session.run(y, {x: [1, 0]})


@case
def a_check_that_fails(address, log):
    x = tf1.placeholder(tf.float32, [2])
    y = tf.debugging.check_numerics(x, "a value that is none")
    with tf1.Session(address) as session:
        log.value("finite", session.run(y, {x: [1, 2]}))
        with log.refused("NaN"):
            session.run(y, {x: [1, np.nan]})


@case
def an_assertion_that_fails(address, log):
    x = tf1.placeholder(tf.bool, [])
    check = tf1.Assert(x, ["the predicate is", x])
    with tf1.Session(address) as session:
        session.run(check, {x: True})
        with log.refused("false"):
            session.run(check, {x: False})


@case
def an_op_that_is_not_there(address, log):
    graph = tf.Graph()
    definition = tf1.GraphDef()
    node = definition.node.add()
    node.name, node.op = "x", "Const"
    node.attr["dtype"].type = tf.float32.as_datatype_enum
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(1.0))
    tf.import_graph_def(definition, name="")
    with tf1.Session(address) as session:
        log.value("there", session.run("x:0"))


@case
def a_device_that_is_not_there(address, log):
    with tf.device("/device:GPU:7"):
        x = tf.constant([1.0])
        y = x + 1
    with tf1.Session(address) as session, log.refused("hard"):
        session.run(y)
    soft = tf1.ConfigProto(allow_soft_placement=True)
    with tf1.Session(address, config=soft) as session:
        log.value("soft", session.run(y))


@case
def a_task_that_is_not_there(address, log):
    with tf.device("/job:worker/task:3"):
        y = tf.constant([1.0]) + 1
    with tf1.Session(address) as session, log.refused("run"):
        session.run(y)


@case
def devices_are_listed(address, log):
    with tf1.Session(address) as session:
        devices = session.list_devices()
        cpu = [device for device in devices if device.device_type == "CPU"]
        log.same("name", [device.name for device in cpu])
        log.same("memory", all(device.memory_limit_bytes > 0 for device in cpu))


@case
def a_callable_runs_like_a_step(address, log):
    x, double, more = small_graph()
    with tf1.Session(address) as session:
        run = session.make_callable([more, double], [x])
        for at in range(3):
            log.value(f"{at}", run(floats(at, -at)))
        with log.refused("shape"):
            run(np.zeros([2, 2], np.float32))


@case
def a_callable_of_options(address, log):
    x, double, more = small_graph()
    from tensorflow.core.protobuf import config_pb2
    options = config_pb2.CallableOptions(feed=[x.name], fetch=[more.name], target=[double.op.name])
    with tf1.Session(address) as session:
        run = session._make_callable_from_options(options)
        log.value("first", run(floats(1)))
        log.value("second", run(floats(2)))
        with log.refused("type", theirs={"InternalError": "InvalidArgumentError"}):
            run(np.zeros([1], np.int64))
        metadata = config_pb2.RunMetadata()
        log.value("metadata", run(floats(2), run_metadata=metadata))
        del run


@case
def a_callable_of_names_that_are_not_there(address, log):
    _, _, more = small_graph()
    from tensorflow.core.protobuf import config_pb2
    options = config_pb2.CallableOptions(feed=["nothing:0"], fetch=[more.name])
    with tf1.Session(address) as session, log.refused("make"):
        session._make_callable_from_options(options)


@case
def a_partial_run(address, log):
    a, b, c = (tf1.placeholder(tf.float32, []) for _ in range(3))
    first = tf.add(a, b)
    second = tf.multiply(first, c)
    with tf1.Session(address) as session:
        handle = session.partial_run_setup([first, second], [a, b, c])
        log.value("first", session.partial_run(handle, first, {a: 1, b: 2}))
        log.value("second", session.partial_run(handle, second, {c: 17}))
        handle = session.partial_run_setup([second], [a, b, c])
        session.partial_run(handle, [], {a: 1})
        log.value("three parts", session.partial_run(handle, second, {b: 2, c: 3}))


@case
def a_partial_run_with_a_target(address, log):
    a = tf1.placeholder(tf.float32, [])
    y = a + 1
    with tf1.Session(address) as session:
        handle = session.partial_run_setup([y.op, y], [a])
        log.value("value", session.partial_run(handle, y, {a: 1}))


@case
def a_partial_run_that_is_fed_too_little(address, log):
    a, b = (tf1.placeholder(tf.float32, []) for _ in range(2))
    first, second = a + 1, None
    second = first * b
    with tf1.Session(address) as session:
        handle = session.partial_run_setup([first, second], [a, b])
        with log.refused("needs b"):
            session.partial_run(handle, second, {a: 2})


@case
def a_partial_run_that_asks_twice(address, log):
    a, b = (tf1.placeholder(tf.float32, []) for _ in range(2))
    first = a + 1
    second = first * b
    with tf1.Session(address) as session:
        handle = session.partial_run_setup([first, second], [a, b])
        log.value("once", session.partial_run(handle, first, {a: 2}))
        with log.refused("twice"):
            session.partial_run(handle, first)


@case
def a_partial_run_that_feeds_twice(address, log):
    a, b = (tf1.placeholder(tf.float32, []) for _ in range(2))
    first = a + 1
    second = first * b
    with tf1.Session(address) as session:
        handle = session.partial_run_setup([first, second], [a, b])
        log.value("once", session.partial_run(handle, first, {a: 2}))
        with log.refused("twice"):
            session.partial_run(handle, second, {a: 3, b: 1})


@case
def a_partial_run_of_what_was_not_named(address, log):
    a, b = (tf1.placeholder(tf.float32, []) for _ in range(2))
    first = a + 1
    second = a * b
    with tf1.Session(address) as session:
        handle = session.partial_run_setup([first], [a])
        with log.refused("fetch"):
            session.partial_run(handle, second, {a: 2})


@case
def a_partial_run_that_fails(address, log):
    a, b = tf1.placeholder(tf.int32, []), tf1.placeholder(tf.int32, [])
    first = tf.gather(tf.constant([1, 2]), a)
    second = first + b
    with tf1.Session(address) as session:
        handle = session.partial_run_setup([first, second], [a, b])
        with log.refused("first"):
            session.partial_run(handle, first, {a: 9})


@case
def the_times_of_a_step(address, log):
    x, double, more = small_graph()
    full = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE)
    metadata = tf1.RunMetadata()
    with tf1.Session(address) as session:
        session.run(more, {x: floats(1)}, options=full, run_metadata=metadata)
    stats = [stats for device in metadata.step_stats.dev_stats for stats in device.node_stats]
    log.same("there are some", len(stats) > 0)
    log.same("they took time", all(one.all_end_rel_micros >= 0 for one in stats))
    now = time.time() * 1e6
    log.same("just now", all(abs(now - one.all_start_micros) < 60e6 for one in stats))


@case
def the_graphs_of_a_step(address, log):
    x, double, more = small_graph()
    options = tf1.RunOptions(output_partition_graphs=True)
    metadata = tf1.RunMetadata()
    with tf1.Session(address) as session:
        session.run(more, {x: floats(1)}, options=options, run_metadata=metadata)
    log.same("there are some", len(metadata.partition_graphs) > 0)
    log.same("with devices", all(node.device for graph in metadata.partition_graphs
                                 for node in graph.node))


@case
def no_metadata_unless_it_is_asked_for(address, log):
    x, double, more = small_graph()
    metadata = tf1.RunMetadata()
    with tf1.Session(address) as session:
        session.run(more, {x: floats(1)}, run_metadata=metadata)
    log.same("stats", len(metadata.step_stats.dev_stats))
    log.same("graphs", len(metadata.partition_graphs))


@case
def optimisation_can_be_off(address, log):
    x, double, more = small_graph()
    config = tf1.ConfigProto()
    config.graph_options.optimizer_options.opt_level = -1
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with tf1.Session(address, config=config) as session:
        log.value("value", session.run(more, {x: floats(1, 2)}))


@case
def reset_closes_sessions(address, log):
    x, double, _ = small_graph()
    session = tf1.Session(address)
    session.run(double, {x: floats(1)})
    tf1.Session.reset(address)
    with log.refused("run"):
        session.run(double, {x: floats(1)})
    with tf1.Session(address) as session:
        log.value("a new one", session.run(double, {x: floats(1)}))


@case
def steps_run_at_the_same_time(address, log):
    x, double, more = small_graph()
    with tf1.Session(address) as session:
        results = [None] * 8

        def run(at):
            for _ in range(20):
                results[at] = session.run(more, {x: floats(at)})

        threads = [threading.Thread(target=run, args=(at,)) for at in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        log.value("values", results)


@case
def a_deadline_that_a_step_keeps(address, log):
    x, double, more = small_graph()
    with tf1.Session(address) as session:
        options = tf1.RunOptions(timeout_in_ms=20000)
        log.value("value", session.run(more, {x: floats(1)}, options=options))


@case
def a_deadline_of_the_session(address, log):
    x, double, more = small_graph()
    config = tf1.ConfigProto(operation_timeout_in_ms=20000)
    with tf1.Session(address, config=config) as session:
        log.value("value", session.run(more, {x: floats(1)}))


@case
def a_tensor_that_is_fed_and_fetched(address, log):
    x, double, more = small_graph()
    with tf1.Session(address) as session:
        log.value("value", session.run([x, more], {x: floats(4)}))


@case
def the_same_graph_in_two_sessions(address, log):
    x, double, more = small_graph()
    with tf1.Session(address) as first, tf1.Session(address) as second:
        log.value("first", first.run(more, {x: floats(1)}))
        log.value("second", second.run(more, {x: floats(2)}))
        third = more * 3
        log.value("extended", second.run(third, {x: floats(2)}))
        log.value("both", first.run(third, {x: floats(1)}))


@case
def an_empty_graph_has_devices(address, log):
    with tf1.Session(address) as session:
        log.same("some", len(session.list_devices()) > 0)
