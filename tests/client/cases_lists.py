"""Lists of tensors, values of variants: the ops one by one."""

import numpy as np
import tensorflow as tf

from harness import case
from lists import empty, get, length, pop, push, put, reserve, rows, stack

tf1 = tf.compat.v1
tf1.disable_control_flow_v2()
raw = tf.raw_ops


def hidden(value):
    """A value whose shape the client does not know, so that the server is the one to refuse it."""
    return tf1.placeholder_with_default(value, None)


@case
def a_list_is_pushed_and_stacked(address, log):
    handle = push(empty(), tf.constant([1., 2]), tf.constant([3., 4]), tf.constant([5., 6]))
    with tf1.Session(address) as session:
        log.value("stacked", session.run(stack(handle)))
        log.value("length", session.run(length(handle)))
        log.value("expected count", session.run(stack(handle, count=3)))
        with log.refused("another count"):
            session.run(stack(handle, count=2))


@case
def a_list_is_popped(address, log):
    handle = push(empty(), tf.constant(1.), tf.constant(2.), tf.constant(3.))
    handle, last = pop(handle)
    handle, second = pop(handle)
    with tf1.Session(address) as session:
        log.value("popped", session.run([last, second, length(handle), stack(handle)]))


@case
def an_empty_list_is_not_popped(address, log):
    with tf1.Session(address) as session, log.refused("popped"):
        session.run(pop(empty())[1])


@case
def a_list_that_is_pushed_twice_is_two_lists(address, log):
    handle = push(empty(), tf.constant(1.))
    a, b = push(handle, tf.constant(2.)), push(handle, tf.constant(3.), tf.constant(4.))
    with tf1.Session(address) as session:
        log.value("all", session.run([stack(handle), stack(a), stack(b)]))


@case
def a_list_that_is_full(address, log):
    handle = push(empty(limit=2), tf.constant(1.), tf.constant(2.))
    with tf1.Session(address) as session:
        log.value("full", session.run(stack(handle)))
        with log.refused("one more"):
            session.run(length(push(handle, tf.constant(3.))))


@case
def a_list_of_no_elements_is_stacked(address, log):
    with tf1.Session(address) as session:
        log.value("of a shape", session.run(stack(empty(shape=[2, 3]))))
        log.value("of the op's shape", session.run(stack(empty(), shape=[4])))
        with log.refused("of no shape"):
            session.run(stack(empty()))
        with log.refused("of half a shape"):
            session.run(stack(empty(shape=[2, -1])))


@case
def elements_of_other_shapes(address, log):
    handle = empty(shape=[2, -1])
    with tf1.Session(address) as session:
        log.value("agree", session.run(stack(push(handle, tf.ones([2, 3]), tf.zeros([2, 3])))))
        with log.refused("do not agree"):
            session.run(length(push(handle, hidden(tf.ones([3, 3])))))
        with log.refused("another rank"):
            session.run(length(push(handle, hidden(tf.ones([2])))))
        with log.refused("do not stack"):
            session.run(stack(push(handle, tf.ones([2, 3]), tf.ones([2, 4]))))
        with log.refused("not the op's shape"):
            session.run(stack(push(empty(), tf.ones([2, 3])), shape=[2, 4]))


@case
def a_list_of_another_type(address, log):
    with tf1.Session(address) as session:
        with log.refused("pushed"):
            session.run(length(push(empty(tf.int32), tf.constant(1.))))
        choice = tf1.placeholder_with_default(True, [])
        handle = tf1.cond(choice, lambda: empty(tf.int32), lambda: empty(tf.float32))
        for name, op in (("push", lambda: length(push(handle, tf.constant(1.)))),
                         ("pop", lambda: pop(handle)[1]), ("stack", lambda: stack(handle)),
                         ("get", lambda: get(handle, 0)),
                         ("set", lambda: length(put(handle, 0, tf.constant(1.))))):
            with log.refused(name):
                session.run(op())


@case
def what_is_no_list(address, log):
    for name, handle in (("a map", raw.EmptyTensorMap()), ("two lists", tf.stack([empty(), empty()]))):
        with tf1.Session(address) as session, log.refused(name):
            session.run(length(handle))


@case
def elements_are_set_and_got(address, log):
    handle = put(put(reserve(3), 2, tf.constant([5., 6])), 0, tf.constant([1., 2]))
    with tf1.Session(address) as session:
        log.value("set", session.run([get(handle, 0), get(handle, 2)]))
        log.value("unset is zeros as the others", session.run(get(handle, 1)))
        log.value("stacked", session.run(stack(handle)))
        again = put(handle, 0, tf.constant([7., 8]))
        log.value("set again", session.run([get(again, 0), get(handle, 0)]))


@case
def indices_out_of_range(address, log):
    handle = reserve(2, shape=[])
    index = tf1.placeholder(tf.int32, [])
    read, write = get(handle, index), length(put(handle, index, tf.constant(1.)))
    longer = put(handle, index, tf.constant(9.), resize=True)
    with tf1.Session(address) as session:
        for at in (0, 1, 2, 100):
            with log.refused(f"read {at}"):
                session.run(read, {index: at})
            with log.refused(f"write {at}"):
                session.run(write, {index: at})
            log.value(f"grown {at}", session.run(stack(longer), {index: at}))


@case
def elements_that_are_not_set(address, log):
    with tf1.Session(address) as session:
        log.value("of the list's shape", session.run(get(reserve(1, shape=[2]), 0)))
        log.value("of the op's shape", session.run(get(reserve(1), 0, shape=[3])))
        log.value("of both", session.run(get(reserve(1, shape=[-1, 2]), 0, shape=[1, -1])))
        log.value("stacked", session.run(stack(reserve(2, shape=[2]))))
        log.value("popped", session.run(pop(reserve(2, shape=[2]))[1]))
        for name, op in (("got", lambda: get(reserve(1), 0)), ("popped", lambda: pop(reserve(1))[1]),
                         ("stacked", lambda: stack(reserve(1))),
                         ("contradict", lambda: get(reserve(1, shape=[2]), 0, shape=[3]))):
            with log.refused(name + " of no shape"):
                session.run(op())


@case
def the_shape_of_elements(address, log):
    def shape_of(handle, dtype):
        return raw.TensorListElementShape(input_handle=handle, shape_type=dtype)

    with tf1.Session(address) as session:
        for dtype in (tf.int32, tf.int64):
            log.value("full", session.run(shape_of(empty(shape=[2, 3]), dtype)))
            log.value("half", session.run(shape_of(empty(shape=[2, -1]), dtype)))
            log.value("scalars", session.run(shape_of(empty(shape=np.int32([])), dtype)))
            log.value("unknown", session.run(shape_of(empty(), dtype)))


@case
def a_shape_that_is_none(address, log):
    shape = tf1.placeholder(tf.int32, None)
    handle = raw.EmptyTensorList(element_shape=shape, max_num_elements=-1, element_dtype=tf.float32)
    with tf1.Session(address) as session:
        log.value("any", session.run(length(handle), {shape: -1}))
        with log.refused("a scalar"):
            session.run(length(handle), {shape: 3})
        with log.refused("negative"):
            session.run(length(handle), {shape: [2, -2]})


@case
def a_list_is_resized(address, log):
    handle = push(empty(shape=[]), tf.constant(1.), tf.constant(2.), tf.constant(3.))
    size = tf1.placeholder(tf.int32, [])
    resized = raw.TensorListResize(input_handle=handle, size=size)
    with tf1.Session(address) as session:
        for count in (0, 2, 3, 5):
            log.value(str(count), session.run(stack(resized), {size: count}))
        with log.refused("negative"):
            session.run(stack(resized), {size: -1})
        log.value("the list itself", session.run(stack(handle)))


@case
def reserved_elements_of_a_negative_number(address, log):
    count = tf1.placeholder(tf.int32, [])
    with tf1.Session(address) as session, log.refused("negative"):
        session.run(length(reserve(count)), {count: -1})


@case
def rows_of_a_tensor(address, log):
    value = tf1.placeholder(tf.float32, None)
    handle = rows(value)
    with tf1.Session(address) as session:
        x = np.arange(12, dtype=np.float32).reshape([3, 2, 2])
        log.value("rows", session.run([length(handle), get(handle, 1), stack(handle)], {value: x}))
        log.value("none", session.run(length(handle), {value: x[:0]}))
        with log.refused("a scalar"):
            session.run(length(handle), {value: 1})
        with log.refused("another shape"):
            session.run(length(rows(value, [3, 2])), {value: x})


@case
def elements_are_gathered(address, log):
    def gather(handle, indices, shape=-1):
        return raw.TensorListGather(input_handle=handle, indices=indices, element_dtype=tf.float32,
                                    element_shape=tf.constant(shape, tf.int32))

    x = np.arange(8, dtype=np.float32).reshape([4, 2])
    handle = rows(tf.constant(x))
    indices = tf1.placeholder(tf.int32, [None])
    with tf1.Session(address) as session:
        for some in ([0], [3, 1, 1], [2, 0]):
            log.value(str(some), session.run(gather(handle, indices), {indices: some}))
        log.value("unset", session.run(gather(put(reserve(3), 0, tf.constant([1., 2])), [2, 0])))
        log.value("none", session.run(gather(rows(tf.constant(x), [2]), indices), {indices: []}))
        for some in ([4], [0, 9], [-1]):
            with log.refused(str(some)):
                session.run(gather(handle, indices), {indices: some})
        with log.refused("none of no shape"):
            session.run(gather(empty(), indices), {indices: []})


@case
def elements_are_scattered(address, log):
    x = np.arange(6, dtype=np.float32).reshape([3, 2])
    indices = tf1.placeholder(tf.int32, [None])
    first = raw.TensorListScatter(tensor=x, indices=indices, element_shape=tf.constant([2]))
    second = raw.TensorListScatterV2(tensor=x, indices=indices, element_shape=tf.constant([2]),
                                     num_elements=5)
    grows = raw.TensorListScatterV2(tensor=x, indices=indices, element_shape=tf.constant([2]),
                                    num_elements=-1)
    with tf1.Session(address) as session:
        for some in ([0, 1, 2], [4, 0, 2], [1, 1, 0]):
            for name, handle in (("first", first), ("second", second), ("grows", grows)):
                log.value(f"{name} {some}", session.run(stack(handle), {indices: some}))
        for some in ([0, 1], [0, 1, -1]):
            with log.refused(str(some)):
                session.run(length(first), {indices: some})
        with log.refused("beyond the number"):
            session.run(length(second), {indices: [0, 1, 5]})
        with log.refused("a number below -1"):
            session.run(length(raw.TensorListScatterV2(
                tensor=x, indices=indices, element_shape=tf.constant([2]), num_elements=-2)),
                {indices: [0, 1, 2]})
        with log.refused("rows of another shape"):
            session.run(length(raw.TensorListScatter(
                tensor=hidden(x), indices=indices, element_shape=tf.constant([3]))),
                {indices: [0, 1, 2]})


@case
def elements_are_scattered_into_a_list(address, log):
    handle = push(empty(shape=[2]), tf.constant([9., 9]), tf.constant([8., 8]))
    x = tf.constant([[1., 2], [3, 4]])
    indices = tf1.placeholder(tf.int32, None)
    into = raw.TensorListScatterIntoExistingList(input_handle=handle, tensor=x, indices=indices)
    with tf1.Session(address) as session:
        for some in ([0, 1], [1, 0], [2, 1]):
            log.value(str(some), session.run(stack(into), {indices: some}))
        log.value("the list itself", session.run(stack(handle)))
        for some in ([0], [[0, 1]]):
            with log.refused(str(some)):
                session.run(length(into), {indices: some})


@case
def elements_are_concatenated(address, log):
    handle = push(empty(), tf.constant([[1., 2]]), tf.constant([[3., 4], [5, 6]]), tf.zeros([0, 2]))
    one = raw.TensorListConcat(input_handle=handle, element_dtype=tf.float32)
    two = raw.TensorListConcatV2(input_handle=handle, element_dtype=tf.float32,
                                 element_shape=tf.constant([-1, 2]),
                                 leading_dims=tf.constant([], tf.int64))
    with tf1.Session(address) as session:
        log.value("first form", session.run(list(one)))
        log.value("second form", session.run(list(two)))


@case
def concatenated_elements_that_are_not_set(address, log):
    def concat(handle, shape, leading):
        return raw.TensorListConcatV2(input_handle=handle, element_dtype=tf.float32,
                                      element_shape=tf.constant(shape, tf.int32),
                                      leading_dims=tf.constant(leading, tf.int64))

    handle = put(reserve(3), 1, tf.constant([[1., 2], [3, 4]]))
    with tf1.Session(address) as session:
        log.value("as long as the other", session.run(list(concat(handle, [-1, 2], []))))
        log.value("of given lengths", session.run(list(concat(handle, [-1, 2], [1, 9, 0]))))
        log.value("of the op's length", session.run(list(concat(handle, [2, 2], []))))
        with log.refused("of another length"):
            session.run(list(concat(handle, [3, 2], [])))
        with log.refused("of no length"):
            session.run(list(concat(reserve(2, shape=[-1, 2]), [-1, 2], [1])))


@case
def a_list_of_nothing_is_concatenated(address, log):
    def concat(handle, shape):
        return raw.TensorListConcat(input_handle=handle, element_dtype=tf.float32, element_shape=shape)

    with tf1.Session(address) as session:
        log.value("of a shape", session.run(list(concat(empty(), [None, 3]))))
        with log.refused("of no shape"):
            session.run(list(concat(empty(), None)))
        with log.refused("scalars"):
            session.run(list(concat(push(empty(), tf.constant(1.)), None)))
        with log.refused("rows of several shapes"):
            session.run(list(concat(push(empty(), tf.ones([1, 2]), tf.ones([1, 3])), None)))


@case
def a_tensor_is_split(address, log):
    x = np.arange(10, dtype=np.float32).reshape([5, 2])
    lengths = tf1.placeholder(tf.int64, None)
    value = tf1.placeholder_with_default(x, None)
    handle = raw.TensorListSplit(tensor=value, element_shape=tf.constant([-1, 2]), lengths=lengths)
    with tf1.Session(address) as session:
        for some in ([2, 3], [0, 5, 0], [1] * 5):
            parts = [get(handle, at) for at in range(len(some))]
            log.value(str(some), session.run(parts, {lengths: some}))
        for some in ([2, 2], [6], [-1, 6], 5):
            with log.refused(str(some)):
                session.run(length(handle), {lengths: some})
        with log.refused("rows of another shape"):
            session.run(length(handle), {lengths: [1], value: np.zeros([1, 3], np.float32)})


@case
def lists_are_joined(address, log):
    a, b = rows(tf.constant([1., 2]), []), rows(tf.constant([3., 4, 5]), [])
    join = raw.TensorListConcatLists(input_a=a, input_b=b, element_dtype=tf.float32)
    twice = raw.TensorListConcatLists(input_a=a, input_b=a, element_dtype=tf.float32)
    many = raw.TensorListConcatLists(input_a=tf.stack([a, b]), input_b=tf.stack([b, a]),
                                     element_dtype=tf.float32)
    with tf1.Session(address) as session:
        log.value("two", session.run([stack(join), stack(twice), stack(a), stack(b)]))
        log.value("four", session.run([stack(one) for one in tf.unstack(many)]))
        with log.refused("of other shapes"):
            session.run(length(raw.TensorListConcatLists(
                input_a=a, input_b=empty(), element_dtype=tf.float32)))


@case
def rows_are_pushed_on_several_lists(address, log):
    lists = tf.stack([empty(shape=[]), rows(tf.constant([7., 8]), [])])
    pushed = raw.TensorListPushBackBatch(input_handles=lists, tensor=tf.constant([1., 2]))
    with tf1.Session(address) as session:
        log.value("pushed", session.run([stack(one) for one in tf.unstack(pushed)]))
        with log.refused("another number"):
            session.run(raw.TensorListPushBackBatch(
                input_handles=lists, tensor=hidden(tf.constant([1., 2, 3]))).op)
        with log.refused("another shape"):
            session.run(raw.TensorListPushBackBatch(
                input_handles=lists, tensor=tf.constant([[1.], [2]])).op)


def types_named():
    for dtype in (tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.int32, tf.int64, tf.int8, tf.uint8,
                  tf.int16, tf.uint16, tf.uint32, tf.uint64, tf.complex64, tf.complex128, tf.bool,
                  tf.string):
        def run(address, log, dtype=dtype):
            if dtype == tf.string:
                x = np.array([[b"a", b"bc"], [b"", b"d" * 40]], object)
            else:
                x = np.array([[1, 0], [2, 3]]).astype(dtype.as_numpy_dtype)
            handle = push(rows(tf.constant(x, dtype)), tf.constant(x[0], dtype))
            longer = raw.TensorListResize(input_handle=handle, size=4)
            with tf1.Session(address) as session:
                log.value("stacked", session.run(stack(handle, dtype)))
                log.value("with one unset", session.run(stack(longer, dtype)))
                log.value("popped", session.run(pop(handle, dtype)[1]))
                whole = raw.TensorListConcat(input_handle=handle, element_dtype=dtype)
                log.value("whole", session.run(list(whole)))
        run.__name__ = f"a_list_of_{dtype.name}"
        case(run)


types_named()
