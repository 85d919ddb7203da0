//! Datasets of some elements of another, or of all of them several times.

use super::{
    Cardinality, Context, Dataset, Elements, Input, Next, Shared,
    make::{Build, Make, dataset_in, number, unexpected},
};
use std::sync::Arc;
use tenon_sdk::prelude::*;

/// Elements again and again.
struct Repeat {
    input: Shared,
    /// How often; `None` for ever.
    count: Option<u64>,
}

/// A dataset with a count, of which a negative one means no limit.
macro_rules! counted {
    ($kernel:ident: $dataset:ident) => {
        struct $kernel;

        impl Build for $kernel {
            fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
                Ok($kernel)
            }

            fn build(&self, c: &ComputeContext<'_>) -> Result<Shared, KernelError> {
                let input = Arc::clone(&dataset_in(c, 0)?.dataset);
                let count = u64::try_from(number(c, 1, "count")?).ok();
                Ok(Arc::new($dataset { input, count }))
            }
        }
    };
}

counted!(MakeRepeat: Repeat);
counted!(MakeTake: Take);
counted!(MakeSkip: Skip);

impl Dataset for Repeat {
    fn elements(&self) -> Box<dyn Elements> {
        let input = Arc::clone(&self.input);
        Box::new(Repeated { input, left: self.count, current: None, is_new: true })
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality().repeated(self.count)
    }

    fn batch_size(&self) -> Option<usize> {
        self.input.batch_size()
    }
}

struct Repeated {
    input: Shared,
    left: Option<u64>,
    current: Option<Input>,
    /// Whether the current walk has given nothing yet.
    is_new: bool,
}

impl Elements for Repeated {
    fn next<'a>(&'a mut self, context: &'a Context) -> Next<'a> {
        Box::pin(async move {
            loop {
                if self.left == Some(0) {
                    self.current = None;
                    return Ok(None);
                }
                context.check()?;
                let current = self.current.get_or_insert_with(|| {
                    self.is_new = true;
                    Input::of(&self.input)
                });
                if let Some(element) = current.next(context).await? {
                    self.is_new = false;
                    return Ok(Some(element));
                }
                self.current = None;
                match &mut self.left {
                    Some(left) => *left -= 1,
                    // It would go on for ever without an element.
                    None if self.is_new => self.left = Some(0),
                    None => {}
                }
            }
        })
    }
}

/// The first elements.
struct Take {
    input: Shared,
    /// How many; `None` for all.
    count: Option<u64>,
}

impl Dataset for Take {
    fn elements(&self) -> Box<dyn Elements> {
        Box::new(Taken { input: Input::of(&self.input), left: self.count })
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality().first(self.count)
    }

    fn batch_size(&self) -> Option<usize> {
        self.input.batch_size()
    }
}

struct Taken {
    input: Input,
    left: Option<u64>,
}

impl Elements for Taken {
    fn next<'a>(&'a mut self, context: &'a Context) -> Next<'a> {
        Box::pin(async move {
            if self.left == Some(0) {
                self.input.end();
                return Ok(None);
            }
            let found = self.input.next(context).await?;
            self.left = self.left.map(|left| left - 1);
            Ok(found)
        })
    }
}

/// All but the first elements.
struct Skip {
    input: Shared,
    /// How many are left out; `None` for all.
    count: Option<u64>,
}

impl Dataset for Skip {
    fn elements(&self) -> Box<dyn Elements> {
        let mut input = Input::of(&self.input);
        if self.count.is_none() {
            input.end();
        }
        Box::new(Skipped { input, left: self.count.unwrap_or(0) })
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality().after(self.count)
    }

    fn batch_size(&self) -> Option<usize> {
        self.input.batch_size()
    }
}

struct Skipped {
    input: Input,
    left: u64,
}

impl Elements for Skipped {
    fn next<'a>(&'a mut self, context: &'a Context) -> Next<'a> {
        Box::pin(async move {
            while self.left > 0 {
                context.check()?;
                if self.input.next(context).await?.is_none() {
                    return Ok(None);
                }
                self.left -= 1;
            }
            self.input.next(context).await
        })
    }
}

/// Every n-th element.
struct MakeShard {
    is_each_needed: bool,
}

struct Shard {
    input: Shared,
    shards: u64,
    index: u64,
    is_each_needed: bool,
}

impl Build for MakeShard {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MakeShard { is_each_needed: c.attr("require_non_empty")? })
    }

    fn build(&self, c: &ComputeContext<'_>) -> Result<Shared, KernelError> {
        let (shards, index) = (number(c, 1, "num_shards")?, number(c, 2, "index")?);
        if shards < 1 {
            return Err(unexpected("num_shards", "at least 1", shards));
        }
        if !(0..shards).contains(&index) {
            return Err(unexpected("index", &format!("0 or more and less than {shards}"), index));
        }
        let input = Arc::clone(&dataset_in(c, 0)?.dataset);
        let (shards, index) = (shards as u64, index as u64);
        Ok(Arc::new(Shard { input, shards, index, is_each_needed: self.is_each_needed }))
    }
}

impl Dataset for Shard {
    fn elements(&self) -> Box<dyn Elements> {
        let Shard { ref input, shards, index, is_each_needed } = *self;
        Box::new(OfShard { input: Input::of(input), shards, index, is_each_needed, next: 0 })
    }

    fn cardinality(&self) -> Cardinality {
        let Shard { shards, index, .. } = *self;
        self.input.cardinality().finite(|rows| rows / shards + u64::from(index < rows % shards))
    }

    fn batch_size(&self) -> Option<usize> {
        self.input.batch_size()
    }
}

struct OfShard {
    input: Input,
    shards: u64,
    index: u64,
    is_each_needed: bool,
    /// Number of the element of the input that comes next.
    next: u64,
}

impl Elements for OfShard {
    fn next<'a>(&'a mut self, context: &'a Context) -> Next<'a> {
        Box::pin(async move {
            loop {
                context.check()?;
                let Some(element) = self.input.next(context).await? else { return Ok(None) };
                let number = self.next;
                self.next += 1;
                if number % self.shards != self.index {
                    continue;
                }
                if number == self.index && self.is_each_needed {
                    self.check_others(context).await?;
                }
                return Ok(Some(element));
            }
        })
    }
}

impl OfShard {
    /// Checks that the shards after this one have an element, which is passed over.
    async fn check_others(&mut self, context: &Context) -> Result<(), KernelError> {
        while self.next < self.shards {
            context.check()?;
            if self.input.next(context).await?.is_none() {
                return Err(KernelError::invalid_argument(format!(
                    "expected an element for each of {} shards, found {}: use fewer shards",
                    self.shards, self.next
                )));
            }
            self.next += 1;
        }
        Ok(())
    }
}

register_kernel!("RepeatDataset" on "CPU": Make<MakeRepeat>);
register_kernel!("TakeDataset" on "CPU": Make<MakeTake>);
register_kernel!("SkipDataset" on "CPU": Make<MakeSkip>);
register_kernel!("ShardDataset" on "CPU": Make<MakeShard>);
