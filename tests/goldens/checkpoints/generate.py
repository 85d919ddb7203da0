"""Checkpoints as TensorFlow writes them, of both formats, and what they hold (expected.json).

    python generate.py      writes beside itself; needs ../requirements.txt

Values follow from names and positions, so that another run writes the same tensors.
"""

import json
import os
import shutil

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import ml_dtypes
import numpy as np
import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
RAW = tf.raw_ops

NUMBERS = {
    "float": np.float32, "double": np.float64, "half": np.float16, "bfloat16": ml_dtypes.bfloat16,
    "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64,
    "bool": np.bool_, "complex64": np.complex64, "complex128": np.complex128,
}
QUANTIZED = {"qint8": "int8", "quint8": "uint8", "qint32": "int32"}
# What V1 files have no place for.
V2_ONLY = ("bfloat16", "uint32", "uint64")


def values(name, shape):
    """Values of a type: small ones with both signs where the type has them, and its extremes."""
    kind = NUMBERS[QUANTIZED.get(name, name)]
    count = int(np.prod(shape))
    found = np.array([(7 * at + len(name)) % 11 - 4 for at in range(count)])
    if name.startswith("u") or name == "quint8":
        found = np.abs(found)
    if name == "bool":
        return (found % 2 == 0).reshape(shape)
    found = found.astype(kind)
    if np.issubdtype(kind, np.complexfloating):
        found = found + kind(1j) * np.roll(found, 1)
    elif np.issubdtype(kind, np.integer) and count:
        found[0], found[-1] = np.iinfo(kind).max, np.iinfo(kind).min
    elif name in ("float", "double") and count > 2:
        found[0], found[1] = np.inf, -0.0
    return found.reshape(shape).astype(kind)


def tensor(name, shape):
    value = tf.constant(values(name, shape))
    return tf.bitcast(value, getattr(tf, name)) if name in QUANTIZED else value



def expected(name, kind, value):
    """What a reader has to find."""
    if kind == "string":
        flat = [one.hex() for one in np.asarray(value, object).reshape(-1)]
        return {"name": name, "dtype": kind, "shape": list(np.shape(value)), "strings": flat}
    return {"name": name, "dtype": kind, "shape": list(value.shape), "hex": value.tobytes().hex()}


def save(prefix, named):
    names = [name for name, _ in named]
    RAW.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names), tensors=[v for _, v in named])


def whole(out):
    """Every type, scalars, tensors without elements."""
    kinds = list(NUMBERS) + list(QUANTIZED)
    named, found = [], []
    for kind in kinds:
        for label, shape in (("", (2, 3)), ("/scalar", ()), ("/empty", (0, 2))):
            named.append((kind + label, tensor(kind, shape)))
            found.append(expected(kind + label, kind, values(kind, shape)))
    save("whole", named)
    out["whole"] = found
    kept = [(n, v) for n, v in named if n.split("/")[0] not in V2_ONLY]
    RAW.Save(filename="old", tensor_names=[n for n, _ in kept], data=[v for _, v in kept])
    out["old"] = [one for one in found if one["dtype"] not in V2_ONLY]


def strings(out):
    long = b"x" * 300
    values = {
        "some": np.array([[b"ab", b"", long], ["größe".encode(), b"\0\xff", b"z"]], object),
        "one": np.array(b"scalar", object),
        "none": np.zeros((0,), object),
    }
    named = [(name, tf.constant(value.tolist(), tf.string, shape=value.shape)) for name, value in values.items()]
    save("strings", named)
    out["strings"] = [expected(name, "string", value) for name, value in values.items()]
    RAW.Save(filename="old_strings", tensor_names=[n for n, _ in named], data=[v for _, v in named])
    out["old_strings"] = out["strings"]


def slices(out):
    """Tensors in parts, of numbers and of strings."""
    full = np.arange(12, dtype=np.float32).reshape(4, 3)
    words = np.array([b"w%d" % at for at in range(70)], object)
    parts = [
        ("rows", "4 3 0,1:-", full[:1]), ("rows", "4 3 1,3:-", full[1:]),
        ("boxes", "4 3 0,4:0,2", full[:, :2]), ("boxes", "4 3 0,2:2,1", full[:2, 2:]), ("boxes", "4 3 2,2:2,1", full[2:, 2:]),
        ("words", "70 0,64", words[:64]), ("words", "70 64,6", words[64:]),
        ("full", "4 3 0,4:0,3", full),
    ]
    tensors = [tf.constant(v.tolist(), tf.string) if v.dtype == object else tf.constant(v) for _, _, v in parts]
    names, specs = [n for n, _, _ in parts], [s for _, s, _ in parts]
    RAW.SaveV2(prefix="sliced", tensor_names=names, shape_and_slices=specs, tensors=tensors)
    RAW.SaveSlices(filename="old_sliced", tensor_names=names, shapes_and_slices=specs, data=tensors)
    found = [expected(name, "float", full) for name in ("boxes", "full", "rows")] + [expected("words", "string", words)]
    out["sliced"] = out["old_sliced"] = found


def sharded(out):
    """Two data files under one index, and two V1 files of one pattern."""
    a, b, c = (np.arange(n, dtype=np.int64) for n in (3, 4, 5))
    save("part0", [("a", tf.constant(a)), ("c", tf.constant(c))])
    save("part1", [("b", tf.constant(b))])
    RAW.MergeV2Checkpoints(checkpoint_prefixes=["part0", "part1"], destination_prefix="sharded", delete_old_dirs=False)
    out["sharded"] = [expected(n, "int64", v) for n, v in (("a", a), ("b", b), ("c", c))]
    RAW.Save(filename="old_sharded-00000-of-00002", tensor_names=["a", "c"], data=[a, c])
    RAW.Save(filename="old_sharded-00001-of-00002", tensor_names=["b"], data=[b])
    out["old_sharded-?????-of-?????"] = out["sharded"]


def objects(out):
    """A checkpoint of Python objects."""
    model = tf.Module()
    model.w = tf.Variable(np.arange(6, dtype=np.float32).reshape(2, 3))
    model.inner = tf.Module()
    model.inner.b = tf.Variable(np.array([1.5, -2.5]))
    tf.train.Checkpoint(model=model).write("objects")
    suffix = "/.ATTRIBUTES/VARIABLE_VALUE"
    out["objects"] = [
        expected("model/inner/b" + suffix, "double", model.inner.b.numpy()),
        expected("model/w" + suffix, "float", model.w.numpy()),
    ]


def variants(out):
    """A list of tensors, as a variant; only its message can be compared."""
    items = RAW.TensorListFromTensor(tensor=tf.constant([[1.0, 2.0], [3.0, 4.0]]), element_shape=tf.constant([2]))
    save("variants", [("list", items), ("other", tf.constant(np.int32(7)))])
    out["variants"] = [expected("other", "int32", np.int32(7).reshape(()))]


def main():
    for name in os.listdir(HERE):
        if name.endswith((".index", "-of-00001", "-of-00002")) or name.startswith("old"):
            os.remove(os.path.join(HERE, name))
    os.chdir(HERE)
    out = {}
    for make in (whole, strings, slices, sharded, objects, variants):
        make(out)
    shutil.rmtree("__pycache__", ignore_errors=True)
    with open("expected.json", "w") as file:
        rows = [f'"{name}": [\n' + ",\n".join(json.dumps(one) for one in found) + "]" for name, found in out.items()]
        file.write("{\n" + ",\n".join(rows) + "}\n")


main()
