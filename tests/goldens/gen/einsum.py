"""Sums of products by an equation."""

import numpy as np

from .data import COMPLEX, FLOATS, normal, seeded, small
from .suite import Suite

EQUATIONS = {  # name: (equation, shapes, number of terms)
    "product": ("ij,jk->ik", [(5, 7), (7, 3)], 7),
    "product_turned": ("ij,jk->ki", [(5, 7), (7, 3)], 7),
    "transposed_operands": ("ji,kj->ik", [(7, 5), (3, 7)], 7),
    "batch": ("bij,bjk->bik", [(3, 2, 4), (3, 4, 5)], 4),
    "batch_inside": ("ibj,jbk->kbi", [(2, 3, 4), (4, 3, 5)], 4),
    "two_sums": ("ijkl,kjm->iml", [(2, 3, 4, 5), (4, 3, 2)], 12),
    "dot": ("i,i->", [(13,), (13,)], 13),
    "outer": ("i,jk->kij", [(3,), (2, 4)], 1),
    "elementwise": ("ij,ij->ij", [(3, 5), (3, 5)], 1),
    "elementwise_turned": ("ij,ji->ij", [(3, 5), (5, 3)], 1),
    "summed": ("ijk,kl->l", [(2, 3, 4), (4, 5)], 24),
    "summed_twice": ("ij,kl->", [(2, 3), (4, 5)], 120),
    "scalars": (",->", [(), ()], 1),
    "transpose": ("ijk->kij", [(2, 3, 4)], 1),
    "sum": ("ijk->j", [(5, 3, 7)], 35),
    "sum_all": ("ij->", [(5, 7)], 35),
    "trace": ("ii->", [(5, 5)], 5),
    "diagonal": ("iji->ji", [(4, 3, 4)], 1),
    "onto_diagonal": ("ij->jii", [(3, 2)], 1),
    "product_diagonal": ("ij,jk->ikk", [(2, 3), (3, 4)], 3),
    "repeated": ("iij,jk->ik", [(3, 3, 4), (4, 2)], 4),
    "identity": ("...->...", [(2, 3)], 1),
    "ellipsis_product": ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)], 4),
    "ellipsis_left": ("...ij,jk->...ik", [(2, 3, 3, 4), (4, 2)], 4),
    "ellipsis_right": ("ij,...jk->i...k", [(3, 4), (2, 4, 5)], 4),
    "ellipsis_ones": ("...i,...i->...", [(1, 3), (1, 1, 3)], 3),
    "ellipsis_none": ("...ij->...ji", [(3, 4)], 1),
    "ellipsis_middle": ("i...j->j...i", [(2, 3, 4, 5)], 1),
    "ellipsis_diagonal": ("...ii->...i", [(2, 3, 3)], 1),
    "ellipsis_new": ("i,j->j...i", [(3,), (2,)], 1),
    "capitals": ("AB,bB->bA", [(3, 4), (2, 4)], 4),
    "ones": ("ij,jk->ik", [(1, 1), (1, 1)], 1),
    "empty": ("ij,jk->ik", [(2, 0), (0, 3)], 0),
    "empty_batch": ("bij,bjk->bik", [(0, 2, 3), (0, 3, 2)], 3),
    "empty_sum": ("ij->j", [(0, 3)], 0),
    "long": ("ij,jk->ik", [(17, 131), (131, 13)], 131),
}
FEW = ["product", "batch_inside", "two_sums", "summed", "sum", "diagonal", "repeated", "ellipsis_product", "empty"]


def exact(case):
    equation = case.attrs["equation"].replace(" ", "")
    wide = np.complex128 if case.inputs[0].dtype.kind == "c" else np.float64
    inputs = [x.astype(wide) for x in case.inputs]
    return [(einsum(equation, inputs), einsum(equation, [np.abs(x) for x in inputs]))]


def einsum(equation, inputs):
    """NumPy's, which has no labels twice in the output, and wants an ellipsis in an input where the output has one."""
    before, after = equation.split("->")
    if "..." not in before:
        after = after.replace("...", "")
    twice = next((label for label in after if label != "." and after.count(label) > 1), None)
    if twice is None:
        return np.asarray(np.einsum(f"{before}->{after}", *inputs))
    once = after.replace(twice, "", after.count(twice) - 1)
    plain = einsum(f"{before}->{once}", inputs)
    at = once.index(twice)
    size, extra = plain.shape[at], after.count(twice) - 1
    result = np.zeros((*plain.shape[:at], *(size,) * (extra + 1), *plain.shape[at + 1 :]), plain.dtype)
    for i in range(size):
        result[(slice(None),) * at + (i,) * (extra + 1)] = plain[(slice(None),) * at + (i,)]
    return result


def equations(folder):
    """Einsum."""
    suite = Suite(folder, "linalg", "Einsum")
    for dtype in FLOATS + ["int32", "int64"] + COMPLEX:
        for name in EQUATIONS if dtype == "float" else FEW:
            equation, shapes, terms = EQUATIONS[name]
            rng = seeded("Einsum", dtype, name)
            inexact = dtype in FLOATS + COMPLEX
            make = normal if inexact else small
            inputs = [make(rng, dtype, shape) for shape in shapes]
            options = {"reference": exact, "terms": terms} if inexact else {}
            suite.case(f"{dtype}_{name}", inputs, {"equation": equation}, **options)
    ones = lambda *shape: np.ones(shape, np.float32)
    for name, (equation, inputs) in {
        "no_arrow": ("ij,jk", [ones(2, 3), ones(3, 4)]),
        "two_arrows": ("i->i->i", [ones(2)]),
        "three_inputs": ("ij,jk,kl->il", [ones(2, 2), ones(2, 2), ones(2, 2)]),
        "few_inputs": ("ij,jk->ik", [ones(2, 2)]),
        "many_inputs": ("ij->ij", [ones(2, 2), ones(2, 2)]),
        "rank": ("ijk->i", [ones(2, 3)]),
        "rank_too_large": ("i->i", [ones(2, 3)]),
        "ellipsis_rank": ("...ijk->...", [ones(2, 3)]),
        "no_output_ellipsis": ("...i->i", [ones(2, 3)]),
        "sizes": ("ij,jk->ik", [ones(2, 3), ones(4, 5)]),
        "no_broadcast_of_labels": ("ij,jk->ik", [ones(2, 1), ones(3, 4)]),
        "diagonal": ("ii->i", [ones(2, 3)]),
        "ellipsis_sizes": ("...,...->...", [ones(2), ones(3)]),
        "spaces": ("ij , jk -> ik", [ones(2, 3), ones(3, 4)]),
        "dot": ("i.j->ij", [ones(2, 3)]),
        "two_ellipses": ("...i...->...", [ones(2, 3)]),
        "nothing": ("", [ones()]),
    }.items():
        suite.error(name, inputs, {"equation": equation})
    yield suite.finish()


GROUPS = [equations]
