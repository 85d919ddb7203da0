//! Rules that shrink weights: Ftrl and the proximal ones.

use super::{INDICES, LOCKING, NUMBERS, update_ops};

update_ops! {
    variables ["var", "accum", "linear"],
    inputs ["grad: T", "lr: T", "l1: T", "l2: T", "lr_power: T"],
    gradient 3,
    attrs [NUMBERS, LOCKING, "multiply_linear_by_lr: bool = false"],
    dense {reference "ApplyFtrl", handle "ResourceApplyFtrl"},
    "n = accum + grad^2; linear += grad - (n^p - accum^p) / lr * var, p = -lr_power; var = (sign(linear) * l1 - linear) / (n^p / lr + 2 * l2) where |linear| > l1, else 0; accum = n."
}

update_ops! {
    variables ["var", "accum", "linear"],
    inputs ["grad: T", "indices: Tindices", "lr: T", "l1: T", "l2: T", "lr_power: T"],
    gradient 3,
    attrs [NUMBERS, INDICES, LOCKING, "multiply_linear_by_lr: bool = false"],
    sparse {reference "SparseApplyFtrl", handle "ResourceSparseApplyFtrl"},
    "Of rows: n = accum + grad^2; linear += grad - (n^p - accum^p) / lr * var, p = -lr_power; var = (sign(linear) * l1 - linear) / (n^p / lr + 2 * l2) where |linear| > l1, else 0; accum = n."
}

update_ops! {
    variables ["var", "accum", "linear"],
    inputs ["grad: T", "lr: T", "l1: T", "l2: T", "l2_shrinkage: T", "lr_power: T"],
    gradient 3,
    attrs [NUMBERS, LOCKING, "multiply_linear_by_lr: bool = false"],
    dense {reference "ApplyFtrlV2", handle "ResourceApplyFtrlV2"},
    "as Ftrl, with grad + 2 * l2_shrinkage * var in the sum of linear."
}

update_ops! {
    variables ["var", "accum", "linear"],
    inputs ["grad: T", "indices: Tindices", "lr: T", "l1: T", "l2: T", "l2_shrinkage: T", "lr_power: T"],
    gradient 3,
    attrs [NUMBERS, INDICES, LOCKING, "multiply_linear_by_lr: bool = false"],
    sparse {reference "SparseApplyFtrlV2", handle "ResourceSparseApplyFtrlV2"},
    "Of rows: as Ftrl, with grad + 2 * l2_shrinkage * var in the sum of linear."
}

update_ops! {
    variables ["var"],
    inputs ["alpha: T", "l1: T", "l2: T", "delta: T"],
    gradient 4,
    attrs [NUMBERS, LOCKING],
    dense {reference "ApplyProximalGradientDescent", handle "ResourceApplyProximalGradientDescent"},
    "p = var - alpha * delta; var = sign(p) * max(|p| - alpha * l1, 0) / (1 + alpha * l2)."
}

update_ops! {
    variables ["var"],
    inputs ["alpha: T", "l1: T", "l2: T", "grad: T", "indices: Tindices"],
    gradient 4,
    attrs [NUMBERS, INDICES, LOCKING],
    sparse {reference "SparseApplyProximalGradientDescent", handle "ResourceSparseApplyProximalGradientDescent"},
    "Of rows: p = var - alpha * grad; var = sign(p) * max(|p| - alpha * l1, 0) / (1 + alpha * l2)."
}

update_ops! {
    variables ["var", "accum"],
    inputs ["lr: T", "l1: T", "l2: T", "grad: T"],
    gradient 5,
    attrs [NUMBERS, LOCKING],
    dense {reference "ApplyProximalAdagrad", handle "ResourceApplyProximalAdagrad"},
    "accum += grad^2; a = lr / sqrt(accum); p = var - a * grad; var = sign(p) * max(|p| - a * l1, 0) / (1 + a * l2)."
}

update_ops! {
    variables ["var", "accum"],
    inputs ["lr: T", "l1: T", "l2: T", "grad: T", "indices: Tindices"],
    gradient 5,
    attrs [NUMBERS, INDICES, LOCKING],
    sparse {reference "SparseApplyProximalAdagrad", handle "ResourceSparseApplyProximalAdagrad"},
    "Of rows: accum += grad^2; a = lr / sqrt(accum); p = var - a * grad; var = sign(p) * max(|p| - a * l1, 0) / (1 + a * l2)."
}
