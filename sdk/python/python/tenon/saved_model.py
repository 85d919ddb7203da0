"""TensorFlow's SavedModel: ``tenon.saved_model.load(folder)`` gives a model whose signatures are functions.

Keras's `model.export` and `tf.saved_model.save` write such folders. What is called are signatures; the Python objects of TensorFlow are
not made.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from . import _native
from .dtypes import DType
from .errors import InvalidArgumentError

__all__ = ["Argument", "Model", "Signature", "load"]


class Argument(NamedTuple):
    """An input or a result of a signature."""

    name: str
    #: The element type; `None` where the model does not say.
    dtype: DType | None
    #: The shape as far as the model says.
    shape: tuple[int | None, ...] | None
    #: Whether an input may be left out.
    has_default: bool


def _argument(parts: dict[str, Any]) -> Argument:
    shape = parts["shape"]
    return Argument(parts["name"], parts["dtype"], None if shape is None else tuple(shape), parts["has_default"])


class Signature:
    """A function of a model, which takes and gives values by name."""

    def __init__(self, model: _native.SavedModel, parts: dict[str, Any]) -> None:
        self._model = model
        #: The key, such as ``serving_default``.
        self.key: str = parts["key"]
        #: The inputs.
        self.inputs: tuple[Argument, ...] = tuple(map(_argument, parts["inputs"]))
        #: The results.
        self.outputs: tuple[Argument, ...] = tuple(map(_argument, parts["outputs"]))

    def __call__(self, *args: Any, deadline: float | None = None, **inputs: Any) -> dict[str, Any]:
        """Runs the signature, and returns its results by name. Positional values are inputs in the order of `inputs`."""
        if len(args) > len(self.inputs):
            raise InvalidArgumentError(
                f"signature {self.key!r}: expected at most {len(self.inputs)} inputs, found {len(args)}"
            )
        given = [(argument.name, value) for argument, value in zip(self.inputs, args)]
        return self._model.run(self.key, [*given, *inputs.items()], deadline)

    def __repr__(self) -> str:
        def listed(arguments: tuple[Argument, ...]) -> str:
            return ", ".join(
                f"{argument.name}: {argument.dtype.name if argument.dtype else '?'}" for argument in arguments
            )

        return f"<tenon.saved_model.Signature {self.key!r} ({listed(self.inputs)}) -> ({listed(self.outputs)})>"


class Model:
    """A model that is ready to run: its variables are restored. Several threads may use it."""

    def __init__(self, model: _native.SavedModel) -> None:
        self._model = model
        #: The signatures by key.
        self.signatures: dict[str, Signature] = {
            parts["key"]: Signature(model, parts) for parts in model.signatures()
        }

    def __call__(self, *args: Any, **inputs: Any) -> dict[str, Any]:
        """Runs the signature ``serving_default``, or the only one."""
        chosen = self.signatures.get("serving_default")
        if chosen is None and len(self.signatures) == 1:
            chosen = next(iter(self.signatures.values()))
        if chosen is None:
            raise InvalidArgumentError(
                f"the model has no signature 'serving_default': call one of signatures, {', '.join(self.signatures)}"
            )
        return chosen(*args, **inputs)

    def __repr__(self) -> str:
        return f"<tenon.saved_model.Model with signatures {', '.join(self.signatures)}>"


def load(
    path: str | os.PathLike[str], *, tags: Sequence[str] = ("serve",), deadline: float | None = None
) -> Model:
    """Loads the model of a folder. `deadline`, in seconds, limits each of the steps that start it."""
    return Model(_native.SavedModel(os.fspath(path), list(tags), deadline))
