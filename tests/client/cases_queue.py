"""Queues: order, room, batches, closing, cancellation, sharing."""

import numpy as np
import tensorflow as tf

from harness import case
from waiting import Later, started

tf1 = tf.compat.v1
raw = tf.raw_ops
tf1.disable_control_flow_v2()


@case
def elements_come_in_order(address, log):
    q = tf1.FIFOQueue(10, [tf.float32])
    x = tf1.placeholder(tf.float32, [])
    put, take, size = q.enqueue(x), q.dequeue(), q.size()
    with tf1.Session(address) as session:
        for value in (3, 1, 2):
            session.run(put, {x: value})
        log.value("size", session.run(size))
        log.value("all", [session.run(take) for _ in range(3)])
        log.value("none left", session.run(size))


@case
def an_element_of_several_components(address, log):
    q = tf1.FIFOQueue(10, [tf.float32, tf.string, tf.int64], [[2], [], [1, 2]], names=["a", "b", "c"])
    put = q.enqueue({"a": [1., 2.], "b": "text", "c": [[3, 4]]})
    take = q.dequeue()
    with tf1.Session(address) as session:
        session.run(put)
        log.value("element", session.run(take))


@case
def components_of_any_shape(address, log):
    q = tf1.FIFOQueue(10, [tf.int32])
    x = tf1.placeholder(tf.int32)
    put, take = q.enqueue(x), q.dequeue()
    with tf1.Session(address) as session:
        for value in ([], [[1, 2]], 3, np.zeros([2, 0, 3])):
            session.run(put, {x: value})
        log.value("all", [session.run(take) for _ in range(4)])


def types_named():
    values = {
        "bool": [True, False], "string": [b"a", b""], "complex64": [1 + 2j, 3],
    }
    for dtype in (tf.float16, tf.bfloat16, tf.float64, tf.int8, tf.uint8, tf.int16, tf.uint16, tf.uint32, tf.uint64,
                  tf.int64, tf.bool, tf.string, tf.complex64, tf.complex128, tf.qint8, tf.quint8, tf.qint32):
        def run(address, log, dtype=dtype):
            data = values.get(dtype.name, [1, 2])
            x = tf.bitcast(tf.constant(data, dtype.name[1:]), dtype) if dtype.is_quantized else tf.constant(data, dtype)
            back = (lambda t: tf.bitcast(t, dtype.name[1:])) if dtype.is_quantized else (lambda t: t)
            q = tf1.FIFOQueue(10, [dtype], [[]])
            put, one, many = q.enqueue_many(x), back(q.dequeue()), back(q.dequeue_many(3))
            with tf1.Session(address) as session:
                session.run(put)
                session.run(put)
                log.value("one", session.run(one))
                log.value("many", session.run(many))
        run.__name__ = f"a_queue_of_{dtype.name}"
        case(run)


types_named()


@case
def many_are_enqueued_and_dequeued(address, log):
    q = tf1.FIFOQueue(10, [tf.float32, tf.int32], [[2], []])
    put = q.enqueue_many([np.arange(8, dtype=np.float32).reshape(4, 2), np.int32([5, 6, 7, 8])])
    one, many = q.dequeue(), q.dequeue_many(3)
    with tf1.Session(address) as session:
        session.run(put)
        log.value("one", session.run(one))
        log.value("three", session.run(many))
        session.run(put)
        session.run(put)
        log.value("across batches", session.run([many, many]))


@case
def batches_of_nothing(address, log):
    q = tf1.FIFOQueue(10, [tf.float32], [[2, 3]])
    put = q.enqueue_many([np.zeros([0, 2, 3], np.float32)])
    n = tf1.placeholder(tf.int32, [])
    with tf1.Session(address) as session:
        session.run(put)
        log.value("size", session.run(q.size()))
        log.value("none", session.run(q.dequeue_many(n), {n: 0}))
        log.value("up to none", session.run(q.dequeue_up_to(n), {n: 0}))
        session.run(q.close())
        log.value("none of a closed one", session.run(q.dequeue_many(n), {n: 0}))
        for name, take in (("many", q.dequeue_many(n)), ("up to", q.dequeue_up_to(n))):
            with log.refused(name + " of a negative number"):
                session.run(take, {n: -1})


@case
def an_enqueue_waits_for_room(address, log):
    q = tf1.FIFOQueue(2, [tf.int32])
    x = tf1.placeholder(tf.int32, [])
    put, take = q.enqueue(x), q.dequeue()
    with tf1.Session(address) as session:
        session.run(put, {x: 1})
        session.run(put, {x: 2})
        third = Later(session, put, {x: 3})
        log.same("waits", third.waits())
        log.value("first", session.run(take))
        log.same("done", third.end() is None)
        log.value("rest", [session.run(take), session.run(take)])


@case
def a_dequeue_waits_for_an_element(address, log):
    q = tf1.FIFOQueue(2, [tf.int32])
    put, take = q.enqueue(7), q.dequeue()
    with tf1.Session(address) as session:
        first = Later(session, take)
        log.same("waits", first.waits())
        session.run(put)
        log.value("element", first.end())


@case
def waiting_dequeues_are_served_in_order(address, log):
    q = tf1.FIFOQueue(10, [tf.int32], [[]])
    x = tf1.placeholder(tf.int32, [None])
    put, one, many = q.enqueue_many(x), q.dequeue(), q.dequeue_many(3)
    with tf1.Session(address) as session:
        first = started(Later(session, many))
        second = started(Later(session, one))
        session.run(put, {x: [1, 2]})
        log.same("both wait", [first.waits(), second.waits()])
        session.run(put, {x: [3, 4]})
        log.value("many", first.end())
        log.value("one", second.end())


@case
def a_batch_that_is_larger_than_the_room(address, log):
    q = tf1.FIFOQueue(2, [tf.int32], [[]])
    put, take = q.enqueue_many([np.arange(7)]), q.dequeue_many(5)
    with tf1.Session(address) as session:
        filler = Later(session, put)
        log.same("waits", filler.waits())
        log.value("batch", session.run(take))
        log.same("done", filler.end() is None)
        log.value("size", session.run(q.size()))


@case
def a_closed_queue(address, log):
    q = tf1.FIFOQueue(10, [tf.int32], [[]])
    put, take, many, rest = q.enqueue_many([[1, 2, 3]]), q.dequeue(), q.dequeue_many(2), q.dequeue_up_to(5)
    closed = q.is_closed()
    with tf1.Session(address) as session:
        session.run(put)
        log.value("open", session.run(closed))
        session.run(q.close())
        log.value("closed", session.run(closed))
        with log.refused("enqueue"):
            session.run(q.enqueue(4))
        with log.refused("enqueue many"):
            session.run(put)
        with log.refused("close again"):
            session.run(q.close())
        log.value("one", session.run(take))
        with log.refused("too many"):
            session.run(q.dequeue_many(3))
        log.value("they are still there", session.run(many))
        for name, fetch in (("one", take), ("many", many), ("up to", rest)):
            with log.refused(name + " of an empty one"):
                session.run(fetch)
        log.value("size", session.run(q.size()))


@case
def what_is_left_of_a_closed_queue(address, log):
    q = tf1.FIFOQueue(10, [tf.int32], [[]])
    n = tf1.placeholder(tf.int32, [])
    put, rest = q.enqueue_many([[1, 2, 3, 4, 5]]), q.dequeue_up_to(n)
    with tf1.Session(address) as session:
        session.run(put)
        log.value("as many as wanted", session.run(rest, {n: 2}))
        session.run(q.close())
        log.value("the rest", session.run(rest, {n: 9}))
        with log.refused("nothing"):
            session.run(rest, {n: 9})


@case
def closing_ends_dequeues_that_wait(address, log):
    q = tf1.FIFOQueue(10, [tf.int32], [[]])
    with tf1.Session(address) as session:
        session.run(q.enqueue_many([[1, 2]]))
        many = started(Later(session, q.dequeue_many(3)))
        up_to = started(Later(session, q.dequeue_up_to(3)))
        one = started(Later(session, q.dequeue()))
        session.run(q.close())
        log.same("many", many.end())
        log.value("up to", up_to.end())
        log.same("one", one.end())


@case
def closing_waits_for_enqueues_before_it(address, log):
    q = tf1.FIFOQueue(1, [tf.int32], [[]])
    put, take = q.enqueue_many([[1, 2, 3]]), q.dequeue()
    with tf1.Session(address) as session:
        filler = started(Later(session, put))
        close = started(Later(session, q.close()))
        late = started(Later(session, q.enqueue(9)))
        log.same("they wait", [filler.waits(), close.waits(), late.waits()])
        log.value("open", session.run(q.is_closed()))
        log.value("all", [session.run(take) for _ in range(3)])
        log.same("enqueue", filler.end() is None)
        log.same("close", close.end() is None)
        log.same("late", late.end())
        with log.refused("empty"):
            session.run(take)


@case
def closing_cancels_enqueues_that_wait(address, log):
    q = tf1.FIFOQueue(2, [tf.int32], [[]])
    with tf1.Session(address) as session:
        filler = started(Later(session, q.enqueue_many([[1, 2, 3]])))
        one = started(Later(session, q.enqueue(9)))
        session.run(q.close(cancel_pending_enqueues=True))
        log.same("many", filler.end())
        log.same("one", one.end())
        log.value("what had room", session.run(q.dequeue_many(2)))
        with log.refused("empty"):
            session.run(q.dequeue())
        session.run(q.close(cancel_pending_enqueues=True))
        with log.refused("close again"):
            session.run(q.close())


@case
def a_step_with_a_time_limit_stops_waiting(address, log):
    q = tf1.FIFOQueue(2, [tf.int32], [[]])
    options = tf1.RunOptions(timeout_in_ms=400)
    with tf1.Session(address) as session:
        with log.refused("dequeue"):
            session.run(q.dequeue(), options=options)
        session.run(q.enqueue_many([[1, 2]]))
        with log.refused("enqueue"):
            session.run(q.enqueue(3), options=options)
        with log.refused("many"):
            session.run(q.dequeue_many(3), options=options)
        session.run(q.close())
        log.value("is closed", session.run(q.is_closed()))


@case
def nothing_is_added_after_the_time_limit(address, log):
    q = tf1.FIFOQueue(1, [tf.int32], [[]])
    with tf1.Session(address) as session:
        session.run(q.enqueue(1))
        with log.refused("enqueue"):
            session.run(q.enqueue(2), options=tf1.RunOptions(timeout_in_ms=400))
        log.value("first", session.run(q.dequeue()))
        log.value("size", session.run(q.size()))


@case
def a_failing_step_stops_waiting(address, log):
    q = tf1.FIFOQueue(1, [tf.int32], [[]])
    x = tf1.placeholder(tf.float32)
    bad = tf1.check_numerics(x, "there is no number")
    with tf1.Session(address) as session:
        with log.refused("step"):
            session.run([q.dequeue(), bad], {x: np.nan})
        session.run(q.enqueue(5))
        log.value("nobody took it", session.run(q.dequeue()))


@case
def a_closed_session_stops_waiting(address, log):
    q = tf1.FIFOQueue(1, [tf.int32], [[]], shared_name="a_closed_session_stops_waiting")
    session = tf1.Session(address)
    waiting = started(Later(session, q.dequeue()))
    session.close()
    log.same("step", waiting.end())
    with tf1.Session(address) as other:
        other.run(q.enqueue(5))
        log.value("nobody took it", other.run(q.dequeue()))


@case
def sessions_share_by_name_only(address, log):
    shared = tf1.FIFOQueue(5, [tf.int32], [[]], shared_name="sessions_share_by_name_only")
    own = tf1.FIFOQueue(5, [tf.int32], [[]])
    with tf1.Session(address) as first, tf1.Session(address) as second:
        first.run([shared.enqueue(1), own.enqueue(1)])
        log.value("shared", second.run(shared.size()))
        log.value("own", second.run(own.size()))
    with tf1.Session(address) as third:
        log.value("shared, later", third.run(shared.size()))
        log.value("own, later", third.run(own.size()))


@case
def a_shared_queue_of_another_kind(address, log):
    name = "a_shared_queue_of_another_kind"
    first = tf1.FIFOQueue(5, [tf.int32], [[]], shared_name=name)
    others = {
        "the same": tf1.FIFOQueue(5, [tf.int32], [[]], shared_name=name),
        "capacity": tf1.FIFOQueue(6, [tf.int32], [[]], shared_name=name),
        "types": tf1.FIFOQueue(5, [tf.int64], [[]], shared_name=name),
        "number of types": tf1.FIFOQueue(5, [tf.int32, tf.int32], [[], []], shared_name=name),
        "shapes": tf1.FIFOQueue(5, [tf.int32], [[1]], shared_name=name),
        "no shapes": tf1.FIFOQueue(5, [tf.int32], shared_name=name),
        "padding": tf1.PaddingFIFOQueue(5, [tf.int32], [[]], shared_name=name),
        "shuffle": tf1.RandomShuffleQueue(5, 1, [tf.int32], [[]], shared_name=name),
    }
    with tf1.Session(address) as session:
        session.run(first.enqueue(1))
        for what, other in others.items():
            with log.refused(what):
                log.value(what, session.run(other.size()))


@case
def a_shared_shuffle_queue_with_other_attributes(address, log):
    name = "a_shared_shuffle_queue_with_other_attributes"

    def queue(least, seed):
        return tf1.RandomShuffleQueue(9, least, [tf.int32], [[]], shared_name=name, seed=seed)

    others = {"the same": queue(2, 7), "another minimum": queue(3, 7), "another seed": queue(2, 8)}
    with tf1.Session(address) as session:
        session.run(queue(2, 7).enqueue(1))
        for what, other in others.items():
            with log.refused(what):
                log.value(what, session.run(other.size()))


@case
def a_container_of_queues_is_reset(address, log):
    with tf1.container("of-queues"):
        q = tf1.FIFOQueue(5, [tf.int32], [[]], shared_name="a_container_of_queues_is_reset")
    with tf1.Session(address) as session:
        session.run(q.enqueue(1))
        log.value("before", session.run(q.size()))
    tf1.Session.reset(address, ["of-queues"])
    with tf1.Session(address) as session:
        log.value("after", session.run(q.size()))


@case
def components_that_do_not_fit(address, log):
    q = tf1.FIFOQueue(5, [tf.float32, tf.int32], [[2], []])
    free = tf1.FIFOQueue(5, [tf.float32, tf.int32])
    x, y = tf1.placeholder(tf.float32), tf1.placeholder(tf.int32)

    def put(op, *values):
        return op(handle=q.queue_ref, components=values)

    one, many = raw.QueueEnqueueV2, raw.QueueEnqueueManyV2
    with tf1.Session(address) as session:
        for name, fetch, feeds in (
            ("shape", put(one, x, y), {x: [1, 2, 3], y: 1}),
            ("rank", put(one, x, y), {x: 1, y: 1}),
            ("number", put(one, x), {x: [1, 2]}),
            ("type", put(one, y, y), {y: [1, 2]}),
            ("row", put(many, x, y), {x: [[1, 2, 3]], y: [1]}),
            ("number of rows", put(many, x, y), {x: [[1, 2]], y: [1, 2]}),
            ("no rows", put(many, x, y), {x: 1, y: [1]}),
            ("free rows", many(handle=free.queue_ref, components=[x, y]), {x: [[1, 2], [3, 4]], y: [1]}),
        ):
            with log.refused(name):
                session.run(fetch, feeds)
        log.value("size", session.run(q.size()))
        session.run(put(one, x, y), {x: [1, 2], y: 3})
        for name, types in (("types", [tf.int32, tf.int32]), ("number of types", [tf.float32])):
            with log.refused("dequeue with other " + name):
                session.run(raw.QueueDequeueV2(handle=q.queue_ref, component_types=types))
        with log.refused("batch of any shapes"):
            session.run(raw.QueueDequeueManyV2(handle=free.queue_ref, n=1, component_types=[tf.float32, tf.int32]))
        log.value("it is still there", session.run(q.size()))


@case
def attributes_that_no_queue_has(address, log):
    q = tf1.FIFOQueue(5, [tf.int32], [[]])

    def shuffle(capacity, least):
        return raw.RandomShuffleQueueV2(component_types=[tf.int32], capacity=capacity, min_after_dequeue=least)

    def padding(types, shapes):
        return raw.PaddingFIFOQueueV2(component_types=types, shapes=shapes)

    def fifo(types, shapes, **options):
        return raw.FIFOQueueV2(component_types=types, shapes=shapes, **options)

    of_size = lambda handle: raw.QueueSizeV2(handle=handle)
    with tf1.Session(address) as session:
        for name, fetch in (
            ("negative minimum", of_size(shuffle(5, -1))),
            ("minimum of the capacity", of_size(shuffle(5, 5))),
            ("minimum without limit", of_size(shuffle(-1, 5))),
            ("shapes", of_size(fifo([tf.int32, tf.int32], [[]]))),
            ("unknown size", of_size(fifo([tf.int32], [[None]]))),
            ("no shapes to pad", of_size(padding([tf.int32], []))),
            ("unknown rank to pad", of_size(padding([tf.int32], [None]))),
            ("name of the host's", of_size(fifo([tf.int32], [], shared_name="_q"))),
            ("container", of_size(fifo([tf.int32], [], container="a b"))),
            ("time limit of enqueue", raw.QueueEnqueueV2(handle=q.queue_ref, components=[1], timeout_ms=100)),
            ("time limit of dequeue", raw.QueueDequeueV2(handle=q.queue_ref, component_types=[tf.int32], timeout_ms=0)),
        ):
            with log.refused(name):
                log.value(name, session.run(fetch))


@case
def the_handle_of_something_else(address, log):
    v = tf1.get_variable("v", initializer=1.0, use_resource=True)
    with tf1.Session(address) as session:
        session.run(v.initializer)
        with log.refused("size"):
            session.run(raw.QueueSizeV2(handle=v.handle))
        with log.refused("enqueue"):
            session.run(raw.QueueEnqueueV2(handle=v.handle, components=[1]))


@case
def a_queue_of_handles(address, log):
    v, w = (tf1.get_variable(name, initializer=value, use_resource=True) for name, value in (("v", 1.5), ("w", 2.5)))
    q, other = (tf1.FIFOQueue(5, [tf.resource], [[]]) for _ in range(2))
    x = q.dequeue()
    read = raw.ReadVariableOp(resource=other.dequeue(), dtype=tf.float32)
    with tf1.Session(address) as session:
        session.run([v.initializer, w.initializer])
        for handle in (v.handle, w.handle, v.handle):
            session.run(q.enqueue(handle))
        session.run(other.enqueue(x))
        session.run(other.enqueue_many([q.dequeue_many(2)]))
        log.value("values", [session.run(read) for _ in range(3)])


@case
def a_queue_in_a_loop(address, log):
    q = tf1.FIFOQueue(100, [tf.int32], [[]])
    put = q.enqueue_many([np.arange(20)])
    total = tf.while_loop(lambda i, s: i < 20, lambda i, s: (i + 1, s * 2 + q.dequeue()),
                          [tf.constant(0), tf.constant(0)], parallel_iterations=1, back_prop=False)
    with tf1.Session(address) as session:
        session.run(put)
        log.value("total", session.run(total[1]))


@case
def steps_at_the_same_time(address, log):
    q = tf1.FIFOQueue(3, [tf.int32], [[]])
    x = tf1.placeholder(tf.int32, [])
    put, take = q.enqueue(x), q.dequeue_many(5)
    with tf1.Session(address) as session:
        puts = [Later(session, put, {x: at}) for at in range(20)]
        takes = [Later(session, take) for _ in range(4)]
        log.same("puts", [put.end() for put in puts])
        log.same("all", sorted(int(x) for later in takes for x in later.end()))
