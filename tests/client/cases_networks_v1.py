"""Whole graphs of TensorFlow 1: recurrent networks, maps, scans and searches by `Enter`, `Merge` and `NextIteration`,
with arrays of a step."""

import tensorflow as tf

from harness import case
from networks import Words, given, normal, stateless

tf1 = tf.compat.v1
tf1.disable_control_flow_v2()


class LstmCell:
    """A cell as the RNNs of TensorFlow 1 take one. TensorFlow 2.21 has none: its own came with Keras 2."""

    def __init__(self, units, kernel, bias):
        self.units, self.kernel, self.bias = units, kernel, bias
        self.state_size, self.output_size, self.trainable_weights = (units, units), units, []

    def zero_state(self, batch_size, dtype):
        return tuple(tf.zeros([batch_size, self.units], dtype) for _ in range(2))

    def __call__(self, inputs, state, scope=None):
        carry, memory = state
        gates = tf.matmul(tf.concat([inputs, memory], 1), self.kernel) + self.bias
        i, j, f, o = tf.split(gates, 4, 1)
        carry = carry * tf.sigmoid(f + 1.) + tf.sigmoid(i) * tf.tanh(j)
        memory = tf.sigmoid(o) * tf.tanh(carry)
        return memory, (carry, memory)


def constants(name, features, units):
    """A cell whose weights are constants."""
    kernel = normal(f"{name}.kernel", features + units, 4 * units) * 0.5
    return LstmCell(units, tf.constant(kernel), tf.constant(normal(f"{name}.bias", 4 * units)))


@case
def a_dynamic_rnn_of_constants(address, log):
    x = tf1.placeholder(tf.float32, [None, None, 3])
    outputs, state = tf1.nn.dynamic_rnn(constants("cell", 3, 4), x, dtype=tf.float32)
    gradient = tf1.gradients([outputs, *state], x)[0]
    with tf1.Session(address) as session:
        for batch, time in ((2, 5), (1, 1), (3, 9)):
            feed = {x: normal(f"x{time}", batch, time, 3)}
            log.value(f"{batch} of {time}", session.run([outputs, state, gradient], feed))


@case
def a_dynamic_rnn_of_variables(address, log):
    x, lengths = tf1.placeholder(tf.float32, [3, None, 2]), tf1.placeholder(tf.int32, [3])
    kernel, bias = given("kernel", 6, 16), given("bias", 16)
    outputs, state = tf1.nn.dynamic_rnn(LstmCell(4, kernel, bias), x, lengths, dtype=tf.float32,
                                        time_major=False, swap_memory=True)
    loss = tf.reduce_mean(tf.square(outputs)) + tf.reduce_sum(state[1])
    train = [tf1.assign_sub(variable, 0.2 * gradient).op
             for variable, gradient in zip((kernel, bias), tf1.gradients(loss, [kernel, bias]))]
    with tf1.Session(address) as session:
        session.run(tf1.global_variables_initializer())
        for time in (6, 4):
            feed = {x: normal(f"x{time}", 3, time, 2), lengths: [time, 2, 3]}
            log.value(f"outputs {time}", session.run([outputs, state, loss], feed))
            session.run(train, feed)
        log.value("weights", session.run([kernel, bias]))


@case
def a_dynamic_rnn_of_variables_by_reference(address, log):
    x = tf1.placeholder(tf.float32, [2, 4, 2])
    weights = [tf1.get_variable(name, initializer=normal(name, *shape) * 0.5, use_resource=False)
               for name, shape in (("kernel", (5, 12)), ("bias", (12,)))]
    outputs, state = tf1.nn.dynamic_rnn(LstmCell(3, *weights), x, dtype=tf.float32)
    with tf1.Session(address) as session:
        session.run(tf1.global_variables_initializer())
        log.value("outputs", session.run([outputs, state], {x: normal("x", 2, 4, 2)}))


@case
def a_bidirectional_rnn(address, log):
    x, lengths = tf1.placeholder(tf.float32, [2, 5, 3]), tf1.placeholder(tf.int64, [2])
    with tf1.variable_scope("both"):
        outputs, states = tf1.nn.bidirectional_dynamic_rnn(
            constants("there", 3, 2), constants("back", 3, 4), x, lengths, dtype=tf.float32)
    with tf1.Session(address) as session:
        for some in ([5, 3], [1, 4]):
            log.value(str(some), session.run([outputs, states], {x: normal("x", 2, 5, 3), lengths: some}))


@case
def keras_layers_in_loops_of_frames(address, log):
    x = tf1.placeholder(tf.float32, [2, None, 3])
    lstm = stateless("LSTM", (2, 5, 3), units=4, return_sequences=True)
    gru = stateless("GRU", (2, 5, 4), units=3, return_sequences=True)
    y = gru(lstm(x))
    gradient = tf1.gradients(y, x)[0]
    with tf1.Session(address) as session:
        for time in (5, 1):
            log.value(str(time), session.run([y, gradient], {x: normal(f"x{time}", 2, time, 3)}))


@case
def a_map_in_a_map_of_frames(address, log):
    x = tf1.placeholder(tf.float32, [None, None, 2])
    weights = tf.constant(normal("weights", 2, 2))

    def inner(pair):
        return tf.linalg.matvec(weights, pair), tf.cast(tf.argmax(pair), tf.int32)

    y = tf.map_fn(lambda row: tf.map_fn(inner, row, fn_output_signature=(tf.float32, tf.int32)),
                  x, fn_output_signature=(tf.float32, tf.int32), parallel_iterations=4)
    with tf1.Session(address) as session:
        for rows, columns in ((2, 3), (1, 4)):
            log.value(f"{rows} by {columns}", session.run(y, {x: normal("x", rows, columns, 2)}))


@case
def scans_and_folds(address, log):
    x = tf1.placeholder(tf.float32, [None, 3])
    weights = given("weights", 3, 3)
    running = tf.scan(lambda state, row: tf.tanh(tf.linalg.matvec(weights, state) + row), x, tf.zeros([3]))
    counts = tf.scan(lambda total, one: (total * 3 + one) % 1009, tf.range(tf.shape(x)[0]))
    folded = tf.foldr(lambda state, row: tf.maximum(state, row) * 0.5, x)
    gradients = tf1.gradients([running, folded], [x, weights])
    with tf1.Session(address) as session:
        session.run(weights.initializer)
        for rows in (1, 6):
            feed = {x: normal(f"x{rows}", rows, 3)}
            log.value(str(rows), session.run([running, counts, folded, gradients], feed))


@case
def conditionals_in_loops_in_conditionals(address, log):
    x, n = tf1.placeholder(tf.float32, [3]), tf1.placeholder(tf.int32, [])

    def body(i, y):
        turned = tf.cond(tf.equal(i % 2, 0), lambda: tf.reverse(y, [0]), lambda: y * 1.5)
        return i + 1, tf.cond(tf.reduce_sum(turned) > 4., lambda: turned - 1., lambda: turned + 0.25)

    y = tf.cond(n > 0, lambda: tf1.while_loop(lambda i, y: i < n, body, [0, x])[1], lambda: -x)
    gradient = tf1.gradients(y, x)[0]
    with tf1.Session(address) as session:
        for times in (-1, 1, 7):
            log.value(str(times), session.run([y, gradient], {x: normal("x", 3), n: times}))


@case
def a_beam_search_of_frames(address, log):
    first, steps = tf1.placeholder(tf.int32, []), tf1.placeholder(tf.int32, [])
    ids, scores = Words(7, 5).search(first, steps, width=3)
    with tf1.Session(address) as session:
        for word, count in ((1, 6), (4, 1), (2, 9)):
            log.value(f"from {word}", session.run([ids, scores], {first: word, steps: count}))


@case
def a_network_that_reads_its_own_words(address, log):
    ids, count = tf1.placeholder(tf.int32, [2]), tf1.placeholder(tf.int32, [])
    words = Words(9, 6)

    def step(time, state, last, written, best):
        state, logits = words.step(state, last)
        last = tf.cast(tf.argmax(logits, 1), tf.int32)
        return time + 1, state, last, written.write(time, last), best.write(time, tf.reduce_max(logits, 1))

    arrays = [tf.TensorArray(dtype, count, element_shape=[2]) for dtype in (tf.int32, tf.float32)]
    _, state, _, written, best = tf1.while_loop(
        lambda time, *_: time < count, step, [0, tf.zeros([2, 6]), ids, *arrays])
    rows = [tf.transpose(written.stack()), best.stack(), state]
    with tf1.Session(address) as session:
        for times in (1, 8):
            log.value(str(times), session.run(rows, {ids: [1, 5], count: times}))
