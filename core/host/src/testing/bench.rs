//! Creates kernels of registered ops and calls them.

use crate::{
    HOST, Plugins,
    call::StepEnv,
    devices::{DeviceManager, PluginDevice},
    instance::{KernelInstance, KernelSpec, call_once},
    pool::ThreadPool,
    resources::Resources,
};
use std::sync::Arc;
use tenon_framework::{
    KernelError, PartialShape, Tensor,
    attr::{AttrMap, AttrValue},
    attr_view::AttrTable,
    device::{DeviceName, base::DeviceBase},
    op::Signature,
    registry::{KernelDef, Registry},
};

/// An attribute.
pub(crate) fn attr(name: &'static str, value: impl Into<AttrValue>) -> (&'static str, AttrValue) {
    (name, value.into())
}

/// Plugins, optionally a device, and an environment for steps.
pub(crate) struct Bench {
    pub plugins: Plugins,
    pub devices: DeviceManager,
    pub device: Option<Arc<PluginDevice>>,
    pub env: StepEnv,
}

impl Bench {
    /// A bench on the host's own memory.
    pub fn host() -> Bench {
        let plugins = Plugins::new().unwrap();
        let handle = Arc::clone(plugins.handle());
        let devices =
            DeviceManager::new(&HOST, DeviceName::of_task("localhost", 0), handle, |id| {
                plugins.context(id)
            });
        let pool = Arc::new(ThreadPool::new(2));
        let resources = Arc::new(Resources::with_registry(plugins.handle()));
        let env = StepEnv::new(pool, resources);
        Bench { plugins, devices, device: None, env }
    }

    /// A bench on the first fake device.
    pub fn with_fake_device() -> Bench {
        Bench::on("FAKE:0")
    }

    /// A bench on this device.
    pub fn on(name: &str) -> Bench {
        let mut bench = Bench::host();
        bench.device = bench.devices.find(&DeviceName::parse(name).unwrap());
        assert!(bench.device.is_some(), "{name} is there");
        bench
    }

    fn kernel(
        &self,
        registry: &Registry,
        op: &str,
        label: &str,
        attrs: &AttrMap,
    ) -> Arc<KernelDef> {
        let device_type = self.device.as_ref().map_or("CPU", |device| device.device_type());
        let takes = |kernel: &KernelDef| {
            kernel.constraints.iter().all(|constraint| match attrs.get(&constraint.attr) {
                Some(AttrValue::Type(dtype)) => constraint.types.contains(dtype),
                _ => false,
            })
        };
        let mut kernels = registry.kernels_of(op).iter();
        let found =
            kernels.find(|k| k.serves(device_type) && k.label == label && takes(k)).cloned();
        found.unwrap_or_else(|| panic!("{op} has a kernel for {device_type}"))
    }

    /// Calls `body` with the description of a kernel.
    pub fn with_spec<R>(
        &self,
        op: &str,
        label: &str,
        attrs: &[(&str, AttrValue)],
        shapes: &[PartialShape],
        body: impl FnOnce(&KernelSpec<'_>) -> R,
    ) -> R {
        let registry = self.plugins.registry();
        let op = registry.op(op).unwrap_or_else(|| panic!("op {op} is registered"));
        let map = attrs.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let attrs = AttrTable::with_defaults(op, map.collect()).unwrap();
        let signature = Signature::resolve(op, attrs.attrs()).unwrap();
        let def = self.kernel(&registry, &op.name, label, attrs.attrs());
        body(&KernelSpec {
            def: &def,
            op,
            node: "node",
            attrs: &attrs,
            signature: &signature,
            input_shapes: shapes,
            constants: &[],
            device: self.device.as_ref(),
            knobs: &self.plugins.knobs(),
        })
    }

    /// A kernel.
    pub fn instance(
        &self,
        op: &str,
        attrs: &[(&str, AttrValue)],
    ) -> Result<KernelInstance, KernelError> {
        self.with_spec(op, "", attrs, &[], KernelInstance::create)
    }

    /// Creates a kernel and calls it once.
    pub fn call(
        &self,
        op: &str,
        attrs: &[(&str, AttrValue)],
        inputs: &[Tensor],
    ) -> Result<Vec<Tensor>, KernelError> {
        call_once(&self.instance(op, attrs)?, inputs, &self.env)
    }
}
