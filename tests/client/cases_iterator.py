"""Iterators over datasets: how steps share one, its ends and errors, optional elements, training."""

import threading

import numpy as np
import tensorflow as tf

from datasets import as_written, elements, flat, numbers_with_errors, walk
from harness import case
from waiting import Later

tf1 = tf.compat.v1
raw = tf.raw_ops
data = tf.compat.v1.data
Dataset = tf.compat.v1.data.Dataset
errors = tf.errors


@case
def dataset_one_shot(address, log):
    iterator = data.make_one_shot_iterator(Dataset.range(5).map(lambda n: n + 1).batch(2))
    get = iterator.get_next()
    with tf1.Session(address) as session:
        walk(log, session, get)
        walk(log, session, get, name="after the end ")


@case
def dataset_one_shot_that_fails(address, log):
    def factory():
        return Dataset.range(3).batch(tf.constant(0, tf.int64))
    iterator = data.make_one_shot_iterator(factory())
    get = iterator.get_next()
    with tf1.Session(address) as session:
        for at in range(2):
            with log.refused(f"{at}"):
                session.run(get)


@case
def dataset_iterator_that_is_not_initialised(address, log):
    iterator = data.make_initializable_iterator(Dataset.range(3))
    get = iterator.get_next()
    with tf1.Session(address) as session:
        with log.refused("before"):
            session.run(get)
        session.run(iterator.initializer)
        log.value("first", session.run(get))
        session.run(iterator.initializer)
        log.value("first again", session.run(get))
        walk(log, session, get)


@case
def dataset_iterator_of_several_datasets(address, log):
    iterator = data.Iterator.from_structure(tf.int64, [None])
    get = iterator.get_next()
    first = iterator.make_initializer(Dataset.range(4).batch(3))
    second = iterator.make_initializer(Dataset.from_tensors(tf.constant([7, 8], tf.int64)))
    with tf1.Session(address) as session:
        for name, begin in [("first ", first), ("second ", second), ("first again ", first)]:
            session.run(begin)
            walk(log, session, get, name=name)


@case
def dataset_iterator_of_other_elements(address, log):
    iterator = raw.IteratorV2(shared_name="", container="", output_types=[tf.int64], output_shapes=[[2]])
    with tf1.Session(address) as session:
        for name, dataset in [("type", Dataset.from_tensors([1.0, 2.0])), ("number", Dataset.from_tensors(
                (tf.constant(1, tf.int64), tf.constant(1, tf.int64)))), ("shape", Dataset.range(3))]:
            with log.refused(name):
                session.run(raw.MakeIterator(dataset=dataset._variant_tensor, iterator=iterator))
        good = Dataset.from_tensors(tf.constant([1, 2], tf.int64))
        session.run(raw.MakeIterator(dataset=good._variant_tensor, iterator=iterator))
        with log.refused("other types are asked for"):
            session.run(raw.IteratorGetNext(iterator=iterator, output_types=[tf.int32], output_shapes=[[2]]))
        with log.refused("other shapes are asked for"):
            session.run(raw.IteratorGetNext(iterator=iterator, output_types=[tf.int64], output_shapes=[[3]]))


@case
def dataset_iterator_that_sessions_share(address, log):
    with tf.Graph().as_default():
        iterator = data.make_initializable_iterator(Dataset.range(6), shared_name="dataset_shared")
        get = iterator.get_next()
        with tf1.Session(address) as first, tf1.Session(address) as second:
            first.run(iterator.initializer)
            log.value("first", first.run(get))
            log.value("second", second.run(get))
            log.value("first again", first.run(get))
    with tf.Graph().as_default():
        other = data.Iterator.from_structure(tf.int64, [], shared_name="dataset_shared")
        get = other.get_next()
        with tf1.Session(address) as third:
            log.value("third", third.run(get))
    with tf.Graph().as_default():
        other = data.Iterator.from_structure(tf.float32, [], shared_name="dataset_shared")
        get = other.get_next()
        with tf1.Session(address) as fourth, log.refused("another type"):
            fourth.run(get)


@case
def dataset_iterator_by_its_text(address, log):
    text = tf1.placeholder(tf.string, [])
    numbers, letters = Dataset.range(3), Dataset.range(10, 14)
    chosen = data.Iterator.from_string_handle(text, tf.int64, [])
    get = chosen.get_next()
    first, second = data.make_initializable_iterator(numbers), data.make_one_shot_iterator(letters)
    with tf1.Session(address) as session:
        texts = [session.run(first.string_handle()), session.run(second.string_handle())]
        with log.refused("not initialised"):
            session.run(get, {text: texts[0]})
        session.run(first.initializer)
        for at in range(4):
            for name, handle in zip(["first", "second"], texts):
                with log.refused(f"{name} {at} refused"):
                    log.value(f"{name} {at}", session.run(get, {text: handle}))
        with log.refused("no handle"):
            session.run(get, {text: b"\xff\xff"})
        wrong = data.Iterator.from_string_handle(text, tf.float32, []).get_next()
        with log.refused("another type"):
            session.run(wrong, {text: texts[0]})


@case
def dataset_iterator_by_the_text_of_a_handle_that_is_gone(address, log):
    text = tf1.placeholder(tf.string, [])
    get = data.Iterator.from_string_handle(text, tf.int64, []).get_next()
    first = data.make_initializable_iterator(Dataset.range(3))
    with tf1.Session(address) as session:
        session.run(first.initializer)
        handle = session.run(first.string_handle())
        log.value("there", session.run(get, {text: handle}))
        with log.refused("another name"):
            session.run(get, {text: handle.replace(b"localhost", b"elsewhere")
                              if b"localhost" in handle else b"\x12\x01x\x1a\x01y"})


@case
def dataset_optional(address, log):
    iterator = data.make_initializable_iterator(Dataset.range(2).map(lambda n: (n, tf.fill([n], 1.5))))
    optional = iterator.get_next_as_optional() if hasattr(iterator, "get_next_as_optional") else \
        data.experimental.get_next_as_optional(iterator)
    has, value = optional.has_value(), optional.get_value()
    with tf1.Session(address) as session:
        session.run(iterator.initializer)
        for at in range(2):
            found = session.run([has, value])
            log.value(f"{at}", flat(found))
        log.value("none", session.run(has))
        with log.refused("the value of none"):
            session.run(value)


@case
def dataset_optional_values(address, log):
    some = raw.OptionalFromValue(components=[tf.constant([1, 2]), tf.constant("x")])
    none = raw.OptionalNone()
    get = lambda optional: raw.OptionalGetValue(
        optional=optional, output_types=[tf.int32, tf.string], output_shapes=[[2], []])
    with tf1.Session(address) as session:
        log.value("some", session.run([raw.OptionalHasValue(optional=some), get(some)]))
        log.value("none", session.run(raw.OptionalHasValue(optional=none)))
        with log.refused("of none"):
            session.run(get(none))
        with log.refused("another type"):
            session.run(raw.OptionalGetValue(optional=some, output_types=[tf.float32, tf.string],
                                             output_shapes=[[2], []]))
        with log.refused("another shape"):
            session.run(raw.OptionalGetValue(optional=some, output_types=[tf.int32, tf.string],
                                             output_shapes=[[3], []]))


@case
def dataset_calls_at_the_same_time(address, log):
    iterator = data.make_initializable_iterator(Dataset.range(60).map(lambda n: n * 2).prefetch(3))
    gets = [iterator.get_next() for _ in range(3)]
    found = []
    with tf1.Session(address) as session:
        session.run(iterator.initializer)

        def work():
            try:
                while True:
                    found.append(int(session.run(gets[0])))
            except errors.OutOfRangeError:
                pass
        threads = [threading.Thread(target=work) for _ in range(3)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        log.same("all", sorted(found))
        session.run(iterator.initializer)
        log.same("in one step", sorted(int(value) for value in session.run(gets)))


@case
def dataset_waits_for_a_queue(address, log):
    queue = raw.FIFOQueueV2(component_types=[tf.int64], shapes=[[]], shared_name="dataset_waits")
    value = tf1.placeholder(tf.int64, [])
    put = raw.QueueEnqueueV2(handle=queue, components=[value])

    def take(n):
        own = raw.FIFOQueueV2(component_types=[tf.int64], shapes=[[]], shared_name="dataset_waits")
        return raw.QueueDequeueV2(handle=own, component_types=[tf.int64])[0] + n
    iterator = data.make_initializable_iterator(Dataset.range(4).map(take))
    get = iterator.get_next()
    with tf1.Session(address) as session:
        session.run(iterator.initializer)
        later = Later(session, get)
        log.same("waits", later.waits())
        session.run(put, {value: 100})
        log.value("element", later.end())
        session.run(put, {value: 200})
        log.value("at once", session.run(get))


@case
def dataset_of_one_element(address, log):
    with tf1.Session(address) as session:
        single = lambda dataset: raw.DatasetToSingleElement(
            dataset=dataset._variant_tensor, output_types=[tf.int64], output_shapes=[[]])
        log.value("one", session.run(single(Dataset.range(4, 5).map(lambda n: n * 3))))
        for name, dataset in [("none", Dataset.range(0)), ("two", Dataset.range(2)), ("error", numbers_with_errors(2).skip(1))]:
            with log.refused(name):
                session.run(single(dataset))


@case
def dataset_with_options(address, log):
    options = tf.data.Options()
    options.deterministic = True
    options.threading.private_threadpool_size = 2
    options.experimental_optimization.apply_default_optimizations = True
    elements(address, log, Dataset.range(5).map(lambda n: n + 1).with_options(options).batch(2), twice=True)


@case
def dataset_with_a_variable(address, log):
    with tf1.variable_scope("", use_resource=True):
        counter = tf1.get_variable("dataset_counter", initializer=tf.constant(5, tf.int64))
    iterator = data.make_initializable_iterator(as_written(Dataset.range(3).map(lambda n: n + counter)))
    get = iterator.get_next()
    with tf1.Session(address) as session:
        session.run([counter.initializer, tf1.tables_initializer()])
        session.run(iterator.initializer)
        log.value("first", session.run(get))
        session.run(counter.assign(100))
        walk(log, session, get)


@case
def dataset_trains_a_model(address, log):
    x = np.linspace(-1, 1, 24).astype(np.float32).reshape(12, 2)
    y = (x @ np.array([[2.0], [-3.0]], np.float32) + 0.5).astype(np.float32)
    dataset = Dataset.from_tensor_slices((x, y)).repeat(4).shuffle(8, seed=4).batch(4).prefetch(2)
    iterator = data.make_initializable_iterator(dataset)
    features, labels = iterator.get_next()
    weights = tf1.get_variable("dataset_w", initializer=tf.zeros([2, 1]), use_resource=True)
    loss = tf.reduce_mean((features @ weights - labels) ** 2)
    gradient = tf.gradients(loss, [weights])[0]
    train = weights.assign_sub(0.3 * gradient)
    with tf1.Session(address) as session:
        session.run([weights.initializer, iterator.initializer])
        steps = 0
        try:
            while True:
                found, _ = session.run([loss, train])
                log.value(f"loss {steps}", found)
                steps += 1
        except errors.OutOfRangeError:
            log.same("steps", steps)
        log.value("weights", session.run(weights))


@case
def dataset_iterator_without_a_name(address, log):
    handle = raw.AnonymousIteratorV2(output_types=[tf.int64], output_shapes=[[]])
    made = raw.MakeIterator(dataset=Dataset.range(5, 8)._variant_tensor, iterator=handle.handle)
    with tf.control_dependencies([made]):
        first = raw.IteratorGetNext(iterator=handle.handle, output_types=[tf.int64], output_shapes=[[]])
    with tf.control_dependencies(first):
        second = raw.IteratorGetNextSync(iterator=handle.handle, output_types=[tf.int64], output_shapes=[[]])
    with tf.control_dependencies(second):
        deleted = raw.DeleteIterator(handle=handle.handle, deleter=handle.deleter)
    with tf1.Session(address) as session:
        for at in range(2):
            log.value(f"{at}", session.run([first, second, deleted])[:2])


@case
def dataset_iterator_in_a_loop(address, log):
    iterator = data.make_initializable_iterator(Dataset.range(1, 100))
    total = tf.while_loop(lambda i, s: i < 10, lambda i, s: (i + 1, s + iterator.get_next()),
                          [tf.constant(0), tf.constant(0, tf.int64)], parallel_iterations=1)[1]
    with tf1.Session(address) as session:
        session.run(iterator.initializer)
        log.value("ten", session.run(total))
        log.value("ten more", session.run(total))


@case
def dataset_in_a_function(address, log):
    @tf.function
    def total(dataset):
        iterator = iter(dataset)
        return next(iterator) + 100 * next(iterator)
    with tf1.Session(address) as session:
        found = total(Dataset.range(10).map(lambda n: n * 2))
        for at in range(2):
            log.value(f"{at}", session.run(found))


@case
def dataset_that_waits_longer_than_its_step(address, log):
    def take(n):
        queue = raw.FIFOQueueV2(component_types=[tf.int64], shapes=[[]], shared_name="dataset_late")
        return raw.QueueDequeueV2(handle=queue, component_types=[tf.int64])[0]
    iterator = data.make_initializable_iterator(Dataset.range(4).map(take).prefetch(1))
    get = iterator.get_next()
    with tf1.Session(address) as session:
        session.run(iterator.initializer)
        with log.refused("late"):
            session.run(get, options=tf1.RunOptions(timeout_in_ms=300))


@case
def dataset_shuffled_as_in_training(address, log):
    dataset = Dataset.range(50).shuffle(16, seed=21).repeat(2).batch(7, drop_remainder=True).map(
        lambda batch: tf.reduce_sum(batch), num_parallel_calls=2).prefetch(1)
    elements(address, log, dataset, twice=True)
