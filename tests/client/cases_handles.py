"""Resources by their handles: what is removed, and what is anonymous."""

import numpy as np
import tensorflow as tf

from harness import case

tf1 = tf.compat.v1
raw = tf.raw_ops


@case
def a_variable_is_removed(address, log):
    v = raw.VarHandleOp(dtype=tf.float32, shape=[2], shared_name="removed", container="")
    assign = raw.AssignVariableOp(resource=v, value=np.float32([1, 2]))
    read = raw.ReadVariableOp(resource=v, dtype=tf.float32)
    is_there = raw.VarIsInitializedOp(resource=v)
    destroy = raw.DestroyResourceOp(resource=v, ignore_lookup_error=True)
    strict = raw.DestroyResourceOp(resource=v, ignore_lookup_error=False)
    with tf1.Session(address) as session:
        session.run(assign)
        log.value("before", session.run(read))
        session.run(destroy)
        log.value("is there", session.run(is_there))
        with log.refused("read"):
            session.run(read)
        session.run(destroy)
        with log.refused("removed twice"):
            session.run(strict)
        session.run(assign)
        log.value("again", session.run(read))
        session.run(strict)
        log.value("gone", session.run(is_there))


@case
def a_table_is_removed(address, log):
    table = raw.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.int64, shared_name="gone")
    insert = raw.LookupTableInsertV2(
        table_handle=table, keys=tf.constant([1, 2], tf.int64), values=tf.constant([3, 4], tf.int64))
    size = raw.LookupTableSizeV2(table_handle=table)
    destroy = raw.DestroyResourceOp(resource=table, ignore_lookup_error=False)
    with tf1.Session(address) as session:
        session.run(insert)
        log.value("before", session.run(size))
        session.run(destroy)


@case
def what_is_anonymous(address, log):
    named = raw.VarHandleOp(dtype=tf.float32, shape=[], shared_name="named")
    anonymous = raw.VarHandleOp(
        dtype=tf.float32, shape=[], shared_name="cd2c89b7-88b7-44c8-ad83-06c2a9158347")
    with tf1.Session(address) as session:
        for name, handle in (("named", named), ("anonymous", anonymous)):
            # The op has no function in Python.
            counted = session.graph.create_op("IsResourceHandleRefCounting", [handle], [tf.bool])
            log.value(name, session.run(counted.outputs[0]))
            session.run(raw.DestroyResourceOp(resource=handle, ignore_lookup_error=True))


@case
def another_handle_of_a_resource(address, log):
    v = raw.VarHandleOp(dtype=tf.float32, shape=[2], shared_name="doubled", container="")
    # The op has no function in Python.
    weak = tf1.get_default_graph().create_op("MakeWeakResourceHandle", [v], [tf.resource]).outputs[0]
    with tf1.Session(address) as session:
        session.run(raw.AssignVariableOp(resource=v, value=np.float32([1, 2])))
        session.run(raw.AssignAddVariableOp(resource=weak, value=np.float32([10, 20])))
        log.value("read", session.run(raw.ReadVariableOp(resource=weak, dtype=tf.float32)))
        log.value("as well", session.run(raw.ReadVariableOp(resource=v, dtype=tf.float32)))


@case
def reads_share_a_buffer_again(address, log):
    v = raw.VarHandleOp(dtype=tf.float32, shape=[3], shared_name="shared_again", container="")
    unset = raw.VarHandleOp(dtype=tf.float32, shape=[3], shared_name="never_set", container="")
    read = raw.ReadVariableOp(resource=v, dtype=tf.float32)
    with tf1.Session(address) as session:
        session.run(raw.AssignVariableOp(resource=v, value=np.float32([1, 2, 3])))
        session.run(raw.ResourceScatterAdd(resource=v, indices=[1], updates=np.float32([5])))
        session.run(raw.DisableCopyOnRead(resource=v))
        log.value("read", session.run(read))
        session.run(raw.AssignAddVariableOp(resource=v, value=np.float32([1, 1, 1])))
        log.value("updated", session.run(read))
        with log.refused("never set"):
            session.run(raw.DisableCopyOnRead(resource=unset))
