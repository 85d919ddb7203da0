//! Gradient descent and momentum.

use super::{INDICES, LOCKING, NUMBERS, update_ops};

update_ops! {
    variables ["var"],
    inputs ["alpha: T", "delta: T"],
    gradient 2,
    attrs [NUMBERS, LOCKING],
    dense {reference "ApplyGradientDescent", handle "ResourceApplyGradientDescent"},
    "var -= alpha * delta."
}

update_ops! {
    variables ["var", "accum"],
    inputs ["lr: T", "grad: T", "momentum: T"],
    gradient 3,
    attrs [NUMBERS, LOCKING, "use_nesterov: bool = false"],
    dense {reference "ApplyMomentum", handle "ResourceApplyMomentum"},
    "accum = accum * momentum + grad; var -= lr * accum (Nesterov: var -= lr * grad + lr * momentum * accum)."
}

update_ops! {
    variables ["var", "accum"],
    inputs ["lr: T", "grad: T", "indices: Tindices", "momentum: T"],
    gradient 3,
    attrs [NUMBERS, INDICES, LOCKING, "use_nesterov: bool = false"],
    sparse {reference "SparseApplyMomentum", handle "ResourceSparseApplyMomentum"},
    "Of rows: accum = accum * momentum + grad; var -= lr * accum (Nesterov: var -= lr * grad + lr * momentum * accum)."
}

update_ops! {
    variables ["var", "accum"],
    inputs ["lr: T", "grad: T", "momentum: T"],
    gradient 3,
    attrs [NUMBERS, LOCKING, "use_nesterov: bool = false"],
    dense {handle "ResourceApplyKerasMomentum"},
    "accum = accum * momentum - lr * grad; var += accum (Nesterov: var += accum * momentum - lr * grad)."
}

update_ops! {
    variables ["var", "accum"],
    inputs ["lr: T", "grad: T", "indices: Tindices", "momentum: T"],
    gradient 3,
    attrs [NUMBERS, INDICES, LOCKING, "use_nesterov: bool = false"],
    sparse {handle "ResourceSparseApplyKerasMomentum"},
    "Of rows: accum = accum * momentum - lr * grad; var += accum (Nesterov: var += accum * momentum - lr * grad)."
}
