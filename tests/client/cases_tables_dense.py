"""Dense tables, in which two keys mark places; and tables that are filled with the lines of files."""

import os
import tempfile

import numpy as np
import tensorflow as tf

from harness import case
from tables import in_order, name_of, once

tf1 = tf.compat.v1
raw = tf.raw_ops


def dense(name, key=np.int64, value=tf.float32, value_shape=(), **options):
    return raw.MutableDenseHashTableV2(
        empty_key=key(-1), deleted_key=key(-2), value_dtype=value, value_shape=list(value_shape),
        shared_name=name_of(name), **options)


def entries_in_order(keys, values, marking=(-1, -2)):
    keys, values = np.asarray(keys), np.asarray(values)
    kept = [at for at in range(len(keys)) if keys.reshape(len(keys), -1)[at][0] not in marking]
    return in_order(keys[kept], values[kept])


@case
def a_dense_table(address, log):
    for at, (value, shape) in enumerate(((np.float32, ()), (np.int64, (2,)), (np.float64, (3,)), (np.bool_, ()))):
        values = np.arange(4 * int(np.prod(shape))).reshape((4, *shape)).astype(value)
        table = dense(f"t{at}", value=tf.as_dtype(value), value_shape=shape, initial_num_buckets=4)
        keys = np.int64([11, 12, 13, 14])
        insert = raw.LookupTableInsertV2(table_handle=table, keys=keys, values=values)
        again = raw.LookupTableInsertV2(table_handle=table, keys=keys[:2], values=values[2:])
        remove = raw.LookupTableRemoveV2(table_handle=table, keys=np.int64([12, 99]))
        found = raw.LookupTableFindV2(table_handle=table, keys=np.int64([14, 12, 99]), default_value=values[1])
        size = raw.LookupTableSizeV2(table_handle=table)
        export = raw.LookupTableExportV2(table_handle=table, Tkeys=tf.int64, Tvalues=tf.as_dtype(value))
        with tf1.Session(address) as session:
            for name, op in (("insert", insert), ("again", again), ("remove", remove), ("back", insert)):
                session.run(op)
                log.value(f"{at} {name}", session.run([found, size]))
                exported = session.run(export)
                log.same(f"{at} {name} export", entries_in_order(*exported))
                log.same(f"{at} {name} places", len(exported[0]))


@case
def a_dense_table_of_strings(address, log):
    table = raw.MutableDenseHashTableV2(empty_key=b"", deleted_key=b"-", value_dtype=tf.int64,
                                        shared_name=name_of("t"))
    keys = [b"a", b"b", b"long enough to be no short string"]
    insert = raw.LookupTableInsertV2(table_handle=table, keys=keys, values=np.int64([1, 2, 3]))
    found = raw.LookupTableFindV2(table_handle=table, keys=keys[::-1] + [b"q"], default_value=np.int64(-1))
    with tf1.Session(address) as session:
        session.run(insert)
        log.value("found", session.run(found))
        for name, bad in (("empty", b""), ("deleted", b"-")):
            with log.refused(name):
                session.run(raw.LookupTableFindV2(table_handle=table, keys=[bad], default_value=np.int64(-1)))


@case
def a_dense_table_of_vectors(address, log):
    table = raw.MutableDenseHashTableV2(empty_key=np.int64([0, 0]), deleted_key=np.int64([-1, -1]),
                                        value_dtype=tf.float32, value_shape=[2], shared_name=name_of("t"))
    keys = np.int64([[1, 2], [0, 2], [3, 4]])
    insert = raw.LookupTableInsertV2(table_handle=table, keys=keys, values=np.float32([[1, 2], [3, 4], [5, 6]]))
    remove = raw.LookupTableRemoveV2(table_handle=table, keys=keys[:1])
    find = raw.LookupTableFindV2(table_handle=table, keys=keys, default_value=np.float32([9, 9]))
    with tf1.Session(address) as session:
        session.run(insert)
        log.value("found", session.run(find))
        session.run(remove)
        log.value("removed", session.run([find, raw.LookupTableSizeV2(table_handle=table)]))


@case
def keys_that_mark_places(address, log):
    table = dense("t")
    with tf1.Session(address) as session:
        for key in (-1, -2):
            keys = np.int64([5, key])
            with log.refused(f"insert {key}"):
                session.run(raw.LookupTableInsertV2(table_handle=table, keys=keys, values=np.float32([1, 2])))
            with log.refused(f"find {key}"):
                session.run(raw.LookupTableFindV2(table_handle=table, keys=keys, default_value=np.float32(0)))
            with log.refused(f"remove {key}"):
                session.run(raw.LookupTableRemoveV2(table_handle=table, keys=keys))


@case
def what_a_dense_table_refuses(address, log):
    def size(name, **options):
        return raw.LookupTableSizeV2(table_handle=dense(name, **options))

    with tf1.Session(address) as session:
        for name, options in (("load 0", {"max_load_factor": 0.0}), ("load 1", {"max_load_factor": 1.0}),
                              ("buckets 3", {"initial_num_buckets": 3}), ("buckets 2", {"initial_num_buckets": 2}),
                              ("buckets 12", {"initial_num_buckets": 12}),
                              ("matrix", {"value_shape": (2, 2)})):
            with log.refused(name):
                session.run(size(name.replace(" ", "_"), **options))
        same = raw.MutableDenseHashTableV2(empty_key=np.int64(3), deleted_key=np.int64(3), value_dtype=tf.float32,
                                           shared_name=name_of("same"))
        with log.refused("the same key twice"):
            session.run(raw.LookupTableSizeV2(table_handle=same))
        shapes = tf1.placeholder(tf.int64)
        other = raw.MutableDenseHashTableV2(empty_key=np.int64(3), deleted_key=shapes, value_dtype=tf.float32,
                                            shared_name=name_of("shapes"))
        with log.refused("keys of two shapes"):
            session.run(raw.LookupTableSizeV2(table_handle=other), {shapes: [1, 2]})


@case
def a_dense_table_by_reference_has_no_deleted_key(address, log):
    table = raw.MutableDenseHashTable(empty_key=np.int64(-1), value_dtype=tf.float32)
    with tf1.Session(address) as session:
        with log.refused("the table"):
            session.run(raw.LookupTableSize(table_handle=table))


@case
def a_dense_table_is_restored(address, log):
    first, second = dense("a", initial_num_buckets=8), dense("b", initial_num_buckets=4)
    insert = raw.LookupTableInsertV2(
        table_handle=first, keys=np.arange(20, dtype=np.int64), values=np.arange(20, dtype=np.float32))
    export = raw.LookupTableExportV2(table_handle=first, Tkeys=tf.int64, Tvalues=tf.float32)
    imported = raw.LookupTableImportV2(table_handle=second, keys=export.keys, values=export.values)
    find = raw.LookupTableFindV2(table_handle=second, keys=np.int64([0, 7, 19, 20]), default_value=np.float32(-1))
    with tf1.Session(address) as session:
        session.run(insert)
        session.run(imported)
        log.value("found", session.run([find, raw.LookupTableSizeV2(table_handle=second)]))


class Lines:
    """A file with these bytes, while the block runs."""

    def __init__(self, data):
        self.data = data

    def __enter__(self):
        handle, self.path = tempfile.mkstemp()
        with os.fdopen(handle, "wb") as file:
            file.write(self.data)
        return self.path

    def __exit__(self, *_):
        os.unlink(self.path)


def from_file(table, path, key, value, **options):
    return raw.InitializeTableFromTextFileV2(
        table_handle=table, filename=path, key_index=key, value_index=value, **options)


@case
def a_table_from_the_lines_of_a_file(address, log):
    with Lines(b"emerson\nlake\r\npalmer") as path, tf1.Session(address) as session:
        ids = once(tf.string, tf.int64, name_of("ids"))
        words = once(tf.int64, tf.string, name_of("words"))
        session.run([from_file(ids, path, -2, -1), from_file(words, path, -1, -2)])
        log.value("ids", session.run(raw.LookupTableFindV2(
            table_handle=ids, keys=["palmer", "lake", "who"], default_value=np.int64(-1))))
        log.value("words", session.run(raw.LookupTableFindV2(
            table_handle=words, keys=np.int64([0, 2, 3]), default_value="?")))
        with log.refused("again"):
            session.run(from_file(ids, path, -2, -1))


@case
def a_table_from_columns_of_a_file(address, log):
    with Lines(b"a,1,0.5\nb,-2,1e3\nc,30,-0.25\n") as path, tf1.Session(address) as session:
        for at, (key, value, key_type, value_type) in enumerate((
                (0, 1, tf.string, tf.int64), (0, 2, tf.string, tf.float32), (1, 0, tf.int64, tf.string),
                (1, 2, tf.int32, tf.float64), (0, -1, tf.string, tf.int64), (0, -1, tf.string, tf.int64),
                (0, 1, tf.string, tf.int32), (0, 1, tf.string, tf.int32))):
            table = once(key_type, value_type, name_of(f"t{at}"))
            session.run(from_file(table, path, key, value, delimiter=",", offset=10 * (at % 2)))
            export = raw.LookupTableExportV2(table_handle=table, Tkeys=key_type, Tvalues=value_type)
            log.same(f"{at}", in_order(*session.run(export)))


@case
def so_many_lines_of_a_file(address, log):
    with Lines(b"a\nb\nc\n") as path, tf1.Session(address) as session:
        for size in (2, 3, 4):
            table = once(tf.string, tf.int64, name_of(f"t{size}"))
            with log.refused(f"{size}"):
                session.run(from_file(table, path, -2, -1, vocab_size=size))
            log.value(f"size {size}", session.run(raw.LookupTableSizeV2(table_handle=table)))


@case
def what_files_of_tables_are_refused(address, log):
    def fill(name, path, key=0, value=1, key_type=tf.string, value_type=tf.int64, **options):
        with log.refused(name):
            table = once(key_type, value_type, name_of(name.replace(" ", "_")))
            session.run(from_file(table, path, key, value, **options))

    with Lines(b"a\t1\nb\tx\n") as path, Lines(b"a\t1\n\nb\t2\n") as gap, tf1.Session(address) as session:
        fill("no number", path)
        fill("no column", path, 0, 2)
        fill("an empty line", gap)
        fill("no file", path + "-not")
        fill("two characters", path, delimiter="ab")
        fill("a number for strings", path, -1, 1)
        fill("a line for floats", path, 0, -2, value_type=tf.float32)
        fill("other values for a key", path, 1, 1, key_type=tf.string)
