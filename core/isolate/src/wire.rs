//! Messages between host and worker.
//!
//! There are two ways: a socket for what concerns the worker as a whole ([`Order`], [`Word`], each
//! preceded by its length), and channels for calls ([`Request`], then any number of [`Ask`]s with
//! an [`Answer`] each, then [`Reply`]). Neither side trusts the other: texts are checked as they
//! are read, numbers where they are used.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::io::{self, Read, Write};
use tenon_abi::MAX_RANK;
use tenon_framework::KernelError;

/// Largest message on the socket.
const MAX_SOCKET_MESSAGE: u32 = 64 << 20;
/// Values up to this size are sent with a message; larger ones are read in place.
pub(super) const SENT_BYTES: usize = 1024;

/// The arena that a message refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ArenaName {
    /// The host's, which the worker reads.
    Host,
    /// The worker's own.
    Worker,
}

/// A place in an arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    pub arena: ArenaName,
    pub offset: u64,
}

/// A setting of one of the plugin's knobs: name and value, as text.
pub(super) type Setting = (String, String);

/// An order of the host to the worker, by the socket.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Starts the worker; always the first order.
    Start(Start),
    /// Drops a kernel's state.
    Destroy { kernel: u64 },
    /// Cancels the call in a channel, if it is still this one.
    Cancel { channel: u32, call: u64 },
}

/// Parameters of a worker. These descriptors are sent with it: library, channels, the host's arena,
/// the worker's arena.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Start {
    /// Path of the plugin's file, in the system's encoding.
    pub path: Vec<u8>,
    /// SHA-256 of the library that is sent with it.
    pub digest: String,
    /// Number of threads on which kernels compute.
    pub threads: u32,
    /// Most bytes of private memory; 0 is no limit.
    pub memory_limit: u64,
    /// Microseconds that a channel's thread polls for the next call before it sleeps.
    pub look_us: u64,
    /// Sizes of the arenas: the host's, the worker's.
    pub arenas: [u64; 2],
    /// Whether a library with panic = "abort" is accepted.
    pub allow_panic_abort: bool,
}

/// A message of the worker about itself, by the socket.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Word {
    /// The library is open, and this is what it registers.
    Ready(Vec<super::definition::Definition>),
    /// The library is refused: the step's name, a code, and why.
    Refused { step: String, code: i32, message: String },
    /// A line for the log; the level as the boundary numbers it.
    Log { level: u32, message: String },
}

/// A tensor's type, shape and elements.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Value<'a> {
    pub dtype: u32,
    pub dims: Vec<i64>,
    #[serde(borrow)]
    pub data: Data<'a>,
}

/// A tensor's elements.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Data<'a> {
    /// They are sent with the message.
    Sent(#[serde(borrow)] &'a [u8]),
    /// They are in this place.
    At(Place),
    /// Elements of a string tensor.
    Strings(#[serde(borrow)] Vec<&'a [u8]>),
}

/// An attribute's value.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Attr<'a> {
    Int(Vec<i64>),
    Float(Vec<f32>),
    Bool(Vec<bool>),
    String(#[serde(borrow)] Vec<&'a [u8]>),
    Type(Vec<u32>),
    Shape(Vec<Option<Vec<i64>>>),
    Tensor(#[serde(borrow)] Vec<Value<'a>>),
    /// Name, call and definition.
    Func(#[serde(borrow)] Vec<(&'a str, &'a [u8], &'a [u8])>),
}

/// A named attribute; `true` for a list.
pub(super) type NamedAttr<'a> = (&'a str, bool, Attr<'a>);

/// A request to the worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request<'a> {
    /// Creates a kernel's state; [`Reply::Created`].
    Create(#[serde(borrow)] Creation<'a>),
    /// Asks whether the kernel supports the node; [`Reply::Supports`].
    Supports(#[serde(borrow)] Creation<'a>),
    /// Runs a shape function; [`Reply::Inferred`].
    Infer(#[serde(borrow)] Inference<'a>),
    /// Computes; [`Reply::Done`].
    Compute(#[serde(borrow)] Computation<'a>),
}

/// The parameters of a kernel's creation.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Creation<'a> {
    /// Index of the kernel among those that the plugin registers.
    pub kernel: u32,
    pub op: &'a str,
    pub node: &'a str,
    pub device: &'a str,
    #[serde(borrow)]
    pub attrs: Vec<NamedAttr<'a>>,
    pub input_types: Vec<u32>,
    pub output_types: Vec<u32>,
    pub input_shapes: Vec<Option<Vec<i64>>>,
    #[serde(borrow)]
    pub constants: Vec<Option<Value<'a>>>,
    #[serde(borrow)]
    pub input_args: Vec<(&'a str, u32, u32)>,
    #[serde(borrow)]
    pub output_args: Vec<(&'a str, u32, u32)>,
    /// The values that the plugin's knobs have in the session.
    pub knobs: Vec<Setting>,
}

/// A dimension: a size, or the number of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Dim {
    Known(i64),
    Unknown(u64),
}

/// The parameters of a shape function.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Inference<'a> {
    /// Index of the op among those that the plugin registers.
    pub op: u32,
    #[serde(borrow)]
    pub attrs: Vec<NamedAttr<'a>>,
    /// Shape of each input, and its value where that is the same in every step.
    #[serde(borrow)]
    pub inputs: Vec<(Option<Vec<Dim>>, Option<Value<'a>>)>,
    /// Number of symbols so far.
    pub symbols: u64,
}

/// The parameters of a kernel's call.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Computation<'a> {
    /// Number of the kernel's state.
    pub kernel: u64,
    /// Number of the call.
    pub call: u64,
    pub step: u64,
    pub frame: u64,
    pub iteration: u64,
    /// Nanoseconds until the step's deadline; `None` for none.
    pub deadline_ns: Option<u64>,
    pub keep_denormals: bool,
    /// Whether the step is cancelled already.
    pub cancelled: bool,
    pub tracing: bool,
    /// Value, alias class and flags of each input.
    #[serde(borrow)]
    pub inputs: Vec<(Value<'a>, u32, u32)>,
    pub outputs: Vec<Output>,
    pub input_args: Vec<(u32, u32)>,
    pub output_args: Vec<(u32, u32)>,
}

/// An output before it is computed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Output {
    pub dtype: u32,
    pub flags: u32,
    /// Dimensions and place, when it is planned.
    pub planned: Option<(Vec<i64>, Place)>,
}

/// A reply, which ends a call, or asks for a service.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply<'a> {
    /// Number of the created state.
    Created(u64),
    /// The boundary's `Support`, with the reason of a "no".
    Supports(i32, &'a str),
    /// Shapes of the outputs.
    Inferred(Vec<Option<Vec<Dim>>>),
    /// What the kernel did to each output.
    Done(#[serde(borrow)] Vec<Written<'a>>),
    /// An error: a code and a message.
    Failed(i32, &'a str),
    /// Does not end the call: requests a service.
    Ask(#[serde(borrow)] Ask<'a>),
}

/// A request for a service of the host, for a call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Ask<'a> {
    /// Memory for an output of this shape: [`Answer::At`].
    Allocate { output: u32, dims: Vec<i64> },
    /// The buffer of an input for an output, if nothing else uses it: [`Answer::At`] or
    /// [`Answer::No`].
    Forward { input: u32, output: u32, dims: Vec<i64> },
    /// Room for a message that is too long for a channel: [`Answer::At`].
    Room { bytes: u64 },
    /// A span for the trace; its times are nanoseconds before now: [`Answer::No`].
    Span { name: &'a str, began: u64, ended: u64 },
}

/// An answer of the host.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer<'a> {
    At(Place),
    No,
    Refused(i32, &'a str),
}

/// What a kernel did to an output.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Written<'a> {
    /// The kernel left it unset.
    Unset,
    /// It was written in its place.
    There,
    /// It is the value of this input with another shape.
    Shared { input: u32, dims: Vec<i64> },
    /// Strings, which are sent with the message.
    Strings {
        dims: Vec<i64>,
        #[serde(borrow)]
        items: Vec<&'a [u8]>,
    },
}

/// Encodes a message.
pub(super) fn encode(message: &impl Serialize) -> Vec<u8> {
    encode_into(message, Vec::new())
}

/// Encodes a message in a buffer that is reused.
pub(super) fn encode_into(message: &impl Serialize, mut buffer: Vec<u8>) -> Vec<u8> {
    buffer.clear();
    postcard::to_extend(message, buffer).expect("a vector takes every message")
}

/// Decodes a message.
pub(super) fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, KernelError> {
    postcard::from_bytes(bytes)
        .map_err(|error| KernelError::internal(format!("a message cannot be read: {error}")))
}

/// Checks the dimensions in a message.
pub(super) fn checked_dims(dims: &[i64]) -> Result<&[i64], KernelError> {
    if dims.len() > MAX_RANK || dims.iter().any(|&dim| dim < 0) {
        let message =
            format!("a message has dimensions {dims:?}: at most {MAX_RANK}, each 0 or more");
        return Err(KernelError::internal(message));
    }
    Ok(dims)
}

/// Writes a message to a socket.
pub(super) fn write_message(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let bytes = encode(message);
    let length = u32::try_from(bytes.len()).ok().filter(|&length| length <= MAX_SOCKET_MESSAGE);
    let length = length.ok_or_else(|| io::Error::other("the message is too long"))?;
    let mut all = length.to_le_bytes().to_vec();
    all.extend(bytes);
    to.write_all(&all)
}

/// Reads a message from a socket.
pub(super) fn read_message<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > MAX_SOCKET_MESSAGE {
        return Err(io::Error::other(format!("a message of {length} bytes is too long")));
    }
    let bytes = super::listener::read_exactly(from, length.into())?;
    postcard::from_bytes(&bytes).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_pass_whole_and_borrowed() {
        let strings: [&[u8]; 2] = [b"a", b""];
        let value = |data| Value { dtype: 1, dims: vec![2, 0], data };
        let place = Place { arena: ArenaName::Worker, offset: 1 << 40 };
        let inputs = vec![
            (value(Data::Sent(&[1, 2, 3])), 7, 0),
            (value(Data::At(place)), 0, 8),
            (value(Data::Strings(strings.to_vec())), 0, 0),
        ];
        let outputs = vec![Output { dtype: 3, flags: 1, planned: Some((vec![], place)) }];
        let computation = Computation {
            kernel: 9,
            call: 1,
            step: 2,
            frame: 0,
            iteration: u64::MAX,
            deadline_ns: Some(5),
            keep_denormals: true,
            cancelled: false,
            tracing: false,
            inputs,
            outputs,
            input_args: vec![(0, 3)],
            output_args: vec![(0, 1)],
        };
        let text = format!("{computation:?}");
        let bytes = encode(&Request::Compute(computation));
        let Request::Compute(back) = decode(&bytes).unwrap() else { panic!("another request") };
        assert_eq!(format!("{back:?}"), text);
    }

    #[test]
    fn what_is_cut_short_or_changed_is_an_error_and_no_panic() {
        let attrs = vec![("T", false, Attr::Type(vec![1])), ("l", true, Attr::Int(vec![-1, 2]))];
        let request = Request::Infer(Inference {
            op: 0,
            attrs,
            inputs: vec![(Some(vec![Dim::Known(2), Dim::Unknown(3)]), None), (None, None)],
            symbols: 3,
        });
        let bytes = encode(&request);
        for length in 0..bytes.len() {
            assert!(decode::<Request<'_>>(&bytes[..length]).is_err(), "{length}");
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                let _ = decode::<Request<'_>>(&changed);
            }
        }
        assert!(checked_dims(&[1; MAX_RANK + 1]).is_err() && checked_dims(&[-1]).is_err());
    }

    #[test]
    fn the_socket_takes_no_message_that_is_too_long() {
        let mut pipe = Vec::new();
        write_message(&mut pipe, &Order::Destroy { kernel: 5 }).unwrap();
        let order: Order = read_message(&mut pipe.as_slice()).unwrap();
        assert!(matches!(order, Order::Destroy { kernel: 5 }));
        assert!(read_message::<Order>(&mut &pipe[..3]).is_err());
        let mut huge = pipe.clone();
        huge[..4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(
            read_message::<Order>(&mut huge.as_slice())
                .unwrap_err()
                .to_string()
                .contains("too long")
        );
    }
}
