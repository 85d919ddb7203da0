//! The command line of `tenon bench`.

use crate::args::threads;
use clap::Args;
use std::{num::NonZeroUsize, path::PathBuf};
use tenon_benchkit::{
    record::SweepAxis,
    wanted::{Shapes, sweep, value},
};
use tenon_runtime::framework::DType;

pub const ABOUT: &str = "\
Measure kernels side by side, and how far each is from the machine's limits.

A TARGET is an op (MatMul), the kernels of one label (MatMul:avx512), a plugin's file (all its kernels), or a graph
(a whole step of it; with --calls the calls that the step makes, with their shapes and attributes). Every variant that
takes a call is measured: all labels, plugins and types of devices; of devices that are used only when named, as a
simulator is, those that --device names and those that a given plugin brings. Before a variant is timed its result is
compared with the reference; one that is wrong is reported, not timed, and the exit code is 1.

Variants take turns in random order, sample by sample, so that what slows the machine slows all of them. Printed are the
median time of the kernel alone with half the width of its 95 % interval, what a whole one-op step costs on top of
it (dispatch), work per second, the share of the limit that the machine's roofline sets, and the ratio to the base: the
variant that the runtime would choose, or what --vs names. Limits are measured once and kept.

    tenon bench MatMul --shape a=[n,n],b=[n,n] --sweep n=64..1024
    tenon bench target/release/libmy_ops.so --vs reference
    tenon bench model.pb --shape input=1x28x28x1

Of a graph's step are told: its time; by op and by node the time, its share, the rate, the share of the limit and the
kernel that was chosen; and the memory that it holds beside what was planned. Before it is timed, what no node uses is
fetched and compared with the graph as it is written, and with expected values where --data brings some.

Where no shapes are given an op is measured by the calls that it ships (bench = ... where it is registered); else by
calls that are made large enough for arithmetic or memory to count, with attributes at their defaults. --threads 1..8
measures with each number of threads, as a sweep. Calls find their operands in the caches, as they were left by the call
before; with --cold as much memory as fills the caches twice is read before each call, outside of its time.

To find out later whether something became slower, keep a record and compare with it; the exit code is 1 where a test
over all records shows a difference larger than the threshold:

    tenon bench Add --processes 9 --record before.jsonl
    tenon bench Add --processes 9 --baseline before.jsonl

Two records, of two commits say, are compared without measuring; --html, --csv and --markdown write what is found:

    tenon bench --compare before.jsonl after.jsonl --html changes.html

A page for reading holds everything: who is faster and from where on, in words; sweeps, the machine's roofline, the
samples and a table that sorts; and the records themselves. It is one file, and loads nothing:

    tenon bench MatMul --shape a=[n,n],b=[n,n] --sweep n=64..1024 --html matmul.html

Results that take the reference more than a quarter of a billion operations are judged by some of their rows (matrix
products, and what is computed row by row) or images (convolutions), and said to be so. Kernels of a device with streams
are called for 2 milliseconds at a time, and waited for at the end. A variant whose first call takes longer than 3
seconds and ten times --time is reported with that figure, and not timed.";

pub const EXAMPLE: &str = "\
Example:
  tenon bench Relu --shape features=1000 --time 0.2";

#[derive(Debug, Clone, Args)]
pub struct BenchArgs {
    /// Op, OP:LABEL, file of a plugin, or graph (.pb)
    #[arg(value_name = "TARGET", required_unless_present = "compare")]
    pub targets: Vec<String>,
    #[arg(help = "Shapes of the inputs: x=64x64,y=[n,2*n]; once per case", long = "shape", value_name = "NAME=SHAPE,...", value_parser = Shapes::parse)]
    pub shapes: Vec<Shapes>,
    /// Values of a symbol in the shapes: n=64..4096 doubles, n=64..512:+64 adds
    #[arg(long, value_name = "SYMBOL=FIRST..LAST", value_parser = sweep)]
    pub sweep: Option<SweepAxis>,
    /// An attribute of the op; may be repeated
    #[arg(long = "attr", value_name = "NAME=VALUE", value_parser = attr)]
    pub attrs: Vec<(String, String)>,
    #[arg(help = "Elements of an input, such as axes: axis=-1 or perm=[1,0]; may be repeated", long = "value", value_name = "NAME=VALUE", value_parser = value)]
    pub values: Vec<(String, Vec<i64>, bool)>,
    /// An input that is known when the kernel is made, such as weights; may be repeated
    #[arg(long = "const", value_name = "NAME")]
    pub constants: Vec<String>,
    /// Element type of the first input
    #[arg(long, value_name = "TYPE", value_parser = dtype)]
    pub dtype: Option<DType>,
    /// Feed a graph from this file, an .npz: arrays named as placeholders are fed, others are compared with the tensors
    /// of their names
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// Feed a graph from pinned host memory, from which a GPU copies by itself, instead of ordinary memory
    #[arg(long)]
    pub pinned: bool,
    /// Measure a graph call by call, with all variants of each, instead of its whole step
    #[arg(long)]
    pub calls: bool,
    /// Only kernels of this label ('' is the ordinary one); may be repeated
    #[arg(long = "label", value_name = "LABEL")]
    pub labels: Vec<String>,
    /// Only devices of this type, and those that are used only when named, such as ACCEL; may be repeated
    #[arg(long = "device", value_name = "TYPE")]
    pub devices: Vec<String>,
    /// What to compare with: a label, another build of a plugin, or a file of records
    #[arg(long, value_name = "LABEL|FILE")]
    pub vs: Option<String>,
    /// Seconds that each variant of each case may take at most; medians that are known well enough end it sooner
    #[arg(long, value_name = "S", default_value = "1", value_parser = seconds)]
    pub time: f64,
    /// Threads that compute, the caller's included; several are a sweep: 1..8 doubles, 1,3,6 lists
    #[arg(long, value_name = "N|FIRST..LAST|N,N", default_value = "1", value_parser = Counts::parse)]
    pub threads: Counts,
    /// Fill the caches with other things before each call, and time calls one by one
    #[arg(long)]
    pub cold: bool,
    /// Count cycles, instructions and misses of the last cache and the TLB in some more calls, where the system allows it
    #[arg(long)]
    pub counters: bool,
    /// Measure in so many processes, one after the other
    #[arg(long, value_name = "N", default_value = "1")]
    pub processes: NonZeroUsize,
    /// Differences below so many per cent are none: 2 between variants, 5 between runs, and for each pair never below
    /// what either of the two differs from itself by
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub threshold: Option<f64>,
    /// Compare with an earlier record, and fail where something became slower
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Write all samples to a file, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Compare two records: what became slower or faster from the first to the second
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"], conflicts_with_all = ["targets", "record", "baseline", "shapes", "sweep"])]
    pub compare: Vec<PathBuf>,
    /// Write a table as comma-separated values
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write tables as Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write a page with findings, plots and a table: one file that needs nothing else
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Other inputs, other orders
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Let results differ by this share of what cancels in them, whatever kernels promise: for knobs that give precision
    /// away
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub tolerance: Option<f64>,
    /// Do not time whole steps
    #[arg(long)]
    pub no_dispatch: bool,
    /// Measure the machine's limits anew
    #[arg(long, conflicts_with = "no_roofline")]
    pub no_cache: bool,
    /// Leave the machine's limits out
    #[arg(long)]
    pub no_roofline: bool,
    /// Number of this process, where another one gathers the samples of several
    #[arg(long, hide = true, requires = "child_report")]
    pub child: Option<u32>,
    /// Where its report goes
    #[arg(long, hide = true, requires = "child")]
    pub child_report: Option<PathBuf>,
}

/// Numbers of threads, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts(pub Vec<NonZeroUsize>);

impl Counts {
    /// The first.
    pub fn first(&self) -> NonZeroUsize {
        self.0.first().copied().unwrap_or(NonZeroUsize::MIN)
    }

    fn parse(text: &str) -> Result<Counts, String> {
        let mut counts = match text.split_once("..") {
            Some((first, last)) => {
                let (first, last) = (threads(first)?, threads(last)?);
                if first > last {
                    return Err("expected FIRST..LAST, the smaller number first".to_owned());
                }
                let double =
                    |count: &NonZeroUsize| count.checked_mul(NonZeroUsize::MIN.saturating_add(1));
                let doubled = std::iter::successors(Some(first), double);
                doubled.take_while(|count| *count < last).chain([last]).collect()
            }
            None => text.split(',').map(threads).collect::<Result<Vec<_>, _>>()?,
        };
        counts.sort_unstable();
        counts.dedup();
        Ok(Counts(counts))
    }
}

fn attr(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("expected NAME=VALUE, such as transpose_a=true or strides=[1,2,2,1]".to_owned()),
    }
}

fn dtype(text: &str) -> Result<DType, String> {
    DType::from_name(text).ok_or_else(|| {
        let names: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
        format!("no such type; the types are {}", names.join(", "))
    })
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected seconds, from 0.001 to 3600".to_owned()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("expected a share, from 0 to 1".to_owned()),
    }
}

/// A share: 5 is 0.05.
fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (0.0..=1000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("expected per cent, from 0 to 1000".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_a_number_a_list_or_doubled() {
        let parsed = |text: &str| {
            Counts::parse(text).map(|counts| counts.0.iter().map(|n| n.get()).collect::<Vec<_>>())
        };
        assert_eq!(parsed("4"), Ok(vec![4]));
        assert_eq!(parsed("1..6"), Ok(vec![1, 2, 4, 6]));
        assert_eq!(parsed("2..2"), Ok(vec![2]));
        assert_eq!(parsed("6,1,3,1"), Ok(vec![1, 3, 6]));
        for text in ["", "0", "4..1", "1..", "1,", "1..9999999"] {
            assert!(parsed(text).is_err(), "{text}");
        }
    }

    #[test]
    fn values_outside_their_ranges_are_refused() {
        assert_eq!((seconds("0.5"), percent("5")), (Ok(0.5), Ok(0.05)));
        assert_eq!((share("2e-3"), share("0")), (Ok(2e-3), Ok(0.0)));
        assert!(share("1.5").is_err() && share("nan").is_err());
        for text in ["0", "-1", "nan", "1e9", "soon"] {
            assert!(seconds(text).is_err(), "{text}");
        }
        assert!(percent("-1").is_err() && percent("all").is_err());
        assert_eq!(attr("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert!(attr("a").is_err() && attr("a=").is_err());
        assert_eq!(dtype("half"), Ok(DType::HALF));
        assert!(dtype("float9").unwrap_err().contains("float, double"));
    }
}
