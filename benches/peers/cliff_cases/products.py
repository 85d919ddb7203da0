"""Products of matrices, einsum, decompositions."""

import numpy as np
import tensorflow as tf

from .case import Case

SIZES = [
    (512, 512, 512),
    (4, 1_000_000, 4),
    (1_000_000, 4, 4),
    (4, 4, 1_000_000),
    (1, 1_000_000, 1),
    (1_000_000, 1, 4),
    (1, 1024, 1024),
    (1024, 1024, 1),
    (8, 1024, 1024),
    (32, 1024, 4096),
    (1024, 4096, 32),
    (100_000, 8, 8),
    (100_000, 9, 11),
    (8, 100_000, 8),
    (17, 100_000, 3),
    (3, 100_000, 17),
    (127, 131, 137),
    (1000, 3, 1000),
    (1000, 1, 1000),
    (3, 1000, 1000),
    (1000, 1000, 3),
    (1000, 1000, 17),
    (17, 1000, 1000),
    (17, 17, 17),
    (64, 64, 64),
    (65, 65, 65),
    (128, 128, 128),
    (257, 257, 257),
    (2, 100_000, 100),
    (100, 100_000, 2),
]
BATCHES = [
    (16, 128, 128, 128),
    (100_000, 2, 2, 2),
    (20_000, 4, 4, 4),
    (10_000, 3, 3, 3),
    (1000, 16, 16, 16),
    (1000, 1, 64, 64),
    (1000, 64, 64, 1),
    (10_000, 1, 100, 1),
    (10_000, 8, 1, 8),
    (100, 17, 1000, 3),
]
EINSUMS = [
    ("ij,jk->ik", [(512, 512), (512, 512)], 512**3),
    ("bhwc,hkc->bhwk", [(4, 32, 32, 64), (32, 32, 64)], 4 * 32 * 32 * 32 * 64),
    ("bhwc,wkc->bhwk", [(4, 32, 32, 64), (32, 32, 64)], 4 * 32 * 32 * 32 * 64),
    ("bqhd,bkhd->bhqk", [(2, 128, 8, 64), (2, 128, 8, 64)], 2 * 128 * 128 * 8 * 64),
    ("bhqk,bkhd->bqhd", [(2, 8, 128, 128), (2, 128, 8, 64)], 2 * 128 * 128 * 8 * 64),
    ("ij,j->i", [(4000, 4000), (4000,)], 4000 * 4000),
    ("ij,i->j", [(4000, 4000), (4000,)], 4000 * 4000),
    ("i,j->ij", [(3000,), (3000,)], 3000 * 3000),
    ("i,i->", [(1_000_000,), (1_000_000,)], 1_000_000),
    ("bi,bi->b", [(100_000, 16), (100_000, 16)], 1_600_000),
    ("bij,bjk->bik", [(1000, 16, 16), (1000, 16, 16)], 1000 * 16**3),
    ("abcd,cd->ab", [(64, 64, 16, 16), (16, 16)], 64 * 64 * 256),
    ("abc,cde->abde", [(32, 32, 64), (64, 8, 32)], 32 * 32 * 64 * 256),
    ("ii->i", [(2000, 2000)], 2000),
    ("ijk->kji", [(100, 100, 100)], 1_000_000),
    ("ijk->j", [(100, 100, 100)], 1_000_000),
]


def products(transpose_a=False, transpose_b=False, dtype=np.float32, sizes=None):
    for m, k, n in sizes or SIZES:
        def make(x, m=m, k=k, n=n):
            a = x(*((k, m) if transpose_a else (m, k)), dtype=dtype)
            b = x(*((n, k) if transpose_b else (k, n)), dtype=dtype)
            return tf.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)

        yield Case(f"{m}x{k}x{n}", make, 2.0 * m * k * n)


def batches():
    for b, m, k, n in BATCHES:
        yield Case(f"{b}x{m}x{k}x{n}", lambda x, b=b, m=m, k=k, n=n: tf.matmul(x(b, m, k), x(b, k, n)), 2.0 * b * m * k * n)
    yield Case("100x64x64x1-broadcast", lambda x: tf.matmul(x(100, 64, 64), x(64, 1)), 2.0 * 100 * 64 * 64)


def einsums():
    for formula, shapes, work in EINSUMS:
        def make(x, formula=formula, shapes=shapes):
            return tf.raw_ops.Einsum(inputs=[x(*shape) for shape in shapes], equation=formula)

        yield Case(formula, make, 2.0 * work)


SOLVERS = {
    "cholesky": lambda a: tf.linalg.cholesky(a),
    "inverse": lambda a: tf.linalg.inv(a),
    "determinant": lambda a: tf.linalg.det(a),
    "qr": lambda a: tf.linalg.qr(a)[1],
    "svd": lambda a: tf.linalg.svd(a, compute_uv=False),
    "eigh": lambda a: tf.linalg.eigh(a)[0],
    "solve": lambda a: tf.linalg.solve(a, a),
    "triangular": lambda a: tf.linalg.triangular_solve(a, a),
}


def solvers(call):
    def cases():
        for batch, size in [(1, 128), (20_000, 2), (5000, 4), (100, 17), (1, 257)]:
            def make(x, batch=batch, size=size):
                half = x.random.standard_normal((batch, size, size)).astype(np.float32)
                return call(x.of(half @ half.transpose(0, 2, 1) + size * np.eye(size, dtype=np.float32)))

            yield Case(f"{batch}x{size}x{size}", make, float(batch) * size**3, compared=False)

    return cases


FEW = [SIZES[0], (4, 100_000, 4), (100_000, 4, 4), (17, 1000, 1000), (1000, 1000, 17), (127, 131, 137), (64, 64, 64), (1, 1024, 1024)]
FAMILIES = {
    "matmul": products,
    "matmul-ta": lambda: products(transpose_a=True),
    "matmul-tb": lambda: products(transpose_b=True),
    "matmul-tab": lambda: products(True, True, sizes=FEW),
    "matmul-double": lambda: products(dtype=np.float64, sizes=FEW),
    "matmul-half": lambda: products(dtype=np.float16, sizes=FEW),
    "matmul-int32": lambda: products(dtype=np.int32, sizes=[(256, 256, 256), *FEW[1:]]),
    "matmul-complex": lambda: products(dtype=np.complex64, sizes=FEW),
    "batchmatmul": batches,
    "einsum": einsums,
    **{name: solvers(call) for name, call in SOLVERS.items()},
}
