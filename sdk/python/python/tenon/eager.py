"""Ops as functions of arrays, one at a time.

``tenon.eager.mat_mul(a, b)`` runs op ``MatMul`` on arrays, and gives an array. Each combination of an op with its attributes and the types
of its inputs is prepared once. Every call is a step: graphs and `Session.callable` are the fast path.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _native, ops
from .graph import Graph, Node, Output, placeholder
from .session import Session

_made: dict[str, Callable[..., Any]] = {}
#: The most steps that are kept prepared.
_MOST = 1024


class _Prepared:
    """The steps that were prepared, each in a session of its own."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.steps: dict[Any, tuple[Session, Any, Callable[[list[Any]], Any]]] = {}


_prepared = _Prepared()


def _frozen(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return tuple(sorted((key, _frozen(item)) for key, item in value.items()))
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, _native.Tensor):
        return (value.dtype.name, value.shape, _frozen(value.tolist()))
    return value


def _flat(values: list[Any]) -> tuple[list[_native.Tensor], list[int | None]]:
    """The inputs as tensors, and how many each list has."""
    tensors: list[_native.Tensor] = []
    counts: list[int | None] = []
    for value in values:
        items = value if isinstance(value, list) else [value]
        counts.append(len(items) if isinstance(value, list) else None)
        tensors += [_native.Tensor(item) for item in items]
    return tensors, counts


def _prepare(
    function: Callable[..., Any],
    tensors: list[_native.Tensor],
    counts: list[int | None],
    kwargs: dict[str, Any],
) -> tuple[Session, Any, Callable[[list[Any]], Any]]:
    graph = Graph()
    with graph:
        feeds = [placeholder(tensor.dtype, [None] * tensor.ndim) for tensor in tensors]
        rest = iter(feeds)
        given = [next(rest) if count is None else [next(rest) for _ in range(count)] for count in counts]
        made = function(*given, **kwargs)
    session = Session(graph)
    if isinstance(made, Node):
        step = session.callable(feeds, [], targets=[made])
        return session, step, lambda values: None
    if isinstance(made, Output):
        return session, session.callable(feeds, [made]), lambda values: values[0]
    flat = [output for item in made for output in (item if isinstance(item, list) else [item])]
    shape = [len(item) if isinstance(item, list) else None for item in made]
    kind: Callable[[Any], Any] = list if isinstance(made, list) else tuple

    def build(values: list[Any]) -> Any:
        found = iter(values)
        return kind(next(found) if count is None else [next(found) for _ in range(count)] for count in shape)

    return session, session.callable(feeds, flat), build


def run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Runs a function of `tenon.ops`, or one that is built of them, on arrays."""
    tensors, counts = _flat([list(arg) if isinstance(arg, tuple) else arg for arg in args])
    types = tuple((tensor.dtype.number, tensor.ndim) for tensor in tensors)
    key = (function, types, tuple(counts), _frozen(kwargs))
    found = _prepared.steps.get(key)
    if found is None:
        with _prepared.lock:
            if len(_prepared.steps) >= _MOST:
                _prepared.steps.clear()
            found = _prepared.steps[key] = _prepare(function, tensors, counts, kwargs)
    return found[2](found[1](*tensors))


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("__"):
        raise AttributeError(name)
    made = _made.get(name)
    if made is None:
        function = getattr(ops, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            return run(function, *args, **kwargs)

        call.__name__ = call.__qualname__ = name
        call.__doc__ = f"Runs on arrays what `tenon.ops.{name}` adds to graphs.\n\n{function.__doc__}"
        call.__signature__ = function.__signature__  # type: ignore[attr-defined]
        made = _made[name] = call
    return made


def __dir__() -> list[str]:
    return sorted({"run", *ops.names()})
