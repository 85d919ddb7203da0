"""Values of variants: lists of lists, sums and zeros, loops and gradients over lists, maps of tensors, optional values,
ragged tensors."""

import numpy as np
import tensorflow as tf

from harness import case
from lists import empty, get, length, pop, push, put, reserve, rows, stack

tf1 = tf.compat.v1
tf1.disable_control_flow_v2()
raw = tf.raw_ops


@case
def lists_of_lists(address, log):
    inner = [rows(tf.constant([1., 2]), []), rows(tf.constant([3.]), [])]
    outer = push(empty(tf.variant, []), *inner)
    handle, last = pop(outer, tf.variant, [])
    with tf1.Session(address) as session:
        log.value("popped", session.run([stack(last), length(handle), length(outer)]))
        both = tf.unstack(stack(outer, tf.variant), num=2)
        log.value("stacked", session.run([stack(one) for one in both]))


@case
def lists_that_lie_deep_in_each_other(address, log):
    depth = tf1.placeholder(tf.int32, [])
    _, nested = tf1.while_loop(lambda i, handle: i < depth,
                               lambda i, handle: (i + 1, push(empty(tf.variant, []), handle)),
                               [0, empty(tf.variant, [])])
    count, _ = tf1.while_loop(
        lambda i, handle: length(handle) > 0,
        lambda i, handle: (i + 1, tf.reshape(pop(handle, tf.variant, [])[1], [])), [0, nested])
    with tf1.Session(address) as session:
        log.value("depth", session.run(count, {depth: 200}))
        log.value("length", session.run(length(nested), {depth: 200}))


@case
def zeros_of_lists(address, log):
    handle = put(reserve(3, shape=[2]), 1, tf.constant([1., 2]))
    zeros = raw.ZerosLike(x=handle)
    nested = raw.ZerosLike(x=push(empty(tf.variant, []), rows(tf.constant([1., 2]), [])))
    with tf1.Session(address) as session:
        log.value("zeros", session.run([stack(zeros), length(zeros)]))
        log.value("nested", session.run(stack(pop(nested, tf.variant, [])[1])))
        with log.refused("of strings"):
            session.run(length(raw.ZerosLike(x=rows(tf.constant(["a"])))))
        with log.refused("no scalar"):
            session.run(raw.ZerosLike(x=tf.stack([handle, handle])).op)


@case
def sums_of_lists(address, log):
    a = put(reserve(3, shape=[-1]), 0, tf.constant([1., 2]))
    b = put(put(reserve(3, shape=[2]), 0, tf.constant([10., 20])), 1, tf.constant([5., 6]))
    one, two, three = (raw.AddN(inputs=some) for some in ([a], [a, b], [a, b, b]))
    with tf1.Session(address) as session:
        log.value("sums", session.run([stack(handle) for handle in (one, two, three)]))
        for name, other in (("lengths", reserve(2, shape=[2])), ("types", reserve(3, tf.int32)),
                            ("shapes", reserve(3, shape=[1, 1])),
                            ("elements", put(reserve(3), 0, tf.constant([1., 2, 3])))):
            with log.refused("other " + name):
                session.run(length(raw.AddN(inputs=[a, other])))
        nested = push(empty(tf.variant, []), rows(tf.constant([1., 2]), []))
        both = raw.AddN(inputs=[nested, nested])
        log.value("nested", session.run(stack(pop(both, tf.variant, [])[1])))


@case
def a_loop_pushes(address, log):
    n = tf1.placeholder(tf.int32, [])
    _, handle = tf1.while_loop(
        lambda i, handle: i < n,
        lambda i, handle: (i + 1, push(handle, tf.cast(i, tf.float32) * 2)), [0, empty(shape=[])])
    with tf1.Session(address) as session:
        for count in (0, 1, 50):
            log.value(str(count), session.run(stack(handle), {n: count}))


@case
def a_loop_pops(address, log):
    handle = rows(tf.range(40.), [])

    def body(handle, total):
        handle, last = pop(handle, shape=[])
        return handle, total * 0.5 + tf.reshape(last, [])

    left, total = tf1.while_loop(lambda handle, total: length(handle) > 0, body, [handle, 0.])
    with tf1.Session(address) as session:
        log.value("total", session.run([total, length(left), stack(handle)]))


@case
def a_loop_sets(address, log):
    _, handle = tf1.while_loop(
        lambda i, handle: i < 30,
        lambda i, handle: (i + 1, put(handle, 29 - i, tf.cast(i, tf.float32))),
        [0, reserve(30, shape=[])])
    with tf1.Session(address) as session:
        log.value("set", session.run(stack(handle)))


@case
def the_gradients_of_lists(address, log):
    x = tf1.placeholder(tf.float32, [3, 2])
    handle = push(rows(x, [2]), x[0] * 2)
    y = stack(handle, shape=[2])
    whole, _ = raw.TensorListConcat(input_handle=handle, element_dtype=tf.float32, element_shape=[2])
    one = get(put(handle, 1, x[2] * 5), 1, shape=[2])
    with tf1.Session(address) as session:
        feed = {x: np.arange(6, dtype=np.float32).reshape([3, 2])}
        for name, result in (("stack", y * y), ("get", one * one), ("concat", whole * whole)):
            log.value(name, session.run(tf1.gradients(result, x), feed))


@case
def maps(address, log):
    def insert(handle, key, value):
        return raw.TensorMapInsert(input_handle=handle, key=key, value=value)

    def lookup(handle, key, dtype=tf.float32):
        return raw.TensorMapLookup(input_handle=handle, key=key, value_dtype=dtype)

    def has(handle, key):
        return raw.TensorMapHasKey(input_handle=handle, key=key)

    one = insert(raw.EmptyTensorMap(), 1, [1., 2])
    two = insert(one, tf.constant(2), [3., 4, 5])
    other = insert(two, 1, [9.])
    less = raw.TensorMapErase(input_handle=two, key=1, value_dtype=tf.float32)
    with tf1.Session(address) as session:
        for name, handle in (("one", one), ("two", two), ("other", other), ("less", less)):
            log.value(name, session.run([raw.TensorMapSize(input_handle=handle), has(handle, 1),
                                         has(handle, 2), has(handle, tf.constant(2, tf.int64))]))
        log.value("values", session.run([lookup(two, 1), lookup(two, 2), lookup(other, 1)]))
        # TensorFlow's maps have no order.
        keys = tf.sort(raw.TensorMapStackKeys(input_handle=two, key_dtype=tf.int32))
        log.value("keys", session.run(keys))
        for name, op in (("no key", lambda: lookup(one, 2)), ("erased", lambda: lookup(less, 1)),
                         ("erase no key", lambda: raw.TensorMapSize(input_handle=raw.TensorMapErase(
                             input_handle=one, key=7, value_dtype=tf.float32))),
                         ("no keys", lambda: raw.TensorMapStackKeys(
                             input_handle=raw.EmptyTensorMap(), key_dtype=tf.int32)),
                         ("keys of another type", lambda: raw.TensorMapStackKeys(
                             input_handle=one, key_dtype=tf.float32)),
                         ("a list", lambda: raw.TensorMapSize(input_handle=empty()))):
            with log.refused(name):
                session.run(op())


@case
def maps_of_text_and_of_vectors(address, log):
    handle = raw.EmptyTensorMap()
    for key, value in (("a", 1.), ("bc", 2.), ("", 3.)):
        handle = raw.TensorMapInsert(input_handle=handle, key=key, value=value)
    handle = raw.TensorMapInsert(input_handle=handle, key=[1., 2], value="text")
    handle = raw.TensorMapInsert(input_handle=handle, key=[1., 3], value="another")
    with tf1.Session(address) as session:
        for key in ("a", "bc", ""):
            log.value(f"'{key}'", session.run(raw.TensorMapLookup(
                input_handle=handle, key=key, value_dtype=tf.float32)))
        log.value("of a vector", session.run(raw.TensorMapLookup(
            input_handle=handle, key=[1., 3], value_dtype=tf.string)))
        log.value("size", session.run(raw.TensorMapSize(input_handle=handle)))


@case
def sums_and_zeros_of_maps(address, log):
    def insert(handle, key, value):
        return raw.TensorMapInsert(input_handle=handle, key=key, value=value)

    def lookup(handle, key):
        return raw.TensorMapLookup(input_handle=handle, key=key, value_dtype=tf.float32)

    a = insert(insert(raw.EmptyTensorMap(), 1, [1., 2]), 2, [5.])
    b = insert(insert(raw.EmptyTensorMap(), 1, [10., 20]), 3, [7.])
    both = raw.AddN(inputs=[a, b])
    with tf1.Session(address) as session:
        log.value("sum", session.run([lookup(both, key) for key in (1, 2, 3)]))
        log.value("zeros", session.run(raw.TensorMapSize(input_handle=raw.ZerosLike(x=a))))
        with log.refused("a list and a map"):
            session.run(raw.AddN(inputs=[a, empty()]).op)


@case
def optional_values(address, log):
    def get(optional, dtypes=(tf.float32, tf.string), shapes=((None,), ())):
        return raw.OptionalGetValue(optional=optional, output_types=list(dtypes), output_shapes=list(shapes))

    x = tf1.placeholder(tf.float32, [None])
    some, nothing = raw.OptionalFromValue(components=[x, "text"]), raw.OptionalNone()
    feed = {x: [1., 2]}
    with tf1.Session(address) as session:
        has = [raw.OptionalHasValue(optional=one) for one in (some, nothing)]
        log.value("has", session.run(has, feed))
        log.value("got", session.run(get(some), feed))
        zeros = raw.ZerosLike(x=raw.OptionalFromValue(components=[x, tf.range(3)]))
        log.value("zeros", session.run(get(zeros, (tf.float32, tf.int32), ((2,), (3,))), feed))
        log.value("zeros of nothing", session.run(raw.OptionalHasValue(optional=raw.ZerosLike(x=nothing))))
        numbers = raw.OptionalFromValue(components=[x])
        total = raw.AddN(inputs=[numbers, numbers, numbers])
        log.value("sum", session.run(get(total, (tf.float32,), ((2,),)), feed))
        for name, op in (("nothing", lambda: get(nothing)),
                         ("fewer", lambda: get(some, (tf.float32,), ((2,),))),
                         ("another type", lambda: get(some, (tf.int32, tf.string))),
                         ("another shape", lambda: get(some, shapes=((3,), ()))),
                         ("a sum with nothing", lambda: raw.OptionalHasValue(
                             optional=raw.AddN(inputs=[numbers, nothing]))),
                         ("a list", lambda: raw.OptionalHasValue(optional=empty()))):
            with log.refused(name):
                session.run(op(), feed)


def rows_of(variant, outer=1, inner=-1, dtype=tf.float32, splits=tf.int64):
    """The splits and the values of the ragged tensor of variants."""
    made = raw.RaggedTensorFromVariant(encoded_ragged=variant, input_ragged_rank=inner, output_ragged_rank=outer,
                                       Tvalues=dtype, Tsplits=splits)
    return [*made.output_nested_splits, made.output_dense_values]


def ragged(splits, values, by_row):
    return raw.RaggedTensorToVariant(rt_nested_splits=splits, rt_dense_values=values, batched_input=by_row)


NESTED = [np.int64([0, 2, 2, 3]), np.int64([0, 1, 3, 3])]


@case
def ragged_tensors_as_variants(address, log):
    x = tf1.placeholder(tf.float32)
    one, each = ragged(NESTED, x, False), ragged(NESTED, x, True)
    feed = {x: [[1., 2], [3, 4], [5, 6]]}
    with tf1.Session(address) as session:
        log.value("shapes", session.run([tf.shape(one), tf.shape(each)], feed))
        log.value("whole", session.run(rows_of(one, 2), feed))
        log.value("rows", session.run(rows_of(each, 2), feed))
        log.value("rows of known rank", session.run(rows_of(each, 2, 1), feed))
        first, _, last = tf.unstack(each, num=3)
        log.value("a row", session.run(rows_of(first), feed))
        log.value("stacked", session.run(rows_of(tf.stack([[one, one], [one, one]]), 4), feed))
        log.value("turned", session.run(rows_of(tf.stack([last, first]), 2), feed))
        log.value("short splits", session.run(
            rows_of(ragged([np.int32([0, 1, 3])], x, True), 1, splits=tf.int32), feed))
        whole = ragged([], x, True)
        log.value("of a whole tensor", session.run(rows_of(whole, 0), feed))
        log.value("texts", session.run(rows_of(ragged([np.int64([0, 2, 3])], ["a", "", "c"], True), dtype=tf.string)))
        none = ragged([np.int64([0])], np.zeros([0, 2], np.float32), True)
        log.value("no rows", session.run(rows_of(none)))


@case
def what_is_no_ragged_tensor(address, log):
    one, each = ragged(NESTED, [1., 2, 3], False), ragged(NESTED, [1., 2, 3], True)
    refused = {
        "rank": lambda: rows_of(each, 1, 0),
        "sum of ranks": lambda: rows_of(each, 2, 2),
        "type of values": lambda: rows_of(one, 2, dtype=tf.int32),
        "type of splits": lambda: rows_of(one, 2, splits=tf.int32),
        "a list": lambda: rows_of(rows(tf.constant([1., 2]), []), 2),
        "a scalar": lambda: ragged([], 1., True),
        "values of other shapes": lambda: rows_of(tf.stack([
            ragged([np.int64([0, 1])], [[1., 2]], False), ragged([np.int64([0, 1])], [[1.]], False)]), 2),
    }
    with tf1.Session(address) as session:
        for name, make in refused.items():
            with log.refused(name):
                session.run(make())


@case
def sums_and_gradients_of_ragged_tensors(address, log):
    x = tf1.placeholder(tf.float32, [3])
    feed = {x: [1., 2, 3]}
    one, each = ragged(NESTED, x, False), ragged(NESTED, x * x, True)
    with tf1.Session(address) as session:
        both = raw.AddN(inputs=[one, ragged(NESTED, 10 * x, False)])
        log.value("sum", session.run(rows_of(both, 2), feed))
        log.value("zeros", session.run(rows_of(raw.ZerosLike(x=one), 2), feed))
        with log.refused("a sum of other splits"):
            session.run(raw.AddN(inputs=[one, ragged([np.int64([0, 3])], x, False)]).op, feed)
        values = rows_of(each, 2)[-1]
        log.value("gradient", session.run(tf.gradients(values * values, x), feed))
        whole = rows_of(ragged(NESTED, x * x, False), 2)[-1]
        log.value("gradient of one", session.run(tf.gradients(whole, x), feed))
        gradient = raw.RaggedTensorToVariantGradient(
            encoded_ragged_grad=each, row_splits=NESTED[0], dense_values_shape=[3], Tvalues=tf.float32)
        log.value("values", session.run(gradient, feed))
