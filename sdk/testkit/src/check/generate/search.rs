//! The search for inputs that an op's shape function accepts.
//!
//! Inputs are chosen one after the other, those that carry data first, then indices, axes and shapes; what is
//! not chosen yet is unknown to the shape function, so that it refuses a wrong beginning early. Whether it looks
//! at the value of an index is found out by showing it one that no case can have.

use super::{declared::Recipe, palette, settings::Setting};
use crate::node::is_panic;
use tenon_framework::{
    DType, KernelError, PartialShape, Shape, Tensor,
    attr::AttrMap,
    attr_view::AttrTable,
    infer::{Symbols, ValueInfo, infer},
    op::{Allowed, ArgDef, ArgType, OpDef, OpError, Signature},
};

/// What an input is for, as far as its type says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Elements to compute with.
    Data,
    /// Integers of a type that only indices, axes and sizes have.
    Index,
    /// Elements that only kernels make.
    Opaque,
}

/// An input as it is chosen.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Chosen {
    pub dims: Vec<i64>,
    /// Its value, of an index.
    pub values: Option<Vec<i64>>,
    /// Whether the shape function looks at the value.
    pub constant: bool,
    /// How the op's own case makes its elements; else the checker's choice.
    pub recipe: Option<Recipe>,
}

impl Chosen {
    /// An input of any value.
    pub fn shape(dims: Vec<i64>) -> Chosen {
        Chosen { dims, ..Chosen::default() }
    }

    /// An index of this value, at which the shape function looks.
    fn constant(dims: Vec<i64>, values: Vec<i64>) -> Chosen {
        Chosen { dims, values: Some(values), constant: true, recipe: None }
    }
}

/// Inputs that the shape function accepts under a setting.
#[derive(Debug, Clone)]
pub(super) struct Skeleton {
    /// Place of the setting.
    pub setting: usize,
    pub inputs: Vec<Chosen>,
    /// Elements of all inputs and of the outputs that are known.
    pub elements: i64,
    /// The op's own case that it is of, with the sizes that were chosen.
    pub declared: Option<String>,
}

/// How far the search goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Runs of the shape function.
    pub tries: usize,
    /// Most elements of an input, and of an output.
    pub elements: i64,
    /// Companions of a first input.
    pub companions: usize,
    /// Values of an index.
    pub values: usize,
}

/// The element types and roles of the inputs under these attributes.
pub(super) fn roles(op: &OpDef, attrs: &AttrMap) -> Result<Vec<(DType, Role)>, OpError> {
    let signature = Signature::resolve(op, attrs)?;
    let role = |(at, &dtype): (usize, &DType)| {
        let arg = op.inputs.iter().find(|arg| signature.input_arg_of(op, at) == Some(&arg.name));
        (dtype, arg.map_or(Role::Data, |arg| role_of(op, arg, dtype)))
    };
    Ok(signature.inputs.iter().enumerate().map(role).collect())
}

const INDICES: [DType; 3] = [DType::INT16, DType::INT32, DType::INT64];

fn role_of(op: &OpDef, arg: &ArgDef, dtype: DType) -> Role {
    if !super::subjects::is_made(dtype) {
        return Role::Opaque;
    }
    let index = match &arg.ty {
        ArgType::Fixed(dtype) => INDICES.contains(dtype),
        ArgType::Attr(name) => is_index_type(op, name),
        ArgType::ListAttr(_) => false,
    };
    if index { Role::Index } else { Role::Data }
}

/// A tensor of indices.
pub(super) fn index_tensor(dtype: DType, dims: &[i64], values: &[i64]) -> Option<Tensor> {
    fn of<T: tenon_framework::element::Element + TryFrom<i64>>(
        dims: &[i64],
        values: &[i64],
    ) -> Option<Tensor> {
        let values: Option<Vec<T>> = values.iter().map(|&v| T::try_from(v).ok()).collect();
        Tensor::from_slice(dims, &values?).ok()
    }
    match dtype {
        DType::INT16 => of::<i16>(dims, values),
        DType::INT32 => of::<i32>(dims, values),
        DType::INT64 => of::<i64>(dims, values),
        _ => None,
    }
}

/// The indices of a tensor.
pub(super) fn index_values(tensor: &Tensor) -> Option<Vec<i64>> {
    Some(match tensor.dtype() {
        DType::INT16 => tensor.as_slice::<i16>().ok()?.iter().map(|&x| x.into()).collect(),
        DType::INT32 => tensor.as_slice::<i32>().ok()?.iter().map(|&x| x.into()).collect(),
        DType::INT64 => tensor.as_slice::<i64>().ok()?.to_vec(),
        _ => return None,
    })
}

/// The same indices in another type, where it holds them.
pub(in crate::check) fn reindexed(tensor: &Tensor, dtype: DType) -> Option<Tensor> {
    index_tensor(dtype, tensor.shape().dims(), &index_values(tensor)?)
}

/// Whether an attribute is the type of indices, axes and sizes alone.
pub(super) fn is_index_type(op: &OpDef, attr: &str) -> bool {
    match op.attr(attr).and_then(|attr| attr.allowed.as_ref()) {
        Some(Allowed::Types(types)) => types.iter().all(|dtype| INDICES.contains(dtype)),
        _ => false,
    }
}

/// One setting's search.
pub(super) struct Search<'a> {
    op: &'a OpDef,
    setting: usize,
    /// How the setting differs from the base.
    label: String,
    attrs: AttrTable,
    types: Vec<(DType, Role)>,
    order: Vec<usize>,
    limits: Limits,
    /// What was chosen so far, by input.
    chosen: Vec<Option<Chosen>>,
    /// Runs of the shape function.
    pub tried: usize,
    /// What was accepted.
    pub found: Vec<Skeleton>,
    /// What the shape function said last when it refused.
    pub refusal: Option<String>,
    /// How it panicked first, with the inputs that it was asked about.
    pub panic: Option<String>,
}

impl<'a> Search<'a> {
    /// A search for the inputs that `given` leaves open, of which there is one per input.
    pub fn new(
        op: &'a OpDef,
        place: usize,
        setting: &Setting,
        (types, given): (Vec<(DType, Role)>, Vec<Option<Chosen>>),
        limits: Limits,
    ) -> Search<'a> {
        let mut order: Vec<usize> = (0..types.len()).filter(|&at| given[at].is_none()).collect();
        order.sort_by_key(|&at| types[at].1 == Role::Index);
        Search {
            op,
            setting: place,
            label: setting.label.clone(),
            attrs: AttrTable::new(setting.attrs.clone()),
            types,
            order,
            limits,
            chosen: given,
            tried: 0,
            found: Vec::new(),
            refusal: None,
            panic: None,
        }
    }

    /// Goes through these shapes of the first input.
    pub fn run(&mut self, first: &[&[i64]]) {
        if self.order.is_empty() {
            if let Some(elements) = self.accepted() {
                self.keep(elements);
            }
            return;
        }
        if self.chosen.iter().any(Option::is_some) {
            return self.follow(0);
        }
        for &dims in first {
            self.choose(0, Chosen::shape(dims.to_vec()));
        }
        if self.types[self.order[0]].1 == Role::Index {
            self.indices(0, None);
        }
    }

    /// Whether this beginning is accepted, then all that can follow it. The number of skeletons kept.
    fn choose(&mut self, level: usize, choice: Chosen) -> usize {
        let at = self.order[level];
        if palette::elements(&choice.dims) > self.limits.elements || self.is_exhausted() {
            return 0;
        }
        self.chosen[at] = Some(choice);
        let before = self.found.len();
        if let Some(elements) = self.accepted() {
            match self.order.len() - 1 == level {
                true => self.keep(elements),
                false => self.follow(level + 1),
            }
        }
        self.chosen[at] = None;
        self.found.len() - before
    }

    fn is_exhausted(&self) -> bool {
        self.tried >= self.limits.tries
    }

    /// Chooses the input of this level.
    fn follow(&mut self, level: usize) {
        let first = self.first();
        if self.types[self.order[level]].1 == Role::Index {
            return self.indices(level, first.as_deref());
        }
        // The second input meets the first in many ways, the others are as those before them for the most.
        let width = match (level, self.types.len()) {
            (0 | 1, 2) => self.limits.companions,
            (0 | 1, _) => self.limits.companions.div_ceil(2),
            _ => 2,
        };
        let last = level.checked_sub(1).and_then(|before| self.chosen[self.order[before]].as_ref());
        let repeated = last.map(|chosen| chosen.dims.clone()).filter(|_| level > 1);
        let mut taken = 0;
        for dims in repeated.into_iter().chain(palette::companions(&first.unwrap_or_default())) {
            taken += usize::from(self.choose(level, Chosen::shape(dims)) > 0);
            if taken >= width || self.is_exhausted() {
                return;
            }
        }
    }

    /// Shape of the first input that carries data.
    fn first(&self) -> Option<Vec<i64>> {
        let mut pairs = self.chosen.iter().zip(&self.types);
        pairs.find_map(|(chosen, (_, role))| match (chosen, role) {
            (Some(chosen), Role::Data) => Some(chosen.dims.clone()),
            _ => None,
        })
    }

    /// Chooses an input of indices, with a value where the shape function looks at it.
    fn indices(&mut self, level: usize, first: Option<&[i64]>) {
        let at = self.order[level];
        let width = if first.is_none() { usize::MAX } else { 3 };
        let mut taken = 0;
        for dims in palette::index_shapes(first) {
            self.chosen[at] = Some(Chosen::shape(dims.clone()));
            let kept = match self.looks_at(at) {
                None => 0,
                // Chosen as data already, when it is the first.
                Some(false) if level == 0 && first.is_none() => 0,
                Some(false) => self.choose(level, Chosen::shape(dims)),
                Some(true) => self.values(level, &dims, first.unwrap_or(&[])),
            };
            self.chosen[at] = None;
            taken += usize::from(kept > 0);
            if taken >= width || self.is_exhausted() {
                return;
            }
        }
    }

    fn values(&mut self, level: usize, dims: &[i64], first: &[i64]) -> usize {
        let before = self.found.len();
        let mut taken = 0;
        for values in palette::index_values(dims, first) {
            let chosen = Chosen::constant(dims.to_vec(), values);
            taken += usize::from(self.choose(level, chosen) > 0);
            if taken >= self.limits.values || self.is_exhausted() {
                break;
            }
        }
        self.found.len() - before
    }

    /// Whether the shape function looks at the value of an input, which is chosen without one; `None` when it
    /// refuses it as it is.
    fn looks_at(&mut self, at: usize) -> Option<bool> {
        /// No size, axis or amount of any case.
        const WILD: i64 = 16_273;
        let without = self.infer().ok()?;
        let dims = self.chosen[at].as_ref()?.dims.clone();
        let count = palette::elements(&dims) as usize;
        if count == 0 {
            // Nothing to look at but that there is nothing: known as a constant alone.
            return Some(true);
        }
        self.chosen[at] = Some(Chosen::constant(dims.clone(), vec![WILD; count]));
        let with = self.infer();
        self.chosen[at] = Some(Chosen::shape(dims));
        let shapes = |infos: &[ValueInfo]| -> Vec<PartialShape> {
            infos.iter().map(|info| info.shape.partial()).collect()
        };
        Some(with.map_or(true, |with| shapes(&with) != shapes(&without)))
    }

    fn infer(&mut self) -> Result<Vec<ValueInfo>, KernelError> {
        self.tried += 1;
        let mut symbols = Symbols::default();
        let infos: Vec<ValueInfo> = (self.chosen.iter().zip(&self.types))
            .map(|(chosen, &(dtype, _))| match chosen {
                None => ValueInfo::default(),
                Some(chosen) => known(chosen, dtype, &mut symbols),
            })
            .collect();
        let inferred = infer(self.op, &self.attrs, &infos.iter().collect::<Vec<_>>(), &mut symbols);
        if let Err(error) = &inferred
            && is_panic(error.code, &error.message)
            && self.panic.is_none()
        {
            self.panic = Some(self.panicked(&error.message));
        }
        inferred
    }

    /// A panic in words, with the arguments of the shape function.
    fn panicked(&self, message: &str) -> String {
        let told = |(chosen, (dtype, _)): (&Option<Chosen>, &(DType, Role))| match chosen {
            None => format!("{dtype} of unknown shape"),
            Some(Chosen { dims, values: Some(values), constant: true, .. }) => {
                format!("{dtype} {dims:?} of {values:?}")
            }
            Some(Chosen { dims, .. }) => format!("{dtype} {dims:?}"),
        };
        let inputs: Vec<String> = self.chosen.iter().zip(&self.types).map(told).collect();
        let attrs = match self.label.as_str() {
            "" => String::new(),
            label => format!("; attributes: {}", label.replace(':', ", ")),
        };
        format!(
            "{message}: expected shapes, or an error for inputs that are wrong; inputs: {}{attrs}",
            if inputs.is_empty() { "none".to_owned() } else { inputs.join(", ") }
        )
    }

    /// Elements of the outputs that are known, when the shape function accepts what is chosen and none of them
    /// is too large.
    fn accepted(&mut self) -> Option<i64> {
        match self.infer() {
            Ok(outputs) => {
                let sizes = outputs.iter().filter_map(|info| info.shape.partial().full());
                let sizes: Vec<i64> = sizes.map(|shape: Shape| shape.elements() as i64).collect();
                let small = sizes.iter().all(|&size| size <= self.limits.elements);
                small.then(|| sizes.iter().sum())
            }
            Err(error) => {
                self.refusal = Some(error.message);
                None
            }
        }
    }

    fn keep(&mut self, outputs: i64) {
        let inputs: Vec<Chosen> = self.chosen.iter().flatten().cloned().collect();
        let own: i64 = inputs.iter().map(|input| palette::elements(&input.dims)).sum();
        let (setting, elements) = (self.setting, own + outputs);
        self.found.push(Skeleton { setting, inputs, elements, declared: None });
    }
}

/// What the shape function gets of a chosen input.
fn known(chosen: &Chosen, dtype: DType, symbols: &mut Symbols) -> ValueInfo {
    let values = chosen.values.as_deref().filter(|_| chosen.constant);
    match values.and_then(|values| index_tensor(dtype, &chosen.dims, values)) {
        Some(tensor) => ValueInfo::of_constant(tensor),
        None => match PartialShape::new(&chosen.dims) {
            Ok(shape) => ValueInfo::of_shape(&shape, symbols),
            Err(_) => ValueInfo::default(),
        },
    }
}

/// What the shape function says of the outputs under these attributes and types.
///
/// # Errors
/// What it refuses; an index that its type does not hold.
pub(super) fn inferred(
    op: &OpDef,
    attrs: &AttrTable,
    types: &[(DType, Role)],
    inputs: &[Chosen],
) -> Result<Vec<PartialShape>, KernelError> {
    let mut symbols = Symbols::default();
    for (chosen, &(dtype, _)) in inputs.iter().zip(types) {
        let held = |values| index_tensor(dtype, &chosen.dims, values).is_some();
        if !chosen.values.as_deref().is_none_or(held) {
            return Err(KernelError::invalid_argument(format!("{dtype} does not hold an index")));
        }
    }
    let infos: Vec<ValueInfo> = (inputs.iter().zip(types))
        .map(|(chosen, &(dtype, _))| known(chosen, dtype, &mut symbols))
        .collect();
    let outputs = infer(op, attrs, &infos.iter().collect::<Vec<_>>(), &mut symbols)?;
    Ok(outputs.iter().map(|info| info.shape.partial()).collect())
}
