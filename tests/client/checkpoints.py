"""Checkpoints between TensorFlow and `tenon checkpoint`: each reads what the other wrote.

    python checkpoints.py TENON

TensorFlow writes bundles of seeded tensors; `tenon checkpoint convert` writes each again, and must give the same files.
Archives of NumPy become bundles, which TensorFlow reads; bundles become archives and safetensors, which are compared.
Graphs with the ops that save and restore are run by `tenon run`.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

RAW = tf.raw_ops
KINDS = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
         "bool", "complex64", "complex128"]


def tensors(seed, count):
    """Named tensors of all types, shapes and sizes, some of them strings."""
    random = np.random.default_rng(seed)
    found = {}
    for at in range(count):
        name = f"layer_{random.integers(40)}/block_{at}/kernel"
        shape = tuple(random.integers(0, 6, random.integers(0, 4)))
        kind = KINDS[at % len(KINDS)]
        value = (random.standard_normal(shape) * 50).astype(kind) if at % 9 else random.integers(0, 2, shape).astype(kind)
        found[name] = np.asarray(value)
    for at in range(count // 10):
        texts = [random.bytes(int(size)) for size in random.integers(0, 300, 4)]
        found[f"texts/{at}"] = np.array(texts, object).reshape(2, 2)
    return found


def constant(value):
    return tf.constant(value.tolist(), tf.string, shape=value.shape) if value.dtype == object else tf.constant(value)


def save_with(prefix, named):
    RAW.SaveV2(prefix=prefix, tensor_names=list(named), shape_and_slices=[""] * len(named),
               tensors=[constant(value) for value in named.values()])


def same_files(a, b):
    for end in (".index", ".data-00000-of-00001"):
        with open(a + end, "rb") as first, open(b + end, "rb") as second:
            assert first.read() == second.read(), f"{a}{end} and {b}{end} differ"


def same(found, expected, name):
    found = np.asarray(found, expected.dtype)
    assert found.shape == expected.shape, f"{name}: {found.shape}, expected {expected.shape}"
    equal = (found == expected).all() if expected.dtype == object else found.tobytes() == expected.tobytes()
    assert equal, name


def graph(path, make):
    """Writes a graph as a file."""
    with tf.Graph().as_default() as made:
        make()
        with open(path, "wb") as file:
            file.write(made.as_graph_def().SerializeToString())


def through_ops(run, folder):
    """Ours save, of both formats and in parts, and TensorFlow reads; TensorFlow saves, and ours restore."""
    named = tensors(20, 60)
    names, values = list(named), list(named.values())
    whole, old, sliced = (os.path.join(folder, name) for name in ("ops", "ops_old", "ops_sliced"))

    def save():
        RAW.SaveV2(prefix=whole, tensor_names=names, shape_and_slices=[""] * len(names),
                   tensors=[constant(value) for value in values], name="save")

    graph(folder + "/save.pb", save)
    run(folder + "/save.pb", "--target", "save")
    save_eagerly = os.path.join(folder, "eager")
    save_with(save_eagerly, named)
    same_files(whole, save_eagerly)

    kept = {name: value for name, value in named.items() if value.dtype.name not in ("uint32", "uint64")}
    graph(folder + "/old.pb", lambda: RAW.Save(
        filename=old, tensor_names=list(kept), data=[constant(value) for value in kept.values()], name="save"))
    run(folder + "/old.pb", "--target", "save")
    for name, value in kept.items():
        same(RAW.Restore(file_pattern=old, tensor_name=name, dt=constant(value).dtype).numpy(), value, name)

    full = np.arange(40, dtype=np.float32).reshape(10, 4)
    specs = ["10 4 0,3:-", "10 4 3,7:0,1", "10 4 3,7:1,3"]
    parts = [full[:3], full[3:, :1], full[3:, 1:]]
    options = {"tensor_names": ["x"] * 3, "shape_and_slices": specs}
    graph(folder + "/slices.pb", lambda: RAW.SaveV2(
        prefix=sliced, tensors=[tf.constant(part) for part in parts], name="save", **options))
    run(folder + "/slices.pb", "--target", "save")
    theirs = os.path.join(folder, "theirs_sliced")
    RAW.SaveV2(prefix=theirs, tensors=[tf.constant(part) for part in parts], **options)
    same_files(sliced, theirs)

    numbers = [name for name in names if named[name].dtype != object]
    kinds = [constant(named[name]).dtype for name in numbers]
    graph(folder + "/restore.pb", lambda: RAW.RestoreV2(
        prefix=save_eagerly, tensor_names=numbers, shape_and_slices=[""] * len(numbers), dtypes=kinds, name="restore"))
    out = os.path.join(folder, "out")
    run(folder + "/restore.pb", "--fetch", *[f"restore:{at}" for at in range(len(numbers))], "--out", out)
    files = {int(file.rpartition("_")[2].partition(".")[0]): file for file in os.listdir(out) if "_" in file}
    for at, name in enumerate(numbers):
        same(np.load(os.path.join(out, files[at])), named[name], name)
    return len(names) + len(kept) + 1 + len(numbers)


# Element types of lists that are saved.
LISTED = ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "uint16", "int32", "int64", "uint32",
          "uint64", "bool", "complex64", "complex128"]


def list_of(kind):
    """A list of three elements of a type, one of which is not set, as a variant."""
    value = tf.cast(tf.constant([[1, 0], [-2, 3]] if not kind.startswith("u") else [[1, 0], [2, 3]]), kind)
    filled = RAW.TensorListFromTensor(tensor=value, element_shape=tf.constant([2], tf.int32))
    return RAW.TensorListResize(input_handle=filled, size=3)


def variants():
    """Lists of all types, of strings and of lists, several in one tensor, and names for them."""
    lists = {f"lists/{kind}": list_of(kind) for kind in LISTED}
    words = RAW.TensorListFromTensor(tensor=tf.constant(["a", "", "words"]), element_shape=tf.constant([], tf.int32))
    nested = RAW.TensorListReserve(element_shape=tf.constant([], tf.int32), num_elements=2, element_dtype=tf.variant)
    nested = RAW.TensorListSetItem(input_handle=nested, index=1, item=words)
    several = tf.stack([lists["lists/float32"], words])
    return lists | {"lists/words": words, "lists/nested": nested, "lists/several": several}


def shown(name, handle):
    """The elements of a list that was restored, as tensors."""
    if name == "lists/several":
        return [element for one in tf.unstack(handle) for element in shown("lists/" + name, one)]
    if name == "lists/nested":
        inner = RAW.TensorListGetItem(input_handle=handle, index=1, element_shape=tf.constant([], tf.int32),
                                      element_dtype=tf.variant)
        return [RAW.TensorListLength(input_handle=handle), RAW.TensorListLength(input_handle=inner)]
    return [RAW.TensorListLength(input_handle=handle)]


def variants_through_ops(run, folder):
    """Ours save lists, and TensorFlow's files of the same lists are the same; ours restore them and save them again."""
    names = sorted(variants())
    options = {"tensor_names": names, "shape_and_slices": [""] * len(names)}
    ours, theirs, again = (os.path.join(folder, name) for name in ("lists", "lists_theirs", "lists_again"))

    def save():
        made = variants()
        RAW.SaveV2(prefix=ours, tensors=[made[name] for name in names], name="save", **options)

    def save_again():
        restored = RAW.RestoreV2(prefix=theirs, dtypes=[tf.variant] * len(names), **options)
        RAW.SaveV2(prefix=again, tensors=restored, name="save", **options)

    made = variants()
    RAW.SaveV2(prefix=theirs, tensors=[made[name] for name in names], **options)
    graph(folder + "/save_lists.pb", save)
    run(folder + "/save_lists.pb", "--target", "save")
    same_files(ours, theirs)
    graph(folder + "/restore_lists.pb", save_again)
    run(folder + "/restore_lists.pb", "--target", "save")
    same_files(again, theirs)
    restored = RAW.RestoreV2(prefix=ours, dtypes=[tf.variant] * len(names), **options)
    for name, handle in zip(names, restored):
        for found, expected in zip(shown(name, handle), shown(name, made[name])):
            assert found == expected, f"{name}: {found}, expected {expected}"
    return 2 * len(names)


def main():
    begin, command = time.time(), os.path.abspath(sys.argv[1])

    def tenon(*arguments):
        done = subprocess.run([command, "checkpoint", *arguments, "--json"], capture_output=True, text=True)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
        return json.loads(done.stdout)

    def run(*arguments):
        done = subprocess.run([command, "run", *arguments], capture_output=True, text=True)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"

    count = 0
    with tempfile.TemporaryDirectory() as folder:
        def path(name):
            return os.path.join(folder, name)

        # Enough names for several blocks of an index in the last one.
        for seed, size in enumerate((1, 30, 300, 6000)):
            # In the order of the names, in which the command writes.
            named = dict(sorted(tensors(seed, size).items()))
            save_with(path("theirs"), named)
            listed = tenon("list", path("theirs"))["tensors"]
            assert [one["name"] for one in listed] == list(named)
            tenon("convert", path("theirs"), path(f"ours{seed}"))
            same_files(path("theirs"), path(f"ours{seed}"))
            reader = tf.train.load_checkpoint(path(f"ours{seed}"))
            for name, value in named.items():
                same(reader.get_tensor(name), value, name)
            count += len(named)

        numbers = {name: value for name, value in tensors(9, 200).items() if value.dtype != object}
        np.savez(path("numbers.npz"), **numbers)
        tenon("convert", path("numbers.npz"), path("from_npz"))
        # Over a checkpoint that is there already: the data file gets another name, and TensorFlow reads it as well.
        tenon("convert", path("numbers.npz"), path("from_npz"))
        assert not os.path.exists(path("from_npz.data-00000-of-00001"))
        reader = tf.train.load_checkpoint(path("from_npz"))
        for name, value in numbers.items():
            same(reader.get_tensor(name), value, name)
        assert sorted(reader.get_variable_to_shape_map()) == sorted(numbers)
        tenon("convert", path("from_npz"), path("back.npz"))
        with np.load(path("back.npz")) as back:
            for name, value in numbers.items():
                same(back[name], value, name)
        tenon("convert", path("from_npz"), path("x.safetensors"), "--skip")
        with open(path("x.safetensors"), "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
            data = file.read()
        for name, one in header.items():
            assert data[slice(*one["data_offsets"])] == numbers[name].tobytes(), name
        count += 3 * len(numbers)
        save_with(path("from_npz"), numbers)
        assert tenon("diff", path("from_npz"), path("numbers.npz"))["differences"] == []
        count += through_ops(run, folder)
        count += variants_through_ops(run, folder)
    print(f"checkpoints: {count} tensors agree, {time.time() - begin:.0f} s")


main()
