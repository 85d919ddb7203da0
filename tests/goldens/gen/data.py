"""dtypes by TensorFlow's names, and seeded test values."""

import zlib

import ml_dtypes
import numpy as np

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

FLOATS = ["half", "bfloat16", "float", "double"]
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
INTS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTS
COMPLEX = ["complex64", "complex128"]
QUANTISED = {"qint8": "int8", "quint8": "uint8", "qint16": "int16", "quint16": "uint16", "qint32": "int32"}

NUMPY = {
    "half": np.dtype(np.float16),
    "bfloat16": BFLOAT16,
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
    "bool": np.dtype(np.bool_),
    **{name: np.dtype(name) for name in INTS + COMPLEX},
}
ANY = ["bool"] + NUMBERS + ["string"] + list(QUANTISED)  # what an op that only copies takes; COMPLEX besides
NAMES = {numpy: name for name, numpy in NUMPY.items()}

# Distance from 1 to the next larger number, of the parts of a complex one.
EPSILON = {"half": 2.0**-10, "bfloat16": 2.0**-7, "float": 2.0**-23, "double": 2.0**-52}
EPSILON |= {"complex64": EPSILON["float"], "complex128": EPSILON["double"]}
MANTISSA = {"half": 10, "bfloat16": 7, "float": 23, "double": 52}
MIN_EXPONENT = {"half": -14, "bfloat16": -126, "float": -126, "double": -1022}


class Quantised:
    """A tensor of a q-type: its integers under TensorFlow's name."""

    def __init__(self, name, values):
        self.name = name
        self.values = np.asarray(values, NUMPY[QUANTISED[name]])


def dtype_name(array):
    """TensorFlow's name of an input's dtype."""
    if isinstance(array, Quantised):
        return array.name
    if array.dtype.kind in "SO":
        return "string"
    return NAMES[array.dtype]


def seeded(*key):
    """A generator that depends on nothing but the words given."""
    return np.random.default_rng(zlib.crc32("/".join(map(str, key)).encode()))


def array(values, dtype):
    """Numbers, given as anything NumPy reads, in the dtype of that TensorFlow name."""
    if dtype == "bfloat16":
        return np.asarray(values, np.float32).astype(BFLOAT16)
    with np.errstate(over="ignore"):
        return np.asarray(values).astype(NUMPY[dtype])


def normal(rng, dtype, shape, scale=1.0, offset=0.0):
    """Normally distributed floats, or complex numbers of normally distributed parts."""
    if dtype in COMPLEX:
        parts = rng.standard_normal((2, *shape)) * scale + offset
        return array(parts[0] + 1j * parts[1], dtype)
    return array(rng.standard_normal(shape) * scale + offset, dtype)


def small(rng, dtype, shape, low=-4, high=5):
    """Small integers in any dtype of numbers (from zero for unsigned ones)."""
    if dtype in UNSIGNED:
        low = 0
    return array(rng.integers(low, high, shape), dtype)


def full(rng, dtype, shape):
    """Integers from the whole range of the dtype."""
    info = np.iinfo(NUMPY[dtype])
    return np.asarray(rng.integers(info.min, info.max, shape, NUMPY[dtype], endpoint=True))


def strings(rng, shape):
    """Byte strings of one to nine bytes; none ends in NUL, which `|S` would lose."""
    count = int(np.prod(shape))
    words = [bytes(rng.integers(1, 256, rng.integers(1, 10)).astype(np.uint8)) for _ in range(count)]
    return np.array(words, "S9").reshape(shape)


def values(rng, dtype, shape):
    """Arbitrary values: normal floats and complex numbers, integers of the whole range, booleans, strings, q-types."""
    if dtype in QUANTISED:
        return Quantised(dtype, full(rng, QUANTISED[dtype], shape))
    if dtype == "string":
        return strings(rng, shape)
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, shape)).astype(np.bool_)
    if dtype in FLOATS + COMPLEX:
        return normal(rng, dtype, shape)
    return full(rng, dtype, shape)


def finite_extremes(dtype):
    """Largest finite number and smallest normal number."""
    info = ml_dtypes.finfo(NUMPY[dtype])
    return float(info.max), float(info.smallest_normal)


def specials(dtype):
    """NaN, infinities, signed zeros, extremes (no denormals); for integers their extremes; for complex numbers
    their zeros and units, since what infinite parts give is not agreed upon."""
    if dtype in COMPLEX:
        return array([0, 1, -1, 1j, -1j, 2 + 3j, -0.5 + 4j, 3 - 1j, -2 - 0.25j], dtype)
    if dtype in FLOATS:
        top, tiny = finite_extremes(dtype)
        return array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, top, -top, tiny, -tiny], dtype)
    info = np.iinfo(NUMPY[dtype])
    listed = [info.min, info.max, 0, 1, info.max - 1, info.min + 1, info.max // 2, 2, 3]
    return np.array(listed + ([-1, -2] if info.min < 0 else []), NUMPY[dtype])


def denormals(dtype):
    """Denormal numbers of either sign beside the smallest normal ones.

    Repeated to whole vector registers: in remainder loops TensorFlow calls the C library, whose
    logarithm, say, sees through the flush, so that a result would depend on its position.
    """
    least = 2.0 ** (MIN_EXPONENT[dtype] - MANTISSA[dtype])
    _, tiny = finite_extremes(dtype)
    listed = [least, -least, tiny - least, least - tiny, tiny / 2, -tiny / 2, tiny, -tiny, 3 * least, 1.0]
    return array(np.tile(listed, 16), dtype)
