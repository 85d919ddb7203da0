"""Tables from keys to values: filled once, mutable, of tensors; by handle and by reference, by name and without."""

import numpy as np
import tensorflow as tf

from harness import case
from tables import dtype_of, in_order, mutable, name_of, once
from written import files

tf1 = tf.compat.v1
raw = tf.raw_ops

KEYS = {"int32": np.int32([3, -1, 7]), "int64": np.int64([3, -1, 1 << 40]),
        "string": np.array([b"a", b"", b"long enough to be no short string"], object)}
VALUES = {"int32": np.int32([5, 6, 7]), "int64": np.int64([5, 6, -7]), "float": np.float32([0.5, 1.5, 2.5]),
          "double": np.float64([0.5, 1.5, 2.5]), "bool": np.array([True, False, True]),
          "string": np.array([b"x", b"yy", b""], object)}
# The pairs of types that TensorFlow's tables on the CPU take.
ONCE = (("int64", "string"), ("int64", "int64"), ("int64", "float"), ("string", "string"), ("string", "bool"),
        ("string", "double"), ("string", "float"), ("string", "int32"), ("string", "int64"), ("int32", "string"),
        ("int32", "double"), ("int32", "float"), ("int32", "int32"), ("int64", "double"), ("int64", "int32"))


def each_pair():
    for key, value in ONCE:
        def run(address, log, key=key, value=value):
            keys, values = KEYS[key], VALUES[value]
            table = once(dtype_of(keys), dtype_of(values), name_of("t"))
            fill = raw.InitializeTableV2(table_handle=table, keys=keys, values=values)
            zero = np.zeros([], values.dtype) if values.dtype != object else b"none"
            found = raw.LookupTableFindV2(table_handle=table, keys=keys[::-1], default_value=zero)
            missing = raw.LookupTableFindV2(
                table_handle=table, keys=np.array([9, 8]).astype(keys.dtype) if key != "string" else [b"q", b"w"],
                default_value=values[1])
            size = raw.LookupTableSizeV2(table_handle=table)
            export = raw.LookupTableExportV2(table_handle=table, Tkeys=dtype_of(keys), Tvalues=dtype_of(values))
            with tf1.Session(address) as session:
                session.run(fill)
                log.value("found", session.run(found))
                log.value("missing", session.run(missing))
                log.value("size", session.run(size))
                log.same("export", in_order(*session.run(export)))
        run.__name__ = f"a_table_from_{key}_to_{value}"
        case(run)


each_pair()


def each_mutable_pair():
    for key, value in (("string", "float"), ("string", "int64"), ("int64", "int64"), ("int64", "string"),
                       ("int64", "float"), ("int32", "float"), ("string", "bool"), ("int32", "int32"),
                       ("int32", "double")):
        def run(address, log, key=key, value=value):
            keys, values = KEYS[key], VALUES[value]
            table = mutable(dtype_of(keys), dtype_of(values), name_of("t"))
            insert = raw.LookupTableInsertV2(table_handle=table, keys=keys, values=values)
            other = raw.LookupTableInsertV2(table_handle=table, keys=keys[:2], values=values[::-1][:2])
            remove = raw.LookupTableRemoveV2(table_handle=table, keys=keys[1:])
            imported = raw.LookupTableImportV2(table_handle=table, keys=keys[1:], values=values[1:])
            found = raw.LookupTableFindV2(table_handle=table, keys=keys, default_value=values[2])
            size = raw.LookupTableSizeV2(table_handle=table)
            export = raw.LookupTableExportV2(table_handle=table, Tkeys=dtype_of(keys), Tvalues=dtype_of(values))
            with tf1.Session(address) as session:
                log.value("empty", session.run(found))
                for name, op in (("insert", insert), ("other", other), ("remove", remove), ("import", imported)):
                    session.run(op)
                    log.value(name, session.run([found, size]))
                    log.same(f"export {name}", in_order(*session.run(export)))
        run.__name__ = f"a_mutable_table_from_{key}_to_{value}"
        case(run)


each_mutable_pair()


@case
def the_shape_of_what_is_found(address, log):
    table = mutable(tf.int64, tf.float32, name_of("t"))
    insert = raw.LookupTableInsertV2(table_handle=table, keys=np.int64([[1, 2], [3, 4]]), values=np.float32([[1, 2], [3, 4]]))
    with tf1.Session(address) as session:
        session.run(insert)
        for keys in (np.int64(3), np.int64([[4], [9]]), np.zeros([0], np.int64), np.zeros([2, 0], np.int64)):
            found = raw.LookupTableFindV2(table_handle=table, keys=keys, default_value=np.float32(-1))
            log.value(f"{keys.shape}", session.run(found))
        per_key = raw.LookupTableFindV2(
            table_handle=table, keys=np.int64([7, 3, 8]), default_value=np.float32([10, 20, 30]))
        log.value("a default per key", session.run(per_key))


@case
def a_default_of_another_shape(address, log):
    table = mutable(tf.int64, tf.float32, name_of("t"))
    default = tf1.placeholder(tf.float32)
    found = raw.LookupTableFindV2(table_handle=table, keys=np.int64([7, 3, 8]), default_value=default)
    with tf1.Session(address) as session:
        for shape in ([2], [1], [3, 1]):
            with log.refused(f"{shape}"):
                session.run(found, {default: np.zeros(shape, np.float32)})
        log.value("scalar", session.run(found, {default: 4}))


@case
def values_of_another_shape(address, log):
    table = mutable(tf.int64, tf.float32, name_of("t"))
    values = tf1.placeholder(tf.float32)
    keys = np.int64([7, 3, 8])
    insert = raw.LookupTableInsertV2(table_handle=table, keys=keys, values=values)
    imported = raw.LookupTableImportV2(table_handle=table, keys=keys, values=values)
    with tf1.Session(address) as session:
        for shape in ([2], [], [3, 1]):
            for name, op in (("insert", insert), ("import", imported)):
                with log.refused(f"{name} {shape}"):
                    session.run(op, {values: np.zeros(shape, np.float32)})
        log.value("size", session.run(raw.LookupTableSizeV2(table_handle=table)))


@case
def the_last_of_equal_keys_wins(address, log):
    table = mutable(tf.int64, tf.float32, name_of("t"))
    insert = raw.LookupTableInsertV2(table_handle=table, keys=np.int64([7, 3, 7]), values=np.float32([1, 2, 3]))
    with tf1.Session(address) as session:
        session.run(insert)
        log.value("found", session.run(raw.LookupTableFindV2(
            table_handle=table, keys=np.int64([7, 3]), default_value=np.float32(0))))
        log.value("size", session.run(raw.LookupTableSizeV2(table_handle=table)))


@case
def a_table_before_it_is_filled(address, log):
    table = once(tf.string, tf.int64, name_of("t"))
    with tf1.Session(address) as session:
        with log.refused("find"):
            session.run(raw.LookupTableFindV2(table_handle=table, keys=["a"], default_value=np.int64(0)))
        with log.refused("export"):
            session.run(raw.LookupTableExportV2(table_handle=table, Tkeys=tf.string, Tvalues=tf.int64).keys)
        log.value("size", session.run(raw.LookupTableSizeV2(table_handle=table)))


@case
def a_table_that_is_filled_again(address, log):
    table = once(tf.string, tf.int64, name_of("t"))

    def fill(keys, values):
        return raw.InitializeTableV2(table_handle=table, keys=keys, values=np.int64(values))

    find = raw.LookupTableFindV2(table_handle=table, keys=["a", "b", "c"], default_value=np.int64(-1))
    with tf1.Session(address) as session:
        session.run(fill(["a", "b"], [1, 2]))
        with log.refused("the same"):
            session.run(fill(["a", "b"], [1, 2]))
        with log.refused("more"):
            session.run(fill(["a", "b", "c"], [1, 2, 3]))
        log.value("found", session.run(find))


@case
def a_key_with_two_values(address, log):
    with tf1.Session(address) as session:
        for at, values in enumerate(([1, 2, 1], [1, 2, 3])):
            table = once(tf.string, tf.int64, name_of(f"t{at}"))
            with log.refused(f"{values}"):
                session.run(raw.InitializeTableV2(table_handle=table, keys=["a", "b", "a"], values=np.int64(values)))
        first = once(tf.string, tf.int64, name_of("t0"))
        log.value("size", session.run(raw.LookupTableSizeV2(table_handle=first)))


@case
def what_a_table_that_is_filled_once_refuses(address, log):
    table = once(tf.string, tf.int64, name_of("t"))
    values = np.int64([1])
    with tf1.Session(address) as session:
        session.run(raw.InitializeTableV2(table_handle=table, keys=["a"], values=values))
        with log.refused("insert"):
            session.run(raw.LookupTableInsertV2(table_handle=table, keys=["b"], values=values))
        with log.refused("remove"):
            session.run(raw.LookupTableRemoveV2(table_handle=table, keys=["a"]))
        with log.refused("import of as many"):
            session.run(raw.LookupTableImportV2(table_handle=table, keys=["b"], values=values))
        with log.refused("import of more"):
            session.run(raw.LookupTableImportV2(table_handle=table, keys=["b", "c"], values=np.int64([1, 2])))
        log.value("found", session.run(raw.LookupTableFindV2(
            table_handle=table, keys=["a", "b"], default_value=np.int64(-1))))


@case
def an_import_fills_a_table(address, log):
    table = once(tf.string, tf.int64, name_of("t"))
    with tf1.Session(address) as session:
        session.run(raw.LookupTableImportV2(table_handle=table, keys=["a", "b"], values=np.int64([1, 2])))
        log.value("found", session.run(raw.LookupTableFindV2(
            table_handle=table, keys=["b", "c"], default_value=np.int64(-1))))


@case
def a_mutable_table_is_not_filled_once(address, log):
    table = mutable(tf.string, tf.int64, name_of("t"))
    with tf1.Session(address) as session, log.refused("fill"):
        session.run(raw.InitializeTableV2(table_handle=table, keys=["a"], values=np.int64([1])))


@case
def entries_of_other_shapes(address, log):
    table = once(tf.int64, tf.int64, name_of("t"))
    keys, values = tf1.placeholder(tf.int64), tf1.placeholder(tf.int64)
    fill = raw.InitializeTableV2(table_handle=table, keys=keys, values=values)
    with tf1.Session(address) as session:
        for k, v in (([1, 2], [1]), ([1], 1), ([[1]], [[1]]), (1, 1)):
            with log.refused(f"{k} {v}"):
                session.run(fill, {keys: k, values: v})


@case
def tables_of_a_name_are_shared(address, log):
    name = name_of("shared")
    first, second = mutable(tf.string, tf.int64, name), mutable(tf.string, tf.int64, name)
    insert = raw.LookupTableInsertV2(table_handle=first, keys=["a"], values=np.int64([4]))
    find = raw.LookupTableFindV2(table_handle=second, keys=["a"], default_value=np.int64(-1))
    with tf1.Session(address) as session, tf1.Session(address) as other:
        session.run(insert)
        log.value("found", session.run(find))
        log.value("in another session", other.run(find))


@case
def tables_of_a_name_with_other_types(address, log):
    name = name_of("shared")
    first, second = mutable(tf.string, tf.int64, name), mutable(tf.string, tf.float32, name)
    third = mutable(tf.int64, tf.int64, name)
    with tf1.Session(address) as session:
        session.run(raw.LookupTableSizeV2(table_handle=first))
        for at, other in enumerate((second, third)):
            with log.refused(f"{at}"):
                session.run(raw.LookupTableSizeV2(table_handle=other))


@case
def tables_by_the_name_of_their_node(address, log):
    def make():
        return raw.MutableHashTableV2(key_dtype=tf.string, value_dtype=tf.int64, use_node_name_sharing=True,
                                      name="table_of_node_name")

    table = make()
    insert = raw.LookupTableInsertV2(table_handle=table, keys=["a"], values=np.int64([4]))
    size = raw.LookupTableSizeV2(table_handle=table)
    with tf1.Session(address) as session:
        session.run(insert)
        log.value("size", session.run(size))
    with tf1.Session(address) as session:
        log.value("in another session", session.run(size))


@case
def a_table_without_a_name(address, log):
    table = raw.MutableHashTableV2(key_dtype=tf.string, value_dtype=tf.int64)
    other = raw.MutableHashTableV2(key_dtype=tf.string, value_dtype=tf.int64)
    insert = raw.LookupTableInsertV2(table_handle=table, keys=["a"], values=np.int64([4]))
    with tf1.Session(address) as session:
        session.run(insert)
        log.value("kept between steps", session.run(raw.LookupTableSizeV2(table_handle=table)))
        log.value("of another node", session.run(raw.LookupTableSizeV2(table_handle=other)))


@case
def anonymous_tables(address, log):
    makers = (lambda: raw.AnonymousMutableHashTable(key_dtype=tf.int64, value_dtype=tf.float32),
              lambda: raw.AnonymousMutableHashTableOfTensors(
                  key_dtype=tf.int64, value_dtype=tf.float32, value_shape=[2]),
              lambda: raw.AnonymousMutableDenseHashTable(
                  empty_key=np.int64(-1), deleted_key=np.int64(-2), value_dtype=tf.float32, value_shape=[2]))
    with tf1.Session(address) as session:
        for at, make in enumerate(makers):
            table = make()
            values = np.float32([1, 2]) if at == 0 else np.float32([[1, 2], [3, 4]])
            insert = raw.LookupTableInsertV2(table_handle=table, keys=np.int64([5, 6]), values=values)
            with tf.control_dependencies([insert]):
                found = raw.LookupTableFindV2(
                    table_handle=table, keys=np.int64([6, 7]), default_value=np.zeros(values.shape[1:], np.float32))
            log.value(f"{at}", session.run(found))
            log.value(f"{at} anew", session.run(raw.LookupTableSizeV2(table_handle=table)))
        table = raw.AnonymousHashTable(key_dtype=tf.int64, value_dtype=tf.float32)
        fill = raw.InitializeTableV2(table_handle=table, keys=np.int64([5]), values=np.float32([2]))
        with tf.control_dependencies([fill]):
            log.value("filled", session.run(raw.LookupTableFindV2(
                table_handle=table, keys=np.int64([5, 6]), default_value=np.float32(0))))


@case
def a_reset_takes_tables_of_a_container(address, log):
    kept = raw.MutableHashTableV2(key_dtype=tf.string, value_dtype=tf.int64, shared_name=name_of("kept"),
                                  container="kept-tables")
    gone = mutable(tf.string, tf.int64, name_of("gone"))
    tables = (kept, gone)
    inserts = [raw.LookupTableInsertV2(table_handle=t, keys=["a"], values=np.int64([4])) for t in tables]
    sizes = [raw.LookupTableSizeV2(table_handle=t) for t in tables]
    with tf1.Session(address) as session:
        session.run(inserts)
        log.value("before", session.run(sizes))
    tf1.Session.reset(address)
    with tf1.Session(address) as session:
        log.value("after", session.run(sizes))
    tf1.Session.reset(address, ["kept-tables"])
    with tf1.Session(address) as session:
        log.value("at last", session.run(sizes))


def each_reference():
    """Tables of older graphs, which are references to names."""
    makers = {
        "a_table": lambda **options: raw.HashTable(key_dtype=tf.string, value_dtype=tf.int64, **options),
        "a_mutable_table": lambda **options: raw.MutableHashTable(
            key_dtype=tf.string, value_dtype=tf.int64, **options),
        "a_table_of_tensors": lambda **options: raw.MutableHashTableOfTensors(
            key_dtype=tf.string, value_dtype=tf.int64, value_shape=[2], **options),
    }
    for name, make in makers.items():
        def run(address, log, name=name, make=make):
            values = np.int64([1, 2]) if "tensors" not in name else np.int64([[1, 2], [3, 4]])
            for at, options in enumerate(({"shared_name": name_of("t")}, {}, {"use_node_name_sharing": True})):
                table = make(**options)
                fill = raw.InitializeTable if name == "a_table" else raw.LookupTableInsert
                filled = fill(table_handle=table, keys=["a", "b"], values=values)
                found = raw.LookupTableFind(table_handle=table, keys=["b", "c"], default_value=values[0])
                export = raw.LookupTableExport(table_handle=table, Tkeys=tf.string, Tvalues=tf.int64)
                with tf1.Session(address) as session:
                    session.run(filled)
                    log.value(f"{at} found", session.run([found, raw.LookupTableSize(table_handle=table)]))
                    log.same(f"{at} export", in_order(*session.run(export)))
                    with log.refused(f"{at} other keys"):
                        session.run(raw.LookupTableFind(table_handle=table, keys=np.int64([1]), default_value=values[0]))
                    log.value(f"{at} handle", session.run(tf.shape(table)))
        run.__name__ = f"{name}_by_reference"
        case(run)


each_reference()


@case
def two_graphs_share_a_table_by_reference(address, log):
    name = name_of("shared")

    def table():
        return raw.MutableHashTable(key_dtype=tf.string, value_dtype=tf.int64, shared_name=name)

    insert = raw.LookupTableInsert(table_handle=table(), keys=["a"], values=np.int64([5]))
    imported = raw.LookupTableImport(table_handle=table(), keys=["b"], values=np.int64([6]))
    size = raw.LookupTableFind(table_handle=table(), keys=["a", "b"], default_value=np.int64(-1))
    by_handle = raw.LookupTableSizeV2(table_handle=mutable(tf.string, tf.int64, name))
    with tf1.Session(address) as session, tf1.Session(address) as other:
        session.run(insert)
        log.value("inserted", other.run(size))
        other.run(imported)
        log.value("imported", session.run(size))
        log.value("by handle", session.run(by_handle))


@case
def a_handle_of_something_else(address, log):
    v = tf1.get_variable("v", initializer=np.float32(1), use_resource=True)
    with tf1.Session(address) as session:
        session.run(v.initializer)
        with log.refused("size"):
            session.run(raw.LookupTableSizeV2(table_handle=v.handle))


@case
def tables_of_tensors(address, log):
    for at, (key, value) in enumerate((("int64", np.float32), ("string", np.int64), ("int64", object))):
        keys = KEYS[key]
        values = np.arange(6).reshape(3, 2).astype(value) if value != object else np.array(
            [[b"a", b"b"], [b"c", b"d"], [b"", b"f"]], object)
        table = raw.MutableHashTableOfTensorsV2(key_dtype=dtype_of(keys), value_dtype=dtype_of(values),
                                                value_shape=[2], shared_name=name_of(f"t{at}"))
        default = values[1]
        insert = raw.LookupTableInsertV2(table_handle=table, keys=keys, values=values)
        remove = raw.LookupTableRemoveV2(table_handle=table, keys=keys[:1])
        found = raw.LookupTableFindV2(table_handle=table, keys=keys[::-1], default_value=default)
        per_key = raw.LookupTableFindV2(table_handle=table, keys=keys, default_value=values[::-1].copy())
        export = raw.LookupTableExportV2(table_handle=table, Tkeys=dtype_of(keys), Tvalues=dtype_of(values))
        with tf1.Session(address) as session:
            log.value(f"{at} empty", session.run(per_key))
            session.run(insert)
            log.value(f"{at} found", session.run(found))
            log.same(f"{at} export", in_order(*session.run(export)))
            session.run(remove)
            log.value(f"{at} removed", session.run([found, per_key]))


@case
def tables_of_tensors_of_other_shapes(address, log):
    with tf1.Session(address) as session:
        for at, shape in enumerate(([], [2, 2], None)):
            table = raw.MutableHashTableOfTensorsV2(
                key_dtype=tf.int64, value_dtype=tf.float32, value_shape=tf.TensorShape(shape),
                shared_name=name_of(f"t{at}"))
            with log.refused(f"{shape}"):
                session.run(raw.LookupTableSizeV2(table_handle=table))
        table = raw.MutableHashTableOfTensorsV2(
            key_dtype=tf.int64, value_dtype=tf.float32, value_shape=[2], shared_name=name_of("t"))
        values = tf1.placeholder(tf.float32)
        insert = raw.LookupTableInsertV2(table_handle=table, keys=np.int64([1, 2]), values=values)
        for shape in ([2], [2, 3], [1, 2]):
            with log.refused(f"insert {shape}"):
                session.run(insert, {values: np.zeros(shape, np.float32)})


@case
def a_table_through_the_client_s_classes(address, log):
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64)), -1)
    found = table.lookup(tf.constant(["b", "z", "a"]))
    with tf1.Session(address) as session:
        session.run(tf1.tables_initializer())
        log.value("found", session.run(found))


@case
def numbers_of_words_in_another_file(address, log):
    new, old = b"a\nb\nc\nd\n", b"c\nx\na\r\nz"

    def remap(paths, offset=0, count=4, size=-1):
        return raw.GenerateVocabRemapping(new_vocab_file=paths[0], old_vocab_file=paths[1], new_vocab_offset=offset,
                                          num_new_vocab=count, old_vocab_size=size)

    with files(new, old, b"a\nb\na\n", b"a\n\nb\n") as paths, tf1.Session(address) as session:
        log.value("all", session.run(remap(paths)))
        log.value("some", session.run(remap(paths, 1, 2)))
        log.value("few old ones", session.run(remap(paths, 0, 4, 2)))
        log.value("none", session.run(remap(paths, 4, 0)))
        for name, make in {"too many": lambda: remap(paths, 1, 4), "too few old ones": lambda: remap(paths, 0, 1, 5),
                           "twice": lambda: remap([paths[0], paths[2]]), "empty line": lambda: remap([paths[3], paths[1]]),
                           "no file": lambda: remap([paths[0] + "-missing", paths[1]])}.items():
            with log.refused(name):
                session.run(make())
