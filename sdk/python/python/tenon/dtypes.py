"""Element types, numbered as TensorFlow's.

A type equals NumPy's of the same elements: ``tenon.float32 == np.float32``, and ``np.dtype(tenon.float32)`` is that type.
`bfloat16` and the types of 8 bits need the package `ml_dtypes` in NumPy. NumPy is imported when it is first needed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np


class DType:
    """An element type."""

    __slots__ = ("name", "number", "_numpy", "_resolved")

    #: TensorFlow's name.
    name: str
    #: TensorFlow's number.
    number: int

    def __init__(self, name: str, number: int, numpy_name: str) -> None:
        self.name = name
        self.number = number
        self._numpy = numpy_name
        self._resolved: Any = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of the elements; `object` for strings."""
        if self._resolved is None:
            self._resolved = _resolve(self)
        found: np.dtype[Any] = self._resolved
        return found

    @property
    def size(self) -> int:
        """The number of bytes of an element; 0 where it has no fixed size."""
        return 0 if self._numpy in ("object", "") else int(self.dtype.itemsize)

    @property
    def is_floating(self) -> bool:
        """Whether elements are real floating-point numbers."""
        return self.name in ("half", "bfloat16", "float", "double")

    @property
    def is_integer(self) -> bool:
        """Whether elements are integers, quantised ones excluded."""
        return self.name.lstrip("u").startswith("int")

    @property
    def is_complex(self) -> bool:
        """Whether elements are complex numbers."""
        return self.name.startswith("complex")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.number == other.number
        if other is None or isinstance(other, (int, float)):
            return False
        try:
            return as_dtype(other).number == self.number
        except (TypeError, ValueError):
            return False

    def __hash__(self) -> int:
        return hash(self.name) if self._numpy in ("object", "") else hash(self.dtype)

    def __repr__(self) -> str:
        return f"tenon.{_PYTHON_NAMES.get(self.name, self.name)}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (by_number, (self.number,))


_PYTHON_NAMES = {"float": "float32", "double": "float64", "half": "float16", "bool": "bool_"}

#: Name, number and NumPy's name.
_TABLE = (
    ("float", 1, "float32"),
    ("double", 2, "float64"),
    ("int32", 3, "int32"),
    ("uint8", 4, "uint8"),
    ("int16", 5, "int16"),
    ("int8", 6, "int8"),
    ("string", 7, "object"),
    ("complex64", 8, "complex64"),
    ("int64", 9, "int64"),
    ("bool", 10, "bool"),
    ("qint8", 11, "int8"),
    ("quint8", 12, "uint8"),
    ("qint32", 13, "int32"),
    ("bfloat16", 14, "ml:bfloat16"),
    ("qint16", 15, "int16"),
    ("quint16", 16, "uint16"),
    ("uint16", 17, "uint16"),
    ("complex128", 18, "complex128"),
    ("half", 19, "float16"),
    ("resource", 20, ""),
    ("variant", 21, ""),
    ("uint32", 22, "uint32"),
    ("uint64", 23, "uint64"),
    ("float8_e5m2", 24, "ml:float8_e5m2"),
    ("float8_e4m3fn", 25, "ml:float8_e4m3fn"),
    ("float8_e4m3fnuz", 26, "ml:float8_e4m3fnuz"),
    ("float8_e4m3b11fnuz", 27, "ml:float8_e4m3b11fnuz"),
    ("float8_e5m2fnuz", 28, "ml:float8_e5m2fnuz"),
    ("int4", 29, "ml:int4"),
    ("uint4", 30, "ml:uint4"),
    ("int2", 31, "ml:int2"),
    ("uint2", 32, "ml:uint2"),
    ("float4_e2m1fn", 33, "ml:float4_e2m1fn"),
)
_BY_NUMBER = {number: DType(name, number, numpy_name) for name, number, numpy_name in _TABLE}
_BY_NAME = {dtype.name: dtype for dtype in _BY_NUMBER.values()}
#: By NumPy's name; of several, plain types come before quantised ones.
_BY_NUMPY: dict[str, DType] = {}
for _dtype in _BY_NUMBER.values():
    if _dtype._numpy not in ("", "object") and not _dtype.name.lstrip("u").startswith(("q", "uq")):
        _BY_NUMPY.setdefault(_dtype._numpy.removeprefix("ml:"), _dtype)


def by_number(number: int) -> DType:
    """The type with this number."""
    base = number - 100 if number > 100 else number
    return _BY_NUMBER[base]


def _resolve(dtype: DType) -> Any:
    import numpy as np

    if dtype._numpy == "":
        raise TypeError(f"elements of {dtype.name} have no type in NumPy")
    if not dtype._numpy.startswith("ml:"):
        return np.dtype(dtype._numpy)
    try:
        import ml_dtypes
    except ImportError:
        from .errors import FailedPreconditionError

        raise FailedPreconditionError(
            f"elements of {dtype.name} need the package ml_dtypes in NumPy: install it (pip install ml_dtypes)"
        ) from None
    found = getattr(ml_dtypes, dtype._numpy.removeprefix("ml:"), None)
    if found is None:
        raise TypeError(f"the installed ml_dtypes has no {dtype.name}")
    return np.dtype(found)


def numpy_dtype(number: int) -> Any:
    """NumPy's type for a number."""
    return by_number(number).dtype


def as_dtype(value: Any) -> DType:
    """The type that a name, a number, a type of NumPy's or of Python's means."""
    if isinstance(value, DType):
        return value
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]
    if isinstance(value, int) and not isinstance(value, bool):
        if value in _BY_NUMBER:
            return _BY_NUMBER[value]
        raise ValueError(f"{value} is not the number of an element type")
    if value is str or value is bytes:
        return string
    if value is None:
        raise TypeError("expected an element type, found None")
    number = getattr(value, "as_datatype_enum", None)
    if isinstance(number, int) and number in _BY_NUMBER:
        return _BY_NUMBER[number]
    import numpy as np

    found = np.dtype(value)
    if found.kind in "OSUT":
        return string
    if found.name in _BY_NUMPY:
        return _BY_NUMPY[found.name]
    raise TypeError(f"elements of NumPy's type {found} have no type in Tenon")


float32 = _BY_NAME["float"]
float64 = _BY_NAME["double"]
float16 = half = _BY_NAME["half"]
bfloat16 = _BY_NAME["bfloat16"]
int8 = _BY_NAME["int8"]
int16 = _BY_NAME["int16"]
int32 = _BY_NAME["int32"]
int64 = _BY_NAME["int64"]
uint8 = _BY_NAME["uint8"]
uint16 = _BY_NAME["uint16"]
uint32 = _BY_NAME["uint32"]
uint64 = _BY_NAME["uint64"]
bool_ = _BY_NAME["bool"]
string = _BY_NAME["string"]
complex64 = _BY_NAME["complex64"]
complex128 = _BY_NAME["complex128"]
qint8 = _BY_NAME["qint8"]
quint8 = _BY_NAME["quint8"]
qint16 = _BY_NAME["qint16"]
quint16 = _BY_NAME["quint16"]
qint32 = _BY_NAME["qint32"]
resource = _BY_NAME["resource"]
variant = _BY_NAME["variant"]
float8_e5m2 = _BY_NAME["float8_e5m2"]
float8_e4m3fn = _BY_NAME["float8_e4m3fn"]
float8_e4m3fnuz = _BY_NAME["float8_e4m3fnuz"]
float8_e4m3b11fnuz = _BY_NAME["float8_e4m3b11fnuz"]
float8_e5m2fnuz = _BY_NAME["float8_e5m2fnuz"]
