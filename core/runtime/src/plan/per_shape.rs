//! Kernels that are chosen, or whose shapes are checked, once the shapes are known at run time.
//!
//! A node with an open choice, or with a kernel that leaves the shape check to the host, has one
//! [`PerShape`] in its plan, shared by all steps: a list of at most [`MAX_SHAPES`] entries ([`Entry`]),
//! each with the kernel for its shapes. The list is replaced as a whole under the lock, and read
//! without it. An entry never changes, and lives as long as the list or a call refers to it.

use arc_swap::ArcSwap;
use std::sync::Arc;
use tenon_framework::{
    KernelError, PartialShape, Shape,
    registry::KernelDef,
    sync::{Mutex, Rank},
};
use tenon_host::{call::NodeInfo, instance::KernelInstance};

/// The maximum number of shapes for which a node keeps kernels. A further one replaces the oldest,
/// whose kernel is created again when its shapes return.
pub(crate) const MAX_SHAPES: usize = 16;

/// The outermost rank: kernels are created under this lock.
const FILLING: Rank = Rank(5);

/// The kernel of a node: created with the plan, or per shape.
pub(crate) enum Choice {
    /// The kernel exists.
    Made(Arc<KernelInstance>),
    /// The choice is open until the shapes are known; or the kernel exists, and the shapes are
    /// checked once they are known.
    PerShape(Arc<PerShape>),
}

impl Choice {
    /// The node information that all calls share.
    pub fn info(&self) -> &Arc<NodeInfo> {
        match self {
            Choice::Made(instance) => instance.node(),
            Choice::PerShape(table) => &table.info,
        }
    }

    /// Whether outputs may get their buffers before the call; kernels of the host may return the
    /// buffer of an input instead.
    pub fn may_plan(&self) -> bool {
        match self {
            Choice::Made(instance) => !is_host_own(instance.def()),
            Choice::PerShape(table) => table.may_plan,
        }
    }

    /// Whether every candidate only forwards buffers and enqueues nothing.
    pub fn is_host_own(&self) -> bool {
        match self {
            Choice::Made(instance) => is_host_own(instance.def()),
            Choice::PerShape(table) => table.is_host_own,
        }
    }
}

/// Whether a kernel is one that the host provides for every device type.
fn is_host_own(kernel: &KernelDef) -> bool {
    kernel.device_type == "DEFAULT"
}

/// Creates the kernel for new shapes.
pub(crate) trait MakeKernel: Send + Sync {
    /// The kernel for these shapes. Fails if a kernel that supports the shapes cannot be created,
    /// if no kernel supports them, or if the shape function refuses them.
    fn make(&self, shapes: &[PartialShape]) -> Result<Arc<KernelInstance>, KernelError>;
}

/// The rank in a key for an input whose shape is unknown even at run time: a reference.
const NO_SHAPE: i64 = -1;

/// The kernel for the shapes of one call.
pub(crate) struct Entry {
    /// The rank and the dimensions of each input, one after the other.
    key: Box<[i64]>,
    pub instance: Arc<KernelInstance>,
}

impl Entry {
    /// Whether the entry is for these shapes.
    pub fn fits<'s>(&self, shapes: impl Iterator<Item = Option<&'s [i64]>>) -> bool {
        let mut key = &*self.key;
        for shape in shapes {
            let (rank, dims) = parts(shape);
            let Some((head, rest)) = key.split_first() else { return false };
            if *head != rank || rest.len() < dims.len() || rest[..dims.len()] != *dims {
                return false;
            }
            key = &rest[dims.len()..];
        }
        key.is_empty()
    }
}

fn parts(shape: Option<&[i64]>) -> (i64, &[i64]) {
    shape.map_or((NO_SHAPE, &[]), |dims| (dims.len() as i64, dims))
}

fn partial(shape: Option<&[i64]>) -> PartialShape {
    let full = shape.and_then(|dims| Shape::new(dims).ok());
    full.map_or(PartialShape::UNKNOWN, PartialShape::from)
}

/// The table of a node; see the module's docs.
pub(crate) struct PerShape {
    info: Arc<NodeInfo>,
    flags: u32,
    may_plan: bool,
    is_host_own: bool,
    /// The kernel for all shapes, if only their check is open.
    made: Option<Arc<KernelInstance>>,
    maker: Box<dyn MakeKernel>,
    /// The entries, oldest first.
    entries: ArcSwap<Vec<Arc<Entry>>>,
    filling: Mutex<()>,
}

impl PerShape {
    /// Creates an empty table over the candidate kernels.
    pub fn new(
        info: NodeInfo,
        kernels: &[Arc<KernelDef>],
        maker: Box<dyn MakeKernel>,
    ) -> Arc<PerShape> {
        PerShape::with(Arc::new(info), None, kernels, maker)
    }

    /// Creates an empty table for an existing kernel; `maker` checks shapes and returns this
    /// kernel.
    pub fn checked(made: Arc<KernelInstance>, maker: Box<dyn MakeKernel>) -> Arc<PerShape> {
        let def = [Arc::clone(made.def())];
        PerShape::with(Arc::clone(made.node()), Some(made), &def, maker)
    }

    fn with(
        info: Arc<NodeInfo>,
        made: Option<Arc<KernelInstance>>,
        kernels: &[Arc<KernelDef>],
        maker: Box<dyn MakeKernel>,
    ) -> Arc<PerShape> {
        Arc::new(PerShape {
            info,
            flags: kernels.iter().fold(0, |flags, kernel| flags | kernel.table.flags),
            may_plan: !kernels.iter().any(|kernel| is_host_own(kernel)),
            is_host_own: kernels.iter().all(|kernel| is_host_own(kernel)),
            made,
            maker,
            entries: ArcSwap::default(),
            filling: Mutex::ranked(FILLING, ()),
        })
    }

    /// The combined flags of all candidates.
    pub fn flags(&self) -> u32 {
        self.flags
    }

    /// The kernel for all shapes, if only their check is open.
    pub fn made(&self) -> Option<&Arc<KernelInstance>> {
        self.made.as_ref()
    }

    /// The entry for these shapes, created at their first use. `None` stands for an unknown shape.
    pub fn get<'s, S>(&self, shapes: S) -> Result<Arc<Entry>, KernelError>
    where
        S: Iterator<Item = Option<&'s [i64]>> + Clone,
    {
        match self.find(shapes.clone()) {
            Some(entry) => Ok(entry),
            None => self.fill(shapes),
        }
    }

    fn find<'s, S>(&self, shapes: S) -> Option<Arc<Entry>>
    where
        S: Iterator<Item = Option<&'s [i64]>> + Clone,
    {
        let entries = self.entries.load();
        entries.iter().find(|entry| entry.fits(shapes.clone())).cloned()
    }

    #[cold]
    fn fill<'s, S>(&self, shapes: S) -> Result<Arc<Entry>, KernelError>
    where
        S: Iterator<Item = Option<&'s [i64]>> + Clone,
    {
        let _filling = self.filling.lock();
        // Another step may have added the shapes meanwhile.
        if let Some(entry) = self.find(shapes.clone()) {
            return Ok(entry);
        }
        let asked: Vec<PartialShape> = shapes.clone().map(partial).collect();
        let instance = self.maker.make(&asked)?;
        let key = shapes.flat_map(|shape| {
            let (rank, dims) = parts(shape);
            std::iter::once(rank).chain(dims.iter().copied())
        });
        let entry = Arc::new(Entry { key: key.collect(), instance });
        let old = self.entries.load();
        let kept = old.iter().skip((old.len() + 1).saturating_sub(MAX_SHAPES)).cloned();
        self.entries.store(Arc::new(kept.chain([Arc::clone(&entry)]).collect()));
        Ok(entry)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use tenon_host::{Plugins, Settings, memory::HostMemory};

    struct Refuses;

    impl MakeKernel for Refuses {
        fn make(&self, shapes: &[PartialShape]) -> Result<Arc<KernelInstance>, KernelError> {
            Err(KernelError::invalid_argument(format!("{shapes:?}")))
        }
    }

    /// A choice between kernels: this many of the host's own `Identity`, and this many of a
    /// device's.
    fn choice(own: usize, others: usize) -> Choice {
        let plugins = Plugins::with_settings(Settings::default()).unwrap();
        let host = Arc::clone(&plugins.registry().kernels_of("Identity")[0]);
        let device = KernelDef { device_type: "ACCEL".to_owned(), ..(*host).clone() };
        let mut kernels = vec![host; own];
        kernels.resize(own + others, Arc::new(device));
        let info = NodeInfo {
            name: "y".to_owned(),
            op: "Identity".to_owned(),
            def: None,
            outputs: Vec::new(),
            input_args: Vec::new(),
            output_args: Vec::new(),
            functions: Vec::new(),
            host_memory: HostMemory::shared().clone(),
            device_memory: HostMemory::shared().clone(),
            device: std::ptr::null_mut(),
            device_state: std::ptr::null_mut(),
        };
        Choice::PerShape(PerShape::new(info, &kernels, Box::new(Refuses)))
    }

    #[test]
    fn what_any_kernel_may_do_counts() {
        let facts = |own, others| {
            let choice = choice(own, others);
            (choice.is_host_own(), choice.may_plan())
        };
        assert_eq!(facts(1, 0), (true, false));
        assert_eq!(facts(0, 1), (false, true));
        assert_eq!(
            facts(1, 1),
            (false, false),
            "it may enqueue, and it may return its input's buffer"
        );
    }

    #[test]
    fn a_refusal_is_not_kept() {
        let Choice::PerShape(table) = choice(1, 0) else { panic!("an open choice") };
        for _ in 0..2 {
            let shapes = [Some(&[2i64, 3][..]), None];
            let error = table.get(shapes.into_iter()).err().expect("nobody takes it");
            assert!(error.message.contains("[2,3]"), "{error}");
        }
        assert!(table.entries.load().is_empty());
    }
}
