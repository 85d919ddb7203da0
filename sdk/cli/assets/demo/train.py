"""Trains the digit classifier that `tenon demo` runs, and writes its files.

Usage: python train.py        (in an environment with requirements.txt installed)

Writes beside itself: digits.pb (the frozen inference graph), training_images.npy, training_labels.npy,
heldout_images.npy, heldout_labels.npy (the 500 images the training never saw), calibration_images.npy
(some that it saw), tensorflow_logits.npy and tensorflow_classes.npy (what TensorFlow computes for the held-out
ones with the frozen graph).
SOURCE.md says where the images come from.
"""

import os

# The plain Eigen kernels give the same weights on every x86-64 machine of one kind;
# oneDNN picks its own accumulation order per CPU.
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from pathlib import Path

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

HERE = Path(__file__).resolve().parent
TRAIN = 1297  # the remaining 500 images are held out
SEED = 20240
CALIBRATION = 128  # the first images, on which quantisation is calibrated
STEPS = 1500
BATCH = 64
PIXEL_MAX = 16.0

# name: shape; the last dimension of a filter or matrix is its number of outputs.
WEIGHTS = {
    "conv1/filter": (3, 3, 1, 16),
    "conv1/bias": (16,),
    "conv2/filter": (3, 3, 16, 32),
    "conv2/bias": (32,),
    "dense1/weights": (128, 64),
    "dense1/bias": (64,),
    "dense2/weights": (64, 10),
    "dense2/bias": (10,),
}


def load_split():
    """Images as uint8 [n,8,8] with values 0..16, labels as uint8 [n]: train, held out."""
    digits = load_digits()
    images = digits.images.astype(np.uint8)
    labels = digits.target.astype(np.uint8)
    assert images.shape == (1797, 8, 8) and images.max() == 16
    return (images[:TRAIN], labels[:TRAIN]), (images[TRAIN:], labels[TRAIN:])


def initial_weights(rng):
    """He initialisation for filters and matrices, zeros for biases."""
    variables = {}
    for name, shape in WEIGHTS.items():
        if len(shape) == 1:
            value = np.zeros(shape)
        else:
            value = rng.standard_normal(shape) * np.sqrt(2.0 / np.prod(shape[:-1]))
        variables[name] = tf.Variable(value.astype(np.float32))
    return variables


def network(images, weight):
    """The classifier up to its logits. `weight(name)` gives a weight as a tensor."""
    x = images
    for layer in ("conv1", "conv2"):
        with tf.compat.v1.name_scope(layer):
            x = tf.nn.conv2d(x, weight(f"{layer}/filter"), strides=1, padding="SAME", name="Conv2D")
            x = tf.nn.bias_add(x, weight(f"{layer}/bias"), name="BiasAdd")
            x = tf.nn.relu(x, name="Relu")
            x = tf.nn.max_pool2d(x, ksize=2, strides=2, padding="VALID", name="MaxPool")
    x = tf.reshape(x, [-1, 128], name="flatten")
    with tf.compat.v1.name_scope("dense1"):
        x = tf.matmul(x, weight("dense1/weights"), name="MatMul")
        x = tf.nn.bias_add(x, weight("dense1/bias"), name="BiasAdd")
        x = tf.nn.relu(x, name="Relu")
    with tf.compat.v1.name_scope("dense2"):
        x = tf.matmul(x, weight("dense2/weights"), name="MatMul")
    return tf.nn.bias_add(x, weight("dense2/bias"), name="logits")


def batch(rng, images, labels):
    """A random batch, each image moved by up to one pixel and zero filled."""
    pick = rng.integers(0, len(images), BATCH)
    padded = np.pad(images[pick], ((0, 0), (1, 1), (1, 1))).astype(np.float32) / PIXEL_MAX
    moved = np.empty((BATCH, 8, 8, 1), np.float32)
    for i, (dy, dx) in enumerate(rng.integers(0, 3, (BATCH, 2))):
        moved[i, :, :, 0] = padded[i, dy : dy + 8, dx : dx + 8]
    return moved, labels[pick].astype(np.int32)


def train(images, labels):
    """Adam with a linearly falling rate; returns the weights as arrays."""
    rng = np.random.default_rng(SEED)
    variables = initial_weights(rng)
    order = list(variables)
    first = {name: np.zeros(v.shape, np.float32) for name, v in variables.items()}
    second = {name: np.zeros(v.shape, np.float32) for name, v in variables.items()}

    @tf.function
    def gradients(x, y):
        with tf.GradientTape() as tape:
            logits = network(x, lambda name: variables[name])
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        return loss, tape.gradient(loss, [variables[name] for name in order])

    for step in range(1, STEPS + 1):
        loss, grads = gradients(*map(tf.constant, batch(rng, images, labels)))
        rate = 0.003 * (1.0 - step / (STEPS + 1))
        for name, grad in zip(order, grads):
            grad = grad.numpy()
            first[name] = 0.9 * first[name] + 0.1 * grad
            second[name] = 0.999 * second[name] + 0.001 * grad * grad
            mean = first[name] / (1.0 - 0.9**step)
            scale = np.sqrt(second[name] / (1.0 - 0.999**step)) + 1e-8
            variables[name].assign_sub(np.float32(rate) * mean / scale)
        if step % 300 == 0:
            print(f"step {step}: loss {float(loss):.4f}")
    return {name: v.numpy() for name, v in variables.items()}


def frozen_graph(weights):
    """The inference graph with the weights as Const nodes."""
    graph = tf.Graph()
    with graph.as_default():
        images = tf.compat.v1.placeholder(tf.float32, [None, 8, 8, 1], name="images")
        constants = {name: tf.constant(value, name=f"weights/{name}") for name, value in weights.items()}
        logits = network(images, lambda name: constants[name])
        assert logits.op.name == "logits"
        tf.nn.softmax(logits, name="probabilities")
        axis = tf.constant(1, tf.int32, name="classes/dimension")
        tf.raw_ops.ArgMax(input=logits, dimension=axis, output_type=tf.int64, name="classes")
    return graph.as_graph_def()


def run_frozen(graph_def, images):
    """Logits and classes of the graph as TensorFlow runs it, without rewriting it first."""
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    feed = images.astype(np.float32)[..., np.newaxis] / np.float32(PIXEL_MAX)
    with tf.compat.v1.Session(graph=graph, config=config) as session:
        return session.run(["logits:0", "classes:0"], {"images:0": feed})


def main():
    tf.config.experimental.enable_op_determinism()
    tf.random.set_seed(SEED)
    (train_images, train_labels), (images, labels) = load_split()
    graph_def = frozen_graph(train(train_images, train_labels))
    (HERE / "digits.pb").write_bytes(graph_def.SerializeToString(deterministic=True))
    logits, classes = run_frozen(graph_def, images)
    accuracy = np.mean(classes == labels)
    print(f"held-out accuracy {accuracy:.4f}")
    assert accuracy >= 0.95, "the committed model must reach 95 %"
    np.save(HERE / "training_images.npy", train_images)
    np.save(HERE / "training_labels.npy", train_labels)
    np.save(HERE / "heldout_images.npy", images)
    np.save(HERE / "heldout_labels.npy", labels)
    calibration = train_images[:CALIBRATION].astype(np.float32)[..., np.newaxis] / np.float32(PIXEL_MAX)
    np.save(HERE / "calibration_images.npy", calibration)
    np.save(HERE / "tensorflow_logits.npy", logits)
    np.save(HERE / "tensorflow_classes.npy", classes)


if __name__ == "__main__":
    main()
