"""Ops on arrays, one at a time."""

import numpy as np
import pytest
import tenon
from tenon import eager, ops


def test_ops_run_on_arrays():
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(eager.mat_mul(a, a, transpose_b=True), a @ a.T)
    values, indices = eager.top_k_v2(np.array([1.0, 3.0, 2.0], np.float32), 2)
    assert values.tolist() == [3, 2] and indices.tolist() == [1, 2]
    assert eager.concat_v2([a, a], 0).shape == (4, 3)
    parts = eager.split(1, a, num_split=3)
    assert [part.shape for part in parts] == [(2, 1)] * 3
    assert eager.no_op() is None
    assert "MatMul" in eager.mat_mul.__doc__ and "mat_mul" in dir(eager)


def test_steps_are_prepared_once():
    a = np.ones(4, np.float32)
    eager.relu(a)
    before = len(eager._prepared.steps)
    for size in (1, 2, 3):
        eager.relu(np.ones(size, np.float32))
    assert len(eager._prepared.steps) == before
    eager.relu(np.ones(3, np.float64))
    assert len(eager._prepared.steps) == before + 1


def test_functions_of_several_ops():
    def normalised(x, axis=0):
        return x / ops.sum(x, [axis])

    assert eager.run(normalised, np.array([1.0, 3.0], np.float32)).tolist() == [0.25, 0.75]


def test_errors():
    with pytest.raises(tenon.errors.InvalidArgumentError):
        eager.mat_mul(np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(AttributeError):
        eager.no_such_op
