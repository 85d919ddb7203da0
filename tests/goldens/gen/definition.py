"""Definitions of ops that TensorFlow has not, or defines otherwise."""

import tensorflow as tf
from tensorflow.core.framework import op_def_pb2


def define(name, inputs, attrs):
    """An op whose elements are of type T; `inputs` as Tenon writes them ("x: T", "args: num_args * T"), `attrs` as
    (kind, default), with None where there is no default."""
    op = op_def_pb2.OpDef(name=name)
    op.attr.add(name="T", type="type")
    for text in inputs:
        arg, kind = text.split(": ")
        *number, dtype = kind.split(" * ")
        made = op.input_arg.add(name=arg, number_attr="".join(number))
        if dtype == "T":
            made.type_attr = "T"
        else:
            made.type = tf.as_dtype(dtype).as_datatype_enum
        for count in number:
            op.attr.add(name=count, type="int")
    op.output_arg.add(name="output", type_attr="T")
    for attr, (kind, default) in attrs.items():
        made = op.attr.add(name=attr, type=kind)
        if default is not None:
            set_default(made.default_value, kind, default)
    return op


def set_default(value, kind, default):
    """Fills a default of one of the kinds that definitions have."""
    if kind == "list(int)":
        value.list.i.extend(default)
    elif kind == "string":
        value.s = default.encode()
    else:
        setattr(value, {"bool": "b", "float": "f", "int": "i"}[kind], default)
