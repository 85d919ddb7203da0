"""Writes words.txt, a text, and words.npz, what TensorFlow's Skipgram gives for it.

    pip install tensorflow-cpu==2.21.0      (in a throw-away virtual environment)
    python words.py

words.npz has the vocabulary (`words`), and the other outputs of three steps (`all.STEP.OUTPUT`, `some.STEP.OUTPUT`), without
and with words left out. No two frequent words of the text occur equally often, since TensorFlow does not order those.
"""

import pathlib
import sys

import numpy as np
import tensorflow as tf

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from gen import store  # noqa: E402

tf1 = tf.compat.v1


def outputs(subsample):
    """The outputs of three steps."""
    graph = tf1.GraphDef()
    # The op is gone from graphs of later producers.
    graph.versions.producer = 18
    node = graph.node.add(name="pairs", op="Skipgram")
    node.attr["filename"].s = str(HERE / "words.txt").encode()
    for name, value in {"batch_size": 1500, "window_size": 4, "min_count": 3}.items():
        node.attr[name].i = value
    node.attr["subsample"].f = subsample
    with tf.Graph().as_default() as whole:
        tf.import_graph_def(graph, name="")
        with tf1.Session(graph=whole) as session:
            return [session.run([f"pairs:{at}" for at in range(7)]) for _ in range(3)]


def main():
    random = np.random.RandomState(5)
    words = [f"w{at}" for at in range(12) for _ in range(3 + 7 * at)] + ["rare"] * 2
    random.shuffle(words)
    lines = [" ".join(words[at:at + 16]) for at in range(0, len(words), 16)]
    (HERE / "words.txt").write_text("\n".join(lines) + "\n")
    arrays = {}
    for name, subsample in {"all": 0.0, "some": 0.01}.items():
        for step, found in enumerate(outputs(subsample)):
            arrays["words"] = np.array(found[0], object)
            arrays |= {f"{name}.{step}.{at}": np.asarray(found[at]) for at in range(1, 7)}
    store.write_npz(HERE / "words.npz", arrays)


if __name__ == "__main__":
    main()
