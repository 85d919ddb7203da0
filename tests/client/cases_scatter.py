"""Parts of variables: rows and slices that are read and updated, strided boxes, references that are passed on."""

import numpy as np
import tensorflow as tf

from harness import case

tf1 = tf.compat.v1
raw = tf.raw_ops

WAYS = ("Update", "Add", "Sub", "Mul", "Div", "Min", "Max")
ND_WAYS = ("Update", "Add", "Sub", "Min", "Max")
START = np.float32([[1, 2], [3, 4], [5, 6], [7, 8]])


def variable(kind, value=START, name="v", **options):
    return tf1.get_variable(name, initializer=value, use_resource=kind == "resource", **options)


def scatter(kind, way, v, indices, updates, **options):
    """The op that updates rows of a variable."""
    if kind == "resource":
        op = getattr(raw, f"ResourceScatter{way}")
        return op(resource=v.handle, indices=indices, updates=updates, **options)
    return getattr(raw, f"Scatter{way}")(ref=v._ref(), indices=indices, updates=updates, **options)


def scatter_nd(kind, way, v, indices, updates, **options):
    """The op that updates slices of a variable."""
    if kind == "resource":
        op = getattr(raw, f"ResourceScatterNd{way}")
        return op(ref=v.handle, indices=indices, updates=updates, **options)
    return getattr(raw, f"ScatterNd{way}")(ref=v._ref(), indices=indices, updates=updates, **options)


def run_op(session, op):
    return session.run(op if isinstance(op, tf.Operation) else op.op)


def both(function):
    """A case for each kind of variable."""
    for kind in ("reference", "resource"):
        def run(address, log, kind=kind):
            function(address, log, kind)
        run.__name__ = f"{function.__name__}_by_{kind}"
        case(run)


def each_way():
    for way in WAYS:
        for kind in ("reference", "resource"):
            def rows(address, log, kind=kind, way=way):
                v = variable(kind)
                op = scatter(kind, way, v, [3, 0, 3], np.float32([[2, 3], [4, 5], [6, 7]]))
                scalar = scatter(kind, way, v, np.int64([[1], [2]]), np.float32(2))
                with tf1.Session(address) as session:
                    session.run(v.initializer)
                    run_op(session, op)
                    log.value("rows", session.run(v))
                    run_op(session, scalar)
                    log.value("scalar", session.run(v))
            rows.__name__ = f"scatter_{way.lower()}_by_{kind}"
            case(rows)
    for way in ND_WAYS:
        for kind in ("reference", "resource"):
            def slices(address, log, kind=kind, way=way):
                v = variable(kind)
                op = scatter_nd(kind, way, v, [[3], [0], [3]], np.float32([[2, 3], [4, 5], [6, 7]]))
                element = scatter_nd(kind, way, v, np.int64([[1, 0], [2, 1], [1, 0]]), np.float32([9, 1, 2]))
                with tf1.Session(address) as session:
                    session.run(v.initializer)
                    run_op(session, op)
                    log.value("rows", session.run(v))
                    run_op(session, element)
                    log.value("elements", session.run(v))
            slices.__name__ = f"scatter_nd_{way.lower()}_by_{kind}"
            case(slices)


each_way()


def each_type():
    for dtype in (tf.float64, tf.float16, tf.bfloat16, tf.int32, tf.int64, tf.int8, tf.uint8, tf.int16,
                  tf.uint16, tf.complex64, tf.complex128, tf.bool):
        for kind in ("reference", "resource"):
            def run(address, log, kind=kind, dtype=dtype):
                numpy = dtype.as_numpy_dtype
                v = variable(kind, np.array([1, 0, 3]).astype(numpy))
                by = np.array([7, 5]).astype(numpy)
                ways = ("Update",) if dtype == tf.bool else ("Update", "Add", "Sub", "Mul", "Div")
                ops = [scatter(kind, way, v, [2, 0], by) for way in ways]
                read = tf.gather(v, [2, 1])
                with tf1.Session(address) as session:
                    session.run(v.initializer)
                    for at, op in enumerate(ops):
                        run_op(session, op)
                        log.value(f"{at}", session.run(v))
                    log.value("gathered", session.run(read))
            run.__name__ = f"rows_of_{dtype.name}_by_{kind}"
            case(run)


each_type()


@both
def rows_of_strings(address, log, kind):
    v = variable(kind, np.array([b"a", b"b", b"c"], object), dtype=tf.string)
    rows = scatter(kind, "Update", v, [2, 0, 2], tf.constant(["x", "y", "z"]))
    slices = scatter_nd(kind, "Update", v, [[1]], tf.constant(["long text that is no short one"]))
    with tf1.Session(address) as session:
        session.run(v.initializer)
        before = session.run(v)
        run_op(session, rows)
        log.value("rows", session.run(v))
        run_op(session, slices)
        log.value("slices", session.run(v))
        log.value("before", before)


@both
def an_index_out_of_range(address, log, kind):
    for at, bad in enumerate((4, -1)):
        v = variable(kind, name=f"v{at}")
        rows = scatter(kind, "Add", v, [0, bad, 2], np.ones([3, 2], np.float32))
        slices = scatter_nd(kind, "Add", v, [[0], [bad], [2]], np.ones([3, 2], np.float32))
        with tf1.Session(address) as session:
            session.run(v.initializer)
            with log.refused(f"rows {bad}"):
                run_op(session, rows)
            with log.refused(f"slices {bad}"):
                run_op(session, slices)


@both
def bad_indices_are_ignored(address, log, kind):
    v = variable(kind)
    op = scatter_nd(kind, "Add", v, [[0], [9], [2]], np.ones([3, 2], np.float32), bad_indices_policy="IGNORE")
    other = scatter_nd(kind, "Add", v, [[0]], np.ones([1, 2], np.float32), bad_indices_policy="NONE")
    with tf1.Session(address) as session:
        session.run(v.initializer)
        run_op(session, op)
        log.value("value", session.run(v))
        with log.refused("policy"):
            run_op(session, other)


@both
def updates_of_another_shape(address, log, kind):
    v = variable(kind)
    updates = tf1.placeholder(tf.float32)
    rows = scatter(kind, "Add", v, [0, 1], updates)
    slices = scatter_nd(kind, "Add", v, [[0], [1]], updates)
    with tf1.Session(address) as session:
        session.run(v.initializer)
        for shape in ([3], [3, 2], [2, 3], [2, 2, 1]):
            with log.refused(f"slices {shape}"):
                session.run(slices, {updates: np.ones(shape, np.float32)})
            # By handle, TensorFlow compares numbers of elements alone, and writes beyond rows.
            if kind == "reference" or len(shape) == 1:
                with log.refused(f"rows {shape}"):
                    session.run(rows, {updates: np.ones(shape, np.float32)})
        log.value("value", session.run(v))


@both
def no_indices(address, log, kind):
    v = variable(kind)
    rows = scatter(kind, "Add", v, np.zeros([0], np.int32), np.ones([0, 2], np.float32))
    slices = scatter_nd(kind, "Add", v, np.zeros([0, 1], np.int32), np.ones([0, 2], np.float32))
    with tf1.Session(address) as session:
        session.run(v.initializer)
        run_op(session, rows)
        run_op(session, slices)
        log.value("value", session.run(v))


@case
def rows_of_a_scalar(address, log):
    v = variable("reference", np.float32(3))
    indices = tf1.placeholder(tf.int32)
    with tf1.Session(address) as session:
        session.run(v.initializer)
        with log.refused("rows"):
            session.run(scatter("reference", "Add", v, indices, np.float32(1)), {indices: [0]})


@both
def division_by_zero(address, log, kind):
    v = variable(kind)
    by_zero = scatter(kind, "Div", v, [1], np.float32([[0, 1]]))
    with tf1.Session(address) as session:
        session.run(v.initializer)
        with log.refused("float"):
            run_op(session, by_zero)
        log.value("value", session.run(v))


@case
def integers_divided_by_zero(address, log):
    v = variable("resource", np.int32([5, 7]))
    op = scatter("resource", "Div", v, [1], np.int32([0]))
    with tf1.Session(address) as session:
        session.run(v.initializer)
        with log.refused("int32"):
            run_op(session, op)


@both
def parts_of_a_variable_without_a_value(address, log, kind):
    v = variable(kind)
    with tf1.Session(address) as session:
        with log.refused("rows"):
            run_op(session, scatter(kind, "Add", v, [0], np.ones([1, 2], np.float32)))
        with log.refused("slices"):
            run_op(session, scatter_nd(kind, "Add", v, [[0]], np.ones([1, 2], np.float32)))
        with log.refused("gather"):
            session.run(tf.gather(v, [0]))


@case
def a_value_that_was_read_stays(address, log):
    v = variable("resource")
    read = tf.identity(v.read_value())
    with tf.control_dependencies([read]):
        op = scatter("resource", "Add", v, [0], np.ones([1, 2], np.float32))
    with tf1.Session(address) as session:
        session.run(v.initializer)
        for at in range(3):
            log.value(f"{at}", session.run([read, op])[0])
        log.value("value", session.run(v))


@both
def dense_and_sparse_updates(address, log, kind):
    v = variable(kind)
    sparse = scatter(kind, "Add", v, [0, 1], np.ones([2, 2], np.float32))
    dense = tf1.assign_add(v, START)
    with tf1.Session(address) as session:
        session.run(v.initializer)
        for at in range(3):
            run_op(session, sparse)
            session.run(dense)
            log.value(f"{at}", session.run(v))
        session.run(v.initializer)
        log.value("anew", session.run(v))


@case
def gather_from_a_handle(address, log):
    v = variable("resource", np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    h = v.handle
    with tf1.Session(address) as session:
        session.run(v.initializer)
        for batch, indices in ((0, [1, 0, 1]), (0, 1), (0, [[0], [1]]), (1, [[2, 0], [1, 1]]), (1, [1, 2])):
            y = raw.ResourceGather(resource=h, indices=indices, dtype=tf.float32, batch_dims=batch)
            log.value(f"rows {batch} {indices}", session.run(y))
        for indices in ([[1, 2], [0, 0]], [[1], [0]], [[1, 2, 3]], [[[0, 1], [1, 0]]], [0, 2, 1]):
            y = raw.ResourceGatherNd(resource=h, indices=indices, dtype=tf.float32)
            log.value(f"slices {indices}", session.run(y))
        log.value("int64", session.run(raw.ResourceGather(resource=h, indices=np.int64([1]), dtype=tf.float32)))


@case
def what_gather_from_a_handle_refuses(address, log):
    v = variable("resource", np.arange(6, dtype=np.float32).reshape(2, 3))
    indices = tf1.placeholder(tf.int32)
    rows = raw.ResourceGather(resource=v.handle, indices=indices, dtype=tf.float32)
    slices = raw.ResourceGatherNd(resource=v.handle, indices=indices, dtype=tf.float32)
    with tf1.Session(address) as session:
        session.run(v.initializer)
        for at, bad in enumerate(([2], [-1], [0, 5])):
            with log.refused(f"rows {at}"):
                session.run(rows, {indices: bad})
        for at, bad in enumerate(([[2, 0]], [[0, 3]], [[0, 0, 0]], [[-1]])):
            with log.refused(f"slices {at}"):
                session.run(slices, {indices: bad})


@case
def strings_from_a_handle(address, log):
    v = variable("resource", np.array([[b"a", b"b"], [b"c", b"d"]], object), dtype=tf.string)
    rows = raw.ResourceGather(resource=v.handle, indices=[1, 1, 0], dtype=tf.string)
    slices = raw.ResourceGatherNd(resource=v.handle, indices=[[1, 0]], dtype=tf.string)
    with tf1.Session(address) as session:
        session.run(v.initializer)
        log.value("rows", session.run(rows))
        log.value("slices", session.run(slices))


@case
def gather_as_another_type(address, log):
    v = variable("resource", np.float32([1, 2]))
    handle = tf1.placeholder(tf.resource)
    handle = raw.VarHandleOp(dtype=tf.float32, shape=tf.TensorShape(None), shared_name=v.op.name)
    with tf1.Session(address) as session:
        session.run(v.initializer)
        log.value("value", session.run(raw.ResourceGather(resource=handle, indices=[1], dtype=tf.float32)))


@case
def slices_added_to_a_value(address, log):
    x = tf.constant(START)
    y = raw.ScatterNdNonAliasingAdd(input=x, indices=[[1], [3], [1]], updates=np.ones([3, 2], np.float32))
    ints = raw.ScatterNdNonAliasingAdd(input=np.int64([1, 2, 3]), indices=[[2], [2]], updates=np.int64([4, 5]))
    bools = raw.ScatterNdNonAliasingAdd(
        input=np.array([False, True]), indices=[[0]], updates=np.array([True]))
    ignored = raw.ScatterNdNonAliasingAdd(
        input=np.int64([1, 2]), indices=[[5], [1]], updates=np.int64([4, 5]), bad_indices_policy="IGNORE")
    indices = tf1.placeholder(tf.int32)
    bad = raw.ScatterNdNonAliasingAdd(input=np.int64([1, 2]), indices=indices, updates=np.int64([4]))
    with tf1.Session(address) as session:
        log.value("values", session.run([y, ints, bools, ignored, x]))
        with log.refused("index"):
            session.run(bad, {indices: [[2]]})


def assign_box(kind, v, spec, value, masks=None):
    begin, end, strides = spec
    options = dict(begin=begin, end=end, strides=strides, value=value, **(masks or {}))
    if kind == "resource":
        return raw.ResourceStridedSliceAssign(ref=v.handle, **options)
    return raw.StridedSliceAssign(ref=v._ref(), **options)


@both
def strided_boxes(address, log, kind):
    v = variable(kind, np.arange(24, dtype=np.float32).reshape(4, 6))
    ops = [
        assign_box(kind, v, ([0, 1], [4, 6], [2, 2]), np.full([2, 3], -1, np.float32)),
        assign_box(kind, v, ([3, 5], [0, 0], [-1, -3]), np.arange(6, dtype=np.float32).reshape(3, 2)),
        assign_box(kind, v, ([1], [2], [1]), np.full([6], 50, np.float32), {"shrink_axis_mask": 1}),
        assign_box(kind, v, ([0, 0], [0, 2], [1, 1]), np.full([4, 2], 60, np.float32), {"end_mask": 1}),
        assign_box(kind, v, ([0, 2], [0, 3], [1, 1]), np.full([4, 1], 70, np.float32), {"ellipsis_mask": 1}),
        assign_box(kind, v, ([0, 0, 0], [0, 1, 1], [1, 1, 1]), np.full([1, 1, 1], 80, np.float32),
                   {"new_axis_mask": 1}),
        assign_box(kind, v, ([2, 0], [2, 6], [1, 1]), np.zeros([0, 6], np.float32)),
    ]
    with tf1.Session(address) as session:
        session.run(v.initializer)
        for at, op in enumerate(ops):
            run_op(session, op)
            log.value(f"{at}", session.run(v))


@both
def boxes_of_other_types(address, log, kind):
    for at, value in enumerate((np.int64([1, 2, 3]), np.array([True, False, True]),
                                np.array([b"a", b"b", b"c"], object))):
        v = variable(kind, value, name=f"v{at}")
        op = assign_box(kind, v, ([1], [3], [1]), value[:2])
        with tf1.Session(address) as session:
            session.run(v.initializer)
            run_op(session, op)
            log.value(f"{at}", session.run(v))


@both
def a_box_of_another_shape(address, log, kind):
    v = variable(kind, np.zeros([4, 6], np.float32))
    value = tf1.placeholder(tf.float32)
    op = assign_box(kind, v, ([0, 0], [2, 2], [1, 1]), value)
    with tf1.Session(address) as session:
        session.run(v.initializer)
        for shape in ([2, 3], [2, 2, 1], [3]):
            with log.refused(f"{shape}"):
                session.run(op, {value: np.ones(shape, np.float32)})
        for shape in ([2, 2], [], [2], [2, 1], [1, 2], [1, 2, 2]):
            session.run(op, {value: 1 + np.arange(np.prod(shape), dtype=np.float32).reshape(shape)})
            log.value(f"{shape}", session.run(v))


@both
def a_box_of_a_variable_without_a_value(address, log, kind):
    v = variable(kind, np.zeros([4], np.float32))
    op = assign_box(kind, v, ([0], [1], [1]), np.float32([1]))
    with tf1.Session(address) as session, log.refused("assign"):
        run_op(session, op)


@case
def references_are_passed_on(address, log):
    a, b = (variable("reference", np.float32(value), name=name) for name, value in (("a", 1), ("b", 2)))
    index = tf1.placeholder(tf.int32)
    chosen = raw.RefSelect(index=index, inputs=[a._ref(), b._ref()])
    add = raw.AssignAdd(ref=raw.RefIdentity(input=chosen), value=10.0)
    with tf1.Session(address) as session:
        with log.refused("without a value"):
            session.run(add, {index: 0})
        session.run([a.initializer, b.initializer])
        session.run(add, {index: 1})
        log.value("both", session.run([a, b]))
        session.run(add, {index: 0})
        log.value("both again", session.run([a, b]))
        for bad in (2, -1):
            with log.refused(f"index {bad}"):
                session.run(add, {index: bad})


@case
def a_variable_of_a_step(address, log):
    ref = raw.TemporaryVariable(shape=[2], dtype=tf.float32, var_name="sum")
    zero = raw.Assign(ref=ref, value=np.float32([0, 0]))
    first = raw.AssignAdd(ref=zero, value=np.float32([1, 2]))
    with tf.control_dependencies([first]):
        second = raw.AssignAdd(ref=zero, value=np.float32([10, 20]))
    with tf.control_dependencies([second]):
        total = raw.DestroyTemporaryVariable(ref=zero, var_name="sum")
    with tf1.Session(address) as session:
        for at in range(3):
            log.value(f"{at}", session.run(total))


@case
def a_variable_of_a_step_by_another_name(address, log):
    ref = raw.TemporaryVariable(shape=[2], dtype=tf.float32, var_name="sum")
    zero = raw.Assign(ref=ref, value=np.float32([0, 0]))
    total = raw.DestroyTemporaryVariable(ref=zero, var_name="other")
    with tf1.Session(address) as session, log.refused("destroy"):
        session.run(total)


@case
def a_sum_by_accumulation(address, log):
    x = [tf.constant(np.float32([at, 1])) for at in range(5)]
    with tf1.Session(address) as session:
        log.value("sum", session.run(tf1.accumulate_n(x)))


@case
def a_table_of_rows_that_learns(address, log):
    table = variable("resource", np.random.RandomState(1).randn(8, 3).astype(np.float32))
    ids = tf1.placeholder(tf.int32, [None])
    rows = tf.gather(table, ids)
    loss = tf.reduce_sum(tf.square(rows - 1))
    gradient = tf1.gradients(loss, [rows])[0]
    step = raw.ResourceScatterSub(resource=table.handle, indices=ids, updates=0.1 * gradient)
    with tf1.Session(address) as session:
        session.run(table.initializer)
        losses = []
        for at in range(12):
            feed = {ids: [at % 8, (3 * at) % 8]}
            losses.append(session.run(loss, feed))
            session.run(step, feed)
        log.value("losses", np.array(losses))
        log.value("table", session.run(table))
