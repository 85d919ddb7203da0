"""Training: variables, optimisers, checkpoints, and the loop that keeps a run alive.

What this module adds to a graph are ordinary nodes, with the names that TensorFlow gives them where it has any; checkpoints are
TensorFlow's bundles.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _native
from .dtypes import DType, as_dtype, float32
from .errors import InvalidArgumentError, OutOfRangeError
from .graph import Graph, Node, Output, as_output, graph_of, home
from .session import Session, tensor_name

if TYPE_CHECKING:
    from .session import Feeds

__all__ = [
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "CheckpointSaver",
    "Filled",
    "Ftrl",
    "GlorotUniform",
    "GradientDescent",
    "Hook",
    "LoggingTensor",
    "Momentum",
    "MonitoredSession",
    "NanTensor",
    "Ones",
    "Optimizer",
    "RMSProp",
    "SGD",
    "Saver",
    "StepCounter",
    "StopAtStep",
    "TruncatedNormal",
    "Variable",
    "Zeros",
    "global_step",
    "initializer",
    "latest_checkpoint",
    "variable",
    "variables",
]

# Initial values


class Initial:
    """What a variable holds before the first step."""

    def __init__(self, kind: str, value: float | None = None, seed: tuple[int, int] = (0, 0)) -> None:
        self._kind = kind
        self._value = value
        self._seed = seed


def Zeros() -> Initial:  # noqa: N802 (named as a class)
    """Zeros."""
    return Initial("zeros")


def Ones() -> Initial:  # noqa: N802
    """Ones."""
    return Initial("ones")


def Filled(value: float) -> Initial:  # noqa: N802
    """This number everywhere."""
    return Initial("filled", value)


def TruncatedNormal(stddev: float = 1.0, seed: tuple[int, int] = (0, 0)) -> Initial:  # noqa: N802
    """A normal distribution cut at two standard deviations. With the seed (0, 0) each run draws other values."""
    return Initial("truncated_normal", stddev, seed)


def GlorotUniform(seed: tuple[int, int] = (0, 0)) -> Initial:  # noqa: N802
    """Values between -l and l, where l = sqrt(6 / (inputs + outputs))."""
    return Initial("glorot_uniform", None, seed)


# Variables


class Variable:
    """A resource variable and the nodes that serve it. As an input of ops it is its value."""

    def __init__(self, graph: Graph, parts: Mapping[str, Any]) -> None:
        self.graph = graph
        #: The name, under which checkpoints have it.
        self.name: str = parts["name"]
        #: The element type.
        self.dtype: DType = parts["dtype"]
        #: The shape.
        self.shape: tuple[int, ...] = tuple(parts["shape"])
        #: The handle.
        self.handle = Output(graph, *parts["handle"])
        #: The value at the time of the read.
        self.value = Output(graph, *parts["value"])
        #: The node that assigns the initial value.
        self.initializer = Node(graph, parts["initializer"])
        #: Whether the variable has a value.
        self.is_initialized = Output(graph, *parts["is_initialized"])
        #: Whether optimisers change it.
        self.trainable: bool = parts["trainable"]

    def assign(self, value: Any, *, name: str | None = None) -> Node:
        """Adds a node that assigns a value."""
        graph = home(self.graph)
        given = as_output(value, graph, self.dtype)
        return graph.add("AssignVariableOp", [self.handle, given], name=name, dtype=self.dtype)

    def __repr__(self) -> str:
        return f"<tenon.train.Variable {self.name!r} shape={self.shape} dtype={self.dtype.name}>"


def as_variable(value: Any) -> Variable:
    if not isinstance(value, Variable):
        raise TypeError(f"variables: expected variables of tenon.train, found {type(value).__name__}")
    return value


def variable(
    name: str,
    shape: Sequence[int] | None = None,
    dtype: DType | Any = None,
    *,
    initial: Initial | Output | Any = None,
    trainable: bool = True,
    device: str = "",
    graph: Graph | None = None,
) -> Variable:
    """Adds a variable.

    `initial` is one of this module's, an output, or a value, whose shape and type the variable then has. It is zeros by default.
    """
    graph = graph_of(graph)
    kind, seed = "zeros", (0, 0)
    value: Any = None
    if isinstance(initial, Initial):
        kind, value, seed = initial._kind, initial._value, initial._seed
    elif isinstance(initial, Output):
        kind, value = "output", (initial.id, initial.index)
        shape = _known(initial) if shape is None else shape
        dtype = initial.dtype if dtype is None else dtype
    elif initial is not None:
        tensor = _native.Tensor(initial, None if dtype is None else as_dtype(dtype))
        kind, value = "value", tensor
        shape = tensor.shape if shape is None else shape
        dtype = tensor.dtype if dtype is None else dtype
    if shape is None:
        raise InvalidArgumentError(f"variable {name!r}: expected a shape, or an initial value that has one")
    chosen = float32 if dtype is None else as_dtype(dtype)
    parts = _native.variable(graph._native, name, chosen, list(shape), kind, value, seed, trainable, device)
    return Variable(graph, parts)


def _known(value: Output) -> list[int]:
    shape = value.shape
    if shape is None or None in shape:
        raise InvalidArgumentError(f"the shape of the initial value {value!r} is not known: name the variable's shape")
    return [size for size in shape if size is not None]


def variables(graph: Graph | None = None) -> list[Variable]:
    """The variables of a graph, those of optimisers included."""
    graph = graph_of(graph)
    return [Variable(graph, parts) for parts in _native.variables(graph._native)]


def initializer(graph: Graph | None = None, *, name: str = "init") -> Node:
    """Adds a node that runs the initialisers of all variables that the graph has now."""
    graph = graph_of(graph)
    return Node(graph, _native.initializer(graph._native, name))


def global_step(graph: Graph | None = None) -> Variable:
    """The variable that counts steps, which is added if the graph does not have it."""
    graph = graph_of(graph)
    return Variable(graph, _native.global_step(graph._native))


# Optimisers


class Optimizer:
    """Adds updates of variables to graphs. One object has the same slots wherever it is applied."""

    _kind = ""

    def __init__(self, learning_rate: float | Output, *, name: str | None = None, **hyper: float | bool) -> None:
        output = learning_rate if isinstance(learning_rate, Output) else None
        rate = 0.0 if isinstance(learning_rate, Output) else float(learning_rate)
        pair = None if output is None else (output.id, output.index)
        numbers = {key: float(value) for key, value in hyper.items()}
        self._optimizer = _native.Optimizer(self._kind, rate, pair, name, numbers)

    def minimize(
        self,
        loss: Output,
        *,
        variables: Iterable[Variable] | None = None,
        count_steps: bool = False,
        gate_graph: bool = False,
    ) -> Node:
        """Adds the gradients of a loss and the updates by them, and returns the node that runs all updates.

        With `count_steps` the node also adds 1 to `global_step`. With `gate_graph` all gradients are complete before any update.
        """
        names = None if variables is None else [variable.name for variable in variables]
        made = self._optimizer.minimize(loss.graph._native, (loss.id, loss.index), names, count_steps, gate_graph)
        return Node(loss.graph, made)

    def apply_gradients(
        self, gradients: Iterable[tuple[Output | None, Variable]], *, count_steps: bool = False
    ) -> Node:
        """Adds updates of variables by gradients."""
        pairs = list(gradients)
        if not pairs:
            raise InvalidArgumentError("expected at least one gradient")
        graph = pairs[0][1].graph
        given = [(None if dy is None else (dy.id, dy.index), variable.name) for dy, variable in pairs]
        return Node(graph, self._optimizer.apply(graph._native, given, count_steps))


class GradientDescent(Optimizer):
    """Gradient descent: ``w -= rate * g``."""

    _kind = "GradientDescent"


SGD = GradientDescent


class Momentum(Optimizer):
    """Gradient descent with a momentum: ``momentum``, ``use_nesterov``."""

    _kind = "Momentum"

    def __init__(self, learning_rate: float | Output, momentum: float = 0.9, **more: Any) -> None:
        super().__init__(learning_rate, momentum=momentum, **more)


class Adagrad(Optimizer):
    """Adagrad: ``initial_accumulator_value``."""

    _kind = "Adagrad"


class RMSProp(Optimizer):
    """RMSProp: ``decay``, ``momentum``, ``epsilon``, ``centered``."""

    _kind = "RMSProp"


class Adam(Optimizer):
    """Adam: ``beta1``, ``beta2``, ``epsilon``, ``amsgrad``."""

    _kind = "Adam"

    def __init__(self, learning_rate: float | Output = 0.001, **hyper: Any) -> None:
        super().__init__(learning_rate, **hyper)


class AdamW(Optimizer):
    """Adam with a decay beside the update: ``weight_decay``, and the hyperparameters of `Adam`."""

    _kind = "AdamW"

    def __init__(self, learning_rate: float | Output = 0.001, **hyper: Any) -> None:
        super().__init__(learning_rate, **hyper)


class Adamax(Optimizer):
    """AdaMax: ``beta1``, ``beta2``, ``epsilon``."""

    _kind = "Adamax"


class Adadelta(Optimizer):
    """Adadelta: ``rho``, ``epsilon``."""

    _kind = "Adadelta"


class Ftrl(Optimizer):
    """FTRL-Proximal, with the hyperparameters of TensorFlow's."""

    _kind = "Ftrl"


# Checkpoints


class Saver:
    """Saves variables to checkpoints of TensorFlow's form, and restores them.

    Make it once all variables are there, those of optimisers included.
    """

    def __init__(
        self,
        variables: Iterable[Variable] | None = None,
        *,
        graph: Graph | None = None,
        max_to_keep: int = 5,
        sharded: bool = False,
    ) -> None:
        chosen = None if variables is None else list(variables)
        names = None if chosen is None else [as_variable(variable).name for variable in chosen]
        graph = chosen[0].graph if graph is None and chosen else graph_of(graph)
        self._saver = _native.Saver(graph._native, names, max_to_keep, sharded)

    def save(self, session: Session, prefix: str | os.PathLike[str], step: int | None = None) -> str:
        """Writes a checkpoint, and returns its prefix, which ends with the step if one is given."""
        return os.fspath(self._saver.save(session._session, os.fspath(prefix), step))

    def restore(self, session: Session, checkpoint: str | os.PathLike[str]) -> None:
        """Restores all variables."""
        self._saver.restore(session._session, os.fspath(checkpoint))

    @property
    def checkpoints(self) -> list[str]:
        """The checkpoints that are kept, the newest last."""
        return [os.fspath(path) for path in self._saver.checkpoints()]


def latest_checkpoint(folder: str | os.PathLike[str]) -> str | None:
    """The newest complete checkpoint of a folder; `None` if there is none."""
    found = _native.latest_checkpoint(os.fspath(folder))
    return None if found is None else os.fspath(found)


# The loop


class Hook:
    """What a training loop does besides its steps. Override what is needed.

    An exception of a hook ends the step, and is raised by `MonitoredSession.run`.
    """

    def begin(self) -> None:
        """Called once, before the first session is opened."""

    def after_create_session(self) -> None:
        """Called for every new session, once its variables have values."""

    def before_run(self) -> tuple[list[tuple[str, Any]], list[str]] | None:
        """Called before every step. May return feeds and fetches, by names, to add to the step."""
        return None

    def after_run(self, values: list[Any]) -> bool | None:
        """Called after every step with the values of the hook's own fetches. `True` ends the training."""
        return None

    def end(self) -> None:
        """Called once at the end of a training in which no step failed."""


class _Own:
    """A hook of the native library."""

    def __init__(self, kind: str, texts: Sequence[str] = (), **numbers: float | None) -> None:
        given = {name: float(value) for name, value in numbers.items() if value is not None}
        self._spec = (kind, list(texts), given)


class StopAtStep(_Own):
    """Ends the training at a step, or after so many steps."""

    def __init__(self, last_step: int | None = None, *, num_steps: int | None = None) -> None:
        super().__init__("stop_at", last=last_step, after=num_steps)


class CheckpointSaver(_Own):
    """Writes checkpoints: at the beginning, as often as it is told, and at the end."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        every_steps: int | None = None,
        every_seconds: float | None = None,
    ) -> None:
        super().__init__("checkpoint", [os.fspath(folder)], steps=every_steps, seconds=every_seconds)


class StepCounter(_Own):
    """Logs steps per second."""

    def __init__(self, *, every_steps: int | None = None, every_seconds: float | None = None) -> None:
        super().__init__("counter", steps=every_steps, seconds=every_seconds)


def _names(tensors: Sequence[Output | str]) -> list[str]:
    wrong = [tensor for tensor in tensors if not isinstance(tensor, (str, Output))]
    if wrong:
        raise TypeError(f"tensors: expected outputs or names, found {type(wrong[0]).__name__}")
    return [tensor if isinstance(tensor, str) else tensor.name for tensor in tensors]


class LoggingTensor(_Own):
    """Logs values of tensors."""

    def __init__(
        self,
        tensors: Iterable[Output | str],
        *,
        every_steps: int | None = None,
        every_seconds: float | None = None,
    ) -> None:
        super().__init__("logging", _names(list(tensors)), steps=every_steps, seconds=every_seconds)


class NanTensor(_Own):
    """Fails when a value is not finite, or ends the training with `stops`."""

    def __init__(self, tensors: Iterable[Output | str], *, stops: bool = False) -> None:
        super().__init__("nan", _names(list(tensors)), stops=1.0 if stops else 0.0)


class MonitoredSession:
    """Runs steps with hooks, and goes on with a new session after one is lost.

    It prepares the graph: a node that initialises all variables, and a saver, which restores the newest checkpoint of
    `checkpoint_folder` if there is one. Nodes that are added later are not part of it.
    """

    def __init__(
        self,
        graph: Graph | None = None,
        *,
        target: str | None = None,
        checkpoint_folder: str | os.PathLike[str] | None = None,
        hooks: Iterable[Hook | _Own | Any] = (),
        recovery: float = 600.0,
        step_deadline: float | None = None,
    ) -> None:
        self.graph = graph_of(graph)
        folder = None if checkpoint_folder is None else os.fspath(checkpoint_folder)
        given = [hook._spec if isinstance(hook, _Own) else hook for hook in hooks]
        self._loop = _native.MonitoredSession(self.graph._native, target, folder, given, recovery, step_deadline)

    def run(
        self, fetches: Sequence[Output | str] | Output | str = (), feeds: Feeds | None = None, *, targets: Iterable[Node | str] = ()
    ) -> Any:
        """Runs a step with the hooks. `OutOfRangeError` is the end of the input."""
        single = isinstance(fetches, (Output, str))
        wanted = [fetches] if isinstance(fetches, (Output, str)) else list(fetches)
        given = [
            (tensor_name(feed, self.graph), _native.Tensor(value, self._dtype(feed)))
            for feed, value in (feeds or {}).items()
        ]
        names = [tensor_name(fetch, self.graph) for fetch in wanted]
        ran = [target if isinstance(target, str) else target.name for target in targets]
        values = self._loop.run(given, names, ran)
        return values[0] if single else values

    def _dtype(self, feed: Output | str) -> DType:
        return (self.graph.tensor(feed) if isinstance(feed, str) else feed).dtype

    def train(self, targets: Iterable[Node | str], feeds: Callable[[], Feeds] | None = None) -> int:
        """Runs these nodes until the training ends, and returns the number of steps. `feeds` is called for each step."""
        nodes, steps = list(targets), 0
        while not self.should_stop():
            try:
                self.run((), feeds() if feeds else None, targets=nodes)
            except OutOfRangeError:
                break
            steps += 1
        return steps

    def should_stop(self) -> bool:
        """Whether a hook has ended the training, or there is no more input."""
        return self._loop.should_stop()

    def request_stop(self) -> None:
        """Ends the training after the current step."""
        self._loop.request_stop()

    def close(self) -> None:
        """Ends the training: hooks hear of it unless a step failed, and the session is closed."""
        self._loop.close()

    def __enter__(self) -> MonitoredSession:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._loop.close(kind is not None)
