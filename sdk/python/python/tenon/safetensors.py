"""Files in the form of safetensors: tensors by name, which other programs read and write too.

>>> import numpy as np, os, tempfile
>>> import tenon
>>> path = os.path.join(tempfile.mkdtemp(), "weights.safetensors")
>>> tenon.safetensors.save(path, {"w": np.ones(2, np.float32)})
>>> tenon.safetensors.load(path)["w"].tolist()
[1.0, 1.0]
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from . import _native
from .errors import InvalidArgumentError, NotFoundError
from .session import Session
from .train import Variable, as_variable, variables as _variables

__all__ = ["load", "load_variables", "save", "save_variables"]


def save(path: str | os.PathLike[str], tensors: Mapping[str, Any]) -> None:
    """Writes tensors. A file of that name is replaced once the new one is complete."""
    if not isinstance(tensors, Mapping):
        raise TypeError(f"tensors: expected values by name, found {type(tensors).__name__}")
    given = [(name, _native.Tensor(value)) for name, value in tensors.items()]
    _native.write_safetensors(os.fspath(path), given)


def load(path: str | os.PathLike[str], names: Iterable[str] | None = None) -> dict[str, _native.Tensor]:
    """The tensors of a file, or those of these names, in the order of the file."""
    return dict(_native.read_safetensors(os.fspath(path), None if names is None else list(names)))


def save_variables(
    session: Session, path: str | os.PathLike[str], variables: Iterable[Variable] | None = None
) -> None:
    """Writes the values that variables have in a session, under their names. Without `variables` these are all of the graph."""
    chosen = _chosen(session, variables)
    values = session.run([variable.value for variable in chosen])
    save(path, {variable.name: value for variable, value in zip(chosen, values)})


def load_variables(
    session: Session,
    path: str | os.PathLike[str],
    variables: Iterable[Variable] | None = None,
    *,
    strict: bool = True,
) -> list[str]:
    """Assigns the tensors of a file to the variables of their names, and returns the names.

    Nothing is assigned if a variable has another type or shape, or, with `strict`, if the file lacks one or has others. Without
    `variables` these are all of the graph.
    """
    chosen = {variable.name: variable for variable in _chosen(session, variables)}
    tensors = load(path)
    missing = [name for name in chosen if name not in tensors]
    unknown = [name for name in tensors if name not in chosen]
    if strict and missing:
        raise NotFoundError(f"{os.fspath(path)} lacks the variables {', '.join(missing)}: load others with strict=False")
    if strict and unknown:
        raise InvalidArgumentError(
            f"{os.fspath(path)} has tensors {', '.join(unknown)}, which are no variables: load others with strict=False"
        )
    common = [name for name in chosen if name in tensors]
    for name in common:
        variable, tensor = chosen[name], tensors[name]
        if (tensor.dtype, tensor.shape) != (variable.dtype, variable.shape):
            raise InvalidArgumentError(
                f"tensor {name!r} of {os.fspath(path)}: expected {variable.dtype.name} {list(variable.shape)}, found "
                f"{tensor.dtype.name} {list(tensor.shape)}"
            )
    for name in common:
        _assign(session, chosen[name], tensors[name])
    return common


def _chosen(session: Session, variables: Iterable[Variable] | None) -> list[Variable]:
    """The variables that were named, or all of the session's graph."""
    if not isinstance(session, Session):
        raise TypeError(f"session: expected a session, found {type(session).__name__}")
    return _variables(session.graph) if variables is None else [as_variable(value) for value in variables]


def _assign(session: Session, variable: Variable, tensor: _native.Tensor) -> None:
    """Assigns a value by a node that is made once for each variable."""
    name = f"{variable.name}/load"
    graph = session.graph
    if name not in graph:
        value = graph._native.add(
            "Placeholder", [], {"dtype": variable.dtype, "shape": list(variable.shape)}, f"{name}/value", "", []
        )
        handle = (variable.handle.id, variable.handle.index)
        graph._native.add("AssignVariableOp", [handle, (value, 0)], {"dtype": variable.dtype}, name, "", [])
    session.run(name, {f"{name}/value:0": tensor})
