//! The optimisers of TensorFlow, with its names and defaults: those of `tf.compat.v1.train`, and of Keras where v1 has none.

use super::{Argument, Decay, Optimizer, Power, Rule, Slices};
use crate::{TrainError, nodes::Scalar, variables::Identity};
use Argument::{Gradient, LearningRate, Number, OverRate, Slot};

/// Defines optimisers: a struct with the hyperparameters of each, and its rule.
macro_rules! optimizers {
    ($(
        $(#[$doc:meta])*
        $optimizer:ident $name:literal, rate $rate:literal {
            $($(#[$field_doc:meta])* $field:ident: $kind:ty = $default:expr,)*
        }
        |$this:ident| $rule:block
    )*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $optimizer {
            /// The learning rate.
            pub learning_rate: Scalar,
            $($(#[$field_doc])* pub $field: $kind,)*
            /// Whether updates of rows lock the whole variable.
            pub use_locking: bool,
            /// The name of nodes and slots.
            pub name: String,
            /// Which optimiser it is: whose slots it uses.
            pub identity: Identity,
        }

        impl $optimizer {
            #[doc = concat!("`", $name, "` with this learning rate, and TensorFlow's other hyperparameters.")]
            pub fn new(learning_rate: impl Into<Scalar>) -> $optimizer {
                $optimizer {
                    learning_rate: learning_rate.into(),
                    $($field: $default,)*
                    use_locking: false,
                    name: $name.to_owned(),
                    identity: Identity::default(),
                }
            }
        }

        impl Default for $optimizer {
            #[doc = concat!("`", $name, "` with a learning rate of ", stringify!($rate), ", Keras' default.")]
            fn default() -> $optimizer {
                $optimizer::new($rate)
            }
        }

        impl Optimizer for $optimizer {
            fn rule(&self) -> Result<Rule, TrainError> {
                let $this = self;
                let Table { op, slots, powers, arguments, mut flags, slices, decay } = $rule;
                flags.push(("use_locking", $this.use_locking));
                let (identity, name) = ($this.identity.clone(), $this.name.clone());
                let learning_rate = $this.learning_rate;
                Ok(Rule { identity, name, op, slots, powers, arguments, flags, slices, learning_rate, decay })
            }
        }
    )*};
}

/// What is particular to an optimiser.
struct Table {
    op: &'static str,
    slots: Vec<f64>,
    powers: Vec<Power>,
    arguments: Vec<Argument>,
    flags: Vec<(&'static str, bool)>,
    slices: Slices,
    decay: Option<Decay>,
}

/// An op with these slots and arguments, which updates rows.
fn table(op: &'static str, slots: &[f64], arguments: &[Argument]) -> Table {
    Table {
        op,
        slots: slots.to_vec(),
        powers: Vec::new(),
        arguments: arguments.to_vec(),
        flags: Vec::new(),
        slices: Slices::Rows,
        decay: None,
    }
}

/// The same with a flag.
fn flagged(table: Table, name: &'static str, flag: bool) -> Table {
    Table { flags: vec![(name, flag)], ..table }
}

/// The powers of Adam and its relatives, which have no op for rows.
fn of_powers(table: Table, betas: &[(&'static str, f64)]) -> Table {
    let powers = betas.iter().map(|&(name, base)| Power { name, base }).collect();
    Table { powers, slices: Slices::Dense, ..table }
}

/// Refuses a hyperparameter below (`sign` 1) or above (`sign` -1) zero.
fn check(optimizer: &str, name: &str, value: f64, sign: f64) -> Result<(), TrainError> {
    if value * sign >= 0.0 {
        return Ok(());
    }
    let expected =
        if sign > 0.0 { "zero or a positive number" } else { "zero or a negative number" };
    Err(TrainError::argument(format!("{name} of '{optimizer}'"), expected, value.to_string()))
}

optimizers! {
    /// Gradient descent: `w -= rate * g`. Slices are subtracted one by one.
    GradientDescent "GradientDescent", rate 0.01 {}
    |this| {
        let table = table("GradientDescent", &[], &[LearningRate, Gradient]);
        Table { slices: Slices::Scatter, ..table }
    }

    /// Gradient descent with a momentum: `a = momentum * a + g; w -= rate * a`, or with Nesterov's
    /// `w -= rate * (g + momentum * a)` (Sutskever et al. 2013).
    Momentum "Momentum", rate 0.01 {
        /// What is left of the accumulator after a step. TensorFlow has no default for it.
        momentum: f64 = 0.9,
        /// Whether the momentum is Nesterov's.
        use_nesterov: bool = false,
    }
    |this| {
        let arguments = [Slot(0), LearningRate, Gradient, Number("momentum", this.momentum)];
        flagged(table("Momentum", &[0.0], &arguments), "use_nesterov", this.use_nesterov)
    }

    /// Adagrad (Duchi et al. 2011): `a += g^2; w -= rate * g / sqrt(a)`, with an epsilon
    /// `w -= rate * g / (sqrt(a) + epsilon)`.
    Adagrad "Adagrad", rate 0.001 {
        /// What the accumulator begins with.
        initial_accumulator_value: f64 = 0.1,
        /// What is added to the divisor; `None` as in `tf.compat.v1.train`.
        epsilon: Option<f64> = None,
    }
    |this| {
        let initial = this.initial_accumulator_value;
        check(&this.name, "initial_accumulator_value", initial, 1.0)?;
        match this.epsilon {
            None => table("Adagrad", &[initial], &[Slot(0), LearningRate, Gradient]),
            Some(epsilon) => {
                let epsilon = Number("epsilon", epsilon);
                table("AdagradV2", &[initial], &[Slot(0), LearningRate, epsilon, Gradient])
            }
        }
    }

    /// RMSProp (Tieleman and Hinton 2012): `ms += (g^2 - ms) * (1 - decay); mom = momentum * mom + rate * g / sqrt(ms +
    /// epsilon); w -= mom`. With `centered`, `ms - mg^2` is in the place of `ms`, where `mg` is the average gradient.
    RmsProp "RMSProp", rate 0.001 {
        /// What is left of an average after a step.
        decay: f64 = 0.9,
        /// What is left of the momentum after a step.
        momentum: f64 = 0.0,
        /// What is added to the average below the root.
        epsilon: f64 = 1e-10,
        /// Whether the gradient is divided by its standard deviation.
        centered: bool = false,
    }
    |this| {
        let decay = Number("decay", this.decay);
        let rest = [Number("momentum", this.momentum), Number("epsilon", this.epsilon), Gradient];
        let [momentum, epsilon, gradient] = rest;
        if this.centered {
            let slots = [Slot(1), Slot(0), Slot(2)];
            let arguments = [LearningRate, decay, momentum, epsilon, gradient];
            table("CenteredRMSProp", &[1.0, 0.0, 0.0], &[&slots[..], &arguments].concat())
        } else {
            let arguments = [Slot(0), Slot(1), LearningRate, decay, momentum, epsilon, gradient];
            table("RMSProp", &[1.0, 0.0], &arguments)
        }
    }

    /// Adam (Kingma and Ba 2015), in the form before section 2.1, where epsilon is "epsilon hat": `m` and `v` are averages
    /// of `g` and `g^2`, and `w -= rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon)`.
    Adam "Adam", rate 0.001 {
        /// What is left of the average of gradients after a step.
        beta1: f64 = 0.9,
        /// What is left of the average of squares after a step.
        beta2: f64 = 0.999,
        /// What is added to the divisor. Keras has 1e-7.
        epsilon: f64 = 1e-8,
        /// Whether the divisor is of the largest average of squares so far (Reddi et al. 2018).
        amsgrad: bool = false,
    }
    |this| { adam([this.beta1, this.beta2, this.epsilon], this.amsgrad) }

    /// AdamW (Loshchilov and Hutter 2019): Adam with a decay beside the update, `w -= rate * weight_decay * w`.
    AdamW "AdamW", rate 0.001 {
        /// The decay.
        weight_decay: f64 = 0.004,
        /// Variables whose names contain one of these do not decay.
        exclude: Vec<String> = Vec::new(),
        /// What is left of the average of gradients after a step.
        beta1: f64 = 0.9,
        /// What is left of the average of squares after a step.
        beta2: f64 = 0.999,
        /// What is added to the divisor.
        epsilon: f64 = 1e-7,
        /// Whether the divisor is of the largest average of squares so far.
        amsgrad: bool = false,
    }
    |this| {
        let decay = Decay { rate: this.weight_decay, exclude: this.exclude.clone() };
        let table = adam([this.beta1, this.beta2, this.epsilon], this.amsgrad);
        Table { decay: Some(decay), ..table }
    }

    /// AdaMax (Kingma and Ba 2015, section 7): `m` is the average of `g`, `v = max(beta2 * v, |g|)`, and
    /// `w -= rate / (1 - beta1^t) * m / (v + epsilon)`.
    Adamax "Adamax", rate 0.001 {
        /// What is left of the average after a step.
        beta1: f64 = 0.9,
        /// What is left of the largest gradient after a step.
        beta2: f64 = 0.999,
        /// What is added to the divisor.
        epsilon: f64 = 1e-7,
    }
    |this| {
        let powers = [("beta1_power", this.beta1)];
        let [beta1, beta2, epsilon] = betas([this.beta1, this.beta2, this.epsilon]);
        let slots = [Slot(0), Slot(1), Argument::Power(0)];
        let arguments = [LearningRate, beta1, beta2, epsilon, Gradient];
        of_powers(table("AdaMax", &[0.0, 0.0], &[&slots[..], &arguments].concat()), &powers)
    }

    /// Adadelta (Zeiler 2012): `a = rho * a + (1 - rho) * g^2; u = g * sqrt(au + epsilon) / sqrt(a + epsilon);
    /// au = rho * au + (1 - rho) * u^2; w -= rate * u`.
    Adadelta "Adadelta", rate 0.001 {
        /// What is left of an average after a step.
        rho: f64 = 0.95,
        /// What is added below the roots. Keras has 1e-7.
        epsilon: f64 = 1e-8,
    }
    |this| {
        let (rho, epsilon) = (Number("rho", this.rho), Number("epsilon", this.epsilon));
        let arguments = [Slot(0), Slot(1), LearningRate, rho, epsilon, Gradient];
        table("Adadelta", &[0.0, 0.0], &arguments)
    }

    /// FTRL-Proximal (McMahan et al. 2013), with a shrinkage of variables by their size.
    Ftrl "Ftrl", rate 0.001 {
        /// How the learning rate falls: the exponent of the sum of squares, at most 0.
        learning_rate_power: f64 = -0.5,
        /// What the sum of squares begins with.
        initial_accumulator_value: f64 = 0.1,
        /// The L1 regularisation.
        l1_regularization_strength: f64 = 0.0,
        /// The L2 regularisation.
        l2_regularization_strength: f64 = 0.0,
        /// An L2 regularisation that acts on the size of variables.
        l2_shrinkage_regularization_strength: f64 = 0.0,
        /// The beta of the paper.
        beta: f64 = 0.0,
    }
    |this| {
        let (l1, l2) = (this.l1_regularization_strength, this.l2_regularization_strength);
        let (shrinkage, initial) =
            (this.l2_shrinkage_regularization_strength, this.initial_accumulator_value);
        check(&this.name, "learning_rate_power", this.learning_rate_power, -1.0)?;
        check(&this.name, "initial_accumulator_value", initial, 1.0)?;
        check(&this.name, "l1_regularization_strength", l1, 1.0)?;
        check(&this.name, "l2_regularization_strength", l2, 1.0)?;
        check(&this.name, "l2_shrinkage_regularization_strength", shrinkage, 1.0)?;
        let l2 = match this.beta {
            0.0 => Number("l2", l2),
            beta => OverRate { name: "l2", base: l2, numerator: beta / 2.0 },
        };
        let power = Number("learning_rate_power", this.learning_rate_power);
        let first = [Slot(0), Slot(1), Gradient, LearningRate, Number("l1", l1), l2];
        let slots = [initial, 0.0];
        match shrinkage {
            0.0 => table("Ftrl", &slots, &[&first[..], &[power]].concat()),
            shrinkage => {
                let rest = [Number("l2_shrinkage", shrinkage), power];
                table("FtrlV2", &slots, &[&first[..], &rest].concat())
            }
        }
    }
}

fn betas([beta1, beta2, epsilon]: [f64; 3]) -> [Argument; 3] {
    [Number("beta1", beta1), Number("beta2", beta2), Number("epsilon", epsilon)]
}

fn adam(numbers: [f64; 3], amsgrad: bool) -> Table {
    let powers = [("beta1_power", numbers[0]), ("beta2_power", numbers[1])];
    let [beta1, beta2, epsilon] = betas(numbers);
    let arguments = [LearningRate, beta1, beta2, epsilon, Gradient];
    let powers_of = [Argument::Power(0), Argument::Power(1)];
    let (op, slots) = match amsgrad {
        true => ("AdamWithAmsgrad", 3),
        false => ("Adam", 2),
    };
    let handles: Vec<Argument> = (0..slots).map(Slot).collect();
    let arguments = [&handles[..], &powers_of, &arguments].concat();
    of_powers(table(op, &vec![0.0; slots], &arguments), &powers)
}
