//! `CheckNumericsV2`, and `ComputeAccidentalHits`.

use std::{collections::HashMap, marker::PhantomData};
use tenon_sdk::{growth, prelude::*};

/// Fails for a tensor with an infinity or a NaN.
struct CheckNumerics<T> {
    message: String,
    of: PhantomData<fn(T)>,
}

impl<T: Number> Kernel for CheckNumerics<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let message = String::from_utf8_lossy(c.attr("message")?).into_owned();
        Ok(CheckNumerics { message, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let mut found = [false; 3];
        for &x in c.input::<T>(0)?.data {
            found[0] |= x == T::LOWEST;
            found[1] |= x == T::HIGHEST;
            found[2] |= x.is_nan();
        }
        let names = ["-Inf", "+Inf", "NaN"].into_iter().zip(found);
        let names: Vec<&str> = names.filter(|(_, found)| *found).map(|(name, _)| name).collect();
        let what = match names[..] {
            [] => return c.share(0, 0, c.dims(0)),
            [one] => one.to_owned(),
            [one, two] => format!("{one} and {two}"),
            _ => names.join(", ").replace(", NaN", ", and NaN"),
        };
        let message = format!("{} : Tensor had {what} values", self.message);
        Err(KernelError::invalid_argument(message))
    }
}

register_kernel!("CheckNumericsV2" on "CPU": CheckNumerics<T> for "T" in [bf16, f16, f32, f64],
    numerics = Numerics::EXACT);

/// Finds the true classes that were sampled too.
struct Hits {
    columns: i64,
}

impl Kernel for Hits {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Hits { columns: c.attr("num_true")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (classes, sampled) = (c.input::<i64>(0)?, c.input::<i64>(1)?);
        let (&[_, columns], [_]) = (classes.dims, sampled.dims) else {
            return Err(KernelError::invalid_argument(format!(
                "expected a matrix true_classes and a vector sampled_candidates, found shapes {:?} and {:?}",
                classes.dims, sampled.dims
            )));
        };
        if columns != self.columns {
            return Err(KernelError::invalid_argument(format!(
                "true_classes: expected num_true = {} columns, found {columns}",
                self.columns
            )));
        }
        // Of several samples of one class the last one counts.
        let mut positions = HashMap::new();
        growth::reserve_entries(&mut positions, sampled.data.len())?;
        positions.extend(sampled.data.iter().zip(0i64..));
        let (mut rows, mut ids) = (Vec::new(), Vec::new());
        for (row, classes) in classes.data.chunks_exact((columns as usize).max(1)).enumerate() {
            for position in classes.iter().filter_map(|class| positions.get(class)) {
                growth::push(&mut rows, row as i32)?;
                growth::push(&mut ids, *position)?;
            }
        }
        let dims = [rows.len() as i64];
        c.output::<i32>(0, &dims)?.data.copy_from_slice(&rows);
        c.output::<i64>(1, &dims)?.data.copy_from_slice(&ids);
        c.output::<f32>(2, &dims)?.data.fill(f32::MIN);
        Ok(())
    }
}

register_kernel!("ComputeAccidentalHits" on "CPU": Hits, numerics = Numerics::EXACT);
