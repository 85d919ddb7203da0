"""Short names for the ops of lists of tensors, for cases."""

import tensorflow as tf

raw = tf.raw_ops


def empty(dtype=tf.float32, shape=-1, limit=-1):
    return raw.EmptyTensorList(element_shape=tf.constant(shape, tf.int32), max_num_elements=limit,
                               element_dtype=dtype)


def push(handle, *values):
    for value in values:
        handle = raw.TensorListPushBack(input_handle=handle, tensor=value)
    return handle


def stack(handle, dtype=tf.float32, shape=-1, count=-1):
    return raw.TensorListStack(input_handle=handle, element_shape=tf.constant(shape, tf.int32),
                               element_dtype=dtype, num_elements=count)


def reserve(count, dtype=tf.float32, shape=-1):
    return raw.TensorListReserve(element_shape=tf.constant(shape, tf.int32), num_elements=count,
                                 element_dtype=dtype)


def rows(value, shape=-1):
    return raw.TensorListFromTensor(tensor=value, element_shape=tf.constant(shape, tf.int32))


def get(handle, index, dtype=tf.float32, shape=-1):
    return raw.TensorListGetItem(input_handle=handle, index=index, element_dtype=dtype,
                                 element_shape=tf.constant(shape, tf.int32))


def put(handle, index, item, resize=False):
    return raw.TensorListSetItem(input_handle=handle, index=index, item=item,
                                 resize_if_index_out_of_bounds=resize)


def pop(handle, dtype=tf.float32, shape=-1):
    return raw.TensorListPopBack(input_handle=handle, element_dtype=dtype,
                                 element_shape=tf.constant(shape, tf.int32))


def length(handle):
    return raw.TensorListLength(input_handle=handle)
