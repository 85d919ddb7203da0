"""Sessions: feeds and fetches, callables, threads, cancellation, async, partial runs."""

import asyncio
import collections
import gc
import pickle
import threading
import time

import numpy as np
import pytest
import tenon
from tenon import ops


@pytest.fixture
def session():
    with tenon.Graph() as graph:
        x = tenon.placeholder(tenon.float32, [None], name="x")
        y = tenon.placeholder(tenon.float32, [None], name="y")
        ops.add_v2(x, y, name="sum")
        ops.mul(x, y, name="product")
        ops.identity(x, name="same")
        ops.no_op(name="nothing")
    with tenon.Session(graph) as session:
        yield session


def address(array):
    return array.__array_interface__["data"][0]


def blocked():
    """A session, and a step of it that waits for ever: it takes from a queue that stays empty."""
    with tenon.Graph() as graph:
        queue = ops.fifo_queue_v2(component_types=[tenon.float32])
        taken = ops.queue_dequeue_v2(queue, component_types=[tenon.float32])
    return tenon.Session(graph), taken[0] if isinstance(taken, list) else taken


def test_structures_of_fetches(session):
    feeds = {"x": [1.0, 2.0], "y:0": np.array([3.0, 4.0])}
    graph = session.graph
    assert session.run("sum", feeds).tolist() == [4, 6]
    Pair = collections.namedtuple("Pair", "a b")
    found = session.run({"s": "sum:0", "p": [graph["product"], ("x", "nothing")], "n": Pair("sum", graph.node("nothing"))}, feeds)
    assert found["s"].tolist() == [4, 6] and found["p"][0].tolist() == [3, 8]
    assert found["p"][1][0].tolist() == [1, 2] and found["p"][1][1] is None
    assert found["n"].a.tolist() == [4, 6] and found["n"].b is None
    assert session.run([], feeds) == [] and session.run((), targets=["nothing"]) == ()
    assert session.run("sum", feeds).flags.c_contiguous


def test_feeds_that_do_not_fit(session):
    with pytest.raises(tenon.errors.InvalidArgumentError, match="feed 'x'"):
        session.run("sum", {"x": np.ones((2, 2), np.float32), "y": [1.0]})
    with pytest.raises(tenon.errors.InvalidArgumentError, match="feed 'x'"):
        session.run("sum", {"x": np.array([1j]), "y": [1.0]})
    with pytest.raises(tenon.errors.NotFoundError):
        session.run("sum", {"z": [1.0]})
    with pytest.raises(tenon.errors.InvalidArgumentError):
        session.run("sum", {"x": [1.0]})
    with pytest.raises(TypeError):
        session.run(3)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="2 feeds"):
        session.callable(["x", "y"], "sum")([1.0])


def test_a_callable_keeps_its_session_open():
    with tenon.Graph() as graph:
        x = tenon.placeholder(tenon.float32, [2], name="x")
        y = tenon.ops.neg(x)
    call = tenon.Session(graph).callable([x], y)
    gc.collect()
    assert call(np.array([1.0, -2.0], np.float32)).tolist() == [-1.0, 2.0]
    session = tenon.Session(graph)
    call = session.callable([x], y)
    session.close()
    with pytest.raises(tenon.errors.FailedPreconditionError, match="closed"):
        call(np.zeros(2, np.float32))


def test_callables_copy_nothing_that_fits(session):
    x, y = tenon.empty(1000), tenon.empty(1000)
    x[:], y[:] = 1, 2
    step = session.callable(["x", "y"], ["sum", "same"])
    total, same = step(x, y)
    assert total.tolist() == [3] * 1000 and address(same) == address(x)
    assert not same.flags.writeable, "it is the caller's array"
    single = session.callable(["x", "y"], "product")
    assert single(x, y)[0] == 2
    out = np.zeros(1000, np.float32)
    assert single(x, y, out=[out]) is out and out[5] == 2
    assert step(x, y, out=[out, np.zeros(1000, np.float32)])[0] is out and out[5] == 3
    for wrong in ([], [np.zeros(3, np.float32)], [np.zeros(1000)], [[1]], [np.broadcast_to(np.float32(0), 1000)]):
        with pytest.raises((tenon.errors.InvalidArgumentError, TypeError)):
            single(x, y, out=wrong)
    raw = session.callable(["x", "y"], "sum", raw=True)(x, y)
    assert isinstance(raw, tenon.Tensor) and raw.tolist() == [3] * 1000


def test_what_a_step_keeps_is_not_the_callers_array():
    with tenon.Graph() as graph:
        w = tenon.train.variable("w", [1000])
        x = tenon.placeholder(tenon.float32, [1000], name="x")
        keep = w.assign(x)
        add = graph.add("AssignAddVariableOp", [w.handle, tenon.constant(np.ones(1000, np.float32))], dtype=tenon.float32)
    with tenon.Session(graph) as session:
        array = tenon.empty(1000)
        array[:] = 5
        session.run(keep, {x: array})
        array[:] = 6
        assert session.run(w.value)[0] == 5, "later changes of the array do not reach the variable"
        session.run(add)
        assert array[0] == 6, "updates of the variable do not reach the array"
        read = session.run(w.value)
        session.run(add)
        assert read[0] == 6 and session.run(w.value)[0] == 7


def test_nodes_that_are_added_later_are_there(session):
    graph = session.graph
    twice = graph["sum"] + graph["sum"]
    assert session.run(twice, {"x": [1.0], "y": [2.0]}).tolist() == [6]


def test_strings_pass_through():
    with tenon.Graph() as graph:
        s = tenon.placeholder(tenon.string, name="s")
        joined = ops.string_join([s, tenon.constant("!")]) if "StringJoin" in ops.names().values() else ops.identity(s)
        same = ops.identity(s)
    with tenon.Session(graph) as session:
        assert session.run(same, {s: np.array([["ä", "b"]])}).tolist() == [["ä".encode(), b"b"]]
    assert joined.dtype == tenon.string


def test_a_closed_session_refuses(session):
    step = session.callable(["x", "y"], "sum")
    session.close()
    session.close()
    assert session.closed and "closed" in repr(session)
    for call in (lambda: step([1.0], [2.0]), lambda: session.run("sum"), lambda: session.callable(["x"], "x")):
        with pytest.raises(tenon.errors.FailedPreconditionError, match="closed"):
            call()


def test_deadlines_and_tokens_end_a_step():
    session, taken = blocked()
    with session:
        begin = time.monotonic()
        with pytest.raises(tenon.errors.DeadlineExceededError):
            session.run(taken, deadline=0.1)
        token = tenon.CancelToken()
        timer = threading.Timer(0.1, token.cancel)
        timer.start()
        with pytest.raises(tenon.errors.CancelledError):
            session.run(taken, token=token)
        assert token.cancelled and time.monotonic() - begin < 30
        with pytest.raises(tenon.errors.InvalidArgumentError, match="seconds"):
            session.run(taken, deadline=-1.0)


def test_closing_ends_a_step_of_another_thread():
    session, taken = blocked()
    errors = []

    def run():
        try:
            session.run(taken)
        except tenon.TenonError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.2)
    session.close()
    thread.join(30)
    assert not thread.is_alive() and len(errors) == 1


def test_threads_share_a_session(session):
    step = session.callable(["x", "y"], "sum")

    def run(number, failures):
        for at in range(100):
            x = np.full(10, number, np.float32)
            if not (step(x, x) == 2 * number).all() or session.run("product", {"x": x, "y": x})[0] != number * number:
                failures.append((number, at))

    failures = []
    threads = [threading.Thread(target=run, args=(number, failures)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_other_threads_run_while_a_step_waits():
    session, taken = blocked()
    with session:
        thread = threading.Thread(target=lambda: pytest.raises(tenon.TenonError, session.run, taken, deadline=2.0))
        thread.start()
        begin, count = time.monotonic(), 0
        while time.monotonic() - begin < 0.2:
            count += 1
        assert count > 1000
        thread.join()


def test_async_steps(session):
    async def work():
        many = [session.run_async("sum", {"x": [float(n)], "y": [1.0]}) for n in range(20)]
        return [found.tolist() for found in await asyncio.gather(*many)]

    assert asyncio.run(work()) == [[n + 1] for n in range(20)]


def test_a_cancelled_task_cancels_its_step():
    session, taken = blocked()

    async def work():
        task = asyncio.ensure_future(session.run_async(taken))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    begin = time.monotonic()
    asyncio.run(work())
    session.close()
    assert time.monotonic() - begin < 30


def test_partial_runs(session):
    run = session.partial_run(["x", "y"], ["same", "sum"])
    assert run.run(["same"], {"x": [1.0]})[0].tolist() == [1] and not run.done
    with pytest.raises(tenon.errors.InvalidArgumentError, match="before"):
        run.run([], {"x": [1.0]})
    with pytest.raises(tenon.errors.InvalidArgumentError, match="needs feed"):
        run.run(["sum"])
    assert run.run(["sum"], {"y": [2.0]})[0].tolist() == [3] and run.done


def test_sessions_are_pickled_without_their_values(session):
    other = pickle.loads(pickle.dumps(session))
    assert other.run("sum", {"x": [1.0], "y": [2.0]}).tolist() == [3]
    other.close()


def test_plans_and_devices(session):
    nodes = session.plan("sum", ["x", "y"])
    assert any(node["op"] == "AddV2" and "CPU:0" in node["device"] and node["plugin"] for node in nodes)
    assert any("CPU:0" in name for name in session.devices())
    assert "CPU" in session._repr_html_() and "sum" in session._ipython_key_completions_()
    session.refresh()
    assert session.run("sum", {"x": [1.0], "y": [2.0]}).tolist() == [3]


def test_options_that_do_not_exist():
    with pytest.raises(tenon.TenonError):
        tenon.Session(tenon.Graph(), knobs={"no.such": "1"})
    with pytest.raises(TypeError):
        tenon.Session(tenon.Graph(), tenon.Graph())
    with tenon.Graph() as graph, graph.device("/device:CPU:77"):
        there = tenon.constant(1.0)
    with tenon.Session(graph) as session, pytest.raises(tenon.errors.InvalidArgumentError, match="CPU:77"):
        session.run(there)
    with tenon.Session(graph, soft_placement=True) as session:
        assert session.run(there) == 1


def test_profiles(session, tmp_path):
    import json

    with tenon.profile(tmp_path / "trace.json"):
        session.run("sum", {"x": [1.0], "y": [2.0]})
        with pytest.raises(tenon.errors.FailedPreconditionError, match="already"):
            with tenon.profile(tmp_path / "other.json"):
                pass
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert any(event.get("args", {}).get("op") == "AddV2" for event in events)
    with pytest.raises(tenon.errors.FailedPreconditionError), tenon.profile(tmp_path / "no" / "trace.json"):
        pass
