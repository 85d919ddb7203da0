//! The units to check.

use super::budget;
use crate::check::{
    Budget, CheckCase, Effort, Examiner, Generated, Generator, Goldens, Oracle, Subject, beyond,
    far, huge,
    protocol::{Sampling, Setup, Unit, UnitKind},
    subjects,
};
use std::{cell::RefCell, collections::BTreeMap, path::Path, rc::Rc, sync::Arc};
use tenon_runtime::{
    Runtime, RuntimeOptions,
    framework::{
        device::base::DeviceBase,
        op::OpDef,
        registry::{PluginId, Registry},
    },
    host::{LoadReport, Settings},
};

/// One thing that is checked.
pub(super) enum Thing {
    Kernel(Subject),
    Op(Arc<OpDef>),
    Device(String),
    Plugin(String),
}

impl Thing {
    fn kernel(&self) -> Option<&Subject> {
        if let Thing::Kernel(subject) = self { Some(subject) } else { None }
    }
}

/// The kernel of a subject, without its element types.
fn kernel_of(subject: &Subject) -> String {
    let kernel = &subject.kernel;
    format!("{} {} {}", kernel.op, kernel.device_type, kernel.label)
}

/// From this many kernels with element types on each is only called on a short case.
const MANY: usize = 64;
/// How many kernels represent the whole plugin.
const SOME: usize = 12;

/// All that is checked, in order, with what it takes.
pub(super) struct Agenda {
    pub runtime: Runtime,
    pub setup: Setup,
    pub things: Vec<Thing>,
    pub notes: Vec<String>,
    pub oracle: Oracle,
    generator: Generator,
    /// How many kernels with element types there are, and how many of them each kernel has.
    subjects: usize,
    types: BTreeMap<String, usize>,
    examiners: RefCell<BTreeMap<String, Result<Rc<Examiner>, String>>>,
}

impl Agenda {
    /// Loads the plugin, and the others.
    ///
    /// # Errors
    /// Why it is not loaded, or what cannot be read.
    pub fn load(setup: Setup) -> Result<Agenda, String> {
        let mut settings = Settings::of_process();
        settings.set.extend(setup.set.iter().cloned());
        let plugins = [&setup.plugin].into_iter().chain(&setup.others).cloned().collect();
        let options =
            RuntimeOptions { plugins, search: setup.search, settings, ..RuntimeOptions::default() };
        let (runtime, report) = Runtime::new(options).map_err(|error| error.to_string())?;
        let id = loaded(&runtime, &report, &setup.plugin)?;
        let goldens = match &setup.goldens {
            Some(folder) => Some(Rc::new(Goldens::open(folder).map_err(|e| e.to_string())?)),
            None => None,
        };
        let oracle = Oracle::new(&runtime, setup.goldens.as_deref()).map_err(|e| e.to_string())?;
        let own_ops = (runtime.plugins().library(id)).map_or(Vec::new(), |library| {
            library.manifest.ops.iter().map(|op| op.name.clone()).collect()
        });
        let things = things(&runtime.registry(), id, &own_ops, &setup);
        let mut notes: Vec<String> = report.warnings.iter().map(ToString::to_string).collect();
        let mut types: BTreeMap<String, usize> = BTreeMap::new();
        for subject in things.iter().filter_map(Thing::kernel) {
            *types.entry(kernel_of(subject)).or_default() += 1;
        }
        let subjects = types.values().sum();
        let Sampling { seed, cases, full } = setup.sampling;
        let cases_per_subject = budget::cases(setup.sampling, subjects);
        if cases_per_subject < cases {
            notes.push(format!(
                "of {subjects} kernels and element types each has {cases_per_subject} cases instead of \
                 {cases}: check some ops, or all with --full"
            ));
        }
        let generator = Generator::new(Budget { seed, cases_per_subject, full }, goldens);
        let examiners = RefCell::default();
        Ok(Agenda { runtime, setup, things, notes, oracle, generator, subjects, types, examiners })
    }

    /// How long what is repeated for a kernel is repeated.
    pub fn effort(&self, subject: &Subject) -> Effort {
        let types = self.types.get(&kernel_of(subject)).copied().unwrap_or(1);
        budget::effort(self.setup.sampling, self.subjects, types)
    }

    /// The units to check, for the driver.
    pub fn units(&self) -> Vec<Unit> {
        self.things.iter().map(|thing| self.unit(thing)).collect()
    }

    fn unit(&self, thing: &Thing) -> Unit {
        let empty = String::new;
        match thing {
            Thing::Kernel(subject) => Unit {
                kind: UnitKind::Kernel,
                name: subject.to_string(),
                op: subject.op.name.clone(),
                device: subject.kernel.device_type.clone(),
                label: subject.kernel.label.clone(),
                source: subject.kernel.source.to_string(),
            },
            Thing::Op(op) => Unit {
                kind: UnitKind::Op,
                name: format!("op {}", op.name),
                op: op.name.clone(),
                device: empty(),
                label: empty(),
                source: op.source.to_string(),
            },
            Thing::Device(name) => Unit {
                kind: UnitKind::Device,
                name: format!("device {name}"),
                op: empty(),
                device: name.clone(),
                label: empty(),
                source: empty(),
            },
            Thing::Plugin(name) => Unit {
                kind: UnitKind::Plugin,
                name: format!("plugin {name}"),
                op: empty(),
                device: empty(),
                label: empty(),
                source: empty(),
            },
        }
    }

    /// Whether there are so many kernels with element types that a call of each is all there is time for.
    pub fn has_many_subjects(&self) -> bool {
        self.subjects > MANY
    }

    /// A case of each of some kernels, spread over all of them but those of these names.
    pub fn some_cases(&self, without: &[String]) -> Vec<(Subject, CheckCase)> {
        let is_wanted = |subject: &&Subject| !without.contains(&subject.to_string());
        let kernels: Vec<&Subject> =
            self.things.iter().filter_map(Thing::kernel).filter(is_wanted).collect();
        let every = kernels.len().div_ceil(SOME).max(1);
        let first = |subject: &Subject| {
            let case = self.generate(subject).cases.into_iter().next()?;
            Some((subject.clone(), case))
        };
        kernels.into_iter().step_by(every).filter_map(first).collect()
    }

    /// The cases of a kernel: those that are chosen; where an oracle judges it, those with huge numbers and with
    /// attributes far from their defaults; then those of which the indices are out of range.
    pub fn generate(&self, subject: &Subject) -> Generated {
        let mut generated = self.generator.generate(subject);
        let mut more = Vec::new();
        if self.oracle.of(subject).is_ok() {
            more.extend(huge(&generated.cases));
            more.extend(far(subject, &generated.cases));
        }
        more.extend(beyond(subject, &generated.cases));
        generated.cases.extend(more);
        generated
    }

    /// The examiner of kernels for a device type. Kernels for every type are examined on the host's own.
    pub fn examiner(&self, device_type: &str) -> Result<Rc<Examiner>, String> {
        let wanted = if device_type == "DEFAULT" { "CPU" } else { device_type };
        let mut examiners = self.examiners.borrow_mut();
        let made = examiners.entry(wanted.to_owned()).or_insert_with(|| {
            Examiner::new(&self.runtime, wanted).map(Rc::new).map_err(|error| error.to_string())
        });
        made.clone()
    }

    /// Why the device is lost that kernels of a type run on.
    pub fn lost(&self, device_type: &str) -> Option<String> {
        let devices = self.runtime.devices().devices();
        let device = devices.iter().find(|device| device.device_type() == device_type)?;
        device.lost().map(|reason| reason.to_string())
    }
}

/// The plugin under its name, however it came to be loaded.
fn loaded(runtime: &Runtime, report: &LoadReport, file: &Path) -> Result<PluginId, String> {
    let same = |path: &Path| path == file;
    let rejected = report.rejected.iter().find(|rejected| same(&rejected.candidate.path));
    if let Some(rejected) = rejected {
        return Err(rejected.error.to_string());
    }
    let registry = runtime.registry();
    let info = (registry.plugins())
        .find(|info| !info.retired && info.path.as_deref().is_some_and(same))
        .or(report.present.first())
        .ok_or_else(|| {
            format!("{}: it is not among the plugins that are loaded", file.display())
        })?;
    Ok(info.id)
}

fn things(registry: &Registry, plugin: PluginId, own_ops: &[String], setup: &Setup) -> Vec<Thing> {
    let wanted = |names: &[String], name: &str| names.is_empty() || names.iter().any(|n| n == name);
    let op_wanted = |op: &str| wanted(&setup.ops, op);
    let kernels = subjects(registry, plugin).into_iter().filter(|subject| {
        op_wanted(&subject.op.name) && wanted(&setup.devices, &subject.kernel.device_type)
    });
    let mut things: Vec<Thing> = kernels.map(Thing::Kernel).collect();
    if setup.devices.is_empty() {
        let ops = registry.ops().filter(|op| own_ops.contains(&op.name) && op_wanted(&op.name));
        let without = ops.filter(|op| registry.kernels_of(&op.name).is_empty());
        things.extend(without.map(|op| Thing::Op(Arc::clone(op))));
    }
    if setup.ops.is_empty() {
        let types = registry.device_types().filter(|device| device.plugin == plugin);
        let types = types.filter(|device| wanted(&setup.devices, &device.name));
        things.extend(types.map(|device| Thing::Device(device.name.clone())));
    }
    if setup.ops.is_empty() && setup.devices.is_empty() {
        things.extend(registry.plugin(plugin).map(|info| Thing::Plugin(info.name.clone())));
    }
    things
}
