//! Events of a training run, and the summaries in them: what TensorBoard shows.

use super::tensor::TensorProto;

/// A record of an event file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Event {
    /// Seconds since 1970, when it was written.
    #[prost(double, tag = "1")]
    pub wall_time: f64,
    /// The global step.
    #[prost(int64, tag = "2")]
    pub step: i64,
    /// What it tells.
    #[prost(oneof = "EventKind", tags = "3, 4, 5, 6, 7, 8, 9")]
    pub what: Option<EventKind>,
    /// Who wrote the file, in its first event.
    #[prost(message, optional, tag = "10")]
    pub source_metadata: Option<SourceMetadata>,
}

/// The kinds of [`Event`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum EventKind {
    /// The version of the file's format, in its first event: `brain.Event:2`.
    #[prost(string, tag = "3")]
    FileVersion(String),
    /// A `GraphDef` as encoded bytes.
    #[prost(bytes, tag = "4")]
    GraphDef(Vec<u8>),
    /// Values of the run.
    #[prost(message, tag = "5")]
    Summary(Summary),
    /// A line of a log.
    #[prost(message, tag = "6")]
    LogMessage(LogMessage),
    /// A turn of the run: it began, saved or ended.
    #[prost(message, tag = "7")]
    SessionLog(SessionLog),
    /// The metadata of a step.
    #[prost(message, tag = "8")]
    TaggedRunMetadata(TaggedRunMetadata),
    /// A `MetaGraphDef` as encoded bytes.
    #[prost(bytes, tag = "9")]
    MetaGraphDef(Vec<u8>),
}

/// The writer of an event file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SourceMetadata {
    /// Name of the writer.
    #[prost(string, tag = "1")]
    pub writer: String,
}

/// A line of a log.
#[derive(Clone, PartialEq, prost::Message)]
pub struct LogMessage {
    /// `Level`: 10 debugging, 20 info, 30 warning, 40 error, 50 fatal.
    #[prost(int32, tag = "1")]
    pub level: i32,
    /// The text.
    #[prost(string, tag = "2")]
    pub message: String,
}

/// A turn of a run.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SessionLog {
    /// Which turn.
    #[prost(enumeration = "SessionStatus", tag = "1")]
    pub status: i32,
    /// Prefix of the checkpoint that was saved.
    #[prost(string, tag = "2")]
    pub checkpoint_path: String,
    /// Further text.
    #[prost(string, tag = "3")]
    pub msg: String,
}

/// The turns of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum SessionStatus {
    /// Not given.
    Unspecified = 0,
    /// The run began, or began again.
    Start = 1,
    /// The run ended.
    Stop = 2,
    /// A checkpoint was saved.
    Checkpoint = 3,
}

/// The metadata of a step, under a name.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TaggedRunMetadata {
    /// The name, unique in the file.
    #[prost(string, tag = "1")]
    pub tag: String,
    /// A `RunMetadata` as encoded bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub run_metadata: Vec<u8>,
}

/// Values of a run at one step.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Summary {
    /// The values.
    #[prost(message, repeated, tag = "1")]
    pub value: Vec<SummaryValue>,
}

/// A value of a summary.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SummaryValue {
    /// Name of the value.
    #[prost(string, tag = "1")]
    pub tag: String,
    /// The value.
    #[prost(oneof = "SummaryValueKind", tags = "2, 3, 4, 5, 6, 8")]
    pub value: Option<SummaryValueKind>,
    /// Name of the node that gave it; no longer written.
    #[prost(string, tag = "7")]
    pub node_name: String,
    /// What shows it.
    #[prost(message, optional, tag = "9")]
    pub metadata: Option<SummaryMetadata>,
}

/// The kinds of [`SummaryValue`].
#[allow(
    clippy::large_enum_variant,
    reason = "the variants are TensorFlow's messages, and a summary has few of them at a time"
)]
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum SummaryValueKind {
    /// A scalar.
    #[prost(float, tag = "2")]
    SimpleValue(f32),
    /// A histogram of an older form.
    #[prost(bytes, tag = "3")]
    ObsoleteOldStyleHistogram(Vec<u8>),
    /// An image.
    #[prost(message, tag = "4")]
    Image(SummaryImage),
    /// A histogram.
    #[prost(message, tag = "5")]
    Histo(HistogramProto),
    /// A clip of sound.
    #[prost(message, tag = "6")]
    Audio(SummaryAudio),
    /// A tensor.
    #[prost(message, tag = "8")]
    Tensor(TensorProto),
}

/// An image of a summary.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SummaryImage {
    /// Number of rows.
    #[prost(int32, tag = "1")]
    pub height: i32,
    /// Number of columns.
    #[prost(int32, tag = "2")]
    pub width: i32,
    /// Number of channels: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA.
    #[prost(int32, tag = "3")]
    pub colorspace: i32,
    /// A PNG or JPEG file.
    #[prost(bytes = "vec", tag = "4")]
    pub encoded_image_string: Vec<u8>,
}

/// A clip of sound of a summary.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SummaryAudio {
    /// Samples of a channel in a second.
    #[prost(float, tag = "1")]
    pub sample_rate: f32,
    /// Number of channels.
    #[prost(int64, tag = "2")]
    pub num_channels: i64,
    /// Samples of a channel.
    #[prost(int64, tag = "3")]
    pub length_frames: i64,
    /// A WAV file.
    #[prost(bytes = "vec", tag = "4")]
    pub encoded_audio_string: Vec<u8>,
    /// The kind of file: `audio/wav`.
    #[prost(string, tag = "5")]
    pub content_type: String,
}

/// What shows a value, and how.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SummaryMetadata {
    /// The plugin of TensorBoard, and its data.
    #[prost(message, optional, tag = "1")]
    pub plugin_data: Option<PluginData>,
    /// Name to show.
    #[prost(string, tag = "2")]
    pub display_name: String,
    /// Text to show beside it, in Markdown.
    #[prost(string, tag = "3")]
    pub summary_description: String,
    /// `DataClass`: 0 unknown, 1 scalar, 2 tensor, 3 sequence of blobs.
    #[prost(int32, tag = "4")]
    pub data_class: i32,
}

/// A plugin of TensorBoard.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PluginData {
    /// Its name.
    #[prost(string, tag = "1")]
    pub plugin_name: String,
    /// Its data.
    #[prost(bytes = "vec", tag = "2")]
    pub content: Vec<u8>,
}

/// Numbers of values by bucket.
#[derive(Clone, PartialEq, prost::Message)]
pub struct HistogramProto {
    /// The least value.
    #[prost(double, tag = "1")]
    pub min: f64,
    /// The greatest value.
    #[prost(double, tag = "2")]
    pub max: f64,
    /// Number of values.
    #[prost(double, tag = "3")]
    pub num: f64,
    /// Their sum.
    #[prost(double, tag = "4")]
    pub sum: f64,
    /// The sum of their squares.
    #[prost(double, tag = "5")]
    pub sum_squares: f64,
    /// Upper end of each bucket.
    #[prost(double, repeated, tag = "6")]
    pub bucket_limit: Vec<f64>,
    /// Number of values in each bucket.
    #[prost(double, repeated, tag = "7")]
    pub bucket: Vec<f64>,
}
