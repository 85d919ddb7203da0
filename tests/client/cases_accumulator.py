"""Accumulators, dense and sparse: means, sums, steps, and training that waits for several gradients."""

import numpy as np
import tensorflow as tf

from harness import case
from waiting import Later, started

tf1 = tf.compat.v1
raw = tf.raw_ops


class Ops:
    """The ops of an accumulator, by a reference or by a handle."""

    def __init__(self, kind, dtype=tf.float32, shape=(2,), **options):
        prefix = "Resource" if kind == "resource" else ""
        of = lambda name: getattr(raw, prefix + name)
        self.handle = of("ConditionalAccumulator")(dtype=dtype, shape=shape, **options)
        self.dtype = dtype
        self.step = tf1.placeholder(tf.int64)
        self.gradient = tf1.placeholder(dtype)
        self.required = tf1.placeholder(tf.int32)
        self.apply = of("AccumulatorApplyGradient")(handle=self.handle, local_step=self.step, gradient=self.gradient)
        self.count = of("AccumulatorNumAccumulated")(handle=self.handle)
        self.set_step = of("AccumulatorSetGlobalStep")(handle=self.handle, new_global_step=self.step)
        self.take = of("AccumulatorTakeGradient")(handle=self.handle, num_required=self.required, dtype=dtype)


def both(function):
    """A case for each kind of handle."""
    for kind in ("reference", "resource"):
        def run(address, log, kind=kind):
            function(address, log, kind)
        run.__name__ = f"{function.__name__}_by_{kind}"
        case(run)


@both
def the_mean_of_gradients(address, log, kind):
    a = Ops(kind)
    with tf1.Session(address) as session:
        for value in ([1, 2], [3, 5], [8, -1]):
            session.run(a.apply, {a.step: 0, a.gradient: value})
        log.value("count", session.run(a.count))
        log.value("mean", session.run(a.take, {a.required: 2}))
        log.value("empty", session.run(a.count))


@both
def the_sum_of_gradients(address, log, kind):
    a = Ops(kind, reduction_type="SUM")
    with tf1.Session(address) as session:
        for value in ([1, 2], [3, 5], [8, -1]):
            session.run(a.apply, {a.step: 0, a.gradient: value})
        log.value("sum", session.run(a.take, {a.required: 3}))


def types_named():
    for dtype in (tf.float16, tf.float64):
        def run(address, log, dtype=dtype):
            a = Ops("resource", dtype)
            with tf1.Session(address) as session:
                for value in ([1, 2], [0.1, 5], [8, -1]):
                    session.run(a.apply, {a.step: 0, a.gradient: value})
                log.value("mean", session.run(a.take, {a.required: 3}))
        run.__name__ = f"an_accumulator_of_{dtype.name}"
        case(run)


types_named()


@both
def a_take_waits_for_gradients(address, log, kind):
    a = Ops(kind)
    with tf1.Session(address) as session:
        take = Later(session, a.take, {a.required: 2})
        log.same("waits", take.waits())
        session.run(a.apply, {a.step: 0, a.gradient: [1, 2]})
        log.same("still waits", take.waits())
        session.run(a.apply, {a.step: 0, a.gradient: [3, 4]})
        log.value("mean", take.end())


@both
def gradients_of_earlier_steps_are_dropped(address, log, kind):
    a = Ops(kind)
    with tf1.Session(address) as session:
        session.run(a.apply, {a.step: 0, a.gradient: [1, 2]})
        session.run(a.take, {a.required: 1})
        session.run(a.apply, {a.step: 0, a.gradient: [1, 2]})
        log.value("dropped", session.run(a.count))
        session.run(a.apply, {a.step: 0, a.gradient: [1, 2, 3]})
        log.value("of another shape", session.run(a.count))
        session.run(a.apply, {a.step: 1, a.gradient: [3, 4]})
        session.run(a.apply, {a.step: 7, a.gradient: [5, 6]})
        log.value("taken", session.run(a.count))
        session.run(a.set_step, {a.step: 5})
        session.run(a.apply, {a.step: 4, a.gradient: [9, 9]})
        session.run(a.apply, {a.step: 5, a.gradient: [7, 8]})
        log.value("mean", session.run(a.take, {a.required: 3}))
        session.run(a.set_step, {a.step: 1})
        session.run(a.apply, {a.step: 1, a.gradient: [1, 1]})
        log.value("a step back", session.run(a.take, {a.required: 1}))


@both
def gradients_that_do_not_fit(address, log, kind):
    a, free = Ops(kind, shape=[None, 2]), Ops(kind, shape=None)
    with tf1.Session(address) as session:
        for name, value in (("rank", [1, 2]), ("size", [[1, 2, 3]])):
            with log.refused(name):
                session.run(a.apply, {a.step: 0, a.gradient: value})
        session.run(a.apply, {a.step: 0, a.gradient: [[1, 2]]})
        with log.refused("another shape than before"):
            session.run(a.apply, {a.step: 0, a.gradient: [[1, 2], [3, 4]]})
        log.value("count", session.run(a.count))
        session.run(free.apply, {free.step: 0, free.gradient: 3})
        with log.refused("another rank than before"):
            session.run(free.apply, {free.step: 0, free.gradient: [3]})
        for name, number in (("none", 0), ("fewer", -1)):
            with log.refused(name):
                session.run(a.take, {a.required: number})


@both
def a_take_with_a_time_limit_takes_nothing(address, log, kind):
    a = Ops(kind)
    with tf1.Session(address) as session:
        session.run(a.apply, {a.step: 0, a.gradient: [1, 2]})
        with log.refused("take"):
            session.run(a.take, {a.required: 2}, options=tf1.RunOptions(timeout_in_ms=400))
        session.run(a.apply, {a.step: 0, a.gradient: [3, 4]})
        log.value("mean", session.run(a.take, {a.required: 2}))


@both
def accumulators_are_shared_by_name(address, log, kind):
    shared, own = Ops(kind, shared_name=f"accumulators_are_shared_{kind}"), Ops(kind)
    with tf1.Session(address) as first, tf1.Session(address) as second:
        for a in (shared, own):
            first.run(a.apply, {a.step: 0, a.gradient: [1, 2]})
        log.value("shared", second.run(shared.count))
        log.value("own", second.run(own.count))


@case
def takes_are_served_in_order(address, log):
    a = Ops("resource")
    with tf1.Session(address) as session:
        first = started(Later(session, a.take, {a.required: 2}))
        second = started(Later(session, a.take, {a.required: 1}))
        session.run(a.apply, {a.step: 0, a.gradient: [1, 2]})
        log.same("both wait", [first.waits(), second.waits()])
        session.run(a.apply, {a.step: 0, a.gradient: [3, 4]})
        log.value("first", first.end())
        session.run(a.apply, {a.step: 1, a.gradient: [5, 6]})
        log.value("second", second.end())


class Sparse:
    """The ops of a sparse accumulator."""

    def __init__(self, shape=(9, 2), known=True, dtype=tf.float32, **options):
        self.handle = raw.SparseConditionalAccumulator(dtype=dtype, shape=shape, **options)
        self.step = tf1.placeholder_with_default(tf.constant(0, tf.int64), [])
        self.indices, self.values = tf1.placeholder(tf.int64), tf1.placeholder(dtype)
        self.shape = tf1.placeholder_with_default(tf.constant([9, 2], tf.int64), [None])
        self.required = tf1.placeholder(tf.int32)
        self.apply = raw.SparseAccumulatorApplyGradient(
            handle=self.handle, local_step=self.step, gradient_indices=self.indices, gradient_values=self.values,
            gradient_shape=self.shape, has_known_shape=known)
        self.count = raw.AccumulatorNumAccumulated(handle=self.handle)
        self.take = raw.SparseAccumulatorTakeGradient(handle=self.handle, num_required=self.required, dtype=dtype)


@case
def the_mean_of_sparse_gradients(address, log):
    a = Sparse()
    with tf1.Session(address) as session:
        session.run(a.apply, {a.indices: [1, 4], a.values: [[1, 2], [3, 4]]})
        session.run(a.apply, {a.indices: [0, 4, 7], a.values: [[9, 9], [1, 1], [5, 6]]})
        log.value("count", session.run(a.count))
        log.value("mean", list(session.run(a.take, {a.required: 2})))
        session.run(a.apply, {a.step: 1, a.indices: [2], a.values: [[1, 1]]})
        log.value("next", list(session.run(a.take, {a.required: 1})))


@case
def the_sum_of_sparse_gradients(address, log):
    a = Sparse(reduction_type="SUM", shape=[None, 2], known=False)
    with tf1.Session(address) as session:
        session.run(a.apply, {a.indices: [1, 4], a.values: [[1, 2], [3, 4]]})
        session.run(a.apply, {a.indices: [4], a.values: [[1, 1]]})
        session.run(a.apply, {a.indices: [], a.values: np.zeros([0, 2])})
        log.value("sum", list(session.run(a.take, {a.required: 3})))


def sparse_types_named():
    for dtype in (tf.float16, tf.float64):
        def run(address, log, dtype=dtype):
            a = Sparse(dtype=dtype)
            with tf1.Session(address) as session:
                for index in (1, 1, 1, 2):
                    session.run(a.apply, {a.indices: [index], a.values: [[0.1, 7]]})
                log.value("mean", list(session.run(a.take, {a.required: 4})))
        run.__name__ = f"a_sparse_accumulator_of_{dtype.name}"
        case(run)


sparse_types_named()


@case
def sparse_gradients_of_vectors(address, log):
    a = Sparse(shape=None, known=False)
    with tf1.Session(address) as session:
        session.run(a.apply, {a.indices: [3, 5], a.values: [1, 2]})
        session.run(a.apply, {a.indices: [5], a.values: [4]})
        log.value("mean", list(session.run(a.take, {a.required: 1})))


@case
def a_sparse_take_waits(address, log):
    a = Sparse()
    with tf1.Session(address) as session:
        take = Later(session, a.take, {a.required: 1})
        log.same("waits", take.waits())
        session.run(a.apply, {a.indices: [3], a.values: [[1, 2]]})
        log.value("mean", list(take.end()))
        session.run(a.apply, {a.indices: [3], a.values: [[1, 2]]})
        log.value("an earlier step", session.run(a.count))


@case
def sparse_gradients_that_do_not_fit(address, log):
    a = Sparse()
    with tf1.Session(address) as session:
        for name, feeds in (
            ("index", {a.indices: [9], a.values: [[1, 2]]}),
            ("size", {a.indices: [1], a.values: [[1, 2, 3]]}),
            ("rank", {a.indices: [1], a.values: [1]}),
            ("number", {a.indices: [1, 2], a.values: [[1, 2]]}),
            ("scalar values", {a.indices: [1], a.values: 1}),
            ("matrix of indices", {a.indices: [[1]], a.values: [[1, 2]]}),
            ("shape", {a.indices: [1], a.values: [[1, 2]], a.shape: [8, 2]}),
            ("rank of the shape", {a.indices: [1], a.values: [[1, 2]], a.shape: [9]}),
        ):
            with log.refused(name):
                session.run(a.apply, feeds)
        session.run(a.apply, {a.indices: [1], a.values: [[1, 2]]})
        with log.refused("another size than before"):
            session.run(a.apply, {a.indices: [1], a.values: [[1, 2, 3]]})
        log.value("count", session.run(a.count))
        with log.refused("a take of none"):
            session.run(a.take, {a.required: 0})


@case
def the_classes_of_the_client(address, log):
    dense = tf1.ConditionalAccumulator(tf.float32, shape=[2])
    sparse = tf1.SparseConditionalAccumulator(tf.float32, shape=[4, 1])
    gradient = tf.IndexedSlices(tf.constant([[2.], [4.]]), tf.constant([0, 3], tf.int64), tf.constant([4, 1], tf.int64))
    put, put_sparse = dense.apply_grad([1., 2.]), sparse.apply_indexed_slices_grad(gradient)
    with tf1.Session(address) as session:
        for _ in range(2):
            session.run([put, put_sparse])
        log.value("counts", session.run([dense.num_accumulated(), sparse.num_accumulated()]))
        log.value("dense", session.run(dense.take_grad(2)))
        log.value("sparse", list(session.run(sparse.take_grad(2))))
        session.run([dense.set_global_step(5), sparse.set_global_step(5)])


class Plain(tf1.train.Optimizer):
    """Gradient descent, of ops that are no training ops."""

    def _apply_dense(self, grad, var):
        return tf1.assign_sub(var, 0.1 * grad).op


@case
def training_that_waits_for_gradients(address, log):
    w = tf1.get_variable("w", initializer=np.float32([1, 2]), use_resource=False)
    step = tf1.train.get_or_create_global_step()
    optimizer = tf1.train.SyncReplicasOptimizer(
        Plain(False, "Plain"), replicas_to_aggregate=2, total_num_replicas=2)
    x = tf1.placeholder(tf.float32, [2])
    train = optimizer.apply_gradients([(w * x, w)], global_step=step)
    runner, tokens = optimizer.get_chief_queue_runner(), optimizer.get_init_tokens_op(0)
    with tf1.Session(address) as session:
        session.run(tf1.global_variables_initializer())
        session.run(tf1.local_variables_initializer())
        session.run(optimizer.chief_init_op)
        runner.create_threads(session, tf1.train.Coordinator(), daemon=True, start=True)
        session.run(tokens)
        for at in range(3):
            workers = [Later(session, train, {x: value}) for value in ([1, 0], [2, 3])]
            for worker in workers:
                worker.end()
            log.value(f"step {at}", session.run([step, w]))
