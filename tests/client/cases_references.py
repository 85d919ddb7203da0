"""Stacks and arrays of older graphs, which reach them by references."""

import numpy as np
import tensorflow as tf
from google.protobuf import text_format

from harness import case

tf1 = tf.compat.v1
raw = tf.raw_ops


@case
def a_stack_by_reference(address, log):
    stack = raw.Stack(elem_type=tf.float32, stack_name="s")
    first = raw.StackPush(handle=stack, elem=np.float32([1, 2]), swap_memory=False)
    with tf1.control_dependencies([first]):
        second = raw.StackPush(handle=stack, elem=np.float32([3]), swap_memory=False)
    with tf1.control_dependencies([second]):
        top = raw.StackPop(handle=stack, elem_type=tf.float32)
    with tf1.control_dependencies([top]):
        bottom = raw.StackPop(handle=stack, elem_type=tf.float32)
    with tf1.control_dependencies([bottom]):
        empty = raw.StackPop(handle=stack, elem_type=tf.float32)
        close = raw.StackClose(handle=stack)
    with tf1.control_dependencies([close]):
        closed = raw.StackPush(handle=stack, elem=np.float32([4]), swap_memory=False)
    with tf1.Session(address) as session:
        log.value("popped", session.run([top, bottom]))
        with log.refused("empty"):
            session.run(empty)
        with log.refused("closed"):
            session.run(closed)


def old_graph():
    """A graph as of 2016: graphs of later producers may not have its ops of arrays."""
    text = """
    versions { producer: 15 }
    node { name: "size" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 3 } } } }
    node { name: "flow" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 0 } } } }
    node { name: "rows" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "lengths" op: "Placeholder" attr { key: "dtype" value { type: DT_INT64 } } }
    node { name: "index" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } }
    node { name: "array" op: "TensorArray" input: "size" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "clear_after_read" value { b: false } } }
    node { name: "unpack" op: "TensorArrayUnpack" input: "array" input: "rows" input: "flow"
      attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "split" op: "TensorArraySplit" input: "array" input: "rows" input: "lengths" input: "flow"
      attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "element" op: "TensorArrayRead" input: "array" input: "index" input: "unpack"
      attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "pack" op: "TensorArrayPack" input: "array" input: "unpack"
      attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "concat" op: "TensorArrayConcat" input: "array" input: "split"
      attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "count" op: "TensorArraySize" input: "array" input: "unpack" }
    node { name: "grad" op: "TensorArrayGrad" input: "array" input: "unpack"
      attr { key: "source" value { s: "g" } } }
    node { name: "write" op: "TensorArrayWrite" input: "grad" input: "index" input: "element" input: "unpack"
      attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "grads" op: "TensorArrayPack" input: "grad" input: "write"
      attr { key: "dtype" value { type: DT_FLOAT } } }
    """
    graph_def = tf1.GraphDef()
    text_format.Parse(text, graph_def)
    tf1.import_graph_def(graph_def, name="")


@case
def an_array_by_reference(address, log):
    old_graph()
    rows = np.float32([[1, 2], [3, 4], [5, 6]])
    with tf1.Session(address) as session:
        feeds = {"rows:0": rows, "index:0": 1}
        for name in ("element", "pack", "count", "grads"):
            log.value(name, session.run(f"{name}:0", feeds))
        feeds = {"rows:0": rows, "lengths:0": np.int64([0, 2, 1])}
        log.value("concat", session.run(["concat:0", "concat:1"], feeds))
        with log.refused("rows"):
            session.run("pack:0", {"rows:0": rows[:2]})
        with log.refused("index"):
            session.run("element:0", {"rows:0": rows, "index:0": 3})
