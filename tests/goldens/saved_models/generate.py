"""Makes the saved models of this folder with TensorFlow: python generate.py [NAME]...

Each model is a folder as TensorFlow writes it. `expected/NAME.npz` has, for every signature that is checked, the inputs
(`SIGNATURE.in.ARGUMENT`) and what TensorFlow's own loader gives for them (`SIGNATURE.out.RESULT`).
"""

import os
import pathlib
import shutil
import sys

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import keras
import numpy as np
import tensorflow as tf

HERE = pathlib.Path(__file__).parent.resolve()
# Relative, since a model keeps the path of an asset as it was written.
VOCABULARY = pathlib.Path("vocabulary.txt")
v1 = tf.compat.v1


def values(name, *shape):
    """Numbers that depend on the name only."""
    seed = int.from_bytes(name.encode(), "little") % (2**32)
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def words_graph(resources):
    """Words are looked up, embedded and summed; the table reads its keys from an asset."""
    path = tf.constant(str(VOCABULARY), name="vocabulary")
    v1.add_to_collection(v1.GraphKeys.ASSET_FILEPATHS, path)
    initializer = tf.lookup.TextFileInitializer(
        path, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
    )
    table = tf.lookup.StaticVocabularyTable(initializer, num_oov_buckets=2)
    words = v1.placeholder(tf.string, [None, 3], name="words")
    embedding = v1.get_variable(
        "embedding", initializer=values("embedding", 8, 4), use_resource=resources
    )
    bias = v1.get_variable("bias", initializer=values("bias", 4), use_resource=resources)
    rows = v1.nn.embedding_lookup(embedding, table.lookup(words))
    scores = tf.add(tf.reduce_sum(rows, 1), bias, name="scores")
    return words, scores


def tf1_simple(folder):
    """TensorFlow 1: `simple_save`, with resource variables and `legacy_init_op`."""
    with tf.Graph().as_default(), v1.Session() as session:
        words, scores = words_graph(True)
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        v1.saved_model.simple_save(
            session, folder, {"words": words}, {"scores": scores}, legacy_init_op=v1.tables_initializer()
        )


def tf1_builder(folder):
    """TensorFlow 1: reference variables, a main op, two graphs with different tags, a default of an input."""
    builder = v1.saved_model.Builder(folder)
    for tags in [["train"], ["serve"]]:
        with tf.Graph().as_default(), v1.Session() as session:
            words, scores = words_graph(False)
            factor = v1.placeholder(tf.float32, [], name="factor")
            calls = v1.get_local_variable("calls", initializer=5.0, trainable=False, use_resource=False)
            scaled = tf.add(scores * factor, calls, name="scaled")
            info = v1.saved_model.build_tensor_info
            signature = v1.saved_model.build_signature_def(
                {"words": info(words), "factor": info(factor)},
                {"scaled": info(scaled)},
                "tensorflow/serving/predict",
            )
            signature.defaults["factor"].CopyFrom(tf.make_tensor_proto(0.5, tf.float32))
            main_op = tf.group(v1.tables_initializer(), v1.local_variables_initializer(), name="main")
            session.run([v1.global_variables_initializer(), main_op])
            arguments = dict(
                signature_def_map={"serving_default": signature},
                assets_collection=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS),
                main_op=main_op,
                strip_default_attrs=True,
            )
            if tags == ["train"]:
                builder.add_meta_graph_and_variables(session, tags, **arguments)
            else:
                builder.add_meta_graph(tags, **arguments)
    builder.save()


class Module(tf.Module):
    """Three signatures: a loop over a variable, a branch with a variable that changes, a table that an asset fills."""

    def __init__(self):
        super().__init__()
        self.kernel = tf.Variable(values("kernel", 3, 2), name="kernel")
        self.count = tf.Variable(0, dtype=tf.int64, name="count")
        self.vocabulary = tf.saved_model.Asset(str(VOCABULARY))
        initializer = tf.lookup.TextFileInitializer(
            self.vocabulary, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
        )
        self.table = tf.lookup.StaticHashTable(initializer, default_value=-1)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="words")])
    def numbered(self, words):
        return {"numbers": self.table.lookup(words)}

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
    def product(self, x):
        total = tf.zeros([tf.shape(x)[0], 2])
        for step in tf.range(3):
            total += tf.matmul(x, self.kernel) * tf.cast(step, tf.float32)
        return {"product": total, "positive": total > 0}

    @tf.function(
        input_signature=[
            tf.TensorSpec([2], tf.float32, name="a"),
            tf.TensorSpec([], tf.bool, name="negate"),
        ]
    )
    def counted(self, a, negate):
        count = self.count.assign_add(1)
        return {"a": tf.cond(negate, lambda: -a, lambda: a * 2.0), "count": count}


def tf2_module(folder):
    """TensorFlow 2: a `tf.Module`."""
    module = Module()
    tf.saved_model.save(
        module,
        folder,
        signatures={"serving_default": module.product, "counted": module.counted, "numbered": module.numbered},
    )


def seeded(model, scale=0.3):
    model.set_weights([
        (np.abs(values(f"{weight.path}", *weight.shape)) if "variance" in weight.path else values(f"{weight.path}", *weight.shape))
        * scale
        if np.issubdtype(np.dtype(weight.dtype), np.floating)
        else weight.numpy()
        for weight in model.weights
    ])
    return model


def keras_cnn(folder):
    """Keras: convolutions, normalisation, pooling."""
    layers = keras.layers
    model = keras.Sequential([
        keras.Input((12, 12, 3), name="image"),
        layers.Conv2D(8, 3, padding="same", activation="relu", name="conv"),
        layers.BatchNormalization(name="norm"),
        layers.DepthwiseConv2D(3, strides=2, padding="same", name="depth"),
        layers.MaxPooling2D(2, name="pool"),
        layers.GlobalAveragePooling2D(name="mean"),
        layers.Dropout(0.5, name="dropout"),
        layers.Dense(5, activation="softmax", name="scores"),
    ])
    seeded(model).export(folder, verbose=False)


def keras_lstm(folder):
    """Keras: an embedding and recurrent layers, in both directions."""
    layers = keras.layers
    model = keras.Sequential([
        keras.Input((7,), dtype="int32", name="tokens"),
        layers.Embedding(11, 6, name="embedding"),
        layers.Bidirectional(layers.LSTM(4, return_sequences=True, name="lstm"), name="both"),
        layers.GRU(5, name="gru"),
        layers.Dense(3, name="scores"),
    ])
    seeded(model).export(folder, verbose=False)


def keras_text(folder):
    """Keras: a classifier of texts, with its vocabulary."""
    layers = keras.layers
    vectorize = layers.TextVectorization(
        max_tokens=20, output_mode="int", output_sequence_length=6, name="vectorize"
    )
    vectorize.adapt(["the film was good", "the film was bad", "a good, good book!"])
    text = keras.Input((1,), dtype="string", name="text")
    x = layers.Embedding(20, 4, name="embedding")(vectorize(text))
    x = layers.GlobalAveragePooling1D(name="mean")(x)
    model = keras.Model(text, layers.Dense(2, name="scores")(x))
    for layer, weights in [("embedding", [(20, 4)]), ("scores", [(4, 2), (2,)])]:
        model.get_layer(layer).set_weights([values(f"{layer}{shape}", *shape) for shape in weights])
    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint("serve", model.call, input_signature=[tf.TensorSpec([None, 1], tf.string, name="text")])
    archive.write_out(folder, verbose=False)


WORDS = np.array([["film", "good", "unknown"], ["the", "book", "bad"]], dtype="S")
MODELS = {
    tf1_simple: {"serving_default": {"words": WORDS}},
    tf1_builder: {"serving_default": {"words": WORDS, "factor": np.float32(-2.5)}},
    tf2_module: {
        "serving_default": {"x": values("x", 4, 3)},
        "counted": {"a": values("a", 2), "negate": np.bool_(True)},
        "numbered": {"words": np.array(["good", "was", "nothing"], dtype="S")},
    },
    keras_cnn: {"serving_default": {"image": values("image", 2, 12, 12, 3)}},
    keras_lstm: {"serving_default": {"tokens": np.arange(14, dtype=np.int32).reshape(2, 7) * 3 % 11}},
    keras_text: {"serving_default": {"text": np.array([["The GOOD film."], ["bad: a book? unknown words here, more"]], dtype="S")}},
}


def expected(folder, signatures):
    arrays = {}
    loaded = tf.saved_model.load(folder, tags=["serve"])
    for key, inputs in signatures.items():
        results = loaded.signatures[key](**{name: tf.constant(value) for name, value in inputs.items()})
        arrays |= {f"{key}.in.{name}": value for name, value in inputs.items()}
        arrays |= {f"{key}.out.{name}": value.numpy() for name, value in results.items()}
    return arrays


def main(names):
    # What the guide feeds (sdk/docs/saved-model.md).
    np.save(HERE / "rows.npy", values("x", 4, 3))
    os.chdir(HERE)
    VOCABULARY.write_text("the\nfilm\nwas\ngood\nbad\nbook\n")
    (HERE / "expected").mkdir(exist_ok=True)
    for make, signatures in MODELS.items():
        name = make.__name__
        if names and name not in names:
            continue
        folder = name
        shutil.rmtree(folder, ignore_errors=True)
        make(folder)
        np.savez_compressed(HERE / "expected" / f"{name}.npz", **expected(folder, signatures))
        size = sum(file.stat().st_size for file in (HERE / name).rglob("*") if file.is_file())
        print(f"{name}: {size} bytes")
    VOCABULARY.unlink()


main(sys.argv[1:])
