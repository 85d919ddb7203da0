//! Datasets of the elements of another that are made once, and kept in memory, or in files (`cache_file`).
//!
//! In memory, the first walk that comes to the end fills the cache; walks that begin later read it.

use super::{
    Cardinality, Context, Dataset, DatasetValue, Element, Elements, Input, Next, Shared,
    cache_file::FileCache,
    make::{Build, Make, dataset_in, text},
    shuffle::{Deleter, delete},
};
use crate::files::{Access, access};
use std::sync::{Arc, OnceLock};
use tenon_sdk::{growth, prelude::*};

/// The elements, once they are all there.
type Store = Arc<OnceLock<Arc<Vec<Element>>>>;

/// A cache that datasets share.
#[derive(Default)]
struct SharedCache(Store);

impl ResourceValue for SharedCache {
    const NAME: &'static str = "tenon_data.Cache";
}

/// What a dummy handle leads to.
struct NoCache;

impl ResourceValue for NoCache {
    const NAME: &'static str = "tenon_data.NoCache";
}

/// What the handle of no counter leads to.
struct NoCounter;

impl ResourceValue for NoCounter {
    const NAME: &'static str = "tenon_data.NoCounter";
}

struct Cache {
    input: Shared,
    store: Store,
}

struct MakeCache(Access);

impl Build for MakeCache {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        access(c).map(MakeCache)
    }

    fn build(&self, c: &ComputeContext<'_>) -> Result<Shared, KernelError> {
        let file = text(c, 1, "filename")?;
        let DatasetValue { dataset, spec, .. } = dataset_in(c, 0)?;
        if !file.is_empty() {
            let prefix = growth::copied(file)?;
            return Ok(Arc::new(FileCache::new(dataset, spec, prefix, &self.0)));
        }
        let input = Arc::clone(dataset);
        let mut store = Store::default();
        if c.input_count() > 2
            && let Ok(shared) = c.state().input_resource::<SharedCache>(2)
        {
            store = Arc::clone(&shared.0);
        }
        Ok(Arc::new(Cache { input, store }))
    }
}

impl Dataset for Cache {
    fn elements(&self) -> Box<dyn Elements> {
        match self.store.get() {
            Some(elements) => Box::new(Reader { elements: Arc::clone(elements), next: 0 }),
            None => Box::new(Writer {
                input: Input::of(&self.input),
                store: Arc::clone(&self.store),
                elements: Vec::new(),
            }),
        }
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }

    fn batch_size(&self) -> Option<usize> {
        self.input.batch_size()
    }
}

/// Makes elements, and keeps them.
struct Writer {
    input: Input,
    store: Store,
    elements: Vec<Element>,
}

impl Elements for Writer {
    fn next<'a>(&'a mut self, context: &'a Context) -> Next<'a> {
        Box::pin(async move {
            match self.input.next(context).await? {
                Some(element) => {
                    growth::push(&mut self.elements, growth::copied(&element)?)?;
                    Ok(Some(element))
                }
                None => {
                    // Another walk may have been first; its elements stay.
                    let elements = std::mem::take(&mut self.elements);
                    drop(self.store.set(Arc::new(elements)));
                    Ok(None)
                }
            }
        })
    }
}

struct Reader {
    elements: Arc<Vec<Element>>,
    next: usize,
}

impl Elements for Reader {
    fn next<'a>(&'a mut self, _: &'a Context) -> Next<'a> {
        Box::pin(async move {
            let Some(element) = self.elements.get(self.next) else { return Ok(None) };
            self.next += 1;
            growth::copied(element).map(Some)
        })
    }
}

fn make_shared(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.output_handle(0, &c.state().find_or_create("", "", || Ok(SharedCache::default()))?)?;
    c.set_variant(1, Variant::new(Deleter))
}

fn no_cache(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.output_handle(0, &c.state().find_or_create("", "", || Ok(NoCache))?)
}

fn no_counter(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.output_handle(0, &c.state().find_or_create("", "", || Ok(NoCounter))?)
}

register_kernel!("CacheDataset" on "CPU": Make<MakeCache>);
register_kernel!("CacheDatasetV2" on "CPU": Make<MakeCache>);
register_kernel!("AnonymousMemoryCache" on "CPU": fn make_shared);
register_kernel!("DummyMemoryCache" on "CPU": fn no_cache);
register_kernel!("DeleteMemoryCache" on "CPU": fn delete);
register_kernel!("DummyIterationCounter" on "CPU": fn no_counter);
