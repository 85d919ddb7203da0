//! The kernels that give iterators, and put them before the first element of a dataset.

use super::Iterator;
use crate::{
    dataset::{Deleter, Spec, dataset_in, delete},
    place::{Maker, Place, input_at, output_anonymous},
};
use std::sync::atomic::{AtomicU64, Ordering};
use tenon_sdk::prelude::*;

struct Handle {
    maker: Maker<Iterator>,
    spec: Spec,
}

impl Kernel for Handle {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Handle { maker: Maker::new(c)?, spec: Spec::new(c)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let iterator = self.maker.get(c, |place| Ok(Iterator::new(place, self.spec.clone())))?;
        self.spec.check(&iterator.spec, &iterator.label())?;
        self.maker.output(c, &iterator)
    }
}

struct Anonymous {
    spec: Spec,
    has_deleter: bool,
}

impl Kernel for Anonymous {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Anonymous { spec: Spec::new(c)?, has_deleter: c.output_types().len() > 1 })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("_anonymous_iterator_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let place = Place { container: "localhost".to_owned(), name };
        output_anonymous(c, Iterator::new(place, self.spec.clone()))?;
        if self.has_deleter {
            c.set_variant(1, Variant::new(Deleter))?;
        }
        Ok(())
    }
}

fn begin(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    input_at::<Iterator>(c, 1)?.begin(dataset_in(c, 0)?)
}

register_kernel!("Iterator" on "CPU": Handle);
register_kernel!("IteratorV2" on "CPU": Handle);
register_kernel!("AnonymousIterator" on "CPU": Anonymous);
register_kernel!("AnonymousIteratorV2" on "CPU": Anonymous);
register_kernel!("AnonymousIteratorV3" on "CPU": Anonymous);
register_kernel!("DeleteIterator" on "CPU": fn delete);
register_kernel!("MakeIterator" on "CPU": fn begin);
