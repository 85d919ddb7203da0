"""Writes graphs as TensorFlow's GraphDef and arrays as .npz, without TensorFlow or NumPy: PyTorch is all there is on a
machine where `.ci/gpu run` runs.

The wire format of protocol buffers is told at protobuf.dev/programming-guides/encoding; the numbers of fields are those
of tensorflow/core/framework/*.proto.
"""

import ctypes
import struct
import zipfile
from collections.abc import Iterable
from pathlib import Path

FLOAT, INT32, BFLOAT16 = 1, 3, 14
# Form of GraphDef that TensorFlow writes since its version 2.
PRODUCER = 1087


def varint(value: int) -> bytes:
    """An integer, seven bits a byte; negative ones as 64 bits."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: int | bytes) -> bytes:
    """A field: an integer, or bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def shape(dims: Iterable[int]) -> bytes:
    """TensorShapeProto; -1 is not known."""
    return b"".join(field(2, field(1, size)) for size in dims)


def contents(tensor) -> bytes:
    """The elements of a tensor of PyTorch, in order."""
    tensor = tensor.detach().cpu().contiguous()
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())


class Type(int):
    """A dtype as an attribute."""


class Graph:
    """A graph that is built node by node; nodes are named by their op and number unless told otherwise."""

    def __init__(self, dtype: int):
        self.dtype, self.nodes, self.count = dtype, [], 0

    def node(self, op: str, inputs: list[str], name: str = "", **attrs) -> str:
        """Adds a node, whose name is its first output. Its attribute `T` is the graph's dtype."""
        self.count += 1
        name = name or f"{op}_{self.count}"
        attrs = {"T": Type(self.dtype)} | attrs
        body = [field(1, name.encode()), field(2, op.encode()), *(field(3, each.encode()) for each in inputs)]
        for key, value in attrs.items():
            if value is not None:
                body.append(field(5, field(1, key.encode()) + field(2, attribute(value))))
        self.nodes.append(field(1, b"".join(body)))
        return name

    def placeholder(self, name: str, dims: list[int], dtype: int = FLOAT) -> str:
        """What is fed."""
        return self.node("Placeholder", [], name, T=None, dtype=Type(dtype), shape=Dims(dims))

    def constant(self, dtype: int, dims: Iterable[int], data: bytes) -> str:
        """Elements as bytes in order."""
        tensor = field(1, dtype) + field(2, shape(dims)) + field(4, data)
        return self.node("Const", [], T=None, dtype=Type(dtype), value=Tensor(tensor))

    def integers(self, *values: int) -> str:
        """A vector of int32."""
        return self.constant(INT32, [len(values)], struct.pack(f"<{len(values)}i", *values))

    def weights(self, tensor, dtype: int | None = None) -> str:
        """A tensor of PyTorch, in the graph's dtype or another."""
        import torch

        dtype = dtype or self.dtype
        tensor = tensor.to({FLOAT: torch.float32, BFLOAT16: torch.bfloat16}[dtype])
        return self.constant(dtype, tensor.shape, contents(tensor))

    def write(self, path: Path) -> None:
        """The file."""
        path.write_bytes(b"".join(self.nodes) + field(4, field(1, PRODUCER)))


class Tensor(bytes):
    """A TensorProto as an attribute."""


class Dims(list):
    """A shape as an attribute; other lists are of integers or texts."""


def attribute(value) -> bytes:
    """AttrValue, by the type in Python."""
    if isinstance(value, Type):
        return field(6, int(value))
    if isinstance(value, bool):
        return field(5, int(value))
    if isinstance(value, Tensor):
        return field(8, bytes(value))
    if isinstance(value, Dims):
        return field(7, shape(value))
    if isinstance(value, list):
        return field(1, b"".join(field(3, each) for each in value))
    if isinstance(value, float):
        return varint(4 << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return field(3, value)
    return field(2, value.encode())


def npy(tensor) -> bytes:
    """A tensor of PyTorch as NumPy's file; bfloat16 as two plain bytes, as Tenon reads it."""
    import torch

    kind = {torch.float32: "<f4", torch.bfloat16: "|V2", torch.float16: "<f2", torch.int32: "<i4"}[tensor.dtype]
    dims = "".join(f"{size}, " for size in tensor.shape)
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({dims}), }}"
    # Magic, version, length and head together are a multiple of 64.
    head += " " * (-(10 + len(head) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + contents(tensor)


def npz(path: Path, **tensors) -> None:
    """Several, by name."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, tensor in tensors.items():
            archive.writestr(f"{name}.npy", npy(tensor))
