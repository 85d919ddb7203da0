"""Looks for cliffs: ops on skinny, tall, tiny, prime, many-dimensional and one-channel shapes and on unusual values,
beside TensorFlow and beside a twin, which is a case of the same family with as much work for each op or byte.

    cliffs.py OUT.jsonl [--match PART] [--seconds 0.15] [--threshold 1.5]

Needs TensorFlow, and the Python module `tenon` with its plugins (PYTHONPATH, TENON_PLUGIN_PATH), of a release build.
Both sides compute on one thread. Times are processor time of the process, least of the samples, so that a busy machine
distorts them little. Results are compared before they are timed. At the end it prints the cases above the threshold,
in comparison with TensorFlow or, where TensorFlow is slow as well, with the twin.
"""

import argparse
import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf
from cliff_cases import FAMILIES, Inputs
from timing import cpu

import tenon

tf1 = tf.compat.v1
# Relative to the largest result.
TOLERANCE = {"float16": 5e-3, "bfloat16": 4e-2}


def tensorflow_step(graph, inputs, fetches):
    """A step of TensorFlow on the caller's thread, and one that returns the results."""
    options = tf1.ConfigProto(
        intra_op_parallelism_threads=1, inter_op_parallelism_threads=1, use_per_session_threads=True
    )
    options.graph_options.optimizer_options.opt_level = tf1.OptimizerOptions.L0
    options.graph_options.rewrite_options.disable_meta_optimizer = True
    session = tf1.Session(graph=graph, config=options)
    feeds, arrays = inputs.placeholders, inputs.arrays
    timed = session.make_callable([fetch.op for fetch in fetches], feed_list=feeds)
    values = session.make_callable(list(fetches), feed_list=feeds)
    return lambda: timed(*arrays), lambda: values(*arrays)


def tenon_step(graph, inputs, fetches):
    """The same of Tenon."""
    ours = tenon.Graph.from_graph_def(graph.as_graph_def())
    session = tenon.Session(ours)
    feeds = [feed.name for feed in inputs.placeholders]
    timed = session.callable(feeds, [], targets=[fetch.op.name for fetch in fetches])
    values = session.callable(feeds, [fetch.name for fetch in fetches])
    arrays = inputs.arrays
    return lambda: timed(*arrays), lambda: values(*arrays)


def least(call, seconds):
    """Least nanoseconds of processor time of a call."""
    call()
    start = time.process_time_ns()
    call()
    once = max(time.process_time_ns() - start, 200)
    calls = max(1, int(2e6 / once))
    best, begin = float("inf"), time.process_time_ns()
    rounds = 0
    while rounds < 3 or time.process_time_ns() - begin < seconds * 1e9:
        start = time.process_time_ns()
        for _ in range(calls):
            call()
        best = min(best, (time.process_time_ns() - start) / calls)
        rounds += 1
    return best


def differs(ours, theirs):
    """What is wrong with results, or nothing."""
    for index, (found, expected) in enumerate(zip(ours, theirs)):
        if found.shape != expected.shape:
            return f"result {index}: shape {found.shape}, expected {expected.shape}"
        if expected.dtype.kind not in "fcV" or not expected.size:
            if not np.array_equal(found, expected):
                return f"result {index}: {np.sum(found != expected)} of {expected.size} differ"
            continue
        tolerance = TOLERANCE.get(str(expected.dtype), 2e-5)
        kind = np.complex128 if expected.dtype.kind == "c" else np.float64
        found, expected = found.astype(kind), expected.astype(kind)
        finite = np.isfinite(expected)
        if not np.array_equal(finite, np.isfinite(found)):
            return f"result {index}: other infinities"
        scale = np.abs(expected[finite]).max() if finite.any() else 0
        off = np.abs(found[finite] - expected[finite]).max() if finite.any() else 0
        if off > tolerance * max(scale, 1e-30):
            return f"result {index}: off by {off / max(scale, 1e-30):.2g} of the largest"
    return ""


def run(family, case, seconds):
    """The record of a case."""
    graph = tf.Graph()
    with graph.as_default():
        inputs = Inputs()
        fetches = case.make(inputs)
    fetches = list(fetches) if isinstance(fetches, (list, tuple)) else [fetches]
    record = {"bench": "cliffs", "family": family, "case": case.label, "work": case.work}
    theirs, theirs_values = tensorflow_step(graph, inputs, fetches)
    ours, ours_values = tenon_step(graph, inputs, fetches)
    if case.compared:
        record["differs"] = differs(ours_values(), theirs_values())
    record["tenon_ns"] = round(least(ours, seconds), 1)
    record["tensorflow_ns"] = round(least(theirs, seconds), 1)
    record["ratio"] = round(record["tenon_ns"] / record["tensorflow_ns"], 3)
    return record


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--match", default="")
    parser.add_argument("--seconds", type=float, default=0.15)
    parser.add_argument("--threshold", type=float, default=1.5)
    options = parser.parse_args()
    tenon.configure(threads=1)
    records = []
    with open(options.out, "a", encoding="utf-8") as out:
        for family, cases in FAMILIES.items():
            best = None
            for case in cases():
                if options.match not in f"{family}/{case.label}":
                    continue
                try:
                    record = run(family, case, options.seconds)
                except Exception as error:  # what one side cannot do is a line of the table
                    record = {"bench": "cliffs", "family": family, "case": case.label, "error": " ".join(str(error).split())[:200]}
                else:
                    rate = record["tenon_ns"] / max(case.work, 1.0)
                    best = best or rate
                    record["twin"] = round(rate / best, 2)
                record["cpu"] = cpu()
                records.append(record)
                print(json.dumps(record), file=out, flush=True)
                print(told(record), flush=True)
    cliffs = [record for record in records if record.get("ratio", 0) > options.threshold or record.get("error") or record.get("differs")]
    print(f"\n{len(records)} cases, {len(cliffs)} above {options.threshold} of TensorFlow, failed or different:")
    for record in sorted(cliffs, key=lambda record: -record.get("ratio", 0)):
        print(told(record))
    return 0


def told(record):
    """A line of the table."""
    name = f"{record['family']}/{record['case']}"
    if record.get("error"):
        return f"{name:60} {record['error']}"
    times = f"{record['tenon_ns'] / 1e3:12.1f} us {record['tensorflow_ns'] / 1e3:12.1f} us"
    return f"{name:60} {times} {record['ratio']:8.2f}  twin {record['twin']:8.2f}  {record.get('differs', '')}"


if __name__ == "__main__":
    sys.exit(main())
