//! Updates of whole variables by the rules of optimisers: a class each in `cu/train.cu`, under the
//! name that [`RULES`] gives.
//!
//! Variables lie in the device's memory, as their handles' nodes are placed there, and so do the
//! scalars: a rate that changes from step to step is read when the launch runs. What a rule refuses
//! of its scalars on the CPU is therefore not refused here.

use super::{
    access::{Access, Entries, most_lanes},
    types::{DOUBLES, FLOATS, WITHOUT_BF16},
};
use crate::{
    compile::{Source, Variant},
    kernels::dtype::name_of,
    launch::{Launch, Operand},
    source,
};
use tenon_sdk::{DType, KernelError, author::Var, prelude::*};

static SOURCE: Source = source!("train.cu", overlaps);

/// The scalar that is a whole number; a rule that has it has it last.
const STEP: &str = "global_step";

/// The rule of an op.
struct Rule {
    op: &'static str,
    /// Its class in the source.
    class: &'static str,
    /// Number of variables.
    variables: usize,
    /// The scalar inputs, in the order in which the class takes them.
    scalars: &'static [&'static str],
    /// The attribute of type bool that changes it.
    flag: Option<&'static str>,
    types: &'static [DType],
}

fn variant(rule: &Rule, dtype: DType, flag: bool) -> Result<Variant, KernelError> {
    let variant = Variant::new(&SOURCE).define("T", name_of(dtype)?).define("RULE", rule.class);
    let variant = variant.define("FLAG", u8::from(flag));
    Ok(if rule.scalars.last() == Some(&STEP) { variant.define("STEP", 1) } else { variant })
}

/// Every rule in every type, and with its attribute in one.
pub(super) fn variants() -> Vec<Variant> {
    let each = |rule: &'static Rule| {
        let flagged = rule.flag.map(|_| variant(rule, DType::FLOAT, true));
        rule.types.iter().map(|&dtype| variant(rule, dtype, false)).chain(flagged)
    };
    RULES.iter().flat_map(each).flatten().collect()
}

/// Checks that an argument has the shape of the trained variable.
fn same_shape(
    (trained, dims): (&str, &[i64]),
    name: &str,
    found: &[i64],
) -> Result<(), KernelError> {
    if found == dims {
        return Ok(());
    }
    Err(KernelError::invalid_argument(format!(
        "{trained} and {name} do not have the same shape: {dims:?} and {found:?}"
    )))
}

/// Parameters: addresses of the variables, the gradient and the scalars; number of elements.
type Call<const V: usize, const S: usize> = ([u64; V], u64, [u64; S], u64);

/// An update of `V` variables with `S` scalars.
struct Dense<const V: usize, const S: usize> {
    dtype: DType,
    /// The names of the variables.
    names: Vec<String>,
    scalars: [usize; S],
    rule: &'static Rule,
    gradient: usize,
    entries: Entries<Call<V, S>>,
}

impl<const V: usize, const S: usize> Dense<V, S> {
    /// The addresses of the scalars.
    fn scalars(
        &self,
        c: &ComputeContext<'_>,
        launch: &Launch<'_>,
    ) -> Result<[u64; S], KernelError> {
        let mut addresses = [0; S];
        for (address, (&input, name)) in
            addresses.iter_mut().zip(self.scalars.iter().zip(self.rule.scalars))
        {
            let dims = c.dims(input);
            if !dims.is_empty() {
                return Err(KernelError::invalid_argument(format!(
                    "{name} is not a scalar: found shape {dims:?}"
                )));
            }
            *address = launch.input(input)?.address;
        }
        Ok(addresses)
    }
}

impl<const V: usize, const S: usize> Kernel for Dense<V, S> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let rule = RULES.iter().find(|rule| rule.op == c.op());
        let rule = rule
            .filter(|rule| rule.variables == V && rule.scalars.len() == S)
            .ok_or_else(|| KernelError::internal(format!("no rule for {}", c.op())))?;
        let names = c.input_args();
        let place = |name: &str| c.input_named(name).map(|range| range.start);
        let mut scalars = [0; S];
        for (input, name) in scalars.iter_mut().zip(rule.scalars) {
            *input = place(name)?;
        }
        let dtype = c.attr("T")?;
        let flag = rule.flag.map_or(Ok(false), |name| c.attr(name))?;
        let variant = variant(rule, dtype, flag)?;
        Ok(Dense {
            dtype,
            names: names.iter().take(V).map(|name| (*name).to_owned()).collect(),
            scalars,
            rule,
            gradient: place(if names.contains(&"delta") { "delta" } else { "grad" })?,
            // SAFETY: `train` takes as many addresses of variables and scalars as the class of the
            // rule says, which are those of the table; the address of the gradient, and a count.
            entries: unsafe { Entries::new(variant, "train", most_lanes(&[dtype])) },
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (state, launch) = (c.state(), Launch::new(c)?);
        let variables: Vec<Var<'_>> =
            (0..V).map(|at| state.input_variable(at)).collect::<Result<_, _>>()?;
        let variables: Vec<&Var<'_>> = variables.iter().collect();
        let mut locked = state.lock(&variables)?;
        locked.differ(V)?;
        let gradient = launch.input(self.gradient)?;
        let mut operands: Vec<Operand> = Vec::with_capacity(V + 1);
        let mut trained: Option<Vec<i64>> = None;
        for (at, name) in self.names.iter().enumerate() {
            let (operand, dims) = launch.variable(&mut locked, at, self.dtype)?;
            let first = trained.get_or_insert_with(|| dims.clone());
            same_shape((&self.names[0], first), name, &dims)?;
            operands.push(operand);
        }
        let dims = trained.unwrap_or_default();
        same_shape((&self.names[0], &dims), "the gradient", c.dims(self.gradient))?;
        let scalars = self.scalars(c, &launch)?;
        let state = std::array::from_fn(|at| operands[at].address);
        operands.push(gradient);
        let access = Access::whole(gradient.elements, &operands);
        let arguments = (state, gradient.address, scalars, gradient.elements);
        let grid = access.grid(gradient.elements, &launch);
        // SAFETY: variables and gradient have one shape, so `elements` elements each, and the
        // variables differ; the scalars have one. The guard lives until the launch is enqueued, and
        // the host has later calls of other streams wait for this one.
        unsafe { self.entries.run(&launch, access, grid, arguments) }
    }
}

/// Registers rules and lists them.
macro_rules! rules {
    ($($op:literal: $class:ident of $variables:literal, [$($scalar:literal),+] $(, $flag:literal)?, for $types:ident;)*) => {
        const RULES: &[Rule] = &[$(Rule {
            op: $op,
            class: stringify!($class),
            variables: $variables,
            scalars: &[$($scalar),+],
            flag: rules!(@flag $($flag)?),
            types: $types,
        }),*];
        $(register_kernel!($op on "CUDA": Dense<$variables, { [$($scalar),+].len() }>,
            types = ("T", $types));)*
    };
    (@flag $flag:literal) => { Some($flag) };
    (@flag) => { None };
}

rules! {
    "ResourceApplyGradientDescent": GradientDescent of 1, ["alpha"], for FLOATS;
    "ResourceApplyMomentum": Momentum of 2, ["lr", "momentum"], "use_nesterov", for FLOATS;
    "ResourceApplyKerasMomentum": KerasMomentum of 2, ["lr", "momentum"], "use_nesterov", for FLOATS;
    "ResourceApplyAdagrad": Adagrad of 2, ["lr"], "update_slots", for FLOATS;
    "ResourceApplyAdagradV2": AdagradV2 of 2, ["lr", "epsilon"], "update_slots", for FLOATS;
    "ResourceApplyAdagradDA": AdagradDa of 3, ["lr", "l1", "l2", "global_step"], for DOUBLES;
    "ResourceApplyAdadelta": Adadelta of 3, ["lr", "rho", "epsilon"], for FLOATS;
    "ResourceApplyRMSProp": RmsProp of 3, ["lr", "rho", "momentum", "epsilon"], for FLOATS;
    "ResourceApplyCenteredRMSProp": CenteredRmsProp of 4, ["lr", "rho", "momentum", "epsilon"],
        for FLOATS;
    "ResourceApplyAdam": Adam of 3, ["beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"],
        "use_nesterov", for FLOATS;
    "ResourceApplyAdamWithAmsgrad": Amsgrad of 4,
        ["beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"], for FLOATS;
    "ResourceApplyAdaMax": AdaMax of 3, ["beta1_power", "lr", "beta1", "beta2", "epsilon"],
        for WITHOUT_BF16;
    "ResourceApplyAddSign": AddSign of 2, ["lr", "alpha", "sign_decay", "beta"], for FLOATS;
    "ResourceApplyPowerSign": PowerSign of 2, ["lr", "logbase", "sign_decay", "beta"], for FLOATS;
    "ResourceApplyProximalGradientDescent": ProximalGradientDescent of 1, ["alpha", "l1", "l2"],
        for DOUBLES;
    "ResourceApplyProximalAdagrad": ProximalAdagrad of 2, ["lr", "l1", "l2"], for DOUBLES;
    "ResourceApplyFtrl": Ftrl of 3, ["lr", "l1", "l2", "lr_power"], "multiply_linear_by_lr", for FLOATS;
    "ResourceApplyFtrlV2": FtrlV2 of 3, ["lr", "l1", "l2", "lr_power", "l2_shrinkage"],
        "multiply_linear_by_lr", for FLOATS;
}
