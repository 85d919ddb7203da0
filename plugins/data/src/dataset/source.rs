//! Datasets of tensors and of numbers.

use super::{
    Cardinality, Context, Dataset, Element, Elements, Next, Shared,
    element::whole,
    make::{Build, Make, number},
};
use crate::queue::Component;
use std::sync::Arc;
use tenon_sdk::{growth, prelude::*};

/// All components of the node's list argument.
fn components(c: &ComputeContext<'_>) -> Result<Vec<Arc<Kept>>, KernelError> {
    growth::try_collected((0..c.input_count()).map(|at| c.keep(at).map(Arc::new)))
}

/// One element.
struct Tensors(Vec<Arc<Kept>>);

impl Build for Tensors {
    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Tensors(Vec::new()))
    }

    fn build(&self, c: &ComputeContext<'_>) -> Result<Shared, KernelError> {
        Ok(Arc::new(Tensors(components(c)?)))
    }
}

impl Dataset for Tensors {
    fn elements(&self) -> Box<dyn Elements> {
        Box::new(One(Some(self.0.iter().map(Component::whole).collect())))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Finite(1)
    }
}

struct One(Option<Element>);

impl Elements for One {
    fn next<'a>(&'a mut self, _: &'a Context) -> Next<'a> {
        let element = self.0.take();
        Box::pin(async move { Ok(element) })
    }
}

/// Elements that are rows.
struct Slices {
    tensors: Arc<Vec<Arc<Kept>>>,
    rows: usize,
}

impl Build for Slices {
    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Slices { tensors: Arc::default(), rows: 0 })
    }

    fn build(&self, c: &ComputeContext<'_>) -> Result<Shared, KernelError> {
        let tensors = components(c)?;
        let mut rows = None;
        for (at, tensor) in tensors.iter().enumerate() {
            let Some(&found) = tensor.dims().first() else {
                return Err(KernelError::invalid_argument(format!(
                    "components: expected at least one dimension, found a scalar as component {at}"
                )));
            };
            let expected = *rows.get_or_insert(found);
            if expected != found {
                return Err(KernelError::invalid_argument(format!(
                    "components: expected {expected} rows, as component 0 has, found {found} in component {at}"
                )));
            }
        }
        let rows = rows.unwrap_or(0) as usize;
        Ok(Arc::new(Slices { tensors: Arc::new(tensors), rows }))
    }
}

impl Dataset for Slices {
    fn elements(&self) -> Box<dyn Elements> {
        Box::new(Rows { tensors: Arc::clone(&self.tensors), rows: self.rows, next: 0 })
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Finite(self.rows as u64)
    }
}

struct Rows {
    tensors: Arc<Vec<Arc<Kept>>>,
    rows: usize,
    next: usize,
}

impl Elements for Rows {
    fn next<'a>(&'a mut self, _: &'a Context) -> Next<'a> {
        Box::pin(async move {
            if self.next == self.rows {
                return Ok(None);
            }
            self.next += 1;
            let row = |tensor| Component::row(tensor, self.next - 1);
            growth::collected(self.tensors.iter().map(row)).map(Some)
        })
    }
}

/// Numbers at equal distances.
#[derive(Clone, Copy)]
struct Numbers {
    next: i64,
    stop: i64,
    step: i64,
    dtype: DType,
}

impl Build for Numbers {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let types: Vec<DType> = c.attr("output_types")?;
        let &[dtype] = &types[..] else {
            return Err(KernelError::invalid_argument(format!(
                "output_types: expected one type, found {}",
                types.len()
            )));
        };
        Ok(Numbers { next: 0, stop: 0, step: 1, dtype })
    }

    fn build(&self, c: &ComputeContext<'_>) -> Result<Shared, KernelError> {
        let (next, stop) = (number(c, 0, "start")?, number(c, 1, "stop")?);
        let step = number(c, 2, "step")?;
        if step == 0 {
            return Err(KernelError::invalid_argument("step: expected a number but 0, found 0"));
        }
        Ok(Arc::new(Numbers { next, stop, step, dtype: self.dtype }))
    }
}

impl Dataset for Numbers {
    fn elements(&self) -> Box<dyn Elements> {
        Box::new(*self)
    }

    fn cardinality(&self) -> Cardinality {
        let (from, to) =
            if self.step > 0 { (self.next, self.stop) } else { (self.stop, self.next) };
        let distance = if from < to { to.abs_diff(from) } else { 0 };
        Cardinality::Finite(distance.div_ceil(self.step.unsigned_abs()))
    }
}

impl Elements for Numbers {
    fn next<'a>(&'a mut self, _: &'a Context) -> Next<'a> {
        Box::pin(async move {
            let value = self.next;
            if if self.step > 0 { value >= self.stop } else { value <= self.stop } {
                return Ok(None);
            }
            // A number beyond the range of the type is beyond the stop.
            self.next = value.saturating_add(self.step);
            whole([scalar(value, self.dtype)?]).map(Some)
        })
    }
}

/// A number as a tensor of a type, converted as the language does.
fn scalar(value: i64, dtype: DType) -> Result<Kept, KernelError> {
    match dtype {
        DType::INT64 => Kept::new(&[], &[value]),
        DType::INT32 => Kept::new(&[], &[value as i32]),
        DType::INT16 => Kept::new(&[], &[value as i16]),
        DType::INT8 => Kept::new(&[], &[value as i8]),
        DType::UINT64 => Kept::new(&[], &[value as u64]),
        DType::UINT32 => Kept::new(&[], &[value as u32]),
        DType::UINT16 => Kept::new(&[], &[value as u16]),
        DType::UINT8 => Kept::new(&[], &[value as u8]),
        DType::DOUBLE => Kept::new(&[], &[value as f64]),
        DType::FLOAT => Kept::new(&[], &[value as f32]),
        DType::HALF => Kept::new(&[], &[f16::from_f64(value as f64)]),
        DType::BFLOAT16 => Kept::new(&[], &[bf16::from_f64(value as f64)]),
        other => Err(KernelError::invalid_argument(format!(
            "output_types: expected a type of numbers, found {other}"
        ))),
    }
}

register_kernel!("TensorDataset" on "CPU": Make<Tensors>);
register_kernel!("TensorSliceDataset" on "CPU": Make<Slices>);
register_kernel!("RangeDataset" on "CPU": Make<Numbers>);
