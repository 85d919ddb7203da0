//! What of all that there is, is to be listed.

use crate::{args::ListArgs, error::CliError};
use tenon_benchkit::wanted::closest;
use tenon_runtime::framework::{
    knob::{KnobDef, Knobs},
    registry::{DeviceTypeDef, KernelDef, PluginInfo, Registry},
};
use tenon_testkit::exceptions::matches;

/// Names and device types; everything is listed if there are none.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Patterns in lower case.
    names: Vec<String>,
    devices: Vec<String>,
}

impl Wanted {
    /// What the command line says.
    pub fn of(args: &ListArgs) -> Wanted {
        let names = args.names.iter().map(|name| name.to_lowercase()).collect();
        Wanted { names, devices: args.devices.clone() }
    }

    /// Whether this is all that there is.
    pub fn is_all(&self) -> bool {
        self.names.is_empty() && self.devices.is_empty()
    }

    /// Whether devices are listed: those of names are not, for an op has none.
    pub fn has_devices(&self) -> bool {
        self.names.is_empty() || !self.devices.is_empty()
    }

    fn names(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.names.is_empty() || self.names.iter().any(|pattern| matches(pattern, &name))
    }

    /// Whether a device type is listed.
    pub fn device(&self, name: &str) -> bool {
        self.devices.is_empty() || self.devices.iter().any(|device| device == name)
    }

    /// Whether a kernel is listed: by its op, or by its plugin.
    pub fn kernel(&self, kernel: &KernelDef) -> bool {
        let named = self.names(&kernel.op) || self.names(&kernel.plugin_name);
        named && self.device(&kernel.device_type)
    }

    /// Whether an op is listed: by its name, or for a kernel.
    pub fn op(&self, name: &str, registry: &Registry) -> bool {
        let named = self.devices.is_empty() && self.names(name);
        named || registry.kernels_of(name).iter().any(|kernel| self.kernel(kernel))
    }

    /// Whether a plugin is listed: by its name, or for what it brings.
    pub fn plugin(&self, info: &PluginInfo, registry: &Registry) -> bool {
        let named = self.devices.is_empty() && self.names(&info.name);
        let own = |device: &&DeviceTypeDef| device.plugin == info.id;
        let mut devices = registry.device_types().map(AsRef::as_ref).filter(own);
        let mut kernels = registry.kernels().filter(|kernel| kernel.plugin == info.id);
        named
            || !self.devices.is_empty() && devices.any(|device| self.device(&device.name))
            || kernels.any(|kernel| self.kernel(kernel))
    }

    /// Whether a knob is listed: by its whole name, or by the one within its scope.
    pub fn knob(&self, def: &KnobDef) -> bool {
        self.names(&def.full_name()) || self.names(&def.name)
    }

    /// Looks whether there is something of each name.
    ///
    /// # Errors
    /// The first one that nothing has.
    pub fn check(&self, registry: &Registry) -> Result<(), CliError> {
        let ops = || registry.ops().map(|op| op.name.as_str());
        let plugins = || registry.plugins().filter(|info| !info.retired);
        let all = || ops().chain(plugins().map(|info| info.name.as_str()));
        self.check_names("op or plugin", all)?;
        let types = || registry.device_types().map(|device| device.name.as_str());
        match self.devices.iter().find(|wanted| types().all(|name| name != *wanted)) {
            Some(device) => Err(not_there("device type", device, types())),
            None => Ok(()),
        }
    }

    /// Looks whether there is a knob of each name.
    ///
    /// # Errors
    /// The first one that none has.
    pub fn check_knobs(&self, knobs: &Knobs) -> Result<(), CliError> {
        let names: Vec<[String; 2]> =
            knobs.iter().map(|knob| [knob.def.full_name(), knob.def.name.clone()]).collect();
        let whole = |near: String| match names.iter().find(|[_, name]| *name == near) {
            Some([whole, _]) => whole.clone(),
            None => near,
        };
        self.check_names("knob", || names.iter().flatten().map(String::as_str)).map_err(|error| {
            match error {
                CliError::NothingNamed { what, name, near } => {
                    CliError::NothingNamed { what, name, near: near.map(whole) }
                }
                error => error,
            }
        })
    }

    fn check_names<'n, I: Iterator<Item = &'n str>>(
        &self,
        what: &'static str,
        all: impl Fn() -> I,
    ) -> Result<(), CliError> {
        let is_missing =
            |pattern: &&String| !all().any(|name| matches(pattern, &name.to_lowercase()));
        match self.names.iter().find(is_missing) {
            Some(pattern) => Err(not_there(what, pattern, all())),
            None => Ok(()),
        }
    }
}

fn not_there<'n>(what: &'static str, name: &str, known: impl Iterator<Item = &'n str>) -> CliError {
    let near = closest(name, known).map(str::to_owned);
    CliError::NothingNamed { what, name: name.to_owned(), near }
}
