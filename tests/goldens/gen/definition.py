"""Definitions of ops that TensorFlow has not, or defines otherwise."""

import tensorflow as tf
from tensorflow.core.framework import op_def_pb2


def define(name, inputs, attrs, output="T"):
    """An op; `inputs` as Tenon writes them ("x: T", "args: num_args * T"), `attrs` as (kind, default), with None where
    there is no default, `output` the attribute that is its type."""
    op = op_def_pb2.OpDef(name=name)
    for text in inputs:
        arg, kind = text.split(": ")
        *number, dtype = kind.split(" * ")
        made = op.input_arg.add(name=arg, number_attr="".join(number))
        if dtype.startswith("T"):
            made.type_attr = dtype
            add_type(op, dtype)
        else:
            made.type = tf.as_dtype(dtype).as_datatype_enum
        for count in number:
            op.attr.add(name=count, type="int")
    op.output_arg.add(name="output", type_attr=output)
    add_type(op, output)
    for attr, (kind, default) in attrs.items():
        made = op.attr.add(name=attr, type=kind)
        if default is not None:
            set_default(made.default_value, kind, default)
    return op


def add_type(op, name):
    """An attribute of type `type`, once."""
    if all(attr.name != name for attr in op.attr):
        op.attr.add(name=name, type="type")


def set_default(value, kind, default):
    """Fills a default of one of the kinds that definitions have."""
    if kind == "list(int)":
        value.list.i.extend(default)
    elif kind == "string":
        value.s = default.encode()
    else:
        setattr(value, {"bool": "b", "float": "f", "int": "i"}[kind], default)
