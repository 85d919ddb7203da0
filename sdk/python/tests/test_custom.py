"""Ops with kernels in Python."""

import gc
import inspect
import pickle
import sys
import threading

import ml_dtypes
import numpy as np
import pytest
import tenon
from tenon import eager, ops


@tenon.op
def py_scaled(x: tenon.float32, *, factor: float = 2.0) -> tenon.float32:
    """Each element times a factor.

    The factor is an attribute.
    """
    return x * np.float32(factor)


@tenon.op(inputs="x: T, y: T", outputs="sum: T, difference: T", T=[tenon.float32, tenon.float64])
def py_sum_difference(x, y):
    return x + y, x - y


@py_sum_difference.shape
def _(x, y):
    return x, x


@py_sum_difference.gradient
def _(node, dsum, ddifference):
    assert node.op == "PySumDifference" and len(node.inputs) == 2 and len(node.outputs) == 2
    return dsum + ddifference, dsum - ddifference


A = np.array([[1.5, -2.0], [0.25, 8.0]], np.float32)


def test_an_op_runs_in_graphs_and_on_arrays():
    with tenon.Graph() as graph:
        x = tenon.placeholder(tenon.float32, [None, 2])
        y = py_scaled(x, factor=3.0) + ops.py_scaled(x)
    assert y.node.inputs[0].node.op == "PyScaled"
    with tenon.Session(graph) as session:
        np.testing.assert_array_equal(session.run(y, {x: A}), A * 5)
        (node,) = [node for node in session.plan(y) if node["label"] == "python"][:1]
        assert node["plugin"] == "python-PyScaled" and "CPU" in node["device"]
    np.testing.assert_array_equal(py_scaled.run(A), A * 2)
    np.testing.assert_array_equal(eager.py_scaled(A, factor=-1.0), -A)
    for value in (A.astype(np.float64), A):
        total, difference = py_sum_difference.run(value, value * 2)
        np.testing.assert_array_equal(total, value * 3)
        np.testing.assert_array_equal(difference, -value)
        assert total.dtype == value.dtype
    assert any(plugin.name == "python-PyScaled" for plugin in tenon.show().plugins)


def test_an_op_describes_itself():
    assert "Each element times a factor." in py_scaled.__doc__ and "The factor is an attribute." in py_scaled.__doc__
    assert list(inspect.signature(py_scaled).parameters)[:2] == ["x", "factor"]
    assert inspect.signature(py_scaled).parameters["factor"].default == 2.0
    assert repr(py_scaled) == "<tenon.CustomOp 'PyScaled'>" and "py_scaled" in dir(ops)


def test_a_gradient_is_that_of_the_function():
    @tenon.op
    def py_cube(x: tenon.float64) -> tenon.float64:
        return x**3

    with tenon.Graph() as graph:
        x = tenon.placeholder(tenon.float64, [3])
        y = py_cube(x)
        with pytest.raises(tenon.errors.UnimplementedError, match="gradient"):
            tenon.gradients(y, x)

        @py_cube.gradient
        def _(node, dy):
            return 3.0 * ops.square(node.inputs[0]) * dy

        (dx,) = tenon.gradients(y * 2.0, x)
        (second,) = tenon.gradients(dx, x)
        total, difference = py_sum_difference(x, ops.square(x))
        (both,) = tenon.gradients([total, difference], x)
    at = np.array([0.5, -2.0, 3.0])
    with tenon.Session(graph) as session:
        found = session.run([dx, second, both], {x: at})
    np.testing.assert_allclose(found[0], 6 * at**2)
    np.testing.assert_allclose(found[1], 12 * at)
    np.testing.assert_allclose(found[2], np.full(3, 2.0))


def test_a_gradient_may_use_outputs_and_attributes():
    @tenon.op
    def py_powered(x: tenon.float64, *, exponent: int = 2) -> tenon.float64:
        return x**exponent

    @py_powered.gradient
    def _(node, dy):
        return node.outputs[0] * float(node.attrs["exponent"]) / node.inputs[0] * dy

    with tenon.Graph() as graph:
        x = tenon.placeholder(tenon.float64, [2])
        (dx,) = tenon.gradients(py_powered(x, exponent=4), x)
    with tenon.Session(graph) as session:
        np.testing.assert_allclose(session.run(dx, {x: [2.0, -1.0]}), [32.0, -4.0])


def test_training_through_an_op():
    @tenon.op
    def py_identity(x: tenon.float32) -> tenon.float32:
        return x

    @py_identity.gradient
    def _(node, dy):
        return dy

    with tenon.Graph() as graph:
        w = tenon.train.variable("w", [2], initial=[4.0, -3.0])
        loss = ops.sum(ops.square(py_identity(w.value)), [0])
        step = tenon.train.SGD(0.25).minimize(loss)
        init = tenon.train.initializer()
    with tenon.Session(graph) as session:
        session.run(init)
        for _ in range(20):
            session.run(step)
        np.testing.assert_allclose(session.run(w.value), [0, 0], atol=1e-5)


def test_shapes():
    seen = []

    @tenon.op
    def py_rows(x: tenon.float32, *, count: int) -> tenon.float32:
        return np.repeat(x[None], count, 0)

    with tenon.Graph():
        assert py_rows(tenon.placeholder(tenon.float32, [2]), count=3).shape is None

    @py_rows.shape
    def _(x, *, count):
        seen.append(x)
        if x is None:
            return None
        if len(x) > 1:
            raise ValueError("expected a vector")
        return (count, *x)

    with tenon.Graph() as graph:
        x = tenon.placeholder(tenon.float32, [None], name="x")
        y = py_rows(x, count=3)
        assert y.shape == (3, None) and py_rows(tenon.placeholder(tenon.float32), count=1).shape is None
        assert seen[:2] == [(None,), None]
        with pytest.raises(tenon.errors.InvalidArgumentError, match="expected a vector") as caught:
            py_rows(tenon.placeholder(tenon.float32, [2, 2]), count=1, name="wrong")
        assert caught.value.node == "wrong" and "ValueError" in str(caught.value)
    with tenon.Session(graph) as session:
        assert session.run(y, {x: [1.0, 2.0]}).tolist() == [[1, 2]] * 3


@pytest.mark.parametrize(
    "error, expected",
    [
        (ValueError("bad"), "InvalidArgumentError"), (TypeError("bad"), "InvalidArgumentError"), (KeyError("bad"), "NotFoundError"),
        (StopIteration("bad"), "OutOfRangeError"), (IndexError("bad"), "OutOfRangeError"), (MemoryError("bad"), "ResourceExhaustedError"),
        (NotImplementedError("bad"), "UnimplementedError"), (ZeroDivisionError("bad"), "UnknownError"), (OSError("bad"), "UnknownError"),
        (tenon.errors.DataLossError("bad"), "DataLossError"), (SystemExit("bad"), "UnknownError"),
    ],
)  # fmt: skip
def test_exceptions_are_errors_of_the_step(error, expected):
    @tenon.op(stateful=True)
    def py_fails(x: tenon.float32) -> tenon.float32:
        raise error

    with tenon.Graph() as graph:
        y = py_fails(tenon.constant(1.0), name="failing")
    with tenon.Session(graph) as session:
        with pytest.raises(getattr(tenon.errors, expected)) as caught:
            session.run(y)
    assert type(caught.value).__name__ == expected and caught.value.node == "failing" and caught.value.op == "PyFails"
    assert f"{type(error).__name__}: " in str(caught.value) and "bad" in str(caught.value)
    assert "in py_fails, line" in str(caught.value)


def test_wrong_values_are_refused():
    @tenon.op
    def py_wrong(x: tenon.float32, *, kind: str = "") -> tenon.float32:
        return {"int": np.ones(2, np.int64), "text": "a", "none": None, "object": np.array([object()]), "list": [1.0, 2.0]}[kind]

    for kind in ("text", "none", "object"):
        with pytest.raises(tenon.errors.InvalidArgumentError):
            py_wrong.run(np.float32(1), kind=kind)
    assert py_wrong.run(np.float32(1), kind="list").tolist() == [1, 2]

    @tenon.op
    def py_one_of_two(x: tenon.float32) -> (tenon.float32, tenon.int32):
        return x

    with pytest.raises(tenon.errors.InvalidArgumentError, match="2 values"):
        py_one_of_two.run(np.float32(1))


def test_inputs_are_read_only_and_may_be_kept():
    kept = []

    @tenon.op(stateful=True)
    def py_keeps(x: tenon.float32) -> tenon.float32:
        kept.append(x)
        return x.copy()

    value = np.arange(1000, dtype=np.float32)
    with tenon.Graph() as graph:
        x = tenon.placeholder(tenon.float32, [None])
        y = ops.neg(py_keeps(ops.abs(x)))
    with tenon.Session(graph) as session:
        for at in range(3):
            session.run(y, {x: value + at})
    gc.collect()
    for at, array in enumerate(kept):
        assert not array.flags.writeable
        np.testing.assert_array_equal(array, value + at)


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint64, np.bool_, np.complex128, ml_dtypes.bfloat16])
def test_types(dtype):
    name = f"PyCopy{np.dtype(dtype).name.replace('_', '').capitalize()}"
    kind = tenon.as_dtype(dtype).name

    @tenon.op(name=name, inputs=[f"x: {kind}"], outputs=[f"y: {kind}"])
    def copied(x):
        assert x.dtype == dtype
        return x

    for value in (np.array([0, 1, 1]).astype(dtype), np.zeros((0, 3), dtype), np.array(1).astype(dtype)):
        found = copied.run(value)
        assert found.dtype == dtype and found.shape == value.shape and (found == value).all()


def test_strings_and_lists():
    @tenon.op(inputs="texts: N * string", outputs="joined: string", N="int >= 1")
    def py_joined(*texts):
        return b"-".join(text.item() for text in texts)

    @tenon.op(inputs="x: string", outputs="y: string")
    def py_upper(x):
        return np.array([text.upper() for text in x.ravel()], object).reshape(x.shape)

    assert py_joined.run([b"a", b"b", b"c"]) == b"a-b-c"
    assert py_upper.run(np.array([["a", "b"]])).tolist() == [[b"A", b"B"]]


def test_a_second_definition_takes_the_place():
    @tenon.op(name="PyAgain")
    def first(x: tenon.float32) -> tenon.float32:
        return x + 1

    with tenon.Graph() as graph:
        y = first(tenon.placeholder(tenon.float32, name="x"))
    session = tenon.Session(graph)
    assert session.run(y, {"x": 1.0}) == 2

    @tenon.op(name="PyAgain")
    def second(x: tenon.float32) -> tenon.float32:
        return x + 10

    assert session.run(y, {"x": 1.0}) == 11
    session.close()

    @tenon.op(name="PyAgain")
    def third(x: tenon.float32, y: tenon.float32) -> tenon.float32:
        return x * y

    assert third.run(np.float32(3), np.float32(4)) == 12
    with pytest.raises(tenon.TenonError):
        tenon.op(lambda x: x, name="MatMul", inputs="x: float", outputs="y: float")
    with pytest.raises(tenon.TenonError, match="lower"):
        tenon.op(lambda x: x, name="lower", inputs="x: float", outputs="y: float")


def test_definitions_without_types():
    with pytest.raises(tenon.errors.InvalidArgumentError, match="parameter 'x'"):
        tenon.op(lambda x: x)

    def attribute(x: tenon.float32, *, other: dict) -> tenon.float32:
        return x

    with pytest.raises(tenon.errors.InvalidArgumentError, match="parameter 'other'"):
        tenon.op(attribute)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="func"):
        tenon.op(lambda x: x, name="PyFunc", inputs=["x: float"], outputs=["y: float"], f="func")


def test_what_uses_the_graph_that_calls_it_gets_an_error():
    graph = tenon.Graph()

    @tenon.op
    def py_reentrant(x: tenon.float32) -> tenon.float32:
        return x

    @py_reentrant.shape
    def _(x):
        return graph["x"].shape

    with graph:
        tenon.placeholder(tenon.float32, [2], name="x")
        with pytest.raises(tenon.errors.FailedPreconditionError, match="being changed"):
            py_reentrant(graph["x"])


def test_threads_build_and_run_beside_each_other():
    graph = tenon.Graph()
    errors = []

    @tenon.op
    def py_threaded(x: tenon.float32) -> tenon.float32:
        return x + 1

    @py_threaded.shape
    def _(x):
        # Lets other threads have Python's lock while the graph's is held.
        sys.setswitchinterval(1e-5)
        return tuple(sum(1 for _ in range(100)) and size for size in x)

    def build():
        try:
            for _ in range(50):
                py_threaded(tenon.constant([1.0], graph=graph))
                assert len(graph) > 0
        except Exception as error:
            errors.append(error)

    before = sys.getswitchinterval()
    threads = [threading.Thread(target=build) for _ in range(4)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    finally:
        sys.setswitchinterval(before)
    assert not errors and len(graph) == 400
    with tenon.Session(graph) as session:
        added = [node for node in graph.nodes() if node.op == "PyThreaded"]
        assert all(value == 2 for value in session.run([node.outputs[0] for node in added]))


def test_graphs_with_such_ops_are_pickled():
    with tenon.Graph() as graph:
        py_scaled(tenon.constant([1.0]), name="y")
    again = pickle.loads(pickle.dumps(graph))
    with tenon.Session(again) as session:
        assert session.run("y:0").tolist() == [2]
