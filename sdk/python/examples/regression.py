"""Trains a linear model, saves it, and runs it by a prepared step."""

import tempfile

import numpy as np
import tenon
from tenon import ops, train


def build() -> tuple[tenon.Graph, tenon.Output, tenon.Node]:
    """A graph with the loss of a linear model and a training step."""
    with tenon.Graph() as graph:
        x = tenon.placeholder(tenon.float32, [None, 3], name="x")
        y = tenon.placeholder(tenon.float32, [None, 1], name="y")
        w = train.variable("w", [3, 1], initial=train.GlorotUniform((1, 2)))
        predicted = ops.mat_mul(x, w, name="predicted")
        loss = ops.mean(ops.square(predicted - y), [0, 1], name="loss")
        step = train.Adam(0.1).minimize(loss, count_steps=True)
    return graph, loss, step


def main() -> None:
    """Trains and checks."""
    numbers = np.random.default_rng(0)
    inputs = numbers.normal(size=(64, 3)).astype(np.float32)
    targets = inputs @ np.array([[1.0], [-2.0], [0.5]], np.float32)
    graph, loss, step = build()
    with tempfile.TemporaryDirectory() as folder:
        hooks = [train.StopAtStep(200), train.CheckpointSaver(folder, every_steps=100)]
        with train.MonitoredSession(graph, hooks=hooks) as training:
            training.train([step], lambda: {"x": inputs, "y": targets})
            final = float(training.run(loss, {"x": inputs, "y": targets}))
            print(f"loss {final:.4f}")
            assert final < 0.1
        checkpoint = train.latest_checkpoint(folder)
        assert checkpoint is not None
        with graph:
            saver = train.Saver(weights(graph), graph=graph)
        with tenon.Session(graph) as session:
            saver.restore(session, checkpoint)
            predict = session.callable(["x"], "predicted")
            found = predict(inputs)
            print("largest error", float(np.abs(found - targets).max()))


def weights(graph: tenon.Graph) -> list[train.Variable]:
    """The variables that the model needs: those of the optimiser stay in the checkpoint."""
    return [variable for variable in train.variables(graph) if variable.trainable]


if __name__ == "__main__":
    main()
