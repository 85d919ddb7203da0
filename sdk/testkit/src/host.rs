//! A host without a graph, for tests of a plugin: loads libraries, makes kernels of their ops, calls them.
//!
//! A failure while a host or a call is made panics with the message, as tests want it; an error of a kernel is returned.
//!
//! ```no_run
//! use tenon_testkit::host::{TestHost, elements, floats, library};
//!
//! let host = TestHost::with([library(env!("CARGO_PKG_NAME"))]);
//! let y = host.node("Relu").call(&[floats(&[1.0, -1.0])]).unwrap();
//! assert_eq!(elements::<f32>(&y[0]), [1.0, 0.0]);
//! ```

use std::{path::PathBuf, sync::Arc};
use tenon_framework::{
    KernelError, PartialShape, Tensor,
    attr::{AttrMap, AttrValue},
    attr_view::AttrTable,
    device::{DeviceName, base::DeviceBase},
    infer::{Symbols, ValueInfo, infer},
    knob::Knobs,
    op::{OpDef, Signature, infer_attrs},
    registry::{Explanation, FeatureSet, KernelDef, KernelQuery, SupportAnswer, candidates},
};
use tenon_runtime::host::{
    HOST, Plugins, Settings,
    call::StepEnv,
    devices::{DeviceManager, PluginDevice},
    instance::{KernelInstance, KernelSpec, call_donating, call_once},
    pool::ThreadPool,
    resources::Resources,
    search::SearchPath,
};
use tenon_runtime::isolate::with_isolation;

pub use tenon_test::{elements, floats, library, library_in, scalar, shaped, texts};

/// Plugins that are loaded, their devices, and an environment for steps.
pub struct TestHost {
    /// The plugins.
    pub plugins: Plugins,
    /// Their devices.
    pub devices: DeviceManager,
    /// Where kernels run; `None` is the host's own memory.
    pub device: Option<Arc<PluginDevice>>,
    /// What calls are given.
    pub env: StepEnv,
}

impl TestHost {
    /// A host with these plugins, settings aside.
    ///
    /// # Panics
    /// When one of them is refused.
    pub fn with(files: impl IntoIterator<Item = PathBuf>) -> TestHost {
        TestHost::with_settings(files, &[])
    }

    /// A host with these plugins and these knobs, `scope.name` to value.
    ///
    /// # Panics
    /// When a plugin is refused, or a knob is wrong.
    pub fn with_settings(
        files: impl IntoIterator<Item = PathBuf>,
        knobs: &[(&str, &str)],
    ) -> TestHost {
        let set = knobs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let settings = Settings { set: set.collect(), ..Settings::default() };
        TestHost::searching(&SearchPath::explicit(files), settings)
    }

    /// A host with these plugins, each in its own process, and these knobs.
    ///
    /// # Panics
    /// As [`TestHost::with_settings`].
    pub fn isolating(files: impl IntoIterator<Item = PathBuf>, knobs: &[(&str, &str)]) -> TestHost {
        let set = knobs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let settings = Settings { set: set.collect(), ..Settings::default() };
        TestHost::searching(&SearchPath::default().isolating(files), settings)
    }

    fn searching(search: &SearchPath, settings: Settings) -> TestHost {
        let plugins = Plugins::with_settings(settings).unwrap_or_else(|e| panic!("{e}"));
        let plugins = with_isolation(plugins);
        plugins.set_threads(2);
        let loaded = plugins.load_search(search).into_result();
        loaded.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(plugins.settings_errors(), [], "the settings are of known knobs");
        let handle = Arc::clone(plugins.handle());
        let devices =
            DeviceManager::new(&HOST, DeviceName::of_task("localhost", 0), handle, |id| {
                plugins.context(id)
            });
        let pool = Arc::new(ThreadPool::new(2));
        let resources = Arc::new(Resources::with_registry(plugins.handle()));
        let env = StepEnv::new(pool, resources);
        TestHost { plugins, devices, device: None, env }
    }

    /// As it was, with kernels on this device, such as `ACCEL:0`.
    ///
    /// # Panics
    /// When there is no such device.
    pub fn on(mut self, device: &str) -> TestHost {
        self.device = Some(self.find(device));
        self
    }

    /// A device.
    ///
    /// # Panics
    /// When there is none.
    pub fn find(&self, device: &str) -> Arc<PluginDevice> {
        let parsed = DeviceName::parse(device).unwrap_or_else(|e| panic!("{device}: {e}"));
        self.devices.find(&parsed).unwrap_or_else(|| panic!("{device}: there is no such device"))
    }

    /// The same plugins and devices with another session: no resources, no cancellation.
    pub fn fresh_env(&self) -> StepEnv {
        let resources = Arc::new(Resources::with_registry(self.plugins.handle()));
        StepEnv::new(self.env.pool.clone(), resources)
    }

    /// A node of this op.
    pub fn node(&self, op: &str) -> Node<'_> {
        Node {
            host: self,
            op: op.to_owned(),
            name: "node".to_owned(),
            attrs: AttrMap::new(),
            shapes: Vec::new(),
            constants: Vec::new(),
            label: None,
        }
    }
}

/// A node, of which a kernel is made.
#[derive(Clone)]
pub struct Node<'h> {
    host: &'h TestHost,
    op: String,
    name: String,
    attrs: AttrMap,
    shapes: Vec<PartialShape>,
    constants: Vec<Option<Tensor>>,
    label: Option<String>,
}

impl<'h> Node<'h> {
    /// Names it.
    pub fn named(mut self, name: &str) -> Node<'h> {
        self.name = name.to_owned();
        self
    }

    /// Sets an attribute.
    pub fn attr(mut self, name: &str, value: impl Into<AttrValue>) -> Node<'h> {
        self.attrs.insert(name.to_owned(), value.into());
        self
    }

    /// Says what is known of the shape of the next input.
    ///
    /// # Panics
    /// When it is not a shape.
    pub fn shape(mut self, dims: &[i64]) -> Node<'h> {
        self.shapes.push(PartialShape::new(dims).unwrap_or_else(|e| panic!("{e}")));
        self
    }

    /// Says that this input is constant.
    pub fn constant(mut self, input: usize, value: &Tensor) -> Node<'h> {
        self.constants.resize(self.constants.len().max(input + 1), None);
        self.constants[input] = Some(value.clone());
        self
    }

    /// Asks for a kernel of this label.
    pub fn label(mut self, label: &str) -> Node<'h> {
        self.label = Some(label.to_owned());
        self
    }

    /// With the type attributes that follow from the inputs' types. If there are none, resolving gives the reason.
    fn typed(&self, inputs: &[Tensor]) -> Node<'h> {
        let mut node = self.clone();
        if let Some(op) = self.host.plugins.registry().op(&self.op) {
            let types: Vec<_> = inputs.iter().map(Tensor::dtype).collect();
            let _ = infer_attrs(op, &types, &mut node.attrs);
        }
        node
    }

    fn resolve(&self) -> Resolved {
        let registry = self.host.plugins.registry();
        let op = registry.op(&self.op).unwrap_or_else(|| panic!("op {} is registered", self.op));
        let attrs = AttrTable::with_defaults(op, self.attrs.clone());
        let attrs = attrs.unwrap_or_else(|e| panic!("{}: {e}", self.op));
        let signature = Signature::resolve(op, attrs.attrs());
        let signature = signature.unwrap_or_else(|e| panic!("{}: {e}", self.op));
        Resolved { op: Arc::clone(op), attrs, signature, knobs: self.host.plugins.knobs() }
    }

    fn spec<'s>(&'s self, resolved: &'s Resolved, def: &'s Arc<KernelDef>) -> KernelSpec<'s> {
        KernelSpec {
            def,
            op: &resolved.op,
            node: &self.name,
            attrs: &resolved.attrs,
            signature: &resolved.signature,
            input_shapes: &self.shapes,
            constants: &self.constants,
            device: self.host.device.as_ref(),
            knobs: &resolved.knobs,
        }
    }

    /// Which kernels there are, and which one runs.
    pub fn explain(&self) -> Explanation {
        let resolved = self.resolve();
        let registry = self.host.plugins.registry();
        let device_type = self.host.device.as_ref().map_or("CPU", |d| d.device_type());
        let features = FeatureSet::of_this_cpu();
        let query = KernelQuery {
            op: &self.op,
            device_type,
            attrs: resolved.attrs.attrs(),
            features: &features,
            label: self.label.as_deref(),
        };
        let all: Vec<Arc<KernelDef>> = registry.kernels_of(&self.op).to_vec();
        candidates(&registry, &query, &mut |kernel| {
            let def = all.iter().find(|def| std::ptr::eq(&***def, kernel));
            match def.map(|def| self.spec(&resolved, def).supports()) {
                Some(Ok(answer)) => answer,
                Some(Err(error)) => SupportAnswer::No(error.message),
                None => SupportAnswer::No("not of this registry".to_owned()),
            }
        })
    }

    /// Makes the kernel that is chosen.
    ///
    /// # Errors
    /// No kernel takes the node (`NOT_FOUND`); what the kernel says of it.
    pub fn create(&self) -> Result<KernelInstance, KernelError> {
        let explained = self.explain();
        let def = explained.result().map_err(|e| KernelError::new(e.code(), e.to_string()))?;
        KernelInstance::create(&self.spec(&self.resolve(), def))
    }

    /// Makes the kernel and calls it once.
    ///
    /// # Errors
    /// The kernel's message.
    pub fn call(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>, KernelError> {
        call_once(&self.typed(inputs).create()?, inputs, &self.host.env)
    }

    /// As [`Node::call`]; the kernel may take the inputs' buffers over.
    ///
    /// # Errors
    /// As [`Node::call`].
    pub fn call_donating(
        &self,
        inputs: Vec<Tensor>,
    ) -> Result<(Vec<Tensor>, Vec<Option<usize>>), KernelError> {
        call_donating(&self.typed(&inputs).create()?, inputs, &self.host.env)
    }

    /// Runs the op's shape function on what is known of the inputs, whose unknown dimensions are `symbols`.
    ///
    /// # Errors
    /// A refusal of the shape function.
    pub fn infer(
        &self,
        inputs: &[&ValueInfo],
        symbols: &mut Symbols,
    ) -> Result<Vec<ValueInfo>, KernelError> {
        let resolved = self.resolve();
        infer(&resolved.op, &resolved.attrs, inputs, symbols)
    }
}

/// Op, attributes and signature of a node.
struct Resolved {
    op: Arc<OpDef>,
    attrs: AttrTable,
    signature: Signature,
    knobs: Arc<Knobs>,
}
