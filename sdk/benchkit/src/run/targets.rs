//! Targets to calls.

use super::Options;
use crate::{
    calls::{Call, Wish, of_op, record},
    compare::Against,
    error::BenchError,
    feeds::GraphWish,
    step::Step,
    variants::{Filter, Host, brought, kernels},
    wanted::{Target, closest},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::BufReader,
    path::Path,
    sync::Arc,
};
use tenon_framework::{device::base::DeviceBase, op::OpDef, registry::KernelDef};
use tenon_runtime::proto::read_graph_def;

/// The calls to be measured.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// The calls, each with the variants that are wanted for it.
    pub calls: Vec<(Call, Filter)>,
    /// The steps to be measured.
    pub steps: Vec<Step>,
    /// What is left out, and why.
    pub notes: Vec<String>,
}

impl Wanted {
    /// Steps and calls.
    pub fn len(&self) -> usize {
        self.calls.len() + self.steps.len()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The calls of the targets.
///
/// # Errors
/// A target that is not there, wishes that do not fit it, nothing left.
pub fn wanted(host: &Host, options: &Options) -> Result<Wanted, BenchError> {
    let mut all = Wanted::default();
    for target in &options.targets {
        match target {
            Target::Op { op, label } => {
                let filter = with_labels(options, label.as_deref());
                let calls = op_calls(host, op, &filter, &options.wish)?;
                all.calls.extend(calls.into_iter().map(|call| (call, filter.clone())));
            }
            Target::Plugin(file) => plugin_calls(host, file, options, &mut all)?,
            Target::Graph(file) => graph(host, file, options, &mut all)?,
        }
    }
    if all.is_empty() {
        let why = all.notes.join("; ");
        let why = if why.is_empty() { "the targets make no call".to_owned() } else { why };
        return Err(BenchError::Nothing(why));
    }
    Ok(all)
}

/// The target's own label; where labels are chosen, the one that the others are compared with belongs to them.
fn with_labels(options: &Options, label: Option<&str>) -> Filter {
    let mut filter = options.filter.clone();
    filter.labels.extend(label.map(str::to_owned));
    if let Against::Label(base) = &options.against
        && !filter.labels.is_empty()
        && !filter.labels.contains(base)
    {
        filter.labels.push(base.clone());
    }
    filter
}

fn op_of(host: &Host, name: &str) -> Result<Arc<OpDef>, BenchError> {
    let registry = host.runtime.registry();
    registry.op(name).cloned().ok_or_else(|| {
        let near = closest(name, registry.ops().map(|op| op.name.as_str()));
        BenchError::UnknownOp { op: name.to_owned(), near: near.map(str::to_owned) }
    })
}

fn op_calls(
    host: &Host,
    name: &str,
    filter: &Filter,
    wish: &Wish,
) -> Result<Vec<Call>, BenchError> {
    let op = op_of(host, name)?;
    let kernels = kernels(host, name, filter);
    if kernels.is_empty() {
        return Err(no_kernel(host, &op, filter));
    }
    of_op(&op, &kernels, wish)
}

fn no_kernel(host: &Host, op: &OpDef, filter: &Filter) -> BenchError {
    let registry = host.runtime.registry();
    let all = registry.kernels_of(&op.name);
    let list = |get: &dyn Fn(&KernelDef) -> String| {
        let names: BTreeSet<String> = all.iter().map(|kernel| get(kernel)).collect();
        names.into_iter().collect::<Vec<_>>().join(", ")
    };
    let labels = list(&|kernel| format!("'{}'", kernel.label));
    let devices = list(&|kernel| kernel.device_type.clone());
    let quoted = |names: &[String]| {
        names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
    };
    let problem = match () {
        () if all.is_empty() => {
            "has no kernel: load a plugin that brings one by --plugin FILE".to_owned()
        }
        () if !filter.labels.is_empty() => {
            format!("has no kernel with label {}: the labels are {labels}", quoted(&filter.labels))
        }
        () if !filter.devices.is_empty() => {
            format!(
                "has no kernel for a device {}: it has kernels for {devices}",
                filter.devices.join(", ")
            )
        }
        () if all.iter().any(|kernel| is_here(host, &kernel.device_type)) => format!(
            "has no kernel for a device that takes part unnamed: it has kernels for {devices}; name one by --device"
        ),
        () => format!("has no kernel for a device that is here: it has kernels for {devices}"),
    };
    BenchError::wish(&op.name, problem)
}

fn is_here(host: &Host, device_type: &str) -> bool {
    host.runtime.devices().devices().iter().any(|device| device.device_type() == device_type)
}

/// Every op that the plugin has kernels for. Ops without a known call are reported, if other ops are left.
fn plugin_calls(
    host: &Host,
    file: &Path,
    options: &Options,
    all: &mut Wanted,
) -> Result<(), BenchError> {
    let registry = host.runtime.registry();
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let is_it = |path: &Path| canonical(path) == canonical(file);
    let plugin = registry.plugins().find(|info| info.path.as_deref().is_some_and(is_it));
    let Some(plugin) = plugin else {
        let why = "is not loaded: `tenon inspect` says why".to_owned();
        return Err(BenchError::Nothing(format!("{} {why}", file.display())));
    };
    let mut ops: BTreeMap<String, Vec<Arc<KernelDef>>> = BTreeMap::new();
    for kernel in registry.kernels().filter(|kernel| kernel.plugin == plugin.id) {
        ops.entry(kernel.op.clone()).or_default().push(Arc::clone(kernel));
    }
    let single = ops.len() == 1;
    let mut filter = with_labels(options, None);
    filter.named.extend(brought(&host.runtime, &[file.to_owned()]));
    for (name, own) in ops {
        let op = op_of(host, &name)?;
        // Types that this plugin's own kernels take.
        match of_op(&op, &own, &options.wish) {
            Ok(calls) => all.calls.extend(calls.into_iter().map(|call| (call, filter.clone()))),
            Err(error) if single => return Err(error),
            Err(error) => all.notes.push(error.to_string()),
        }
    }
    Ok(())
}

/// The steps of a graph, one for each value of the sweep, or the calls that they make.
fn graph(host: &Host, file: &Path, options: &Options, all: &mut Wanted) -> Result<(), BenchError> {
    let wish = &options.wish;
    let error = |problem: String| BenchError::Graph { file: file.to_owned(), problem };
    if !wish.attrs.is_empty() || !wish.values.is_empty() || wish.dtype.is_some() {
        return Err(error("has its own attributes and types: give --shape only".to_owned()));
    }
    let read = File::open(file).and_then(|open| read_graph_def(BufReader::new(open)));
    let read = read.map_err(|source| error(format!("cannot be read: {source}")))?;
    let def = read.map_err(|source| error(source.to_string()))?;
    let shapes = wish.shapes.first().cloned().unwrap_or_default();
    let points: Vec<Option<i64>> = match &wish.sweep {
        Some(sweep) => sweep.values.iter().copied().map(Some).collect(),
        None => vec![None],
    };
    let filter = with_labels(options, None);
    for at in points {
        let symbols =
            wish.sweep.iter().zip(at).map(|(sweep, at)| (sweep.symbol.as_str(), at)).collect();
        let data = options.data.as_deref();
        let wish = GraphWish {
            shapes: shapes.clone(),
            symbols,
            seed: wish.seed,
            data,
            pinned: options.pinned,
        };
        if !options.calls {
            all.steps.push(Step::new(&host.runtime, file, &def, &wish, at)?);
            continue;
        }
        let recorded = record(&host.runtime, file, &def, &wish)?;
        let skipped = recorded.skipped.iter().map(|(node, why)| format!("node '{node}' {why}"));
        all.notes.extend(skipped);
        for call in recorded.calls {
            all.calls.push((Call { at, ..call }, filter.clone()));
        }
    }
    Ok(())
}
