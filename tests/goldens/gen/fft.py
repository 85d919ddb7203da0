"""Fourier transforms."""

import math

import numpy as np

from .data import array, normal, seeded
from .suite import Suite

REALS = {"float": "complex64", "double": "complex128"}
AXES = {"FFT": (-1,), "IFFT": (-1,), "FFT2D": (-2, -1), "IFFT2D": (-2, -1)}
AXES |= {op: (-3, -2, -1) for op in ("FFT3D", "IFFT3D", "RFFT3D", "IRFFT3D")}
AXES |= {"RFFT": (-1,), "IRFFT": (-1,), "RFFT2D": (-2, -1), "IRFFT2D": (-2, -1)}
# Powers of two, products of small primes, primes, and twice a prime.
LENGTHS = [1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 30, 31, 64, 97, 100, 127, 128, 194]
VOLUMES = [(1, 1, 1), (1, 1, 8), (8, 1, 1), (2, 3, 4), (4, 4, 4), (5, 7, 3), (6, 2, 10), (3, 13, 11)]
PLANES = [(1, 1), (1, 8), (8, 1), (2, 3), (4, 4), (5, 7), (6, 10), (13, 11), (16, 17)]

SIZES = {1: [(n,) for n in LENGTHS], 2: PLANES, 3: VOLUMES}


def levels(count):
    """Each output is reached through about so many additions, thrice for lengths that are prime."""
    return max(1, 3 * math.ceil(math.log2(max(count, 2))))


def long(x):
    return x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)


def complex_reference(op):
    axes, inverse = AXES[op], op.startswith("I")

    def reference(case):
        x = long(case.inputs[0])
        exact = (np.fft.ifftn if inverse else np.fft.fftn)(x, axes=axes)
        terms = np.sum(np.abs(x), axis=axes, keepdims=True) * np.ones(x.shape)
        return [(exact, terms / (math.prod(x.shape[axis] for axis in axes) if inverse else 1))]

    return reference


def forward_reference(op):
    axes = AXES[op]

    def reference(case):
        x, lengths = long(case.inputs[0]), case.inputs[1]
        x = x[(..., *(slice(0, n) for n in lengths))]
        exact = np.fft.rfftn(x, axes=axes)
        return [(exact, np.sum(np.abs(x), axis=axes, keepdims=True) * np.ones(exact.shape))]

    return reference


def inverse_reference(op):
    axes = AXES[op]

    def reference(case):
        x, lengths = long(case.inputs[0]), [int(n) for n in case.inputs[1]]
        x = x[(..., *(slice(0, n) for n in [*lengths[:-1], lengths[-1] // 2 + 1]))]
        exact = np.fft.irfftn(x, s=lengths, axes=axes)
        # Each frequency but the first and the highest counts for its conjugate too.
        terms = 2 * np.sum(np.abs(x), axis=axes, keepdims=True) / math.prod(lengths)
        return [(exact, terms * np.ones(exact.shape))]

    return reference


def sized(shape, lengths=None):
    """Options of a case, with terms where there is something to compute."""
    return {"terms": levels(math.prod(lengths or shape))}


def complex_transforms(folder):
    """FFT and IFFT over one, two and three dimensions."""
    for op in ("FFT", "IFFT", "FFT2D", "IFFT2D", "FFT3D", "IFFT3D"):
        suite, rank = Suite(folder, "fft", op), len(AXES[op])
        sizes = SIZES[rank]
        for dtype in REALS.values():
            for size in sizes:
                outer = (3,) if math.prod(size) <= 16 else ()
                x = normal(seeded(op, dtype, *size), dtype, (*outer, *size))
                name = f"{dtype}_{'x'.join(map(str, size))}"
                suite.case(name, [x], reference=complex_reference(op), **sized(size))
            x = normal(seeded(op, dtype, "batch"), dtype, (2, 1, 3, *sizes[5]))
            suite.case(f"{dtype}_batch", [x], reference=complex_reference(op), **sized(sizes[5]))
            for label, shape in (("empty", (0,)), ("empty_batch", (0, 4)), ("empty_last", (4, 0))):
                shape = (*(1,) * (rank - 1), *shape) if len(shape) < rank else shape
                suite.case(f"{dtype}_{label}", [array(np.zeros(shape), dtype)])
            impulse = array(np.eye(1, 8, 3).reshape((1,) * (rank - 1) + (8,)), dtype)
            suite.case(f"{dtype}_impulse", [impulse], reference=complex_reference(op), **sized((8,)))
        x = normal(seeded(op, "long"), "complex64", (1009,) if rank == 1 else (1,) * (rank - 2) + (24, 25))
        suite.case("complex64_long", [x], reference=complex_reference(op), **sized(x.shape))
        suite.error({1: "scalar", 2: "vector", 3: "matrix"}[rank], [np.ones((4,) * (rank - 1), np.complex64)])
        suite.error("dtype", [np.ones((4,) * rank, np.float32)])
        yield suite.finish()


def cropping(name, wanted):
    """TensorFlow 2.21's kernels abort where an input has more than is transformed, which its shape checks allow."""
    if "cropped" not in name:
        return {}

    def run_as(case):
        x = case.inputs[0][(..., *(slice(0, n) for n in wanted))]
        return [x, case.inputs[1]], case.attrs, lambda results: results

    return {"run_as": run_as, "via": "slice"}


def cropped_sizes(sizes):
    """Sizes that are those of the transform, and some that are larger."""
    for size in sizes:
        yield "", size, size
    for size in (sizes[4], sizes[6]):
        yield "_cropped", tuple(n + 1 + i for i, n in enumerate(size)), size


def real_forward(folder):
    """RFFT over one, two and three dimensions."""
    for op in ("RFFT", "RFFT2D", "RFFT3D"):
        suite, rank = Suite(folder, "fft", op), len(AXES[op])
        sizes = SIZES[rank]
        for real, spectrum in REALS.items():
            attrs = {"Tcomplex": spectrum}

            def add(name, shape, lengths):
                x = normal(seeded(op, real, name), real, shape)
                options = {"reference": forward_reference(op)} | sized(shape, lengths) | cropping(name, lengths)
                suite.case(f"{real}_{name}", [x, np.int32(lengths)], attrs, const=[1], **options)

            for label, shape, size in cropped_sizes(sizes):
                outer = (3,) if math.prod(size) <= 16 else ()
                add(f"{'x'.join(map(str, size))}{label}", (*outer, *shape), size)
            add("batch", (2, 1, 3, *sizes[5]), sizes[5])
            empty = array(np.zeros((0,) + (4,) * rank), real)
            suite.case(f"{real}_empty_batch", [empty, np.int32([4] * rank)], attrs, const=[1])
        real_errors(suite, rank, np.ones((3,) + (4,) * rank, np.float32), {"Tcomplex": "complex64"}, 5)
        yield suite.finish()


def real_inverse(folder):
    """IRFFT over one, two and three dimensions."""
    for op in ("IRFFT", "IRFFT2D", "IRFFT3D"):
        suite, rank = Suite(folder, "fft", op), len(AXES[op])
        sizes = SIZES[rank]
        for real, spectrum in REALS.items():
            attrs = {"Treal": real}

            def add(name, shape, lengths):
                # Parts that a real signal's spectrum would not have are there too.
                x = normal(seeded(op, real, name), spectrum, (*shape[:-1], shape[-1] // 2 + 1))
                wanted = (*lengths[:-1], lengths[-1] // 2 + 1)
                options = {"reference": inverse_reference(op)} | sized(shape, lengths) | cropping(name, wanted)
                suite.case(f"{spectrum}_{name}", [x, np.int32(lengths)], attrs, const=[1], **options)

            for label, shape, size in cropped_sizes(sizes):
                outer = (3,) if math.prod(size) <= 16 else ()
                shape = (*shape[:-1], shape[-1] + 2) if label else shape
                add(f"{'x'.join(map(str, size))}{label}", (*outer, *shape), size)
            add("batch", (2, 1, 3, *sizes[5]), sizes[5])
            empty = array(np.zeros((0,) + (4,) * rank), spectrum)
            suite.case(f"{spectrum}_empty_batch", [empty, np.int32([4] * rank)], attrs, const=[1])
        real_errors(suite, rank, np.ones((3,) + (4,) * rank, np.complex64), {"Treal": "float"}, 8)
        yield suite.finish()


def real_errors(suite, rank, x, attrs, too_long):
    """Forms that transforms of real numbers refuse."""
    for name, lengths in {
        "too_long": [4] * (rank - 1) + [too_long],
        "negative": [4] * (rank - 1) + [-1],
        "few_lengths": [4] * (rank - 1),
        "many_lengths": [4] * (rank + 1),
    }.items():
        suite.error(name, [x, np.int32(lengths)], attrs, const=[1])
    if rank > 1:
        suite.error("too_high", [x, np.int32([4] * (rank - 2) + [5, 4])], attrs, const=[1])
    suite.error("matrix_of_lengths", [x, np.int32([[4] * rank])], attrs, const=[1])
    suite.error("rank", [x[(0,) * (x.ndim - rank + 1)], np.int32([4] * rank)], attrs, const=[1])


GROUPS = [complex_transforms, real_forward, real_inverse]
