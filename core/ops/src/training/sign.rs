//! Rules that compare the sign of a gradient with that of the gradients before.

use super::{LOCKING, NUMBERS, update_ops};

update_ops! {
    variables ["var", "m"],
    inputs ["lr: T", "alpha: T", "sign_decay: T", "beta: T", "grad: T"],
    gradient 6,
    attrs [NUMBERS, LOCKING],
    dense {reference "ApplyAddSign", handle "ResourceApplyAddSign"},
    "m = beta * m + (1 - beta) * grad; var -= lr * (alpha + sign_decay * sign(grad) * sign(m)) * grad."
}

update_ops! {
    variables ["var", "m"],
    inputs ["lr: T", "logbase: T", "sign_decay: T", "beta: T", "grad: T"],
    gradient 6,
    attrs [NUMBERS, LOCKING],
    dense {reference "ApplyPowerSign", handle "ResourceApplyPowerSign"},
    "m = beta * m + (1 - beta) * grad; var -= lr * exp(logbase * sign_decay * sign(grad) * sign(m)) * grad."
}
