"""What goes wrong in programs: each is an error of a class, or the right result."""

import ctypes
import gc
import subprocess
import sys

import numpy as np
import pytest
import tenon
from tenon import errors, ops

ERRORS = (tenon.TenonError, TypeError)


@pytest.fixture
def session():
    with tenon.Graph() as graph:
        x = tenon.placeholder(tenon.float32, [2, 3], name="x")
        ops.neg(x, name="y")
        ops.neg(tenon.placeholder(tenon.float32, name="any"), name="of_any")
    with tenon.Session(graph) as session:
        yield session


def of_layout(layout):
    base = np.arange(6, dtype=np.float32).reshape(2, 3)
    if layout == "transposed":
        return np.asfortranarray(base)
    if layout == "strided":
        return np.repeat(np.repeat(base, 2, 0), 3, 1)[::2, ::3]
    if layout == "reversed":
        return base[::-1, ::-1].copy()[::-1, ::-1]
    if layout == "broadcast":
        return np.broadcast_to(np.float32(4), (2, 3))
    if layout == "swapped":
        return base.astype(">f4")
    if layout == "misaligned":
        memory = np.zeros(25, np.uint8)
        view = memory[1:].view(np.float32).reshape(2, 3)
        view[...] = base
        assert not view.flags.aligned or view.ctypes.data % 4
        return view
    if layout == "read-only":
        base.flags.writeable = False
        return base
    if layout == "objects":
        return base.astype(object)
    if layout == "subclass":
        return base.view(type("Own", (np.ndarray,), {}))
    if layout == "masked":
        return np.ma.masked_array(base)
    return base


LAYOUTS = ["plain", "transposed", "strided", "reversed", "broadcast", "swapped", "misaligned", "read-only", "objects", "subclass", "masked"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout_is_read_as_its_values(session, layout):
    array = of_layout(layout)
    expected = -np.array(array.tolist(), np.float32)
    before = array.tobytes()
    np.testing.assert_array_equal(session.run("y:0", {"x": array}), expected)
    np.testing.assert_array_equal(session.callable(["x"], "y:0")(array), expected)
    np.testing.assert_array_equal(tenon.Tensor(array, tenon.float32).numpy(), -expected)
    assert array.tobytes() == before


@pytest.mark.parametrize("layout", ["transposed", "strided", "swapped", "misaligned", "read-only", "objects"])
def test_results_go_into_plain_arrays_only(session, layout):
    array = of_layout(layout)
    before = array.tobytes()
    step = session.callable(["x"], "y:0")
    given = np.ones((2, 3), np.float32)
    if layout == "misaligned":
        assert step(given, out=[array]) is array and (array == -1).all()
        return
    with pytest.raises(errors.InvalidArgumentError, match=r"out\[0\]"):
        step(given, out=[array])
    assert array.tobytes() == before


@pytest.mark.parametrize(
    "value",
    [
        np.ones((2, 3), np.int64) * 1j, np.ones((2, 3), "M8[s]"), np.ones((2, 3), "S2"), np.array([["a"] * 3] * 2), np.ones((2, 3), "V4"),
        np.ones((2, 3), [("a", "f4")]), np.array([[None] * 3] * 2), np.array([[object()] * 3] * 2), [[1, 2, 3], [4, 5]], "text", b"bytes",
        None, object(), {"a": 1}, {1, 2}, lambda: 1, type, [[[]]], [object()], np.ones((2, 2), np.float32), np.ones(6, np.float32),
        np.float32(1), np.ones((2, 3, 1), np.float32), np.zeros((0, 3), np.float32), 1j, 10**400,
    ],
    ids=str,
)  # fmt: skip
def test_wrong_values_name_the_feed(session, value):
    for run in (lambda: session.run("y:0", {"x": value}), lambda: session.callable(["x"], "y:0")(value)):
        with pytest.raises((*ERRORS, OverflowError)) as caught:
            run()
        text = str(caught.value) + " ".join(getattr(caught.value, "__notes__", []))
        assert "'x'" in text, text
    np.testing.assert_array_equal(session.run("y:0", {"x": np.ones((2, 3))}), -np.ones((2, 3)))


def test_values_that_raise_or_lie(session):
    class Raises:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("own error")

    class Lies:
        def __array__(self, dtype=None, copy=None):
            return [1, 2]

    class Short:
        __array_interface__ = {"shape": (2, -3), "typestr": "<f4", "data": b"", "version": 3}

    with pytest.raises(RuntimeError, match="own error"):
        session.run("y:0", {"x": Raises()})
    for value in (Lies(), Short()):
        with pytest.raises((*ERRORS, ValueError)):
            session.run("y:0", {"x": value})

    class Capsule:
        def __init__(self, made):
            self.made = made

        def __dlpack__(self, **_):
            return self.made

        def __dlpack_device__(self):
            return (1, 0)

    for made in (None, 1, object(), np.ones(3)):
        with pytest.raises(ERRORS):
            tenon.from_dlpack(Capsule(made))


def test_names_that_are_wrong(session):
    for fetch in ("nothing", "nothing:0", "y:1", "y:-1", "y:x", "", ":", "y:0:0", "^y", "y:99999999999999999999"):
        with pytest.raises(ERRORS):
            session.run(fetch, {"x": np.ones((2, 3))})
    for feed in ("nothing", "y:5", "", "x:1", None, 3):
        with pytest.raises((*ERRORS, AttributeError)):
            session.run("y:0", {feed: np.ones((2, 3))})
    with pytest.raises(ERRORS):
        session.callable(["x", "x"], "y:0")
    with pytest.raises(ERRORS):
        session.callable(["x"], "y:0")()
    with pytest.raises(ERRORS):
        session.callable(["x"], "y:0")(np.ones((2, 3)), deadline=float("nan"))
    with pytest.raises(errors.InvalidArgumentError, match="'x'"):
        session.run("y:0")
    assert session.run("of_any:0", {"any": 3.0}) == -3


def test_arguments_of_another_kind(session):
    graph, own = session.graph, tenon.Graph()
    node = own.add("NoOp")
    output = graph.tensor("y")
    for expected, call in (
        ("expected a graph, found int", lambda: tenon.Session(graph=3)),
        ("expected a graph, found str", lambda: tenon.placeholder(tenon.float32, graph="graph")),
        ("expected a graph, found list", lambda: tenon.constant(1, graph=[])),
        ("expected a graph, found Session", lambda: tenon.train.variables(session)),
        ("expected a graph, found bytes", lambda: tenon.train.MonitoredSession(b"")),
        ("control_inputs: .* found str", lambda: ops.neg(output, control_inputs=["x"])),
        ("control_inputs: .* of another one", lambda: ops.neg(output, control_inputs=[node])),
        ("ys: expected outputs, found str", lambda: tenon.gradients(["y"], [output])),
        ("expected outputs or names, found int", lambda: tenon.train.LoggingTensor([1])),
        ("expected variables of tenon.train, found Output", lambda: tenon.train.Saver([output])),
        ("expected a session, found Graph", lambda: tenon.safetensors.save_variables(graph, "x")),
        ("expected variables of tenon.train, found str", lambda: tenon.safetensors.load_variables(session, "x", ["y"])),
        ("expected values by name, found list", lambda: tenon.safetensors.save("x", [1])),
    ):
        with pytest.raises((TypeError, errors.InvalidArgumentError), match=expected):
            call()
    assert len(graph) == 4 and str(errors.UnknownError(3)) == "3"


def test_after_close(session):
    step, part = session.callable(["x"], "y:0"), session.partial_run(["x"], ["y:0"])
    session.close()
    session.close()
    for call in (
        lambda: session.run("y:0", {"x": np.ones((2, 3))}), lambda: step(np.ones((2, 3))), lambda: session.callable(["x"], "y:0"),
        lambda: part.run(["y:0"], {"x": np.ones((2, 3))}), session.devices, session.refresh, lambda: session.plan("y:0", ["x"]),
    ):  # fmt: skip
        with pytest.raises((errors.FailedPreconditionError, errors.CancelledError)):
            call()
    assert session.closed and "closed" in repr(session)


def test_capsules_are_taken_once_and_freed_once():
    tensor = tenon.Tensor(np.zeros(64, np.float32), copy=True)
    unused = tensor.__dlpack__(max_version=(1, 0))
    taken = tensor.__dlpack__(copy=True)
    first = tenon.from_dlpack(taken)
    for again in (taken, taken):
        with pytest.raises(errors.InvalidArgumentError, match="consumed"):
            tenon.from_dlpack(again)
    del tensor, taken, unused
    gc.collect()
    assert first.numpy().sum() == 0


def capsule(name, pointer):
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return make(pointer, name, None)


def test_capsules_with_another_name_or_a_wrong_content():
    memory = ctypes.create_string_buffer(512)
    address = ctypes.addressof(memory)
    for name in (b"other", b"used_dltensor", b"used_dltensor_versioned", b"arrow_array", b""):
        with pytest.raises(errors.InvalidArgumentError):
            tenon.from_dlpack(capsule(name, address))
    # All zero: a tensor of dimension 0 without data on no device.
    with pytest.raises(ERRORS):
        tenon.from_dlpack(capsule(b"dltensor", address))
    # Version 0 of a form that begins with version 1.
    with pytest.raises(ERRORS):
        tenon.from_dlpack(capsule(b"dltensor_versioned", address))


def test_in_a_child_everything_is_refused():
    program = """
import os, sys, numpy as np, tenon
@tenon.op
def forked(x: tenon.float32) -> tenon.float32:
    return x
with tenon.Graph() as graph:
    x = tenon.placeholder(tenon.float32, [], name="x")
    y = forked(x)
session = tenon.Session(graph)
session.run(y, {x: 1.0})
pid = os.fork()
if pid == 0:
    calls = {
        "op": lambda: tenon.op(lambda x: x, name="Late", inputs="x: float", outputs="y: float"),
        "add": lambda: tenon.constant(1.0, graph=graph),
        "run": lambda: session.run(y, {x: 1.0}),
        "load": lambda: tenon.saved_model.load("x"),
        "eager": lambda: tenon.eager.neg(np.ones(2)),
        "plugin": lambda: tenon.load_plugin("x.so"),
    }
    for name, call in calls.items():
        try:
            call()
            print(name, "went through", flush=True)
        except tenon.errors.FailedPreconditionError:
            pass
    os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert ran.stdout == "3\n", ran.stdout + ran.stderr


def test_the_interpreter_ends_while_steps_and_ops_exist():
    program = """
import threading, numpy as np, tenon
@tenon.op(stateful=True)
def slow(x: tenon.float32) -> tenon.float32:
    import time
    time.sleep(0.2)
    return x
with tenon.Graph() as graph:
    y = slow(tenon.constant(1.0))
session = tenon.Session(graph)
threading.Thread(target=lambda: session.run(y), daemon=True).start()
import time
time.sleep(0.05)
print("end", flush=True)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stdout) == (0, "end\n"), ran.stderr
