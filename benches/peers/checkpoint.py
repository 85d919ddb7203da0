"""TensorFlow's save and restore of the bytes that `--example checkpoint` saves, as JSON lines of benches/records.

    python checkpoint.py FOLDER [MIB [ROUNDS]]

TensorFlow does not make its files durable: the line `save_MIB` has its op alone, `save_durable_MIB` the op and an fsync of
both files.
"""

import glob
import json
import os
import statistics
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

TENSORS = 16


def timed(work):
    begin = time.perf_counter_ns()
    done = work()
    return time.perf_counter_ns() - begin, done


def durable(prefix):
    for path in glob.glob(prefix + ".*"):
        with open(path, "rb") as file:
            os.fsync(file.fileno())


def main(folder, mib=1024, rounds=5):
    mib, rounds = int(mib), int(rounds)
    count = mib * (1 << 20) // TENSORS // 4
    tensors = [tf.constant(((np.arange(count) + at) % 65521).astype(np.float32)) for at in range(TENSORS)]
    names, slices = [f"layer_{at}/kernel" for at in range(TENSORS)], [""] * TENSORS
    prefix, times = os.path.join(folder, "theirs"), {"save": [], "save_durable": [], "restore": []}
    for _ in range(rounds):
        for path in glob.glob(prefix + ".*"):
            os.remove(path)
        saved, _ = timed(lambda: tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=slices,
                                                   tensors=tensors))
        synced, _ = timed(lambda: durable(prefix))
        restored, values = timed(lambda: tf.raw_ops.RestoreV2(prefix=prefix, tensor_names=names, shape_and_slices=slices,
                                                              dtypes=[tf.float32] * TENSORS))
        assert (values[-1].numpy() == tensors[-1].numpy()).all()
        del values
        for name, value in (("save", saved), ("save_durable", saved + synced), ("restore", restored)):
            times[name].append(value)
    for name, taken in times.items():
        median = statistics.median_high(taken)
        print(json.dumps({"bench": "checkpoint", "size": f"{name}_{mib}MiB", "peer": "tensorflow",
                          "version": tf.__version__, "median_ns": median, "min_ns": min(taken), "samples": rounds,
                          "rate": round(4 * count * TENSORS / median, 3), "unit": "GB/s"}))


if __name__ == "__main__":
    main(*sys.argv[1:])
