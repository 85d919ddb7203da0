"""Arrays of a step: the ops one by one, in the forms that know an array by its handle and by its name."""

import numpy as np
import tensorflow as tf
from google.protobuf import text_format

from harness import case

tf1 = tf.compat.v1
tf1.disable_control_flow_v2()
raw = tf.raw_ops


def array(size, dtype=tf.float32, shape=None, **options):
    """Handle and flow of a new array."""
    return raw.TensorArrayV3(size=size, dtype=dtype, element_shape=shape, **options)


def write(handle, flow, index, value):
    return raw.TensorArrayWriteV3(handle=handle, index=index, value=value, flow_in=flow)


def read(handle, flow, index, dtype=tf.float32):
    return raw.TensorArrayReadV3(handle=handle, index=index, flow_in=flow, dtype=dtype)


def gather(handle, flow, indices, dtype=tf.float32, shape=None):
    return raw.TensorArrayGatherV3(handle=handle, indices=indices, flow_in=flow, dtype=dtype,
                                   element_shape=shape)


def scatter(handle, flow, indices, value):
    return raw.TensorArrayScatterV3(handle=handle, indices=indices, value=value, flow_in=flow)


def concat(handle, flow, dtype=tf.float32, shape=None):
    return list(raw.TensorArrayConcatV3(handle=handle, flow_in=flow, dtype=dtype,
                                        element_shape_except0=shape))


def split(handle, flow, value, lengths):
    return raw.TensorArraySplitV3(handle=handle, value=value, lengths=lengths, flow_in=flow)


def size(handle, flow):
    return raw.TensorArraySizeV3(handle=handle, flow_in=flow)


def gradient(handle, flow, source="gradients"):
    return raw.TensorArrayGradV3(handle=handle, flow_in=flow, source=source)


def hidden(value):
    """A value whose shape the client does not know, so that the server is the one to refuse it."""
    return tf1.placeholder_with_default(value, None)


@case
def an_array_is_written_and_read(address, log):
    handle, flow = array(3)
    for at in range(3):
        flow = write(handle, flow, at, tf.fill([at + 1], float(at)))
    with tf1.Session(address) as session:
        log.value("read", session.run([read(handle, flow, at) for at in (2, 0, 1)]))
        log.value("again in another step", session.run(read(handle, flow, 1)))
        log.value("size", session.run(size(handle, flow)))


@case
def an_element_is_written_once(address, log):
    handle, flow = array(2)
    flow = write(handle, write(handle, flow, 0, 1.), 0, 2.)
    with tf1.Session(address) as session, log.refused("twice"):
        session.run(flow)


@case
def an_element_is_read_once(address, log):
    for clears in (True, False):
        handle, flow = array(1, clear_after_read=clears)
        flow = write(handle, flow, 0, 5.)
        first = read(handle, flow, 0)
        with tf.control_dependencies([first]):
            second = read(handle, flow, 0)
        with tf1.Session(address) as session:
            log.value("once", session.run(first))
            with log.refused("twice"):
                log.value("second", session.run([first, second]))


@case
def an_element_that_was_read_is_not_written(address, log):
    handle, flow = array(1, shape=[], clear_after_read=False)
    with tf.control_dependencies([read(handle, flow, 0)]):
        after = write(handle, flow, 0, 1.)
    with tf1.Session(address) as session, log.refused("written"):
        session.run(after)


@case
def array_indices_out_of_range(address, log):
    index = tf1.placeholder(tf.int32, [])
    handle, flow = array(2, shape=[])
    written, got = write(handle, flow, index, 1.), read(handle, flow, index)
    with tf1.Session(address) as session:
        for at in (1, 2, 100, -1):
            with log.refused(f"write {at}"):
                session.run(written, {index: at})
            with log.refused(f"read {at}"):
                log.value(f"value {at}", session.run(got, {index: at}))


@case
def an_array_grows(address, log):
    handle, flow = array(0, dynamic_size=True)
    flow = write(handle, flow, 0, [1., 2])
    flow = write(handle, flow, 3, [3., 4])
    with tf1.Session(address) as session:
        log.value("size", session.run(size(handle, flow)))
        log.value("read", session.run([read(handle, flow, 3), read(handle, flow, 0)]))
        with log.refused("never written"):
            session.run(read(handle, flow, 2))
        with log.refused("negative"):
            session.run(write(handle, flow, -1, [1., 2]))


@case
def an_array_of_a_negative_size(address, log):
    count = tf1.placeholder(tf.int32, None)
    _, flow = array(count)
    with tf1.Session(address) as session:
        for value in (-1, [1, 2]):
            with log.refused(str(value)):
                session.run(flow, {count: value})


@case
def elements_of_an_array_that_nobody_wrote(address, log):
    with tf1.Session(address) as session:
        handle, flow = array(2, shape=[2])
        log.value("zeros", session.run(read(handle, flow, 1)))
        handle, flow = array(2, shape=[2, None])
        with log.refused("of no shape"):
            session.run(read(handle, flow, 1))
        handle, flow = array(2, identical_element_shapes=True)
        flow = write(handle, flow, 0, [1., 2, 3])
        log.value("as the other", session.run(gather(handle, flow, [1, 0])))
        handle, flow = array(1, tf.string, [])
        with log.refused("of strings"):
            session.run(read(handle, flow, 0, tf.string))


@case
def elements_of_an_array_of_other_shapes(address, log):
    with tf1.Session(address) as session:
        handle, flow = array(2, shape=[2])
        with log.refused("not the array's"):
            session.run(write(handle, flow, 0, hidden([1., 2, 3])))
        handle, flow = array(2, identical_element_shapes=True)
        flow = write(handle, flow, 0, hidden([1., 2, 3]))
        with log.refused("not the first one's"):
            session.run(write(handle, flow, 1, hidden([1., 2])))
        handle, flow = array(2)
        flow = write(handle, write(handle, flow, 0, [1.]), 1, [1., 2])
        with log.refused("gathered"):
            session.run(gather(handle, flow, [0, 1]))
        log.value("concatenated", session.run(concat(handle, flow)))
        handle, flow = array(2)
        flow = write(handle, write(handle, flow, 0, [[1.]]), 1, [[1., 2]])
        with log.refused("concatenated"):
            session.run(concat(handle, flow))
        with log.refused("not the op's"):
            session.run(gather(handle, flow, [0], shape=[7]))


@case
def an_array_of_another_type(address, log):
    handle, flow = array(2)
    with tf1.Session(address) as session:
        for name, op in (("write", lambda: write(handle, flow, 0, 1)),
                         ("read", lambda: read(handle, flow, 0, tf.int32)),
                         ("gather", lambda: gather(handle, flow, [0], tf.int32)),
                         ("scatter", lambda: scatter(handle, flow, [0], [1])),
                         ("split", lambda: split(handle, flow, [1, 2], [1, 1])),
                         ("concat", lambda: concat(handle, flow, tf.int32))):
            with log.refused(name):
                session.run(op())


@case
def array_elements_are_gathered(address, log):
    x = np.arange(8, dtype=np.float32).reshape([4, 2])
    indices = tf1.placeholder(tf.int32, None)
    handle, flow = array(4, clear_after_read=False)
    flow = scatter(handle, flow, [0, 1, 2, 3], x)
    rows = gather(handle, flow, indices)
    of_shape = gather(handle, flow, indices, shape=[2])
    with tf1.Session(address) as session:
        for some in ([0], [3, 1], [2, 2, 0]):
            log.value(str(some), session.run(rows, {indices: some}))
        log.value("none", session.run(of_shape, {indices: []}))
        with log.refused("none of no shape"):
            session.run(rows, {indices: []})
        for some in ([4], [-1], [[0, 1]]):
            with log.refused(str(some)):
                session.run(rows, {indices: some})


@case
def array_elements_are_scattered(address, log):
    x = np.arange(6, dtype=np.float32).reshape([3, 2])
    indices = tf1.placeholder(tf.int32, None)
    with tf1.Session(address) as session:
        for grows in (False, True):
            handle, flow = array(4, shape=[2], dynamic_size=grows)
            flow = scatter(handle, flow, indices, hidden(x))
            count, all_of_them = size(handle, flow), gather(handle, flow, [0, 1, 2, 3])
            for some in ([0, 1, 2], [3, 0, 1]):
                log.value(f"{some}", session.run([count, all_of_them], {indices: some}))
            for some in ([0, 1], [0, 0, 1], [0, 1, -1], [[0, 1, 2]]):
                with log.refused(f"{some} {grows}"):
                    session.run(flow, {indices: some})
            with log.refused(f"beyond, {grows}"):
                log.value("size", session.run(count, {indices: [0, 6, 1]}))
        handle, flow = array(1)
        with log.refused("a scalar"):
            session.run(scatter(handle, flow, indices, hidden(1.)), {indices: [0]})


@case
def an_array_is_split_and_concatenated(address, log):
    x = np.arange(10, dtype=np.float32).reshape([5, 2])
    lengths = tf1.placeholder(tf.int64, None)
    handle, flow = array(2, clear_after_read=False)
    flow = split(handle, flow, x, lengths)
    with tf1.Session(address) as session:
        for some in ([2, 3], [0, 5]):
            log.value(str(some), session.run([read(handle, flow, 0), read(handle, flow, 1)],
                                             {lengths: some}))
            log.value("together", session.run(concat(handle, flow), {lengths: some}))
        for some in ([2, 2], [1, 1, 3], [5], 5):
            with log.refused(str(some)):
                session.run(flow, {lengths: some})
        handle, flow = array(0, dynamic_size=True)
        flow = split(handle, flow, x, [1, 4])
        log.value("grown", session.run(concat(handle, flow)))


@case
def an_array_of_nothing(address, log):
    handle, flow = array(0)
    with tf1.Session(address) as session:
        log.value("size", session.run(size(handle, flow)))
        log.value("concat", session.run(concat(handle, flow, shape=[3])))
        with log.refused("concat of no shape"):
            session.run(concat(handle, flow))
        handle, flow = array(1)
        flow = write(handle, flow, 0, 1.)
        with log.refused("concat of scalars"):
            session.run(concat(handle, flow))


@case
def a_closed_array(address, log):
    # TensorFlow's server takes the size of an array of a constant size from the graph.
    handle, flow = array(tf1.placeholder_with_default(2, []), shape=[])
    with tf.control_dependencies([raw.TensorArrayCloseV3(handle=handle)]):
        ops = {"size": size(handle, flow), "read": read(handle, flow, 0),
               "write": write(handle, flow, 0, 1.), "gather": gather(handle, flow, [0]),
               "scatter": scatter(handle, flow, [0], [1.]), "concat": concat(handle, flow),
               "split": split(handle, flow, [1., 2], [1, 1]), "gradient": gradient(handle, flow)[1],
               "close again": raw.TensorArrayCloseV3(handle=handle)}
    with tf1.Session(address) as session:
        for name, op in ops.items():
            with log.refused(name):
                session.run(op)


@case
def an_array_of_gradients_adds(address, log):
    handle, flow = array(2)
    flow = write(handle, write(handle, flow, 0, [1., 2]), 1, [3., 4])
    grad, grad_flow = gradient(handle, flow)
    twice = write(grad, write(grad, grad_flow, 0, [10., 20]), 0, [1., 2])
    thrice = write(grad, twice, 0, [100., 100])
    with tf1.Session(address) as session:
        log.value("twice", session.run(read(grad, twice, 0)))
        log.value("thrice", session.run(read(grad, thrice, 0)))
        log.value("nobody wrote", session.run(read(grad, twice, 1)))
        log.value("size", session.run(size(grad, grad_flow)))
        with log.refused("another shape"):
            session.run(write(grad, twice, 0, hidden([1., 2, 3])))
        with log.refused("gradient of the gradient"):
            session.run(gradient(grad, twice)[1])


@case
def arrays_of_gradients_of_several_sources(address, log):
    handle, flow = array(1)
    flow = write(handle, flow, 0, 1.)
    one, flow_one = gradient(handle, flow, "one")
    again, flow_again = gradient(handle, flow, "one")
    two, flow_two = gradient(handle, flow, "two")
    written = write(one, flow_one, 0, 5.)
    with tf.control_dependencies([written]):
        same, other = read(again, flow_again, 0), read(two, flow_two, 0)
    with tf1.Session(address) as session:
        log.value("same", session.run([same, other]))


@case
def an_array_does_not_grow_once_it_has_gradients(address, log):
    handle, flow = array(1, dynamic_size=True)
    flow = write(handle, flow, 0, 1.)
    with tf.control_dependencies([gradient(handle, flow)[1]]):
        after = write(handle, flow, 5, 1.)
    with tf1.Session(address) as session, log.refused("grown"):
        session.run(after)


@case
def an_array_of_gradients_with_more_dimensions(address, log):
    handle, flow = array(2, shape=[2])
    flow = write(handle, flow, 0, [1., 2])
    before = tf1.placeholder(tf.int32, [None])
    grad, grad_flow = raw.TensorArrayGradWithShape(
        handle=handle, flow_in=flow, shape_to_prepend=before, source="gradients")
    written = write(grad, grad_flow, 0, tf.ones([3, 2]))
    with tf1.Session(address) as session:
        log.value("zeros", session.run([read(grad, grad_flow, 0), read(grad, grad_flow, 1)],
                                       {before: [3]}))
        log.value("written", session.run(read(grad, written, 0), {before: [3]}))
        with log.refused("another shape"):
            session.run(written, {before: [4]})


def array_types_named():
    for dtype in (tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.int32, tf.int64, tf.int8, tf.uint8,
                  tf.int16, tf.uint16, tf.uint32, tf.uint64, tf.complex64, tf.complex128, tf.bool,
                  tf.string):
        def run(address, log, dtype=dtype):
            if dtype == tf.string:
                x = np.array([[b"a", b"bc"], [b"", b"d" * 40]], object)
            else:
                x = np.array([[1, 0], [2, 3]]).astype(dtype.as_numpy_dtype)
            handle, flow = array(3, dtype, clear_after_read=False)
            flow = scatter(handle, flow, [0, 2], tf.constant(x, dtype))
            flow = write(handle, flow, 1, tf.constant(x[1], dtype))
            grad, grad_flow = gradient(handle, flow)
            added = write(grad, write(grad, grad_flow, 0, tf.constant(x[0], dtype)), 0,
                          tf.constant(x[1], dtype))
            with tf1.Session(address) as session:
                log.value("read", session.run(read(handle, flow, 2, dtype)))
                log.value("gathered", session.run(gather(handle, flow, [0, 1, 2], dtype)))
                log.value("concatenated", session.run(concat(handle, flow, dtype)))
                with log.refused("zeros"):
                    log.value("zeros are", session.run(read(grad, grad_flow, 0, dtype)))
                with log.refused("added"):
                    log.value("sums are", session.run(read(grad, added, 0, dtype)))
        run.__name__ = f"an_array_of_{dtype.name}"
        case(run)


array_types_named()


@case
def arrays_of_two_steps(address, log):
    handle, flow = array(1, tensor_array_name="same")
    flow = write(handle, flow, 0, 1.)
    other, other_flow = array(1, tensor_array_name="same")
    other_flow = write(other, other_flow, 0, 2.)
    with tf1.Session(address) as first, tf1.Session(address) as second:
        both = [read(handle, flow, 0), read(other, other_flow, 0)]
        log.value("first", first.run(both))
        log.value("second", second.run(both))


OLD = """
versions { producer: 15 }
node { name: "size" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value"
  value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 2 } } } }
node { name: "index" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value"
  value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
node { name: "indices" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value"
  value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 1 int_val: 0 } } } }
node { name: "lengths" op: "Const" attr { key: "dtype" value { type: DT_INT64 } } attr { key: "value"
  value { tensor { dtype: DT_INT64 tensor_shape { dim { size: 2 } } int64_val: 1 int64_val: 3 } } } }
node { name: "flow" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value"
  value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0 } } } }
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "array" op: "TensorArrayV2" input: "size" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "write" op: "TensorArrayWriteV2" input: "array" input: "index" input: "x" input: "flow"
  attr { key: "T" value { type: DT_FLOAT } } }
node { name: "read" op: "TensorArrayReadV2" input: "array" input: "index" input: "write"
  attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "scatter" op: "TensorArrayScatterV2" input: "array" input: "indices" input: "x" input: "flow"
  attr { key: "T" value { type: DT_FLOAT } } }
node { name: "gather" op: "TensorArrayGatherV2" input: "array" input: "indices" input: "scatter"
  attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "split" op: "TensorArraySplitV2" input: "array" input: "x" input: "lengths" input: "flow"
  attr { key: "T" value { type: DT_FLOAT } } }
node { name: "concat" op: "TensorArrayConcatV2" input: "array" input: "split"
  attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "count" op: "TensorArraySizeV2" input: "array" input: "flow" }
node { name: "grad" op: "TensorArrayGradV2" input: "array" input: "write"
  attr { key: "source" value { s: "gradients" } } }
node { name: "grad_write" op: "TensorArrayWriteV2" input: "grad" input: "index" input: "x" input: "write"
  attr { key: "T" value { type: DT_FLOAT } } }
node { name: "grad_again" op: "TensorArrayWriteV2" input: "grad" input: "index" input: "x"
  input: "grad_write" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "grad_read" op: "TensorArrayReadV2" input: "grad" input: "index" input: "grad_again"
  attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "close" op: "TensorArrayCloseV2" input: "array" }
node { name: "after" op: "TensorArraySizeV2" input: "array" input: "flow" input: "^close" }
node { name: "name" op: "Placeholder" attr { key: "dtype" value { type: DT_STRING } } }
node { name: "stray" op: "TensorArraySizeV2" input: "name" input: "flow" }
"""


@case
def arrays_of_old_graphs_are_known_by_name(address, log):
    graph = text_format.Parse(OLD, tf1.GraphDef())
    with tf.Graph().as_default() as whole:
        tf1.import_graph_def(graph, name="")
        x = whole.get_tensor_by_name("x:0")
        with tf1.Session(address) as session:
            log.value("read", session.run("read:0", {x: [1., 2]}))
            log.value("gather", session.run("gather:0", {x: [[1., 2], [3, 4]]}))
            log.value("concat", session.run(["concat:0", "concat:1"], {x: [1., 2, 3, 4]}))
            log.value("size", session.run("count:0"))
            log.value("gradient", session.run("grad_read:0", {x: [1., 2]}))
            with log.refused("closed"):
                session.run("after:0")
            for name in (["a"], ["_tensor_arrays", "of nobody"]):
                with log.refused(str(name)):
                    session.run("stray:0", {"name:0": name})
