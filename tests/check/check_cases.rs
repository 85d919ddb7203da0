//! What `tenon check` generates for the standard ops: every kernel has cases that its op accepts, of every
//! kind, and an op for which none can be made is known by name.

use std::collections::{BTreeMap, BTreeSet};
use tenon_framework::{
    DType,
    abi::AttrKind,
    attr::{AttrMap, AttrType, AttrValue},
    op::{Allowed, OpDef},
    registry::Registry,
};
use tenon_testkit::{
    check::{Budget, CheckCase, Generator, Subject, Tag, subjects},
    node::Node,
};
use tenon_tests::session::runtime;

fn generator(seed: u64) -> Generator {
    Generator::new(Budget { seed, cases_per_subject: 12, full: false }, None)
}

/// The kernels of the CPU plugin that are not there to judge others.
fn kernels(registry: &Registry) -> Vec<Subject> {
    let plugin = registry.plugins().find(|plugin| plugin.name == "tenon-cpu");
    let all = subjects(registry, plugin.expect("it is loaded").id);
    all.into_iter().filter(|subject| !subject.kernel.on_request).collect()
}

#[track_caller]
fn accepted(subject: &Subject, case: &CheckCase) {
    let inputs = case.tensors().unwrap_or_else(|error| panic!("{subject}, {}: {error}", case.name));
    let constant = |at: usize| case.inputs[at].constant;
    let node = Node::new(&subject.op, &case.name, case.attrs.clone(), &inputs, constant);
    let node = node.unwrap_or_else(|error| panic!("{subject}, {}: {error}", case.name));
    let inferred = node.infer();
    assert!(inferred.is_ok(), "{subject}, {}: {inferred:?}", case.name);
}

/// The kinds of cases that ops have to have which cannot have all of them.
const KINDS: &[(&[&str], &[Tag])] = &[
    // Its sizes are values of an input, its data a scalar.
    (&["Fill"], &[Tag::Scalar, Tag::Special]),
    (&["OneHot"], &[Tag::Empty, Tag::Prime, Tag::Special]),
    // Their inputs are sizes and ends, or as many as an attribute says.
    (
        &[
            "BroadcastArgs",
            "BroadcastGradientArgs",
            "ConcatOffset",
            "Empty",
            "LinSpace",
            "ParallelConcat",
            "Range",
        ],
        &[Tag::Declared],
    ),
    // So are those of random numbers.
    (
        &[
            "Multinomial",
            "NonDeterministicInts",
            "ParameterizedTruncatedNormal",
            "RandomGamma",
            "RandomIndexShuffle",
            "RandomPoissonV2",
            "RandomShuffle",
            "RandomStandardNormal",
            "RandomUniform",
            "RandomUniformInt",
            "StatelessMultinomial",
            "StatelessParameterizedTruncatedNormal",
            "StatelessRandomBinomial",
            "StatelessRandomGammaV2",
            "StatelessRandomGammaV3",
            "StatelessRandomGetKeyCounter",
            "StatelessRandomGetKeyCounterAlg",
            "StatelessRandomNormal",
            "StatelessRandomNormalV2",
            "StatelessRandomPoisson",
            "StatelessRandomUniform",
            "StatelessRandomUniformFullInt",
            "StatelessRandomUniformFullIntV2",
            "StatelessRandomUniformInt",
            "StatelessRandomUniformIntV2",
            "StatelessRandomUniformV2",
            "StatelessShuffle",
            "StatelessTruncatedNormal",
            "StatelessTruncatedNormalV2",
            "TruncatedNormal",
        ],
        &[Tag::Declared],
    ),
    (&["StatelessRandomGetAlg"], &[]),
    // Inputs whose sizes and values depend on each other, as the cases of the ops give them.
    (
        &[
            "Betainc",
            "BlockLSTM",
            "BlockLSTMGrad",
            "BlockLSTMGradV2",
            "BlockLSTMV2",
            "CTCBeamSearchDecoder",
            "CTCGreedyDecoder",
            "CTCLoss",
            "CTCLossV2",
            "DenseBincount",
            "EncodeWav",
            "ExtractGlimpse",
            "ExtractGlimpseV2",
            "FractionalAvgPool",
            "FractionalAvgPoolGrad",
            "FractionalMaxPool",
            "FractionalMaxPoolGrad",
            "GRUBlockCell",
            "GRUBlockCellGrad",
            "LSTMBlockCell",
            "LSTMBlockCellGrad",
            "Mfcc",
            "NearestNeighbors",
            "RaggedBincount",
            "RaggedFillEmptyRows",
            "RaggedFillEmptyRowsGrad",
            "RaggedRange",
            "SampleDistortedBoundingBox",
            "SampleDistortedBoundingBoxV2",
            "SobolSample",
            "SparseBincount",
            "StatelessSampleDistortedBoundingBox",
            "UnravelIndex",
        ],
        &[Tag::Declared],
    ),
    // All its inputs have five dimensions, of which the cases give the sizes.
    (&["ExtractVolumePatches"], &[Tag::Empty, Tag::Large, Tag::Special]),
    // Truth values are all alike, and no numbers.
    (
        &["All", "Any", "LogicalAnd", "LogicalNot", "LogicalOr"],
        &[Tag::Empty, Tag::Prime, Tag::Large],
    ),
    // The first input is one; large tensors of three inputs cost too much.
    (&["Select"], &[Tag::Empty, Tag::Prime, Tag::Large]),
    (&["SelectV2"], &[Tag::Empty, Tag::Prime]),
    // Sizes that are fixed, squared, or given by the cases.
    (
        &[
            "ApproxTopK",
            "Cross",
            "Diag",
            "HistogramFixedWidth",
            "MatrixDiag",
            "MatrixDiagV2",
            "MatrixDiagV3",
            "SparseSegmentMean",
            "SparseSegmentMeanGrad",
            "SparseSegmentMeanGradV2",
            "SparseSegmentMeanWithNumSegments",
            "SparseSegmentSqrtN",
            "SparseSegmentSqrtNGrad",
            "SparseSegmentSqrtNGradV2",
            "SparseSegmentSqrtNWithNumSegments",
            "SparseSegmentSum",
            "SparseSegmentSumGrad",
            "SparseSegmentSumGradV2",
            "SparseSegmentSumWithNumSegments",
            "TopK",
        ],
        &[Tag::Empty, Tag::Prime, Tag::Special],
    ),
    (&["MatrixSetDiagV2", "MatrixSetDiagV3"], &[Tag::Prime, Tag::Special]),
    (&["DataFormatVecPermute", "DiagPart", "MaxPoolWithArgmax"], &[Tag::Special]),
    (&["MaxPoolGradGradWithArgmax"], &[Tag::Empty, Tag::Large, Tag::Special]),
    // They refuse some values, have cases of positive ones alone, or search in sorted ones.
    (
        &[
            "BesselI0",
            "BesselI0e",
            "BesselI1",
            "BesselI1e",
            "BesselJ0",
            "BesselJ1",
            "BesselK0",
            "BesselK0e",
            "BesselK1",
            "BesselK1e",
            "BesselY0",
            "BesselY1",
            "CheckNumerics",
            "DataFormatDimMap",
            "Dawsn",
            "Expint",
            "FresnelCos",
            "FresnelSin",
            "IgammaGradA",
            "InvertPermutation",
            "LowerBound",
            "RandomGammaGrad",
            "Spence",
            "UpperBound",
        ],
        &[Tag::Empty, Tag::Prime, Tag::Large],
    ),
];

/// The kinds of cases that an op has to have.
fn kinds(op: &str) -> &'static [Tag] {
    let named = KINDS.iter().find(|(ops, _)| ops.contains(&op));
    named.map_or(&[Tag::Empty, Tag::Prime, Tag::Large, Tag::Special], |(_, kinds)| kinds)
}

#[test]
fn every_kernel_has_cases_of_every_kind_that_its_op_accepts() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let registry = runtime.registry();
    let generator = generator(1);
    let mut tags: BTreeMap<String, BTreeSet<Tag>> = BTreeMap::new();
    for subject in kernels(&registry) {
        let generated = generator.generate(&subject);
        // The last dimension of what is joined is a quotient of sizes, which no case can say.
        if subject.op.name == "Bitcast" && generated.cases.len() < 8 {
            continue;
        }
        if is_kernel_made(generated.uncovered.as_deref()) {
            continue;
        }
        // Seeds of unsigned types are in its signature, and are refused, as by TensorFlow.
        if subject.op.name == "StatelessRandomUniformFullInt" && generated.cases.is_empty() {
            continue;
        }
        assert_eq!(generated.uncovered, None, "{subject}");
        assert_eq!(generated.refused, [""; 0], "{subject}: cases of the op that nothing accepts");
        let least = match kinds(&subject.op.name) {
            [] | [Tag::Declared] => 1,
            _ => 8,
        };
        assert!(generated.cases.len() >= least, "{subject}: {} cases", generated.cases.len());
        generated.cases.iter().for_each(|case| accepted(&subject, case));
        let of_op = tags.entry(subject.op.name.clone()).or_default();
        of_op.extend(generated.cases.iter().flat_map(|case| case.tags.iter().copied()));
    }
    tags.retain(|op, tags| !kinds(op).iter().all(|tag| tags.contains(tag)));
    assert!(tags.is_empty(), "ops without cases of every kind: {tags:#?}");
}

/// A kernel of the op for floats where the op takes them, or of the usual type where it takes any, whether there is one or not.
fn subject(registry: &Registry, op: &OpDef) -> Subject {
    let op = registry.op(&op.name).expect("it is registered").clone();
    let kernel = registry.kernels().next().expect("there are kernels").clone();
    let is_type = |attr: &&tenon_framework::op::AttrDef| attr.ty == AttrType::one(AttrKind::TYPE);
    let types: AttrMap = (op.attrs.iter().filter(is_type))
        .map(|attr| {
            let dtype = match (&attr.allowed, &attr.default) {
                (Some(Allowed::Types(types)), _) if !types.contains(&DType::FLOAT) => types[0],
                (None, Some(AttrValue::Type(usual))) => *usual,
                _ => DType::FLOAT,
            };
            (attr.name.clone(), dtype.into())
        })
        .collect();
    Subject { op, kernel, types }
}

/// Whether no case can be made from outside because inputs are made by other kernels alone.
fn is_kernel_made(uncovered: Option<&str>) -> bool {
    uncovered.is_some_and(|reason| reason.ends_with("of which only kernels make elements"))
}

/// Further ops of which no case can be made: of functions, of lists whose lengths must agree, and of a window within a file.
const UNCOVERED: [&str; 4] = ["Case", "DecodeAndCropJpeg", "StatelessCase", "_VarHandlesOp"];

#[test]
fn every_standard_op_has_cases_unless_only_kernels_make_its_inputs() {
    let runtime = runtime(&[], &[]);
    let registry = runtime.registry();
    let generator = generator(3);
    let mut uncovered = BTreeSet::new();
    for op in registry.ops() {
        let subject = subject(&registry, op);
        let generated = generator.generate(&subject);
        generated.cases.iter().for_each(|case| accepted(&subject, case));
        println!(
            "{} {} {:?} {:?}",
            op.name,
            generated.cases.len(),
            generated.uncovered,
            generated.cases.iter().flat_map(|c| c.tags.iter().copied()).collect::<BTreeSet<Tag>>()
        );
        if generated.uncovered.is_some() && !is_kernel_made(generated.uncovered.as_deref()) {
            uncovered.insert(op.name.clone());
        }
    }
    assert_eq!(uncovered.iter().map(String::as_str).collect::<Vec<_>>(), UNCOVERED);
}
