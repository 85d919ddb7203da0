"""Training: optimisers, checkpoints, and the loop with its hooks."""

import numpy as np
import pytest
import tenon
from tenon import ops, train

RNG = np.random.default_rng(1)
X = RNG.normal(size=(64, 3)).astype(np.float32)
TRUE = np.array([[1.0], [-2.0], [0.5]], np.float32)
Y = X @ TRUE


def regression(optimizer, **options):
    graph = tenon.Graph()
    with graph:
        x = tenon.placeholder(tenon.float32, [None, 3], name="x")
        y = tenon.placeholder(tenon.float32, [None, 1], name="y")
        w = train.variable("w", [3, 1], initial=train.GlorotUniform((1, 2)))
        loss = ops.mean(ops.square(ops.mat_mul(x, w) - y), [0, 1], name="loss")
        step = optimizer().minimize(loss, **options)
    return graph, x, y, w, loss, step


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: train.SGD(0.1), lambda: train.Momentum(0.02), lambda: train.Momentum(0.02, use_nesterov=True),
        lambda: train.Adagrad(0.5), lambda: train.RMSProp(0.02), lambda: train.RMSProp(0.02, centered=True),
        lambda: train.Adam(0.1), lambda: train.Adam(0.1, amsgrad=True), lambda: train.AdamW(0.1, weight_decay=0.0),
        lambda: train.Adamax(0.1), lambda: train.Adadelta(50.0), lambda: train.Ftrl(0.5),
    ],
)  # fmt: skip
def test_every_optimiser_learns(optimizer):
    graph, x, y, w, loss, step = regression(optimizer)
    with graph:
        init = train.initializer()
    with tenon.Session(graph) as session:
        session.run(init)
        feeds = {x: X, y: Y}
        first = session.run(loss, feeds)
        for _ in range(200):
            session.run(step, feeds)
        assert session.run(loss, feeds) < first / 10


def test_a_step_of_gradient_descent_is_the_formula():
    graph, x, y, w, loss, step = regression(lambda: train.SGD(0.1))
    with graph:
        init = train.initializer()
    with tenon.Session(graph) as session:
        session.run(init)
        before = session.run(w.value)
        session.run(step, {x: X, y: Y})
        expected = before - 0.1 * 2 * X.T @ (X @ before - Y) / len(X)
        np.testing.assert_allclose(session.run(w.value), expected, rtol=1e-4, atol=1e-6)


def test_gradients_can_be_changed_on_the_way():
    graph, x, y, w, loss, _ = regression(lambda: train.SGD(0.1))
    with graph:
        (gradient,) = tenon.gradients(loss, [w.value])
        step = train.SGD(1.0).apply_gradients([(gradient * 0.0, w)], count_steps=True)
        init = train.initializer()
        counter = train.global_step()
    with tenon.Session(graph) as session:
        session.run(init)
        before = session.run(w.value)
        session.run(step, {x: X, y: Y})
        np.testing.assert_array_equal(session.run(w.value), before)
        assert session.run(counter.value) == 1


def test_wrong_arguments():
    with pytest.raises(TypeError, match="no_such"):
        train.Adam(no_such=1)
    with tenon.Graph(), pytest.raises(tenon.errors.InvalidArgumentError):
        train.variable("w")
    with tenon.Graph(), pytest.raises(tenon.TenonError):
        train.SGD(0.1).minimize(tenon.constant(1.0))
    with tenon.Graph() as graph:
        train.variable("w", initial=np.ones(2, np.float32))
        before = len(graph)
        with pytest.raises(tenon.TenonError, match="w"):
            train.variable("w", [2])
        assert len(graph) == before and len(train.variables()) == 1
    with tenon.Graph(), pytest.raises(tenon.errors.InvalidArgumentError, match="at least one"):
        train.Saver()


def test_checkpoints_come_back(tmp_path):
    graph, x, y, w, loss, step = regression(lambda: train.Adam(0.1))
    with graph:
        init = train.initializer()
        saver = train.Saver(max_to_keep=2)
    with tenon.Session(graph) as session:
        session.run(init)
        prefixes = []
        for number in range(3):
            session.run(step, {x: X, y: Y})
            prefixes.append(saver.save(session, tmp_path / "model", number))
        kept = session.run(w.value)
        session.run(init)
    assert saver.checkpoints == prefixes[1:]
    assert train.latest_checkpoint(tmp_path) == prefixes[2]
    with tenon.Session(graph) as session:
        saver.restore(session, prefixes[2])
        np.testing.assert_array_equal(session.run(w.value), kept)
        with pytest.raises(tenon.errors.NotFoundError):
            saver.restore(session, tmp_path / "nothing")
    assert train.latest_checkpoint(tmp_path / "other") is None


class Watching(train.Hook):
    def __init__(self):
        self.calls, self.losses = [], []

    def begin(self):
        self.calls.append("begin")

    def after_create_session(self):
        self.calls.append("session")

    def before_run(self):
        return ([], ["loss"])

    def after_run(self, values):
        self.losses.append(float(values[0]))
        return len(self.losses) == 30

    def end(self):
        self.calls.append("end")


def test_a_loop_trains_saves_and_goes_on(tmp_path):
    graph, x, y, w, loss, step = regression(lambda: train.Adam(0.1), count_steps=True)
    watching = Watching()
    hooks = [watching, train.CheckpointSaver(tmp_path, every_steps=10), train.NanTensor(["loss"])]
    with train.MonitoredSession(graph, checkpoint_folder=tmp_path, hooks=hooks) as loop:
        assert loop.train([step], lambda: {x: X, y: Y}) == 30
        assert loop.should_stop()
    assert watching.calls == ["begin", "session", "end"] and watching.losses[-1] < watching.losses[0]
    assert train.latest_checkpoint(tmp_path).endswith("-30")
    graph, x, y, w, loss, step = regression(lambda: train.Adam(0.1), count_steps=True)
    with train.MonitoredSession(graph, checkpoint_folder=tmp_path, hooks=[train.StopAtStep(35)]) as loop:
        assert loop.run("global_step/Read/ReadVariableOp") == 30
        assert loop.train([step], lambda: {x: X, y: Y}) <= 5
    with pytest.raises(tenon.errors.FailedPreconditionError, match="closed"):
        loop.run("loss")


def test_exceptions_of_hooks_are_raised():
    class Broken(train.Hook):
        def after_run(self, values):
            raise LookupError("mine")

    graph, x, y, _, _, step = regression(lambda: train.SGD(0.1))
    loop = train.MonitoredSession(graph, hooks=[Broken()])
    with pytest.raises(LookupError, match="mine"):
        loop.run("loss", {x: X, y: Y}, targets=[step])
    loop.close()
    with pytest.raises(tenon.errors.InvalidArgumentError):
        train.MonitoredSession(regression(lambda: train.SGD(0.1))[0], hooks=[train.StopAtStep()])


def test_a_hook_cannot_use_the_loop_that_calls_it():
    class Nested(train.Hook):
        def after_run(self, values):
            loop.request_stop()

    graph, x, y, _, _, step = regression(lambda: train.SGD(0.1))
    loop = train.MonitoredSession(graph, hooks=[Nested()])
    with pytest.raises(tenon.errors.FailedPreconditionError, match="True"):
        loop.run("loss", {x: X, y: Y})
    loop.close()
