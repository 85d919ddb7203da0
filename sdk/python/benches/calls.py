"""What a call costs beside the step itself: prepared steps, `Session.run`, a gibibyte in and out, and calls of eight threads.

Each time is the shortest of many short runs, in microseconds per call, so that other work on the machine counts little. Where
`onnxruntime` with `onnx`, or TensorFlow, is installed, the same graph is run there.
"""

import json
import time

import numpy as np
import tenon


def shortest(call, *, calls=200, runs=200):
    """The shortest time of a call, in microseconds."""
    best = float("inf")
    for _ in range(runs):
        begin = time.perf_counter_ns()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter_ns() - begin) / calls)
    return round(best / 1000, 2)


def with_tenon(x, y):
    """Tenon: a callable, its parts, and `Session.run`."""
    with tenon.Graph() as graph:
        a = tenon.placeholder(tenon.float32, [4], name="a")
        b = tenon.placeholder(tenon.float32, [4], name="b")
        total = tenon.ops.add_v2(a, b, name="sum")
        nothing = tenon.ops.no_op(name="nothing")
    with tenon.Session(graph) as session:
        step = session.callable([a, b], total)
        raw = session.callable([a, b], total, raw=True)
        tensors = tenon.Tensor(x), tenon.Tensor(y)
        empty = session.callable([], [], targets=[nothing])
        aligned = tenon.empty(4), tenon.empty(4)
        aligned[0][:], aligned[1][:] = x, y
        feeds = {"a": x, "b": y}
        return {
            "callable, arrays": shortest(lambda: step(x, y)),
            "callable, aligned arrays": shortest(lambda: step(*aligned)),
            "callable, tensors in and out": shortest(lambda: raw(*tensors)),
            "callable of nothing": shortest(lambda: empty()),
            "run by names": shortest(lambda: session.run("sum", feeds)),
            "run by outputs": shortest(lambda: session.run(total, {a: x, b: y})),
            "conversion of two arrays": shortest(lambda: (tenon.Tensor(x), tenon.Tensor(y))),
        }


def with_a_gibibyte():
    """Whether a gibibyte goes in and out at its address, and the time."""
    with tenon.Graph() as graph:
        a = tenon.placeholder(tenon.float32, [None], name="a")
        same = tenon.ops.identity(a)
    big = tenon.empty(1 << 28)
    with tenon.Session(graph) as session:
        step = session.callable([a], same)
        out = step(big)
        is_same = out.__array_interface__["data"][0] == big.__array_interface__["data"][0]
        return {"a gibibyte at its address": is_same, "a gibibyte": shortest(lambda: step(big), calls=20, runs=20)}


def with_threads(count=8, seconds=1.0):
    """How many calls of one callable a second, from one thread and from several; the step is a product that takes some 100 us."""
    import threading

    with tenon.Graph() as graph:
        a = tenon.placeholder(tenon.float32, [128, 128])
        b = a @ a
    value = np.ones((128, 128), np.float32)
    with tenon.Session(graph) as session:
        step = session.callable([a], b)

        def rate(threads):
            counts = [0] * threads
            end = time.perf_counter() + seconds

            def work(at):
                while time.perf_counter() < end:
                    step(value)
                    counts[at] += 1

            all_threads = [threading.Thread(target=work, args=(at,)) for at in range(threads)]
            for thread in all_threads:
                thread.start()
            for thread in all_threads:
                thread.join()
            return round(sum(counts) / seconds)

        rate(1)
        return {"calls a second, one thread": rate(1), f"calls a second, {count} threads": rate(count)}


def with_onnxruntime(x, y):
    """onnxruntime: `InferenceSession.run`."""
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper

    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [4])
    graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["sum"])], "g", [value("a"), value("b")], [value("sum")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {"a": x, "b": y}
    return {"onnxruntime run": shortest(lambda: session.run(None, feeds))}


def with_tensorflow(x, y):
    """TensorFlow: `make_callable` and `Session.run`."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        a, b = v1.placeholder(tf.float32, [4]), v1.placeholder(tf.float32, [4])
        total = a + b
        step = session.make_callable(total, [a, b])
        return {
            "tensorflow callable": shortest(lambda: step(x, y), runs=30),
            "tensorflow run": shortest(lambda: session.run(total, {a: x, b: y}), runs=30),
        }


def main():
    """Measures, and prints JSON."""
    x, y = np.ones(4, np.float32), np.ones(4, np.float32)
    found = {**with_tenon(x, y), **with_a_gibibyte(), **with_threads()}
    for measure in (with_onnxruntime, with_tensorflow):
        try:
            found.update(measure(x, y))
        except ImportError as error:
            found[measure.__name__.removeprefix("with_")] = f"not installed: {error.name}"
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
