"""Handles and variants as messages: what a step gives is given to a later one. TensorFlow's own client cannot feed them."""

import grpc
import numpy as np
import tensorflow as tf
from tensorflow.core.framework import resource_handle_pb2, tensor_pb2

from harness import case
from lists import empty, put, reserve, rows, stack
from wire import Wire

tf1 = tf.compat.v1
raw = tf.raw_ops


def value(answer):
    """The arrays of an answer, or the code of a refusal."""
    return answer if isinstance(answer, str) else [tf.make_ndarray(tensor) for tensor in answer]


def logged(log, name, answer):
    answer = value(answer)
    if isinstance(answer, str):
        log.same(name, answer)
    else:
        log.value(name, answer)


def fed(dtype, name="fed"):
    return tf1.placeholder(dtype, [], name=name)


@case
def a_variable_by_its_handle(address, log):
    v = raw.VarHandleOp(dtype=tf.float32, shape=[2], shared_name="by_handle", container="")
    assign = raw.AssignVariableOp(resource=v, value=np.float32([1, 2]))
    handle = fed(tf.resource)
    read = raw.ReadVariableOp(resource=handle, dtype=tf.float32)
    add = raw.AssignAddVariableOp(resource=handle, value=np.float32([10, 20]))
    destroy = raw.DestroyResourceOp(resource=handle, ignore_lookup_error=False)
    size = raw.QueueSizeV2(handle=handle)
    with Wire(address) as session:
        session.run(targets=[assign.name])
        given, = session.run([v.name])
        log.same("type", given.dtype)
        feeds = {handle.name: given}
        logged(log, "read", session.run([read.name], feeds))
        logged(log, "updated", session.run(feeds=feeds, targets=[add.name]))
        logged(log, "again", session.run([read.name], feeds))
        logged(log, "through an Identity", session.run([read.name], {handle.name: session.run([v.name])[0]}))
        log.same("as a queue", isinstance(session.run([size.name], feeds), str))
        with Wire(address) as other:
            logged(log, "in another session", other.run([read.name], feeds))
        logged(log, "removed", session.run(feeds=feeds, targets=[destroy.name]))
        log.same("read when removed", isinstance(session.run([read.name], feeds), str))


@case
def queues_by_their_handles(address, log):
    handle = fed(tf.resource)
    size = raw.QueueSizeV2(handle=handle)
    take = raw.QueueDequeueV2(handle=handle, component_types=[tf.float32])
    number = tf1.placeholder(tf.float32, [])
    made = {name: raw.FIFOQueueV2(component_types=[tf.float32], shapes=[[]], shared_name=name)
            for name in ("", "shared_by_handle")}
    adds = {name: raw.QueueEnqueueV2(handle=queue, components=[number]) for name, queue in made.items()}
    with Wire(address) as session:
        for name, queue in made.items():
            for at in (3., 4.):
                session.run(feeds={number.name: tf.make_tensor_proto(at)}, targets=[adds[name].name])
            given, = session.run([queue.name])
            feeds = {handle.name: given}
            logged(log, f"size {name}", session.run([size.name], feeds))
            logged(log, f"taken {name}", session.run([take[0].name], feeds))
            logged(log, f"size after {name}", session.run([size.name], feeds))


@case
def an_iterator_by_its_handle(address, log):
    iterator = raw.IteratorV2(shared_name="by_handle", container="", output_types=[tf.int64], output_shapes=[[]])
    make = raw.MakeIterator(dataset=tf1.data.Dataset.range(3, 6)._variant_tensor, iterator=iterator)
    handle = fed(tf.resource)
    following = raw.IteratorGetNext(iterator=handle, output_types=[tf.int64], output_shapes=[[]])
    with Wire(address) as session:
        session.run(targets=[make.name])
        given, = session.run([iterator.name])
        for at in range(4):
            logged(log, str(at), session.run([following[0].name], {handle.name: given}))


@case
def handles_that_lead_nowhere(address, log):
    handle = fed(tf.resource)
    size = raw.QueueSizeV2(handle=handle)

    def message(**fields):
        proto = tensor_pb2.TensorProto(dtype=20)
        proto.tensor_shape.SetInParent()
        proto.resource_handle_val.append(resource_handle_pb2.ResourceHandleProto(**fields))
        return proto

    bad = tensor_pb2.TensorProto(dtype=20, tensor_content=b"\x7fshort")
    bad.tensor_shape.SetInParent()
    with Wire(address) as session:
        for name, proto in (("nothing", message()), ("absent", message(name="absent", container="localhost")),
                            ("another device", message(name="absent", device="/job:nowhere/task:7/device:CPU:0")),
                            ("bytes that are no message", bad)):
            log.same(name, isinstance(session.run([size.name], {handle.name: proto}), str))


@case
def lists_as_messages(address, log):
    given = tf1.placeholder(tf.variant, [])
    stacked, length = stack(given, shape=[2]), raw.TensorListLength(input_handle=given)
    lists = {"rows": rows(tf.constant([[1., 2.], [3., 4.]]), [2]), "empty": empty(shape=[2]),
             "unset": put(reserve(3, shape=[2]), 1, tf.constant([5., 6.])),
             "any": empty(), "of rows": empty(shape=[-1, 3])}
    lists["text"] = rows(tf.constant(["a", "bc", ""]), [])
    lists["of lists"] = raw.TensorListPushBack(
        input_handle=empty(tf.variant, []), tensor=rows(tf.constant([[7., 8.]]), [2]))
    with Wire(address) as session:
        for name, handle in lists.items():
            answer = session.run([handle.name])
            log.same(f"{name} as bytes", answer[0].tensor_content.hex() if name in ("empty", "any", "of rows") else "")
            feeds = {given.name: answer[0]}
            logged(log, f"{name} length", session.run([length.name], feeds))
            if name in ("rows", "unset"):
                logged(log, name, session.run([stacked.name], feeds))


@case
def optional_values_as_messages(address, log):
    given = tf1.placeholder(tf.variant, [])
    has = raw.OptionalHasValue(optional=given)
    get = raw.OptionalGetValue(optional=given, output_types=[tf.float32, tf.int64], output_shapes=[[2], []])
    values = {"some": raw.OptionalFromValue(components=[tf.constant([1., 2.]), tf.constant(7, tf.int64)]),
              "nothing": raw.OptionalNone()}
    with Wire(address) as session:
        for name, optional in values.items():
            answer, = session.run([optional.name])
            log.same(f"{name} begins", answer.tensor_content[:34].hex()[2:])
            logged(log, f"{name} has", session.run([has.name], {given.name: answer}))
            logged(log, f"{name} is", session.run([part.name for part in get], {given.name: answer}))


@case
def a_map_as_a_message(address, log):
    given = tf1.placeholder(tf.variant, [])
    size = raw.TensorMapSize(input_handle=given)
    lookup = raw.TensorMapLookup(input_handle=given, key=2, value_dtype=tf.float32)
    made = raw.TensorMapInsert(input_handle=raw.TensorMapInsert(
        input_handle=raw.EmptyTensorMap(), key=1, value=[1.]), key=2, value=[2., 3.])
    with Wire(address) as session:
        answer, = session.run([made.name])
        logged(log, "size", session.run([size.name], {given.name: answer}))
        logged(log, "value", session.run([lookup.name], {given.name: answer}))


@case
def variants_that_are_none(address, log):
    given = tf1.placeholder(tf.variant, [])
    length = raw.TensorListLength(input_handle=given)

    def message(type_name, metadata=b""):
        proto = tensor_pb2.TensorProto(dtype=21)
        proto.tensor_shape.SetInParent()
        proto.variant_val.add(type_name=type_name, metadata=metadata)
        return proto

    with Wire(address) as session:
        for name, proto in (("nothing", message("")), ("unknown", message("nobody::Knows")),
                            ("damaged", message("tensorflow::TensorList", b"\x7f\x01")),
                            ("another", message("tensorflow::data::Optional", b"\x00"))):
            log.same(name, isinstance(session.run([length.name], {given.name: proto}), str))


@case
def what_is_sent_twice_is_no_step(address, log):
    """Steps whose client does not wait for them end, and others run."""
    x = tf1.placeholder(tf.int32, [], name="x")
    loop = tf1.while_loop(lambda i: i < x, lambda i: i + 1, [0])
    with Wire(address) as session:
        for _ in range(3):
            try:
                session.call("RunStep", timeout=0.3, session_handle=session.handle, fetch=[loop.name],
                             feed=[session.named(x.name, tf.make_tensor_proto(np.int32(2**31 - 1)))])
                log.same("ended", "no")
            except grpc.RpcError as error:
                log.same("ended", error.code().name)
        logged(log, "after", session.run([loop.name], {x.name: tf.make_tensor_proto(np.int32(5))}))
