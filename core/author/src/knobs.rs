//! The knobs of a plugin, as a kernel or a device reads them.
//!
//! A library is in a process once, and several runtimes may use it with different settings: values are read
//! from the context of a kernel ([`CreateContext::knobs`]) or of a device ([`DeviceKind::open`]), which says for
//! which runtime or session.
//!
//! [`CreateContext::knobs`]: crate::CreateContext::knobs
//! [`DeviceKind::open`]: crate::device::DeviceKind::open

use std::{fmt, marker::PhantomData, ptr};
use tenon_abi::{Code, KnobKind, KnobValue, PluginContext, Str};
use tenon_framework::{KernelError, plugin::host};

/// The value of one of the plugin's own knobs.
#[derive(Debug, Clone, PartialEq)]
pub enum Knob {
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// Text.
    String(String),
}

/// The plugin's knobs, with the values of a kernel's session or a device's runtime.
///
/// ```
/// use tenon_author::{ComputeContext, CreateContext, Kernel};
/// use tenon_framework::KernelError;
///
/// tenon_author::register_knob!("block": INT = "64", "Columns of a block.");
///
/// struct Blocked {
///     block: usize,
/// }
///
/// impl Kernel for Blocked {
///     fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
///         let block = c.knobs().int("block")?;
///         let block = usize::try_from(block).ok().filter(|block| *block > 0).ok_or_else(|| {
///             KernelError::invalid_argument(format!("knob block: expected at least 1, found {block}"))
///         })?;
///         Ok(Blocked { block })
///     }
///
///     fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
///         // ...
/// #       let _ = (self.block, c);
///         Ok(())
///     }
/// }
/// # fn main() {}
/// ```
#[derive(Clone, Copy)]
pub struct Knobs<'a> {
    raw: *const PluginContext,
    lent: PhantomData<&'a PluginContext>,
}

impl<'a> Knobs<'a> {
    /// No knobs: for code that no host has opened, such as a device in an author's own tests.
    pub const NONE: Knobs<'a> = Knobs { raw: ptr::null(), lent: PhantomData };

    /// Wraps what the host gives; null is [`Knobs::NONE`].
    ///
    /// # Safety
    /// `raw` is null, or a context of the host's that is alive for `'a`.
    pub unsafe fn from_raw(raw: *const PluginContext) -> Knobs<'a> {
        Knobs { raw, lent: PhantomData }
    }

    /// Reads a knob that this plugin declares.
    ///
    /// # Errors
    /// `NOT_FOUND` when it declares no knob of that name.
    pub fn read(self, name: &str) -> Result<Knob, KernelError> {
        let mut value = KnobValue {
            kind: KnobKind::INT,
            boolean: 0,
            int_value: 0,
            float_value: 0.0,
            text: Str::EMPTY,
        };
        let code = match self.raw.is_null() {
            true => Code::NOT_FOUND,
            false => {
                let entry = host().knob.expect("the host fills every entry");
                // SAFETY: an entry of the host's table; the context is alive by the promise of `from_raw`, and
                // `value` lives through the call.
                unsafe { entry(self.raw, Str::new(name), &mut value) }
            }
        };
        if !code.is_ok() {
            return Err(KernelError::new(
                code,
                format!("knob {name}: this plugin declares none of that name"),
            ));
        }
        Ok(match value.kind {
            KnobKind::BOOL => Knob::Bool(value.boolean != 0),
            KnobKind::FLOAT => Knob::Float(value.float_value),
            KnobKind::STRING => {
                // SAFETY: valid until the next look-up on this thread.
                let text = unsafe { value.text.bytes() };
                Knob::String(String::from_utf8_lossy(text).into_owned())
            }
            _ => Knob::Int(value.int_value),
        })
    }

    /// Reads an integer knob.
    ///
    /// # Errors
    /// As [`Knobs::read`]; `INVALID_ARGUMENT` when it is of another type.
    pub fn int(self, name: &str) -> Result<i64, KernelError> {
        match self.read(name)? {
            Knob::Int(value) => Ok(value),
            other => Err(of_another_type(name, "an int", &other)),
        }
    }

    /// Reads a bool knob.
    ///
    /// # Errors
    /// As [`Knobs::int`].
    pub fn bool(self, name: &str) -> Result<bool, KernelError> {
        match self.read(name)? {
            Knob::Bool(value) => Ok(value),
            other => Err(of_another_type(name, "a bool", &other)),
        }
    }

    /// Reads a float knob.
    ///
    /// # Errors
    /// As [`Knobs::int`].
    pub fn float(self, name: &str) -> Result<f64, KernelError> {
        match self.read(name)? {
            Knob::Float(value) => Ok(value),
            other => Err(of_another_type(name, "a float", &other)),
        }
    }

    /// Reads a text knob.
    ///
    /// # Errors
    /// As [`Knobs::int`].
    pub fn text(self, name: &str) -> Result<String, KernelError> {
        match self.read(name)? {
            Knob::String(value) => Ok(value),
            other => Err(of_another_type(name, "a string", &other)),
        }
    }

    /// Keeps them beyond the call that lent them: for a thread of a device, which reads a knob of its runtime
    /// again and again.
    pub fn keep(self) -> KeptKnobs {
        if !self.raw.is_null() {
            let entry = host().retain_context.expect("the host fills every entry");
            // SAFETY: an entry of the host's table; the context is alive by the promise of `from_raw`.
            unsafe { entry(self.raw) };
        }
        KeptKnobs { raw: self.raw }
    }
}

fn of_another_type(name: &str, expected: &str, found: &Knob) -> KernelError {
    KernelError::invalid_argument(format!("knob {name}: expected {expected}, found {found:?}"))
}

impl fmt::Debug for Knobs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Knobs")
    }
}

/// [`Knobs`] that are kept beyond a call.
///
/// # Ownership
/// One count of the host's context, which goes back when this is dropped.
#[derive(Debug)]
pub struct KeptKnobs {
    raw: *const PluginContext,
}

// SAFETY: the host's context may be read and given back on any thread.
unsafe impl Send for KeptKnobs {}
// SAFETY: as above.
unsafe impl Sync for KeptKnobs {}

impl KeptKnobs {
    /// The knobs.
    pub fn get(&self) -> Knobs<'_> {
        // SAFETY: the count that this holds keeps the context alive.
        unsafe { Knobs::from_raw(self.raw) }
    }
}

impl Drop for KeptKnobs {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            let entry = host().release_context.expect("the host fills every entry");
            // SAFETY: an entry of the host's table, and a count that `keep` took.
            unsafe { entry(self.raw) }
        }
    }
}
