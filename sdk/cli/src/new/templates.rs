//! The files of every kind of new plugin, which the command carries with it.

use crate::args::{NewKind, NewLang, NewTemplate};

/// Paths in the new folder with their texts, placeholders open.
type Files = &'static [(&'static str, &'static str)];

macro_rules! template {
    ($($path:literal = $file:literal),+ $(,)?) => {
        &[$(($path, include_str!(concat!("../../templates/", $file)))),+]
    };
}

macro_rules! rust_op {
    ($folder:literal) => {
        &[
            ("Cargo.toml", include_str!("../../templates/rust/op/Cargo.toml.in")),
            (
                "src/lib.rs",
                include_str!(concat!("../../templates/rust/", $folder, "/src/lib.rs.in")),
            ),
            (
                "src/reference.rs",
                include_str!(concat!("../../templates/rust/", $folder, "/src/reference.rs.in")),
            ),
            (
                "tests/kernel.rs",
                include_str!(concat!("../../templates/rust/", $folder, "/tests/kernel.rs.in")),
            ),
            ("README.md", include_str!("../../templates/rust/op/README.md.in")),
            (".gitignore", include_str!("../../templates/gitignore.in")),
        ]
    };
}

const RUST_OP: Files = rust_op!("op");
const RUST_ROWWISE: Files = rust_op!("rowwise");
const RUST_MATMUL: Files = rust_op!("matmul");

const RUST_KERNEL: Files = template![
    "Cargo.toml" = "rust/kernel/Cargo.toml.in",
    "src/lib.rs" = "rust/kernel/src/lib.rs.in",
    "tests/kernel.rs" = "rust/kernel/tests/kernel.rs.in",
    "README.md" = "rust/kernel/README.md.in",
    ".gitignore" = "gitignore.in",
];

const RUST_DEVICE: Files = template![
    "Cargo.toml" = "rust/device/Cargo.toml.in",
    "src/lib.rs" = "rust/device/src/lib.rs.in",
    "src/device.rs" = "rust/device/src/device.rs.in",
    "src/memory.rs" = "rust/device/src/memory.rs.in",
    "src/kernels.rs" = "rust/device/src/kernels.rs.in",
    "tests/device.rs" = "rust/device/tests/device.rs.in",
    "README.md" = "rust/device/README.md.in",
    ".gitignore" = "gitignore.in",
];

const C_OP: Files = template![
    "plugin.c" = "c/op/plugin.c.in",
    "Makefile" = "c/Makefile.in",
    "README.md" = "c/README.md.in",
    ".gitignore" = "c/gitignore.in",
    "include/tenon.h" = "../../../core/abi/include/tenon.h",
    "include/tenon_plugin.h" = "../../c/tenon_plugin.h",
];

const C_KERNEL: Files = template![
    "plugin.c" = "c/kernel/plugin.c.in",
    "Makefile" = "c/Makefile.in",
    "README.md" = "c/README.md.in",
    ".gitignore" = "c/gitignore.in",
    "include/tenon.h" = "../../../core/abi/include/tenon.h",
    "include/tenon_plugin.h" = "../../c/tenon_plugin.h",
];

const C_DEVICE: Files = template![
    "plugin.c" = "c/device/plugin.c.in",
    "device.h" = "c/device/device.h.in",
    "device.c" = "c/device/device.c.in",
    "stream.h" = "c/device/stream.h.in",
    "stream.c" = "c/device/stream.c.in",
    "Makefile" = "c/Makefile.in",
    "README.md" = "c/device/README.md.in",
    ".gitignore" = "c/gitignore.in",
    "include/tenon.h" = "../../../core/abi/include/tenon.h",
    "include/tenon_plugin.h" = "../../c/tenon_plugin.h",
];

const CPP_OP: Files = template![
    "plugin.cpp" = "cpp/op/plugin.cpp.in",
    "Makefile" = "cpp/Makefile.in",
    "README.md" = "c/README.md.in",
    ".gitignore" = "c/gitignore.in",
    "include/tenon.h" = "../../../core/abi/include/tenon.h",
    "include/tenon_plugin.h" = "../../c/tenon_plugin.h",
    "include/tenon.hpp" = "../../c/tenon.hpp",
];

const CPP_KERNEL: Files = template![
    "plugin.cpp" = "cpp/kernel/plugin.cpp.in",
    "Makefile" = "cpp/Makefile.in",
    "README.md" = "c/README.md.in",
    ".gitignore" = "c/gitignore.in",
    "include/tenon.h" = "../../../core/abi/include/tenon.h",
    "include/tenon_plugin.h" = "../../c/tenon_plugin.h",
    "include/tenon.hpp" = "../../c/tenon.hpp",
];

const CPP_DEVICE: Files = template![
    "plugin.cpp" = "cpp/device/plugin.cpp.in",
    "device.hpp" = "cpp/device/device.hpp.in",
    "stream.hpp" = "cpp/device/stream.hpp.in",
    "Makefile" = "cpp/Makefile.in",
    "README.md" = "cpp/device/README.md.in",
    ".gitignore" = "c/gitignore.in",
    "include/tenon.h" = "../../../core/abi/include/tenon.h",
    "include/tenon_plugin.h" = "../../c/tenon_plugin.h",
    "include/tenon.hpp" = "../../c/tenon.hpp",
];

/// Every language with every kind and every template of it.
#[cfg(test)]
pub const ALL: [(NewLang, NewKind, NewTemplate); 11] = [
    (NewLang::Rust, NewKind::Op, NewTemplate::Elementwise),
    (NewLang::Rust, NewKind::Op, NewTemplate::Rowwise),
    (NewLang::Rust, NewKind::Op, NewTemplate::Matmul),
    (NewLang::Rust, NewKind::Kernel, NewTemplate::Elementwise),
    (NewLang::Rust, NewKind::Device, NewTemplate::Elementwise),
    (NewLang::C, NewKind::Op, NewTemplate::Elementwise),
    (NewLang::C, NewKind::Kernel, NewTemplate::Elementwise),
    (NewLang::C, NewKind::Device, NewTemplate::Elementwise),
    (NewLang::Cpp, NewKind::Op, NewTemplate::Elementwise),
    (NewLang::Cpp, NewKind::Kernel, NewTemplate::Elementwise),
    (NewLang::Cpp, NewKind::Device, NewTemplate::Elementwise),
];

/// The files of a kind in a language; `None` where there is no such template for them.
pub fn files(lang: NewLang, kind: NewKind, template: NewTemplate) -> Option<Files> {
    Some(match (lang, kind) {
        (NewLang::Rust, NewKind::Op) => match template {
            NewTemplate::Elementwise => RUST_OP,
            NewTemplate::Rowwise => RUST_ROWWISE,
            NewTemplate::Matmul => RUST_MATMUL,
        },
        _ if template != NewTemplate::Elementwise => return None,
        (NewLang::Rust, NewKind::Kernel) => RUST_KERNEL,
        (NewLang::Rust, NewKind::Device) => RUST_DEVICE,
        (NewLang::C, NewKind::Op) => C_OP,
        (NewLang::C, NewKind::Kernel) => C_KERNEL,
        (NewLang::C, NewKind::Device) => C_DEVICE,
        (NewLang::Cpp, NewKind::Op) => CPP_OP,
        (NewLang::Cpp, NewKind::Kernel) => CPP_KERNEL,
        (NewLang::Cpp, NewKind::Device) => CPP_DEVICE,
    })
}
