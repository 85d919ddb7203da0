//! The kernels that make queues.

use super::{Kind, Queue};
use crate::place::{Maker, Shared, input, output_reference};
use tenon_sdk::prelude::*;

struct Make {
    maker: Maker<Queue>,
    kind: Kind,
}

impl Kernel for Make {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Make { maker: Maker::new(c)?, kind: Kind::new(c)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let queue = self.maker.get(c, |place| Ok(Queue::new(place, self.kind.clone())))?;
        self.kind.check_same(&queue.kind, queue.place())?;
        self.maker.output(c, &queue)
    }
}

register_kernel!("FIFOQueue" on "CPU": Make);
register_kernel!("FIFOQueueV2" on "CPU": Make);
register_kernel!("PaddingFIFOQueue" on "CPU": Make);
register_kernel!("PaddingFIFOQueueV2" on "CPU": Make);
register_kernel!("PriorityQueue" on "CPU": Make);
register_kernel!("PriorityQueueV2" on "CPU": Make);
register_kernel!("RandomShuffleQueue" on "CPU": Make);
register_kernel!("RandomShuffleQueueV2" on "CPU": Make);

fn reference_of_handle(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    output_reference(c, &input::<Queue>(c)?)
}

register_kernel!("FakeQueue" on "CPU": fn reference_of_handle);
