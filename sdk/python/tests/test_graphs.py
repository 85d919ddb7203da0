"""Graphs: operators, functions of ops, names, devices, messages."""

import copy
import inspect
import pickle

import numpy as np
import pytest
import tenon
from tenon import ops


@pytest.fixture
def graph():
    with tenon.Graph() as graph:
        yield graph


def value(output, feeds=None):
    with tenon.Session(output.graph) as session:
        return session.run(output, feeds)


A = np.array([[3.0, -4.0], [5.5, 2.0]], np.float32)
B = np.array([[2.0, 3.0], [-1.5, 4.0]], np.float32)


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b, lambda a, b: a // b,
        lambda a, b: a % b, lambda a, b: abs(a) ** b, lambda a, b: a @ b, lambda a, b: -a, lambda a, b: abs(a),
        lambda a, b: a < b, lambda a, b: a <= b, lambda a, b: a > b, lambda a, b: a >= b,
        lambda a, b: 1 + a, lambda a, b: 2 - a, lambda a, b: 3 * a, lambda a, b: 2 / a, lambda a, b: 2 ** a,
        lambda a, b: B + a, lambda a, b: B @ a, lambda a, b: (a > 0) & (b > 0), lambda a, b: (a > 0) | ~(b > 0),
        lambda a, b: (a > 0) ^ (b > 0),
        lambda a, b: a[0], lambda a, b: a[-1, 1], lambda a, b: a[:, ::-1], lambda a, b: a[..., 0], lambda a, b: a[None, 1:],
    ],
)  # fmt: skip
def test_operators_are_numpys(graph, function):
    a, b = tenon.constant(A), tenon.constant(B)
    np.testing.assert_allclose(value(function(a, b)), function(A, B), rtol=1e-6)


def test_integer_operators(graph):
    a, b = np.array([7, -7, 12], np.int32), np.array([2, 2, 5], np.int32)
    x, y = tenon.constant(a), tenon.constant(b)
    for function in (lambda a, b: a // b, lambda a, b: a % b, lambda a, b: a & b, lambda a, b: a | b, lambda a, b: a ^ b, lambda a, b: ~a):
        np.testing.assert_array_equal(value(function(x, y)), function(a, b))


def test_outputs_have_no_truth_and_no_elements(graph):
    x = tenon.placeholder(tenon.float32, [2, None], name="x")
    with pytest.raises(TypeError, match="step"):
        bool(x)
    with pytest.raises(TypeError, match="fetch"):
        np.asarray(x)
    assert [part.shape for part in x] == [(None,), (None,)]
    with pytest.raises(TypeError):
        iter(tenon.placeholder(tenon.float32))
    with pytest.raises(TypeError, match="gather"):
        x["a"]
    assert x == graph["x"] and x != x + 1 and len({x, graph["x:0"]}) == 1


def test_names_devices_and_control_inputs(graph):
    with graph.name_scope("tower"), graph.device("/device:CPU:0"):
        a = tenon.constant(1.0, name="a")
        with graph.control_dependencies([a]):
            b = a + 1
    assert a.name == "tower/a:0" and a.node.device.endswith("CPU:0") and a.node.op == "Const"
    assert b.node.control_inputs == [a.node] and b.node.name == "tower/AddV2"
    assert tenon.constant(1.0, name="c").name == "c:0" and tenon.constant(1.0, name="c").name == "c_1:0"
    assert ops.identity(a, control_inputs=[b], device="/device:CPU:0", name="i").node.control_inputs == [b.node]
    assert "c" in graph and "tower/a" in graph._ipython_key_completions_()
    assert graph.node("c").attrs["dtype"] == tenon.float32 and graph.node("c").attrs["value"].item() == 1.0


def test_shapes_and_types_are_known_as_nodes_are_added(graph):
    x = tenon.placeholder(tenon.float32, [None, 3])
    y = ops.mat_mul(x, np.ones((3, 5), np.float32))
    assert y.shape == (None, 5) and y.dtype == np.float32
    assert tenon.placeholder(tenon.int32).shape is None
    assert "<tenon.Output 'MatMul:0' shape=(None, 5) dtype=float>" == repr(y)


def test_functions_of_ops_describe_themselves():
    signature = inspect.signature(ops.mat_mul)
    assert list(signature.parameters)[:2] == ["a", "b"]
    assert signature.parameters["transpose_a"].default is False
    assert signature.parameters["T"].default is None
    assert "MatMul" in ops.mat_mul.__doc__ and "transpose_b: bool" in ops.mat_mul.__doc__
    assert {"mat_mul", "conv2d", "add_v2", "no_op", "one_hot", "top_k_v2", "fused_batch_norm_v3"} <= set(dir(ops))
    assert len(ops.names()) == len(set(ops.names().values())) > 800
    with pytest.raises(AttributeError, match="mat_mul"):
        ops.mat_mull


def test_results_of_ops(graph):
    values, indices = ops.top_k_v2(np.array([1.0, 9.0, 5.0], np.float32), 2)
    assert value(values).tolist() == [9, 5] and value(indices).tolist() == [1, 2]
    parts = ops.split(0, np.arange(6, dtype=np.float32), num_split=3)
    assert [value(part).tolist() for part in parts] == [[0, 1], [2, 3], [4, 5]]
    assert value(ops.concat_v2(parts[::-1], 0)).tolist() == [4, 5, 2, 3, 0, 1]
    assert isinstance(ops.no_op(), tenon.Node)
    assert value(ops.mat_mul(A, B, transpose_a=True)).tolist() == (A.T @ B).tolist()
    assert value(ops.cast(A, DstT=tenon.int32)).dtype == np.int32
    with pytest.raises(TypeError, match="list"):
        ops.add_n(parts[0])


def test_messages_come_back(graph):
    x = tenon.placeholder(tenon.float32, [2], name="x")
    ops.relu(x, name="y")
    data = graph.to_graph_def()
    for other in (tenon.Graph.from_graph_def(data), pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph)):
        assert other.to_graph_def() == data and len(other) == 2
        assert value(other["y"], {"x": [-1.0, 2.0]}).tolist() == [0, 2]
    assert graph.import_graph_def(data, prefix="again") == 2
    assert graph["again/y"].node.inputs == [graph["again/x"]]
    for damaged in (b"\x0a\xff", data[:-3], b"nonsense"):
        before = len(graph)
        with pytest.raises(tenon.TenonError):
            graph.import_graph_def(damaged)
        assert len(graph) == before


def test_an_older_graph_makes_the_whole_as_old(graph):
    x = tenon.placeholder(tenon.float32, [2], name="x")
    data = graph.to_graph_def()
    # The versions of a graph are its fourth field, and their producer the first field of it.
    older = data + b"\x22\x03\x08\xe8\x07"
    assert graph.import_graph_def(older, prefix="old") == 1
    y = ops.relu(x) + graph["old/x"]
    assert value(y, {x: [1.0, -1.0], "old/x": [1.0, 1.0]}).tolist() == [2, 1]


def test_graphs_do_not_mix(graph):
    other = tenon.Graph()
    foreign = tenon.constant(1.0, graph=other)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="another"):
        tenon.constant(2.0) + foreign
    with tenon.Session(graph) as session, pytest.raises(tenon.errors.InvalidArgumentError, match="another"):
        session.run(foreign)
    with pytest.raises(tenon.errors.InvalidArgumentError):
        graph._native.add("Relu", [(10**6, 0)])
    with pytest.raises(tenon.errors.InvalidArgumentError):
        graph._native.node(10**6)


def test_gradients_are_the_derivatives(graph):
    x = tenon.placeholder(tenon.float64, [3], name="x")
    unused = tenon.constant(1.0)
    y = ops.tanh(x) * x
    dx, none = tenon.gradients(y, [x, unused])
    assert none is None
    at = np.array([0.3, -1.2, 2.0])
    expected = (1 - np.tanh(at) ** 2) * at + np.tanh(at)
    np.testing.assert_allclose(value(dx, {x: at}), expected, rtol=1e-12)
    (zero,) = tenon.gradients(y, unused, unconnected="zero")
    assert value(zero) == 0
    (second,) = tenon.gradients(dx, x)
    assert value(second, {x: at}).shape == (3,)
    table = tenon.constant(np.eye(4))
    (sparse,) = tenon.gradients(ops.gather_v2(table, [1, 1, 3], 0), table)
    assert value(sparse).sum(axis=1).tolist() == [0, 8, 0, 4]
    with pytest.raises(tenon.TenonError):
        tenon.gradients([], x)


def test_what_people_see(graph):
    tenon.constant(1.0, name="one")
    first = graph["one"]
    ops.add_v2(first, first, name="two")
    drawn = graph._repr_html_()
    assert drawn.count("<rect") == 2 and drawn.count("<line") == 2 and "<title>two (AddV2)</title>" in drawn
    many = tenon.Graph()
    for number in range(201):
        many.add("NoOp", name=f"n{number}")
    assert "<td>NoOp</td><td>201</td>" in many._repr_html_()
    assert repr(graph) == "<tenon.Graph of 2 nodes>"
    assert repr(graph.node("one")) == "<tenon.Node 'one' (Const)>"
