//! Where the ops of a queue, or of what is like one, find it.
//!
//! A node with a shared name makes something that all sessions of the device find under its container
//! and that name. Without one it belongs to the node's kernel: sessions do not share it, and it goes
//! with the kernel. Ops reach it by the handle of a resource, or in older graphs by a reference to two
//! strings, its container and its name; for these there is an entry under a name that begins with `_`,
//! which does not keep it alive.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};
use tenon_sdk::prelude::*;

/// The container that an empty name means.
const DEFAULT_CONTAINER: &str = "localhost";

/// What ops share by container and name.
pub trait Shared: Send + Sync + 'static {
    /// Name of the type of resource.
    const NAME: &'static str;
    /// What it is, in messages.
    const WHAT: &'static str;

    /// Its place.
    fn place(&self) -> &Place;
}

/// Container and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub container: String,
    pub name: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' in container '{}'", self.name, self.container)
    }
}

impl Place {
    /// Its name in messages.
    pub fn label<T: Shared>(&self) -> String {
        format!("{} {self}", T::WHAT)
    }
}

/// How a node names what it makes.
pub struct Naming {
    container: String,
    /// Empty where it is the kernel's own.
    shared: String,
    node: String,
}

impl Naming {
    /// The attributes `container` and `shared_name`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a container with other characters than letters, digits, `.`, `-` and `/`, and for a shared
    /// name that begins with `_`, which is for names of the host's own.
    pub fn new(c: &CreateContext<'_>) -> Result<Naming, KernelError> {
        let (container, shared): (&str, &str) = (c.attr("container")?, c.attr("shared_name")?);
        let first = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.';
        let later = |byte: u8| first(byte) || byte == b'-' || byte == b'/';
        let mut bytes = container.bytes();
        if !bytes.next().is_none_or(first) || !bytes.all(later) {
            return Err(KernelError::invalid_argument(format!(
                "container: expected letters, digits, '.', '-' and '/', found '{container}'"
            )));
        }
        if shared.starts_with('_') {
            return Err(KernelError::invalid_argument(format!(
                "shared_name: expected a name that does not begin with '_', found '{shared}'"
            )));
        }
        let container = if container.is_empty() { DEFAULT_CONTAINER } else { container };
        let node = c.node().to_owned();
        Ok(Naming { container: container.to_owned(), shared: shared.to_owned(), node })
    }

    /// The shared name, or else the name of the node.
    pub fn by_node(&self) -> Place {
        let name = if self.shared.is_empty() { &self.node } else { &self.shared };
        Place { container: self.container.clone(), name: name.clone() }
    }

    fn private(&self) -> Place {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("_{}_{}", NEXT.fetch_add(1, Ordering::Relaxed), self.node);
        Place { container: self.container.clone(), name }
    }
}

/// An entry of a container.
pub enum Entry<T> {
    /// The container keeps it.
    Shared(Arc<T>),
    /// Its kernel keeps it.
    OfKernel(Weak<T>),
}

impl<T: Shared> ResourceValue for Entry<T> {
    const NAME: &'static str = T::NAME;
}

impl<T: Shared> Entry<T> {
    fn get(&self) -> Result<Arc<T>, KernelError> {
        let found = match self {
            Entry::Shared(value) => Some(Arc::clone(value)),
            Entry::OfKernel(value) => value.upgrade(),
        };
        let gone = || {
            let message = format!("the {} is gone with the node that made it", T::WHAT);
            KernelError::new(Code::NOT_FOUND, message)
        };
        found.ok_or_else(gone)
    }
}

/// Makes what a node stands for, once.
pub struct Maker<T> {
    naming: Naming,
    by_handle: bool,
    own: Mutex<Option<Arc<T>>>,
}

impl<T: Shared> Maker<T> {
    /// As [`Naming::new`].
    pub fn new(c: &CreateContext<'_>) -> Result<Maker<T>, KernelError> {
        let by_handle = c.output_types().first() == Some(&DType::RESOURCE);
        Ok(Maker { naming: Naming::new(c)?, by_handle, own: Mutex::new(None) })
    }

    /// What the node stands for, under its shared name or as the kernel's own.
    pub fn get(
        &self,
        c: &ComputeContext<'_>,
        make: impl FnOnce(Place) -> Result<T, KernelError>,
    ) -> Result<Arc<T>, KernelError> {
        if !self.naming.shared.is_empty() {
            return find_or_make(c, self.naming.by_node(), make);
        }
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = &*own {
            return Ok(Arc::clone(own));
        }
        let made = Arc::new(make(self.naming.private())?);
        Ok(Arc::clone(own.insert(made)))
    }

    /// Returns the way to it as the output: a handle, or a reference to container and name.
    pub fn output(&self, c: &ComputeContext<'_>, value: &Arc<T>) -> Result<(), KernelError> {
        if !self.by_handle {
            return output_reference(c, value);
        }
        let kept = || Ok(Entry::Shared(Arc::clone(value)));
        // The handle of a shared one is that of the entry that its name finds.
        let place = value.place();
        let (container, name) = match self.naming.shared.is_empty() {
            true => ("", ""),
            false => (place.container.as_str(), place.name.as_str()),
        };
        c.output_handle(0, &c.state().find_or_create::<Entry<T>>(container, name, kept)?)
    }
}

/// What is shared under a container and name; made where there is none.
pub fn find_or_make<T: Shared>(
    c: &ComputeContext<'_>,
    place: Place,
    make: impl FnOnce(Place) -> Result<T, KernelError>,
) -> Result<Arc<T>, KernelError> {
    let (container, name) = (place.container.clone(), place.name.clone());
    let made = || Ok(Entry::Shared(Arc::new(make(place)?)));
    c.state().find_or_create::<Entry<T>>(&container, &name, made)?.get()
}

/// Returns a reference to container and name as output 0.
pub fn output_reference<T: Shared>(
    c: &ComputeContext<'_>,
    value: &Arc<T>,
) -> Result<(), KernelError> {
    keep_findable(c, value)?;
    let Place { container, name } = value.place();
    c.output_ref_to_strings(0, &[container, name])
}

/// Makes sure that something is found under its place, which does not keep it alive.
pub fn keep_findable<T: Shared>(c: &ComputeContext<'_>, value: &Arc<T>) -> Result<(), KernelError> {
    let Place { container, name } = value.place();
    let entry = || Ok(Entry::OfKernel(Arc::downgrade(value)));
    c.state().find_or_create::<Entry<T>>(container, name, entry).map(drop)
}

/// What is found under a place, and the handle that leads to it.
///
/// # Errors
/// `NOT_FOUND` when there is nothing of that name, or it is gone.
pub fn find_by_place<T: Shared>(
    c: &ComputeContext<'_>,
    place: &Place,
) -> Result<(ResourceHandle<Entry<T>>, Arc<T>), KernelError> {
    let Some(entry) = c.state().find::<Entry<T>>(&place.container, &place.name)? else {
        return Err(KernelError::new(Code::NOT_FOUND, format!("there is no {} {place}", T::WHAT)));
    };
    let value = entry.get()?;
    Ok((entry, value))
}

/// What input 0 leads to.
///
/// # Errors
/// As [`input_at`].
pub fn input<T: Shared>(c: &ComputeContext<'_>) -> Result<Arc<T>, KernelError> {
    input_at(c, 0)
}

/// What an input leads to.
///
/// # Errors
/// `INVALID_ARGUMENT` when it leads to something else; `NOT_FOUND` when there is none of that name.
pub fn input_at<T: Shared>(c: &ComputeContext<'_>, at: usize) -> Result<Arc<T>, KernelError> {
    let state = c.state();
    if c.slot(at)?.dtype == DType::RESOURCE {
        return state.input_resource::<Entry<T>>(at)?.get();
    }
    let strings = state.input_ref_strings(at)?;
    let [container, name] = &strings[..] else {
        return Err(KernelError::invalid_argument(format!(
            "handle: expected a container and a name, found {} strings",
            strings.len()
        )));
    };
    let place = Place { container: container.clone(), name: name.clone() };
    find_by_place(c, &place).map(|(_, value)| value)
}

/// Returns the handle of something that is found nowhere, and lives as long as its handles.
pub fn output_anonymous<T: Shared>(c: &ComputeContext<'_>, value: T) -> Result<(), KernelError> {
    let entry = || Ok(Entry::Shared(Arc::new(value)));
    c.output_handle(0, &c.state().find_or_create::<Entry<T>>("", "", entry)?)
}
