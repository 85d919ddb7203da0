//! The plugin's side of door 1.

use tenon_author::reg::submit_all;
use tenon_framework::{
    abi::{Code, Host, Plugin, Registrar, RegistrarTable, Sink, Str},
    plugin::{guard, install_host, install_panic_hook},
};

/// Keeps the host's table and installs the panic hook of a loaded plugin.
///
/// # Safety
/// The host calls it with its table and its record of the plugin, both of which live as long as the
/// process.
pub unsafe extern "C" fn open(host: *const Host, plugin: *const Plugin, _sink: *mut Sink) -> Code {
    // SAFETY: the host gives its filled table and its record of the plugin, both of which live as long as the process.
    unsafe { install_host(host, plugin) };
    install_panic_hook();
    Code::OK
}

/// Gives every registration of this library to the host.
///
/// # Safety
/// The host calls it with a registrar, its table, and a sink.
pub unsafe extern "C" fn register(
    host: *const Host,
    registrar: *mut Registrar,
    table: *const RegistrarTable,
    sink: *mut Sink,
) -> Code {
    // SAFETY: the host gives a registrar and its table, which live through the call.
    match guard(|| unsafe { submit_all(registrar, table, |_| true) }) {
        Ok(code) => code,
        Err(panic) => {
            let message = format!("a registration panicked: {panic}");
            // SAFETY: the host fills every entry of its table.
            unsafe {
                (*host).report.expect("the host fills every entry")(sink, Str::new(&message))
            };
            Code::INTERNAL
        }
    }
}

/// Makes a crate a plugin: once, at its root.
///
/// It exports one static, whose symbol is unique to the package, and the manifest's record of the plugin.
/// `export_plugin!()` takes name and version from the package.
#[macro_export]
macro_rules! export_plugin {
    () => {
        // Said twice, the compiler names this before the linker finds the same symbol twice.
        #[allow(dead_code, reason = "only its name counts")]
        enum ExportPluginStandsOnceInACrate {}

        const _: () = {
            struct Plugin;

            static TABLE: $crate::__private::PluginV1 = $crate::__private::PluginV1 {
                struct_size: size_of::<$crate::__private::PluginV1>() as u32,
                abi_major: $crate::__private::ABI_MAJOR,
                abi_minor: $crate::__private::ABI_MINOR,
                reserved: 0,
                name: $crate::__private::Str::new(env!("CARGO_PKG_NAME")),
                version: $crate::__private::Str::new(env!("CARGO_PKG_VERSION")),
                open: Some($crate::__private::open),
                register_all: Some($crate::__private::register),
                ext: ::core::ptr::null(),
            };

            impl $crate::__private::PluginDef for Plugin {
                const TABLE: &'static $crate::__private::PluginV1 = &TABLE;
            }

            const INFO: $crate::__private::PluginRecord = $crate::__private::PluginRecord {
                name: env!("CARGO_PKG_NAME"),
                version: env!("CARGO_PKG_VERSION"),
                panic: if cfg!(panic = "unwind") { "unwind" } else { "abort" },
                profile: if cfg!(debug_assertions) { "debug" } else { "release" },
                arch: $crate::__arch!(),
                features: $crate::__cpu_features!(
                    "sse3",
                    "ssse3",
                    "sse4.1",
                    "sse4.2",
                    "avx",
                    "avx2",
                    "fma",
                    "f16c",
                    "bmi1",
                    "bmi2",
                    "avx512f",
                    "avx512bw",
                    "avx512dq",
                    "avx512vl",
                    "avx512vnni",
                    "avx512bf16",
                    "neon",
                    "dotprod",
                    "i8mm",
                    "sve"
                ),
            };
            const LEN: usize = $crate::__private::plugin_len(&INFO);

            #[used]
            #[cfg_attr(target_os = "linux", unsafe(link_section = "tenon_manifest"))]
            #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__tenon"))]
            #[cfg_attr(windows, unsafe(link_section = ".tenon"))]
            static RECORD: [u8; LEN] = $crate::__private::plugin_record::<LEN>(&INFO);

            #[unsafe(export_name = concat!(
                        "tenon_root_", env!("CARGO_PKG_NAME"), "_", env!("CARGO_PKG_VERSION")
                    ))]
            pub static ROOT: $crate::__private::LibHeader =
                $crate::__private::lib_header::<Plugin>();
        };
    };
}

/// Architecture, as the manifest names it.
#[doc(hidden)]
#[macro_export]
macro_rules! __arch {
    () => {
        if cfg!(target_arch = "x86_64") {
            "x86_64"
        } else if cfg!(target_arch = "aarch64") {
            "aarch64"
        } else {
            "other"
        }
    };
}

/// Those of the features named that the crate is compiled for: `cfg!` is evaluated there.
#[doc(hidden)]
#[macro_export]
macro_rules! __cpu_features {
    ($($feature:literal),* $(,)?) => {{
        const ALL: &[(&str, bool)] = &[$(($feature, cfg!(target_feature = $feature))),*];
        const COUNT: usize = {
            let (mut at, mut count) = (0, 0);
            while at < ALL.len() {
                count += ALL[at].1 as usize;
                at += 1;
            }
            count
        };
        const PRESENT: [&str; COUNT] = {
            let mut present = [""; COUNT];
            let (mut at, mut count) = (0, 0);
            while at < ALL.len() {
                if ALL[at].1 {
                    present[count] = ALL[at].0;
                    count += 1;
                }
                at += 1;
            }
            present
        };
        &PRESENT
    }};
}
