//! Variables in parts.

use crate::{
    Initial, TrainError, Variable, VariableDevices, VariableOptions, Variables,
    devices::bytes,
    nodes::{Scope, constant},
};
use tenon_framework::{DType, Shape, Tensor};
use tenon_graph::{GraphBuilder, Output};
use tenon_proto::SaveSliceInfoDef;

/// How many parts a variable has, and along which dimension it is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partitioner {
    /// This number, or the size of the dimension if that is less (`tf.compat.v1.fixed_size_partitioner`).
    FixedSize {
        /// The parts.
        parts: u64,
        /// The dimension.
        axis: usize,
    },
    /// So many that a part has at least so many bytes (`tf.compat.v1.min_max_variable_partitioner`).
    MinMax {
        /// The most parts.
        max_parts: u64,
        /// The dimension.
        axis: usize,
        /// The fewest bytes of a part.
        min_bytes: u64,
    },
}

impl Partitioner {
    /// At most so many parts of at least 256 KiB along the first dimension, TensorFlow's defaults.
    pub fn min_max(max_parts: u64) -> Partitioner {
        Partitioner::MinMax { max_parts, axis: 0, min_bytes: 256 << 10 }
    }

    /// The dimension, and the first element and size of each part along it. The first parts are one larger where the size
    /// is no multiple.
    ///
    /// # Errors
    /// The shape has no such dimension, or the number of parts or of bytes is zero.
    pub fn parts(
        &self,
        dtype: DType,
        shape: &Shape,
    ) -> Result<(usize, Vec<(i64, i64)>), TrainError> {
        let (Partitioner::FixedSize { axis, .. } | Partitioner::MinMax { axis, .. }) = *self;
        let Some(&size) = shape.dims().get(axis) else {
            let expected = format!("a variable with a dimension {axis}");
            return Err(TrainError::argument("a partitioner", expected, format!("shape {shape}")));
        };
        let most = u64::try_from(size).unwrap_or(0).max(1);
        let parts = match *self {
            Partitioner::FixedSize { parts, .. } => parts,
            Partitioner::MinMax { max_parts, min_bytes, .. } if min_bytes > 0 => {
                max_parts.min(bytes(dtype, shape)?.div_ceil(min_bytes).max(1))
            }
            Partitioner::MinMax { .. } => 0,
        };
        if parts == 0 {
            let expected = "at least one part, and at least one byte in each";
            return Err(TrainError::argument("a partitioner", expected, format!("{self:?}")));
        }
        let parts = parts.min(most) as i64;
        let (least, larger) = (size / parts, size % parts);
        let start = |at: i64| at * least + at.min(larger);
        Ok((axis, (0..parts).map(|at| (start(at), least + i64::from(at < larger))).collect()))
    }
}

/// A variable in parts.
#[derive(Debug, Clone)]
pub struct PartitionedVariable {
    /// The name of the whole.
    pub name: String,
    /// The parts: `name/part_0` and so on. Checkpoints have them as slices of the whole.
    pub parts: Vec<Variable>,
    /// The dimension along which the parts follow each other.
    pub axis: usize,
    /// The value of the whole. Gradients with respect to it reach the parts.
    pub value: Output,
}

impl Variables {
    /// Adds a variable in parts, which are cut from one initial value. With `devices`, each part gets its own device.
    ///
    /// # Errors
    /// As [`Variables::add_with`] and [`Partitioner::parts`].
    #[expect(clippy::too_many_arguments, reason = "those of a variable, and how it is cut")]
    pub fn add_partitioned(
        &mut self,
        b: &mut GraphBuilder<'_>,
        name: &str,
        dtype: DType,
        dims: &[i64],
        initial: &Initial,
        partitioner: Partitioner,
        mut devices: Option<&mut VariableDevices>,
    ) -> Result<PartitionedVariable, TrainError> {
        let shape = Shape::new(dims)?;
        let (axis, cuts) = partitioner.parts(dtype, &shape)?;
        let whole = initial.build(b, &format!("{name}/Initializer"), dtype, &shape)?;
        let mut parts = Vec::with_capacity(cuts.len());
        for (at, (start, size)) in cuts.into_iter().enumerate() {
            let (mut offset, mut extent) = (vec![0; dims.len()], dims.to_vec());
            (offset[axis], extent[axis]) = (start, size);
            let part = format!("{name}/part_{at}");
            let cut = cut(b, &part, whole, &offset, &extent)?;
            let device = match devices.as_deref_mut() {
                Some(devices) => devices.choose(dtype, &Shape::new(&extent)?)?,
                None => String::new(),
            };
            let slice = SaveSliceInfoDef {
                full_name: name.to_owned(),
                full_shape: dims.to_vec(),
                var_offset: offset,
                var_shape: extent.clone(),
            };
            let options = VariableOptions { is_trainable: true, device, slice: Some(slice) };
            parts.push(self.add_with(b, &part, dtype, &extent, &Initial::Output(cut), options)?);
        }
        let value = match parts.as_slice() {
            [part] => part.value,
            _ => {
                let axis =
                    constant(b, &format!("{name}/concat/axis"), Tensor::scalar(axis as i64)?)?;
                let values = parts.iter().map(|part| part.value);
                let concat = b.op("ConcatV2").name(&format!("{name}/concat")).inputs(values);
                concat.input(axis).build()?.into()
            }
        };
        Ok(PartitionedVariable { name: name.to_owned(), parts, axis, value })
    }
}

/// A part of an initial value.
fn cut(
    b: &mut GraphBuilder<'_>,
    part: &str,
    whole: Output,
    offset: &[i64],
    extent: &[i64],
) -> Result<Output, TrainError> {
    let prefix = format!("{part}/Initializer");
    let mut scope = Scope::new(b, &prefix, "");
    let rank = [offset.len() as i64];
    let begin = scope.constant("begin", Tensor::from_slice(&rank, offset)?)?;
    let size = scope.constant("size", Tensor::from_slice(&rank, extent)?)?;
    Ok(scope.node("Slice").input(whole).input(begin).input(size).build()?.into())
}
