"""Cast between every pair of dtypes."""

import numpy as np

from .data import (
    COMPLEX,
    FLOATS,
    INTS,
    MANTISSA,
    NUMBERS,
    NUMPY,
    array,
    denormals,
    full,
    normal,
    seeded,
    specials,
    values,
)
from .suite import EXACT, Suite, ulp

ALL = ["bool"] + NUMBERS


def inputs_for(rng, source, target):
    """Values whose cast is defined: floats that would leave an integer's range are left out."""
    if source == "bool":
        return np.array([True, False, True, True, False])
    if source in INTS:
        return np.concatenate([specials(source), full(rng, source, (13,)), array(np.arange(5), source)])
    plain = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        0.999,
        100.7,
        -100.7,
        254.99,
        1e4,
        65504,
        1e9,
        -1e9,
        3e18,
        -3e18,
        1e19,
    ]
    x = np.concatenate([array(plain, source), normal(rng, source, (11,), 50)])
    if target in INTS:
        info = np.iinfo(NUMPY[target])
        whole = np.trunc(x.astype(np.float64))
        # Below zero even -0.5 is undefined in C for unsigned targets only if it truncates to -1.
        return x[
            np.isfinite(whole)
            & (whole >= info.min)
            & (whole < float(info.max) + 1 if info.bits < 64 else whole < info.max * 0.9)
        ]
    return np.concatenate([x, specials(source)])


def tolerance(source, target):
    """Exact, but where TensorFlow rounds twice by way of float."""
    wide = source in ("double", "int32", "uint32", "int64", "uint64")
    if target in ("half", "bfloat16") and wide:
        return {"tolerance": ulp(1), "reason": "TensorFlow may round by way of float"}
    return {"tolerance": EXACT}


def pairs(suite):
    for source in ALL:
        for target in ALL:
            rng = seeded("Cast", source, target)
            x = inputs_for(rng, source, target)
            attrs = {"SrcT": source, "DstT": target}
            suite.case(f"{source}_to_{target}", [x], attrs, **tolerance(source, target))
            if source in FLOATS and target in FLOATS and source != target:
                suite.case(f"{source}_to_{target}_denormal", [denormals(source)], attrs, **tolerance(source, target))


def complex_pairs(suite):
    """Of a complex number the real part is cast; a real one has no imaginary part."""
    for source in COMPLEX:
        for target in ALL + COMPLEX:
            rng = seeded("Cast", source, target)
            real = inputs_for(rng, "float" if source == "complex64" else "double", target if target in ALL else "float")
            real = real[np.isfinite(real)]
            x = array(real + 1j * normal(rng, "float", real.shape), source)
            attrs = {"SrcT": source, "DstT": target}
            suite.case(f"{source}_to_{target}", [x], attrs, **tolerance("double", target))
    for source in ALL:
        for target in COMPLEX:
            x = inputs_for(seeded("Cast", source, target), source, "float")
            suite.case(f"{source}_to_{target}", [x], {"SrcT": source, "DstT": target})


def truncating(suite):
    """Truncate drops mantissa bits instead of rounding; other casts ignore it."""
    for source in FLOATS:
        for target in FLOATS:
            rng = seeded("Cast", "truncate", source, target)
            x = np.concatenate([normal(rng, source, (29,)), specials(source)[:10]])
            if MANTISSA[source] > MANTISSA[target]:
                suite.case(f"truncate_{source}_to_{target}", [x], {"SrcT": source, "DstT": target, "Truncate": True})
    ints = full(seeded("Cast", "truncate"), "int32", (7,))
    suite.case("truncate_int32_to_int8", [ints], {"SrcT": "int32", "DstT": "int8", "Truncate": True})


def ties(suite):
    """Halfway cases round to even."""
    bits = np.array([0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF, 0x7F7FFFFF, 0x7F7F7FFF, 0xBF808000], np.uint32)
    suite.case("ties_float_to_bfloat16", [bits.view(np.float32)], {"SrcT": "float", "DstT": "bfloat16"})
    halves = np.float32([2049, 2051, 2049.001, 65519, 65520, -2049, 1 + 2.0**-11, 1 + 3 * 2.0**-11])
    suite.case("ties_float_to_half", [halves], {"SrcT": "float", "DstT": "half"})
    whole = np.array([2**24 + 1, 2**24 + 3, 2**53 + 1, 2**53 + 3, -(2**24) - 1, 2**63 - 1], np.int64)
    for target in ("float", "double"):
        suite.case(f"ties_int64_to_{target}", [whole], {"SrcT": "int64", "DstT": target})


def shapes(suite):
    for label, shape in {"scalar": (), "empty": (0, 3), "1009": (1009,), "rank4": (2, 3, 1, 5)}.items():
        for source, target in (
            ("float", "half"),
            ("half", "float"),
            ("float", "bfloat16"),
            ("uint8", "float"),
            ("int32", "bool"),
            ("float", "float"),
        ):
            x = values(seeded("Cast", label, source), source, shape)
            suite.case(f"{source}_to_{target}_{label}", [x], {"SrcT": source, "DstT": target})
    text = np.array([b"same", b"type"])
    suite.case("string_to_string", [text], {"SrcT": "string", "DstT": "string"})


def cast(folder):
    """Cast."""
    suite = Suite(folder, "math_binary", "Cast")
    pairs(suite)
    complex_pairs(suite)
    truncating(suite)
    ties(suite)
    shapes(suite)
    for dtype in ALL + COMPLEX:
        suite.error(f"string_to_{dtype}", [np.array([b"1"])], {"SrcT": "string", "DstT": dtype})
        suite.error(f"{dtype}_to_string", [array([1], dtype)], {"SrcT": dtype, "DstT": "string"})
    yield suite.finish()


GROUPS = [cast]
