//! Runs one case through one kernel of a loaded plugin, in each form in which a session may call it.

use crate::{
    archive::kind_of,
    compare::{compare, compare_shape},
    error::TestkitError,
    golden::{Expected, ExpectedOutput, GoldenCase, retyped},
    node::{Node, Refusal, Stage, device_of},
};
use std::{collections::BTreeSet, fmt, sync::Arc};
use tenon_framework::{
    Code, KernelError, Shape, Tensor,
    device::base::DeviceBase,
    registry::{KernelDef, KernelQuery, SupportAnswer, candidates},
    tensor::Memory,
};
use tenon_runtime::{
    Runtime,
    host::{
        call::StepEnv,
        devices::PluginDevice,
        instance::{KernelInstance, PackCache, call_donating, call_once, call_planned},
        memory::{HostMemory, copy_on_host},
        resources::Resources,
    },
};

/// What is known of a node when its kernel is made, and how the call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Nothing is known of the inputs: shapes are first seen by the call.
    Unknown,
    /// Shapes are known, and the values of inputs that are constants in real graphs.
    Shapes,
    /// All inputs are constants, and packed where the kernel does that.
    Packed,
    /// As `Shapes`, and the inputs' buffers may be taken over for outputs.
    InPlace,
    /// As `Shapes`, and the outputs have their buffers before the call.
    Planned,
}

impl Form {
    /// All forms.
    pub const ALL: [Form; 5] =
        [Form::Unknown, Form::Shapes, Form::Packed, Form::InPlace, Form::Planned];
    /// Those that can refuse a case in different places.
    pub const REFUSING: [Form; 2] = [Form::Unknown, Form::Shapes];
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Form::Unknown => "with unknown shapes",
            Form::Shapes => "with known shapes",
            Form::Packed => "with constant inputs",
            Form::InPlace => "in place",
            Form::Planned => "with planned outputs",
        })
    }
}

/// Why a case failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The form in which it was run.
    pub form: Form,
    /// Where.
    pub stage: Stage,
    /// What was expected, what was found.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{:?}, {:?}] {}", self.form, self.stage, self.message)
    }
}

/// The outcome of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// As expected in every form.
    Passed,
    /// No kernel takes it: the candidates with the reasons.
    NoKernel(String),
    /// Not as expected.
    Failed(Failure),
}

/// Runs cases on one device.
pub struct Harness {
    runtime: Runtime,
    device: Arc<PluginDevice>,
    env: StepEnv,
}

impl Harness {
    /// A harness for the first device of a type.
    ///
    /// # Errors
    /// There is no such device.
    pub fn new(runtime: &Runtime, device_type: &str) -> Result<Harness, TestkitError> {
        let device = device_of(runtime, device_type).ok_or_else(|| {
            let devices = runtime.devices().devices();
            let found = devices.iter().map(|d| d.full_name()).collect::<Vec<_>>().join(", ");
            TestkitError::NoDevice { wanted: device_type.to_owned(), found }
        })?;
        let resources = Arc::new(Resources::with_registry(runtime.plugins().handle()));
        let env = StepEnv::new(Arc::clone(runtime.pool()), resources);
        Ok(Harness { runtime: runtime.clone(), device, env })
    }

    /// Type of the device.
    pub fn device_type(&self) -> &str {
        self.device.device_type()
    }

    /// The labels of the kernels that an op has for this device type, `""` among them where there is one
    /// without.
    pub fn labels(&self, op: &str) -> BTreeSet<String> {
        let registry = self.runtime.registry();
        let kernels = registry.kernels_of(op).iter();
        let here = kernels.filter(|kernel| kernel.serves(self.device_type()));
        here.map(|kernel| kernel.label.clone()).collect()
    }

    /// Whether an op has any kernel of this label for this device type; without a label, any that the policy
    /// may choose.
    pub fn has_kernel(&self, op: &str, label: Option<&str>) -> bool {
        let registry = self.runtime.registry();
        registry.kernels_of(op).iter().any(|kernel| {
            kernel.serves(self.device_type())
                && label.map_or(!kernel.on_request, |label| kernel.label == label)
        })
    }

    /// Runs a case in each form that suits it. With a label, by a kernel of that label, else by the one that
    /// the policy chooses.
    pub fn run(&self, case: &GoldenCase, label: Option<&str>) -> Outcome {
        let forms: &[Form] = match case.expected {
            Expected::Outputs(_) => &Form::ALL,
            Expected::Error(_) => &Form::REFUSING,
        };
        self.run_forms(case, label, forms)
    }

    /// Runs a case in these forms.
    pub fn run_forms(&self, case: &GoldenCase, label: Option<&str>, forms: &[Form]) -> Outcome {
        for &form in forms {
            let before: Vec<Tensor> = case.inputs.iter().filter_map(own_copy).collect();
            match self.run_form(case, label, form) {
                Outcome::Passed => {}
                other => return other,
            }
            let unchanged =
                before.iter().zip(&case.inputs).all(|(before, now)| compare_bytes(before, now));
            if !unchanged || before.len() != case.inputs.len() {
                let message = "the call changed an input that it does not own".to_owned();
                return Outcome::Failed(Failure { form, stage: Stage::Compare, message });
            }
        }
        Outcome::Passed
    }

    fn run_form(&self, case: &GoldenCase, label: Option<&str>, form: Form) -> Outcome {
        let failed = |stage, message| Outcome::Failed(Failure { form, stage, message });
        match (&case.expected, self.outputs(case, label, form)) {
            (Expected::Outputs(expected), Ok(got)) => match check_outputs(&got, expected) {
                Ok(()) => Outcome::Passed,
                Err(message) => failed(Stage::Compare, message),
            },
            (Expected::Outputs(_), Err(refusal)) if refusal.stage == Stage::Select => {
                Outcome::NoKernel(refusal.message)
            }
            (Expected::Outputs(_), Err(refusal)) => {
                failed(refusal.stage, format!("refused with {}: {}", refusal.code, refusal.message))
            }
            (Expected::Error(code), Ok(_)) => {
                failed(Stage::Compute, format!("expected {code}, it was accepted"))
            }
            (Expected::Error(code), Err(refusal)) if *code == refusal.code => Outcome::Passed,
            // Kernels that decline what is not to be done say so before they are chosen.
            (Expected::Error(Code::UNIMPLEMENTED), Err(refusal))
                if refusal.stage == Stage::Select =>
            {
                Outcome::Passed
            }
            (Expected::Error(_), Err(refusal)) if refusal.stage == Stage::Select => {
                Outcome::NoKernel(refusal.message)
            }
            (Expected::Error(code), Err(refusal)) => failed(
                refusal.stage,
                format!("expected {code}, refused with {}: {}", refusal.code, refusal.message),
            ),
        }
    }

    /// The outputs of a case, or where it was refused.
    fn outputs(
        &self,
        case: &GoldenCase,
        label: Option<&str>,
        form: Form,
    ) -> Result<Vec<Tensor>, Refusal> {
        let node = self.node(case, form)?;
        check_shapes(case, &node, form)?;
        let def = self.select(case, &node, label)?;
        let knobs = self.runtime.plugins().knobs();
        let spec = node.spec(&def, Some(&self.device), &knobs);
        let mut instance = KernelInstance::create(&spec).map_err(Refusal::at(Stage::Create))?;
        let cache = PackCache::new();
        if form == Form::Packed {
            for (at, constant) in case.inputs.iter().enumerate() {
                instance
                    .prepack(at as u32, constant, &cache, &case.name)
                    .map_err(Refusal::at(Stage::Create))?;
            }
        }
        poison(&case.expected);
        let computed = match form {
            Form::InPlace => {
                let inputs = case.inputs.iter().filter_map(own_copy).collect();
                call_donating(&instance, inputs, &self.env).map(|(outputs, _)| outputs)
            }
            Form::Planned => self.call_planned(&instance, case),
            _ => call_once(&instance, &case.inputs, &self.env),
        };
        computed.map_err(Refusal::at(Stage::Compute))
    }

    fn call_planned(
        &self,
        instance: &KernelInstance,
        case: &GoldenCase,
    ) -> Result<Vec<Tensor>, KernelError> {
        let Expected::Outputs(expected) = &case.expected else { return Ok(Vec::new()) };
        let shape = |output: &ExpectedOutput| {
            let shape = Shape::new(&output.dims);
            shape.map_err(|error| KernelError::new(error.code(), error.to_string()))
        };
        let shapes = expected.iter().map(shape).collect::<Result<Vec<_>, _>>()?;
        call_planned(instance, &case.inputs, &shapes, &self.env)
    }

    /// The node of a case: checked against the op's definition.
    fn node(&self, case: &GoldenCase, form: Form) -> Result<Node, Refusal> {
        let registry = self.runtime.registry();
        let op = registry.op(&case.op).ok_or_else(|| Refusal {
            stage: Stage::Select,
            code: Code::NOT_FOUND,
            message: format!("op '{}' is not registered", case.op),
        })?;
        let constant = |at: usize| form == Form::Packed || case.const_inputs.contains(&at);
        let node = Node::new(op, &case.name, case.attrs.clone(), &case.inputs, constant);
        let mut node = node.map_err(|error| Refusal::definition(&error))?;
        if form == Form::Unknown {
            node.forget_inputs();
        }
        Ok(node)
    }

    /// The kernel of a node, chosen as a session does.
    fn select(
        &self,
        case: &GoldenCase,
        node: &Node,
        label: Option<&str>,
    ) -> Result<Arc<KernelDef>, Refusal> {
        let query = KernelQuery {
            op: &case.op,
            device_type: self.device_type(),
            attrs: node.attrs.attrs(),
            features: self.runtime.features(),
            label,
        };
        let known = node.shapes_are_known();
        let knobs = self.runtime.plugins().knobs();
        let mut supports = |kernel: &KernelDef| {
            let def = Arc::new(kernel.clone());
            match node.spec(&def, Some(&self.device), &knobs).supports() {
                Ok(SupportAnswer::DependsOnShapes) if !known => {
                    SupportAnswer::No("it depends on shapes that are not known".to_owned())
                }
                Ok(answer) => answer,
                Err(error) => SupportAnswer::No(error.message),
            }
        };
        let explanation = candidates(&self.runtime.registry(), &query, &mut supports);
        explanation.result().cloned().map_err(|error| Refusal {
            stage: Stage::Select,
            code: error.code(),
            message: error.to_string(),
        })
    }
}

impl fmt::Debug for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Harness({})", self.device.full_name())
    }
}

/// Ops whose outputs' shapes follow from values that no shape function computes with.
const DATA_DEPENDENT: [&str; 65] = [
    "CTCBeamSearchDecoder",
    "CTCGreedyDecoder",
    "DecodeAndCropJpeg",
    "DecodeBmp",
    "DecodeGif",
    "DecodeImage",
    "DecodeJpeg",
    "DecodePng",
    "DecodeRaw",
    "DecodeWav",
    "DenseCountSparseOutput",
    "DenseToDenseSetOperation",
    "DenseToSparseSetOperation",
    "DeserializeManySparse",
    "DeserializeSparse",
    "DynamicPartition",
    "ListDiff",
    "MatchingFiles",
    "NonMaxSuppression",
    "NonMaxSuppressionV2",
    "NonMaxSuppressionV3",
    "NonMaxSuppressionV4",
    "NonMaxSuppressionV5",
    "NonMaxSuppressionWithOverlaps",
    "RaggedCountSparseOutput",
    "RaggedCross",
    "RaggedFillEmptyRows",
    "RaggedGather",
    "RaggedRange",
    "RaggedTensorToTensor",
    "SegmentMax",
    "SegmentMean",
    "SegmentMin",
    "SegmentProd",
    "SegmentSum",
    "SparseAdd",
    "SparseConcat",
    "SparseCountSparseOutput",
    "SparseCross",
    "SparseCrossHashed",
    "SparseCrossV2",
    "SparseFillEmptyRows",
    "SparseReduceMaxSparse",
    "SparseReduceSumSparse",
    "SparseSegmentMean",
    "SparseSegmentMeanGradV2",
    "SparseSegmentSqrtN",
    "SparseSegmentSqrtNGradV2",
    "SparseSegmentSum",
    "SparseSegmentSumGradV2",
    "SparseSlice",
    "SparseSparseMaximum",
    "SparseSparseMinimum",
    "SparseSplit",
    "SparseToSparseSetOperation",
    "StringNGrams",
    "StringSplit",
    "StringSplitV2",
    "UnicodeDecode",
    "UnicodeDecodeWithOffsets",
    "Unique",
    "UniqueV2",
    "UniqueWithCounts",
    "UniqueWithCountsV2",
    "Where",
];

/// Outputs whose shape TensorFlow leaves open though all inputs are known: a placeholder may be fed with
/// something else, and the last output of a batch normalisation is its device's own affair.
fn may_stay_open(op: &str, output: usize) -> bool {
    matches!((op, output), ("PlaceholderWithDefault", 0) | ("FusedBatchNormV3", 5))
        || DATA_DEPENDENT.contains(&op)
}

/// Runs the shape function, and checks what it says against the expected outputs.
fn check_shapes(case: &GoldenCase, node: &Node, form: Form) -> Result<(), Refusal> {
    let inferred = node.infer()?;
    let Expected::Outputs(expected) = &case.expected else { return Ok(()) };
    let wrong = |message| Refusal { stage: Stage::Shapes, code: Code::INTERNAL, message };
    if inferred.len() != expected.len() {
        let (found, expected) = (inferred.len(), expected.len());
        return Err(wrong(format!("expected {expected} outputs, the op has {found}")));
    }
    for (at, (info, expected)) in inferred.iter().zip(expected).enumerate() {
        let shape = info.shape.partial();
        if !shape.accepts(&expected.dims) {
            let dims = &expected.dims;
            let message = format!("output {at} is {dims:?}, the shape function says {shape}");
            return Err(wrong(message));
        }
        if form == Form::Packed && shape.full().is_none() && !may_stay_open(&case.op, at) {
            let message =
                format!("output {at}: all inputs are known, the shape is left as {shape}");
            return Err(wrong(message));
        }
    }
    Ok(())
}

/// An output that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrongOutput {
    /// What was expected, what was found.
    pub message: String,
    /// Number of the output and index of its first wrong element, where elements are wrong.
    pub place: Option<(usize, Vec<i64>)>,
}

impl From<String> for WrongOutput {
    fn from(message: String) -> WrongOutput {
        WrongOutput { message, place: None }
    }
}

/// The problem with the outputs, if anything is.
fn check_outputs(got: &[Tensor], expected: &[ExpectedOutput]) -> Result<(), String> {
    wrong_output(got, expected).map_err(|wrong| wrong.message)
}

/// As [`check_outputs`], with the place.
pub(crate) fn wrong_output(got: &[Tensor], expected: &[ExpectedOutput]) -> Result<(), WrongOutput> {
    if got.len() != expected.len() {
        return Err(format!("expected {} outputs, got {}", expected.len(), got.len()).into());
    }
    for (at, (got, expected)) in got.iter().zip(expected).enumerate() {
        let said = |problem: String| WrongOutput::from(format!("output {at}: {problem}"));
        // The signature says whether a type is quantised, the index only how it is stored.
        let alike = kind_of(got.dtype()) == kind_of(expected.dtype);
        if got.dtype() != expected.dtype && !alike {
            return Err(said(format!("expected {}, got {}", expected.dtype, got.dtype())));
        }
        got.validate().map_err(|error| said(error.to_string()))?;
        let compared = match &expected.value {
            Some((value, rule)) => {
                let value = retyped(value, got.dtype()).map_err(|error| said(error.to_string()))?;
                compare(got, &value, rule)
            }
            None => {
                let shape = Shape::new(&expected.dims).map_err(|error| said(error.to_string()))?;
                compare_shape(got, &shape)
            }
        };
        compared.map_err(|mismatch| {
            let place = mismatch.first_index().map(|index| (at, index.to_vec()));
            WrongOutput { place, ..said(mismatch.to_string()) }
        })?;
    }
    Ok(())
}

/// The byte that memory is filled with before a kernel gets it: no likely value of any type.
const POISON: u8 = 0xa5;

/// Leaves poisoned blocks of the outputs' sizes in the pool of host memory, which gives them to the next
/// caller, so that a kernel that leaves elements unwritten does not find zeros there. Device memory of its own
/// is not reached by this.
fn poison(expected: &Expected) {
    let Expected::Outputs(outputs) = expected else { return };
    let memory: Arc<dyn Memory> = HostMemory::shared().clone();
    // All are held before the first goes back, so that each output finds one.
    let _blocks: Vec<Tensor> = outputs
        .iter()
        .filter(|output| !output.dtype.needs_drop())
        .filter_map(|output| {
            let bytes = Shape::new(&output.dims).ok()?.elements() * output.dtype.size()?;
            copy_on_host(&Tensor::from_slice(&[bytes as i64], &vec![POISON; bytes]).ok()?, &memory)
                .ok()
        })
        .collect();
}

/// A copy without another holder.
pub(crate) fn own_copy(tensor: &Tensor) -> Option<Tensor> {
    let memory: Arc<dyn Memory> = HostMemory::shared().clone();
    copy_on_host(tensor, &memory).ok()
}

pub(crate) fn compare_bytes(a: &Tensor, b: &Tensor) -> bool {
    match (a.as_strings(), b.as_strings()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a.as_bytes().ok() == b.as_bytes().ok(),
    }
}
