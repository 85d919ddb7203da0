"""How long a SavedModel takes to load, and its first call: python saved_model.py FOLDER [tenon|tensorflow]...

Each is measured in processes of their own, whose imports do not count, and the shortest of several runs is printed as JSON. `python`
has to have TensorFlow for its part.
"""

import json
import subprocess
import sys
import time

RUNS = 5


def given(shapes):
    """Ones for each input of a signature."""
    import numpy as np

    return {name: np.ones([size or 1 for size in shape], np.float32) for name, shape in shapes.items()}


def tenon_times(folder):
    """Loads and runs by Tenon, whose runtime has started."""
    import tenon

    tenon.list_devices()
    begin = time.perf_counter()
    model = tenon.saved_model.load(folder)
    loaded = time.perf_counter()
    signature = model.signatures["serving_default"]
    values = given({argument.name: argument.shape for argument in signature.inputs})
    called = time.perf_counter()
    signature(**values)
    return loaded - begin, time.perf_counter() - called


def tensorflow_times(folder):
    """Loads and runs by TensorFlow, whose runtime has started."""
    import tensorflow as tf

    tf.constant(1.0) + 1.0
    begin = time.perf_counter()
    model = tf.saved_model.load(folder)
    loaded = time.perf_counter()
    signature = model.signatures["serving_default"]
    specs = signature.structured_input_signature[1]
    values = {name: tf.constant(value) for name, value in given({name: spec.shape for name, spec in specs.items()}).items()}
    called = time.perf_counter()
    for value in signature(**values).values():
        value.numpy()
    return loaded - begin, time.perf_counter() - called


def main():
    """Measures in processes of their own, and prints JSON."""
    folder, *chosen = sys.argv[1:]
    if chosen[:1] == ["--once"]:
        times = {"tenon": tenon_times, "tensorflow": tensorflow_times}[chosen[1]](folder)
        print(json.dumps(times))
        return
    found = {}
    for name in chosen or ["tenon", "tensorflow"]:
        times = []
        for _ in range(RUNS):
            ran = subprocess.run([sys.executable, __file__, folder, "--once", name], stdout=subprocess.PIPE, check=True, text=True)
            times.append(json.loads(ran.stdout.splitlines()[-1]))
        found[name] = {"load_ms": round(min(t[0] for t in times) * 1000, 1), "first_call_ms": round(min(t[1] for t in times) * 1000, 1)}
    if len(found) == 2:
        found["ratio_of_loads"] = round(found["tenon"]["load_ms"] / found["tensorflow"]["load_ms"], 3)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
