//! Transactions: all that one plugin registers, committed as a whole or not at all.

use super::{
    error::{RegistryError, Warning},
    kernel_def::{DEFAULT_DEVICE, KernelDef},
    plugin::{DeviceTypeDef, PluginInfo},
    remote::RemoteKernel,
    snapshot::{Built, Collection, Registry},
    variant::VariantDef,
};
use crate::{
    fusion::FusionDef,
    knob::KnobDef,
    op::{OpDef, RemoteShape},
    pass::PassDef,
};
use std::sync::Arc;
use tenon_abi::Code;

/// Collects what one plugin registers. What is wrong with a registration is kept and reported at commit.
#[derive(Debug)]
pub struct Transaction {
    info: PluginInfo,
    name: Arc<str>,
    ops: Vec<OpDef>,
    kernels: Vec<KernelDef>,
    device_types: Vec<DeviceTypeDef>,
    knobs: Vec<KnobDef>,
    fusions: Vec<FusionDef>,
    passes: Vec<PassDef>,
    variants: Vec<VariantDef>,
    errors: Vec<RegistryError>,
}

impl Transaction {
    /// An empty transaction of this plugin.
    pub fn new(info: PluginInfo) -> Transaction {
        Transaction {
            name: Arc::from(info.name.as_str()),
            info,
            ops: Vec::new(),
            kernels: Vec::new(),
            device_types: Vec::new(),
            knobs: Vec::new(),
            fusions: Vec::new(),
            passes: Vec::new(),
            variants: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// The plugin.
    pub fn info(&self) -> &PluginInfo {
        &self.info
    }

    /// What is wrong so far.
    pub fn errors(&self) -> &[RegistryError] {
        &self.errors
    }

    /// Adds an op.
    pub fn add_op(&mut self, op: OpDef) {
        self.ops.push(op);
    }

    /// Adds a kernel of this plugin; its `plugin`, `plugin_name`, `foreign` and `order` are set here.
    pub fn add_kernel(&mut self, kernel: KernelDef) {
        let (plugin, plugin_name) = (self.info.id, self.name.clone());
        let kernel = KernelDef { plugin, plugin_name, foreign: self.info.foreign, ..kernel };
        match kernel.check() {
            Ok(()) => self.kernels.push(kernel),
            Err(error) => self.errors.push(error),
        }
    }

    /// The ops so far, in the order in which they were added.
    pub fn ops(&self) -> &[OpDef] {
        &self.ops
    }

    /// The kernels so far, in the order in which they were added.
    pub fn kernels(&self) -> &[KernelDef] {
        &self.kernels
    }

    /// Sets the entries of each op and kernel that are not in this process, in the order in which they were added.
    pub fn set_remote(
        &mut self,
        shape: impl Fn(usize, &OpDef) -> Option<Arc<dyn RemoteShape>>,
        kernel: impl Fn(usize, &KernelDef) -> Arc<dyn RemoteKernel>,
    ) {
        for (at, op) in self.ops.iter_mut().enumerate() {
            op.remote = shape(at, op);
        }
        for (at, def) in self.kernels.iter_mut().enumerate() {
            def.remote = Some(kernel(at, def));
        }
    }

    /// Adds a device type of this plugin.
    pub fn add_device_type(&mut self, def: DeviceTypeDef) {
        let upper = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
        let starts_upper = def.name.starts_with(|c: char| c.is_ascii_uppercase());
        if def.name == DEFAULT_DEVICE || !starts_upper || !def.name.bytes().all(upper) {
            let (name, source_at) = (def.name, def.source);
            self.errors.push(RegistryError::DeviceName { name, source_at });
            return;
        }
        self.device_types.push(DeviceTypeDef { plugin: self.info.id, ..def });
    }

    /// Adds a knob.
    pub fn add_knob(&mut self, knob: KnobDef) {
        self.knobs.push(knob);
    }

    /// Adds a fusion of this plugin.
    pub fn add_fusion(&mut self, fusion: FusionDef) {
        let plugin = self.name.clone();
        self.fusions.push(FusionDef { plugin, ..fusion });
    }

    /// Adds a pass of this plugin.
    pub fn add_pass(&mut self, pass: PassDef) {
        let (plugin, scope) = (self.name.clone(), self.info.scope());
        self.passes.push(PassDef { plugin, scope, ..pass });
    }

    /// Adds a pass as a plugin hands it over.
    ///
    /// # Safety
    /// As [`PassDef::from_abi`].
    pub unsafe fn pass_from_abi(&mut self, link: *const tenon_abi::ExtHeader) -> Code {
        // SAFETY: `link` is null or a live link with tag `PASS`, with readable texts and an entry that lives as long as
        // the process, as the caller guarantees.
        match unsafe { PassDef::from_abi(link) } {
            Ok(pass) => self.add_pass(pass),
            Err(error) => return self.refuse(error),
        }
        Code::OK
    }

    /// Adds a type of variants as a plugin hands it over.
    ///
    /// # Safety
    /// As [`VariantDef::from_abi`].
    pub unsafe fn variant_from_abi(&mut self, link: *const tenon_abi::ExtHeader) -> Code {
        // SAFETY: `link` is null or a live link with tag `VARIANT`, with readable texts and a table that lives as long
        // as the process, as the caller guarantees.
        match unsafe { VariantDef::from_abi(link) } {
            Ok(variant) => {
                self.variants.push(VariantDef { plugin: self.name.clone(), ..variant });
            }
            Err(error) => return self.refuse(error),
        }
        Code::OK
    }

    /// Adds an op as a plugin hands it over; returns the code of its error.
    ///
    /// # Safety
    /// As [`OpDef::from_abi`].
    pub unsafe fn op_from_abi(&mut self, op: *const tenon_abi::OpDef) -> Code {
        // SAFETY: `op` is null or begins with its size and has readable pointers, as the caller guarantees; its shape
        // function stays callable while the definition is kept.
        match unsafe { OpDef::from_abi(op) } {
            Ok(op) => self.add_op(op),
            Err(error) => return self.refuse(error.into()),
        }
        Code::OK
    }

    /// Adds a kernel as a plugin hands it over.
    ///
    /// # Safety
    /// As [`KernelDef::from_abi`].
    pub unsafe fn kernel_from_abi(&mut self, kernel: *const tenon_abi::KernelDef) -> Code {
        // SAFETY: `kernel` is null or begins with its size and has readable pointers, and its table lives as long as
        // the process, as the caller guarantees.
        match unsafe { KernelDef::from_abi(self.info.id, &self.name, kernel) } {
            Ok(kernel) => {
                self.kernels.push(KernelDef { foreign: self.info.foreign, ..kernel });
            }
            Err(error) => return self.refuse(error),
        }
        Code::OK
    }

    /// Adds a device type as a plugin hands it over.
    ///
    /// # Safety
    /// As [`DeviceTypeDef::from_abi`].
    pub unsafe fn device_type_from_abi(&mut self, def: *const tenon_abi::DeviceTypeDef) -> Code {
        let before = self.errors.len();
        // SAFETY: `def` is null or begins with its size and has readable pointers, and its table lives as long as the
        // process, as the caller guarantees.
        match unsafe { DeviceTypeDef::from_abi(self.info.id, def) } {
            Ok(def) => self.add_device_type(def),
            Err(error) => return self.refuse(error),
        }
        self.errors.get(before).map_or(Code::OK, RegistryError::code)
    }

    /// Adds a knob, in the plugin's scope, as a plugin hands it over.
    ///
    /// # Safety
    /// As [`KnobDef::from_abi`].
    pub unsafe fn knob_from_abi(&mut self, knob: *const tenon_abi::KnobDef) -> Code {
        // SAFETY: `knob` is null or begins with its size and has readable texts, as the caller guarantees.
        match unsafe { KnobDef::from_abi(&self.info.scope(), knob) } {
            Ok(knob) => self.add_knob(knob),
            Err(error) => return self.refuse(error.into()),
        }
        Code::OK
    }

    /// Adds a fusion as a plugin hands it over.
    ///
    /// # Safety
    /// As [`FusionDef::from_abi`].
    pub unsafe fn fusion_from_abi(&mut self, link: *const tenon_abi::ExtHeader) -> Code {
        // SAFETY: `link` is null or a live link with tag `FUSION`, whose texts are readable, as the caller guarantees.
        match unsafe { FusionDef::from_abi(link) } {
            Ok(fusion) => self.add_fusion(fusion),
            Err(error) => return self.refuse(error),
        }
        Code::OK
    }

    /// Keeps the error of a registration that came another way; returns its code.
    pub fn refuse(&mut self, error: RegistryError) -> Code {
        let code = error.code();
        self.errors.push(error);
        code
    }

    pub(super) fn set_order(&mut self, order: u32) {
        self.info.order = order;
    }

    /// Validates and commits it alone.
    ///
    /// # Errors
    /// As [`commit_all`].
    pub fn commit(
        self,
        registry: &Registry,
    ) -> Result<(Registry, Vec<Warning>), Vec<RegistryError>> {
        commit_all(registry, vec![self])
    }

    /// Sorts what was collected: link order is not stable between builds.
    fn into_collection(self) -> Collection {
        let Transaction {
            info,
            mut ops,
            mut kernels,
            mut device_types,
            mut knobs,
            mut fusions,
            mut passes,
            mut variants,
            ..
        } = self;
        ops.sort_by(|a, b| (&a.name, &a.source).cmp(&(&b.name, &b.source)));
        kernels.sort_by_cached_key(KernelDef::sort_key);
        // An identical re-registration is harmless.
        kernels.dedup_by(|a, b| {
            std::ptr::eq(a.table, b.table)
                && a.source == b.source
                && format!("{a:?}") == format!("{b:?}")
        });
        for (at, kernel) in kernels.iter_mut().enumerate() {
            kernel.order = (info.order, at as u32);
        }
        device_types.sort_by(|a, b| (&a.name, &a.source).cmp(&(&b.name, &b.source)));
        knobs.sort_by(|a, b| (&a.name, &a.source).cmp(&(&b.name, &b.source)));
        fusions.sort_by(|a, b| (&a.source, &a.name).cmp(&(&b.source, &b.name)));
        passes.sort_by(|a, b| (&a.name, &a.source).cmp(&(&b.name, &b.source)));
        variants.sort_by(|a, b| (&a.name, &a.source).cmp(&(&b.name, &b.source)));
        Collection {
            info,
            ops: ops.into_iter().map(Arc::new).collect(),
            kernels: kernels.into_iter().map(Arc::new).collect(),
            device_types: device_types.into_iter().map(Arc::new).collect(),
            knobs: knobs.into_iter().map(Arc::new).collect(),
            fusions: fusions.into_iter().map(Arc::new).collect(),
            passes: passes.into_iter().map(Arc::new).collect(),
            variants,
        }
    }
}

/// Validates and commits several plugins together: all their ops, then their device types, then their
/// kernels, so that the order of the files does not matter. Gives a new snapshot; `registry` is as before.
///
/// # Errors
/// All that is wrong: with a registration, with two of them, with a plugin's number.
pub fn commit_all(registry: &Registry, transactions: Vec<Transaction>) -> Built {
    let mut errors = Vec::new();
    let mut collections = registry.collections.clone();
    let mut new = Vec::new();
    for mut transaction in transactions {
        errors.append(&mut transaction.errors);
        let id = transaction.info.id;
        let added = collections.iter().map(|collection| &collection.info);
        if let Some(taken) = added.chain(&registry.retired).find(|info| info.id == id) {
            errors.push(RegistryError::PluginId { id, name: taken.name.clone() });
            continue;
        }
        new.push(id);
        collections.push(Arc::new(transaction.into_collection()));
    }
    let built = Registry::build(collections, registry.retired.clone(), &new);
    if errors.is_empty() {
        return built;
    }
    // An op that could not be read is missing for its kernels: that is not a second error.
    let unread = errors.iter().any(|e| matches!(e, RegistryError::Op(_) | RegistryError::Raw(_)));
    let consequence = |e: &RegistryError| unread && matches!(e, RegistryError::UnknownOp { .. });
    errors.extend(built.err().unwrap_or_default().into_iter().filter(|e| !consequence(e)));
    Err(errors)
}
