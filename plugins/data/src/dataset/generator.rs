//! Datasets whose elements functions generate: one makes a state, one makes an element each time it is called, until it
//! ends with `OUT_OF_RANGE`, and one ends what the state stands for.
//!
//! # States of a walk
//! *new* → *begun*, with a state, when the first element is asked for → *ended*: the last function was called, once.
//! A walk that is dropped while it has begun calls that function too, and does not wait for it.

use super::{
    Captured, Context, Dataset, Element, Elements, Next, Shared,
    make::{Build, Make},
};
use std::sync::Arc;
use tenon_sdk::{growth, prelude::*};

#[derive(Clone)]
struct Generator {
    init: Captured,
    next: Captured,
    finalize: Captured,
}

struct MakeGenerator;

impl Build for MakeGenerator {
    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MakeGenerator)
    }

    fn build(&self, c: &ComputeContext<'_>) -> Result<Shared, KernelError> {
        Ok(Arc::new(Generator {
            init: Captured::of(c, "init_func", c.input_range(0))?,
            next: Captured::of(c, "next_func", c.input_range(1))?,
            finalize: Captured::of(c, "finalize_func", c.input_range(2))?,
        }))
    }
}

impl Dataset for Generator {
    fn elements(&self) -> Box<dyn Elements> {
        Box::new(Generated { functions: self.clone(), stage: Stage::New })
    }
}

enum Stage {
    New,
    Begun(Element),
    Ended,
}

struct Generated {
    functions: Generator,
    stage: Stage,
}

impl Elements for Generated {
    fn next<'a>(&'a mut self, context: &'a Context) -> Next<'a> {
        Box::pin(async move {
            if let Stage::New = self.stage {
                self.stage = Stage::Begun(self.functions.init.call(context, Vec::new()).await?);
            }
            let Stage::Begun(state) = &self.stage else { return Ok(None) };
            match self.functions.next.call(context, growth::copied(state)?).await {
                Err(error) if error.code == Code::OUT_OF_RANGE => {}
                result => return result.map(Some),
            }
            let state = growth::copied(state)?;
            self.stage = Stage::Ended;
            self.functions.finalize.call(context, state).await?;
            Ok(None)
        })
    }
}

impl Drop for Generated {
    fn drop(&mut self) {
        if let Stage::Begun(state) = std::mem::replace(&mut self.stage, Stage::Ended) {
            self.functions.finalize.leave(state);
        }
    }
}

register_kernel!("GeneratorDataset" on "CPU": Make<MakeGenerator>);
