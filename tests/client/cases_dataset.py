"""Datasets and iterators: elements of tensors, numbers and functions, batches, orders, ends and errors."""

import threading

import numpy as np
import tensorflow as tf

from datasets import as_written, fed, flat, of, refused, variant, walk, elements
from harness import case
from waiting import Later

tf1 = tf.compat.v1
raw = tf.raw_ops
data = tf.compat.v1.data
Dataset = tf.compat.v1.data.Dataset
errors = tf.errors


def mixed():
    return Dataset.from_tensor_slices({
        "a": tf.constant([[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]], tf.int32),
        "b": tf.constant(["x", "yy", "", "zzz", "w"]),
        "c": tf.constant([0.5, 1.5, -2.5, 3.5, 4.5], tf.float64)})


# Tensors and numbers.
of("tensors", lambda: Dataset.from_tensors((tf.constant([1, 2]), tf.constant("text"))))
of("slices", mixed, twice=True)
of("slices_of_none", lambda: Dataset.from_tensor_slices(tf.zeros([0, 3])))
of("range", lambda: Dataset.range(3, 17, 4))
of("range_down", lambda: Dataset.range(10, -3, -4))
of("range_of_none", lambda: Dataset.range(5, 5))
for dtype in ["int32", "int16", "uint8", "float32", "float64"]:
    of(f"range_of_{dtype}", lambda dtype=dtype: Dataset.range(250, 260, 3, output_type=tf.as_dtype(dtype)))
refused("range_by_0", lambda: Dataset.range(fed(0), fed(5), fed(0)))
refused("slices_of_several_lengths", lambda: variant(
    lambda output_types, output_shapes, **inputs: raw.TensorSliceDataset(output_shapes=output_shapes, **inputs),
    [tf.int64, tf.int64], [[], []], components=[fed([1, 2]), fed([1, 2, 3])]))

# Batches.
of("batch", lambda: mixed().batch(2), twice=True)
of("batch_without_rest", lambda: mixed().batch(2, drop_remainder=True))
of("batch_of_batches", lambda: Dataset.range(10).batch(2).batch(3))
of("batch_larger_than_all", lambda: Dataset.range(3).batch(100))
of("batch_v1", lambda: variant(raw.BatchDataset, [tf.int64], [[None]], input_dataset=Dataset.range(5)._variant_tensor, batch_size=2))
refused("batch_of_0", lambda: Dataset.range(3).batch(fed(0)))
of("batch_of_several_shapes", lambda: Dataset.range(4).map(lambda n: tf.fill([n // 2], n)).batch(2))
of("batch_of_unequal_shapes", lambda: Dataset.range(6).map(lambda n: tf.fill([n % 3], n)).batch(2))


def rows(dtype=tf.int64):
    return Dataset.range(4).map(lambda n: tf.cast(tf.fill([n % 3 + 1, 2], n + 1), dtype))


of("padded_batch", lambda: rows().padded_batch(3, [None, 2]))
of("padded_batch_to_a_size", lambda: rows(tf.float32).padded_batch(3, [4, 3], padding_values=-1.5))
of("padded_batch_of_strings", lambda: Dataset.range(5).map(
    lambda n: tf.strings.as_string(tf.range(n))).padded_batch(2, [None], padding_values="-", drop_remainder=True))
of("padded_batch_too_small", lambda: rows().padded_batch(2, [2, 2]))
of("padded_batch_of_several", lambda: Dataset.range(5).map(
    lambda n: (tf.range(n), n, tf.fill([n], True))).padded_batch(2, ([6], [], [None])))
of("padded_batch_v1", lambda: variant(
    lambda output_types, **inputs: raw.PaddedBatchDataset(**inputs), [tf.int64], [[None, 3]],
    input_dataset=Dataset.range(5).map(lambda n: tf.range(n % 3))._variant_tensor, batch_size=2,
    padded_shapes=[tf.constant([3], tf.int64)], padding_values=[tf.constant(7, tf.int64)]))

# Some elements, or all of them several times.
for count in [-1, 0, 1, 3]:
    of(f"repeat_{count}".replace("-", "minus_"), lambda count=count: Dataset.range(3).repeat(count), limit=10)
    of(f"take_{count}".replace("-", "minus_"), lambda count=count: Dataset.range(5).take(count))
    of(f"skip_{count}".replace("-", "minus_"), lambda count=count: Dataset.range(5).skip(count))
of("repeat_of_nothing", lambda: Dataset.range(0).repeat())
of("shard", lambda: Dataset.range(10).shard(3, 1))
of("shard_of_few", lambda: Dataset.range(2).shard(3, 2))
of("shards_that_must_not_be_empty", lambda: variant(
    raw.ShardDataset, [tf.int64], [[]], input_dataset=Dataset.range(2)._variant_tensor, num_shards=3, index=1,
    require_non_empty=True), limit=3)
refused("shard_out_of_range", lambda: variant(
    raw.ShardDataset, [tf.int64], [[]], input_dataset=Dataset.range(2)._variant_tensor, num_shards=fed(3), index=fed(3)))

# Several datasets.
of("zip", lambda: Dataset.zip((mixed(), Dataset.range(10, 13))), twice=True)
of("zip_after_errors", lambda: Dataset.zip((numbers_with_errors(6), Dataset.range(6))))
of("concatenate", lambda: Dataset.range(3).concatenate(Dataset.range(7, 9)), twice=True)
of("cache", lambda: Dataset.range(4).map(lambda n: n * n).cache().repeat(3))
of("cache_after_errors", lambda: numbers_with_errors(5).cache().repeat(2))
of("prefetch", lambda: mixed().prefetch(2), twice=True)
of("prefetch_none", lambda: Dataset.range(3).prefetch(0))
of("prefetch_any", lambda: Dataset.range(30).prefetch(-1))
of("prefetch_in_prefetch", lambda: Dataset.range(20).prefetch(3).batch(3).prefetch(1).repeat(2))
of("prefetch_after_errors", lambda: numbers_with_errors(6).prefetch(2))
refused("prefetch_below_0", lambda: Dataset.range(3).prefetch(fed(-2)))


# Orders.
for seed in [1, 7, (1 << 40) + 5]:
    of(f"shuffle_by_{seed}", lambda seed=seed: Dataset.range(20).shuffle(6, seed=seed), twice=True)
of("shuffle_of_all", lambda: Dataset.range(17).shuffle(100, seed=3), twice=True)
of("shuffle_by_1_element", lambda: Dataset.range(5).shuffle(1, seed=3))
of("shuffle_repeats_in_another_order", lambda: Dataset.range(8).shuffle(8, seed=5).repeat(3))
of("shuffle_repeats_in_the_same_order",
   lambda: Dataset.range(8).shuffle(5, seed=5, reshuffle_each_iteration=False).repeat(3), twice=True)
of("shuffle_after_repeat", lambda: Dataset.range(5).repeat(3).shuffle(4, seed=11).batch(4))
of("shuffle_after_errors", lambda: numbers_with_errors(9).shuffle(3, seed=2))
of("shuffle_of_shuffle", lambda: Dataset.range(12).shuffle(4, seed=1).shuffle(3, seed=2).repeat(2), limit=30)
of("shuffle_by_the_graph_s_seed", lambda: shuffled_by_graph())
refused("shuffle_by_0_elements", lambda: Dataset.range(3).shuffle(fed(0), seed=1))


def shuffled_by_graph():
    tf1.set_random_seed(99)
    return Dataset.range(10).shuffle(4)


def shuffle_and_repeat(count, size=5):
    return variant(raw.ShuffleAndRepeatDataset, [tf.int64], [[]], input_dataset=Dataset.range(7)._variant_tensor,
                   buffer_size=size, seed=3, seed2=4, count=count)


of("shuffle_and_repeat", lambda: shuffle_and_repeat(3), twice=True)
of("shuffle_and_repeat_for_ever", lambda: shuffle_and_repeat(-1, size=20), limit=60)
of("shuffle_v3", lambda: variant(
    raw.ShuffleDatasetV3, [tf.int64], [[]], input_dataset=Dataset.range(9)._variant_tensor, buffer_size=4, seed=5,
    seed2=6, seed_generator=raw.DummySeedGenerator()).repeat(2))
of("shuffle_v2", lambda: variant(
    raw.ShuffleDatasetV2, [tf.int64], [[]], input_dataset=Dataset.range(9)._variant_tensor, buffer_size=4,
    seed_generator=raw.AnonymousSeedGenerator(seed=5, seed2=6, reshuffle=True).handle).repeat(2))
of("cache_v2", lambda: variant(
    raw.CacheDatasetV2, [tf.int64], [[]], input_dataset=Dataset.range(3)._variant_tensor, filename="",
    cache=raw.AnonymousMemoryCache().handle).repeat(2))


# Functions.
def checked(n):
    """A number; every third one is an error."""
    with tf.control_dependencies([tf.debugging.assert_none_equal(n % 3, tf.constant(1, tf.int64))]):
        return tf.identity(n * 10)


def numbers_with_errors(count):
    return Dataset.range(count).map(checked)


of("map", lambda: mixed().map(lambda element: (element["a"] * 2, tf.strings.join([element["b"], "!"]))), twice=True)
of("map_with_captured_values", lambda: captured(Dataset.range(4)))
of("map_after_errors", lambda: numbers_with_errors(7))
of("map_of_nested_calls", lambda: Dataset.range(6).map(lambda n: tf.while_loop(
    lambda i, s: i < n, lambda i, s: (i + 1, s + i), [tf.constant(0, tf.int64), tf.constant(0, tf.int64)])[1]))
for calls in [1, 3, -1]:
    of(f"parallel_map_of_{calls}".replace("-", "minus_"),
       lambda calls=calls: Dataset.range(25).map(lambda n: n * n, num_parallel_calls=calls), twice=True)
of("parallel_map_after_errors", lambda: Dataset.range(8).map(checked, num_parallel_calls=3))
of("parallel_map_in_any_order", lambda: Dataset.range(10).map(
    lambda n: n * n, num_parallel_calls=4, deterministic=False).batch(10).map(lambda all: tf.sort(all)))
of("map_and_batch", lambda: variant(
    raw.MapAndBatchDataset, [tf.int64], [[None]],
    input_dataset=Dataset.range(7)._variant_tensor, other_arguments=[], batch_size=3, num_parallel_calls=2,
    drop_remainder=False, f=square_function(), preserve_cardinality=True))
of("filter", lambda: mixed().filter(lambda element: element["c"] > 0), twice=True)
of("filter_of_errors", lambda: numbers_with_errors(9).filter(lambda n: n % 20 == 0))
of("filter_that_fails", lambda: Dataset.range(6).filter(lambda n: checked(n) > 0))
of("flat_map", lambda: Dataset.range(5).flat_map(lambda n: Dataset.range(n).map(lambda k: k + 100 * n)), twice=True)
of("flat_map_of_errors", lambda: Dataset.range(4).flat_map(lambda n: numbers_with_errors(n + 1)))
of("flat_map_that_fails", lambda: Dataset.range(6).flat_map(lambda n: Dataset.range(checked(n) // 10)))
of("flat_map_of_flat_maps", lambda: Dataset.range(4).flat_map(
    lambda n: Dataset.range(n).flat_map(lambda k: Dataset.from_tensors((n, k)).repeat(k + 1))))
for cycle, block in [(1, 1), (2, 1), (3, 2), (2, 5), (10, 3)]:
    of(f"interleave_{cycle}_{block}", lambda cycle=cycle, block=block: Dataset.range(1, 7).interleave(
        lambda n: Dataset.from_tensors(n).repeat(n), cycle_length=cycle, block_length=block), limit=60)
    of(f"parallel_interleave_{cycle}_{block}", lambda cycle=cycle, block=block: Dataset.range(1, 7).interleave(
        lambda n: Dataset.from_tensors(n).repeat(n), cycle_length=cycle, block_length=block,
        num_parallel_calls=min(cycle, 2)), limit=60)
of("interleave_of_errors", lambda: Dataset.range(1, 5).interleave(lambda n: numbers_with_errors(n + 2), cycle_length=2))
refused("interleave_of_more_calls_than_its_cycle", lambda: Dataset.range(3).interleave(
    lambda n: Dataset.range(n), cycle_length=2, num_parallel_calls=3))
refused("interleave_of_no_cycle", lambda: Dataset.range(3).interleave(
    lambda n: Dataset.range(n), cycle_length=fed(0), block_length=1))
of("a_pipeline", lambda: mixed().repeat(3).shuffle(4, seed=8).map(
    lambda element: (element["a"], element["c"]), num_parallel_calls=2).filter(lambda a, c: c < 4).batch(3).prefetch(1))


def square_function():
    @tf.function(input_signature=[tf.TensorSpec([], tf.int64)])
    def square(n):
        return n * n
    return square.get_concrete_function()


def captured(dataset):
    scale = tf.constant([10, 20], tf.int64)
    return dataset.map(lambda n: n + scale)


# A function that ends the elements.
def ending(n):
    empty = raw.FIFOQueueV2(component_types=[tf.int64], shapes=[[]])
    with tf.control_dependencies([raw.QueueCloseV2(handle=empty)]):
        taken = tf.cond(n < 3, lambda: n, lambda: tf.reshape(raw.QueueDequeueV2(
            handle=empty, component_types=[tf.int64])[0], []))
    return taken


of("map_that_ends", lambda: Dataset.range(6).map(ending), limit=8)
of("filter_that_ends", lambda: Dataset.range(6).filter(lambda n: ending(n) >= 0), limit=8)


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
