"""Variables, by reference and by handle: reads, writes, sharing, containers, and what is not initialised."""

import numpy as np
import tensorflow as tf

from harness import case

tf1 = tf.compat.v1


def variable(kind, *args, **options):
    return tf1.get_variable(*args, use_resource=kind == "resource", **options)


def both(function):
    """A case for each kind of variable."""
    for kind in ("reference", "resource"):
        def run(address, log, kind=kind):
            function(address, log, kind)
        run.__name__ = f"{function.__name__}_by_{kind}"
        case(run)


@both
def a_variable_keeps_its_value(address, log, kind):
    v = variable(kind, "v", initializer=np.float32([1, 2, 3]))
    add, sub = tf1.assign_add(v, [1, 1, 1]), tf1.assign_sub(v, [0.5, 0, 0])
    with tf1.Session(address) as session:
        session.run(tf1.global_variables_initializer())
        log.value("initial", session.run(v))
        log.value("added", session.run(add))
        log.value("subtracted", session.run(sub))
        log.value("kept", session.run(v))


@both
def a_variable_without_a_value(address, log, kind):
    v = variable(kind, "v", initializer=np.float32(1))
    with tf1.Session(address) as session:
        with log.refused("read"):
            session.run(v)
        with log.refused("update"):
            session.run(tf1.assign_add(v, 1))
        log.value("is not", session.run(tf1.is_variable_initialized(v)))
        session.run(v.initializer)
        log.value("is", session.run(tf1.is_variable_initialized(v)))
        log.value("value", session.run(v))


@both
def which_variables_are_not_initialised(address, log, kind):
    a = variable(kind, "a", initializer=np.float32(1))
    variable(kind, "b", initializer=np.int32([1, 2]))
    report = tf1.report_uninitialized_variables()
    with tf1.Session(address) as session:
        log.same("both", sorted(str(name) for name in session.run(report)))
        session.run(a.initializer)
        log.same("one", sorted(str(name) for name in session.run(report)))


@both
def sessions_share_variables(address, log, kind):
    v = variable(kind, "v", initializer=np.float32(1))
    with tf1.Session(address) as first, tf1.Session(address) as second:
        first.run(v.initializer)
        log.value("second sees it", second.run(v))
        second.run(tf1.assign(v, 7))
        log.value("first sees it", first.run(v))


@both
def isolated_sessions_do_not(address, log, kind):
    v = variable(kind, "v", initializer=np.float32(1))
    config = tf1.ConfigProto(isolate_session_state=True)
    with tf1.Session(address, config=config) as first, tf1.Session(address) as second:
        first.run(v.initializer)
        log.value("first", first.run(v))
        with log.refused("second"):
            second.run(v)


@both
def a_variable_stays_after_its_session(address, log, kind):
    v = variable(kind, "v", initializer=np.float32(3))
    with tf1.Session(address) as session:
        session.run(v.initializer)
    with tf1.Session(address) as session:
        log.value("still there", session.run(v))


@both
def a_container_is_reset(address, log, kind):
    with tf1.container("kept"):
        kept = variable(kind, "kept", initializer=np.float32(3))
    gone = variable(kind, "gone", initializer=np.float32(4))
    with tf1.Session(address) as session:
        session.run([kept.initializer, gone.initializer])
    tf1.Session.reset(address)
    with tf1.Session(address) as session:
        log.value("kept", session.run(kept))
        with log.refused("gone"):
            session.run(gone)
    tf1.Session.reset(address, ["kept"])
    with tf1.Session(address) as session, log.refused("kept no more"):
        session.run(kept)


@both
def an_assignment_of_another_shape(address, log, kind):
    v = tf1.Variable(np.float32([1, 2]), validate_shape=False, use_resource=kind == "resource",
                     shape=tf.TensorShape(None) if kind == "resource" else None)
    assign = tf1.assign(v, np.float32([1, 2, 3]), validate_shape=False)
    with tf1.Session(address) as session:
        session.run(v.initializer)
        session.run(assign.op if kind == "resource" else assign)
        log.value("value", session.run(v))


@both
def many_updates(address, log, kind):
    v = variable(kind, "v", initializer=np.zeros([100], np.float32))
    add = tf1.assign_add(v, np.arange(100, dtype=np.float32)).op
    with tf1.Session(address) as session:
        session.run(v.initializer)
        for _ in range(50):
            session.run(add)
        log.value("value", session.run(v))


@both
def a_read_before_and_after_an_update(address, log, kind):
    v = variable(kind, "v", initializer=np.float32(1))
    before = tf.identity(v.read_value() if kind == "resource" else v._ref())
    with tf.control_dependencies([before]):
        update = tf1.assign_add(v, 10)
    with tf.control_dependencies([update]):
        after = tf.identity(v.read_value() if kind == "resource" else v._ref())
    with tf1.Session(address) as session:
        session.run(v.initializer)
        log.value("after", session.run(after))
        log.value("again", session.run(after))


@both
def gradient_descent_by_hand(address, log, kind):
    x = np.random.RandomState(0).randn(20, 3).astype(np.float32)
    y = x @ np.float32([[1], [-2], [3]])
    w = variable(kind, "w", initializer=np.zeros([3, 1], np.float32))
    error = tf.matmul(x, w) - y
    gradient = tf.matmul(tf.transpose(tf.constant(x)), error) * (2 / 20)
    step = tf1.assign_sub(w, 0.1 * gradient).op
    loss = tf.reduce_mean(tf.square(error))
    with tf1.Session(address) as session:
        session.run(w.initializer)
        losses = []
        for _ in range(30):
            losses.append(session.run(loss))
            session.run(step)
        log.value("losses", np.array(losses))
        log.value("weights", session.run(w))


def types_named():
    for dtype in (tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.int32, tf.int64, tf.int8,
                  tf.uint8, tf.int16, tf.uint16, tf.complex64, tf.complex128):
        for kind in ("reference", "resource"):
            def run(address, log, kind=kind, dtype=dtype):
                value = np.array([1, 2, 3]).astype(dtype.as_numpy_dtype)
                v = variable(kind, "v", initializer=value)
                add = tf1.assign_add(v, value)
                with tf1.Session(address) as session:
                    session.run(v.initializer)
                    log.value("value", session.run(v))
                    log.value("added", session.run(add))
            run.__name__ = f"a_variable_of_{dtype.name}_by_{kind}"
            case(run)


types_named()


@both
def a_variable_of_strings(address, log, kind):
    v = variable(kind, "v", initializer=np.array([b"a", b"bc"], object), dtype=tf.string)
    with tf1.Session(address) as session:
        session.run(v.initializer)
        log.value("value", session.run(v))


@both
def a_counter_to_its_limit(address, log, kind):
    v = variable(kind, "v", initializer=np.int32(0))
    count = v.count_up_to(3)
    with tf1.Session(address) as session:
        session.run(v.initializer)
        for at in range(3):
            log.value(f"{at}", session.run(count))
        with log.refused("limit"):
            session.run(count)


@case
def the_shape_of_a_variable(address, log):
    v = tf1.get_variable("v", initializer=np.zeros([2, 5], np.float32), use_resource=True)
    shape = tf.raw_ops.VariableShape(input=v.handle, out_type=tf.int64)
    with tf1.Session(address) as session:
        with log.refused("without a value"):
            session.run(shape)
        session.run(v.initializer)
        log.value("shape", session.run(shape))


@case
def a_reference_cannot_be_fed(address, log):
    v = tf1.get_variable("v", initializer=np.float32(1), use_resource=False)
    y = v + 1
    with tf1.Session(address) as session:
        session.run(v.initializer)
        log.value("value", session.run(y))


@case
def a_variable_of_another_type_under_the_same_name(address, log):
    a = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[], shared_name="same")
    b = tf.raw_ops.VarHandleOp(dtype=tf.int32, shape=[], shared_name="same")
    set_a = tf.raw_ops.AssignVariableOp(resource=a, value=tf.constant(1.0))
    with tf1.Session(address) as session:
        session.run(set_a)
        with log.refused("int32"):
            session.run(tf.raw_ops.ReadVariableOp(resource=b, dtype=tf.int32))
