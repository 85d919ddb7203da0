"""Savers over files of TensorFlow: each case saves in a session of TensorFlow in this process and restores on the server, and
the other way round."""

import os
import tempfile

import numpy as np
import tensorflow as tf

from harness import case
from scripts import ends, numbers, stored

tf1 = tf.compat.v1
raw = tf.raw_ops


def saved(target, prefix, make):
    """Saves what `make` gives: the saver, and what is run before. Gives the prefix."""
    with tf.Graph().as_default(), tf1.Session(target) as session:
        saver, before = make()
        session.run(before)
        return saver.save(session, prefix, write_meta_graph=False, write_state=False)


def restored(target, path, make):
    """Restores what `make` gives: the saver, and what is fetched afterwards."""
    with tf.Graph().as_default(), tf1.Session(target) as session:
        saver, fetched = make()
        saver.restore(session, path)
        return session.run(fetched)


def both_ways(address, log, save, restore, more=lambda _: None):
    """The files of TensorFlow and of the server are the same, and each is restored by the other."""
    with tempfile.TemporaryDirectory() as folder:
        theirs = saved("", os.path.join(folder, "theirs"), save)
        ours = saved(address, os.path.join(folder, "ours"), save)
        log.value("stored", [stored(theirs), stored(ours)])
        for name, path in (("of TensorFlow", theirs), ("of the server", ours)):
            log.value(f"on the server, {name}", restored(address, path, restore))
            log.value(f"here, {name}", restored("", path, restore))
        for end in (".index", ".data-00000-of-00001"):
            with open(theirs + end, "rb") as one, open(ours + end, "rb") as other:
                log.same(f"the same{end}", one.read() == other.read())
        more(folder)
        log.same("files", ends(folder))


def variable(name, value, **options):
    return tf1.get_variable(name, initializer=value, **options)


def scoped(scope, make):
    """A function that makes variables below a scope: names on a server are for all sessions."""
    def made():
        with tf1.variable_scope(scope):
            return make()
    return made


@case
def a_saver_with_a_map_of_names(address, log):
    scope = tf1.get_variable_scope().name
    for kind in (False, True):
        def save():
            w = variable("w", numbers(1, 3, 2), use_resource=kind)
            n = variable("n", np.int64(5), use_resource=kind)
            return tf1.train.Saver({"old/weights": w, "count": n}), tf1.global_variables_initializer()

        def restore():
            v = tf1.get_variable("other", [3, 2], use_resource=kind)
            m = tf1.get_variable("m", [], tf.int64, initializer=tf1.zeros_initializer(), use_resource=kind)
            return tf1.train.Saver({"count": m, "old/weights": v}), [v, m]
        both_ways(address, log, scoped(f"{scope}/save/{kind}", save), scoped(f"{scope}/restore/{kind}", restore))


@case
def a_saver_of_strings(address, log):
    scope = tf1.get_variable_scope().name
    texts = [[b"", b"word"], [b"\xff\x00", b"x" * 300]]

    def save():
        t = tf1.get_variable("t", initializer=texts, use_resource=True)
        one = tf1.get_variable("one", initializer=b"scalar", use_resource=False)
        empty = tf1.get_variable("empty", initializer=tf.constant([], tf.string), use_resource=True)
        return tf1.train.Saver({"t": t, "one": one, "empty": empty}), tf1.global_variables_initializer()

    def restore():
        made = {name: tf1.get_variable(name, dims, tf.string, initializer=tf1.constant_initializer(b"before"),
                                       use_resource=name != "one")
                for name, dims in (("t", [2, 2]), ("one", []), ("empty", [0]))}
        return tf1.train.Saver(made), list(made.values())
    both_ways(address, log, scoped(f"{scope}/save", save), scoped(f"{scope}/restore", restore))


@case
def a_saver_of_other_parts(address, log):
    """Three parts of rows, restored as two of rows, two of columns, and as a whole."""
    scope = tf1.get_variable_scope().name
    full = numbers(2, 7, 4)

    def parts(name, partitioner):
        return tf1.get_variable(name, [7, 4], initializer=tf1.zeros_initializer(), partitioner=partitioner)

    def save():
        w, begin, fill = parts("w", tf1.fixed_size_partitioner(3)), 0, []
        for part in w:
            rows = part.shape[0]
            fill.append(tf1.assign(part, full[begin:begin + rows]))
            begin += rows
        return tf1.train.Saver({"w": w}), fill

    def restore(partitioner):
        def made():
            v = parts("v", partitioner) if partitioner else tf1.get_variable("v", [7, 4])
            return tf1.train.Saver({"w": v}), [part.value() for part in v] if partitioner else v
        return made
    partitioners = {"rows": tf1.fixed_size_partitioner(2), "columns": tf1.fixed_size_partitioner(2, axis=1),
                    "whole": None}
    for name, partitioner in partitioners.items():
        made = scoped(f"{scope}/{name}", restore(partitioner))
        both_ways(address, log, scoped(f"{scope}/save/{name}", save), made)


@case
def a_whole_is_restored_as_parts_of_a_map(address, log):
    scope = tf1.get_variable_scope().name

    def save():
        return tf1.train.Saver({"table": variable("table", numbers(3, 5, 3))}), tf1.global_variables_initializer()

    def restore():
        v = tf1.get_variable("v", [5, 3], initializer=tf1.zeros_initializer(),
                             partitioner=tf1.fixed_size_partitioner(4))
        return tf1.train.Saver({"table": v}), [part.value() for part in v]
    both_ways(address, log, scoped(f"{scope}/save", save), scoped(f"{scope}/restore", restore))


@case
def a_saver_that_misses_names(address, log):
    scope = tf1.get_variable_scope().name

    def save():
        return tf1.train.Saver({"a": variable("a", numbers(4, 2))}), tf1.global_variables_initializer()

    def restore(name, dims, dtype):
        def made():
            v = tf1.get_variable("v", dims, dtype, initializer=tf1.zeros_initializer())
            return tf1.train.Saver({name: v}), v
        return made
    with tempfile.TemporaryDirectory() as folder:
        path = saved("", os.path.join(folder, "a"), scoped(f"{scope}/save", save))
        wrong = {"name": ("b", [2], tf.float32), "type": ("a", [2], tf.int32)}
        for what, arguments in wrong.items():
            with log.refused(what):
                restored(address, path, scoped(f"{scope}/{what}", restore(*arguments)))
        # TensorFlow gives a variable a value of another shape than its handle says, and reads it; here the read is refused.
        with log.refused("shape", {"not refused": "InvalidArgumentError"}):
            restored(address, path, scoped(f"{scope}/shape", restore("a", [3], tf.float32)))
        with log.refused("no file"):
            restored(address, path + "x", scoped(f"{scope}/none", restore("a", [2], tf.float32)))
