"""Graphs, their nodes and their outputs.

Functions that add nodes use the graph of their inputs, or the innermost ``with graph:`` of the thread, or one of the thread's own
(`default_graph`).
"""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Iterable, Iterator, Sequence

from . import _native
from .dtypes import DType, as_dtype
from .errors import InvalidArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: A shape: `None` where nothing is known, and `None` for sizes that are not.
Shape = Sequence[int | None] | None


class _Local(threading.local):
    def __init__(self) -> None:
        self.graphs: list[Graph] = []
        self.own: Graph | None = None


_local = _Local()


class Node:
    """A node of a graph."""

    __slots__ = ("graph", "id")

    def __init__(self, graph: Graph, id: int) -> None:
        self.graph = graph
        self.id = id

    @property
    def name(self) -> str:
        """The name, which no other node of the graph has."""
        return self.graph._native.node(self.id)[0]

    @property
    def op(self) -> str:
        """The op."""
        return self.graph._native.node(self.id)[1]

    @property
    def device(self) -> str:
        """The device that was asked for; empty for any."""
        return self.graph._native.node(self.id)[2]

    @property
    def inputs(self) -> list[Output]:
        """The outputs that the node takes."""
        return [Output(self.graph, *pair) for pair in self.graph._native.node(self.id)[3]]

    @property
    def control_inputs(self) -> list[Node]:
        """The nodes that run before it."""
        return [Node(self.graph, id) for id in self.graph._native.node(self.id)[4]]

    @property
    def outputs(self) -> list[Output]:
        """The outputs."""
        return [Output(self.graph, self.id, at) for at in range(self.graph._native.node(self.id)[5])]

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes."""
        return self.graph._native.attrs(self.id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self.graph is other.graph and self.id == other.id

    def __hash__(self) -> int:
        return hash((id(self.graph), self.id))

    def __repr__(self) -> str:
        name, op, device = self.graph._native.node(self.id)[:3]
        return f"<tenon.Node {name!r} ({op})" + (f" on {device}>" if device else ">")


class Output:
    """An output of a node: a tensor of the graph, which has a value in each step.

    The operators of Python add nodes. ``==`` and ``!=`` compare outputs themselves; `tenon.ops.equal` compares values.
    """

    __slots__ = ("graph", "id", "index")

    #: NumPy leaves operators to this class.
    __array_ufunc__ = None

    def __init__(self, graph: Graph, id: int, index: int) -> None:
        self.graph = graph
        self.id = id
        self.index = index

    @property
    def name(self) -> str:
        """The name in steps, such as ``x:0``."""
        return f"{self.graph._native.node(self.id)[0]}:{self.index}"

    @property
    def node(self) -> Node:
        """The node."""
        return Node(self.graph, self.id)

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.graph._native.dtype(self.id, self.index)

    @property
    def shape(self) -> tuple[int | None, ...] | None:
        """The shape as far as it is known; `None` if even the number of dimensions is not."""
        found = self.graph._native.shape(self.id, self.index)
        return None if found is None else tuple(found)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Output):
            return NotImplemented
        return self.graph is other.graph and (self.id, self.index) == (other.id, other.index)

    def __hash__(self) -> int:
        return hash((id(self.graph), self.id, self.index))

    def __repr__(self) -> str:
        return f"<tenon.Output {self.name!r} shape={self.shape} dtype={self.dtype.name}>"

    def __bool__(self) -> bool:
        raise TypeError("an output has a value only in a step: run it, or choose by tenon.ops.select_v2")

    def __iter__(self) -> Iterator[Output]:
        shape = self.shape
        if not shape or shape[0] is None:
            raise TypeError("an output can be iterated only if its first size is known")
        parts: list[Output] = _ops().unpack(self, num=shape[0], axis=0)
        return iter(parts)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(f"{self!r} has a value only in a step: fetch it from a session")

    def _binary(self, op: str, other: Any, swapped: bool = False) -> Output:
        graph = home(self.graph)
        other = as_output(other, graph, self.dtype)
        x, y = (other, self) if swapped else (self, other)
        return Output(graph, graph._add(op, [x, y]), 0)

    def _unary(self, op: str) -> Output:
        graph = home(self.graph)
        return Output(graph, graph._add(op, [self]), 0)

    def __add__(self, other: Any) -> Output:
        return self._binary("AddV2", other)

    def __radd__(self, other: Any) -> Output:
        return self._binary("AddV2", other, True)

    def __sub__(self, other: Any) -> Output:
        return self._binary("Sub", other)

    def __rsub__(self, other: Any) -> Output:
        return self._binary("Sub", other, True)

    def __mul__(self, other: Any) -> Output:
        return self._binary("Mul", other)

    def __rmul__(self, other: Any) -> Output:
        return self._binary("Mul", other, True)

    def __truediv__(self, other: Any) -> Output:
        return self._binary("RealDiv" if self.dtype.is_floating or self.dtype.is_complex else "Div", other)

    def __rtruediv__(self, other: Any) -> Output:
        return self._binary("RealDiv" if self.dtype.is_floating or self.dtype.is_complex else "Div", other, True)

    def __floordiv__(self, other: Any) -> Output:
        return self._binary("FloorDiv", other)

    def __rfloordiv__(self, other: Any) -> Output:
        return self._binary("FloorDiv", other, True)

    def __mod__(self, other: Any) -> Output:
        return self._binary("FloorMod", other)

    def __rmod__(self, other: Any) -> Output:
        return self._binary("FloorMod", other, True)

    def __pow__(self, other: Any) -> Output:
        return self._binary("Pow", other)

    def __rpow__(self, other: Any) -> Output:
        return self._binary("Pow", other, True)

    def __matmul__(self, other: Any) -> Output:
        return self._binary("BatchMatMulV2" if len(self.shape or (0, 0)) != 2 else "MatMul", other)

    def __rmatmul__(self, other: Any) -> Output:
        return self._binary("BatchMatMulV2" if len(self.shape or (0, 0)) != 2 else "MatMul", other, True)

    def __neg__(self) -> Output:
        return self._unary("Neg")

    def __abs__(self) -> Output:
        return self._unary("ComplexAbs" if self.dtype.is_complex else "Abs")

    def __invert__(self) -> Output:
        return self._unary("LogicalNot" if self.dtype.name == "bool" else "Invert")

    def _bits(self, logical: str, bitwise: str, other: Any) -> Output:
        return self._binary(logical if self.dtype.name == "bool" else bitwise, other)

    def __and__(self, other: Any) -> Output:
        return self._bits("LogicalAnd", "BitwiseAnd", other)

    def __or__(self, other: Any) -> Output:
        return self._bits("LogicalOr", "BitwiseOr", other)

    def __xor__(self, other: Any) -> Output:
        return self._binary("NotEqual" if self.dtype.name == "bool" else "BitwiseXor", other)

    def __lt__(self, other: Any) -> Output:
        return self._binary("Less", other)

    def __le__(self, other: Any) -> Output:
        return self._binary("LessEqual", other)

    def __gt__(self, other: Any) -> Output:
        return self._binary("Greater", other)

    def __ge__(self, other: Any) -> Output:
        return self._binary("GreaterEqual", other)

    def __getitem__(self, index: Any) -> Output:
        from ._slicing import sliced

        return sliced(self, index if isinstance(index, tuple) else (index,))


def _ops() -> Any:
    return importlib.import_module("tenon.ops")


class Graph:
    """A graph under construction.

    ``with graph:`` makes it the graph of functions that add nodes on this thread. Several threads may add nodes. Sessions over
    the graph take over new nodes with their next step.
    """

    def __init__(self) -> None:
        self._native = _native.Graph()
        self._scopes = threading.local()

    # Nodes

    def node(self, name: str) -> Node:
        """The node of this name."""
        id = self._native.find(name)
        if id is None:
            # The error names similar nodes.
            id = self._native.tensor(name)[0]
        return Node(self, id)

    def tensor(self, name: str) -> Output:
        """The output that a name such as ``x`` or ``x:0`` means."""
        return Output(self, *self._native.tensor(name))

    def nodes(self) -> list[Node]:
        """All nodes, in the order of addition."""
        return [Node(self, id) for id in range(len(self._native))]

    def __len__(self) -> int:
        return len(self._native)

    def __contains__(self, name: str) -> bool:
        return self._native.find(name) is not None

    def __getitem__(self, name: str) -> Output:
        return self.tensor(name)

    def _ipython_key_completions_(self) -> list[str]:
        return self._native.names()

    def add(
        self,
        op: str,
        inputs: Iterable[Any] = (),
        *,
        name: str | None = None,
        device: str | None = None,
        control_inputs: Iterable[Node | Output] = (),
        **attrs: Any,
    ) -> Node:
        """Adds a node. Types and numbers that the inputs determine may be left out of the attributes."""
        outputs = [as_output(value, self) for value in inputs]
        return Node(self, self._add(op, outputs, attrs, name, device, control_inputs))

    def _add(
        self,
        op: str,
        inputs: Sequence[Output],
        attrs: dict[str, Any] | None = None,
        name: str | None = None,
        device: str | None = None,
        control_inputs: Iterable[Node | Output] = (),
    ) -> int:
        pairs: list[tuple[int, int]] = []
        for value in inputs:
            if value.graph is not self:
                value = self._take(value)
            pairs.append((value.id, value.index))
        scopes = self._scopes
        prefix: str = getattr(scopes, "prefix", "")
        control = [*getattr(scopes, "control", ()), *control_inputs]
        if prefix:
            name = prefix + (name or op)
        asked = device if device is not None else getattr(scopes, "device", "")
        before = [self._before(node) for node in control] if control else []
        return self._native.add(op, pairs, attrs or None, name, asked, before)

    def _before(self, node: Node | Output) -> int:
        """The number of a node that another one waits for."""
        if not isinstance(node, (Node, Output)):
            raise TypeError(f"control_inputs: expected nodes or outputs, found {type(node).__name__}")
        if node.graph is not self:
            raise InvalidArgumentError(f"control_inputs: expected nodes of one graph, found {node!r} of another one")
        return node.id

    def _is_inside(self, graph: Graph) -> bool:
        """Whether this is the graph of a function that a graph calls."""
        return False

    def _take(self, value: Output) -> Output:
        """The output in the place of one of another graph."""
        raise InvalidArgumentError(f"expected outputs of one graph, found {value!r} of another one")

    # Scopes

    def __enter__(self) -> Graph:
        _local.graphs.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _local.graphs.pop()

    @contextlib.contextmanager
    def _scope(self, what: str, value: Any) -> Iterator[Graph]:
        before = getattr(self._scopes, what, None)
        setattr(self._scopes, what, value)
        try:
            yield self
        finally:
            if before is None:
                delattr(self._scopes, what)
            else:
                setattr(self._scopes, what, before)

    def device(self, name: str) -> contextlib.AbstractContextManager[Graph]:
        """Nodes that are added inside ask for this device, unless they say another one."""
        return self._scope("device", name)

    def name_scope(self, name: str) -> contextlib.AbstractContextManager[Graph]:
        """The names of nodes that are added inside begin with this name and a slash."""
        return self._scope("prefix", f"{getattr(self._scopes, 'prefix', '')}{name}/")

    def control_dependencies(self, nodes: Iterable[Node | Output]) -> contextlib.AbstractContextManager[Graph]:
        """Nodes that are added inside run after these."""
        return self._scope("control", (*getattr(self._scopes, "control", ()), *nodes))

    # Messages

    @classmethod
    def from_graph_def(cls, data: Any) -> Graph:
        """A graph of the bytes of a `GraphDef`, or of a message that has `SerializeToString`."""
        graph = cls()
        graph.import_graph_def(data)
        return graph

    def import_graph_def(self, data: Any, *, prefix: str = "") -> int:
        """Appends the nodes of a `GraphDef`, below a prefix, and returns their number."""
        if hasattr(data, "SerializeToString"):
            data = data.SerializeToString()
        return self._native.import_graph_def(bytes(data), prefix)

    def to_graph_def(self) -> bytes:
        """The graph as the bytes of a `GraphDef`."""
        return self._native.to_graph_def()

    def __reduce__(self) -> tuple[Any, ...]:
        return (Graph.from_graph_def, (self.to_graph_def(),))

    def __copy__(self) -> Graph:
        return Graph.from_graph_def(self.to_graph_def())

    def __deepcopy__(self, memo: object) -> Graph:
        return self.__copy__()

    def __repr__(self) -> str:
        return f"<tenon.Graph of {len(self)} nodes>"

    def _repr_html_(self) -> str:
        from . import _svg

        return _svg.html_of(self)


def default_graph() -> Graph:
    """The graph of the innermost ``with graph:`` of this thread, or one of the thread's own."""
    if _local.graphs:
        return _local.graphs[-1]
    if _local.own is None:
        _local.own = Graph()
    return _local.own


def graph_of(graph: Graph | None) -> Graph:
    """The graph that was named, or the default graph."""
    if graph is not None and not isinstance(graph, Graph):
        raise TypeError(f"graph: expected a graph, found {type(graph).__name__}")
    return default_graph() if graph is None else graph


def home(graph: Graph) -> Graph:
    """The graph that gets the nodes that take outputs of this one: that of the function which is being built, if there is one."""
    inner = _local.graphs[-1] if _local.graphs else graph
    return inner if inner._is_inside(graph) else graph


def as_output(value: Any, graph: Graph, dtype: DType | None = None) -> Output:
    """The value as an output of a graph: a constant where it is none."""
    if isinstance(value, Output):
        return value if value.graph is graph else graph._take(value)
    if isinstance(value, Node):
        return as_output(value.outputs[0], graph)
    inner = getattr(value, "value", None)
    if isinstance(inner, Output):
        # A variable of `tenon.train`.
        return as_output(inner, graph)
    return constant(value, dtype, graph=graph)


def constant(
    value: Any, dtype: DType | Any = None, *, name: str | None = None, graph: Graph | None = None
) -> Output:
    """An output with this value in each step. Later changes of an array do not reach it."""
    graph = graph_of(graph)
    tensor = _native.Tensor(value, None if dtype is None else as_dtype(dtype))
    attrs = {"dtype": tensor.dtype, "value": tensor}
    return Output(graph, graph._add("Const", [], attrs, name), 0)


def placeholder(
    dtype: DType | Any, shape: Shape = None, *, name: str | None = None, graph: Graph | None = None
) -> Output:
    """An output that steps are fed with."""
    graph = graph_of(graph)
    attrs = {"dtype": as_dtype(dtype), "shape": None if shape is None else list(shape)}
    return Output(graph, graph._add("Placeholder", [], attrs, name), 0)
