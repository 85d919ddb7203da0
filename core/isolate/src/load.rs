//! Loading a plugin into a process of its own.

use super::{
    definition::{Definition, submit},
    kernel::Kernel,
    limits::Limits,
    plugin::{Isolated, Parts, Refusal},
    shape::Shape,
};
use std::{fs::File, os::fd::OwnedFd, sync::Arc};
use tenon_abi::{self as abi, ext_tags};
use tenon_framework::{
    knob::Knobs,
    registry::{PluginInfo, RemoteShape, Transaction},
};
use tenon_host::{
    Collector, LoadError, Plugins, Step,
    isolation::{IsolatedCode, Isolation},
    loader::{self, PluginFile, Policy, failed, image::Image, sealed},
    manifest::{Manifest, extension_entry},
};

/// The isolation that starts plugins in processes of their own.
struct Processes;

/// The isolation to pass to [`Plugins::with_isolation`].
pub static ISOLATION: &dyn Isolation = &Processes;

impl Isolation for Processes {
    fn open(
        &self,
        file: PluginFile,
        image: Image,
        policy: &Policy,
        knobs: &Knobs,
        threads: usize,
    ) -> Result<Arc<dyn IsolatedCode>, LoadError> {
        let (plugin, image) = load(file, &image, policy, Limits::from_knobs(knobs), threads)?;
        Ok(Arc::new(LoadedPlugin { plugin, image }))
    }
}

/// An isolated plugin, and what it registers.
struct LoadedPlugin {
    plugin: Arc<Isolated>,
    image: Image,
}

impl IsolatedCode for LoadedPlugin {
    fn manifest(&self) -> &Manifest {
        &self.image.manifest
    }

    fn digest(&self) -> &str {
        self.plugin.digest()
    }

    fn collect(&self, info: PluginInfo) -> Result<Transaction, LoadError> {
        collect(&self.plugin, &self.image, info)
    }
}

/// The isolated plugins among those in use.
pub fn isolated(plugins: &Plugins) -> Vec<Arc<Isolated>> {
    let of_here = |code: Arc<dyn IsolatedCode>| Arc::downcast::<LoadedPlugin>(code).ok();
    let all = plugins.isolated().into_iter().filter_map(of_here);
    all.map(|code| Arc::clone(&code.plugin)).collect()
}

/// Device types whose kernels compute in host memory alone.
const HOST_TYPES: [&str; 2] = ["CPU", "DEFAULT"];

/// Steps 3 to 8 of loading, in a process of the plugin's own.
///
/// # Errors
/// The errors of these steps.
fn load(
    file: PluginFile,
    image: &Image,
    policy: &Policy,
    limits: Limits,
    threads: usize,
) -> Result<(Arc<Isolated>, Image), LoadError> {
    loader::check_image(image, policy, &file.path)?;
    policy.check_trust_file(&file.path, &image.manifest.plugin.name)?;
    if policy.refuse_writable {
        file.check_permissions()?;
    }
    let name = image.manifest.plugin.name.clone();
    let (library, digest) =
        sealed(&file.file, |_| Ok(())).map_err(|error| failed(&file.path, &error, Step::Open))?;
    policy.admit(&file.path, &name, &digest)?;
    // The file was checked so far; its copy is what is opened.
    let copy = File::from(library);
    let image = loader::image_of_copy(&copy, policy, (&file.path, &image.manifest.plugin))?;
    let library = OwnedFd::from(copy);
    let path = file.path.clone();
    let parts = Parts {
        scope: PluginInfo::linked(tenon_framework::registry::PluginId(0), &name, "", 0).scope(),
        name: name.clone(),
        path: path.clone(),
        digest,
        library,
        limits,
        threads,
        allow_panic_abort: policy.allow_panic_abort,
    };
    let started = Isolated::start(parts).map_err(|Refusal { step, code, message }| {
        let step = Step::named(&step).unwrap_or(Step::Open);
        LoadError::Isolated { path, plugin: name, step, code, message }
    });
    Ok((started?, image))
}

/// Steps 8 and 9: passes the registrations to `info`, and compares them with the manifest.
///
/// # Errors
/// Registrations that an isolated plugin cannot have; differences between manifest and
/// registrations.
fn collect(
    plugin: &Arc<Isolated>,
    image: &Image,
    info: PluginInfo,
) -> Result<Transaction, LoadError> {
    let path = info.path.clone().unwrap_or_default();
    let name = info.name.clone();
    check_kinds(plugin.definitions()).map_err(|message| LoadError::Isolated {
        path: path.clone(),
        plugin: name.clone(),
        step: Step::Register,
        code: abi::Code::UNIMPLEMENTED,
        message,
    })?;
    let mut collector = Collector::new(info);
    collector.call_linked(|registrar, table| submit(plugin.definitions(), registrar, table));
    let (mut transaction, registered) = collector.finish();
    if transaction.errors().is_empty() {
        loader::compare(&path, &name, manifest_entries(plugin, image), registered)?;
        set_remote(plugin, &mut transaction);
    }
    Ok(transaction)
}

/// Entries of the manifest, without passes and types of variants, which stay in the worker.
fn manifest_entries(plugin: &Isolated, image: &Image) -> Vec<String> {
    let mut entries = image.manifest.entries();
    let pass = extension_entry(ext_tags::PASS);
    let passes = entries.iter().filter(|entry| **entry == pass).count();
    if passes > 0 {
        tracing::warn!(
            plugin = plugin.name(),
            "its {passes} graph passes do not run: it is isolated"
        );
        entries.retain(|entry| *entry != pass);
    }
    // Values of variants do not cross either.
    let variant = extension_entry(ext_tags::VARIANT);
    entries.retain(|entry| *entry != variant);
    entries
}

/// Refuses registrations that only work in the host's process.
fn check_kinds(definitions: &[Definition]) -> Result<(), String> {
    for definition in definitions {
        let what = match definition {
            Definition::DeviceType(name) => format!("it registers device type '{name}'"),
            Definition::Kernel(kernel) if !HOST_TYPES.contains(&kernel.device_type.as_str()) => {
                format!("it registers a kernel of '{}' for {}", kernel.op, kernel.device_type)
            }
            _ => continue,
        };
        return Err(format!(
            "{what}: only kernels that compute in host memory can be isolated; load it without isolation"
        ));
    }
    Ok(())
}

fn set_remote(plugin: &Arc<Isolated>, transaction: &mut Transaction) {
    let ops: Vec<bool> = plugin
        .definitions()
        .iter()
        .filter_map(|definition| match definition {
            Definition::Op(op) => Some(op.has_shape),
            _ => None,
        })
        .collect();
    transaction.set_remote(
        |at, op| {
            ops.get(at).copied().unwrap_or(false).then(|| {
                let name = Arc::from(format!("the shape function of op '{}'", op.name));
                let shape = Shape { plugin: Arc::clone(plugin), number: at as u32, name };
                Arc::new(shape) as Arc<dyn RemoteShape>
            })
        },
        |at, def| Arc::new(Kernel::new(plugin, at as u32, Arc::from(def.to_string()))),
    );
}
