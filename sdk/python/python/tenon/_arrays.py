"""What the native module asks of NumPy, beside the plain arrays that it reads and makes itself."""

from __future__ import annotations

import html
import pickle
from typing import Any

import numpy as np

from . import _native
from .dtypes import DType, as_dtype, by_number
from .errors import InvalidArgumentError

#: The most bytes of a tensor whose elements are shown.
_SHOWN = 1 << 16


def plain(value: Any, number: int | None) -> Any:
    """A C-contiguous array of numbers in native order, or the shape and the values of strings."""
    wanted = None if number is None else by_number(number)
    array = _as_array(value, wanted)
    if array.dtype.kind in "OSUT":
        if wanted is not None and wanted.name != "string":
            return _numbers(array, wanted)
        return (array.shape, [_bytes(item) for item in array.ravel().tolist()])
    if wanted is not None and wanted.name == "string":
        raise TypeError(f"expected strings, found an array of {array.dtype}")
    if array.dtype.kind in "mMV" and not _is_known(array.dtype):
        raise TypeError(f"elements of NumPy's type {array.dtype} have no type in Tenon")
    if wanted is None:
        as_dtype(array.dtype.newbyteorder("="))
        target = array.dtype.newbyteorder("=")
    else:
        target = wanted.dtype
        _check_cast(value, array, target, wanted)
    return np.ascontiguousarray(array, dtype=target).reshape(array.shape)


def _is_known(dtype: np.dtype[Any]) -> bool:
    try:
        as_dtype(dtype)
    except TypeError:
        return False
    return True


def _as_array(value: Any, wanted: DType | None) -> np.ndarray[Any, Any]:
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, str):
        return np.array(value.encode(), dtype=object)
    if isinstance(value, bytes):
        return np.array(value, dtype=object)
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InvalidArgumentError(f"the value is no array: {error}") from None
    if isinstance(value, (bytearray, memoryview)) and array.dtype.kind in "SV":
        array = np.frombuffer(value, np.uint8)
    if array.dtype.kind in "SU":
        # NumPy drops zeros at the end of strings in arrays of its own types.
        return np.array(value, dtype=object)
    if wanted is None and not hasattr(value, "dtype") and not isinstance(value, memoryview):
        # Numbers of Python's: the types that TensorFlow gives them.
        if array.dtype == np.float64:
            return array.astype(np.float32)
        if array.dtype == np.int64 and _fits(array):
            return array.astype(np.int32)
    return array


def _fits(array: np.ndarray[Any, Any]) -> bool:
    info = np.iinfo(np.int32)
    return array.size == 0 or bool(array.min() >= info.min and array.max() <= info.max)


def _check_cast(value: Any, array: np.ndarray[Any, Any], target: Any, wanted: DType) -> None:
    """Refuses conversions that lose the kind of the elements, such as floats to integers."""
    is_python = not hasattr(value, "dtype")
    if is_python and array.dtype.kind in "iub" and target.kind in "iufcV":
        if target.kind in "iu" and array.size:
            info = np.iinfo(target)
            if array.min() < info.min or array.max() > info.max:
                raise InvalidArgumentError(f"a value is out of the range of {wanted.name}")
        return
    if wanted.name in ("bfloat16",) and array.dtype.kind in "fiub":
        return
    if not np.can_cast(array.dtype, target, casting="same_kind"):
        raise InvalidArgumentError(
            f"expected elements of {wanted.name}, found {array.dtype}: convert the array (astype)"
        )


def _numbers(array: np.ndarray[Any, Any], wanted: DType) -> np.ndarray[Any, Any]:
    if array.dtype.kind != "O":
        raise InvalidArgumentError(f"expected elements of {wanted.name}, found strings")
    try:
        made = np.asarray(array.tolist())
    except ValueError as error:
        raise InvalidArgumentError(f"the array of objects is no array of numbers: {error}") from None
    if made.dtype.kind in "OSU" or made.shape != array.shape:
        raise InvalidArgumentError(f"expected elements of {wanted.name}, found an array of objects")
    _check_cast([], made, wanted.dtype, wanted)
    return np.ascontiguousarray(made, dtype=wanted.dtype)


def _bytes(item: Any) -> bytes:
    if isinstance(item, bytes):
        return item
    if isinstance(item, str):
        return item.encode()
    if isinstance(item, (bytearray, memoryview)):
        return bytes(item)
    raise TypeError(f"expected strings, found an array with a {type(item).__name__}")


def strings(dims: list[int], values: list[bytes]) -> np.ndarray[Any, Any]:
    """An array of `bytes` objects."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array.reshape(dims)


def as_asked(array: np.ndarray[Any, Any], dtype: Any, copy: bool | None) -> np.ndarray[Any, Any]:
    """An array of the type that `__array__` is asked for."""
    if dtype is not None and np.dtype(dtype) != array.dtype:
        if copy is False:
            raise ValueError(f"a conversion from {array.dtype} to {np.dtype(dtype)} needs a copy")
        return array.astype(dtype)
    return array.copy() if copy else array


def _shown(tensor: _native.Tensor) -> str:
    if tensor.dtype.name in ("resource", "variant"):
        return "..."
    if tensor.nbytes > _SHOWN:
        return f"{tensor.nbytes} bytes"
    with np.printoptions(threshold=20, edgeitems=2, linewidth=100):
        return np.array2string(tensor.numpy(), separator=", ")


def describe(tensor: _native.Tensor) -> str:
    """The text form of a tensor."""
    return f"Tensor(shape={tensor.shape}, dtype={tensor.dtype.name}, {_shown(tensor)})"


def describe_html(tensor: _native.Tensor) -> str:
    """The form of a tensor in a notebook."""
    head = f"Tensor · {tensor.dtype.name} · {'×'.join(map(str, tensor.shape)) or 'scalar'} · {tensor.nbytes} bytes"
    return f"<div><b>{html.escape(head)}</b><pre>{html.escape(_shown(tensor))}</pre></div>"


def reduce(tensor: _native.Tensor, protocol: int) -> tuple[Any, ...]:
    """How a tensor is pickled: by its bytes, beside the stream from protocol 5 on."""
    if tensor.dtype.name == "string":
        values = tensor.numpy().ravel().tolist()
        return (_restore_strings, (list(tensor.shape), values))
    if tensor.dtype.name in ("resource", "variant"):
        raise pickle.PicklingError(f"a tensor of {tensor.dtype.name} cannot be pickled")
    data: Any = _native.tensor_bytes(tensor)
    packed: Any = pickle.PickleBuffer(data) if protocol >= 5 else data.tobytes()
    return (_restore, (tensor.dtype.name, list(tensor.shape), packed))


def _restore(name: str, dims: list[int], data: Any) -> _native.Tensor:
    return _native.tensor_from_bytes(np.frombuffer(data, np.uint8), name, dims)


def _restore_strings(dims: list[int], values: list[bytes]) -> _native.Tensor:
    return _native.Tensor(strings(dims, values))
