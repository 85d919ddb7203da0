"""Functions: calls, conditionals and loops of functions, recursion, functions with state."""

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import function as defun

from harness import case

tf1 = tf.compat.v1
tf1.enable_control_flow_v2()


def count(graph, op):
    """How many nodes of the graph are of this op."""
    return sum(node.op == op for node in graph.as_graph_def().node)


@case
def a_function_is_called(address, log):
    @tf.function
    def f(x, y):
        return x * y + 1

    x = tf1.placeholder(tf.float32, [None])
    y = f(x, tf.constant(3.0))
    log.same("calls", count(tf1.get_default_graph(), "PartitionedCall"))
    with tf1.Session(address) as session:
        log.value("result", session.run(y, {x: [1, 2]}))
        log.value("other size", session.run(y, {x: [1, 2, 3]}))


@case
def a_function_with_several_results(address, log):
    @tf.function
    def f(x):
        return x + 1, x, tf.constant(7), tf.split(x, 2)

    x = tf1.placeholder(tf.float32, [4])
    results = f(x)
    with tf1.Session(address) as session:
        log.value("all", session.run(results, {x: [1, 2, 3, 4]}))
        log.value("one", session.run(results[3][1], {x: [1, 2, 3, 4]}))
        log.value("an argument", session.run(results[1], {x: [1, 2, 3, 4]}))
        log.value("a constant", session.run(results[2], {x: [1, 2, 3, 4]}))


@case
def functions_call_functions(address, log):
    @tf.function
    def inner(x):
        return x * x

    @tf.function
    def middle(x):
        return inner(x) + inner(x + 1)

    @tf.function
    def outer(x):
        return middle(inner(x))

    x = tf1.placeholder(tf.int32, [])
    with tf1.Session(address) as session:
        log.value("result", session.run(outer(x), {x: 3}))


@case
def a_function_is_not_inlined(address, log):
    @tf.function
    def f(x):
        return tf.reduce_sum(x * x), tf.shape(x)

    x = tf1.placeholder(tf.float32, [None])
    result = f(x)
    graph = tf1.get_default_graph().as_graph_def()
    for definition in graph.library.function:
        definition.attr["_noinline"].b = True
    with tf.Graph().as_default():
        names = [tensor.name for tensor in result]
        again = tf1.import_graph_def(graph, return_elements=[x.name, *names], name="")
        with tf1.Session(address) as session:
            for size in (0, 1, 5, 5):
                feed = {again[0]: np.arange(size, dtype=np.float32)}
                log.value(str(size), session.run(again[1:], feed))


@case
def a_fed_result_is_not_computed(address, log):
    @tf.function
    def f(x):
        return x + 1, x * 2

    x = tf1.placeholder(tf.float32, [])
    a, b = f(x)
    with tf1.Session(address) as session:
        call = a.op.inputs[0] if a.op.type == "Identity" else a
        log.value("fed", session.run([a + 1, b], {x: 1, call: 10}))


@case
def old_functions(address, log):
    @defun.Defun(tf.float32, tf.float32)
    def f(x, y):
        return x - y, x + y

    @defun.Defun(tf.float32)
    def g(x):
        return f(x, 2.0)[0] * 3

    x = tf1.placeholder(tf.float32, [])
    a, b = f(x, 1.0)
    with tf1.Session(address) as session:
        log.value("f", session.run([a, b], {x: 5}))
        log.value("g", session.run(g(x), {x: 5}))
        log.value("twice", session.run(g(g(x)), {x: 5}))


@case
def a_function_called_by_name(address, log):
    @defun.Defun(tf.float32, noinline=True)
    def f(x):
        return tf.exp(x)

    x = tf1.placeholder(tf.float32, [])
    with tf1.Session(address) as session:
        log.value("noinline", session.run(f(f(x)), {x: 0.1}))


@case
def a_condition(address, log):
    p = tf1.placeholder(tf.bool, [])
    x = tf1.placeholder(tf.float32, [None])
    y = tf.cond(p, lambda: (x + 1, tf.constant(1)), lambda: (x * 2, tf.constant(2)))
    kinds = [count(tf1.get_default_graph(), op) for op in ("If", "StatelessIf")]
    log.same("is functional", sum(kinds))
    with tf1.Session(address) as session:
        for value in (True, False):
            log.value(str(value), session.run(y, {p: value, x: [1, 2]}))
            log.value(f"{value}, one", session.run(y[1], {p: value, x: [1, 2]}))


@case
def conditions_of_other_types(address, log):
    @tf.function
    def yes(x):
        return x + 1

    @tf.function
    def no(x):
        return x - 1

    x = tf.constant(10.0)
    then_branch, else_branch = (f.get_concrete_function(x) for f in (yes, no))
    for kind, values in [
        (tf.int32, (0, 3, -1)), (tf.float32, (0.0, 0.5)), (tf.string, ("", "a")), (tf.int64, (0, 1 << 40)),
    ]:
        c = tf1.placeholder(kind, None)
        y, = tf.raw_ops.If(cond=c, input=[x], Tout=[tf.float32], then_branch=then_branch,
                           else_branch=else_branch)
        with tf1.Session(address) as session:
            for value in values:
                log.value(f"{kind.name} {value!r}", session.run(y, {c: value}))
            zero = b"" if kind == tf.string else 0
            for size in (2, 0):
                array = np.full([size], zero, kind.as_numpy_dtype)
                log.value(f"{kind.name} [{size}]", session.run(y, {c: array}))


@case
def conditions_nest(address, log):
    x = tf1.placeholder(tf.int32, [])
    y = tf.cond(x > 0,
                lambda: tf.cond(x > 10, lambda: x * 100, lambda: x * 10),
                lambda: tf.cond(x < -10, lambda: x * -100, lambda: x * -10))
    with tf1.Session(address) as session:
        for value in (20, 5, -5, -20):
            log.value(str(value), session.run(y, {x: value}))


@case
def a_case(address, log):
    i = tf1.placeholder(tf.int32, [])
    x = tf.constant([1.0, 2.0])
    y = tf.switch_case(i, [lambda: x, lambda: x + 1, lambda: x * 5, lambda: tf.reduce_sum(x) + x])
    with tf1.Session(address) as session:
        for value in (0, 1, 2, 3, 4, -1, 100):
            log.value(str(value), session.run(y, {i: value}))


@case
def a_case_of_one(address, log):
    i = tf1.placeholder(tf.int32, [])
    y = tf.switch_case(i, [lambda: tf.constant(5)])
    with tf1.Session(address) as session:
        log.value("0", session.run(y, {i: 0}))
        log.value("7", session.run(y, {i: 7}))


@case
def a_loop(address, log):
    n = tf1.placeholder(tf.int32, [])
    x = tf1.placeholder(tf.float32, [None])
    loop = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a * 2 + x), [0, x])
    kinds = [count(tf1.get_default_graph(), op) for op in ("While", "StatelessWhile")]
    log.same("is functional", sum(kinds))
    with tf1.Session(address) as session:
        for limit in (0, 1, 10):
            log.value(str(limit), session.run(loop, {n: limit, x: [1, 2]}))


@case
def a_loop_changes_shapes(address, log):
    n = tf1.placeholder(tf.int32, [])
    loop = tf.while_loop(
        lambda i, a: i < n, lambda i, a: (i + 1, tf.concat([a, [i]], 0)), [0, tf.zeros([0], tf.int32)],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])])
    with tf1.Session(address) as session:
        for limit in (0, 1, 10):
            log.value(str(limit), session.run(loop, {n: limit}))


@case
def loops_of_functions_nest(address, log):
    n = tf1.placeholder(tf.int32, [])

    def row(i, total):
        inner = tf.while_loop(lambda j, t: j < i, lambda j, t: (j + 1, t + i * j), [0, total])
        return i + 1, inner[1]

    result = tf.while_loop(lambda i, t: i < n, row, [0, 0])
    with tf1.Session(address) as session:
        log.value("nested", session.run(result, {n: 6}))
        log.value("none", session.run(result, {n: 0}))


@case
def conditions_in_loops(address, log):
    n = tf1.placeholder(tf.int32, [])

    def body(i, even, odd):
        even, odd = tf.cond(tf.equal(i % 2, 0), lambda: (even + i, odd), lambda: (even, odd + i))
        return i + 1, even, odd

    result = tf.while_loop(lambda i, *_: i < n, body, [0, 0, 0])
    with tf1.Session(address) as session:
        for limit in (0, 1, 9):
            log.value(str(limit), session.run(result, {n: limit}))


@case
def loops_in_conditions(address, log):
    p = tf1.placeholder(tf.bool, [])
    n = tf1.placeholder(tf.int32, [])
    y = tf.cond(p, lambda: tf.while_loop(lambda i: i < n, lambda i: i + 1, [0]), lambda: [n * -1])
    with tf1.Session(address) as session:
        for taken in (True, False, True):
            log.value(str(taken), session.run(y, {p: taken, n: 5}))


@case
def a_loop_of_a_condition_that_is_a_number(address, log):
    @tf.function
    def cond(i):
        return i

    @tf.function
    def body(i):
        return i - 1

    i = tf.constant(4)
    y = tf.raw_ops.While(input=[i], cond=cond.get_concrete_function(i), body=body.get_concrete_function(i))
    with tf1.Session(address) as session:
        log.value("ends at 0", session.run(y))


@case
def a_map(address, log):
    x = tf1.placeholder(tf.float32, [None, 2])
    y = tf.map_fn(lambda row: tf.reduce_sum(row) * row, x)
    with tf1.Session(address) as session:
        log.value("rows", session.run(y, {x: np.arange(8, dtype=np.float32).reshape(4, 2)}))


@case
def variables_in_functions(address, log):
    v = tf1.get_variable("v", initializer=np.float32([1, 2]), use_resource=True)

    @tf.function
    def step(x):
        v.assign_add(x)
        return v.read_value() * 2

    x = tf1.placeholder(tf.float32, [2])
    y = step(x)
    with tf1.Session(address) as session:
        session.run(v.initializer)
        log.value("first", session.run(y, {x: [1, 1]}))
        log.value("second", session.run(y, {x: [1, 1]}))
        log.value("kept", session.run(v))


@case
def effects_come_before_results(address, log):
    v = tf1.get_variable("v", initializer=np.int32(0), use_resource=True)

    @tf.function
    def f(x):
        v.assign_add(1)
        return x + 1

    y = f(tf.constant(1))
    with tf1.Session(address) as session:
        session.run(v.initializer)
        for _ in range(3):
            log.value("result", session.run(y))
        log.value("called three times", session.run(v))


@case
def a_target_runs_a_function(address, log):
    v = tf1.get_variable("v", initializer=np.int32(0), use_resource=True)

    @tf.function
    def f():
        v.assign_add(1)

    f()
    operations = tf1.get_default_graph().get_operations()
    call = next(op for op in reversed(operations) if op.type == "StatefulPartitionedCall")
    with tf1.Session(address) as session:
        session.run(v.initializer)
        session.run(call)
        session.run(call)
        log.value("ran twice", session.run(v))


@case
def control_edges_of_calls(address, log):
    v = tf1.get_variable("v", initializer=np.int32(1), use_resource=True)

    @tf.function
    def double():
        v.assign(v.read_value() * 2)

    @tf.function
    def read():
        return v.read_value()

    double()
    operations = tf1.get_default_graph().get_operations()
    double_op = next(op for op in reversed(operations) if op.type == "StatefulPartitionedCall")
    with tf1.control_dependencies([double_op]):
        after = read()
    with tf1.Session(address) as session:
        session.run(v.initializer)
        log.value("read after", session.run(after))
        log.value("again", session.run(after))


@case
def effects_of_a_branch(address, log):
    v = tf1.get_variable("v", initializer=np.int32(0), use_resource=True)
    p = tf1.placeholder(tf.bool, [])

    def add():
        with tf.control_dependencies([v.assign_add(1)]):
            return tf.constant(1)

    def sub():
        with tf.control_dependencies([v.assign_sub(10)]):
            return tf.constant(2)

    y = tf.cond(p, add, sub)
    with tf1.Session(address) as session:
        session.run(v.initializer)
        for value in (True, True, False):
            log.value(str(value), session.run(y, {p: value}))
            log.value("variable", session.run(v))


@case
def effects_of_a_loop(address, log):
    v = tf1.get_variable("v", initializer=np.int32(0), use_resource=True)
    n = tf1.placeholder(tf.int32, [])

    def body(i):
        with tf.control_dependencies([v.assign_add(i)]):
            return i + 1

    y = tf.while_loop(lambda i: i < n, body, [0])
    with tf1.Session(address) as session:
        session.run(v.initializer)
        log.value("count", session.run(y, {n: 5}))
        log.value("sum", session.run(v))


@case
def a_loop_reads_a_variable(address, log):
    v = tf1.get_variable("v", initializer=np.float32(3), use_resource=True)
    y = tf.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, a + v.read_value()), [0, 0.0])
    with tf1.Session(address) as session:
        session.run(v.initializer)
        log.value("sum", session.run(y))


@case
def an_unknown_function(address, log):
    @defun.Defun(tf.float32)
    def f(x):
        return x + 1

    x = tf1.placeholder(tf.float32, [])
    y = f(f(x))
    graph = tf1.get_default_graph().as_graph_def()
    del graph.library.function[:]
    with log.refused("import"):
        with tf.Graph().as_default():
            again = tf1.import_graph_def(graph, return_elements=[x.name, y.name], name="")
            with tf1.Session(address) as session:
                session.run(again[1], {again[0]: 3})


@case
def an_error_in_a_function(address, log):
    @tf.function
    def f(x):
        return tf.debugging.check_numerics(x, "here")

    x = tf1.placeholder(tf.float32, [])
    y = f(x)
    with tf1.Session(address) as session:
        with log.refused("not a number"):
            session.run(y, {x: float("nan")})
        log.value("a number", session.run(y, {x: 1}))


@case
def strings_and_handles_go_through_functions(address, log):
    @tf.function
    def f(text):
        return tf.strings.join([text, "!"])

    p = tf1.placeholder(tf.bool, [])
    text = tf1.placeholder(tf.string, [])
    y = tf.cond(p, lambda: f(text), lambda: tf.constant("none"))
    with tf1.Session(address) as session:
        log.value("taken", session.run(y, {p: True, text: "a"}))
        log.value("not taken", session.run(y, {p: False, text: "a"}))


@case
def a_function_on_a_device(address, log):
    @tf.function
    def f(x):
        return x + 1

    x = tf.constant([1.0])
    y, = tf.raw_ops.RemoteCall(target=tf.constant("/job:localhost/replica:0/task:0/device:CPU:0"), args=[x],
                               Tout=[tf.float32], f=f.get_concrete_function(x))
    with tf1.Session(address) as session:
        log.value("result", session.run(y))


@case
def callables_of_functions(address, log):
    @tf.function
    def f(x):
        return tf.cond(x > 0, lambda: x, lambda: -x)

    x = tf1.placeholder(tf.float32, [])
    y = f(x)
    with tf1.Session(address) as session:
        call = session.make_callable(y, [x])
        log.value("positive", call(2.0))
        log.value("negative", call(-3.0))


@case
def partial_runs_of_functions(address, log):
    @tf.function
    def f(x):
        return x * 2

    a, b = tf1.placeholder(tf.float32, []), tf1.placeholder(tf.float32, [])
    first = f(a)
    second = f(first + b)
    with tf1.Session(address) as session:
        handle = session.partial_run_setup([first, second], [a, b])
        log.value("first", session.partial_run(handle, first, {a: 1}))
        log.value("second", session.partial_run(handle, second, {b: 2}))
