"""A run of TensorFlow's Saver, and the nodes that it adds to a graph.

    python saver.py [FOLDER]      writes to this folder, or to saver/ beside itself; needs ../requirements.txt

The folder gets the checkpoints model-1 and model-2, the graph of the second, the state file, and nodes.json.
"""

import json
import os
import shutil
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

V1 = tf.compat.v1


def variables():
    """A matrix, a vector, a table in two parts, and the number of steps."""
    def value(shape):
        return tf.constant(np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 4)

    weights = V1.get_variable("w", initializer=value((2, 3)))
    bias = V1.get_variable("b", initializer=value((3,)) + 10)

    def rows(shape, dtype=None, partition_info=None):
        return tf.reshape(tf.range(8, dtype=dtype) * 1.5, (4, 2))[partition_info.var_offset[0]:][:shape[0]]

    table = V1.get_variable("table", shape=(4, 2), initializer=rows, partitioner=V1.fixed_size_partitioner(2))
    step = V1.get_variable("global_step", initializer=tf.constant(0, tf.int64), trainable=False)
    return weights, bias, table, step


def nodes(graph):
    """The nodes of a saver: op and inputs by name."""
    found = graph.as_graph_def().node
    return {node.name: [node.op, *node.input] for node in found if node.name.startswith("save/")}


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "saver")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    V1.disable_v2_behavior()
    V1.enable_resource_variables()
    written = {}
    with tf.Graph().as_default() as graph, V1.Session() as session:
        weights, bias, _, step = variables()
        V1.train.Saver([weights, bias, step])
        written["plain"] = nodes(graph)
        saver = V1.train.Saver(save_relative_paths=True)
        session.run(V1.global_variables_initializer())
        more = [V1.assign_add(step, 1), V1.assign_add(weights, tf.ones((2, 3)))]
        for number in (1, 2):
            session.run(more)
            saver.save(session, os.path.join(folder, "model"), number, write_meta_graph=number == 2)
    with tf.Graph().as_default() as graph:
        with tf.device("/job:localhost/task:0/device:CPU:0"):
            V1.get_variable("a", initializer=tf.ones((2,)))
        with tf.device("/job:localhost/task:0/device:CPU:1"):
            V1.get_variable("b", initializer=tf.ones((3,)))
        V1.train.Saver(sharded=True)
        written["sharded"] = nodes(graph)
    with open(os.path.join(folder, "nodes.json"), "w") as file:
        json.dump(written, file, indent=1, sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    main()
