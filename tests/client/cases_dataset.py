"""Datasets: elements of tensors, numbers and functions, batches, orders, ends and errors."""

import tensorflow as tf

from datasets import checked, fed, numbers_with_errors, of, refused, variant
from harness import case

tf1 = tf.compat.v1
raw = tf.raw_ops
Dataset = tf.compat.v1.data.Dataset


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

# How many elements there are, which is known without making them.
@case
def cardinalities(address, log):
    numbers = Dataset.range(7)
    endless, some, none = numbers.repeat(), numbers.filter(lambda n: n > 2), Dataset.range(0)
    kinds = {
        "range": numbers, "down": Dataset.range(10, 0, -3), "none": none, "endless": endless, "filtered": some,
        "tensors": Dataset.from_tensors(3), "slices": mixed(), "lines": tf1.data.TextLineDataset(["x"]),
        "batch": numbers.batch(3), "whole batches": numbers.batch(3, True), "endless batches": endless.batch(2),
        "padded": numbers.padded_batch(4, []), "take": numbers.take(3), "take all": numbers.take(-1),
        "take more": numbers.take(9), "take of endless": endless.take(5), "take of filtered": some.take(2),
        "skip": numbers.skip(3), "skip all": numbers.skip(-1), "skip more": numbers.skip(9),
        "repeat": numbers.repeat(3), "repeat none": some.repeat(0), "repeat filtered": some.repeat(2),
        "repeat of none": none.repeat(), "repeat for ever": some.repeat(), "zip": Dataset.zip((numbers, endless)),
        "zip of filtered": Dataset.zip((none, some)), "concatenate": numbers.concatenate(numbers),
        "concatenate endless": some.concatenate(endless), "concatenate filtered": numbers.concatenate(some),
        "shard": numbers.shard(3, 0), "last shard": numbers.shard(3, 2), "cache": numbers.cache(),
        "shuffle": numbers.shuffle(3), "map": numbers.map(lambda n: n), "prefetch": numbers.prefetch(2),
        "parallel map": numbers.map(lambda n: n, num_parallel_calls=2), "flat map": numbers.flat_map(Dataset.range),
        "interleave": numbers.interleave(Dataset.range), "window": numbers.window(3), "windows": numbers.window(3, 2),
        "whole windows": numbers.window(3, 2, drop_remainder=True),
        "windows apart": numbers.window(2, 1, 3, drop_remainder=True), "large window": numbers.window(9, drop_remainder=True),
        "shuffle and repeat": shuffle_and_repeat(2),
    }
    counts = {name: raw.DatasetCardinality(input_dataset=kind._variant_tensor) for name, kind in kinds.items()}
    with tf1.Session(address) as session:
        for name, count in session.run(counts).items():
            log.same(name, int(count))


@case
def sizes_of_batches(address, log):
    numbers = Dataset.range(20)
    batches = numbers.batch(3)
    kinds = {
        "range": numbers, "batch": batches, "whole": numbers.batch(3, True), "padded": numbers.padded_batch(4, []),
        "batch of batches": batches.batch(2), "mapped": batches.map(lambda n: n), "take": batches.take(2),
        "skip": batches.skip(1), "repeat": batches.repeat(2), "shard": batches.shard(2, 1), "cache": batches.cache(),
        "shuffle": batches.shuffle(3), "prefetch": batches.prefetch(2), "filter": batches.filter(lambda n: True),
        "concatenate": batches.concatenate(numbers.batch(3)), "others": batches.concatenate(numbers.batch(2)),
        "zip": Dataset.zip((batches, batches)), "zip of others": Dataset.zip((batches, numbers)),
        "windows": numbers.window(2), "flat map": batches.flat_map(lambda n: Dataset.range(4).batch(2)),
    }
    sizes = {name: raw.ComputeBatchSize(input_dataset=kind._variant_tensor) for name, kind in kinds.items()}
    with tf1.Session(address) as session:
        log.value("sizes", session.run(list(sizes.values())))


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
of("shuffled_shards_that_must_not_be_empty", lambda: variant(
    raw.ShardDataset, [tf.int64], [[]], input_dataset=Dataset.range(9).shuffle(4, seed=5)._variant_tensor,
    num_shards=3, index=1, require_non_empty=True))
refused("shard_out_of_range", lambda: variant(
    raw.ShardDataset, [tf.int64], [[]], input_dataset=Dataset.range(2)._variant_tensor, num_shards=fed(3), index=fed(3)))

# Several datasets.
of("zip", lambda: Dataset.zip((mixed(), Dataset.range(10, 13))), twice=True)
of("zip_with_an_error_after_an_end", lambda: Dataset.zip((Dataset.range(1), numbers_with_errors(4))))
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
of("map_and_batch_with_errors", lambda: variant(
    raw.MapAndBatchDataset, [tf.int64], [[None]],
    input_dataset=Dataset.range(9)._variant_tensor, other_arguments=[], batch_size=4, num_parallel_calls=2,
    drop_remainder=False, f=checked_function(), preserve_cardinality=True))
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


def checked_function():
    return tf.function(checked, input_signature=[tf.TensorSpec([], tf.int64)]).get_concrete_function()


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
