"""Sparse tensors: coordinates, values and a shape."""

import numpy as np

from .data import COMPLEX, FLOATS, INTS, NUMPY, array, normal, seeded, small, strings
from .suite import Suite, ulp

REAL = [*FLOATS, *INTS]
MOVED = ["bool", *REAL, *COMPLEX, "string"]
SHAPES = [(3, 4), (5,), (2, 3, 4), (1, 1), (4, 6)]


def title(*parts):
    return "_".join(map(str, parts)).replace(" ", "").replace("(", "").replace(")", "").replace(",", "x").replace("-", "m").replace(".", "_")


def places(name, shape, part=0.4, order=True):
    """Coordinates of a part of all elements."""
    rng = seeded("places", name, *shape)
    flat = np.flatnonzero(rng.random(int(np.prod(shape))) < part)
    if not order:
        rng.shuffle(flat)
    return np.stack(np.unravel_index(flat, shape), -1).astype(np.int64).reshape(-1, len(shape))


def values(name, dtype, count):
    rng = seeded("values", name, dtype, count)
    if dtype == "string":
        return strings(rng, (count,))
    if dtype == "bool":
        return rng.random(count) < 0.5
    if dtype in COMPLEX or dtype in FLOATS:
        return normal(rng, dtype, (count,), 4.0)
    return small(rng, dtype, (count,))


def numbers(*sizes):
    return np.int64(sizes)


def moves(folder):
    """SparseReorder, SparseReshape, SparseSlice and its gradient."""
    suite = Suite(folder, "sparse", "SparseReorder")
    for dtype in MOVED:
        for shape in SHAPES if dtype == "float" else SHAPES[:1]:
            for order in (True, False):
                at = places("reorder", shape, 0.5, order)
                suite.case(title(dtype, shape, order), [at, values("reorder", dtype, len(at)), numbers(*shape)], const=[2])
    at, x = places("reorder", (3, 4)), values("reorder", "float", len(places("reorder", (3, 4))))
    suite.case("none", [at[:0], x[:0], numbers(3, 4)])
    suite.error("few_values", [at, x[:-1], numbers(3, 4)])
    suite.error("rank", [at, x, numbers(3, 4, 5)])
    suite.error("indices", [at[:, 0], x, numbers(3, 4)])
    yield suite.finish()
    suite = Suite(folder, "sparse", "SparseReshape")
    for before, after in (((3, 4), (2, 6)), ((3, 4), (12,)), ((2, 3, 4), (-1, 4)), ((2, 3, 4), (4, 3, 2)), ((5,), (5, 1)), ((6,), (-1,)), ((3, 4), (-1,))):
        suite.case(title(before, "to", after), [places("reshape", before), numbers(*before), numbers(*after)], const=[1, 2])
    suite.case("none", [at[:0], numbers(3, 4), numbers(4, 3)])
    suite.error("elements", [at, numbers(3, 4), numbers(5, 3)])
    suite.error("two_open", [at, numbers(3, 4), numbers(-1, -1)])
    suite.error("indivisible", [at, numbers(3, 4), numbers(-1, 5)])
    suite.error("negative", [at, numbers(3, 4), numbers(-2, 6)])
    suite.error("rank", [at, numbers(3, 4, 1), numbers(12)])
    yield suite.finish()
    suite = Suite(folder, "sparse", "SparseSlice")
    boxes = {(3, 4): (((0, 1), (2, 2)), ((1, 0), (9, 9)), ((2, 3), (1, 1)), ((0, 0), (0, 4)), ((5, 1), (2, 2))), (2, 3, 4): (((1, 0, 1), (1, 2, 3)),), (5,): (((2,), (2,)),)}
    for dtype in MOVED:
        for shape, cuts in boxes.items() if dtype == "float" else [((3, 4), boxes[3, 4][:1])]:
            for start, size in cuts:
                at = places("slice", shape, 0.6)
                suite.case(title(dtype, shape, start, size), [at, values("slice", dtype, len(at)), numbers(*shape), numbers(*start), numbers(*size)], const=[2, 3, 4])
    suite.error("starts", [places("slice", (3, 4)), values("slice", "float", len(places("slice", (3, 4)))), numbers(3, 4), numbers(0), numbers(1, 1)])
    yield suite.finish()
    suite = Suite(folder, "sparse", "SparseSliceGrad")
    at = places("slice", (3, 4), 0.8)
    inside = at[(at[:, 0] >= 1) & (at[:, 1] >= 1) & (at[:, 1] < 3)] - [1, 1]
    for dtype in [*REAL, *COMPLEX]:
        suite.case(dtype, [values("slice_grad", dtype, len(inside)), at, numbers(1, 1), inside])
    suite.error("few", [values("slice_grad", "float", len(inside) - 1), at, numbers(1, 1), inside])
    suite.error("elsewhere", [values("slice_grad", "float", len(inside)), at, numbers(0, 0), inside[::-1]])
    yield suite.finish()


def joins(folder):
    """SparseConcat and SparseSplit."""
    suite = Suite(folder, "sparse", "SparseConcat")
    for dtype in MOVED:
        for axis, shapes in ((0, ((3, 4), (2, 4))), (1, ((3, 4), (3, 2), (3, 1))), (-1, ((2, 3, 4), (2, 3, 2)))) if dtype == "float" else ((1, ((3, 4), (3, 2))),):
            for order in (True, False) if dtype == "float" else (True,):
                at = [places(f"concat{i}", shape, 0.5, order) for i, shape in enumerate(shapes)]
                x = [values(f"concat{i}", dtype, len(one)) for i, one in enumerate(at)]
                suite.case(title(dtype, axis, len(shapes), order), [*at, *x, *(numbers(*shape) for shape in shapes)], {"concat_dim": axis, "N": len(shapes)})
    at, x = places("concat", (3, 4)), values("concat", "float", len(places("concat", (3, 4))))
    two = [at, at, x, x]
    suite.error("shapes", [*two, numbers(3, 4), numbers(3, 5)], {"concat_dim": 0, "N": 2})
    suite.error("axis", [*two, numbers(3, 4), numbers(3, 4)], {"concat_dim": 2, "N": 2})
    suite.error("few_values", [at, at, x, x[1:], numbers(3, 4), numbers(3, 4)], {"concat_dim": 0, "N": 2})
    yield suite.finish()
    suite = Suite(folder, "sparse", "SparseSplit")
    for dtype in MOVED:
        for axis, parts in ((0, 1), (0, 3), (1, 2), (1, 3), (1, 4)) if dtype == "float" else ((1, 3),):
            at = places("split", (3, 4), 0.6)
            suite.case(title(dtype, axis, parts), [np.int64(axis), at, values("split", dtype, len(at)), numbers(3, 4)], {"num_split": parts}, const=[0, 3])
    suite.error("parts", [np.int64(0), at, x[:0], numbers(3, 4)], {"num_split": 4})
    suite.error("axis", [np.int64(2), at, values("split", "float", len(at)), numbers(3, 4)], {"num_split": 2})
    yield suite.finish()


def whole(folder):
    """SparseToDense and SparseTensorDenseAdd."""
    suite = Suite(folder, "sparse", "SparseToDense")
    for dtype in MOVED:
        for shape in SHAPES if dtype == "float" else SHAPES[:1]:
            for index in (np.int64, np.int32):
                at = places("dense", shape)
                x, other = values("dense", dtype, len(at)), values("default", dtype, 1)[0]
                suite.case(title(dtype, shape, index.__name__), [at.astype(index), np.asarray(shape, index), x, other], const=[0, 1])
    at, x, zero = places("dense", (3, 4)), values("dense", "float", len(places("dense", (3, 4)))), np.float32(0)
    suite.case("one_value", [at, numbers(3, 4), np.float32(5), zero])
    suite.case("vector", [numbers(1, 3), numbers(5), np.float32([7, 8]), np.float32(-1)])
    suite.case("scalar", [np.int64(2), numbers(5), np.float32(7), np.float32(-1)])
    suite.case("none", [at[:0], numbers(3, 4), x[:0], np.float32(2)])
    suite.case("any_order", [at[::-1], numbers(3, 4), x, zero], {"validate_indices": False})
    suite.error("order", [at[::-1], numbers(3, 4), x, zero])
    suite.error("twice", [np.int64([[0, 1], [0, 1]]), numbers(3, 4), x[:2], zero])
    suite.error("outside", [np.int64([[0, 4]]), numbers(3, 4), x[:1], zero])
    suite.error("negative", [np.int64([[0, -1]]), numbers(3, 4), x[:1], zero])
    suite.error("rank", [at, numbers(3, 4, 5), x, zero])
    suite.error("few_values", [at, numbers(3, 4), x[1:], zero])
    suite.error("defaults", [at, numbers(3, 4), x, np.float32([0, 1])])
    yield suite.finish()
    suite = Suite(folder, "sparse", "SparseTensorDenseAdd")
    for dtype in [*REAL, *COMPLEX]:
        for shape in SHAPES if dtype == "float" else SHAPES[:1]:
            for index in (np.int64, np.int32):
                at = places("add", shape)
                dense = values("to", dtype, int(np.prod(shape))).reshape(shape)
                suite.case(title(dtype, shape, index.__name__), [at.astype(index), values("add", dtype, len(at)), np.asarray(shape, index), dense], const=[2])
    dense = values("to", "float", 12).reshape(3, 4)
    suite.error("outside", [np.int64([[3, 0]]), x[:1], numbers(3, 4), dense])
    suite.error("shape", [at, x, numbers(3, 5), dense])
    suite.error("rank", [at, x, numbers(3, 4), dense[0]])
    yield suite.finish()


def product(folder):
    """SparseTensorDenseMatMul."""
    suite = Suite(folder, "sparse", "SparseTensorDenseMatMul")

    def reference(case):
        at, x, shape, b = case.inputs
        wide = np.complex128 if np.iscomplexobj(x) else np.float64
        a, size = np.zeros(shape, wide), np.zeros(shape)
        np.add.at(a, tuple(at.T), x.astype(wide))
        np.add.at(size, tuple(at.T), np.abs(x.astype(wide)))
        b, of_b = b.astype(wide), np.abs(b.astype(wide))
        if case.attrs.get("adjoint_a"):
            a, size = a.conj().T, size.T
        if case.attrs.get("adjoint_b"):
            b, of_b = b.conj().T, of_b.T
        return [(a @ b, size @ of_b)]

    for dtype in ("float", "double", "half", "bfloat16", "int32", *COMPLEX):
        for turned in ((False, False), (True, False), (False, True), (True, True)):
            for index in (np.int64, np.int32):
                for columns in (1, 5) if dtype == "float" else (5,):
                    shape = (4, 6)
                    inner = shape[0] if turned[0] else shape[1]
                    at = places("product", shape, 0.5, False)
                    b = values("factor", dtype, inner * columns).reshape((columns, inner) if turned[1] else (inner, columns))
                    attrs = {"adjoint_a": turned[0], "adjoint_b": turned[1]}
                    options = {} if dtype == "int32" else {"tolerance": None, "reference": reference, "terms": 4, "stepwise": True, "worst": 16}
                    suite.case(title(dtype, *turned, index.__name__, columns), [at.astype(index), values("product", dtype, len(at)), numbers(*shape), b], attrs, const=[2], **options)
    at, x, b = places("product", (4, 6)), values("product", "float", len(places("product", (4, 6)))), np.ones((6, 2), np.float32)
    suite.case("none", [at[:0], x[:0], numbers(4, 6), b])
    suite.error("outside", [np.int64([[4, 0]]), x[:1], numbers(4, 6), b])
    suite.error("inner_outside", [np.int64([[0, 6]]), x[:1], numbers(4, 6), b])
    suite.error("inner", [at, x, numbers(4, 7), b])
    suite.error("rank", [at, x, numbers(4, 6), b[0]])
    suite.error("shape", [at, x, numbers(4, 6, 1), b])
    yield suite.finish()


def rows(folder):
    """SparseFillEmptyRows and its gradient."""
    suite = Suite(folder, "sparse", "SparseFillEmptyRows")
    for dtype in MOVED:
        for shape in ((5, 3), (4,), (6, 2, 2), (3, 1)) if dtype == "float" else ((5, 3),):
            for order in (True, False):
                at = places("fill", shape, 0.3, order)
                suite.case(title(dtype, shape, order), [at, values("fill", dtype, len(at)), numbers(*shape), values("default", dtype, 1)[0]], const=[2])
    at, x, other = places("fill", (5, 3)), values("fill", "float", len(places("fill", (5, 3)))), np.float32(9)
    suite.case("none", [at[:0], x[:0], numbers(3, 4), other])
    suite.case("no_rows", [at[:0], x[:0], numbers(0, 4), other])
    suite.error("outside", [np.int64([[5, 0]]), x[:1], numbers(5, 3), other])
    suite.error("negative", [np.int64([[-1, 0]]), x[:1], numbers(5, 3), other])
    suite.error("no_row", [at, x, numbers(0, 3), other])
    suite.error("defaults", [at, x, numbers(5, 3), np.float32([1, 2])])
    suite.error("few_values", [at, x[1:], numbers(5, 3), other])
    yield suite.finish()
    suite = Suite(folder, "sparse", "SparseFillEmptyRowsGrad")
    for dtype in [*REAL, *COMPLEX]:
        grads = small(seeded("fill_grad", dtype), "int32", (7,)).astype(values("x", dtype, 1).dtype) if dtype in ("half", "bfloat16") else values("fill_grad", dtype, 7)
        options = {"tolerance": ulp(4), "reason": "a sum of three terms"} if dtype in (*FLOATS, *COMPLEX) else {}
        suite.case(dtype, [numbers(0, 2, 3, 6), grads], **options)
    suite.case("none", [numbers()[:0], np.float32([1, 2, 4])])
    suite.error("outside", [numbers(0, 7), np.ones(7, np.float32)])
    suite.error("negative", [numbers(-1), np.ones(7, np.float32)])
    yield suite.finish()


def sums(folder):
    """SparseAdd and its gradient."""
    suite = Suite(folder, "sparse", "SparseAdd")
    for dtype in ("int8", "int16", "int32", "int64", "float", "double", *COMPLEX):
        for shape in SHAPES[:3] if dtype == "float" else SHAPES[:1]:
            for least in (0.0, 2.0):
                a, b = places("a", shape, 0.5), places("b", shape, 0.5)
                # TensorFlow's kernels read a threshold of the values' own type, whatever the type of the input.
                real = NUMPY[{"complex64": "float", "complex128": "double"}.get(dtype, dtype)].type
                inputs = [a, values("a", dtype, len(a)), numbers(*shape), b, values("b", dtype, len(b)), numbers(*shape), real(least)]
                suite.case(title(dtype, shape, least), inputs, const=[2, 5, 6])
    a, x = places("a", (3, 4)), values("a", "float", len(places("a", (3, 4))))
    suite.error("shapes", [a, x, numbers(3, 4), a, x, numbers(4, 3), np.float32(0)])
    suite.error("few_values", [a, x[1:], numbers(3, 4), a, x, numbers(3, 4), np.float32(0)])
    suite.error("threshold", [a, x, numbers(3, 4), a, x, numbers(3, 4), np.float32([0])])
    yield suite.finish()
    suite = Suite(folder, "sparse", "SparseAddGrad")
    a, b = places("a", (3, 4), 0.5), places("b", (3, 4), 0.5)
    both = np.unique(np.concatenate([a, b]), axis=0)
    for dtype in ("int8", "int16", "int32", "int64", "float", "double", *COMPLEX):
        suite.case(dtype, [values("grads", dtype, len(both)), a, b, both])
        suite.case(f"{dtype}_left_out", [values("grads", dtype, len(both) - 2), a, b, both[2:]])
    suite.error("few", [values("grads", "float", 2), a, b, both])
    yield suite.finish()


def elements(folder):
    """SparseDenseCwiseAdd, SparseDenseCwiseMul and SparseDenseCwiseDiv."""
    for op in ("SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv"):
        suite = Suite(folder, "sparse", op)
        for dtype in REAL:
            for shape, dense in (((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 4), (3, 1)), ((2, 3, 4), (3, 1)), ((2, 3, 4), ())) if dtype == "float" else (((3, 4), (3, 1)),):
                at = places("elements", shape)
                y = values("dense", dtype, int(np.prod(dense))).reshape(dense)
                if op.endswith("Div"):
                    y = np.where(y == 0, array(3, dtype), y)
                suite.case(title(dtype, shape, "by", dense), [at, values("elements", dtype, len(at)), numbers(*shape), y], const=[2])
        at, x = places("elements", (3, 4)), values("elements", "float", len(places("elements", (3, 4))))
        suite.error("larger", [at, x, numbers(3, 4), np.ones((2, 3, 4), np.float32)])
        suite.error("sizes", [at, x, numbers(3, 4), np.ones((3, 3), np.float32)])
        suite.error("outside", [np.int64([[3, 0]]), x[:1], numbers(3, 4), np.ones((3, 4), np.float32)])
        yield suite.finish()


def reductions(folder):
    """SparseReduceSum, SparseReduceMax and SparseSoftmax."""
    for op, types in (("SparseReduceSum", [*REAL, *COMPLEX]), ("SparseReduceMax", REAL)):
        suite = Suite(folder, "sparse", op)
        for dtype in types:
            for shape, axes in (((3, 4), [0]), ((3, 4), [-1]), ((2, 3, 4), [0, 2]), ((2, 3, 4), [1]), ((3, 4), [0, 1])) if dtype == "float" else (((3, 4), [1]),):
                for keeps in (False, True):
                    at = places("reduce", shape, 0.6)
                    # Whole numbers, whose sums are exact in any order.
                    x = small(seeded("reduce", dtype), dtype, (len(at),)) if dtype not in COMPLEX else array(small(seeded("reduce"), "int32", (len(at),)), dtype)
                    suite.case(title(dtype, shape, axes, keeps).replace("[", "").replace("]", ""), [at, x, numbers(*shape), np.int32(axes)], {"keep_dims": keeps}, const=[2, 3])
        at = places("reduce", (3, 4))
        x = np.ones(len(at), np.float32)
        suite.error("axis", [at, x, numbers(3, 4), np.int32([2])])
        suite.error("few_values", [at, x[1:], numbers(3, 4), np.int32([1])])
        yield suite.finish()
    suite = Suite(folder, "sparse", "SparseSoftmax")
    for dtype in ("half", "float", "double"):
        for shape in ((3, 4), (2, 3, 4)):
            at = places("softmax", shape, 0.6)
            suite.case(title(dtype, shape), [at, values("softmax", dtype, len(at)), numbers(*shape)], const=[2], tolerance=ulp(16), reason="quotients of exponentials")
    at = places("softmax", (5,))
    suite.error("vector", [at, np.ones(len(at), np.float32), numbers(5)])
    yield suite.finish()


GROUPS = [moves, joins, whole, product, rows, sums, elements, reductions]
