//! The host without a graph of [`tenon_testkit::host`], with the zoo loaded into it.

use crate::zoo::Language;
use std::{
    ops::{Deref, DerefMut},
    path::PathBuf,
    sync::Arc,
};
use tenon_host::devices::PluginDevice;
use tenon_testkit::host::TestHost;

pub use tenon_testkit::host::{Node, elements, floats, scalar, texts};

/// Plugins that are loaded, their devices, and an environment for steps.
pub struct Bench(TestHost);

impl Bench {
    /// A host with these plugins, settings aside.
    ///
    /// # Panics
    /// When one of them is refused.
    pub fn with(files: impl IntoIterator<Item = PathBuf>) -> Bench {
        Bench(TestHost::with(files))
    }

    /// A host with these plugins and these knobs, `scope.name` to value.
    ///
    /// # Panics
    /// When a plugin is refused, or a knob is wrong.
    pub fn with_settings(
        files: impl IntoIterator<Item = PathBuf>,
        knobs: &[(&str, &str)],
    ) -> Bench {
        Bench(TestHost::with_settings(files, knobs))
    }

    /// The zoo in one language; in its own process where the test is of isolated plugins.
    pub fn zoo(language: Language) -> Bench {
        match isolation() {
            None => Bench::with([language.zoo()]),
            Some(worker) => {
                Bench(TestHost::isolating([language.zoo()], &[("host.isolate_worker", &worker)]))
            }
        }
    }

    /// The device zoo in one language, with kernels on this device.
    ///
    /// # Panics
    /// When there is no such device.
    pub fn device_zoo(language: Language, ordinal: u32) -> Bench {
        let mut bench = Bench::with([language.device_zoo()]);
        let device = bench.find(language, ordinal);
        bench.device = Some(device);
        bench
    }

    /// A device of the device zoo.
    ///
    /// # Panics
    /// When there is none.
    pub fn find(&self, language: Language, ordinal: u32) -> Arc<PluginDevice> {
        self.0.find(&format!("{}:{ordinal}", language.device_type()))
    }
}

/// What runs isolated plugins, where the running test is of them: cargo calls it `zoo_isolated`.
fn isolation() -> Option<String> {
    let exe = std::env::current_exe().ok()?;
    let name = exe.file_name()?.to_str()?;
    name.starts_with("zoo_isolated").then(|| worker().display().to_string())
}

/// The program that runs isolated plugins for tests, as cargo built it.
pub fn worker() -> PathBuf {
    crate::build::deps().join("../isolate-worker")
}

impl Deref for Bench {
    type Target = TestHost;

    fn deref(&self) -> &TestHost {
        &self.0
    }
}

impl DerefMut for Bench {
    fn deref_mut(&mut self) -> &mut TestHost {
        &mut self.0
    }
}
