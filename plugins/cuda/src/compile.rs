//! Compiles CUDA C to machine code.
//!
//! A kernel's source is a text of this crate (`kernels/cu`). A [`Variant`] is a source with its
//! defines and, for some, a generated part: the unit that is compiled, named and cached. [`nvrtc`]
//! compiles a variant for an architecture, [`cache`] keeps the result on disk, and [`Modules`]
//! loads it on a device, once.
//!
//! There is no linker: a variant is one self-contained text.

pub mod cache;
mod modules;
pub mod nvrtc;
mod nvrtc_api;
mod sources;

pub use modules::{Arguments, Entry, Module, Modules};
pub use sources::{HEADERS, Source};

use std::fmt::{self, Write};

/// The define that makes entries wait for the preceding launch on the stream.
const OVERLAP: &str = "OVERLAP";

/// A text to compile: a source with defines.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Variant {
    source: &'static Source,
    defines: Vec<(&'static str, String)>,
    /// Text put before the source, such as what a program of elementwise ops does to one element.
    generated: String,
}

impl Variant {
    /// A source without defines.
    pub fn new(source: &'static Source) -> Variant {
        Variant { source, defines: Vec::new(), generated: String::new() }
    }

    /// Adds `#define name value`.
    #[must_use]
    pub fn define(mut self, name: &'static str, value: impl fmt::Display) -> Variant {
        self.defines.push((name, value.to_string()));
        self
    }

    /// Adds a text between the defines and the source.
    #[must_use]
    pub fn generated(mut self, text: String) -> Variant {
        self.generated = text;
        self
    }

    /// Makes each entry wait for the preceding launch itself; only for a source with `overlaps`.
    #[must_use]
    pub fn overlapping(self) -> Variant {
        self.define(OVERLAP, 1)
    }

    /// Whether each entry waits for the preceding launch itself.
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

    /// The whole text, without the headers.
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

/// Formats the variant for messages and files: `elementwise.cu T=f32 OP=Relu`.
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
