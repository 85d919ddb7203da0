"""Frozen models with seeded random weights: VGG19, ResNet50, MobileNetV2, a layer of the encoder of BERT-base, the
attention of Keras, and a multilayer perceptron for images of digits.

The architectures are those of their papers (arXiv 1409.1556, 1512.03385, 1801.04381, 1810.04805). The small variants
have the same layers with fewer channels and smaller images; they are part of the golden data. The large ones are
made on demand: `python freeze.py FOLDER`.
"""

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from . import store
from .data import seeded
from .graphs import Golden, normal

tf1 = tf.compat.v1

# Results may differ by this much of the output's scale.
TOLERANCE = 1e-4


class Net:
    """Builds a graph layer by layer, with weights drawn for each."""

    def __init__(self, name, width):
        self.rng, self.width, self.count = seeded("frozen", name), width, 0

    def channels(self, full):
        """A number of channels, scaled and at least 4, a multiple of 4."""
        return max(4, int(full * self.width / 4 + 0.5) * 4)

    def name(self, kind):
        self.count += 1
        return f"{kind}_{self.count}"

    def weights(self, *shape, fan_in):
        return tf.constant(normal(self.rng, *shape, scale=np.sqrt(2.0 / fan_in)), name=self.name("weights"))

    def bias(self, x):
        values = tf.constant(normal(self.rng, x.shape[-1], scale=0.1), name=self.name("bias"))
        return tf.nn.bias_add(x, values, name=self.name("bias_add"))

    def conv(self, x, out, size, stride=1, padding="SAME"):
        fan_in = size * size * x.shape[-1]
        filters = self.weights(size, size, x.shape[-1], out, fan_in=fan_in)
        return tf.nn.conv2d(x, filters, stride, padding, name=self.name("conv"))

    def depthwise(self, x, stride):
        filters = self.weights(3, 3, x.shape[-1], 1, fan_in=9)
        return tf.nn.depthwise_conv2d(x, filters, [1, stride, stride, 1], "SAME", name=self.name("depthwise"))

    def batch_norm(self, x):
        """As frozen graphs have it: the statistics are constants."""
        size = x.shape[-1]
        scale, offset = 1 + normal(self.rng, size, scale=0.1), normal(self.rng, size, scale=0.1)
        mean, variance = normal(self.rng, size, scale=0.1), 1 + np.abs(normal(self.rng, size, scale=0.2))
        vectors = [tf.constant(v, name=self.name("statistics")) for v in (scale, offset, mean, variance)]
        normed = tf.raw_ops.FusedBatchNormV3(
            x=x,
            scale=vectors[0],
            offset=vectors[1],
            mean=vectors[2],
            variance=vectors[3],
            epsilon=1e-3,
            is_training=False,
            name=self.name("batch_norm"),
        )
        return normed.y

    def dense(self, x, out):
        weights = self.weights(x.shape[-1], out, fan_in=x.shape[-1])
        return self.bias(tf.matmul(x, weights, name=self.name("dense")))

    def layer_norm(self, x):
        """Mean and variance over the last dimension, as op by op clients write it."""
        mean = tf.reduce_mean(x, -1, keepdims=True)
        variance = tf.reduce_mean(tf.math.squared_difference(x, mean), -1, keepdims=True)
        scale = tf.constant(1 + normal(self.rng, x.shape[-1], scale=0.1), name=self.name("gamma"))
        offset = tf.constant(normal(self.rng, x.shape[-1], scale=0.1), name=self.name("beta"))
        return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-12)


def vgg19(small):
    """Convolutions of 3x3 with bias, pools, three dense layers."""
    net = Net("vgg19", 1 / 16 if small else 1)
    size = 32 if small else 224
    x = tf1.placeholder(tf.float32, [None, size, size, 3], name="image")
    y = x
    for channels, repeats in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        for _ in range(repeats):
            y = tf.nn.relu(net.bias(net.conv(y, net.channels(channels), 3)), name=net.name("relu"))
        y = tf.nn.max_pool2d(y, 2, 2, "VALID", name=net.name("pool"))
    y = tf.reshape(y, [-1, int(np.prod(y.shape[1:]))], name="flat")
    for _ in range(2):
        y = tf.nn.relu(net.dense(y, net.channels(4096)), name=net.name("relu"))
    tf.nn.softmax(net.dense(y, 10 if small else 1000), name="probabilities")
    return x


def resnet50(small):
    """Bottleneck blocks with batch normalisation and residual additions."""
    net = Net("resnet50", 1 / 16 if small else 1)
    size = 64 if small else 224
    x = tf1.placeholder(tf.float32, [None, size, size, 3], name="image")
    padded = tf.pad(x, [[0, 0], [3, 3], [3, 3], [0, 0]], name="pad")
    y = tf.nn.relu(net.batch_norm(net.conv(padded, net.channels(64), 7, 2, "VALID")))
    y = tf.nn.max_pool2d(y, 3, 2, "SAME", name="pool")
    for stage, (channels, repeats) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(repeats):
            stride = 2 if stage > 0 and block == 0 else 1
            inner, outer = net.channels(channels), net.channels(4 * channels)
            shortcut = net.batch_norm(net.conv(y, outer, 1, stride)) if block == 0 else y
            z = tf.nn.relu(net.batch_norm(net.conv(y, inner, 1, stride)))
            z = tf.nn.relu(net.batch_norm(net.conv(z, inner, 3)))
            z = net.batch_norm(net.conv(z, outer, 1))
            y = tf.nn.relu(tf.add(z, shortcut, name=net.name("residual")))
    y = tf.reduce_mean(y, [1, 2], name="mean")
    tf.nn.softmax(net.dense(y, 10 if small else 1000), name="probabilities")
    return x


def mobilenet_v2(small):
    """Inverted residuals: 1x1, depthwise, 1x1 without activation."""
    net = Net("mobilenet_v2", 1 / 4 if small else 1)
    size = 64 if small else 224
    x = tf1.placeholder(tf.float32, [None, size, size, 3], name="image")
    y = tf.nn.relu6(net.batch_norm(net.conv(x, net.channels(32), 3, 2)))
    plan = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for expansion, channels, repeats, first_stride in plan:
        for block in range(repeats):
            stride = first_stride if block == 0 else 1
            z, wide = y, expansion * y.shape[-1]
            if expansion != 1:
                z = tf.nn.relu6(net.batch_norm(net.conv(z, wide, 1)))
            z = tf.nn.relu6(net.batch_norm(net.depthwise(z, stride)))
            z = net.batch_norm(net.conv(z, net.channels(channels), 1))
            y = tf.add(y, z, name=net.name("residual")) if stride == 1 and y.shape[-1] == z.shape[-1] else z
    y = tf.nn.relu6(net.batch_norm(net.conv(y, net.channels(1280), 1)))
    y = tf.reduce_mean(y, [1, 2], name="mean")
    tf.nn.softmax(net.dense(y, 10 if small else 1000), name="probabilities")
    return x


def bert_layer(small):
    """Self attention and a feed-forward part with GELU, each with a residual addition and layer normalisation."""
    hidden, heads, inner, length = (32, 4, 64, 12) if small else (768, 12, 3072, 128)
    net = Net("bert_layer", 1)
    x = tf1.placeholder(tf.float32, [None, length, hidden], name="hidden")
    mask = tf1.placeholder(tf.float32, [None, 1, 1, length], name="mask")
    flat = tf.reshape(x, [-1, hidden])

    def split(values):
        parts = tf.reshape(values, [-1, length, heads, hidden // heads])
        return tf.transpose(parts, [0, 2, 1, 3])

    query, key, value = (split(net.dense(flat, hidden)) for _ in range(3))
    scores = tf.matmul(query, key, transpose_b=True) * np.float32(1 / np.sqrt(hidden // heads)) + mask
    context = tf.matmul(tf.nn.softmax(scores), value)
    context = tf.reshape(tf.transpose(context, [0, 2, 1, 3]), [-1, hidden])
    attended = net.layer_norm(net.dense(context, hidden) + flat)
    wide = net.dense(attended, inner)
    gelu = 0.5 * wide * (1.0 + tf.math.erf(wide / np.float32(np.sqrt(2))))
    output = net.layer_norm(net.dense(gelu, hidden) + attended)
    tf.reshape(output, [-1, length, hidden], name="output")
    return x, mask


def keras_attention(small):
    """Self attention by Keras' MultiHeadAttention, as its layers freeze: products by labels."""
    length, hidden, heads = (12, 32, 4) if small else (128, 768, 12)
    return keras_layer(length, hidden, heads, 0.0, False)


def keras_attention_masked(small):
    """Self attention by Keras' MultiHeadAttention with dropout and a mask, frozen for inference: keys times queries,
    transposed, and a choice by the mask."""
    length, hidden, heads = (12, 32, 4) if small else (128, 768, 12)
    return keras_layer(length, hidden, heads, 0.1, True)


def keras_layer(length, hidden, heads, dropout, masked):
    """A layer's weights become constants, its inputs placeholders of this graph."""
    with context.eager_mode():
        layer = tf.keras.layers.MultiHeadAttention(heads, hidden // heads, dropout=dropout)
        shape = tf.TensorSpec([None, length, hidden])
        rng = seeded("frozen", "keras_attention", masked)

        def call(x, mask=None):
            return layer(x, x, attention_mask=mask, training=False)

        layer.build([1, length, hidden], [1, length, hidden])
        layer.set_weights([normal(rng, *w.shape, scale=hidden**-0.5) for w in layer.get_weights()])
        specs = [shape, tf.TensorSpec([None, length, length], tf.bool)] if masked else [shape]
        frozen = convert_variables_to_constants_v2(tf.function(call).get_concrete_function(*specs))
    x = tf1.placeholder(tf.float32, [None, length, hidden], name="hidden")
    fed = [x, tf1.placeholder(tf.bool, [None, length, length], name="mask")] if masked else [x]
    names = {tensor.name.split(":")[0]: placeholder for tensor, placeholder in zip(frozen.inputs, fed)}
    result = frozen.outputs[0].name
    (output,) = tf.import_graph_def(frozen.graph.as_graph_def(), names, [result], name="layer")
    tf.identity(output, name="output")
    return fed


def mlp(small):
    """Three dense layers: 784 pixels, twice 512 hidden values, 10 classes."""
    net = Net("mlp", 1 / 16 if small else 1)
    x = tf1.placeholder(tf.float32, [None, 49 if small else 784], name="image")
    y = x
    for _ in range(2):
        y = tf.nn.relu(net.dense(y, net.channels(512)), name=net.name("relu"))
    tf.nn.softmax(net.dense(y, 10), name="probabilities")
    return x


MODELS = {
    "vgg19": vgg19,
    "resnet50": resnet50,
    "mobilenet_v2": mobilenet_v2,
    "bert_layer": bert_layer,
    "keras_attention": keras_attention,
    "keras_attention_masked": keras_attention_masked,
    "mlp": mlp,
}


def inputs_of(name, placeholders, batch):
    """Feeds of a run."""
    rng = seeded("frozen", name, "inputs", batch)
    if name.startswith("keras"):
        hidden, *masks = placeholders
        feeds = {"hidden:0": normal(rng, batch, *hidden.shape[1:])}
        length = hidden.shape[1]
        return feeds | {"mask:0": rng.random((batch, length, length)) < 0.5 for _ in masks}
    if name != "bert_layer":
        return {"image:0": normal(rng, batch, *placeholders.shape[1:])}
    hidden, mask = placeholders
    # The last places of a sequence are padding.
    length = mask.shape[-1]
    masked = np.zeros((batch, 1, 1, length), np.float32)
    masked[:, :, :, length - length // 4 :] = -10000.0
    return {"hidden:0": normal(rng, batch, *hidden.shape[1:]), "mask:0": masked}


def freeze(name, small):
    """A model with its runs."""
    graph = tf.Graph()
    with graph.as_default():
        placeholders = MODELS[name](small)
    golden = Golden(name, MODELS[name].__doc__.strip(), graph)
    output = "probabilities:0" if "image:0" in inputs_of(name, placeholders, 1) else "output:0"
    for batch in (1, 3) if small else (1, 8):
        golden.run(inputs_of(name, placeholders, batch), [output])
    scale = max(float(np.max(np.abs(array))) for key, array in golden.arrays.items() if ".out" in key)
    golden.tolerance = {"absolute": TOLERANCE * scale, "relative": 0.0}
    return golden


def write(folder, small):
    """Writes every model, its runs, and the index."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = [freeze(name, small).write(folder) for name in MODELS]
    store.write_index(folder / "index.json", {"tensorflow": tf.__version__}, "graphs", entries)
    return len(entries)
