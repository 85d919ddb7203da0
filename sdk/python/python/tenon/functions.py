"""Functions of graphs: bodies that are built once and called many times, branches and loops.

``@tenon.function`` makes calls of a Python function calls of a function of the graph. `cond`, `switch_case` and `while_loop` choose
and repeat. Bodies may use outputs of the graph around them; these become arguments of the function. Gradients flow through all of
them.

>>> import numpy as np
>>> import tenon
>>> @tenon.function
... def halved(x):
...     return x / 2
>>> halved.run(np.array([3.0, 4.0], np.float32))
array([1.5, 2. ], dtype=float32)
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _native, ops
from .dtypes import DType, by_number
from .errors import InvalidArgumentError
from .graph import Graph, Node, Output, as_output, default_graph, graph_of, home

__all__ = ["ConcreteFunction", "Function", "FunctionGraph", "cond", "function", "import_function", "switch_case", "while_loop"]

_numbers = itertools.count()
_stateful: dict[str, bool] = {}
#: Ops with state whose order among others says nothing.
_UNORDERED = frozenset({"Placeholder", "VarHandleOp", "VariableV2"})


def _has_effect(op: str) -> bool:
    found = _stateful.get(op)
    if found is None:
        definition = _native.op_def(op)
        found = _stateful[op] = bool(definition and definition["stateful"]) and op not in _UNORDERED
    return found


class FunctionGraph(Graph):
    """The body of a function while it is built.

    Outputs of the graphs around it become arguments. Nodes with state run in the order in which they are added.
    """

    def __init__(self, parent: Graph) -> None:
        super().__init__()
        self.parent = parent
        self.args: list[Output] = []
        self.captures: dict[Output, Output] = {}
        self.effect: int | None = None

    def arg(self, dtype: DType, shape: Sequence[int | None] | None) -> Output:
        """Adds an argument."""
        attrs = {"dtype": dtype, "shape": None if shape is None else list(shape)}
        return Output(self, self._native.add("Placeholder", [], attrs, "arg", "", []), 0)

    def _is_inside(self, graph: Graph) -> bool:
        return self.parent is graph or self.parent._is_inside(graph)

    def _take(self, value: Output) -> Output:
        if not self._is_inside(value.graph):
            raise InvalidArgumentError(
                f"expected outputs of the function or of the graphs around it, found {value!r} of another graph"
            )
        found = self.captures.get(value)
        if found is None:
            found = self.captures[value] = self.arg(value.dtype, value.shape)
        return found

    def _add(
        self,
        op: str,
        inputs: Sequence[Output],
        attrs: dict[str, Any] | None = None,
        name: str | None = None,
        device: str | None = None,
        control_inputs: Any = (),
    ) -> int:
        has_effect = _has_effect(op)
        # A call waits for no node of another graph: what runs the call waits for those.
        control = [node for node in control_inputs if getattr(node, "graph", self) is self]
        if has_effect and self.effect is not None:
            control.append(Node(self, self.effect))
        made = super()._add(op, inputs, attrs, name, device, control)
        if has_effect:
            self.effect = made
        return made


# Structures


def _flatten(value: Any, leaf: Callable[[Any], Any], found: list[Any]) -> Any:
    """Collects the leaves of nested tuples, lists and dicts, and gives the structure without them."""
    if isinstance(value, Mapping):
        return (dict, tuple((key, _flatten(item, leaf, found)) for key, item in value.items()))
    if isinstance(value, (list, tuple)):
        return (type(value), tuple(_flatten(item, leaf, found) for item in value))
    made = leaf(value)
    if made is None:
        return (None, type(value), value)
    found.append(made)
    return ()


def _packed(structure: Any, leaves: Any) -> Any:
    if not structure:
        return next(leaves)
    if structure[0] is None:
        return structure[2]
    kind, items = structure
    if kind is dict:
        return {key: _packed(item, leaves) for key, item in items}
    made = [_packed(item, leaves) for item in items]
    if hasattr(kind, "_make"):
        return kind._make(made)
    return kind(made)


def _argument(value: Any) -> Any:
    """An argument that is a tensor; `None` for one that is a part of the signature."""
    if isinstance(value, (Output, np.ndarray, np.generic, _native.Tensor)):
        return value
    inner = getattr(value, "value", None)
    return inner if isinstance(inner, Output) else None


def _results(made: Any, body: FunctionGraph) -> tuple[list[Output], Any]:
    results: list[Output] = []

    def leaf(value: Any) -> Output | None:
        if value is None or isinstance(value, Node) and not value.outputs:
            return None
        return as_output(value, body)

    structure = _flatten(made, leaf, results)
    # A node without outputs is an effect, and a value of Python's is none.
    return results, _without_nodes(structure)


def _without_nodes(structure: Any) -> Any:
    if not structure:
        return structure
    if structure[0] is None:
        return (None, type(None), None)
    if structure[0] is dict:
        return (dict, tuple((key, _without_nodes(item)) for key, item in structure[1]))
    return (structure[0], tuple(map(_without_nodes, structure[1])))


# Functions


class ConcreteFunction:
    """A function of a graph with types of its own."""

    def __init__(self, graph: Graph, name: str, structure: Any = None, captured: Sequence[Output] = ()) -> None:
        #: The graph whose nodes may call it.
        self.graph = graph
        #: The name, which no other function of the graph has.
        self.name = name
        inputs, outputs, stateful = _native.function_signature(graph._native, name)
        #: The types of the arguments, captured outputs included.
        self.input_types: list[DType] = [by_number(number) for number in inputs]
        #: The types of the results.
        self.output_types: list[DType] = [by_number(number) for number in outputs]
        #: Whether a call has effects, or depends on state.
        self.stateful: bool = stateful
        self._structure = (tuple, ((),) * len(outputs)) if structure is None else structure
        self._captured = list(captured)

    def __call__(self, *args: Any) -> Any:
        """Adds a call, and returns its results."""
        expected = len(self.input_types) - len(self._captured)
        if len(args) != expected:
            raise InvalidArgumentError(f"function {self.name!r}: expected {expected} arguments, found {len(args)}")
        graph = self.graph
        given = [as_output(value, graph, dtype) for value, dtype in zip(args, self.input_types)]
        op = "StatefulPartitionedCall" if self.stateful else "PartitionedCall"
        types = {"Tin": self.input_types, "Tout": self.output_types}
        node = Node(graph, graph._add(op, [*given, *self._captured], {**types, "f": self.name}, self.name))
        return _packed(self._structure, iter(node.outputs))

    def to_function_def(self) -> bytes:
        """The function as the bytes of a `FunctionDef`."""
        return _native.function_def(self.graph._native, self.name)

    def __repr__(self) -> str:
        types = ", ".join(dtype.name for dtype in self.input_types)
        results = ", ".join(dtype.name for dtype in self.output_types)
        return f"<tenon.ConcreteFunction {self.name!r} ({types}) -> ({results})>"


def _name_of(python: Callable[..., Any]) -> str:
    name = getattr(python, "__name__", "function")
    return "lambda" if name == "<lambda>" else "".join(part if part.isalnum() else "_" for part in name)


def _define(
    body: FunctionGraph, name: str, args: Sequence[Output], captures: Sequence[Output], results: Sequence[Output]
) -> str:
    """Adds a body to the graph around it, and returns the name of the function."""
    full = f"{name}_{next(_numbers)}"
    while full in body.parent or full in _native.function_names(body.parent._native):
        full = f"{name}_{next(_numbers)}"
    arguments = [*args, *(body._take(value) for value in captures)]
    effects = [] if body.effect is None else [body.effect]
    _native.define_function(
        body.parent._native,
        full,
        body._native,
        [(arg.id, arg.index) for arg in arguments],
        [(result.id, result.index) for result in results],
        effects,
    )
    return full


class Function:
    """A function that graphs call. ``@tenon.function`` makes one.

    Its body is built for each combination of graph, types and shapes of the arguments. Arguments of Python's own, such as numbers and
    strings, are part of that combination: give an array or an output for a value that changes.
    """

    def __init__(self, python: Callable[..., Any], *, name: str | None = None) -> None:
        functools.update_wrapper(self, python)
        self._python = python
        self._name = name or _name_of(python)
        self._building = False

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def concrete(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The function for these arguments, in the graph of the outputs among them."""
        leaves: list[Any] = []
        structure = _flatten((args, kwargs), _argument, leaves)
        return self._concrete(_graph_of(leaves), leaves, structure)

    def _concrete(self, graph: Graph, leaves: list[Any], structure: Any) -> ConcreteFunction:
        tensors = [leaf if isinstance(leaf, Output) else _native.Tensor(leaf) for leaf in leaves]
        key = (self, structure, tuple((tensor.dtype.number, tensor.shape) for tensor in tensors))
        made: dict[Any, ConcreteFunction] = graph.__dict__.setdefault("_functions", {})
        try:
            found = made.get(key)
        except TypeError as error:
            raise InvalidArgumentError(
                f"function {self._name!r}: expected arguments that are outputs, arrays or hashable values: {error}"
            ) from None
        if found is None:
            found = made[key] = self._build(graph, tensors, structure)
        return found

    def _build(self, graph: Graph, tensors: list[Any], structure: Any) -> ConcreteFunction:
        if self._building:
            raise InvalidArgumentError(f"function {self._name!r} calls itself: use tenon.while_loop")
        body = FunctionGraph(graph)
        self._building = True
        try:
            with body:
                given = [body.arg(tensor.dtype, tensor.shape) for tensor in tensors]
                args, kwargs = _packed(structure, iter(given))
                results, packing = _results(self._python(*args, **kwargs), body)
        finally:
            self._building = False
        captured = list(body.captures)
        name = _define(body, self._name, given, captured, results)
        return ConcreteFunction(graph, name, packing, captured)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Adds a call to the graph of the arguments, and returns its results."""
        leaves: list[Any] = []
        structure = _flatten((args, kwargs), _argument, leaves)
        return self._concrete(_graph_of(leaves), leaves, structure)(*leaves)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the function on arrays, as `tenon.eager` runs ops."""
        from . import eager

        return eager.run(self, *args, **kwargs)

    def __repr__(self) -> str:
        return f"<tenon.Function {self._name!r}>"


def _graph_of(leaves: Sequence[Any]) -> Graph:
    for leaf in leaves:
        if isinstance(leaf, Output):
            return home(leaf.graph)
    return default_graph()


def function(python: Callable[..., Any] | None = None, *, name: str | None = None) -> Any:
    """Makes a Python function a function of graphs: ``@tenon.function`` or ``@tenon.function(name="f")``."""
    if python is None:
        return lambda python: Function(python, name=name)
    return Function(python, name=name)


def import_function(data: Any, *, graph: Graph | None = None, library: Sequence[Any] = ()) -> ConcreteFunction:
    """Adds a function that is given as the bytes of a `FunctionDef`, or as such a message, to a graph. `library` has those that it calls."""
    graph = graph_of(graph)
    messages = [item.SerializeToString() if hasattr(item, "SerializeToString") else bytes(item) for item in (data, *library)]
    return ConcreteFunction(graph, _native.add_functions(graph._native, messages))


# Branches and loops


def _branch(graph: Graph, python: Callable[[], Any]) -> tuple[FunctionGraph, list[Output], Any]:
    body = FunctionGraph(graph)
    with body:
        results, structure = _results(python(), body)
    return body, results, structure


def _common_shape(shapes: Sequence[Sequence[int | None] | None]) -> list[int | None] | None:
    first = shapes[0]
    if first is None or any(shape is None or len(shape) != len(first) for shape in shapes):
        return None
    return [sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*(shape or () for shape in shapes))]


def _select(graph: Graph, names: Sequence[str], branches: Sequence[Callable[[], Any]]) -> Any:
    """Builds branches that take the same arguments and give results of the same types."""
    built = [_branch(graph, python) for python in branches]
    _, first, structure = built[0]
    expected = [result.dtype for result in first]
    for name, (_, results, own) in zip(names, built):
        found = [result.dtype for result in results]
        if found != expected or own != structure:
            raise InvalidArgumentError(
                f"{name} gives ({', '.join(dtype.name for dtype in found)}) in its own structure: expected "
                f"({', '.join(dtype.name for dtype in expected)}), as {names[0]}, in the same structure"
            )
    captured = list(dict.fromkeys(value for body, _, _ in built for value in body.captures))
    functions = [_define(body, name, [], captured, results) for name, (body, results, _) in zip(names, built)]
    shapes = [_common_shape([results[at].shape for _, results, _ in built]) for at in range(len(expected))]
    attrs = {"Tin": [value.dtype for value in captured], "Tout": expected, "output_shapes": shapes}
    stateful = any(body.effect is not None for body, _, _ in built)
    return functions, captured, attrs, structure, stateful


def cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any], *, name: str | None = None) -> Any:
    """The results of one of two functions without arguments, which the condition selects in each step."""
    graph = home(pred.graph) if isinstance(pred, Output) else default_graph()
    condition = as_output(pred, graph)
    functions, captured, attrs, structure, stateful = _select(graph, ["true_fn", "false_fn"], [true_fn, false_fn])
    attrs |= {"Tcond": condition.dtype, "then_branch": functions[0], "else_branch": functions[1]}
    op = "If" if stateful else "StatelessIf"
    node = Node(graph, graph._add(op, [condition, *captured], attrs, name or "cond"))
    return _packed(structure, iter(node.outputs))


def switch_case(index: Any, branches: Sequence[Callable[[], Any]], *, name: str | None = None) -> Any:
    """The results of the function of this number, in each step. A number that no function has is that of the last one."""
    if not branches:
        raise InvalidArgumentError("switch_case: expected at least one function, found none")
    graph = home(index.graph) if isinstance(index, Output) else default_graph()
    names = [f"branch_{at}" for at in range(len(branches))]
    functions, captured, attrs, structure, stateful = _select(graph, names, branches)
    attrs["branches"] = functions
    given = [as_output(index, graph, by_number(3)), *captured]
    node = Node(graph, graph._add("Case" if stateful else "StatelessCase", given, attrs, name or "case"))
    return _packed(structure, iter(node.outputs))


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Sequence[Any],
    *,
    maximum_iterations: int | None = None,
    parallel_iterations: int = 10,
    name: str | None = None,
) -> Any:
    """Calls `body` on the values as long as `cond` of them holds, and returns the last values, as a tuple.

    `body` returns as many values, of the same types.
    """
    if not loop_vars:
        raise InvalidArgumentError("while_loop: expected at least one value, found none")
    graph = next((home(value.graph) for value in loop_vars if isinstance(value, Output)), default_graph())
    first = [as_output(value, graph) for value in loop_vars]
    counted = maximum_iterations is not None
    if counted:
        first.append(as_output(0, graph))
    shapes = [value.shape for value in first]
    step, after = _loop_part(first, shapes, graph, lambda *values: _stepped(body, values, counted))
    # A size that the body changes is unknown in the next body.
    while len(after) == len(first) and (kept := _kept_shapes(shapes, after)) != shapes:
        shapes = kept
        step, after = _loop_part(first, shapes, graph, lambda *values: _stepped(body, values, counted))
    test, holds = _loop_part(first, shapes, graph, lambda *values: _held(cond, values, maximum_iterations))
    if len(after) != len(first):
        raise InvalidArgumentError(
            f"while_loop: expected {len(loop_vars)} values of body, as many as loop_vars, found {len(after) - counted}"
        )
    for at, (value, result) in enumerate(zip(first, after)):
        if value.dtype != result.dtype:
            raise InvalidArgumentError(
                f"while_loop: body gives {result.dtype.name} as value {at}: expected {value.dtype.name}, as in loop_vars"
            )
    captured = list(dict.fromkeys([*test.captures, *step.captures]))
    shapes += [value.shape for value in captured]
    condition = _define(test, "while_cond", test.args, captured, holds)
    function = _define(step, "while_body", step.args, captured, [*after, *map(step._take, captured)])
    attrs = {
        "T": [value.dtype for value in (*first, *captured)],
        "cond": condition,
        "body": function,
        "output_shapes": [None if shape is None else list(shape) for shape in shapes],
        "parallel_iterations": parallel_iterations,
    }
    op = "StatelessWhile" if test.effect is None and step.effect is None else "While"
    node = Node(graph, graph._add(op, [*first, *captured], attrs, name or "while"))
    return tuple(node.outputs[: len(loop_vars)])


def _kept_shapes(shapes: Sequence[Any], results: Sequence[Output]) -> list[Any]:
    common = [_common_shape([shape, result.shape]) for shape, result in zip(shapes, results)]
    return [None if shape is None else tuple(shape) for shape in common]


def _loop_part(
    first: Sequence[Output], shapes: Sequence[Any], graph: Graph, python: Callable[..., Any]
) -> tuple[FunctionGraph, list[Output]]:
    part = FunctionGraph(graph)
    with part:
        part.args = [part.arg(value.dtype, shape) for value, shape in zip(first, shapes)]
        results, _ = _results(python(*part.args), part)
    return part, results


def _held(cond: Callable[..., Any], values: Sequence[Output], most: int | None) -> Output:
    if most is None:
        return as_output(cond(*values), values[0].graph)
    *own, count = values
    return ops.logical_and(cond(*own), count < most)  # type: ignore[no-any-return]


def _stepped(body: Callable[..., Any], values: Sequence[Output], counted: bool) -> list[Any]:
    own = values[:-1] if counted else values
    made = body(*own)
    results = list(made) if isinstance(made, (list, tuple)) else [made]
    return [*results, values[-1] + 1] if counted else results
