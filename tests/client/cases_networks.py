"""Whole graphs as Keras and `tf.function` write them: recurrent layers by `While` and lists of tensors, conditionals,
maps, scans, searches."""

import numpy as np
import tensorflow as tf

from harness import case
from networks import Words, given, layer, normal, stateless

tf1 = tf.compat.v1
tf1.enable_control_flow_v2()


def sequence(*shape):
    """A placeholder for sequences of features."""
    return tf1.placeholder(tf.float32, shape)


@case
def lstm_of_constants(address, log):
    x = sequence(None, None, 3)
    lstm = stateless("LSTM", (2, 5, 3), units=4, return_sequences=True, return_state=True)
    outputs, memory, carry = lstm(x)
    with tf1.Session(address) as session:
        for batch, time in ((2, 5), (1, 1), (3, 8)):
            feed = {x: normal(f"x{batch}", batch, time, 3)}
            log.value(f"{batch} of {time}", session.run([outputs, memory, carry], feed))


@case
def gru_of_constants(address, log):
    x = sequence(2, None, 3)
    gru = stateless("GRU", (2, 5, 3), units=5, return_sequences=True, go_backwards=True)
    last = stateless("GRU", (2, 5, 3), units=5, reset_after=False)
    y = [gru(x), last(x)]
    with tf1.Session(address) as session:
        for time in (5, 1, 7):
            feed = {x: normal(f"x{time}", 2, time, 3)}
            log.value(str(time), session.run(y, feed))


@case
def lstm_of_variables(address, log):
    x = sequence(2, 6, 3)
    lstm = layer("LSTM", units=4, return_sequences=True)
    y = tf.function(lambda x: lstm(x))(x)
    kernel = lstm.cell.kernel.value
    with tf1.Session(address) as session:
        with log.refused("before the initialisers"):
            session.run(y, {x: normal("x", 2, 6, 3)})
        session.run([variable.value.initializer for variable in lstm.trainable_variables])
        log.value("outputs", session.run(y, {x: normal("x", 2, 6, 3)}))
        session.run(tf1.assign(kernel, kernel * 0.5).op)
        log.value("with other weights", session.run(y, {x: normal("x", 2, 6, 3)}))


@case
def gru_of_variables(address, log):
    x, state = sequence(None, 4, 3), sequence(None, 5)
    gru = layer("GRU", units=5, return_sequences=True, return_state=True)
    y = gru(x, initial_state=state)
    with tf1.Session(address) as session:
        session.run([variable.value.initializer for variable in gru.trainable_variables])
        for batch in (2, 3):
            feed = {x: normal("x", batch, 4, 3), state: normal("state", batch, 5)}
            log.value(f"outputs {batch}", session.run(y, feed))


@case
def a_bidirectional_lstm_with_a_mask(address, log):
    x, mask = sequence(3, 6, 2), tf1.placeholder(tf.bool, [3, 6])
    forward = stateless("LSTM", (3, 6, 2), units=3, return_sequences=True)
    backward = stateless("LSTM", (3, 6, 2), units=3, return_sequences=True, go_backwards=True)

    @tf.function
    def both(x, mask):
        turned = tf.reverse(backward(x, mask=mask), [1])
        return tf.concat([forward(x, mask=mask), turned], 2)

    y = both(x, mask)
    with tf1.Session(address) as session:
        lengths = np.array([[6], [3], [1]])
        for name, kept in (("all", np.ones([3, 6], bool)), ("padded", np.arange(6) < lengths),
                           ("gaps", normal("mask", 3, 6) > 0)):
            log.value(name, session.run(y, {x: normal("x", 3, 6, 2), mask: kept}))


@case
def a_recurrent_layer_that_keeps_its_state(address, log):
    x = sequence(2, 3, 2)
    rnn = layer("SimpleRNN", units=4, stateful=True)
    y = tf.function(lambda x: rnn(x))(x)
    variables = rnn.trainable_variables + list(rnn.states)
    with tf1.Session(address) as session:
        session.run([variable.value.initializer for variable in variables])
        for step in range(3):
            log.value(f"step {step}", session.run(y, {x: normal(f"x{step}", 2, 3, 2)}))


@case
def a_classifier_of_words(address, log):
    ids = tf1.placeholder(tf.int32, [None, 7])
    layers = [layer("Embedding", input_dim=11, output_dim=4), layer("LSTM", units=5, return_sequences=True),
              layer("GRU", units=4), layer("Dense", units=3)]

    @tf.function
    def classify(ids):
        value = ids
        for one in layers:
            value = one(value)
        return tf.argmax(value, 1), tf.nn.softmax(value)

    result = classify(ids)
    variables = [variable.value for one in layers for variable in one.trainable_variables]
    with tf1.Session(address) as session:
        session.run([variable.initializer for variable in variables])
        for batch in (1, 4):
            words = np.arange(batch * 7).reshape(batch, 7) ** 2 % 11
            log.value(f"batch {batch}", session.run(result, {ids: words}))


@case
def an_lstm_over_images(address, log):
    x = sequence(1, 3, 5, 5, 2)
    lstm = stateless("ConvLSTM2D", (1, 3, 5, 5, 2), filters=2, kernel_size=3, padding="same",
                     return_sequences=True)
    with tf1.Session(address) as session:
        log.value("outputs", session.run(lstm(x), {x: normal("x", 1, 3, 5, 5, 2)}))


@case
def an_lstm_trains(address, log):
    x, wanted = sequence(3, 5, 2), sequence(3, 4)
    lstm = layer("LSTM", units=4)
    lstm.build((3, 5, 2))
    variables = [variable.value for variable in lstm.trainable_variables]

    @tf.function
    def train(x, wanted):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(lstm(x) - wanted))
        for variable, gradient in zip(variables, tape.gradient(loss, variables)):
            variable.assign_sub(0.5 * gradient)
        return loss

    step = train(x, wanted)
    with tf1.Session(address) as session:
        session.run([variable.initializer for variable in variables])
        feed = {x: normal("x", 3, 5, 2), wanted: normal("wanted", 3, 4)}
        log.value("losses", [session.run(step, feed) for _ in range(4)])
        log.value("weights", session.run([variable.read_value() for variable in variables]))


@case
def the_gradient_of_a_gru(address, log):
    x = sequence(2, None, 3)
    gru = stateless("GRU", (2, 5, 3), units=4, return_sequences=True)
    y = tf.reduce_sum(tf.square(gru(x)))
    gradient = tf1.gradients(y, x)[0]
    with tf1.Session(address) as session:
        for time in (1, 6):
            log.value(str(time), session.run([y, gradient], {x: normal(f"x{time}", 2, time, 3)}))


@case
def conditionals_in_conditionals(address, log):
    x, n = sequence(3), tf1.placeholder(tf.int32, [])
    scale = tf.constant(normal("scale", 3))

    def odd():
        return tf.cond(n > 4, lambda: (x * scale, n * 2), lambda: tf.cond(
            n > 2, lambda: (x + tf.cast(n, tf.float32), n - 1), lambda: (tf.reverse(x, [0]), -n)))

    def even():
        return tf.cond(n < 0, lambda: (tf.zeros([3]), n), lambda: (tf.cumsum(x) / scale, n // 2))

    y = tf.cond(tf.equal(n % 2, 1), odd, even)
    gradient = tf1.gradients(y[0], x)[0]
    with tf1.Session(address) as session:
        for value in (1, 3, 5, -2, 4):
            log.value(str(value), session.run([y, gradient], {x: normal("x", 3), n: value}))


@case
def a_map_in_a_map(address, log):
    x = sequence(None, None, 2)
    weights = tf.constant(normal("weights", 2, 2))

    def inner(pair):
        return tf.linalg.matvec(weights, pair), tf.cast(tf.argmax(pair), tf.int32)

    y = tf.map_fn(lambda row: tf.map_fn(inner, row, fn_output_signature=(tf.float32, tf.int32)),
                  x, fn_output_signature=(tf.float32, tf.int32))
    with tf1.Session(address) as session:
        for rows, columns in ((2, 3), (1, 4)):
            log.value(f"{rows} by {columns}", session.run(y, {x: normal("x", rows, columns, 2)}))


@case
def scans(address, log):
    x = sequence(None, 3)
    weights = tf.constant(normal("weights", 3, 3))
    running = tf.scan(lambda state, row: tf.tanh(tf.linalg.matvec(weights, state) + row), x, tf.zeros([3]))
    pairs = tf.scan(lambda pair, row: (pair[0] + row, tf.maximum(pair[1], row)), x, (tf.zeros([3]), x[0]),
                    reverse=True)
    counts = tf.scan(lambda total, one: (total * 3 + one) % 1009, tf.range(tf.shape(x)[0]))
    gradient = tf1.gradients([running, *pairs], x)[0]
    with tf1.Session(address) as session:
        for rows in (1, 6):
            feed = {x: normal(f"x{rows}", rows, 3)}
            log.value(str(rows), session.run([running, pairs, counts, gradient], feed))


@case
def a_beam_search(address, log):
    first, steps = tf1.placeholder(tf.int32, []), tf1.placeholder(tf.int32, [])
    words = Words(7, 5)
    ids, scores = words.search(first, steps, width=3)
    with tf1.Session(address) as session:
        for word, count in ((1, 6), (4, 1), (2, 9)):
            log.value(f"from {word}", session.run([ids, scores], {first: word, steps: count}))


@case
def a_decoder_with_attention(address, log):
    x, steps = sequence(2, None, 3), tf1.placeholder(tf.int32, [])
    memory = stateless("GRU", (2, 5, 3), units=4, return_sequences=True)(x)
    words = Words(6, 4)

    @tf.function
    def decode(memory, steps):
        written = tf.TensorArray(tf.int32, 0, True, element_shape=[2])
        state, ids = memory[:, -1], tf.zeros([2], tf.int32)
        for step in tf.range(steps):
            weights = tf.nn.softmax(tf.einsum("btd,bd->bt", memory, state))
            state = state + tf.einsum("bt,btd->bd", weights, memory)
            state, logits = words.step(state, ids)
            ids = tf.argmax(logits, 1, tf.int32)
            written = written.write(step, ids)
            if tf.reduce_all(tf.equal(ids, 5)):
                break
        return tf.transpose(written.stack()), state

    with tf1.Session(address) as session:
        decoded = decode(memory, steps)
        for time, count in ((4, 5), (2, 8)):
            log.value(str(time), session.run(decoded, {x: normal(f"x{time}", 2, time, 3), steps: count}))


@case
def loops_with_breaks(address, log):
    n = tf1.placeholder(tf.int32, [])

    @tf.function
    def primes(n):
        found = tf.TensorArray(tf.int32, 0, True, element_shape=[])
        at = 0
        for number in tf.range(2, n):
            prime = True
            for divisor in tf.range(2, number):
                if divisor * divisor > number:
                    break
                if tf.equal(number % divisor, 0):
                    prime = False
                    break
            if not prime:
                continue
            found = found.write(at, number)
            at += 1
        return found.stack(), at

    result = primes(n)
    with tf1.Session(address) as session:
        for limit in (3, 30):
            log.value(str(limit), session.run(result, {n: limit}))


@case
def a_machine_of_branches(address, log):
    code, limit = tf1.placeholder(tf.int32, [None]), tf1.placeholder(tf.int32, [])

    def step(at, a, b):
        branches = [lambda: (at + 1, a + b, b), lambda: (at + 1, a * 2, b + 1), lambda: (at + 1, b, a),
                    lambda: (tf.where(a < limit, 0, at + 1), a + 1, b)]
        return tf.switch_case(code[at], branches)

    result = tf.while_loop(lambda at, *_: at < tf.size(code), step, [0, 1, 2])
    with tf1.Session(address) as session:
        for program in ([0, 1, 2], [1, 2, 0, 3], [3]):
            log.value(str(program), session.run(result, {code: program, limit: 50}))


@case
def a_sequence_that_grows(address, log):
    x, n = sequence(1, 2), tf1.placeholder(tf.int32, [])
    weights = given("weights", 2, 2)
    count, rows = tf.while_loop(
        lambda i, rows: i < n,
        lambda i, rows: (i + 1, tf.concat([rows, tf.tanh(tf.matmul(rows[-1:], weights))], 0)),
        [0, x], [tf.TensorShape([]), tf.TensorShape([None, 2])])
    with tf1.Session(address) as session:
        session.run(weights.initializer)
        for times in (0, 5):
            log.value(str(times), session.run([count, rows], {x: [[0.5, -0.25]], n: times}))
