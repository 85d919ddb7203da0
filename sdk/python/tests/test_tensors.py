"""Tensors: memory that is shared with NumPy and DLPack, and memory that is not."""

import copy
import gc
import pickle
import weakref

import ml_dtypes
import numpy as np
import pytest
import tenon
from tenon import _native

NUMBERS = [
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
    np.float16, np.float32, np.float64, np.complex64, np.complex128, ml_dtypes.bfloat16,
]  # fmt: skip


def address(array):
    return array.__array_interface__["data"][0]


def aligned(shape, dtype=np.float32):
    return tenon.empty(shape, dtype)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3), (1, 2, 3, 4)])
def test_numbers_come_back(dtype, shape):
    array = (np.arange(np.prod(shape)).reshape(shape) % 2).astype(dtype)
    tensor = tenon.Tensor(array)
    assert tensor.shape == shape and tensor.ndim == len(shape) and tensor.size == array.size
    assert tensor.dtype == dtype and np.dtype(tensor.dtype) == np.dtype(dtype)
    back = tensor.numpy()
    assert back.dtype == array.dtype and back.shape == shape
    np.testing.assert_array_equal(back, array)


def test_aligned_memory_is_shared_and_kept_alive():
    array = aligned((1000, 100))
    array[...] = 7
    tensor = tenon.Tensor(array, copy=False)
    back = tensor.numpy()
    assert address(back) == address(array)
    assert back.flags.writeable and not back.flags.owndata
    back[0, 0] = 8
    assert array[0, 0] == 8
    gone = weakref.ref(array)
    del array, tensor
    gc.collect()
    assert gone() is not None, "the array is kept while its memory is used"
    assert back[0, 0] == 8
    del back
    gc.collect()
    tenon.Tensor(1)  # takes Python's lock, which is when deferred references are dropped
    assert gone() is None


def test_a_copy_shares_nothing():
    array = aligned(64)
    array[:] = 1
    tensor = tenon.Tensor(array, copy=True)
    array[:] = 2
    assert tensor.numpy()[0] == 1
    assert tensor.copy().numpy()[0] == 1 and address(tensor.copy().numpy()) != address(tensor.numpy())


def test_a_read_only_array_stays_read_only():
    array = aligned(16)
    array.flags.writeable = False
    tensor = tenon.Tensor(array)
    assert not tensor.writable
    with pytest.raises(ValueError):
        tensor.numpy()[0] = 1
    with pytest.raises(BufferError, match="read-only"):
        tensor.__dlpack__()


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.arange(12, dtype=np.float32).reshape(3, 4).T,
        lambda: np.arange(24, dtype=np.float32)[::2],
        lambda: np.arange(12, dtype=np.float32)[::-1],
        lambda: np.arange(12, dtype=">f4"),
        lambda: np.broadcast_to(np.float32(3), (4, 5)),
        lambda: np.frombuffer(bytes(range(41)), np.uint8)[1:].view(np.float32),
        lambda: np.asfortranarray(np.ones((3, 3), np.float64)),
    ],
)
def test_other_layouts_are_copied(make):
    array = make()
    tensor = tenon.Tensor(array)
    np.testing.assert_array_equal(tensor.numpy(), array)
    assert tensor.numpy().flags.c_contiguous
    if array.strides not in ((4,),) or address(array) % 64:
        with pytest.raises(tenon.errors.InvalidArgumentError, match="copy"):
            tenon.Tensor(array, copy=False)


def test_strings():
    for value in ("grün", b"\x00a\x00", np.array(["a", "bb"]), np.array([b"a\x00", "ü"], object), [["x", ""], ["", "y"]]):
        tensor = tenon.Tensor(value)
        assert tensor.dtype == tenon.string
        expected = np.array(value, dtype=object)
        back = tensor.numpy()
        assert back.dtype == object and back.shape == expected.shape
        for found, wanted in zip(back.ravel(), expected.ravel()):
            assert found == (wanted.encode() if isinstance(wanted, str) else wanted)
    assert tenon.Tensor(np.array(["a", "b"], np.dtypes.StringDType())).tolist() == [b"a", b"b"]
    with pytest.raises(TypeError, match="strings"):
        tenon.Tensor(np.array([object()], object))
    with pytest.raises(TypeError):
        tenon.Tensor(np.array(["2020-01-01"], "M8[D]"))
    with pytest.raises(TypeError):
        tenon.Tensor(np.zeros(2, [("a", "i4")]))


def test_numbers_of_python_take_tensorflows_types():
    assert tenon.Tensor(1).dtype == tenon.int32
    assert tenon.Tensor(1 << 40).dtype == tenon.int64
    assert tenon.Tensor([1.5, 2]).dtype == tenon.float32
    assert tenon.Tensor(True).dtype == tenon.bool_
    assert tenon.Tensor(1j).dtype == tenon.complex128
    assert tenon.Tensor([1, 2], tenon.float64).dtype == np.float64
    with pytest.raises(tenon.errors.InvalidArgumentError):
        tenon.Tensor([[1, 2], [3]])
    with pytest.raises(tenon.errors.InvalidArgumentError, match="range"):
        tenon.Tensor([300], tenon.int8)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="astype"):
        tenon.Tensor(np.ones(2), tenon.int32)


def test_types_of_eight_bits_are_refused_by_name():
    assert np.dtype(tenon.float8_e5m2) == ml_dtypes.float8_e5m2
    with pytest.raises(tenon.errors.UnimplementedError, match="float8_e5m2"):
        tenon.Tensor(np.zeros(2, ml_dtypes.float8_e5m2))


def test_wrong_shapes_and_bools():
    with pytest.raises(tenon.errors.InvalidArgumentError):
        tenon.Tensor(np.zeros((1,) * 17))
    bools = aligned(4, np.bool_)
    bools.view(np.uint8)[2] = 7
    with pytest.raises(tenon.errors.InvalidArgumentError, match="element 2"):
        tenon.Tensor(bools)


@pytest.mark.parametrize("dtype", [dtype for dtype in NUMBERS if dtype is not ml_dtypes.bfloat16])
def test_the_buffer_protocol(dtype):
    array = (np.arange(6).reshape(2, 3) % 2).astype(dtype)
    tensor = tenon.Tensor(array)
    view = memoryview(tensor)
    assert view.shape == (2, 3) and view.nbytes == array.nbytes and not view.readonly
    np.testing.assert_array_equal(np.asarray(view), array)
    np.testing.assert_array_equal(np.frombuffer(tensor, np.uint8), array.view(np.uint8).ravel())
    view.release()
    with pytest.raises(BufferError):
        memoryview(tenon.Tensor(np.zeros(2, ml_dtypes.bfloat16)))


def test_values_with_the_buffer_protocol():
    assert tenon.Tensor(memoryview(np.arange(3, dtype=np.int16))).numpy().tolist() == [0, 1, 2]
    assert tenon.Tensor(bytearray(b"abc")).numpy().tolist() == [97, 98, 99]


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_, np.complex64, np.float16])
def test_dlpack_goes_both_ways(dtype):
    array = aligned((3, 4), dtype)
    array[...] = 1
    tensor = tenon.Tensor(array)
    seen = np.from_dlpack(tensor)
    assert address(seen) == address(array)
    again = tenon.from_dlpack(array, copy=False)
    assert address(again.numpy()) == address(array)
    assert tenon.from_dlpack(tensor).dtype == dtype
    np.testing.assert_array_equal(tenon.from_dlpack(array[:, ::2]).numpy(), array[:, ::2])
    np.testing.assert_array_equal(tenon.from_dlpack(array[::-1]).numpy(), array[::-1])


def test_dlpack_keeps_the_memory_alive():
    array = aligned(128)
    array[:] = 5
    tensor = tenon.from_dlpack(array)
    gone = weakref.ref(array)
    del array
    gc.collect()
    assert tensor.numpy()[127] == 5 and gone() is not None
    other = np.from_dlpack(tensor)
    del tensor
    gc.collect()
    assert other[0] == 5
    del other
    gc.collect()
    tenon.Tensor(1)
    assert gone() is None


def test_arguments_of_dlpack():
    tensor = tenon.Tensor(np.ones(3, np.float32))
    assert tensor.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="stream"):
        tensor.__dlpack__(stream=1)
    with pytest.raises(BufferError, match="device"):
        tensor.__dlpack__(dl_device=(2, 0))
    plain = tensor.__dlpack__()
    assert "dltensor" in repr(plain) and "versioned" not in repr(plain)
    assert tenon.from_dlpack(plain).numpy().tolist() == [1, 1, 1]
    with pytest.raises(tenon.errors.InvalidArgumentError, match="consumed"):
        tenon.from_dlpack(plain)
    versioned = tenon.Tensor(np.ones(3, np.float32)).__dlpack__(max_version=(1, 0), copy=True)
    assert tenon.from_dlpack(versioned).numpy().tolist() == [1, 1, 1]
    with pytest.raises(BufferError, match="no type in DLPack"):
        tenon.Tensor("a").__dlpack__(max_version=(1, 0))


def test_foreign_capsules_and_objects_are_refused():
    import datetime

    with pytest.raises(TypeError, match="__dlpack__"):
        tenon.from_dlpack(object())
    # A capsule of another kind.
    with pytest.raises(tenon.errors.InvalidArgumentError, match="dltensor"):
        tenon.from_dlpack(datetime.datetime_CAPI)

    class OnGpu:
        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, **_):
            raise AssertionError("not asked for")

    with pytest.raises(tenon.errors.UnimplementedError, match="device"):
        tenon.from_dlpack(OnGpu())


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("value", [np.arange(6.0).reshape(2, 3), np.array(["a", "ü"]), np.zeros((0, 2), np.int8), ml_dtypes.bfloat16(1.5)])
def test_pickling(value, protocol):
    tensor = tenon.Tensor(value)
    back = pickle.loads(pickle.dumps(tensor, protocol))
    assert back.dtype == tensor.dtype and back.shape == tensor.shape and back.tolist() == tensor.tolist()
    for other in (copy.copy(tensor), copy.deepcopy(tensor)):
        assert other.tolist() == tensor.tolist()


def test_pickling_beside_the_stream_copies_nothing():
    array = aligned(1 << 16)
    array[:] = 3
    buffers = []
    packed = pickle.dumps(tenon.Tensor(array), 5, buffer_callback=buffers.append)
    assert len(packed) < 1000 and len(buffers) == 1
    back = pickle.loads(packed, buffers=buffers)
    assert address(back.numpy()) == address(array) and not back.writable


def test_what_people_see():
    assert repr(tenon.Tensor([1, 2])) == "Tensor(shape=(2,), dtype=int32, [1, 2])"
    assert "bytes" in repr(tenon.Tensor(np.zeros(1 << 20)))
    assert "<b>" in tenon.Tensor("<script>")._repr_html_() and "<script>" not in tenon.Tensor("<script>")._repr_html_()
    assert tenon.Tensor(3).item() == 3 and len(tenon.Tensor([1, 2])) == 2
    with pytest.raises(TypeError):
        len(tenon.Tensor(1))
    assert np.asarray(tenon.Tensor([1, 2]), dtype=np.float64).dtype == np.float64


def test_types_equal_numpys():
    for dtype in NUMBERS:
        mine = tenon.as_dtype(dtype)
        assert mine == dtype and mine == np.dtype(dtype) and np.dtype(mine) == dtype
        assert hash(mine) == hash(np.dtype(dtype)) and pickle.loads(pickle.dumps(mine)) is mine
    assert tenon.float32 != np.float64 and tenon.float32 != "x" and tenon.float32 != 1 and tenon.string == str
    assert tenon.as_dtype("float") is tenon.float32 and tenon.as_dtype("float32") is tenon.float32
    assert repr(tenon.float32) == "tenon.float32" and tenon.qint8 != np.int8


def test_a_gibibyte_is_not_copied():
    array = aligned(1 << 28)
    tensor = tenon.Tensor(array)
    assert tensor.nbytes == 1 << 30 and address(tensor.numpy()) == address(array)


def test_native_helpers_refuse_wrong_bytes():
    with pytest.raises(tenon.errors.InvalidArgumentError):
        _native.tensor_from_bytes(np.zeros(3, np.uint8), "float", [1])
    with pytest.raises(TypeError):
        _native.tensor_from_bytes([1, 2], "float", [1])
