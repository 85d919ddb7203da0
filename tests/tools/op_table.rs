//! sdk/docs/ops.md: which standard op has kernels for which types, on which device, and which of them golden data
//! proves. The table is made from the registry of all plugins and from the index files of tests/goldens; run
//! with `TENON_UPDATE=1` to rewrite it.

use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};
use tenon_framework::{
    DType,
    op::{ArgDef, ArgType, OpDef},
    registry::Registry,
};
use tenon_tests::session::{PLUGINS, runtime};

/// Families whose ops are not kernels of plugins, or come with other issues.
const OTHER_FAMILIES: [&str; 5] = ["control_flow", "data_flow", "state", "training", "transfer"];
/// Ops that write summaries: they come with the families above.
const OTHER_OPS: [&str; 4] = ["HistogramSummary", "ImageSummary", "MergeSummary", "ScalarSummary"];

/// Attributes that say which elements an op computes with, where it has one of them.
const MAIN_ATTRS: [&str; 2] = ["T", "dtype"];

/// What TensorFlow has besides, and why it is not here.
const MISSING: &str = include_str!("missing_ops.md");

/// The columns: a short name for each type.
const COLUMNS: [(&str, DType); 16] = [
    ("b", DType::BOOL),
    ("i8", DType::INT8),
    ("i16", DType::INT16),
    ("i32", DType::INT32),
    ("i64", DType::INT64),
    ("u8", DType::UINT8),
    ("u16", DType::UINT16),
    ("u32", DType::UINT32),
    ("u64", DType::UINT64),
    ("f16", DType::HALF),
    ("bf16", DType::BFLOAT16),
    ("f32", DType::FLOAT),
    ("f64", DType::DOUBLE),
    ("c64", DType::COMPLEX64),
    ("c128", DType::COMPLEX128),
    ("str", DType::STRING),
];

/// The columns of the family whose ops are about quantised types.
const QUANTISED_COLUMNS: [(&str, DType); 7] = [
    ("qi8", DType::QINT8),
    ("qu8", DType::QUINT8),
    ("qi16", DType::QINT16),
    ("qu16", DType::QUINT16),
    ("qi32", DType::QINT32),
    ("f32", DType::FLOAT),
    ("f64", DType::DOUBLE),
];

fn columns(family: &str) -> &'static [(&'static str, DType)] {
    if family == "quantization" { &QUANTISED_COLUMNS } else { &COLUMNS }
}

const HEAD: &str = "# The standard ops and their kernels

Made by `cargo test -p tenon-tests --test tools op_table` (with `TENON_UPDATE=1`) from the registry of all plugins and from the \
golden data, so it says what is there. One line an op; the columns are the values of its type attribute \
(`T` or `dtype` where there is one, else that of its first input), or the type of its first argument where it has none.

| cell | means |
|---|---|
| `C` | the CPU has a kernel, and TensorFlow's results for this type pass through the loaded plugin |
| `c` | the CPU has a kernel; no golden case has this type |
| `A`, `a` | the same of ACCEL, the simulated accelerator, which runs the cases too where it has a kernel |
| `-` | TensorFlow's CPU has a kernel for this type, Tenon has none |

";

fn folder(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(of)
}

/// The entries of the standard op set, by family.
fn standard_ops() -> BTreeMap<String, Vec<Value>> {
    let path = folder("../core/ops/testdata/standard_ops.json");
    let file: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let mut families = BTreeMap::<String, Vec<Value>>::new();
    for op in file["ops"].as_array().unwrap() {
        let (family, name) = (op["family"].as_str().unwrap(), op["op"].as_str().unwrap());
        if !OTHER_FAMILIES.contains(&family) && !OTHER_OPS.contains(&name) {
            families.entry(family.to_owned()).or_default().push(op.clone());
        }
    }
    families
}

/// What the columns of an op's line stand for.
enum Main {
    /// The values of a type attribute.
    Attr(String),
    /// One type.
    Fixed(DType),
    /// Nothing: a list of types, or no argument.
    None,
}

fn main_type(op: &OpDef) -> Main {
    let args = || op.inputs.iter().chain(&op.outputs);
    let types = |name: &&&str| args().any(|arg| arg.ty == ArgType::Attr((**name).to_owned()));
    if let Some(name) = MAIN_ATTRS.iter().find(types) {
        return Main::Attr((*name).to_owned());
    }
    let typed = |arg: &ArgDef| match &arg.ty {
        ArgType::Attr(name) => Some(Main::Attr(name.clone())),
        _ => None,
    };
    let fixed = |arg: &ArgDef| match arg.ty {
        ArgType::Fixed(dtype) => Some(Main::Fixed(dtype)),
        _ => None,
    };
    args().find_map(typed).or_else(|| args().find_map(fixed)).unwrap_or(Main::None)
}

/// The types that golden cases with a result have in the main attribute, and how many cases there are.
fn golden_types(family: &str, op: &str, main: &Main) -> (BTreeSet<String>, usize) {
    let path = folder("goldens").join(family).join(format!("{op}.json"));
    let Ok(text) = fs::read_to_string(path) else { return (BTreeSet::new(), 0) };
    let index: Value = serde_json::from_str(&text).unwrap();
    let cases = index["cases"].as_array().unwrap();
    let proven = cases.iter().filter(|case| case.get("error").is_none());
    let types = proven.filter_map(|case| match main {
        Main::Attr(attr) => case["attrs"][attr]["type"].as_str().map(str::to_owned),
        Main::Fixed(dtype) => Some(dtype.to_string()),
        Main::None => None,
    });
    (types.collect(), cases.len())
}

/// Whether some kernel that the policy may choose takes the type on the device.
fn has_kernel(registry: &Registry, op: &str, device: &str, main: &Main, dtype: DType) -> bool {
    registry.kernels_of(op).iter().any(|kernel| {
        let takes = match main {
            Main::Attr(attr) => kernel.types_of(attr).is_none_or(|types| types.contains(&dtype)),
            Main::Fixed(fixed) => *fixed == dtype,
            Main::None => false,
        };
        kernel.serves(device) && !kernel.on_request && takes
    })
}

/// Whether TensorFlow's CPU has a kernel for the type.
fn tensorflow_has(entry: &Value, main: &Main, dtype: DType) -> bool {
    let Main::Attr(attr) = main else { return false };
    let allows = entry["attrs"].as_array().unwrap().iter().any(|def| {
        let allowed = def["allowed"].as_array();
        def["name"] == attr.as_str()
            && allowed.is_none_or(|types| types.iter().any(|ty| ty == dtype.name()))
    });
    match &entry["cpu_dtypes"][attr] {
        Value::Array(types) => allows && types.iter().any(|ty| ty == dtype.name()),
        Value::String(_) => allows,
        _ => false,
    }
}

fn cell(
    registry: &Registry,
    (entry, op): (&Value, &OpDef),
    (main, proven): (&Main, &BTreeSet<String>),
    dtype: DType,
) -> String {
    let golden = proven.contains(dtype.name());
    let mut text = String::new();
    for (device, [with, without]) in [("CPU", ["C", "c"]), ("ACCEL", ["A", "a"])] {
        if has_kernel(registry, &op.name, device, main, dtype) && op_allows(op, main, dtype) {
            text += if golden { with } else { without };
        }
    }
    if text.is_empty() && tensorflow_has(entry, main, dtype) {
        text.push('-');
    }
    text
}

fn op_allows(op: &OpDef, main: &Main, dtype: DType) -> bool {
    let Main::Attr(name) = main else { return true };
    let attr = op.attrs.iter().find(|attr| attr.name == *name);
    attr.and_then(|attr| attr.allowed.as_ref()).is_none_or(|allowed| match allowed {
        tenon_framework::op::Allowed::Types(types) => types.contains(&dtype),
        tenon_framework::op::Allowed::Strings(_) => true,
    })
}

/// One family's table; counts the ops, those with kernels, and the cases.
fn table(registry: &Registry, family: &str, entries: &[Value], totals: &mut [usize; 3]) -> String {
    let mut text = format!("## {family}\n\n| op |");
    let columns = columns(family);
    columns.iter().for_each(|(name, _)| write!(text, " {name} |").unwrap());
    text += " cases |\n|---|";
    text += &"---|".repeat(columns.len() + 1);
    text.push('\n');
    let mut missing = Vec::new();
    for entry in entries {
        let name = entry["op"].as_str().unwrap();
        totals[0] += 1;
        let Some(op) = registry.op(name) else {
            missing.push(name);
            continue;
        };
        let main = main_type(op);
        let (proven, cases) = golden_types(family, name, &main);
        totals[1] += usize::from(registry.kernels_of(name).iter().any(|k| k.serves("CPU")));
        totals[2] += cases;
        write!(text, "| {name} |").unwrap();
        for (_, dtype) in columns {
            write!(text, " {} |", cell(registry, (entry, op), (&main, &proven), *dtype)).unwrap();
        }
        writeln!(text, " {cases} |").unwrap();
    }
    if !missing.is_empty() {
        writeln!(text, "\nNot defined: {}.", missing.join(", ")).unwrap();
    }
    text.push('\n');
    text
}

#[test]
fn ops_that_are_said_to_be_missing_are_not_there() {
    let runtime = runtime(&PLUGINS, &[]);
    let registry = runtime.registry();
    let names = MISSING.lines().filter_map(|line| line.rsplit('|').nth(1));
    let names: Vec<&str> = names.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert!(names.len() > 100, "the page has its names between backticks");
    let there: Vec<&&str> = names.iter().filter(|name| registry.op(name).is_some()).collect();
    assert!(there.is_empty(), "tests/tools/missing_ops.md names ops that are there: {there:?}");
}

#[test]
fn the_page_says_what_is_there() {
    let runtime = runtime(&PLUGINS, &[]);
    let registry = runtime.registry();
    let mut totals = [0; 3];
    let mut tables = String::new();
    for (family, entries) in standard_ops() {
        tables += &table(&registry, &family, &entries, &mut totals);
    }
    let [ops, with_kernels, cases] = totals;
    let summary = format!(
        "{with_kernels} of the {ops} ops of these families have kernels on the CPU; {cases} golden cases.\n\n"
    );
    let page = HEAD.to_owned() + &summary + &tables + MISSING;
    let path = folder("../sdk/docs/ops.md");
    if std::env::var_os("TENON_UPDATE").is_some() {
        return fs::write(path, page).unwrap();
    }
    let found = fs::read_to_string(path).unwrap();
    assert!(found == page, "sdk/docs/ops.md is not up to date: run this test with TENON_UPDATE=1");
}
