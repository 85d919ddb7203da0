"""Training scripts as they were written for TensorFlow 1: optimisers and savers, queues of examples, recurrent networks."""

import os
import tempfile

import tensorflow as tf

from harness import case, limit
from scripts import ROWS, batch_of, ends, numbers, perceptron, stored, table

tf1 = tf.compat.v1
tf1.disable_control_flow_v2()

OPTIMISERS = {
    "descent": lambda step: tf1.train.GradientDescentOptimizer(tf1.train.exponential_decay(0.3, step, 4, 0.7)),
    "momentum": lambda _: tf1.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adagrad": lambda _: tf1.train.AdagradOptimizer(0.2),
    "adadelta": lambda _: tf1.train.AdadeltaOptimizer(1.0, epsilon=1e-3),
    "rmsprop": lambda _: tf1.train.RMSPropOptimizer(0.02, momentum=0.5, centered=True),
    "adam": lambda _: tf1.train.AdamOptimizer(0.05),
    "ftrl": lambda _: tf1.train.FtrlOptimizer(0.2, l1_regularization_strength=0.01),
    "proximal": lambda _: tf1.train.ProximalGradientDescentOptimizer(0.2, l2_regularization_strength=0.01),
}


def trained_and_saved(address, log, name, make, **options):
    """Trains, saves, restores into a new session, and goes on from there."""
    step = tf1.train.get_or_create_global_step()
    loss = perceptron(*batch_of(step), **options)
    train = make(step).minimize(loss, global_step=step)
    saver = tf1.train.Saver(max_to_keep=2)
    init = tf1.global_variables_initializer()
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, "model")
        with tf1.Session(address) as session:
            session.run(init)
            for _ in range(4):
                log.value(f"{name} losses", [session.run([loss, train])[0] for _ in range(3)])
                saver.save(session, prefix, global_step=step)
        log.same(f"{name} files", ends(folder))
        latest = tf1.train.latest_checkpoint(folder)
        log.same(f"{name} latest", os.path.basename(latest))
        log.value(f"{name} stored", stored(latest))
        with tf1.Session(address) as session:
            session.run(init)
            saver.restore(session, saver.last_checkpoints[0])
            log.same(f"{name} step", int(session.run(step)))
            log.value(f"{name} losses again", [session.run([loss, train])[0] for _ in range(6)])


def every_optimiser(address, log, **options):
    scope = tf1.get_variable_scope().name
    for name, make in OPTIMISERS.items():
        with tf.Graph().as_default(), tf1.variable_scope(f"{scope}/{name}"):
            trained_and_saved(address, log, name, make, **options)


@limit(180)
@case
def a_perceptron_by_every_optimiser(address, log):
    every_optimiser(address, log, use_resource=False)


@limit(180)
@case
def a_perceptron_of_resources_by_every_optimiser(address, log):
    every_optimiser(address, log, use_resource=True)


def written_examples(folder, files):
    """Files of records, with the rows of the table in turns."""
    features, classes = table()
    paths = [os.path.join(folder, f"examples-{at}.tfrecord") for at in range(files)]
    for at, path in enumerate(paths):
        with tf.io.TFRecordWriter(path) as writer:
            for row in range(at, ROWS, files):
                example = tf.train.Example()
                example.features.feature["x"].float_list.value.extend(features[row])
                example.features.feature["class"].int64_list.value.append(int(classes[row]))
                example.features.feature["row"].int64_list.value.append(row)
                writer.write(example.SerializeToString())
    return paths


def read_example(paths, epochs):
    """The next example of files, which come one after the other, and then again."""
    names = tf1.train.string_input_producer(paths, num_epochs=epochs, shuffle=False)
    _, record = tf1.TFRecordReader().read(names)
    return tf1.parse_single_example(record, {
        "x": tf1.FixedLenFeature([4], tf.float32), "class": tf1.FixedLenFeature([], tf.int64),
        "row": tf1.FixedLenFeature([], tf.int64)})


def until_the_input_ends(session, use):
    """Runs the queues' threads and calls `use` until there are no more examples."""
    coordinator = tf1.train.Coordinator()
    threads = tf1.train.start_queue_runners(session, coordinator)
    try:
        while not coordinator.should_stop():
            use()
    except tf.errors.OutOfRangeError:
        pass
    finally:
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=20)


@limit(120)
@case
def a_pipeline_of_queues(address, log):
    with tempfile.TemporaryDirectory() as folder:
        example = read_example(written_examples(folder, 3), 3)
        features, classes, rows = tf1.train.batch(
            [example["x"], example["class"], example["row"]], 10, capacity=30, allow_smaller_final_batch=True)
        loss = perceptron(features, classes)
        train = tf1.train.AdamOptimizer(0.05).minimize(loss)
        init = [tf1.global_variables_initializer(), tf1.local_variables_initializer()]
        losses, seen = [], []
        with tf1.Session(address) as session:
            session.run(init)

            def use():
                one, of, _ = session.run([loss, rows, train])
                losses.append(one)
                seen.append(of.tolist())
            until_the_input_ends(session, use)
            log.value("weights", session.run(tf1.trainable_variables()))
        log.value("losses", losses)
        log.same("rows", seen)


@limit(120)
@case
def a_pipeline_of_shuffled_queues(address, log):
    with tempfile.TemporaryDirectory() as folder:
        example = read_example(written_examples(folder, 4), 2)
        rows, features = tf1.train.shuffle_batch(
            [example["row"], example["x"]], 8, capacity=40, min_after_dequeue=20, num_threads=2)
        init = [tf1.global_variables_initializer(), tf1.local_variables_initializer()]
        seen, right, known = [], [], table()[0]
        with tf1.Session(address) as session:
            session.run(init)

            def use():
                of, points = session.run([rows, features])
                seen.extend(of.tolist())
                right.append(bool((points == known[of]).all()))
            until_the_input_ends(session, use)
        # The order is the server's own; all rows come twice.
        log.same("rows", sorted(seen))
        log.same("right", all(right))
        log.same("shuffled", seen != sorted(seen))


class Cell:
    """An LSTM cell with peepholes and a forget bias, over variables."""

    def __init__(self, units, features):
        self.units, self.state_size, self.output_size = units, (units, units), units
        self.kernel = tf1.get_variable("kernel", initializer=0.4 * numbers(5, features + units, 4 * units))
        self.bias = tf1.get_variable("bias", [4 * units], initializer=tf1.zeros_initializer())
        self.peephole = tf1.get_variable("peephole", initializer=0.1 * numbers(6, units))
        self.trainable_weights = [self.kernel, self.bias, self.peephole]

    def zero_state(self, batch_size, dtype):
        return tuple(tf.zeros([batch_size, self.units], dtype) for _ in range(2))

    def __call__(self, inputs, state, scope=None):
        carry, memory = state
        i, j, f, o = tf.split(tf1.nn.xw_plus_b(tf.concat([inputs, memory], 1), self.kernel, self.bias), 4, 1)
        carry = carry * tf.sigmoid(f + 1. + self.peephole * carry) + tf.sigmoid(i) * tf.tanh(j)
        memory = tf.sigmoid(o + self.peephole * carry) * tf.tanh(carry)
        return memory, (carry, memory)


@limit(120)
@case
def a_recurrent_network_is_trained(address, log):
    """Sums of sequences of different lengths, by `dynamic_rnn` and clipped gradients."""
    step = tf1.train.get_or_create_global_step()
    x, lengths = tf1.placeholder(tf.float32, [None, None, 2]), tf1.placeholder(tf.int32, [None])
    outputs, state = tf1.nn.dynamic_rnn(Cell(6, 2), x, lengths, dtype=tf.float32)
    read = tf1.get_variable("read", initializer=0.3 * numbers(7, 6, 1))
    mask = tf.sequence_mask(lengths, tf.shape(x)[1], tf.float32)[:, :, None]
    loss = tf.reduce_mean(tf.square(tf.matmul(state[1], read) - tf.reduce_sum(x * mask, [1, 2], keepdims=False)[:, None]))
    loss += 0.01 * tf.reduce_mean(tf.square(outputs))
    weights = tf1.trainable_variables()
    gradients, norm = tf.clip_by_global_norm(tf1.gradients(loss, weights), 1.0)
    train = tf1.train.AdamOptimizer(0.02).apply_gradients(zip(gradients, weights), global_step=step)
    saver = tf1.train.Saver()
    with tempfile.TemporaryDirectory() as folder, tf1.Session(address) as session:
        session.run(tf1.global_variables_initializer())
        for at in range(12):
            time = 3 + at % 4
            feed = {x: 0.3 * numbers(10 + at, 5, time, 2), lengths: [time, 1, 2, time - 1, time]}
            log.value(f"step {at}", session.run([loss, norm, train], feed)[:2])
            if at == 5:
                path = saver.save(session, os.path.join(folder, "rnn"), global_step=step)
        log.value("weights", session.run(weights))
        log.value("stored", stored(path))
        saver.restore(session, path)
        log.value("restored", session.run(loss, {x: numbers(30, 2, 4, 2), lengths: [4, 2]}))
