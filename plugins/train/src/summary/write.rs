//! Ops that write an event: a summary of a step, a graph, or an event as it is.

use super::{
    audio::clips,
    file::{Writer, now},
    images::{Level, images, most_of},
    message::{Message, scalar, text},
    tensors::{TYPES, tagged},
    values::{add_scalar, histogram_of},
};
use std::marker::PhantomData;
use tenon_proto::{Event, GraphDef, ProtoError, Summary, decode};
use tenon_sdk::{growth, prelude::*};

/// Field of an event: a graph.
const GRAPH: u64 = 4;
/// Field of an event: a summary.
const SUMMARY: u64 = 5;

/// Writes an event of this time and the step of input 1 to the writer of input 0.
fn write(c: &ComputeContext<'_>, field: u64, content: &[u8]) -> Result<(), KernelError> {
    let step: i64 = scalar(c, 1, "step")?;
    let mut event = Message::default();
    event.double(1, now())?;
    event.number(2, step as u64)?;
    event.bytes(field, content)?;
    writer(c)?.add(event.as_bytes())
}

fn write_summary(c: &ComputeContext<'_>, summary: &Message) -> Result<(), KernelError> {
    write(c, SUMMARY, summary.as_bytes())
}

fn writer(c: &ComputeContext<'_>) -> Result<ResourceHandle<Writer>, KernelError> {
    c.state().input_resource::<Writer>(0)
}

fn tensor(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let metadata = Some(text(c, 4, "summary_metadata")?).filter(|metadata| !metadata.is_empty());
    write_summary(c, &tagged(c, 2, text(c, 3, "tag")?, metadata)?)
}

register_kernel!("WriteSummary" on "CPU": fn tensor, types = ("T", TYPES));

fn number<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let mut summary = Message::default();
    let value = scalar::<T>(c, 3, "value")?.to_f64() as f32;
    add_scalar(&mut summary, text(c, 2, "tag")?, value)?;
    write_summary(c, &summary)
}

register_kernel!("WriteScalarSummary" on "CPU": fn number<T> for "T" in
    [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64]);

fn histogram<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let values = c.input::<T>(3)?.data.iter().map(|value| value.to_f64());
    write_histogram(c, values)
}

fn histogram_of_bools(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let values = c.input::<bool>(3)?.data.iter().map(|&value| f64::from(u8::from(value)));
    write_histogram(c, values)
}

fn write_histogram(
    c: &ComputeContext<'_>,
    values: impl Iterator<Item = f64>,
) -> Result<(), KernelError> {
    let tag = text(c, 2, "tag")?;
    write_summary(c, &histogram_of(tag, values, &String::from_utf8_lossy(tag))?)
}

register_kernel!("WriteHistogramSummary" on "CPU": fn histogram<T> for "T" in
    [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64]);
register_kernel!("WriteHistogramSummary" on "CPU": fn histogram_of_bools, types = ("T", &[DType::BOOL]));

struct Images<T> {
    most: i64,
    of: PhantomData<fn(T)>,
}

impl<T: Level> Kernel for Images<T> {
    const MODE: Mode = Mode::Expensive;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Images { most: most_of(c)?, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let bad = c.input::<u8>(4)?;
        if bad.dims.len() != 1 {
            return Err(KernelError::invalid_argument(format!(
                "bad_color must be a vector, got shape {:?}",
                bad.dims
            )));
        }
        let tag = text(c, 2, "tag")?;
        write_summary(c, &images::<T>(c, tag, c.input(3)?, bad.data, self.most)?)
    }
}

register_kernel!("WriteImageSummary" on "CPU": Images<T> for "T" in [u8, f16, f32, f64]);

struct Audio {
    most: i64,
}

impl Kernel for Audio {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Audio { most: c.attr("max_outputs")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let rate = scalar(c, 4, "sample_rate")?;
        write_summary(c, &clips(text(c, 2, "tag")?, c.input(3)?, rate, self.most)?)
    }
}

register_kernel!("WriteAudioSummary" on "CPU": Audio);

/// The error for bytes that are no message of this kind.
fn lost(what: &str, error: &ProtoError) -> KernelError {
    KernelError::new(Code::DATA_LOSS, format!("Bad {what} binary proto tensor string: {error}"))
}

fn graph(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let graph = text(c, 2, "tensor")?;
    decode::<GraphDef>(graph).map_err(|error| lost("tf.GraphDef", &error))?;
    write(c, GRAPH, graph)
}

register_kernel!("WriteGraphSummary" on "CPU": fn graph);

fn raw_summaries(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    // The values of several summaries one after the other are those of one.
    let mut summary = Vec::new();
    for (at, part) in c.strings(2)?.into_iter().enumerate() {
        decode::<Summary>(part)
            .map_err(|error| lost(&format!("tf.compat.v1.Summary at index {at}:"), &error))?;
        growth::append(&mut summary, part)?;
    }
    write(c, SUMMARY, &summary)
}

register_kernel!("WriteRawProtoSummary" on "CPU": fn raw_summaries);

fn import(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let event = text(c, 1, "event")?;
    decode::<Event>(event).map_err(|error| lost("tf.Event", &error))?;
    writer(c)?.add(event)
}

register_kernel!("ImportEvent" on "CPU": fn import);
