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

/// What every plugin in C or C++ has beside its sources.
const C_FILES: Files = template![
    "include/tenon.h" = "../../../core/abi/include/tenon.h",
    "include/tenon_plugin.h" = "../../c/tenon_plugin.h",
    "include/tenon_register.h" = "../../c/tenon_register.h",
    "include/tenon_half.h" = "../../c/tenon_half.h",
    "include/tenon.map" = "../../c/tenon.map",
    "include/tenonConfig.cmake" = "../../c/tenonConfig.cmake",
    "include/tenonConfigVersion.cmake" = "../../c/tenonConfigVersion.cmake",
];

const C_BUILD: Files = template![
    "Makefile" = "c/Makefile.in",
    "CMakeLists.txt" = "c/CMakeLists.txt.in",
    ".gitignore" = "c/gitignore.in",
];

const CPP_BUILD: Files = template![
    "Makefile" = "cpp/Makefile.in",
    "CMakeLists.txt" = "cpp/CMakeLists.txt.in",
    ".gitignore" = "c/gitignore.in",
];

const CUDA_BUILD: Files = template![
    "Makefile" = "cuda/Makefile.in",
    "CMakeLists.txt" = "cuda/CMakeLists.txt.in",
    "README.md" = "cuda/README.md.in",
    ".gitignore" = "cuda/gitignore.in",
    "include/tenon/cuda.hpp" = "../../c/tenon/cuda.hpp",
];

/// What every plugin in C++ has beside its sources.
const CPP_FILES: Files = template![
    "include/tenon.hpp" = "../../c/tenon.hpp",
    "include/tenon/base.hpp" = "../../c/tenon/base.hpp",
    "include/tenon/call.hpp" = "../../c/tenon/call.hpp",
    "include/tenon/create.hpp" = "../../c/tenon/create.hpp",
    "include/tenon/device.hpp" = "../../c/tenon/device.hpp",
    "include/tenon/element.hpp" = "../../c/tenon/element.hpp",
    "include/tenon/gradient.hpp" = "../../c/tenon/gradient.hpp",
    "include/tenon/kernel.hpp" = "../../c/tenon/kernel.hpp",
    "include/tenon/manifest.hpp" = "../../c/tenon/manifest.hpp",
    "include/tenon/register.hpp" = "../../c/tenon/register.hpp",
    "include/tenon/shape.hpp" = "../../c/tenon/shape.hpp",
    "include/tenon/state.hpp" = "../../c/tenon/state.hpp",
    "include/tenon/view.hpp" = "../../c/tenon/view.hpp",
];

const C_OP: Files = template!["plugin.c" = "c/op/plugin.c.in", "README.md" = "c/README.md.in"];

const C_KERNEL: Files =
    template!["plugin.c" = "c/kernel/plugin.c.in", "README.md" = "c/README.md.in"];

const C_DEVICE: Files = template![
    "plugin.c" = "c/device/plugin.c.in",
    "device.h" = "c/device/device.h.in",
    "device.c" = "c/device/device.c.in",
    "stream.h" = "c/device/stream.h.in",
    "stream.c" = "c/device/stream.c.in",
    "README.md" = "c/device/README.md.in",
];

const CPP_OP: Files =
    template!["plugin.cpp" = "cpp/op/plugin.cpp.in", "README.md" = "c/README.md.in"];

const CPP_KERNEL: Files =
    template!["plugin.cpp" = "cpp/kernel/plugin.cpp.in", "README.md" = "c/README.md.in"];

const CPP_DEVICE: Files = template![
    "plugin.cpp" = "cpp/device/plugin.cpp.in",
    "device.hpp" = "cpp/device/device.hpp.in",
    "stream.hpp" = "cpp/device/stream.hpp.in",
    "README.md" = "cpp/device/README.md.in",
];

const CUDA_OP: Files =
    template!["plugin.cpp" = "cuda/op/plugin.cpp.in", "kernels.cu" = "cuda/op/kernels.cu.in"];

const CUDA_KERNEL: Files = template![
    "plugin.cpp" = "cuda/kernel/plugin.cpp.in",
    "kernels.cu" = "cuda/kernel/kernels.cu.in"
];

/// Every language with every kind and every template of it.
#[cfg(test)]
pub const ALL: [(NewLang, NewKind, NewTemplate); 13] = [
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
    (NewLang::Cuda, NewKind::Op, NewTemplate::Elementwise),
    (NewLang::Cuda, NewKind::Kernel, NewTemplate::Elementwise),
];

/// The files of a kind in a language, each with its path; none where there is no such kind or template in it.
pub fn files(
    lang: NewLang,
    kind: NewKind,
    template: NewTemplate,
) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    let lists: &'static [Files] = match (lang, kind) {
        (NewLang::Rust, NewKind::Op) => match template {
            NewTemplate::Elementwise => &[RUST_OP],
            NewTemplate::Rowwise => &[RUST_ROWWISE],
            NewTemplate::Matmul => &[RUST_MATMUL],
        },
        _ if template != NewTemplate::Elementwise => &[],
        (NewLang::Rust, NewKind::Kernel) => &[RUST_KERNEL],
        (NewLang::Rust, NewKind::Device) => &[RUST_DEVICE],
        (NewLang::C, NewKind::Op) => &[C_OP, C_BUILD, C_FILES],
        (NewLang::C, NewKind::Kernel) => &[C_KERNEL, C_BUILD, C_FILES],
        (NewLang::C, NewKind::Device) => &[C_DEVICE, C_BUILD, C_FILES],
        (NewLang::Cpp, NewKind::Op) => &[CPP_OP, CPP_BUILD, C_FILES, CPP_FILES],
        (NewLang::Cpp, NewKind::Kernel) => &[CPP_KERNEL, CPP_BUILD, C_FILES, CPP_FILES],
        (NewLang::Cpp, NewKind::Device) => &[CPP_DEVICE, CPP_BUILD, C_FILES, CPP_FILES],
        (NewLang::Cuda, NewKind::Op) => &[CUDA_OP, CUDA_BUILD, C_FILES, CPP_FILES],
        (NewLang::Cuda, NewKind::Kernel) => &[CUDA_KERNEL, CUDA_BUILD, C_FILES, CPP_FILES],
        (NewLang::Cuda, NewKind::Device) => &[],
    };
    lists.iter().flat_map(|list| list.iter())
}
