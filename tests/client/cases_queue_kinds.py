"""Queues that pad, shuffle or order by priority, queues of older graphs, and pipelines of queue runners."""

import numpy as np
import tensorflow as tf

from harness import case
from waiting import Later, started

tf1 = tf.compat.v1
raw = tf.raw_ops
tf1.disable_control_flow_v2()


@case
def a_batch_is_padded(address, log):
    q = tf1.PaddingFIFOQueue(10, [tf.float32, tf.int32], [[None], [2, None]])
    x, y = tf1.placeholder(tf.float32), tf1.placeholder(tf.int32)
    put = q.enqueue([x, y])
    with tf1.Session(address) as session:
        for n in (1, 3, 0, 2, 1):
            session.run(put, {x: np.arange(n) + 1, y: np.ones([2, n])})
        log.value("one as it is", session.run(q.dequeue()))
        log.value("three", session.run(q.dequeue_many(3)))
        session.run(q.close())
        log.value("up to", session.run(q.dequeue_up_to(3)))


@case
def strings_are_padded(address, log):
    q = tf1.PaddingFIFOQueue(10, [tf.string], [[None, None]])
    x = tf1.placeholder(tf.string)
    with tf1.Session(address) as session:
        for value in ([["a", "b"]], [["c"], ["d"]]):
            session.run(q.enqueue(x), {x: value})
        log.value("batch", session.run(q.dequeue_many(2)))


def padded_types():
    for dtype in (tf.float16, tf.float64, tf.int8, tf.uint8, tf.int16, tf.int64, tf.bool, tf.complex64):
        def run(address, log, dtype=dtype):
            q = tf1.PaddingFIFOQueue(10, [dtype], [[None]])
            x = tf1.placeholder(dtype)
            with tf1.Session(address) as session:
                session.run(q.enqueue(x), {x: [1]})
                session.run(q.enqueue(x), {x: [1, 0, 1]})
                log.value("batch", session.run(q.dequeue_many(2)))
        run.__name__ = f"a_batch_of_{dtype.name}_is_padded"
        case(run)


padded_types()


@case
def a_padding_queue_of_rows(address, log):
    q = tf1.PaddingFIFOQueue(10, [tf.int32], [[None, 2]])
    x = tf1.placeholder(tf.int32)
    put = q.enqueue_many([x])
    n = tf1.placeholder(tf.int32, [])
    with tf1.Session(address) as session:
        session.run(put, {x: np.arange(12).reshape(2, 3, 2)})
        session.run(put, {x: np.arange(4).reshape(2, 1, 2)})
        log.value("batch", session.run(q.dequeue_many(4)))
        log.value("nothing", session.run(q.dequeue_many(n), {n: 0}))
        for name, value in (("size", np.zeros([1, 1, 3])), ("rank", np.zeros([1, 2]))):
            with log.refused(name):
                session.run(put, {x: value})


@case
def a_padding_queue_goes_on_in_parts(address, log):
    q = tf1.PaddingFIFOQueue(2, [tf.int32], [[None]])
    x = tf1.placeholder(tf.int32)
    with tf1.Session(address) as session:
        batch = started(Later(session, q.dequeue_many(4)))
        for n in range(4):
            session.run(q.enqueue(x), {x: np.ones([n])})
        log.value("batch", batch.end())


@case
def a_shuffled_queue_gives_all(address, log):
    q = tf1.RandomShuffleQueue(100, 0, [tf.int32], [[]])
    with tf1.Session(address) as session:
        session.run(q.enqueue_many([np.arange(50)]))
        first = session.run(q.dequeue_many(50))
        log.same("all", sorted(int(x) for x in first))
        log.same("mixed", [int(x) for x in first] != list(range(50)))


@case
def a_shuffled_queue_with_seeds(address, log):
    q = tf1.RandomShuffleQueue(100, 5, [tf.int32, tf.float32], [[], [2]], seed=7)
    put = q.enqueue_many([np.arange(20), np.arange(40, dtype=np.float32).reshape(20, 2)])
    with tf1.Session(address) as session:
        session.run(put)
        log.value("ones", [session.run(q.dequeue()) for _ in range(5)])
        log.value("many", session.run(q.dequeue_many(4)))
        session.run(put)
        log.value("of both", session.run(q.dequeue_many(20)))
        session.run(q.close())
        log.value("rest", session.run(q.dequeue_up_to(50)))


@case
def a_shuffled_queue_with_the_seed_of_the_graph(address, log):
    tf1.set_random_seed(11)
    q = tf1.RandomShuffleQueue(100, 0, [tf.string], [[]])
    with tf1.Session(address) as session:
        session.run(q.enqueue_many([[str(x) for x in range(10)]]))
        log.value("order", session.run(q.dequeue_many(10)))


@case
def a_shuffled_queue_keeps_some(address, log):
    q = tf1.RandomShuffleQueue(100, 3, [tf.int32], [[]])
    with tf1.Session(address) as session:
        session.run(q.enqueue_many([np.zeros(3)]))
        one = Later(session, q.dequeue())
        log.same("one waits", one.waits())
        session.run(q.enqueue(0))
        log.value("one", one.end())
        many = Later(session, q.dequeue_many(2))
        log.same("many wait", many.waits())
        session.run(q.enqueue(0))
        log.same("many still wait", many.waits())
        session.run(q.close())
        log.value("many", many.end())
        log.value("size", session.run(q.size()))
        log.value("rest", session.run(q.dequeue_up_to(9)))
        with log.refused("empty"):
            session.run(q.dequeue())


@case
def too_few_of_a_closed_shuffled_queue(address, log):
    q = tf1.RandomShuffleQueue(100, 0, [tf.int32], [[]])
    with tf1.Session(address) as session:
        session.run(q.enqueue_many([np.arange(3)]))
        many = started(Later(session, q.dequeue_many(5)))
        session.run(q.close())
        log.same("many", many.end())
        log.same("they went back", sorted(int(x) for x in session.run(q.dequeue_many(3))))


@case
def the_least_priority_goes_first(address, log):
    q = tf1.PriorityQueue(10, [tf.string], [[]])
    put = q.enqueue_many([np.int64([5, -3, 9, 0]), ["five", "minus three", "nine", "zero"]])
    with tf1.Session(address) as session:
        session.run(put)
        log.value("first", session.run(q.dequeue()))
        session.run(q.enqueue([np.int64(-7), "minus seven"]))
        log.value("then", session.run(q.dequeue_many(2)))
        session.run(q.close())
        with log.refused("too many"):
            session.run(q.dequeue_many(3))
        log.value("rest", session.run(q.dequeue_many(2)))


@case
def a_batch_by_priority_is_taken_at_once(address, log):
    q = tf1.PriorityQueue(10, [tf.int32], [[]])
    p = tf1.placeholder(tf.int64, [])
    put = q.enqueue([p, tf.cast(p, tf.int32)])
    with tf1.Session(address) as session:
        session.run(put, {p: 5})
        batch = Later(session, q.dequeue_many(3))
        log.same("waits", batch.waits())
        for at in (7, 1):
            session.run(put, {p: at})
        log.value("in order", batch.end())


@case
def a_priority_queue_of_several_components(address, log):
    q = tf1.PriorityQueue(10, [tf.float32, tf.int32], [[2], []])
    with tf1.Session(address) as session:
        for at in (2, 1, 3):
            session.run(q.enqueue([np.int64(at), np.float32([at, at]), np.int32(at)]))
        log.value("all", session.run(q.dequeue_many(3)))


@case
def a_priority_that_is_none(address, log):
    handle = raw.PriorityQueueV2(component_types=[tf.int32], shapes=[[]])
    p = tf1.placeholder(tf.int64)
    put = raw.QueueEnqueueV2(handle=handle, components=[p, 1])
    many = raw.QueueEnqueueManyV2(handle=handle, components=[p, [1, 2]])
    take = raw.QueueDequeueV2(handle=handle, component_types=[tf.int64, tf.int32])
    with tf1.Session(address) as session:
        with log.refused("a vector"):
            session.run(put, {p: [1, 2]})
        with log.refused("rows"):
            session.run(many, {p: [[1], [2]]})
        session.run(put, {p: 3})
        session.run(many, {p: [4, 2]})
        log.value("all", [session.run(take) for _ in range(3)])
        for name, types in (("no shapes", [tf.int32]), ("nothing but priorities", [])):
            with log.refused(name):
                session.run(raw.QueueSizeV2(handle=raw.PriorityQueueV2(component_types=types, shapes=[])))


@case
def a_full_priority_queue(address, log):
    q = tf1.PriorityQueue(2, [tf.string], [[]])
    p = tf1.placeholder(tf.int64, [])
    put, take = q.enqueue([p, "text"]), q.dequeue()
    with tf1.Session(address) as session:
        session.run(put, {p: 3})
        session.run(put, {p: 2})
        third = Later(session, put, {p: 1})
        log.same("waits", third.waits())
        log.value("least of two", session.run(take))
        log.same("done", third.end() is None)
        log.value("then", [session.run(take), session.run(take)])


def older_kinds():
    for kind in ("FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue", "PriorityQueue"):
        def run(address, log, kind=kind):
            handle = getattr(raw, kind)(component_types=[tf.int32], shapes=[[]], capacity=3)
            types, element = [tf.int32], [tf.constant(5)]
            if kind == "PriorityQueue":
                types, element = [tf.int64] + types, [tf.constant(1, tf.int64)] + element
            with tf1.Session(address) as session:
                session.run(raw.QueueEnqueue(handle=handle, components=element))
                session.run(raw.QueueEnqueue(handle=handle, components=element))
                log.value("size", session.run(raw.QueueSize(handle=handle)))
                log.value("one", session.run(raw.QueueDequeue(handle=handle, component_types=types)))
                log.value("open", session.run(raw.QueueIsClosed(handle=handle)))
                session.run(raw.QueueClose(handle=handle))
                log.value("closed", session.run(raw.QueueIsClosed(handle=handle)))
                with log.refused("enqueue"):
                    session.run(raw.QueueEnqueue(handle=handle, components=element))
                log.value("last", session.run(raw.QueueDequeue(handle=handle, component_types=types)))
                with log.refused("empty"):
                    session.run(raw.QueueDequeue(handle=handle, component_types=types))
        run.__name__ = f"an_older_{kind}"
        case(run)


older_kinds()


@case
def batches_of_an_older_queue(address, log):
    handle = raw.FIFOQueue(component_types=[tf.int32], shapes=[[]], capacity=3)
    put = raw.QueueEnqueueMany(handle=handle, components=[[1, 2, 3]])
    many = raw.QueueDequeueMany(handle=handle, n=2, component_types=[tf.int32])
    up_to = raw.QueueDequeueUpTo(handle=handle, n=2, component_types=[tf.int32])
    with tf1.Session(address) as session:
        session.run(put)
        full = started(Later(session, raw.QueueEnqueue(handle=handle, components=[4])))
        log.value("two", session.run(many))
        log.same("enqueued", full.end() is None)
        session.run(raw.QueueClose(handle=handle, cancel_pending_enqueues=True))
        log.value("up to two", session.run(up_to))
        with log.refused("empty"):
            session.run(many)


@case
def the_value_of_a_reference_to_a_queue(address, log):
    handle = raw.FIFOQueue(component_types=[tf.int32], container="of-references",
                           shared_name="the_value_of_a_reference")
    with tf1.Session(address) as session:
        log.value("container and name", session.run(handle))


@case
def both_handles_of_a_shared_queue(address, log):
    options = {"component_types": [tf.int32], "capacity": 5, "shared_name": "both_handles_of_a_shared_queue"}
    old, new = raw.FIFOQueue(**options), raw.FIFOQueueV2(**options)
    with tf1.Session(address) as session:
        session.run(raw.QueueEnqueue(handle=old, components=[7]))
        log.value("by the other", session.run(raw.QueueDequeueV2(handle=new, component_types=[tf.int32])))


@case
def a_reference_made_of_a_handle(address, log):
    q = tf1.FIFOQueue(5, [tf.int32], shared_name="a_reference_made_of_a_handle")
    fake = raw.FakeQueue(resource=q.queue_ref)
    with tf1.Session(address) as session:
        session.run(q.enqueue(3))
        log.value("size", session.run(raw.QueueSize(handle=fake)))
        log.value("element", session.run(raw.QueueDequeue(handle=fake, component_types=[tf.int32])))


def drained(address, log, fetches, in_order):
    """Runs a pipeline to its end."""
    with tf1.Session(address) as session:
        session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
        coordinator = tf1.train.Coordinator()
        threads = tf1.train.start_queue_runners(session, coordinator)
        got = []
        try:
            while not coordinator.should_stop():
                got.append(session.run(fetches))
        except tf.errors.OutOfRangeError:
            log.same("end", "OutOfRangeError")
        finally:
            coordinator.request_stop()
        coordinator.join(threads)
        return got if in_order else sorted(x for batch in got for x in np.ravel(batch).tolist())


@case
def a_pipeline_of_strings(address, log):
    names = tf1.train.string_input_producer(["a", "b", "c"], shuffle=False, num_epochs=2)
    log.value("names", drained(address, log, names.dequeue(), True))


@case
def a_pipeline_of_batches(address, log):
    numbers = tf1.train.range_input_producer(10, shuffle=False, num_epochs=1).dequeue()
    batch = tf1.train.batch([numbers, tf.cast(numbers, tf.float32) * 2], batch_size=4, allow_smaller_final_batch=True)
    log.value("batches", drained(address, log, batch, True))


@case
def a_pipeline_of_whole_batches(address, log):
    numbers = tf1.train.range_input_producer(10, shuffle=False, num_epochs=1).dequeue()
    batch = tf1.train.batch([numbers], batch_size=4)
    log.value("batches", drained(address, log, batch, True))


@case
def a_pipeline_of_padded_batches(address, log):
    numbers = tf1.train.range_input_producer(6, shuffle=False, num_epochs=1).dequeue()
    batch = tf1.train.batch([tf.range(numbers)], batch_size=3, dynamic_pad=True)
    log.value("batches", drained(address, log, batch, True))


@case
def a_shuffled_pipeline(address, log):
    numbers = tf1.train.range_input_producer(20, shuffle=True, num_epochs=2).dequeue()
    batch = tf1.train.shuffle_batch([numbers], batch_size=8, capacity=30, min_after_dequeue=10,
                                    allow_smaller_final_batch=True)
    log.same("numbers", drained(address, log, batch, False))


@case
def a_pipeline_of_several_threads(address, log):
    slices = tf1.train.slice_input_producer([np.arange(30), np.arange(30) * 10], num_epochs=1, shuffle=False)
    batch = tf1.train.batch(slices, batch_size=5, num_threads=3, allow_smaller_final_batch=True)
    log.same("numbers", drained(address, log, batch, False))


@case
def a_pipeline_of_several_sources(address, log):
    sources = [[tf.constant(at) + tf1.train.range_input_producer(5, shuffle=False, num_epochs=1).dequeue()]
               for at in (0, 100)]
    batch = tf1.train.batch_join(sources, batch_size=3, allow_smaller_final_batch=True)
    log.same("numbers", drained(address, log, batch, False))


@case
def a_shuffled_pipeline_of_several_sources(address, log):
    sources = [[tf1.train.range_input_producer(6, num_epochs=1).dequeue() * factor] for factor in (1, 10)]
    batch = tf1.train.shuffle_batch_join(sources, batch_size=4, capacity=20, min_after_dequeue=5)
    log.same("numbers", drained(address, log, batch, False))


@case
def a_pipeline_that_chooses(address, log):
    number = tf1.train.range_input_producer(9, shuffle=False, num_epochs=1).dequeue()
    batch = tf1.train.maybe_batch([number], tf.equal(number % 2, 0), batch_size=2, allow_smaller_final_batch=True)
    log.value("even numbers", drained(address, log, batch, True))


@case
def a_pipeline_of_batches_of_batches(address, log):
    number = tf1.train.range_input_producer(4, shuffle=False, num_epochs=1).dequeue()
    rows = tf.stack([number * 10, number * 10 + 1])
    batch = tf1.train.batch([rows], batch_size=4, enqueue_many=True)
    log.value("batches", drained(address, log, batch, True))


@case
def a_pipeline_that_is_stopped(address, log):
    numbers = tf1.train.range_input_producer(1000, shuffle=False).dequeue()
    batch = tf1.train.batch([numbers], batch_size=4, capacity=8)
    with tf1.Session(address) as session:
        session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
        coordinator = tf1.train.Coordinator()
        threads = tf1.train.start_queue_runners(session, coordinator)
        log.value("first", [session.run(batch) for _ in range(3)])
        coordinator.request_stop()
        coordinator.join(threads)
        log.same("stopped", coordinator.should_stop())


@case
def an_epoch_limit_of_the_producer(address, log):
    x = tf1.train.limit_epochs(tf.constant([1, 2]), num_epochs=2)
    with tf1.Session(address) as session:
        session.run(tf1.local_variables_initializer())
        log.value("epochs", [session.run(x), session.run(x)])
        with log.refused("third"):
            session.run(x)


@case
def training_from_a_pipeline(address, log):
    data = np.random.RandomState(0).randn(32, 3).astype(np.float32)
    targets = data @ np.float32([[1], [-2], [0.5]])
    x, y = tf1.train.slice_input_producer([data, targets], shuffle=False, num_epochs=3)
    x, y = tf1.train.batch([x, y], batch_size=8)
    w = tf1.get_variable("w", initializer=np.zeros([3, 1], np.float32), use_resource=False)
    error = tf.matmul(x, w) - y
    step = tf1.assign_sub(w, 0.1 * tf.matmul(x, error, transpose_a=True) / 8)
    loss = tf.reduce_mean(tf.square(error))
    with tf1.control_dependencies([step]):
        fetch = tf.identity(loss)
    log.value("losses", drained(address, log, fetch, True))
