//! Wrong calls of every op, and the answers that are faults.
//!
//! What it is: [`Fuzzer`] makes of any bytes a call of an op: attributes within their kinds, ordinary and
//! hostile numbers, shapes that hardly fit, indices out of range; from the definition alone, or from a golden
//! call of which something is changed. It makes that call with all, some and nothing known of the inputs. A
//! [`Fault`] is a panic, an internal error, a refusal without a reason, outputs that the shape function
//! contradicts, or an answer that depends on what is known. Tests run it over seeds, libFuzzer over its own
//! bytes (`fuzz/`). What it is not: a judge of values, and not a watch: a call that hangs or ends the process
//! is found by a program that runs this in a separate process.
//!
//! # Invariants
//! - The same bytes and the same plugins make the same call.
//! - Host memory has a limit of [`MEMORY`] as long as the process lives, so that an unchecked size is
//!   refused instead of allocated.

mod bytes;
pub mod graphs;
mod judge;
mod make;
pub mod passes;
mod values;

pub use bytes::bytes_of;
pub use judge::{Ending, Fault};

use crate::{
    TestkitError,
    check::{Subject, json::tensor_to_json, subjects},
    golden::{self, Expected},
    node::device_of,
};
use bytes::Bytes;
use make::Seed;
use std::{collections::BTreeMap, fmt, path::Path, sync::Arc};
use tenon_framework::{
    Tensor,
    attr::AttrMap,
    knob::Knobs,
    op::OpDef,
    registry::{KernelDef, PluginId},
};
use tenon_runtime::{
    Runtime,
    host::{call::StepEnv, devices::PluginDevice, memory::HostMemory, resources::Resources},
};

/// Families whose ops are called: folders of golden data, and of definitions in core/ops/src.
pub const FAMILIES: [&str; 13] = [
    "array",
    "fft",
    "image",
    "io",
    "linalg",
    "math_binary",
    "math_unary",
    "nn",
    "nn_grad",
    "quantization",
    "random",
    "reduction",
    "string",
];

/// The libraries that have their kernels.
pub const PLUGINS: [&str; 6] =
    ["tenon-cpu", "tenon-fft", "tenon-image", "tenon-int8", "tenon-linalg", "tenon-text"];

/// Ops that are not called, since they write to wherever a text says.
const WRITERS: [&str; 1] = ["WriteFile"];

/// Bytes that the host gives at most.
pub const MEMORY: u64 = 64 << 20;

/// This many bytes make any call.
pub const CALL_BYTES: usize = 192;

/// Golden calls whose inputs have more bytes are not seeds.
const MOST_SEED_BYTES: usize = 4096;

/// One call of a kernel.
pub struct Call {
    op: Arc<OpDef>,
    kernel: Arc<KernelDef>,
    attrs: AttrMap,
    inputs: Vec<Tensor>,
}

/// `Slice[T=float] 'label' {attributes} (inputs)`, in the form of reproducers.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} '{}'", self.op.name, self.kernel.label)?;
        let attrs = crate::attrs::to_json(&self.attrs, &|tensor| {
            tensor_to_json(tensor).unwrap_or_default()
        });
        write!(f, " {}", serde_json::Value::from(attrs))?;
        for input in &self.inputs {
            let text = tensor_to_json(input).unwrap_or_default().to_string();
            write!(f, " {}", text.chars().take(300).collect::<String>())?;
        }
        Ok(())
    }
}

/// An op with what calls are made from.
struct Target {
    subjects: Vec<Subject>,
    seeds: Vec<Seed>,
}

/// Makes calls of the CPU's kernels.
pub struct Fuzzer {
    targets: BTreeMap<String, Target>,
    device: Arc<PluginDevice>,
    knobs: Arc<Knobs>,
    env: StepEnv,
}

impl Fuzzer {
    /// A fuzzer of all kernels for the CPU of ops whose definitions are in one of these folders or files of
    /// core/ops/src. From here on the process has a limit on host memory.
    ///
    /// # Errors
    /// There is no such device.
    pub fn new(runtime: &Runtime, families: &[&str]) -> Result<Fuzzer, TestkitError> {
        HostMemory::shared().set_limit(MEMORY);
        let device = device_of(runtime, "CPU").ok_or_else(|| TestkitError::NoDevice {
            wanted: "CPU".to_owned(),
            found: String::new(),
        })?;
        let registry = runtime.registry();
        let plugins: Vec<PluginId> = registry.plugins().map(|plugin| plugin.id).collect();
        let mut targets: BTreeMap<String, Target> = BTreeMap::new();
        for subject in plugins.into_iter().flat_map(|id| subjects(&registry, id)) {
            let family = family(&subject.op).filter(|_| !WRITERS.contains(&&*subject.op.name));
            if subject.kernel.serves("CPU") && family.is_some_and(|name| families.contains(&name)) {
                let target = targets.entry(subject.op.name.clone());
                let empty = || Target { subjects: Vec::new(), seeds: Vec::new() };
                target.or_insert_with(empty).subjects.push(subject);
            }
        }
        let resources = Arc::new(Resources::new());
        let env = StepEnv::new(Arc::clone(runtime.pool()), resources);
        Ok(Fuzzer { targets, device, knobs: runtime.plugins().knobs(), env })
    }

    /// Adds the golden calls of a folder to what calls are made from, such as are small and right.
    ///
    /// # Errors
    /// Golden data that cannot be read.
    pub fn learn(&mut self, folder: &Path) -> Result<(), TestkitError> {
        for index in golden::indexes(folder)? {
            for case in golden::read_op(&index)? {
                let Some(target) = self.targets.get_mut(&case.op) else { continue };
                let bytes: usize = case.inputs.iter().map(Tensor::byte_len).sum();
                if matches!(case.expected, Expected::Outputs(_)) && bytes <= MOST_SEED_BYTES {
                    target.seeds.push((case.attrs, case.inputs));
                }
            }
        }
        Ok(())
    }

    /// The ops, in order.
    pub fn ops(&self) -> Vec<&str> {
        self.targets.keys().map(String::as_str).collect()
    }

    /// The call that bytes make: their first two choose the op.
    pub fn call(&self, data: &[u8]) -> Option<Call> {
        let mut bytes = Bytes::new(data);
        let ops = self.ops();
        let op = *ops.get(bytes.below(1 << 16) % ops.len().max(1))?;
        self.made(op, &mut bytes)
    }

    /// The call of an op that bytes make; `None` where they make none.
    pub fn call_of(&self, op: &str, data: &[u8]) -> Option<Call> {
        self.made(op, &mut Bytes::new(data))
    }

    fn made(&self, op: &str, bytes: &mut Bytes<'_>) -> Option<Call> {
        let target = self.targets.get(op)?;
        if target.seeds.is_empty() || bytes.one_in(3) {
            let subject = &target.subjects[bytes.below(target.subjects.len())];
            return make::drawn(bytes, subject);
        }
        let seed = &target.seeds[bytes.below(target.seeds.len())];
        let fits = |subject: &&Subject| {
            subject.types.iter().all(|(name, value)| {
                seed.0.get(name).and_then(|own| own.as_type()) == value.as_type()
            })
        };
        let fitting: Vec<&Subject> = target.subjects.iter().filter(fits).collect();
        let subject = *fitting.get(bytes.below(fitting.len().max(1)))?;
        let (attrs, inputs) = make::changed(bytes, &subject.op, seed);
        let kernel = Arc::clone(&subject.kernel);
        Some(Call { op: Arc::clone(&subject.op), kernel, attrs, inputs })
    }

    /// Makes a call.
    ///
    /// # Errors
    /// How it must not be answered.
    pub fn judge(&self, call: &Call) -> Result<Ending, Fault> {
        judge::judge(call, &self.device, &self.knobs, &self.env)
    }
}

impl fmt::Debug for Fuzzer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fuzzer({} ops)", self.targets.len())
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The folder or file of core/ops/src that defines an op.
fn family(op: &OpDef) -> Option<&str> {
    let (_, path) = op.source.file.rsplit_once("ops/src/")?;
    path.split(['/', '.']).next()
}
