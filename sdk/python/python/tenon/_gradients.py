"""Gradients of outputs of a graph."""

from __future__ import annotations

from collections.abc import Sequence

from .errors import InvalidArgumentError
from .graph import Graph, Output, as_output, home


def gradients(
    ys: Output | Sequence[Output],
    xs: Output | Sequence[Output],
    *,
    grad_ys: Sequence[Output | None] | None = None,
    stop_gradients: Sequence[Output] = (),
    unconnected: str = "none",
    name: str = "gradients",
) -> list[Output | None]:
    """The gradients of the sum of `ys` with respect to each of `xs`, as new nodes.

    An x to which no path leads has `None`, or zeros with ``unconnected="zero"``.
    """
    y_list = [ys] if isinstance(ys, Output) else list(ys)
    x_list = [xs] if isinstance(xs, Output) else list(xs)
    if not y_list or not x_list:
        raise InvalidArgumentError("expected at least one y and one x")
    if unconnected not in ("none", "zero"):
        raise InvalidArgumentError(f"unconnected: expected 'none' or 'zero', found {unconnected!r}")
    within = getattr(y_list[0], "graph", None)
    if not isinstance(within, Graph):
        raise TypeError(f"ys: expected outputs, found {type(y_list[0]).__name__}")
    graph = home(within)

    def pair(value: Output) -> tuple[int, int]:
        value = as_output(value, graph)
        return (value.id, value.index)

    made = graph._native.gradients(
        [pair(y) for y in y_list],
        [pair(x) for x in x_list],
        [None if dy is None else pair(dy) for dy in grad_ys or ()],
        [pair(stop) for stop in stop_gradients],
        unconnected == "zero",
        name,
    )
    return [None if found is None else Output(graph, *found) for found in made]
