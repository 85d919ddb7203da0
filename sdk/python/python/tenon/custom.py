"""Ops whose kernels are Python functions, for trying ideas before they become a plugin.

>>> import numpy as np
>>> import tenon
>>> @tenon.op
... def scaled(x: tenon.float32, *, factor: float = 2.0) -> tenon.float32:
...     return x * np.float32(factor)
>>> scaled.run(np.array([1.0, 2.0], np.float32), factor=3.0)
array([3., 6.], dtype=float32)

The op is in the registry as any other: ``scaled(x)`` and ``tenon.ops.scaled(x)`` add nodes, and graphs that name it run in this process. Its
kernel takes Python's lock, so it runs on one thread at a time.
"""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, get_args, get_origin


from . import _native, errors, ops
from .dtypes import DType, as_dtype
from .errors import InvalidArgumentError, TenonError
from .graph import Graph, Output, as_output, placeholder

__all__ = ["CustomOp", "GradientNode", "op"]

#: Types of attributes, by the annotations of keyword-only parameters.
_KINDS: dict[Any, str] = {bool: "bool", int: "int", float: "float", str: "string", bytes: "string", DType: "type"}


class GradientNode(NamedTuple):
    """The node whose gradient a function makes."""

    #: The name.
    name: str
    #: The op.
    op: str
    #: The inputs of the node.
    inputs: tuple[Output, ...]
    #: The outputs of the node.
    outputs: tuple[Output, ...]
    #: The attributes.
    attrs: dict[str, Any]


def _camel_case(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _dtype_name(annotation: Any, what: str) -> str:
    try:
        if annotation is None:
            raise TypeError
        return as_dtype(annotation).name
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"{what}: expected an element type such as tenon.float32, found {annotation!r}: annotate it, or give the "
            "decorator inputs= and outputs="
        ) from None


def _attribute(parameter: inspect.Parameter, annotation: Any) -> str:
    """The text of the attribute that a keyword-only parameter is."""
    default = parameter.default
    kind = _KINDS.get(annotation)
    if kind is None and get_origin(annotation) in (list, Sequence, tuple):
        inner = _KINDS.get((*get_args(annotation), None)[0])
        kind = None if inner is None else f"list({inner})"
    if kind is None and annotation is inspect.Parameter.empty:
        kind = _KINDS.get(type(default))
    if kind is None:
        raise InvalidArgumentError(
            f"parameter {parameter.name!r}: expected an annotation bool, int, float, str, tenon.DType or a list of one of "
            f"these, found {annotation!r}"
        )
    text = f"{parameter.name}: {kind}"
    return text if default is inspect.Parameter.empty else f"{text} = {_default(default)}"


def _default(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, DType):
        return value.name
    if isinstance(value, bytes):
        value = value.decode()
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_default, value))}]"
    return repr(value)


def _split(text: str | Sequence[str]) -> list[str]:
    """The arguments of a text such as ``"x: T, y: T"``."""
    if not isinstance(text, str):
        return list(text)
    return [part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def _type_attributes(types: dict[str, str | Iterable[Any]]) -> list[str]:
    def text(allowed: str | Iterable[Any]) -> str:
        return allowed if isinstance(allowed, str) else f"{{{', '.join(as_dtype(dtype).name for dtype in allowed)}}}"

    return [f"{name}: {text(allowed)}" for name, allowed in types.items()]


class CustomOp:
    """An op with a kernel in Python. ``@tenon.op`` makes one.

    Calling it adds a node, as its function in `tenon.ops` does; `run` runs it on arrays.
    """

    def __init__(
        self,
        python: Callable[..., Any],
        name: str,
        inputs: list[str],
        outputs: list[str],
        attrs: list[str],
        keywords: frozenset[str],
        stateful: bool,
    ) -> None:
        #: The name of the op.
        self.name = name
        #: What is called with arrays.
        self.python = python
        self.__name__ = self.__qualname__ = python.__name__
        self.__module__ = python.__module__
        self._keywords = keywords
        self._shape: Callable[..., Any] | None = None
        self._gradient: Callable[..., Any] | None = None
        doc = inspect.getdoc(python) or ""
        summary, _, rest = doc.partition("\n\n")
        _native.define_op(
            name,
            [inputs, outputs, attrs],
            self,
            stateful=stateful,
            summary=" ".join(summary.split()),
            description=rest.strip(),
        )
        ops._forget(name)
        self.__doc__ = ops.function(name).__doc__
        self.__signature__ = inspect.signature(ops.function(name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Adds a node to the graph of the arguments, and returns its outputs."""
        return ops.function(self.name)(*args, **kwargs)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the op on arrays, as `tenon.eager` does."""
        from . import eager

        return eager.run(ops.function(self.name), *args, **kwargs)

    def shape(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Makes a function the shape function: ``@myop.shape``.

        It gets the shapes of the inputs, which are `None` or tuples in which unknown sizes are `None`, and the attributes that it has
        as keyword-only parameters. It returns the shape of the output, or a list of shapes where there are several outputs. What it
        raises is an error of the node.
        """
        self._shape = function
        return function

    def gradient(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Makes a function the gradient: ``@myop.gradient``.

        It gets a `GradientNode` and the gradient of each output, and returns the gradient of each input: an output, or `None` where
        there is none. A single one stands for itself. It adds nodes by `tenon.ops` and operators, and may use its arguments only.
        """
        self._gradient = function
        return function

    def __repr__(self) -> str:
        return f"<tenon.CustomOp {self.name!r}>"

    # What the native module calls

    def _compute(self, arrays: list[Any], attrs: dict[str, Any], count: int) -> list[Any]:
        made = self.python(*arrays, **{name: attrs[name] for name in self._keywords})
        return self._listed(made, count, "values")

    def _listed(self, made: Any, count: int, what: str) -> list[Any]:
        """What a function returned for each output."""
        if count == 1:
            return [made]
        if count == 0 and made is None:
            return []
        if not isinstance(made, (list, tuple)) or len(made) != count:
            found = f"{len(made)} of them" if isinstance(made, (list, tuple)) else type(made).__name__
            raise InvalidArgumentError(f"op {self.name!r}: expected {count} {what}, one for each output, found {found}")
        return list(made)

    def _infer(self, shapes: list[Any], attrs: dict[str, Any], count: int) -> list[Any]:
        if self._shape is None:
            return [None] * count
        keywords = {
            name: attrs[name]
            for name, parameter in inspect.signature(self._shape).parameters.items()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name in attrs
        }
        given = [None if shape is None else tuple(shape) for shape in shapes]
        made = self._listed(self._shape(*given, **keywords), count, "shapes")
        return [None if shape is None else list(shape) for shape in made]

    def _differentiate(
        self, node: str, inputs: list[Any], outputs: list[Any], attrs: dict[str, Any]
    ) -> tuple[Any, list[int], list[int], list[int], list[tuple[int, int] | None]]:
        if self._gradient is None:
            raise errors.UnimplementedError(
                f"op {self.name!r} has no gradient: define one by the decorator gradient of the op"
            )
        graph = Graph()
        with graph:
            xs, ys, dys = ([placeholder(dtype, dims) for dtype, dims in values] for values in (inputs, outputs, outputs))
            made = self._gradient(GradientNode(node, self.name, tuple(xs), tuple(ys), attrs), *dys)
            results = list(made) if isinstance(made, (list, tuple)) else [made]
            if len(results) != len(inputs):
                raise InvalidArgumentError(
                    f"the gradient of op {self.name!r}: expected {len(inputs)} gradients, one for each input, found "
                    f"{len(results)}"
                )
            found = [None if dx is None else as_output(dx, graph, x.dtype) for dx, x in zip(results, xs)]
        pairs = [None if dx is None else (dx.id, dx.index) for dx in found]
        return (graph._native, [x.id for x in xs], [y.id for y in ys], [dy.id for dy in dys], pairs)


def _status(error: BaseException) -> tuple[int, str]:
    """The canonical code of an exception, and the last line of its traceback with the place where it was raised."""
    codes: list[tuple[type[BaseException] | tuple[type[BaseException], ...], int]] = [
        (TenonError, getattr(error, "code", 2)),
        ((TypeError, ValueError), errors.InvalidArgumentError.code),
        (StopIteration, errors.OutOfRangeError.code),
        (IndexError, errors.OutOfRangeError.code),
        (KeyError, errors.NotFoundError.code),
        (MemoryError, errors.ResourceExhaustedError.code),
        (NotImplementedError, errors.UnimplementedError.code),
        (TimeoutError, errors.DeadlineExceededError.code),
        (PermissionError, errors.PermissionDeniedError.code),
        (KeyboardInterrupt, errors.CancelledError.code),
    ]
    code = next((code for kinds, code in codes if isinstance(error, kinds)), errors.UnknownError.code)
    last = traceback.format_exception_only(error)[-1].strip()
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return code, last
    frame = frames[-1]
    return code, f"{last} (in {frame.name}, line {frame.lineno} of {frame.filename})"


def op(
    python: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    inputs: str | Sequence[str] | None = None,
    outputs: str | Sequence[str] | None = None,
    stateful: bool = False,
    **types: str | Iterable[Any],
) -> Any:
    """Makes a function of arrays an op: ``@tenon.op``, or ``@tenon.op(inputs="x: T", outputs="y: T", T=[tenon.float32])``.

    Positional parameters are inputs, which the function gets as read-only arrays, and keyword-only parameters are attributes. The types
    are the annotations (``x: tenon.float32``, ``-> tenon.float32`` or ``-> (tenon.float32, tenon.int32)``), or are given by `inputs` and
    `outputs` in the form of op definitions; each further keyword lists the types that a type attribute may have, or is the text of an attribute
    (``N="int >= 1"`` for inputs ``"xs: N * float"``, which the function gets one after the other). The function returns the value of the
    output, or a tuple of values.

    The name is that of the function in CamelCase, or `name`. An op that reads or changes anything beside its inputs is `stateful`: others
    may be computed once for all steps. A second definition takes the place of the first one.

    An exception of the function is an error of the step, with a code by its class and the last line of its traceback.
    """
    if python is None:
        return lambda python: op(python, name=name, inputs=inputs, outputs=outputs, stateful=stateful, **types)
    signature = inspect.signature(python)
    try:
        annotations = inspect.get_annotations(python, eval_str=True)
    except NameError as error:
        raise InvalidArgumentError(
            f"an annotation of {python.__name__!r} is not known: {error}: give the decorator inputs= and outputs="
        ) from None
    parameters = signature.parameters.values()
    keywords = [parameter for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY]
    if inputs is None:
        positional = [parameter for parameter in parameters if parameter not in keywords]
        inputs = [
            f"{parameter.name}: {_dtype_name(annotations.get(parameter.name), f'parameter {parameter.name!r}')}"
            for parameter in positional
        ]
    if outputs is None:
        returned = annotations.get("return")
        many = returned if isinstance(returned, tuple) else (returned,)
        names = ["output"] if len(many) == 1 else [f"output_{at}" for at in range(len(many))]
        outputs = [f"{name}: {_dtype_name(dtype, 'the result')}" for name, dtype in zip(names, many)]
    attrs = [
        _attribute(parameter, annotations.get(parameter.name, inspect.Parameter.empty))
        for parameter in keywords
        if parameter.name not in types
    ]
    return CustomOp(
        python,
        name or _camel_case(python.__name__),
        _split(inputs),
        _split(outputs),
        _type_attributes(types) + attrs,
        frozenset(parameter.name for parameter in keywords),
        stateful,
    )
