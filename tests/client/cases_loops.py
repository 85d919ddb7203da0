"""Stacks of a step, and the loops of control flow v1 that use stacks and arrays: values, gradients, mapped functions."""

import numpy as np
import tensorflow as tf

from harness import case

tf1 = tf.compat.v1
tf1.disable_control_flow_v2()
raw = tf.raw_ops


class Stack:
    """A stack whose ops run one after the other. TensorFlow's server drops a push that no pop can follow."""

    def __init__(self, limit=-1, dtype=tf.float32):
        self.handle, self.done = raw.StackV2(max_size=limit, elem_type=dtype), []

    def run(self, op, **arguments):
        with tf.control_dependencies(self.done):
            result = op(handle=self.handle, **arguments)
        self.done = [result]
        return result

    def push(self, value):
        return self.run(raw.StackPushV2, elem=value)

    def pop(self, dtype=tf.float32):
        return self.run(raw.StackPopV2, elem_type=dtype)

    def close(self):
        return self.run(raw.StackCloseV2)


@case
def a_stack_is_pushed_and_popped(address, log):
    stack = Stack()
    pushed = [stack.push([1., 2]), stack.push(3.)]
    popped = [stack.pop(), stack.pop()]
    none = stack.pop()
    with tf1.Session(address) as session:
        log.value("all", session.run(pushed + popped))
        with log.refused("empty"):
            session.run(none)


@case
def a_stack_of_another_type(address, log):
    stack = Stack()
    stack.push(1)
    with tf1.Session(address) as session, log.refused("pushed"):
        session.run(stack.pop(tf.int32))


@case
def a_stack_that_is_full(address, log):
    limit = tf1.placeholder(tf.int32, [])
    stack = Stack(limit)
    stack.push(1.)
    stack.push(2.)
    last = stack.pop()
    with tf1.Session(address) as session:
        for count in (0, 1, 2, -1):
            with log.refused(str(count)):
                log.value(f"last of {count}", session.run(last, {limit: count}))


@case
def a_closed_stack(address, log):
    for name in ("pop", "push", "close"):
        stack = Stack()
        stack.push(1.)
        stack.close()
        if name == "push":
            stack.push(2.)
        last = stack.close() if name == "close" else stack.pop()
        with tf1.Session(address) as session, log.refused(name):
            session.run(last)


@case
def stacks_of_two_steps(address, log):
    stack = Stack()
    last = [stack.push(1.), stack.pop()]
    none = stack.pop()
    with tf1.Session(address) as session:
        for _ in range(2):
            log.value("last", session.run(last))
        with log.refused("empty"):
            session.run(none)


@case
def stacks_of_several_types(address, log):
    for value in (np.int64([[1, 2]]), True, np.complex64(1 + 2j), np.array([b"a", b"bc"], object),
                  np.float16(0.5)):
        value = tf.constant(value)
        stack = Stack(10, value.dtype)
        stack.push(value)
        with tf1.Session(address) as session:
            log.value(value.dtype.name, session.run(stack.pop(value.dtype)))


@case
def a_loop_with_an_array(address, log):
    n = tf1.placeholder(tf.int32, [])
    result = tf1.while_loop(
        lambda i, ta: i < n,
        lambda i, ta: (i + 1, ta.write(i, tf.cast(i * i, tf.float32))),
        [0, tf.TensorArray(tf.float32, n, element_shape=[])])[1]
    with tf1.Session(address) as session:
        for count in (0, 1, 40):
            log.value(str(count), session.run(result.stack(), {n: count}))


@case
def a_loop_with_an_array_that_grows(address, log):
    def body(i, ta):
        return i + 1, ta.write(i, tf.fill([i + 1], i))

    count, result = tf1.while_loop(lambda i, ta: i < 7, body,
                                   [0, tf.TensorArray(tf.int32, 0, True, infer_shape=False)])
    with tf1.Session(address) as session:
        log.value("concat", session.run([count, result.concat()]))


@case
def the_gradient_of_a_loop_with_arrays(address, log):
    x, w = tf1.placeholder(tf.float32, [None, 3]), tf1.placeholder(tf.float32, [3, 3])
    n = tf.shape(x)[0]
    inputs = tf.TensorArray(tf.float32, n).unstack(x)

    def body(i, state, outputs):
        state = tf.tanh(tf.linalg.matvec(w, state) + inputs.read(i))
        return i + 1, state, outputs.write(i, state)

    _, last, outputs = tf1.while_loop(lambda i, *_: i < n, body,
                                      [0, tf.zeros([3]), tf.TensorArray(tf.float32, n)])
    loss = tf.reduce_sum(outputs.stack() * tf.reshape(tf.range(3.), [1, 3])) + tf.reduce_sum(last)
    with tf1.Session(address) as session:
        random = np.random.RandomState(3)
        feed = {x: random.randn(6, 3), w: random.randn(3, 3) * 0.5}
        log.value("loss", session.run(loss, feed))
        log.value("gradients", session.run(tf1.gradients(loss, [x, w]), feed))


@case
def the_gradients_of_the_ops_of_arrays(address, log):
    x = tf1.placeholder(tf.float32, [4, 2])

    def new(**options):
        return tf.TensorArray(tf.float32, 4, clear_after_read=False, **options)

    feed = {x: np.arange(8, dtype=np.float32).reshape([4, 2])}
    with tf1.Session(address) as session:
        unstacked = new().unstack(x)
        for name, y in (("stack", unstacked.stack()), ("gather", unstacked.gather([2, 0])),
                        ("read", unstacked.read(1)),
                        ("twice", unstacked.read(1) + unstacked.read(1) * unstacked.read(2)),
                        ("write", new(element_shape=[2]).write(0, x[1]).write(1, x[2] * x[1]).read(1)),
                        ("scatter", new().scatter([3, 1, 0, 2], x * x).gather([0, 3])),
                        ("concat", tf.TensorArray(tf.float32, 2, infer_shape=False)
                            .split(x, [1, 3]).concat() * 3)):
            log.value(name, session.run([y, tf1.gradients(y * y, x)], feed))


@case
def a_gradient_in_nested_loops(address, log):
    x = tf1.placeholder(tf.float32, [])

    def outer(i, y):
        _, y = tf1.while_loop(lambda j, y: j < i, lambda j, y: (j + 1, y * x + tf.sin(y)), [0, y])
        return i + 1, y * 1.5

    _, y = tf1.while_loop(lambda i, y: i < 4, outer, [0, x])
    with tf1.Session(address) as session:
        log.value("value", session.run([y, tf1.gradients(y, x)[0]], {x: 0.7}))


@case
def a_gradient_through_a_condition_in_a_loop(address, log):
    x = tf1.placeholder(tf.float32, [2])

    def body(i, y):
        return i + 1, tf1.cond(tf.equal(i % 2, 0), lambda: y * x, lambda: y + x * x)

    _, y = tf1.while_loop(lambda i, y: i < 5, body, [0, x])
    with tf1.Session(address) as session:
        log.value("value", session.run([y, tf1.gradients(y, x)[0]], {x: [0.7, -1.2]}))


@case
def a_gradient_of_a_loop_of_known_length(address, log):
    x = tf1.placeholder(tf.float32, [])
    _, y = tf1.while_loop(lambda i, y: i < 6, lambda i, y: [i + 1, tf.sin(y) * x], [0, x],
                          maximum_iterations=10, swap_memory=True, parallel_iterations=3)
    with tf1.Session(address) as session:
        log.value("value", session.run([y, tf1.gradients(y, x)[0]], {x: 1.3}))


@case
def a_second_gradient_of_arrays(address, log):
    x = tf1.placeholder(tf.float32, [3])
    y = tf.TensorArray(tf.float32, 3).unstack(x).stack()
    first = tf1.gradients(y * y * y, x)[0]
    with tf1.Session(address) as session:
        log.value("first", session.run(first, {x: [1., 2, 3]}))
        with log.refused("second"):
            log.value("value", session.run(tf1.gradients(first, x)[0], {x: [1., 2, 3]}))


@case
def elements_are_mapped(address, log):
    x = tf1.placeholder(tf.float32, [None, 2])
    y = tf.map_fn(lambda row: row * tf.reduce_sum(row), x)
    both = tf.map_fn(lambda row: (row[0] + 1, tf.cast(row[1], tf.int32)), x,
                     fn_output_signature=(tf.float32, tf.int32))
    with tf1.Session(address) as session:
        feed = {x: [[1, 2], [3, 4], [5, 6]]}
        log.value("map", session.run([y, both], feed))
        log.value("gradient", session.run(tf1.gradients(y, x), feed))


@case
def elements_are_scanned(address, log):
    x = tf1.placeholder(tf.float32, [None])
    sums = tf.scan(lambda total, value: total + value, x)
    product = tf.scan(lambda total, value: total * value, x, tf.constant(2.), reverse=True)
    last = tf.foldl(lambda total, value: total * 0.5 + value, x)
    with tf1.Session(address) as session:
        feed = {x: [1, 2, 3, 4.5]}
        log.value("scans", session.run([sums, product, last], feed))
        log.value("gradient", session.run(tf1.gradients([sums, product, last], x), feed))


@case
def a_recurrent_network_trains(address, log):
    random = np.random.RandomState(7)
    x = tf1.placeholder(tf.float32, [3, None, 2])
    lengths = tf1.placeholder(tf.int32, [3])
    w = tf1.get_variable("w", initializer=random.randn(6, 4).astype(np.float32) * 0.3,
                         use_resource=True)
    time = tf.shape(x)[1]
    inputs = tf.TensorArray(tf.float32, time).unstack(tf.transpose(x, [1, 0, 2]))

    def step(t, state, outputs):
        new = tf.tanh(tf.matmul(tf.concat([inputs.read(t), state], 1), w))
        new = tf1.where(t < lengths, new, state)
        return t + 1, new, outputs.write(t, new)

    _, state, outputs = tf1.while_loop(
        lambda t, *_: t < time, step, [0, tf.zeros([3, 4]), tf.TensorArray(tf.float32, time)])
    loss = tf.reduce_mean(tf.square(outputs.stack())) + tf.reduce_sum(state)
    train = tf1.assign_sub(w, 0.1 * tf1.gradients(loss, w)[0]).op
    with tf1.Session(address) as session:
        session.run(w.initializer)
        losses = []
        for count in (4, 7, 4, 5):
            feed = {x: random.randn(3, count, 2), lengths: [count, 2, 3]}
            losses.append(session.run([loss, train], feed)[0])
        log.value("losses", np.array(losses))
        log.value("weights", session.run(w))


@case
def an_error_in_a_loop_ends_the_step(address, log):
    n = tf1.placeholder(tf.int32, [])
    result = tf1.while_loop(
        lambda i, ta: i < n, lambda i, ta: (i + 1, ta.write(i, tf.cast(i, tf.float32))),
        [0, tf.TensorArray(tf.float32, 3, element_shape=[])])[1].stack()
    with tf1.Session(address) as session:
        with log.refused("beyond the array"):
            session.run(result, {n: 5})
        log.value("the next step", session.run(result, {n: 3}))


@case
def dynamic_rnn(address, log):
    class Cell:
        """A cell as the RNNs of TensorFlow 1 take one."""
        state_size = output_size = 3
        trainable_weights = []

        def zero_state(self, batch_size, dtype):
            return tf.zeros([batch_size, 3], dtype)

        def __call__(self, inputs, state, scope=None):
            state = tf.tanh(tf.matmul(inputs, weights) + state * 0.5)
            return state * 2, state

    random = np.random.RandomState(5)
    x, lengths = tf1.placeholder(tf.float32, [2, None, 4]), tf1.placeholder(tf.int32, [2])
    weights = tf.constant(random.randn(4, 3).astype(np.float32))
    outputs, state = tf1.nn.dynamic_rnn(Cell(), x, lengths, dtype=tf.float32)
    with tf1.Session(address) as session:
        feed = {x: random.randn(2, 5, 4), lengths: [5, 3]}
        log.value("outputs", session.run([outputs, state], feed))
        log.value("gradient", session.run(tf1.gradients([outputs, state], x), feed))


@case
def a_loop_over_a_counter(address, log):
    @tf.function(input_signature=[tf.TensorSpec([], tf.int32), tf.TensorSpec([None], tf.float32)])
    def body(i, x):
        return x * 2 + tf.cast(i, tf.float32)

    definition = body.get_concrete_function()
    definition.add_to_graph()
    start, limit, delta = (tf1.placeholder(tf.int32, []) for _ in range(3))
    loop = tf.raw_ops.For(start=start, limit=limit, delta=delta, input=[np.float32([1, 2])],
                          body=definition)
    with tf1.Session(address) as session:
        for values in ((0, 4, 1), (5, 0, -2), (3, 3, 1), (0, 5, 7)):
            feeds = dict(zip((start, limit, delta), values))
            log.value(str(values), session.run(loop, feeds))
        for values in ((0, 5, -1), (0, 5, 0), (5, 0, 1)):
            feeds = dict(zip((start, limit, delta), values))
            with log.refused(str(values)):
                session.run(loop, feeds)
