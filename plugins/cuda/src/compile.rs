//! CUDA C to machine code.
//!
//! A kernel's source is a text of this crate (`kernels/cu`). With defines, and perhaps a generated part, it is a
//! [`Variant`]: what is compiled, named and kept. [`nvrtc`] compiles one for an architecture, [`cache`] keeps the
//! result on disk, [`Modules`] loads it on a device, once.
//!
//! It is not a linker: a variant is one text with all that it needs.

pub mod cache;
mod modules;
pub mod nvrtc;
mod nvrtc_api;
mod sources;

pub use modules::{Arguments, Entry, Module, Modules};
pub use sources::{HEADERS, Source};

use std::fmt::{self, Write};

/// The define by which entries wait for the launch before theirs.
const OVERLAP: &str = "OVERLAP";

/// One text to compile: a source with defines.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Variant {
    source: &'static Source,
    defines: Vec<(&'static str, String)>,
    /// Comes before the source: what a program of elementwise ops does to one element, and the like.
    generated: String,
}

impl Variant {
    /// A source as it is.
    pub fn new(source: &'static Source) -> Variant {
        Variant { source, defines: Vec::new(), generated: String::new() }
    }

    /// With `#define name value`.
    #[must_use]
    pub fn define(mut self, name: &'static str, value: impl fmt::Display) -> Variant {
        self.defines.push((name, value.to_string()));
        self
    }

    /// With a text before the source, behind its defines.
    #[must_use]
    pub fn generated(mut self, text: String) -> Variant {
        self.generated = text;
        self
    }

    /// With entries that wait for the launch before theirs by themselves; for a source that says it can.
    #[must_use]
    pub fn overlapping(self) -> Variant {
        self.define(OVERLAP, 1)
    }

    /// Whether it is such.
    pub fn overlaps(&self) -> bool {
        self.defines.iter().any(|(name, _)| *name == OVERLAP)
    }

    /// The source.
    pub fn source(&self) -> &'static Source {
        self.source
    }

    /// The defines.
    pub fn defines(&self) -> &[(&'static str, String)] {
        &self.defines
    }

    /// The whole text, headers apart.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.defines {
            // Writing to a string does not fail.
            let _ = writeln!(text, "#define {name} {value}");
        }
        text.push_str(&self.generated);
        let _ = writeln!(text, "#line 1 \"{}\"", self.source.name);
        text.push_str(self.source.text);
        text
    }
}

/// For messages and files: `elementwise.cu T=f32 OP=Relu`.
impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.source.name)?;
        self.defines.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))?;
        if self.generated.is_empty() {
            return Ok(());
        }
        let digest = cache::digest(&[self.generated.as_bytes()]);
        write!(f, " generated={}", &digest[..8])
    }
}
