//! Rules with a step for each element: Adagrad, RMSProp, Adam and their kin.

use super::{INDICES, LOCKING, NUMBERS, update_ops};

update_ops! {
    variables ["var", "accum"],
    inputs ["lr: T", "grad: T"],
    gradient 3,
    attrs [NUMBERS, LOCKING, "update_slots: bool = true"],
    dense {reference "ApplyAdagrad", handle "ResourceApplyAdagrad"},
    "accum += grad^2; var -= lr * grad / sqrt(accum)."
}

update_ops! {
    variables ["var", "accum"],
    inputs ["lr: T", "grad: T", "indices: Tindices"],
    gradient 3,
    attrs [NUMBERS, INDICES, LOCKING, "update_slots: bool = true"],
    sparse {reference "SparseApplyAdagrad", handle "ResourceSparseApplyAdagrad"},
    "Of rows: accum += grad^2; var -= lr * grad / sqrt(accum)."
}

update_ops! {
    variables ["var", "accum"],
    inputs ["lr: T", "epsilon: T", "grad: T"],
    gradient 4,
    attrs [NUMBERS, LOCKING, "update_slots: bool = true"],
    dense {reference "ApplyAdagradV2", handle "ResourceApplyAdagradV2"},
    "accum += grad^2; var -= lr * grad / (sqrt(accum) + epsilon)."
}

update_ops! {
    variables ["var", "accum"],
    inputs ["lr: T", "epsilon: T", "grad: T", "indices: Tindices"],
    gradient 4,
    attrs [NUMBERS, INDICES, LOCKING, "update_slots: bool = true"],
    sparse {reference "SparseApplyAdagradV2", handle "ResourceSparseApplyAdagradV2"},
    "Of rows: accum += grad^2; var -= lr * grad / (sqrt(accum) + epsilon)."
}

update_ops! {
    variables ["var", "gradient_accumulator", "gradient_squared_accumulator"],
    inputs ["grad: T", "lr: T", "l1: T", "l2: T", "global_step: int64"],
    gradient 3,
    attrs [NUMBERS, LOCKING],
    dense {reference "ApplyAdagradDA", handle "ResourceApplyAdagradDA"},
    "the sums g of grad and gg of grad^2; var = -lr * sign(g) * max(|g| - global_step * l1, 0) / (lr * global_step * l2 + sqrt(gg))."
}

update_ops! {
    variables ["var", "gradient_accumulator", "gradient_squared_accumulator"],
    inputs ["grad: T", "indices: Tindices", "lr: T", "l1: T", "l2: T", "global_step: int64"],
    gradient 3,
    attrs [NUMBERS, INDICES, LOCKING],
    sparse {reference "SparseApplyAdagradDA", handle "ResourceSparseApplyAdagradDA"},
    "Of rows: the sums g of grad and gg of grad^2; var = -lr * sign(g) * max(|g| - global_step * l1, 0) / (lr * global_step * l2 + sqrt(gg))."
}

update_ops! {
    variables ["var", "accum", "accum_update"],
    inputs ["lr: T", "rho: T", "epsilon: T", "grad: T"],
    gradient 6,
    attrs [NUMBERS, LOCKING],
    dense {reference "ApplyAdadelta", handle "ResourceApplyAdadelta"},
    "accum = rho * accum + (1 - rho) * grad^2; u = grad * sqrt(accum_update + epsilon) / sqrt(accum + epsilon); var -= lr * u; accum_update = rho * accum_update + (1 - rho) * u^2."
}

update_ops! {
    variables ["var", "accum", "accum_update"],
    inputs ["lr: T", "rho: T", "epsilon: T", "grad: T", "indices: Tindices"],
    gradient 6,
    attrs [NUMBERS, INDICES, LOCKING],
    sparse {reference "SparseApplyAdadelta", handle "ResourceSparseApplyAdadelta"},
    "Of rows: accum = rho * accum + (1 - rho) * grad^2; u = grad * sqrt(accum_update + epsilon) / sqrt(accum + epsilon); var -= lr * u; accum_update = rho * accum_update + (1 - rho) * u^2."
}

update_ops! {
    variables ["var", "ms", "mom"],
    inputs ["lr: T", "rho: T", "momentum: T", "epsilon: T", "grad: T"],
    gradient 7,
    attrs [NUMBERS, LOCKING],
    dense {reference "ApplyRMSProp", handle "ResourceApplyRMSProp"},
    "ms += (grad^2 - ms) * (1 - rho); mom = mom * momentum + lr * grad / sqrt(ms + epsilon); var -= mom."
}

update_ops! {
    variables ["var", "ms", "mom"],
    inputs ["lr: T", "rho: T", "momentum: T", "epsilon: T", "grad: T", "indices: Tindices"],
    gradient 7,
    attrs [NUMBERS, INDICES, LOCKING],
    sparse {reference "SparseApplyRMSProp", handle "ResourceSparseApplyRMSProp"},
    "Of rows: ms = rho * ms + (1 - rho) * grad^2; mom = mom * momentum + lr * grad / sqrt(ms + epsilon); var -= mom."
}

update_ops! {
    variables ["var", "mg", "ms", "mom"],
    inputs ["lr: T", "rho: T", "momentum: T", "epsilon: T", "grad: T"],
    gradient 8,
    attrs [NUMBERS, LOCKING],
    dense {reference "ApplyCenteredRMSProp", handle "ResourceApplyCenteredRMSProp"},
    "ms += (grad^2 - ms) * (1 - rho); mg += (grad - mg) * (1 - rho); mom = mom * momentum + lr * grad / sqrt(ms - mg^2 + epsilon); var -= mom."
}

update_ops! {
    variables ["var", "mg", "ms", "mom"],
    inputs ["lr: T", "rho: T", "momentum: T", "epsilon: T", "grad: T", "indices: Tindices"],
    gradient 8,
    attrs [NUMBERS, INDICES, LOCKING],
    sparse {reference "SparseApplyCenteredRMSProp", handle "ResourceSparseApplyCenteredRMSProp"},
    "Of rows: ms = rho * ms + (1 - rho) * grad^2; mg = rho * mg + (1 - rho) * grad; mom = mom * momentum + lr * grad / sqrt(ms - mg^2 + epsilon); var -= mom."
}

update_ops! {
    variables ["var", "m", "v"],
    inputs ["beta1_power: T", "beta2_power: T", "lr: T", "beta1: T", "beta2: T", "epsilon: T", "grad: T"],
    gradient 9,
    attrs [NUMBERS, LOCKING, "use_nesterov: bool = false"],
    dense {reference "ApplyAdam", handle "ResourceApplyAdam"},
    "m += (grad - m) * (1 - beta1); v += (grad^2 - v) * (1 - beta2); var -= a * m / (sqrt(v) + epsilon), a = lr * sqrt(1 - beta2_power) / (1 - beta1_power) (Nesterov: beta1 * m + (1 - beta1) * grad instead of m)."
}

update_ops! {
    variables ["var", "m", "v", "vhat"],
    inputs ["beta1_power: T", "beta2_power: T", "lr: T", "beta1: T", "beta2: T", "epsilon: T", "grad: T"],
    gradient 10,
    attrs [NUMBERS, LOCKING],
    dense {handle "ResourceApplyAdamWithAmsgrad"},
    "m += (grad - m) * (1 - beta1); v += (grad^2 - v) * (1 - beta2); vhat = max(vhat, v); var -= a * m / (sqrt(vhat) + epsilon), a = lr * sqrt(1 - beta2_power) / (1 - beta1_power)."
}

update_ops! {
    variables ["var", "m", "v"],
    inputs ["beta1_power: T", "lr: T", "beta1: T", "beta2: T", "epsilon: T", "grad: T"],
    gradient 8,
    attrs [NUMBERS, LOCKING],
    dense {reference "ApplyAdaMax", handle "ResourceApplyAdaMax"},
    "m += (grad - m) * (1 - beta1); v = max(beta2 * v, |grad|); var -= lr / (1 - beta1_power) * m / (v + epsilon)."
}
