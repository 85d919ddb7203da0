"""Barriers: elements whose components come one by one, under keys."""

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import data_flow_ops

from harness import case
from waiting import Later, started

tf1 = tf.compat.v1
raw = tf.raw_ops


def parts(taken):
    """What was taken, as a list."""
    return [taken.indices, taken.keys, list(taken.values)]


def barrier(types=(tf.float32, tf.int32), shapes=((), (2,)), **options):
    return data_flow_ops.Barrier(list(types), list(shapes), **options)


@case
def components_come_one_by_one(address, log):
    b = barrier()
    ready, incomplete = b.ready_size(), b.incomplete_size()
    with tf1.Session(address) as session:
        session.run(b.insert_many(0, ["a", "b"], [1., 2.]))
        log.value("incomplete", session.run([ready, incomplete]))
        session.run(b.insert_many(1, ["b"], [[3, 4]]))
        log.value("one is ready", session.run([ready, incomplete]))
        log.value("it", parts(session.run(b.take_many(1))))
        session.run(b.insert_many(1, ["a"], [[5, 6]]))
        log.value("the other", parts(session.run(b.take_many(1))))
        log.value("none", session.run([ready, incomplete]))


@case
def the_key_that_came_first_goes_first(address, log):
    b = barrier()
    keys = tf1.placeholder(tf.string)
    first, second = b.insert_many(0, keys, [1.]), b.insert_many(1, keys, [[1, 2]])
    with tf1.Session(address) as session:
        for key in ("x", "y", "z"):
            session.run(first, {keys: [key]})
        for key in ("z", "x", "y"):
            session.run(second, {keys: [key]})
        log.value("all", parts(session.run(b.take_many(3))))


@case
def a_take_waits(address, log):
    b = barrier([tf.string], [()])
    with tf1.Session(address) as session:
        take = Later(session, b.take_many(2))
        log.same("waits", take.waits())
        session.run(b.insert_many(0, ["a"], ["first"]))
        log.same("still waits", take.waits())
        session.run(b.insert_many(0, ["b"], ["second"]))
        log.value("both", parts(take.end()))


@case
def a_key_that_was_taken_comes_again(address, log):
    b = barrier([tf.int64], [()])
    put = b.insert_many(0, ["a"], np.int64([1]))
    with tf1.Session(address) as session:
        for at in range(3):
            session.run(put)
            log.value(f"{at}", parts(session.run(b.take_many(1))))


@case
def a_component_that_is_there(address, log):
    b = barrier()
    with tf1.Session(address) as session:
        session.run(b.insert_many(0, ["a"], [1.]))
        with log.refused("again"):
            session.run(b.insert_many(0, ["a"], [2.]))
        with log.refused("twice in one insertion"):
            session.run(b.insert_many(0, ["b", "b"], [2., 3.]))
        log.value("incomplete", session.run(b.incomplete_size()))
        session.run(b.insert_many(1, ["a"], [[1, 2]]))
        log.value("the first stays", parts(session.run(b.take_many(1))))


@case
def values_that_do_not_fit(address, log):
    b = barrier([tf.float32], [(2,)])
    keys, values = tf1.placeholder(tf.string), tf1.placeholder(tf.float32)
    put = raw.BarrierInsertMany(handle=b.barrier_ref, keys=keys, values=values, component_index=0)
    with tf1.Session(address) as session:
        for name, feeds in (
            ("shape", {keys: ["a"], values: [[1, 2, 3]]}),
            ("no elements", {keys: ["a"], values: np.zeros([1, 0])}),
        ):
            with log.refused(name):
                session.run(put, feeds)
        for name, component in (("type", 0), ("component", 1)):
            value = [[1, 2]] if name == "type" else [[1., 2.]]
            with log.refused(name):
                session.run(raw.BarrierInsertMany(handle=b.barrier_ref, keys=["a"], values=value,
                                                  component_index=component))
        log.value("ready", session.run(b.ready_size()))
        with log.refused("take of other types"):
            session.run(raw.BarrierTakeMany(handle=b.barrier_ref, num_elements=1, component_types=[tf.int32]))


@case
def an_insertion_of_no_keys(address, log):
    b = barrier([tf.float32], [(2,)])
    keys = tf1.placeholder(tf.string)
    put = b.insert_many(0, keys, np.zeros([0, 2], np.float32))
    with tf1.Session(address) as session:
        session.run(put, {keys: np.zeros([0], object)})
        log.value("ready", session.run(b.ready_size()))
        log.value("take of none", parts(session.run(b.take_many(0))))


@case
def a_closed_barrier_completes_its_keys(address, log):
    b = barrier()
    with tf1.Session(address) as session:
        session.run(b.insert_many(0, ["a", "b"], [1., 2.]))
        session.run(b.close())
        with log.refused("a new key"):
            session.run(b.insert_many(0, ["c"], [3.]))
        with log.refused("close again"):
            session.run(b.close())
        session.run(b.insert_many(1, ["a"], [[1, 2]]))
        log.value("one", parts(session.run(b.take_many(1))))
        session.run(b.insert_many(1, ["b"], [[3, 4]]))
        with log.refused("too many"):
            session.run(b.take_many(2))
        log.value("last", parts(session.run(b.take_many(1))))
        with log.refused("none left"):
            session.run(b.take_many(1))
        with log.refused("insert into a drained one"):
            session.run(b.insert_many(1, ["a"], [[1, 2]]))


@case
def a_closed_barrier_without_keys(address, log):
    b = barrier([tf.float32], [()])
    with tf1.Session(address) as session:
        session.run(b.insert_many(0, ["a", "b"], [1., 2.]))
        session.run(b.close())
        log.value("both", parts(session.run(b.take_many(2))))
        with log.refused("one more"):
            session.run(b.take_many(1))
        with log.refused("none"):
            session.run(b.take_many(0))


@case
def a_small_batch_of_a_closed_barrier(address, log):
    b = barrier([tf.float32], [()])
    with tf1.Session(address) as session:
        session.run(b.insert_many(0, ["a"], [1.]))
        take = b.take_many(3, allow_small_batch=True)
        session.run(b.close())
        log.value("small", parts(session.run(take)))
        with log.refused("none"):
            session.run(take)


@case
def cancelling_forgets_incomplete_keys(address, log):
    b = barrier()
    with tf1.Session(address) as session:
        session.run(b.insert_many(0, ["a", "b"], [1., 2.]))
        session.run(b.insert_many(1, ["a"], [[1, 2]]))
        session.run(b.close(cancel_pending_enqueues=True))
        log.value("incomplete", session.run(b.incomplete_size()))
        with log.refused("a component"):
            session.run(b.insert_many(1, ["b"], [[3, 4]]))
        log.value("what was ready", parts(session.run(b.take_many(1))))
        with log.refused("none left"):
            session.run(b.take_many(1))
        for cancel in (False, True):
            with log.refused(f"close again, {cancel}"):
                session.run(b.close(cancel_pending_enqueues=cancel))


@case
def closing_ends_a_take_that_waits(address, log):
    b = barrier([tf.float32], [()])
    with tf1.Session(address) as session:
        session.run(b.insert_many(0, ["a"], [1.]))
        take = started(Later(session, b.take_many(2)))
        session.run(b.close())
        log.same("take", take.end())
        log.value("it went back", parts(session.run(b.take_many(1))))


@case
def a_take_with_a_time_limit(address, log):
    b = barrier([tf.float32], [()])
    with tf1.Session(address) as session:
        with log.refused("take"):
            session.run(b.take_many(1), options=tf1.RunOptions(timeout_in_ms=400))
        session.run(b.insert_many(0, ["a"], [1.]))
        log.value("nobody took it", parts(session.run(b.take_many(1))))
        with log.refused("attribute"):
            session.run(raw.BarrierTakeMany(handle=b.barrier_ref, num_elements=1, component_types=[tf.float32],
                                            timeout_ms=100))


@case
def barriers_are_shared_by_name(address, log):
    name = "barriers_are_shared_by_name"
    b, own = barrier([tf.float32], [()], shared_name=name), barrier([tf.float32], [()])
    others = {
        "types": barrier([tf.int32], [()], shared_name=name),
        "shapes": barrier([tf.float32], [(1,)], shared_name=name),
        "number": barrier([tf.float32, tf.float32], [(), ()], shared_name=name),
    }
    with tf1.Session(address) as first, tf1.Session(address) as second:
        first.run([b.insert_many(0, ["a"], [1.]), own.insert_many(0, ["a"], [1.])])
        log.value("shared", parts(second.run(b.take_many(1))))
        log.value("own", second.run(own.ready_size()))
        for what, other in others.items():
            with log.refused(what):
                first.run(other.ready_size())


@case
def attributes_that_no_barrier_has(address, log):
    of_size = lambda handle: raw.BarrierReadySize(handle=handle)
    with tf1.Session(address) as session:
        with log.refused("capacity"):
            session.run(of_size(raw.Barrier(component_types=[tf.int32], shapes=[[]], capacity=5)))
        with log.refused("no shapes"):
            session.run(of_size(raw.Barrier(component_types=[tf.int32])))
