"""Keras's application models against TensorFlow: python applications.py TENON [NAME]...

Each model, with random weights, is exported; TensorFlow's loader and `TENON run` get the same images, and their results must be
equal within 1e-4 of the largest one. Prints the largest difference, and how long each took to load and run once.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import keras
import numpy as np
import tensorflow as tf

MODELS = {"ResNet50": 224, "MobileNetV2": 224, "EfficientNetB0": 224}
LIMIT = 1e-4


def weights(model):
    """Statistics of normalisations that are not those of an untrained model, so that an error there is seen."""
    random = np.random.default_rng(7)
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.set_weights([
                (random.uniform(0.8, 1.2, weight.shape) if "var" in weight.path or "gamma" in weight.path
                 else random.normal(0, 0.05, weight.shape)).astype(np.float32)
                for weight in layer.weights
            ])


def check(tenon, name, side, work):
    keras.utils.set_random_seed(3)
    model = getattr(keras.applications, name)(
        weights=None, classifier_activation=None, input_shape=(side, side, 3), classes=100
    )
    weights(model)
    folder = work / name
    model.export(str(folder), verbose=False)
    images = np.random.default_rng(5).uniform(0, 255 if "Efficient" in name else 1, (2, side, side, 3)).astype(np.float32)
    begin = time.monotonic()
    signature = tf.saved_model.load(str(folder)).signatures["serving_default"]
    (argument,) = signature.structured_input_signature[1]
    (result,) = signature(**{argument: tf.constant(images)}).values()
    theirs = time.monotonic() - begin
    np.save(work / "images.npy", images)
    begin = time.monotonic()
    command = [tenon, "run", folder, "--feed", f"{argument}={work}/images.npy", "--out", work / "out", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    ours = time.monotonic() - begin
    if done.returncode:
        print(f"{name}: {done.stderr.strip()}")
        return False
    (file,) = (work / "out").glob("*.npy")
    found = np.load(file)
    file.unlink()
    expected = result.numpy()
    assert found.shape == expected.shape, (found.shape, expected.shape)
    difference = np.abs(found - expected).max() / np.abs(expected).max()
    good = bool(difference <= LIMIT)
    print(f"{name}: {'equal' if good else 'DIFFERENT'}, {difference:.1e} of the largest result; "
          f"TensorFlow {theirs:.1f} s, tenon {ours:.1f} s")
    return good


def main(tenon, names):
    with tempfile.TemporaryDirectory() as work:
        good = [check(tenon, name, side, pathlib.Path(work)) for name, side in MODELS.items() if not names or name in names]
    sys.exit(0 if all(good) else 1)


main(sys.argv[1], sys.argv[2:])
