"""Forms for which TensorFlow's CPU has no kernel, run by its kernel of another type."""

import numpy as np

from .data import NUMPY, QUANTISED, Quantised, dtype_name


def as_signed(name):
    """Options for an op that only moves elements: those of one type go through it as the signed integers of
    their size."""
    stored = NUMPY[QUANTISED.get(name, name)]
    signed = np.dtype(f"int{8 * stored.itemsize}")

    def bits(x):
        if dtype_name(x) != name:
            return x
        return (x.values if isinstance(x, Quantised) else x).view(signed)

    def named(result):
        result = result.view(stored)
        return Quantised(name, result) if name in QUANTISED else result

    def run(case):
        return [bits(x) for x in case.inputs], case.attrs, lambda results: [named(r) for r in results]

    return {"run_as": run, "via": f"{signed.name} bits"}


def as_float(case):
    """Half numbers as floats, which hold them all; numbers that come out are rounded once."""
    inputs = [x.astype(np.float32) if dtype_name(x) == "half" else x for x in case.inputs]
    attrs = {key: "float" if value == "half" else value for key, value in case.attrs.items()}
    narrow = lambda r: r.astype(np.float16) if r.dtype == np.float32 else r
    return inputs, attrs, lambda results: [narrow(r) for r in results]


def wide_index(case):
    """Indices, which are the second input, as int32."""
    x, index, *rest = case.inputs
    return [x, index.astype(np.int32), *rest], case.attrs, lambda results: results
