"""A server of ours beside TensorFlow's, through TensorFlow's own client.

    serve.py TENON [--seconds S]     prints one JSON line for each row and server

Rows: `serve/noop_step`, a step that runs one NoOp; `serve/feed_64MiB` and `serve/fetch_64MiB`, a step that is fed, or
gives, 64 MiB of float; `serve/loop_10000`, a While of functions with as many iterations of one addition;
`serve/reads_1000`, a step that reads a variable a thousand times. The servers take turns, in one run.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "tests" / "client"))
import harness  # noqa: E402

BYTES = 64 << 20


def rows(tf):
    """A session's step for each row: (name, what it does with a session)."""
    tf1 = tf.compat.v1
    x = tf1.placeholder(tf.float32, [None])
    taken = tf1.group(tf.size(x))
    big = tf1.get_variable("big", initializer=tf.zeros([BYTES // 4]), use_resource=True)
    one = tf1.get_variable("one", initializer=np.float32(1), use_resource=True)
    nothing = tf1.no_op()
    reads = tf1.group(*[one.read_value() for _ in range(1000)])
    loop = tf.while_loop(lambda i: i < 10000, lambda i: i + 1, [0])[0].op
    array = np.zeros([BYTES // 4], np.float32)
    steps = {
        "serve/noop_step": (nothing, None),
        "serve/feed_64MiB": (taken, {x: array}),
        "serve/fetch_64MiB": (big.read_value(), None),
        "serve/loop_10000": (loop, None),
        "serve/reads_1000": (reads, None),
    }
    return tf1.global_variables_initializer(), steps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each row and server")
    given = parser.parse_args()
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    tf1 = tf.compat.v1
    tf1.disable_eager_execution()
    tf1.enable_control_flow_v2()
    tf1.logging.set_verbosity("ERROR")
    with harness.Servers(given.tenon, []) as servers, tf.Graph().as_default():
        init, steps = rows(tf)
        sessions = {"tenon": tf1.Session(servers.ours), "tensorflow": tf1.Session(servers.theirs)}
        for session in sessions.values():
            session.run(init)
        for row, (fetch, feeds) in steps.items():
            times = {name: [] for name in sessions}
            for session in sessions.values():
                for _ in range(3):
                    session.run(fetch, feeds)
            end = time.monotonic() + given.seconds * len(sessions)
            while time.monotonic() < end or len(times["tenon"]) < 7:
                for name, session in sessions.items():
                    begin = time.perf_counter()
                    session.run(fetch, feeds)
                    times[name].append(time.perf_counter() - begin)
            for name, taken in times.items():
                taken.sort()
                print(json.dumps({
                    "row": row, "peer": name, "version": tf.__version__ if name == "tensorflow" else "tree",
                    "median_ns": round(statistics.median(taken) * 1e9), "min_ns": round(taken[0] * 1e9),
                    "p90_ns": round(taken[len(taken) * 9 // 10] * 1e9), "samples": len(taken),
                }), flush=True)


if __name__ == "__main__":
    main()
