"""All ops as functions, made from the registry when they are first named.

``tenon.ops.mat_mul(a, b, transpose_a=True)`` adds a node of op ``MatMul``. The names are those of ops in lower case with underscores;
`tenon.ops.names` lists them, and ``help(tenon.ops.mat_mul)`` describes one. Inputs are outputs of a graph, or values, which become
constants. An op with one output gives it, one with several a tuple, and one without any its node.
"""

from __future__ import annotations

import inspect
import keyword
import re
import sys
from collections.abc import Callable
from typing import Any

from . import _native
from .dtypes import DType, by_number
from .graph import Graph, Node, Output, as_output, default_graph, home

_made: dict[str, Callable[..., Any]] = {}
_ops: dict[str, str] = {}


def snake_case(op: str) -> str:
    """The name of an op's function: ``MatMul`` is ``mat_mul``, ``Conv2D`` is ``conv2d``, ``AddV2`` is ``add_v2``."""
    text = re.sub(r"(?<=\w)(V\d+)$", r"_\1", op.replace(">", "_"))
    text = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", text)
    text = re.sub(r"([a-z])([A-Z])", r"\1_\2", text)
    text = re.sub(r"([0-9])([A-Z][a-z])", r"\1_\2", text)
    text = re.sub(r"_+", "_", text).lower().lstrip("_")
    return text + "_" if keyword.iskeyword(text) else text


def names() -> dict[str, str]:
    """The names of all functions, with their ops."""
    found = _native.op_names()
    if len(_ops) < len(found):
        for op in found:
            # Ops that begin with an underscore are for passes.
            if not op.startswith("_"):
                _ops.setdefault(snake_case(op), op)
    return _ops


def function(op: str) -> Callable[..., Any]:
    """The function of an op."""
    made = _made.get(op)
    if made is None:
        definition = _native.op_def(op)
        if definition is None:
            raise AttributeError(f"there is no op {op!r}: load the plugin that defines it (tenon.load_plugin)")
        made = _made[op] = _make(definition)
    return made


def _forget(op: str) -> None:
    """Makes the function of an op anew when it is next named."""
    _made.pop(op, None)
    _ops.setdefault(snake_case(op), op)
    eager = sys.modules.get("tenon.eager")
    if eager is not None:
        eager.__dict__["_made"].pop(snake_case(op), None)


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("__"):
        raise AttributeError(name)
    found = names().get(name)
    if found is None:
        import difflib

        near = difflib.get_close_matches(name, names(), 3)
        hint = f"; similar: {', '.join(near)}" if near else ""
        raise AttributeError(f"there is no op with the function {name!r}{hint}")
    return function(found)


def __dir__() -> list[str]:
    return sorted({*globals(), *names()})


def _make(definition: dict[str, Any]) -> Callable[..., Any]:
    op: str = definition["name"]
    inputs: list[dict[str, Any]] = definition["inputs"]
    inferred = {arg[key] for arg in inputs for key in ("type_attr", "number_attr") if arg[key]}
    attrs: list[dict[str, Any]] = definition["attrs"]
    signature = _signature(inputs, attrs, inferred)
    by_parameter = {_parameter(attr["name"]): attr["name"] for attr in attrs}
    outputs: list[dict[str, Any]] = definition["outputs"]

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs).arguments
        values = [bound.pop(_parameter(arg["name"])) for arg in inputs]
        name, device = bound.pop("name", None), bound.pop("device", None)
        control = bound.pop("control_inputs", ())
        given = {
            by_parameter[parameter]: value
            for parameter, value in bound.items()
            if value is not None or parameter in _NONE_MEANS
        }
        graph = _graph_of(values)
        flat = _outputs(graph, inputs, values, given)
        node = Node(graph, graph._add(op, flat, given, name, device, control))
        return _results(node, outputs)

    call.__name__ = call.__qualname__ = snake_case(op)
    call.__doc__ = _document(definition, attrs, inferred)
    call.__module__ = __name__
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


#: Attributes for which `None` is a value: a shape of which nothing is known.
_NONE_MEANS = frozenset({"shape"})


def _parameter(name: str) -> str:
    return name + "_" if keyword.iskeyword(name) or name in ("name", "device", "control_inputs") else name


def _signature(
    inputs: list[dict[str, Any]], attrs: list[dict[str, Any]], inferred: set[str]
) -> inspect.Signature:
    parameters = [
        inspect.Parameter(_parameter(arg["name"]), inspect.Parameter.POSITIONAL_OR_KEYWORD) for arg in inputs
    ]
    kind = inspect.Parameter.KEYWORD_ONLY
    for attr in attrs:
        needed = not attr["has_default"] and attr["name"] not in inferred
        default = inspect.Parameter.empty if needed else attr["default"] if attr["has_default"] else None
        parameters.append(inspect.Parameter(_parameter(attr["name"]), kind, default=default))
    for extra, default in (("name", None), ("device", None), ("control_inputs", ())):
        parameters.append(inspect.Parameter(extra, kind, default=default))
    return inspect.Signature(parameters)


def _graph_of(values: list[Any]) -> Graph:
    for value in values:
        for item in value if isinstance(value, (list, tuple)) else [value]:
            graph = getattr(item, "graph", None)
            if isinstance(graph, Graph):
                return home(graph)
    return default_graph()


def _outputs(
    graph: Graph, inputs: list[dict[str, Any]], values: list[Any], given: dict[str, Any]
) -> list[Output]:
    """The flat inputs of a node. A value takes the type of an output that shares its type attribute."""
    types: dict[str, DType] = {
        name: value for name, value in given.items() if isinstance(value, DType)
    }
    for arg, value in zip(inputs, values):
        for item in value if arg["is_list"] and isinstance(value, (list, tuple)) else [value]:
            item = getattr(item, "value", item)
            if isinstance(item, Output) and arg["type_attr"]:
                types.setdefault(arg["type_attr"], item.dtype)
    flat: list[Output] = []
    for arg, value in zip(inputs, values):
        dtype = by_number(arg["dtype"]) if arg["dtype"] else None
        if arg["type_attr"]:
            dtype = types.get(arg["type_attr"])
        if arg["is_list"] and not isinstance(value, (list, tuple)):
            raise TypeError(f"input {arg['name']!r}: expected a list of outputs, found {type(value).__name__}")
        items = value if arg["is_list"] else [value]
        for item in items:
            made = as_output(item, graph, dtype)
            if arg["type_attr"] and not (arg["is_list"] and not arg["number_attr"]):
                types.setdefault(arg["type_attr"], made.dtype)
                dtype = types[arg["type_attr"]]
            flat.append(made)
        if arg["number_attr"]:
            given.setdefault(arg["number_attr"], len(items))
    return flat


def _results(node: Node, outputs: list[dict[str, Any]]) -> Any:
    made = node.outputs
    if not outputs:
        return node
    if len(outputs) == 1:
        return made if outputs[0]["is_list"] else made[0]
    if not any(output["is_list"] for output in outputs):
        return tuple(made)
    return tuple(made) if sum(output["is_list"] for output in outputs) > 1 else _grouped(made, outputs)


def _grouped(made: list[Output], outputs: list[dict[str, Any]]) -> tuple[Any, ...]:
    """The outputs by argument, where one of these is a list."""
    extra = len(made) - (len(outputs) - 1)
    grouped: list[Any] = []
    at = 0
    for output in outputs:
        count = extra if output["is_list"] else 1
        grouped.append(made[at : at + count] if output["is_list"] else made[at])
        at += count
    return tuple(grouped)


def _document(definition: dict[str, Any], attrs: list[dict[str, Any]], inferred: set[str]) -> str:
    def argument(arg: dict[str, Any]) -> str:
        kind = by_number(arg["dtype"]).name if arg["dtype"] else arg["type_attr"]
        return f"    {arg['name']}: {'list of ' if arg['is_list'] else ''}{kind}"

    lines = [definition["summary"] or f"Adds a node of op {definition['name']}.", ""]
    lines += [f"Op ``{definition['name']}``{', stateful' if definition['stateful'] else ''}.", ""]
    if definition["description"]:
        lines += [definition["description"], ""]
    if definition["inputs"]:
        lines += ["Inputs:", *map(argument, definition["inputs"]), ""]
    if definition["outputs"]:
        lines += ["Outputs:", *map(argument, definition["outputs"]), ""]
    if attrs:
        lines.append("Attributes:")
    for attr in attrs:
        allowed = f" of {', '.join(attr['allowed'])}" if attr["allowed"] else ""
        default = f", {attr['default']!r} by default" if attr["has_default"] else ""
        known = ", from the inputs" if attr["name"] in inferred else ""
        lines.append(f"    {attr['name']}: {attr['type']}{allowed}{default}{known}")
    return "\n".join(lines).rstrip()
