"""Functions of graphs, branches and loops."""

import numpy as np
import pytest
import tenon
from tenon import functions, ops


def value(outputs, feeds=None):
    found = outputs
    while isinstance(found, (list, tuple)):
        found = found[0]
    with tenon.Session(found.graph) as session:
        return session.run(outputs, feeds)


A = np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)


def test_calls_share_a_body():
    calls = []

    @tenon.function
    def doubled(x):
        calls.append(x.shape)
        return x * 2.0

    with tenon.Graph() as graph:
        x = tenon.placeholder(tenon.float32, [2, 2])
        y = doubled(doubled(x))
        z = doubled(tenon.placeholder(tenon.float32, [None]))
    assert y.node.op == "PartitionedCall" and calls == [(2, 2), None, (None,)] and z.graph is graph
    np.testing.assert_array_equal(value(y, {x: A}), A * 4)
    np.testing.assert_array_equal(doubled.run(A), A * 2)
    assert doubled.__name__ == "doubled" and repr(doubled) == "<tenon.Function 'doubled'>"


def test_structures_and_static_arguments():
    @tenon.function(name="pairs")
    def split(x, parts, *, scale=1.0):
        return {"sum": x + parts["y"], "rest": [x * scale, None, (parts["y"],)]}

    with tenon.Graph():
        made = split(A, {"y": tenon.constant(A)}, scale=3.0)
    assert made["rest"][1] is None
    np.testing.assert_array_equal(value(made["sum"]), A * 2)
    np.testing.assert_array_equal(value(made["rest"][0]), A * 3)
    np.testing.assert_array_equal(value(made["rest"][2][0]), A)


def test_outputs_of_the_graph_around_become_arguments():
    with tenon.Graph():
        w = tenon.placeholder(tenon.float32, [2])

        @tenon.function
        def inner(x):
            return x * w

        @tenon.function
        def outer(x):
            return inner(x) + w

        x = tenon.placeholder(tenon.float32, [2])
        y = outer(x)
        dx, dw = tenon.gradients(y, [x, w])
    feeds = {x: [3.0, 4.0], w: [5.0, 6.0]}
    assert value(y, feeds).tolist() == [20, 30]
    assert value(dx, feeds).tolist() == [5, 6] and value(dw, feeds).tolist() == [4, 5]
    with pytest.raises(tenon.errors.InvalidArgumentError, match="another graph"), tenon.Graph():
        inner(tenon.constant([1.0, 2.0]))


def test_effects_run_in_order():
    with tenon.Graph() as graph:
        count = tenon.train.variable("count", [], initial=0.0)

        @tenon.function
        def counted(x):
            count.assign(x)
            count.assign(x * 10.0)
            return ops.read_variable_op(count.handle, dtype=tenon.float32)

        y = counted(tenon.placeholder(tenon.float32, [], name="x"))
        init = tenon.train.initializer()
    assert y.node.op == "StatefulPartitionedCall"
    with tenon.Session(graph) as session:
        session.run(init)
        assert session.run(y, {"x": 2.0}) == 20 and session.run(count.value) == 20


def test_a_gradient_through_a_variable():
    with tenon.Graph() as graph:
        w = tenon.train.variable("w", [2], initial=[2.0, 3.0])

        @tenon.function
        def loss(x):
            return ops.sum(ops.square(w.value * x), [0])

        step = tenon.train.SGD(0.1).minimize(loss(tenon.constant([1.0, 1.0])))
        init = tenon.train.initializer()
    with tenon.Session(graph) as session:
        session.run(init)
        session.run(step)
        np.testing.assert_allclose(session.run(w.value), [1.6, 2.4], rtol=1e-6)


def test_cond():
    with tenon.Graph():
        flag = tenon.placeholder(tenon.bool_, [])
        x = tenon.placeholder(tenon.float32, [2])
        y, same = tenon.cond(flag, lambda: (x * 2.0, x), lambda: (x - 1.0, x))
        (dx,) = tenon.gradients(y, x)
        assert y.shape == (2,) and y.node.op == "StatelessIf"
    for on, expected, slope in ((True, [6, 8], 2), (False, [2, 3], 1)):
        found = value([y, same, dx], {flag: on, x: [3.0, 4.0]})
        assert [part.tolist() for part in found] == [expected, [3, 4], [slope, slope]]
    with tenon.Graph(), pytest.raises(tenon.errors.InvalidArgumentError, match="false_fn"):
        tenon.cond(tenon.constant(True), lambda: tenon.constant(1.0), lambda: tenon.constant(1))


def test_only_the_branch_that_is_chosen_has_effects():
    with tenon.Graph() as graph:
        w = tenon.train.variable("w", [], initial=0.0)
        flag = tenon.placeholder(tenon.bool_, [])

        def changed():
            w.assign(5.0)
            return tenon.constant(1.0)

        y = tenon.cond(flag, changed, lambda: tenon.constant(2.0))
        init = tenon.train.initializer()
    with tenon.Session(graph) as session:
        session.run(init)
        assert session.run(y, {flag: False}) == 2 and session.run(w.value) == 0
        assert session.run(y, {flag: True}) == 1 and session.run(w.value) == 5


def test_switch_case():
    with tenon.Graph():
        index = tenon.placeholder(tenon.int32, [])
        x = tenon.placeholder(tenon.float32, [])
        y = tenon.switch_case(index, [lambda: x + 1.0, lambda: x * x, lambda: x - 1.0])
        (dx,) = tenon.gradients(y, x)
    assert [float(value(y, {index: at, x: 5.0})) for at in (0, 1, 2, 7, -1)] == [6, 25, 4, 4, 4]
    assert [float(value(dx, {index: at, x: 5.0})) for at in (0, 1, 2)] == [1, 10, 1]
    with pytest.raises(tenon.errors.InvalidArgumentError):
        tenon.switch_case(0, [])


def test_while_loop():
    with tenon.Graph():
        x = tenon.placeholder(tenon.float32, [2])
        factor = tenon.placeholder(tenon.float32, [])
        count, y = tenon.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * factor), [0, x])
        dx, df = tenon.gradients(y, [x, factor])
        assert y.shape == (2,) and y.node.op == "StatelessWhile"
    feeds = {x: [1.0, 2.0], factor: 2.0}
    found = value([count, y, dx, df], feeds)
    assert [np.asarray(part).tolist() for part in found] == [3, [8, 16], [8, 8], 36]


def test_loops_whose_sizes_change():
    with tenon.Graph():
        (y,) = tenon.while_loop(
            lambda v: ops.size(v) < 7, lambda v: ops.concat_v2([v, v], 0), [tenon.constant([1.0])]
        )
        assert y.shape == (None,)
        (most,) = tenon.while_loop(lambda v: v < 1000, lambda v: v * 2, [1], maximum_iterations=4)
    assert value(y).tolist() == [1] * 8 and value(most) == 16
    with tenon.Graph(), pytest.raises(tenon.errors.InvalidArgumentError, match="body gives"):
        tenon.while_loop(lambda v: v < 3, lambda v: ops.cast(v, DstT=tenon.float32), [1])
    with tenon.Graph(), pytest.raises(tenon.errors.InvalidArgumentError, match="as many"):
        tenon.while_loop(lambda v: v < 3, lambda v: (v, v), [1])


def test_functions_call_each_other_in_loops():
    @tenon.function
    def step(v):
        return tenon.cond(ops.sum(v, [0]) > 10.0, lambda: v - 1.0, lambda: v * 2.0)

    with tenon.Graph():
        _, y = tenon.while_loop(lambda i, v: i < 4, lambda i, v: (i + 1, step(v)), [0, tenon.constant([1.0, 2.0])])
    expected = np.array([1.0, 2.0], np.float32)
    for _ in range(4):
        expected = expected - 1 if expected.sum() > 10 else expected * 2
    np.testing.assert_array_equal(value(y), expected)


def test_function_defs_go_out_and_in():
    @tenon.function
    def affine(x, y):
        return x * y + 1.0

    with tenon.Graph() as graph:
        made = affine.concrete(tenon.constant(A), tenon.constant(A))
    data = made.to_function_def()
    assert made.name in repr(made) and made.name.encode() in data
    with tenon.Graph() as other:
        again = tenon.functions.import_function(data)
        assert again.name == made.name and [dtype.name for dtype in again.input_types] == ["float", "float"]
        y = again(A, A)
        (y,) = y
    np.testing.assert_array_equal(value(y), A * A + 1)
    assert other.to_graph_def() and graph is made.graph
    again = tenon.Graph.from_graph_def(other.to_graph_def())
    with tenon.Session(again) as session:
        np.testing.assert_array_equal(session.run(y.name), A * A + 1)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="2 arguments"):
        made(tenon.constant(A, graph=graph))
    for damaged in (b"\xff\xff", b"", data[:-2]):
        with pytest.raises(tenon.TenonError):
            functions.import_function(damaged, graph=tenon.Graph())


def test_a_function_that_calls_itself_is_refused():
    @tenon.function
    def endless(x):
        return endless(x)

    with tenon.Graph(), pytest.raises(tenon.errors.InvalidArgumentError, match="itself"):
        endless(tenon.constant(1.0))
    with tenon.Graph(), pytest.raises(tenon.errors.InvalidArgumentError, match="hashable"):
        tenon.function(lambda x, y: x)(tenon.constant(1.0), {1, 2})


def test_an_op_of_python_in_a_function():
    @tenon.op
    def py_in_function(x: tenon.float32) -> tenon.float32:
        return x * 7

    @tenon.function
    def called(x):
        return py_in_function(x) + 1.0

    assert called.run(np.float32(2)) == 15
