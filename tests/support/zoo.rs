//! The zoo's libraries.

use crate::build::{c_library, cpp_library, deps, files, repository};
use std::path::{Path, PathBuf};

/// A language in which the zoo is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Through door 1.
    Rust,
    /// Through door 2.
    C,
}

impl Language {
    /// Both.
    pub const ALL: [Language; 2] = [Language::Rust, Language::C];

    /// What the names of its ops begin with.
    pub const fn prefix(self) -> &'static str {
        match self {
            Language::Rust => "Zoo",
            Language::C => "ZooC",
        }
    }

    /// The full name of an op.
    pub fn op(self, name: &str) -> String {
        format!("{}{name}", self.prefix())
    }

    /// The library with its ops.
    pub fn zoo(self) -> PathBuf {
        match self {
            Language::Rust => plugin("zoo_rust"),
            Language::C => c_zoo(),
        }
    }

    /// The library with its device type.
    pub fn device_zoo(self) -> PathBuf {
        match self {
            Language::Rust => plugin("zoo_device"),
            Language::C => c_device_zoo(),
        }
    }

    /// Name of that device type.
    pub const fn device_type(self) -> &'static str {
        match self {
            Language::Rust => "ZOO",
            Language::C => "ZOOC",
        }
    }

    /// Name of the plugin with the ops.
    pub const fn plugin(self) -> &'static str {
        match self {
            Language::Rust => "zoo-rust",
            Language::C => "zoo-c",
        }
    }

    /// Name of the plugin with the device type.
    pub const fn device_plugin(self) -> &'static str {
        match self {
            Language::Rust => "zoo-device",
            Language::C => "zoo-c-device",
        }
    }
}

/// The library of a plugin that this package depends on, under the name of its crate.
///
/// # Panics
/// When it is not there: the package's manifest does not name it.
pub fn plugin(name: &str) -> PathBuf {
    let file = format!("{}{name}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let path = deps().join(&file);
    assert!(
        path.is_file(),
        "{}: not built; is it a dependency in tests/Cargo.toml?",
        path.display()
    );
    path
}

fn c_sources(folder: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    (files(folder, &[".c"]), files(folder, &[".h"]))
}

/// The ops of the zoo in C++: what `tenon.hpp` gives authors.
pub fn cpp_zoo() -> PathBuf {
    let folder = repository().join("tests/zoo/cpp");
    cpp_library("zoo_cpp", &files(&folder, &[".cpp"]), &files(&folder, &[".hpp"]))
}

/// The ops of the zoo in C.
pub fn c_zoo() -> PathBuf {
    let (sources, headers) = c_sources(&repository().join("tests/zoo/c"));
    c_library("zoo_c", &sources, &headers)
}

/// The device type of the zoo in C.
pub fn c_device_zoo() -> PathBuf {
    let (sources, headers) = c_sources(&repository().join("tests/zoo/c/device"));
    c_library("zoo_c_device", &sources, &headers)
}
