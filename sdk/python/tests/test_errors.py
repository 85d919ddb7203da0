"""Errors: a class per code, with the place where a step failed."""

import pickle

import numpy as np
import pytest
import tenon
from tenon import errors


def test_there_is_a_class_per_code():
    for code in range(1, 17):
        made = errors.make(code, "x: do this", "n", "Op", "/device:CPU:0", "cpu")
        assert type(made).code == code and isinstance(made, errors.TenonError)
        assert (made.node, made.op, made.device, made.plugin, made.hint) == ("n", "Op", "/device:CPU:0", "cpu", "do this")
        back = pickle.loads(pickle.dumps(made))
        assert type(back) is type(made) and back.message == made.message and back.node == "n"
    assert type(errors.make(99, "")) is errors.UnknownError


def test_second_bases():
    assert issubclass(errors.InvalidArgumentError, ValueError)
    assert issubclass(errors.NotFoundError, KeyError) and str(errors.NotFoundError("a b")) == "a b"
    assert issubclass(errors.DeadlineExceededError, TimeoutError)
    assert issubclass(errors.OutOfRangeError, IndexError)


def test_a_step_says_where_it_failed():
    with tenon.Graph() as graph:
        x = tenon.placeholder(tenon.float32, name="x")
        tenon.ops.mat_mul(x, x, name="product")
    with tenon.Session(graph) as session:
        with pytest.raises(errors.InvalidArgumentError) as caught:
            session.run("product", {"x": np.ones((2, 3), np.float32)})
    assert caught.value.node == "product" and caught.value.op == "MatMul"
    assert "CPU:0" in caught.value.device and caught.value.plugin


def test_a_graph_says_which_node_is_wrong():
    graph = tenon.Graph()
    with graph, pytest.raises(errors.InvalidArgumentError) as caught:
        tenon.ops.mat_mul(np.ones((2, 3), np.float32), np.ones((2, 3), np.float32), name="bad")
    assert caught.value.node == "bad" and "bad" not in graph
    with pytest.raises(errors.NotFoundError, match="NoSuchOp"):
        graph.add("NoSuchOp")
    with pytest.raises(errors.NotFoundError):
        graph.tensor("nothing")
    with pytest.raises(TypeError, match="transpose_a"):
        tenon.ops.mat_mul(np.ones((2, 2)), np.ones((2, 2)), transpose_a="yes")
    with pytest.raises(TypeError):
        tenon.ops.mat_mul(np.ones((2, 2)), np.ones((2, 2)), no_such=1)
