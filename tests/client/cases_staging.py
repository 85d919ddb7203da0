"""Staging areas: in order, and under keys."""

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import data_flow_ops

from harness import case
from waiting import Later, started

tf1 = tf.compat.v1
raw = tf.raw_ops


@case
def staged_elements_come_in_order(address, log):
    x = tf1.placeholder(tf.float32)
    area = data_flow_ops.StagingArea([tf.float32, tf.string], shared_name="staged_in_order")
    put, get, size = area.put([x, tf.constant("text")]), area.get(), area.size()
    with tf1.Session(address) as session:
        for value in (1, [2, 3], [[4]]):
            session.run(put, {x: value})
        log.value("size", session.run(size))
        log.value("all", [session.run(get) for _ in range(3)])
        log.value("none left", session.run(size))


@case
def an_unstage_waits(address, log):
    area = data_flow_ops.StagingArea([tf.int32], shared_name="an_unstage_waits")
    with tf1.Session(address) as session:
        get = Later(session, area.get())
        log.same("waits", get.waits())
        session.run(area.put([tf.constant(7)]))
        log.value("element", get.end())


@case
def a_stage_waits_for_room(address, log):
    area = data_flow_ops.StagingArea([tf.int32], shared_name="a_stage_waits", capacity=2)
    x = tf1.placeholder(tf.int32)
    put, get = area.put([x]), area.get()
    with tf1.Session(address) as session:
        session.run(put, {x: 1})
        session.run(put, {x: 2})
        third = Later(session, put, {x: 3})
        log.same("waits", third.waits())
        log.value("first", session.run(get))
        log.same("done", third.end() is None)
        log.value("rest", [session.run(get), session.run(get)])


@case
def a_stage_waits_for_memory(address, log):
    area = data_flow_ops.StagingArea([tf.float32], shared_name="a_stage_waits_for_memory", memory_limit=40)
    x = tf1.placeholder(tf.float32)
    put, get = area.put([x]), area.get()
    with tf1.Session(address) as session:
        session.run(put, {x: np.zeros(6)})
        second = Later(session, put, {x: np.ones(6)})
        log.same("waits", second.waits())
        session.run(put, {x: np.zeros(4)})
        session.run(get)
        session.run(get)
        log.same("done", second.end() is None)
        log.value("it", session.run(get))
        with log.refused("more than the limit"):
            session.run(put, {x: np.zeros(11)})


@case
def a_look_at_a_staged_element(address, log):
    area = data_flow_ops.StagingArea([tf.int32], shared_name="a_look")
    index = tf1.placeholder(tf.int32, [])
    x = tf1.placeholder(tf.int32)
    put, peek = area.put([x]), area.peek(index)
    with tf1.Session(address) as session:
        session.run(put, {x: 1})
        second = Later(session, peek, {index: 1})
        log.same("waits", second.waits())
        session.run(put, {x: 2})
        log.value("second", second.end())
        log.value("first", session.run(peek, {index: 0}))
        log.value("they stay", session.run(area.size()))


@case
def a_staging_area_is_cleared(address, log):
    area = data_flow_ops.StagingArea([tf.int32], shared_name="is_cleared", capacity=1)
    with tf1.Session(address) as session:
        session.run(area.put([tf.constant(1)]))
        waiting = started(Later(session, area.put([tf.constant(2)])))
        session.run(area.clear())
        log.same("done", waiting.end() is None)
        log.value("element", session.run(area.get()))
        log.value("size", session.run(area.size()))


@case
def an_unstage_of_another_number_of_components(address, log):
    put = raw.Stage(values=[1, 2.], shared_name="another_number")
    get = raw.Unstage(dtypes=[tf.int32], shared_name="another_number")
    with tf1.Session(address) as session:
        session.run(put)
        with log.refused("get"):
            session.run(get)
        with log.refused("a name of the host's"):
            session.run(raw.Stage(values=[1], shared_name="_of_the_host"))


@case
def staging_areas_are_found_by_the_name_of_the_node(address, log):
    put = raw.Stage(values=[1], name="by_node/area")
    size = raw.StageSize(dtypes=[tf.int32], shared_name=put.name)
    with tf1.Session(address) as session:
        session.run(put)
        log.value("size", session.run(size))
    with tf1.Session(address) as session:
        log.value("in another session", session.run(size))


@case
def a_container_of_staging_areas_is_reset(address, log):
    with tf1.container("of-staging"):
        put = raw.Stage(values=[1], shared_name="reset", container="of-staging")
        size = raw.StageSize(dtypes=[tf.int32], shared_name="reset", container="of-staging")
    with tf1.Session(address) as session:
        session.run(put)
        log.value("before", session.run(size))
    tf1.Session.reset(address, ["of-staging"])
    with tf1.Session(address) as session:
        log.value("after", session.run(size))


def both(function):
    """A case for each kind of map."""
    for ordered in (False, True):
        def run(address, log, ordered=ordered):
            name = f"{function.__name__}_{ordered}"

            def area(dtypes, **options):
                return data_flow_ops.MapStagingArea(dtypes, shared_name=name, ordered=ordered, **options)
            function(address, log, area)
        run.__name__ = f"{function.__name__}_{'ordered' if ordered else 'unordered'}"
        case(run)


@both
def elements_under_keys(address, log, area):
    a = area([tf.int32, tf.float32])
    key, x = tf1.placeholder(tf.int64, []), tf1.placeholder(tf.int32)
    put, get = a.put(key, [x, tf.constant(1.5)], [0, 1]), a.get(key)
    with tf1.Session(address) as session:
        for at in (3, -1, 2):
            session.run(put, {key: at, x: at * 10})
        log.value("size", session.run(a.size()))
        for at in (2, 3, -1):
            log.value(f"{at}", session.run(get, {key: at}))
        log.value("none left", session.run(a.size()))


@both
def an_element_without_its_key(address, log, area):
    a = area([tf.int32])
    with tf1.Session(address) as session:
        session.run(a.put(tf.constant(5, tf.int64), [tf.constant(50)], [0]))
        log.value("any", session.run(a.get()))


@case
def the_least_key_goes_first(address, log):
    a = data_flow_ops.MapStagingArea([tf.int32], shared_name="the_least_key", ordered=True)
    key = tf1.placeholder(tf.int64, [])
    put, get = a.put(key, [tf.cast(key, tf.int32)], [0]), a.get()
    with tf1.Session(address) as session:
        for at in (3, 1, 2, -5):
            session.run(put, {key: at})
        log.value("all", [session.run(get) for _ in range(4)])


@both
def components_of_a_key_come_one_by_one(address, log, area):
    a = area([tf.int32, tf.float32, tf.string])
    key = tf.constant(7, tf.int64)
    with tf1.Session(address) as session:
        session.run(a.put(key, [tf.constant(1.5)], [1]))
        log.value("incomplete", session.run([a.size(), a.incomplete_size()]))
        with log.refused("again"):
            session.run(a.put(key, [tf.constant(2.5)], [1]))
        get = Later(session, a.get(key))
        log.same("waits", get.waits())
        session.run(a.put(key, [tf.constant(5), tf.constant("text")], [0, 2]))
        log.value("element", get.end())
        log.value("none", session.run([a.size(), a.incomplete_size()]))


@both
def components_of_a_key_are_taken_one_by_one(address, log, area):
    a = area([tf.int32, tf.float32])
    key = tf.constant(7, tf.int64)
    with tf1.Session(address) as session:
        session.run(a.put(key, [tf.constant(1), tf.constant(1.5)], [0, 1]))
        log.value("peek", session.run(a.peek(key)))
        log.value("peek at one", session.run(a.peek(key, [1])))
        log.value("one", session.run(a.get(key, [1])))
        with log.refused("it is gone"):
            session.run(a.get(key, [1]))
        log.value("size", session.run(a.size()))
        log.value("the other", session.run(a.get(key, [0])))
        log.value("none", session.run(a.size()))


@both
def keyed_elements_wait_for_room(address, log, area):
    a = area([tf.int32], capacity=1)
    first, second = tf.constant(1, tf.int64), tf.constant(2, tf.int64)
    with tf1.Session(address) as session:
        session.run(a.put(first, [tf.constant(1)], [0]))
        put = Later(session, a.put(second, [tf.constant(2)], [0]))
        log.same("waits", put.waits())
        log.value("first", session.run(a.get(first)))
        log.same("done", put.end() is None)
        session.run(a.clear())
        log.value("cleared", session.run([a.size(), a.incomplete_size()]))


@both
def a_keyed_element_that_is_too_large(address, log, area):
    a = area([tf.float32], memory_limit=16)
    with tf1.Session(address) as session:
        with log.refused("put"):
            session.run(a.put(tf.constant(1, tf.int64), [tf.zeros([5])], [0]))
        log.value("size", session.run(a.size()))


@both
def a_key_that_is_there_already(address, log, area):
    a = area([tf.int32])
    key = tf.constant(1, tf.int64)
    with tf1.Session(address) as session:
        session.run(a.put(key, [tf.constant(1)], [0]))
        session.run(a.put(key, [tf.constant(2)], [0]))
        log.value("size", session.run(a.size()))
        log.value("element", session.run(a.get(key)))
        log.value("none", session.run(a.size()))


@case
def keys_and_indices_that_do_not_fit(address, log):
    name = "keys_and_indices_that_do_not_fit"
    key, indices = tf1.placeholder(tf.int64), tf1.placeholder(tf.int32)
    put = raw.MapStage(key=key, indices=indices, values=[1, 2.], dtypes=[tf.int32, tf.float32], shared_name=name)
    part = raw.MapStage(key=key, indices=indices, values=[2.], dtypes=[tf.int32, tf.float32], shared_name=name)
    get = raw.MapUnstage(key=key, indices=indices, dtypes=[tf.int32, tf.float32], shared_name=name)
    with tf1.Session(address) as session:
        for what, fetch, feeds in (
            ("two keys", put, {key: [1, 2], indices: [0, 1]}),
            ("no key", put, {key: [], indices: [0, 1]}),
            ("order", put, {key: 1, indices: [1, 0]}),
            ("twice", put, {key: 1, indices: [0, 0]}),
            ("none", put, {key: 1, indices: []}),
            ("beyond", part, {key: 1, indices: [2]}),
        ):
            with log.refused(what):
                session.run(fetch, feeds)
        session.run(put, {key: 1, indices: [0, 1]})
        for what, value in (("order", [1, 0]), ("none", []), ("beyond", [2, 3])):
            with log.refused("get: " + what):
                session.run(get, {key: 1, indices: value})
        log.value("element", session.run(get, {key: 1, indices: [0, 1]}))
