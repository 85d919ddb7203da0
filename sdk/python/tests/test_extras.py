"""Safetensors, SavedModels, measuring, progress bars."""

import io
import json
import struct
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import tenon
from tenon import ops

MODELS = Path(__file__).parents[3] / "tests" / "goldens" / "saved_models"


def test_safetensors_come_back(tmp_path):
    values = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3), "b/c": np.array([1, -2], np.int64), "flag": np.array(True),
        "half": np.array([1.5], ml_dtypes.bfloat16), "empty": np.zeros((0, 4), np.float64), "ü": np.array([1j], np.complex64),
    }  # fmt: skip
    path = tmp_path / "w.safetensors"
    tenon.safetensors.save(path, values)
    found = tenon.safetensors.load(path)
    assert set(found) == set(values)
    for name, value in values.items():
        assert found[name].dtype == value.dtype and found[name].shape == value.shape
        np.testing.assert_array_equal(found[name].numpy(), value)
    assert list(tenon.safetensors.load(path, ["a"])) == ["a"]
    # The header, read as the format's own document says it is.
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    begin, end = header["a"]["data_offsets"]
    assert header["a"]["dtype"] == "F32" and header["a"]["shape"] == [2, 3]
    assert data[8 + length + begin : 8 + length + end] == values["a"].tobytes()


def test_safetensors_that_are_wrong(tmp_path):
    path = tmp_path / "w.safetensors"
    with pytest.raises(tenon.errors.NotFoundError):
        tenon.safetensors.load(path)
    tenon.safetensors.save(path, {"a": np.ones(4)})
    with pytest.raises(tenon.errors.NotFoundError, match="'b'"):
        tenon.safetensors.load(path, ["a", "b"])
    data = path.read_bytes()
    for damaged in (b"", data[:-1], data[:20], b"\xff" * 16, data + b"x"):
        path.write_bytes(damaged)
        with pytest.raises(tenon.TenonError):
            tenon.safetensors.load(path)
    with pytest.raises(tenon.TenonError, match="string"):
        tenon.safetensors.save(path, {"text": "a"})
    with pytest.raises(tenon.TenonError):
        tenon.safetensors.save(tmp_path, {"a": np.ones(1)})


def test_variables_in_safetensors(tmp_path):
    path = tmp_path / "model.safetensors"

    def model():
        graph = tenon.Graph()
        with graph:
            tenon.train.variable("w", [2], initial=[1.0, 2.0])
            tenon.train.variable("b", [], initial=5.0)
            return graph, tenon.train.initializer()

    graph, init = model()
    with tenon.Session(graph) as session:
        session.run(init)
        tenon.safetensors.save_variables(session, path)
    graph, init = model()
    with tenon.Session(graph) as session:
        assert sorted(tenon.safetensors.load_variables(session, path)) == ["b", "w"]
        assert sorted(tenon.safetensors.load_variables(session, path)) == ["b", "w"]
        read = {variable.name: session.run(variable.value).tolist() for variable in tenon.train.variables(graph)}
        assert read == {"w": [1, 2], "b": 5}
        for wrong, message in (({"w": np.ones(2, np.float32)}, "lacks"), ({"w": np.ones(2)}, "float")):
            tenon.safetensors.save(path, wrong)
            with pytest.raises(tenon.TenonError, match=message):
                tenon.safetensors.load_variables(session, path, strict=message == "lacks")
        tenon.safetensors.save(path, {"w": np.zeros(2, np.float32), "other": np.ones(1)})
        with pytest.raises(tenon.TenonError, match="b"):
            tenon.safetensors.load_variables(session, path)
        assert tenon.safetensors.load_variables(session, path, strict=False) == ["w"]


@pytest.mark.parametrize("name", ["keras_cnn", "keras_lstm", "tf2_module", "tf1_simple"])
def test_saved_models_give_what_tensorflow_gives(name):
    model = tenon.saved_model.load(MODELS / name)
    expected = np.load(MODELS / "expected" / f"{name}.npz", allow_pickle=True)
    keys = sorted({key.split(".in.")[0] for key in expected.files if ".in." in key})
    assert keys
    for key in keys:
        signature = model.signatures[key]
        given = {file.split(".in.")[1]: expected[file] for file in expected.files if file.startswith(f"{key}.in.")}
        found = signature(**given, deadline=60.0)
        for file in expected.files:
            if file.startswith(f"{key}.out."):
                np.testing.assert_allclose(found[file.split(".out.")[1]], expected[file], rtol=1e-5, atol=1e-6)
    assert name and "Signature" in repr(signature) and keys[0] in repr(model)


def test_saved_models_that_are_called_wrongly():
    model = tenon.saved_model.load(MODELS / "keras_cnn")
    signature = model.signatures["serving_default"]
    (argument,) = signature.inputs
    given = np.zeros([size or 2 for size in argument.shape], np.float32)
    np.testing.assert_array_equal(*[list(run(given).values())[0] for run in (model, signature)])
    with pytest.raises(tenon.TenonError, match="no_such"):
        signature(no_such=given)
    with pytest.raises(tenon.TenonError, match=argument.name):
        signature()
    with pytest.raises(tenon.errors.InvalidArgumentError, match="at most"):
        signature(given, given)
    with pytest.raises(tenon.TenonError, match="serve"):
        tenon.saved_model.load(MODELS / "keras_cnn", tags=["no_such"])
    with pytest.raises(tenon.TenonError, match="no_such"):
        tenon.saved_model.load(MODELS / "no_such")


def test_measuring():
    with tenon.Graph() as graph:
        x = tenon.placeholder(tenon.float32, [None])
        y = ops.relu(x)
    with tenon.Session(graph) as session:
        step = session.callable([x], y)
        rows = tenon.bench(step, np.ones(4, np.float32), seconds=0.05, name="relu")
    # Rows of a DataFrame, or of the list.
    rows = rows.to_dict("records") if hasattr(rows, "to_dict") else rows
    (row,) = rows
    assert row["name"] == "relu" and row["calls"] > 1
    assert 0 < row["min_us"] <= row["median_us"] <= row["p95_us"]
    from tenon.measure import Rows

    both = Rows([row, {**row, "name": "<b>"}])
    assert "&lt;b&gt;" in both._repr_html_() and str(both).count("\n") == 2
    with pytest.raises(tenon.errors.InvalidArgumentError):
        tenon.bench(lambda: None, seconds=0)
    with pytest.raises(ZeroDivisionError):
        tenon.bench({"fails": lambda: 1 / 0})


def test_progress_bars():
    shown = io.StringIO()
    assert list(tenon.progress(range(3), description="batches", file=shown)) == [0, 1, 2]
    assert "batches" in shown.getvalue() and "3/3" in shown.getvalue()
    with tenon.Graph() as graph:
        step = tenon.train.global_step()
        grow = ops.assign_add_variable_op(step.handle, np.int64(1), dtype=tenon.int64)
    shown = io.StringIO()
    hooks = [tenon.train.StopAtStep(5), tenon.Progress(5, file=shown)]
    with tenon.train.MonitoredSession(graph, hooks=hooks) as training:
        assert training.train([grow]) == 5
    assert "5/5" in shown.getvalue()


def test_displays():
    devices = tenon.list_devices()
    assert "CPU" in devices._repr_html_() and devices[0].name in devices._repr_html_()
    assert "<table" in tenon.show()._repr_html_()
    with tenon.Graph() as graph:
        tenon.constant(1.0, name="one")
    assert "<svg" in graph._repr_html_()


def test_safetensors_are_those_of_others(tmp_path):
    others = pytest.importorskip("safetensors.numpy")
    values = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([1, -2], np.int64), "c": np.array(True)}
    path = tmp_path / "w.safetensors"
    tenon.safetensors.save(path, values)
    for name, value in others.load_file(path).items():
        np.testing.assert_array_equal(value, values[name])
    others.save_file(values, path)
    for name, tensor in tenon.safetensors.load(path).items():
        np.testing.assert_array_equal(tensor.numpy(), values[name])
