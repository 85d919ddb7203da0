"""Writing golden files: reproducible .npz archives and indexes with one case per line."""

import io
import json
import zipfile

import numpy as np

from .data import BFLOAT16, Quantised


def storable(array):
    """The array as `.npy` holds it: bfloat16 as raw bits, q-types as integers, strings as `|S`."""
    if isinstance(array, Quantised):
        return array.values
    array = np.asarray(array)
    if array.dtype == BFLOAT16:
        return array.view("V2")
    if array.dtype.kind == "O":
        words = [bytes(x) for x in array.ravel()]
        assert not any(word.endswith(b"\0") for word in words), "|S loses a trailing NUL"
        array = np.array(words, "S").reshape(array.shape)
    if array.dtype.kind == "S" and array.dtype.itemsize == 0:
        return array.astype("S1")
    return array


def npy_bytes(array):
    """One `.npy` entry, row-major."""
    buffer = io.BytesIO()
    # Not np.ascontiguousarray, which turns scalars into vectors.
    np.lib.format.write_array(buffer, np.array(storable(array), order="C"), version=(1, 0))
    return buffer.getvalue()


def write_npz(path, arrays):
    """Writes arrays under their names; the bytes depend on the content only."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(name + ".npy", (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, npy_bytes(array), compresslevel=9)


def write_index(path, head, key, entries):
    """Writes `{...head, key: [...entries]}` with one entry per line."""
    lines = [json.dumps(entry, allow_nan=False) for entry in entries]
    opening = json.dumps(head)[:-1]
    body = ",\n".join(lines)
    path.write_text(f'{opening}, "{key}": [\n{body}\n]}}\n')
