//! The search for inputs that an op's shape function accepts.
//!
//! Inputs are chosen one after the other, those that carry data first, then indices, axes and shapes; what is
//! not chosen yet is unknown to the shape function, so that it refuses a wrong beginning early. Whether it looks
//! at the value of an index is found out by showing it one that no case can have.

use super::{palette, settings::Setting};
use tenon_framework::{
    DType, KernelError, PartialShape, Shape, Tensor,
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
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Chosen {
    pub dims: Vec<i64>,
    /// Its value, where the shape function looks at it.
    pub values: Option<Vec<i64>>,
}

/// Inputs that the shape function accepts under a setting.
#[derive(Debug, Clone)]
pub(super) struct Skeleton {
    /// Place of the setting.
    pub setting: usize,
    pub inputs: Vec<Chosen>,
    /// Elements of all inputs and of the outputs that are known.
    pub elements: i64,
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

/// The element types and roles of a setting's inputs.
pub(super) fn roles(op: &OpDef, setting: &Setting) -> Result<Vec<(DType, Role)>, OpError> {
    let signature = Signature::resolve(op, &setting.attrs)?;
    let role = |(at, &dtype): (usize, &DType)| {
        let arg = op.inputs.iter().find(|arg| signature.input_arg_of(op, at) == Some(&arg.name));
        (dtype, arg.map_or(Role::Data, |arg| role_of(op, arg, dtype)))
    };
    Ok(signature.inputs.iter().enumerate().map(role).collect())
}

fn role_of(op: &OpDef, arg: &ArgDef, dtype: DType) -> Role {
    const INDICES: [DType; 3] = [DType::INT16, DType::INT32, DType::INT64];
    if !super::subjects::is_made(dtype) {
        return Role::Opaque;
    }
    let index = match &arg.ty {
        ArgType::Fixed(dtype) => INDICES.contains(dtype),
        ArgType::Attr(name) => match op.attr(name).and_then(|attr| attr.allowed.as_ref()) {
            Some(Allowed::Types(types)) => types.iter().all(|dtype| INDICES.contains(dtype)),
            _ => false,
        },
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

/// One setting's search.
pub(super) struct Search<'a> {
    op: &'a OpDef,
    setting: usize,
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
}

impl<'a> Search<'a> {
    pub fn new(
        op: &'a OpDef,
        place: usize,
        setting: &Setting,
        types: Vec<(DType, Role)>,
        limits: Limits,
    ) -> Search<'a> {
        let count = types.len();
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|&at| types[at].1 == Role::Index);
        Search {
            op,
            setting: place,
            attrs: AttrTable::new(setting.attrs.clone()),
            types,
            order,
            limits,
            chosen: vec![None; count],
            tried: 0,
            found: Vec::new(),
            refusal: None,
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
        for &dims in first {
            self.choose(0, Chosen { dims: dims.to_vec(), values: None }, usize::MAX);
        }
        if self.types[self.order[0]].1 == Role::Index {
            self.indices(0, None);
        }
    }

    /// Whether this beginning is accepted, then all that can follow it. The number of inputs kept.
    fn choose(&mut self, level: usize, choice: Chosen, most: usize) -> usize {
        let at = self.order[level];
        if palette::elements(&choice.dims) > self.limits.elements || self.is_exhausted() {
            return 0;
        }
        self.chosen[at] = Some(choice);
        let before = self.found.len();
        if let Some(elements) = self.accepted() {
            match self.order.len() - 1 == level {
                true => self.keep(elements),
                false => self.follow(level + 1, most),
            }
        }
        self.chosen[at] = None;
        self.found.len() - before
    }

    fn is_exhausted(&self) -> bool {
        self.tried >= self.limits.tries
    }

    /// Chooses the input of this level.
    fn follow(&mut self, level: usize, most: usize) {
        let first = self.chosen[self.order[0]].as_ref().map(|chosen| chosen.dims.clone());
        let first = first.unwrap_or_default();
        if self.types[self.order[level]].1 == Role::Index {
            let data = self.types[self.order[0]].1 == Role::Data;
            return self.indices(level, data.then_some(&first[..]));
        }
        // The second input meets the first in many ways, the others are as those before them for the most.
        let width = if level == 1 { self.limits.companions } else { 2 };
        let last = self.chosen[self.order[level - 1]].as_ref().map(|chosen| chosen.dims.clone());
        let mut taken = 0;
        let repeated = last.into_iter().filter(|_| level > 1);
        for dims in repeated.chain(palette::companions(&first)) {
            let kept = self.choose(level, Chosen { dims, values: None }, most);
            taken += usize::from(kept > 0);
            if taken >= width || self.is_exhausted() {
                return;
            }
        }
    }

    /// Chooses an input of indices, with a value where the shape function looks at it.
    fn indices(&mut self, level: usize, first: Option<&[i64]>) {
        let at = self.order[level];
        let width = if first.is_none() { usize::MAX } else { 3 };
        let mut taken = 0;
        for dims in palette::index_shapes(first) {
            self.chosen[at] = Some(Chosen { dims: dims.clone(), values: None });
            let kept = match self.looks_at(at) {
                None => 0,
                Some(false) => {
                    // Chosen as data already, when it is the first.
                    let chosen = Chosen { dims, values: None };
                    if level == 0 { 0 } else { self.choose(level, chosen, usize::MAX) }
                }
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
            let chosen = Chosen { dims: dims.to_vec(), values: Some(values) };
            taken += usize::from(self.choose(level, chosen, usize::MAX) > 0);
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
        self.chosen[at] = Some(Chosen { dims: dims.clone(), values: Some(vec![WILD; count]) });
        let with = self.infer();
        self.chosen[at] = Some(Chosen { dims, values: None });
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
                Some(Chosen { dims, values }) => {
                    known(dims, values.as_deref(), dtype, &mut symbols)
                }
            })
            .collect();
        infer(self.op, &self.attrs, &infos.iter().collect::<Vec<_>>(), &mut symbols)
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
        self.found.push(Skeleton { setting: self.setting, inputs, elements: own + outputs });
    }
}

fn known(dims: &[i64], values: Option<&[i64]>, dtype: DType, symbols: &mut Symbols) -> ValueInfo {
    match values.and_then(|values| index_tensor(dtype, dims, values)) {
        Some(tensor) => ValueInfo::of_constant(tensor),
        None => match PartialShape::new(dims) {
            Ok(shape) => ValueInfo::of_shape(&shape, symbols),
            Err(_) => ValueInfo::default(),
        },
    }
}

/// Whether the shape function accepts a skeleton under these attributes and types.
pub(super) fn accepts(
    op: &OpDef,
    attrs: &AttrTable,
    types: &[(DType, Role)],
    inputs: &[Chosen],
) -> bool {
    let mut symbols = Symbols::default();
    let infos: Vec<ValueInfo> = (inputs.iter().zip(types))
        .map(|(chosen, &(dtype, _))| {
            known(&chosen.dims, chosen.values.as_deref(), dtype, &mut symbols)
        })
        .collect();
    let fits = (inputs.iter().zip(types)).all(|(chosen, &(dtype, _))| match &chosen.values {
        Some(values) => index_tensor(dtype, &chosen.dims, values).is_some(),
        None => true,
    });
    fits && infer(op, attrs, &infos.iter().collect::<Vec<_>>(), &mut symbols).is_ok()
}
