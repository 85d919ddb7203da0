//! Kernels that are chosen, or whose shapes are checked, when the shapes are known: as a step runs.
//!
//! A node whose choice is open, or whose kernel leaves the check of its shapes to the host, has one [`PerShape`] in its plan, shared by all steps: a list of [`Entry`]s, at most
//! [`SHAPES`], each with the kernel that took its shapes. Who owns what: the list is replaced as a whole under the
//! lock, and read without one; an entry never changes, and lives as long as the list or a call has it.

use arc_swap::ArcSwap;
use std::sync::Arc;
use tenon_framework::{
    KernelError, PartialShape, Shape,
    registry::KernelDef,
    sync::{Mutex, Rank},
};
use tenon_host::{call::NodeInfo, instance::KernelInstance};

/// Most shapes that a node keeps a kernel for. One more takes the place of the oldest, whose kernel is made anew when
/// its shapes come again.
pub(crate) const SHAPES: usize = 16;

/// Outside all others: under it kernels are made.
const FILLING: Rank = Rank(5);

/// The kernel of a node: made with the plan, or per shape.
pub(crate) enum Choice {
    /// Made.
    Made(Arc<KernelInstance>),
    /// Open until the shapes are known; or made, and the shapes are checked when they are known.
    PerShape(Arc<PerShape>),
}

impl Choice {
    /// What the calls share.
    pub fn info(&self) -> &Arc<NodeInfo> {
        match self {
            Choice::Made(instance) => instance.node(),
            Choice::PerShape(table) => &table.info,
        }
    }

    /// Whether outputs may have their buffers before the call: kernels of the host's own return their input's.
    pub fn may_plan(&self) -> bool {
        match self {
            Choice::Made(instance) => !is_host_own(instance.def()),
            Choice::PerShape(table) => table.may_plan,
        }
    }

    /// Whether it passes buffers on and enqueues nothing, whichever kernel runs.
    pub fn is_host_own(&self) -> bool {
        match self {
            Choice::Made(instance) => is_host_own(instance.def()),
            Choice::PerShape(table) => table.is_host_own,
        }
    }
}

/// Whether a kernel is one of those that the host offers for every device type.
fn is_host_own(kernel: &KernelDef) -> bool {
    kernel.device_type == "DEFAULT"
}

/// Gives the kernel for shapes that come for the first time.
pub(crate) trait MakeKernel: Send + Sync {
    /// The kernel; the error of one that takes the shapes and cannot be made, or why none takes them, or why the shape
    /// function refuses them.
    fn make(&self, shapes: &[PartialShape]) -> Result<Arc<KernelInstance>, KernelError>;
}

/// What stands in a key for an input whose shape is not known even now: a reference.
const NO_SHAPE: i64 = -1;

/// The kernel for the shapes of one call.
pub(crate) struct Entry {
    /// Rank and dimensions of each input, one after the other.
    key: Box<[i64]>,
    pub instance: Arc<KernelInstance>,
}

impl Entry {
    /// Whether it is for these shapes.
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

/// See the module's docs.
pub(crate) struct PerShape {
    info: Arc<NodeInfo>,
    flags: u32,
    may_plan: bool,
    is_host_own: bool,
    /// The kernel of all shapes, where only they are open.
    made: Option<Arc<KernelInstance>>,
    maker: Box<dyn MakeKernel>,
    /// The oldest first.
    entries: ArcSwap<Vec<Arc<Entry>>>,
    filling: Mutex<()>,
}

impl PerShape {
    /// A table without entries, over the kernels that may run.
    pub fn new(
        info: NodeInfo,
        kernels: &[Arc<KernelDef>],
        maker: Box<dyn MakeKernel>,
    ) -> Arc<PerShape> {
        PerShape::with(Arc::new(info), None, kernels, maker)
    }

    /// A table without entries for a kernel that is made; `maker` checks shapes, and gives this kernel.
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

    /// Flags of any of the kernels that may run.
    pub fn flags(&self) -> u32 {
        self.flags
    }

    /// The kernel of all shapes, where only they are open.
    pub fn made(&self) -> Option<&Arc<KernelInstance>> {
        self.made.as_ref()
    }

    /// The entry for these shapes, made when they come for the first time. `None` is a shape that is not known.
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
        // Another step may have seen them meanwhile.
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
        let kept = old.iter().skip((old.len() + 1).saturating_sub(SHAPES)).cloned();
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

    /// A choice between the host's own kernel of `Identity` and one for a device, as many of each as asked for.
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
