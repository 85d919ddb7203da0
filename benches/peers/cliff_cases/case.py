"""What a case is, and the values of its inputs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
LINE = 64


@dataclass(frozen=True)
class Case:
    """A graph of one op or a few: `make` adds it and returns what is fetched; `work` is in operations or bytes, such
    that cases of a family compare."""

    label: str
    make: Callable[["Inputs"], Any]
    work: float
    compared: bool = True


class Inputs:
    """Placeholders with the arrays that they are fed with."""

    def __init__(self) -> None:
        self.placeholders: list[Any] = []
        self.arrays: list[np.ndarray] = []
        self.random = np.random.default_rng(1)

    def of(self, values: np.ndarray) -> Any:
        """A placeholder of the array's type and shape. The array is copied to a cache line's beginning, from where
        TensorFlow reads it."""
        room = np.empty(values.nbytes + LINE, np.uint8)
        at = -room.ctypes.data % LINE
        array = room[at : at + values.nbytes].view(values.dtype).reshape(values.shape)
        array[...] = values
        self.placeholders.append(tf1.placeholder(tf.as_dtype(values.dtype), values.shape))
        self.arrays.append(array)
        return self.placeholders[-1]

    def __call__(self, *shape: int, dtype: Any = np.float32, low: float = -1.0, high: float = 1.0) -> Any:
        """Uniform numbers."""
        dtype = np.dtype(dtype)
        if dtype.kind in "iu":
            return self.of(self.random.integers(int(low), int(high), shape).astype(dtype))
        if dtype.kind == "b":
            return self.of(self.random.random(shape) < 0.5)
        values = low + (high - low) * self.random.random(shape, np.float32)
        return self.of(np.asarray(values).astype(dtype))
