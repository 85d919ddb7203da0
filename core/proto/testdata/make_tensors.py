"""Writes tensors.txt: TensorProtos as TensorFlow makes them, and the bytes that TensorFlow reads from them.

Run with TensorFlow 2.21. One line per tensor: name, dtype, dimensions (comma-separated, `-` for a scalar),
the message and the elements in row-major little-endian order, both in hexadecimal; strings as their lengths
and hexadecimal bytes, `length:bytes`, comma-separated.
"""

import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2

NUMERIC = [
    "float32", "float64", "int32", "uint8", "int16", "int8", "complex64", "int64", "bool", "bfloat16",
    "uint16", "complex128", "float16", "uint32", "uint64", "qint8", "quint8", "qint16", "quint16", "qint32",
]


def integer(dtype):
    """NumPy's integers of this size; those that hold the values of a quantised type."""
    return np.dtype(dtype.name.removeprefix("q"))


def values(dtype):
    if dtype.is_bool:
        return [True, False, True, True, False, True]
    if dtype.is_complex:
        return [1 + 2j, -0.5 - 0.0j, float("inf"), 0, 3j, -7.25]
    if dtype.is_floating:
        return [1.5, -0.0, float("inf"), float("nan"), 1e-3, -7.25]
    info = np.iinfo(integer(dtype))
    low, high = int(info.min), int(info.max)
    return [low, high, 0, 1, low + 1 if low else 7, high - 1]


def line(name, proto):
    array = np.asarray(tf.io.parse_tensor(proto.SerializeToString(), tf.DType(proto.dtype)).numpy())
    dtype = tf.DType(proto.dtype)
    dims = ",".join(str(d.size) for d in proto.tensor_shape.dim) or "-"
    if dtype == tf.string:
        data = ",".join(f"{len(s)}:{s.hex()}" for s in np.asarray(array, object).ravel()) or "-"
    else:
        data = array.tobytes().hex() or "-"
    return f"{name} {dtype.name} {dims} {proto.SerializeToString().hex()} {data}"


def in_fields(dtype, array, shape):
    """The same tensor with its values in the list of its type."""
    proto = tensor_pb2.TensorProto(dtype=dtype.as_datatype_enum)
    proto.tensor_shape.CopyFrom(tf.TensorShape(shape).as_proto())
    for item in np.asarray(array).ravel():
        append(proto, dtype, item)
    return proto


def in_content(dtype, array):
    """The same tensor in tensor_content; as TensorFlow's runtime writes it where that takes the type."""
    proto = in_fields(dtype, array, array.shape)
    if dtype.is_quantized:
        proto.ClearField("int_val")
        proto.tensor_content = array.tobytes()
        return proto
    tensor = tf.io.parse_tensor(proto.SerializeToString(), dtype)
    return tensor_pb2.TensorProto.FromString(tf.io.serialize_tensor(tensor).numpy())


def append(proto, dtype, item):
    name = dtype.name
    if name in ("half", "float16", "bfloat16"):
        proto.half_val.append(int(np.asarray(item).view(np.uint16)))
    elif name == "complex64":
        proto.scomplex_val.extend([float(item.real), float(item.imag)])
    elif name == "complex128":
        proto.dcomplex_val.extend([float(item.real), float(item.imag)])
    elif name == "float32":
        proto.float_val.append(float(item))
    elif name == "float64":
        proto.double_val.append(float(item))
    elif name == "bool":
        proto.bool_val.append(bool(item))
    elif name in ("int64", "uint64", "uint32"):
        getattr(proto, name + "_val").append(int(item))
    else:
        proto.int_val.append(int(item))


def main():
    lines = []
    for name in NUMERIC:
        dtype = tf.as_dtype(name)
        base = np.array(values(dtype), integer(dtype) if dtype.is_integer or dtype.is_quantized else
                        dtype.as_numpy_dtype)
        array = base.reshape(2, 3)
        lines.append(line("content", in_content(dtype, array)))
        lines.append(line("scalar", in_content(dtype, array[0, 0])))
        lines.append(line("empty", in_content(dtype, array[:, :0])))
        lines.append(line("list", in_fields(dtype, array, [2, 3])))
        lines.append(line("splat", in_fields(dtype, array[0, :2], [5, 2])))
        lines.append(line("splat_zero", in_fields(dtype, array[0, :0], [3])))
    for text in [[b"", b"a", b"longer \xff\x00"], []]:
        lines.append(line("string", tf.make_tensor_proto(text, tf.string, shape=[len(text)])))
    splat = tf.make_tensor_proto([b"x", b"yz"], tf.string)
    splat.tensor_shape.CopyFrom(tf.TensorShape([2, 2]).as_proto())
    lines.append(line("splat_string", splat))
    pathlib.Path(__file__).with_name("tensors.txt").write_text("\n".join(lines) + "\n")


main()
