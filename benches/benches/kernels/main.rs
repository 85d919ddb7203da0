//! Every kernel of plugins/cpu beside the reference kernel of its op, which it must not be slower than: over the
//! forms of [`forms`], at 1e3 and 1e5 elements. Both come from the loaded plugin and are called in turn.
//!
//! ```text
//! cargo bench -p tenon-benches --bench kernels [-- [--dtypes LIST|all] [--sizes LIST] [FILTER]]
//! cargo bench -p tenon-benches --bench kernels -- --calls LABEL N FORM
//! ```
//! Prints a JSON line per kernel, in the form of benches/records, and on stderr the ratios, the slowest first.
//! Exits 1 where a kernel is slower by more than 5 %, in the median of pairs and in the shortest samples too, in
//! each of four trials on other buffers.
//! With `--calls` it only calls one kernel, for callgrind.

mod contest;
mod forms;
mod images;
mod input;

use contest::{DEVICE, Node, REFERENCE, Timing, check, contest};
use forms::{Form, Size, forms};
use std::{collections::BTreeSet, process::ExitCode, sync::Arc};
use tenon_benches::{Failure, environment, runtime};
use tenon_framework::{DType, Tensor, registry::KernelDef};
use tenon_runtime::{
    Runtime,
    host::{
        call::StepEnv,
        fpu::FpGuard,
        instance::{KernelInstance, PreparedCall},
    },
};

/// A kernel that takes so many times as long as the reference counts as slower.
const SLOWER: f64 = 1.05;
/// So often a kernel is timed that seems to be slower, before it counts as slower.
const TRIALS: usize = 4;

/// What to time.
struct Options {
    dtypes: Vec<DType>,
    sizes: Vec<usize>,
    filter: String,
    calls: Option<(String, u64)>,
}

fn dtypes(list: &str) -> Result<Vec<DType>, Failure> {
    if list == "all" {
        return Ok(input::DTYPES.to_vec());
    }
    let find = |name: &str| {
        let found = input::DTYPES.into_iter().find(|dtype| dtype.to_string() == name);
        found.ok_or_else(|| {
            format!("no element type is named {name}: float, int32, ..., or all").into()
        })
    };
    list.split(',').map(find).collect()
}

fn options() -> Result<Options, Failure> {
    let mut options = Options {
        dtypes: vec![DType::FLOAT, DType::INT32],
        sizes: vec![1_000, 100_000],
        filter: String::new(),
        calls: None,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} wants a value"));
        match &*arg {
            "--bench" => {}
            "--dtypes" => options.dtypes = dtypes(&value()?)?,
            "--sizes" => {
                let sizes = value()?;
                options.sizes = sizes.split(',').map(str::parse).collect::<Result<_, _>>()?;
            }
            "--calls" => options.calls = Some((value()?, value()?.parse()?)),
            _ => options.filter = arg,
        }
    }
    Ok(options)
}

/// A kernel and the reference at one form.
struct Pair {
    id: String,
    label: String,
    elements: usize,
    own: Timing,
    reference: Timing,
}

impl Pair {
    fn ratio(&self) -> f64 {
        self.own.ratio(&self.reference)
    }

    fn best_ratio(&self) -> f64 {
        self.own.min() / self.reference.min()
    }

    /// Of two trials the one in which the kernel did better.
    fn or_better(self, other: Pair) -> Pair {
        if other.best_ratio() < self.best_ratio() { other } else { self }
    }

    fn is_slower(&self) -> bool {
        self.ratio() > SLOWER && self.best_ratio() > SLOWER
    }

    /// The line of one of the two.
    fn line(&self, label: &str, timing: &Timing) -> String {
        let peer = if label.is_empty() { "tenon".to_owned() } else { format!("tenon_{label}") };
        let rate = |ns: f64| self.elements as f64 / ns;
        format!(
            "{{\"bench\": \"kernels\", \"peer\": \"{peer}\", \"version\": \"{}\", \"size\": \"{}\", \
             \"threads\": 1, \"median_ns\": {:.2}, \"min_ns\": {:.2}, \"max_ns\": {:.2}, \"samples\": {}, \
             \"rate\": {:.4e}, \"best_rate\": {:.4e}, \"unit\": \"Gelem/s\"}}",
            env!("CARGO_PKG_VERSION"),
            self.id,
            timing.median(),
            timing.min(),
            timing.max(),
            timing.samples.len(),
            rate(timing.median()),
            rate(timing.min()),
        )
    }
}

/// The ops that have a reference kernel, and the labels of their other kernels.
fn ops(runtime: &Runtime) -> Vec<(String, BTreeSet<String>)> {
    let registry = runtime.registry();
    let labels = |op: &str| -> BTreeSet<String> {
        let here = registry.kernels_of(op).iter().filter(|kernel| kernel.serves(DEVICE));
        here.map(|kernel| kernel.label.clone()).collect()
    };
    let names: BTreeSet<String> = registry.kernels().map(|kernel| kernel.op.clone()).collect();
    let with_labels = names.into_iter().map(|op| (labels(&op), op));
    with_labels
        .filter_map(|(mut labels, op)| labels.remove(REFERENCE).then_some((op, labels)))
        .collect()
}

/// Everything that is timed.
struct Bench {
    runtime: Runtime,
    env: StepEnv,
    options: Options,
    pairs: Vec<Pair>,
}

impl Bench {
    /// Times a form's kernels; those of `labels` that take its element types.
    fn form(
        &mut self,
        op: &str,
        labels: &BTreeSet<String>,
        id: &str,
        form: &Form,
    ) -> Result<(), Failure> {
        let registry = self.runtime.registry();
        let op = registry.op(op).ok_or_else(|| format!("op {op} is not registered"))?;
        let Some(node) = Node::new(op, form)? else { return Ok(()) };
        let kernel = |label: &str| node.kernel(&self.runtime, label);
        let Some(reference) = kernel(REFERENCE) else { return Ok(()) };
        let mut defs: Vec<_> = labels.iter().filter_map(|label| kernel(label)).collect();
        if defs.is_empty() {
            return Err(format!("{id}: only the reference takes {:?}", form.attrs).into());
        }
        defs.push(reference);
        let instances = defs.iter().map(|def| node.instance(&self.runtime, def));
        let instances = instances.collect::<Result<Vec<_>, _>>()?;
        let _state = FpGuard::for_kernels(false);
        if let Some((label, count)) = &self.options.calls {
            let wanted = defs.iter().position(|def| def.label == *label);
            let wanted = wanted.ok_or_else(|| format!("{id} has no kernel labelled '{label}'"))?;
            let mut call = node.call(&instances[wanted], &self.env)?;
            return Ok(call.repeat(*count)?);
        }
        let mut best: Vec<Pair> = Vec::new();
        let mut held = Vec::new();
        for _ in 0..TRIALS {
            let pairs = self.trial(id, &node, &defs, &instances, &mut held)?;
            best = match best.is_empty() {
                true => pairs,
                false => best.into_iter().zip(pairs).map(|(a, b)| a.or_better(b)).collect(),
            };
            if !best.iter().any(Pair::is_slower) {
                break;
            }
        }
        self.pairs.append(&mut best);
        Ok(())
    }

    /// Times kernels, the last of which is the reference. Where buffers lie makes some per cent: the outputs of
    /// former trials are held, so that this one has others.
    fn trial(
        &self,
        id: &str,
        node: &Node<'_>,
        defs: &[Arc<KernelDef>],
        instances: &[KernelInstance],
        held: &mut Vec<Tensor>,
    ) -> Result<Vec<Pair>, Failure> {
        let mut calls =
            instances.iter().map(|i| node.call(i, &self.env)).collect::<Result<Vec<_>, _>>()?;
        let last = calls.len() - 1;
        for (def, call) in defs.iter().zip(&calls[..last]) {
            check(def, call, &calls[last]).map_err(|error| format!("{id}: {error}"))?;
        }
        let elements = node.elements(&calls[last]);
        let mut timings = contest(&mut calls)?;
        held.extend(calls.iter().flat_map(PreparedCall::outputs));
        let reference = timings.pop().ok_or("nothing was timed")?;
        let pair = |(def, own): (&Arc<KernelDef>, Timing)| {
            let reference = reference.clone();
            Pair { id: id.to_owned(), label: def.label.clone(), elements, own, reference }
        };
        Ok(defs.iter().zip(timings).map(pair).collect())
    }

    /// The forms of an op that the options ask for, each with its name.
    fn forms(&self, op: &str) -> Result<Vec<(String, Form)>, Failure> {
        let mut all = Vec::new();
        for &dtype in &self.options.dtypes {
            for &elements in &self.options.sizes {
                let forms = forms(op, &Size::new(dtype, elements)).ok_or_else(|| {
                    format!("op {op} has a reference kernel and no forms to time: add some")
                })?;
                let id = |form: &Form| format!("{op}/{dtype}/{elements}/{}", form.name);
                all.extend(forms.into_iter().map(|form| (id(&form), form)));
            }
        }
        all.retain(|(id, _)| id.contains(&self.options.filter));
        Ok(all)
    }

    /// Times all forms that the options ask for, and prints their lines.
    fn run(&mut self) -> Result<(), Failure> {
        for (op, labels) in &ops(&self.runtime) {
            for (id, form) in &self.forms(op)? {
                let before = self.pairs.len();
                self.form(op, labels, id, form)?;
                for pair in &self.pairs[before..] {
                    println!("{}", pair.line(&pair.label, &pair.own));
                    println!("{}", pair.line(REFERENCE, &pair.reference));
                }
            }
        }
        Ok(())
    }

    /// The table; whether no kernel is slower.
    fn report(&mut self) -> bool {
        self.pairs.sort_by(|a, b| b.ratio().total_cmp(&a.ratio()));
        eprintln!("ratio  of best    kernel ns  reference ns  op/type/elements/form [label]");
        for pair in &self.pairs {
            let label =
                if pair.label.is_empty() { String::new() } else { format!(" [{}]", pair.label) };
            let verdict = if pair.is_slower() { "  slower" } else { "" };
            eprintln!(
                "{:5.3}    {:5.3} {:12.1} {:13.1}  {}{label}{verdict}",
                pair.ratio(),
                pair.best_ratio(),
                pair.own.median(),
                pair.reference.median(),
                pair.id,
            );
        }
        let slower = self.pairs.iter().filter(|pair| pair.is_slower()).count();
        eprintln!("{} pairs, {slower} slower than the reference", self.pairs.len());
        slower == 0
    }
}

fn main() -> Result<ExitCode, Failure> {
    let options = options()?;
    let runtime = runtime()?;
    let env = environment(&runtime);
    let mut bench = Bench { runtime, env, options, pairs: Vec::new() };
    bench.run()?;
    if bench.options.calls.is_some() {
        return Ok(ExitCode::SUCCESS);
    }
    Ok(if bench.report() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
