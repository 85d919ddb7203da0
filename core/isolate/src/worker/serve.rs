//! A channel's thread: receives a request, performs it, replies.

use super::{
    Shared,
    call::{self, Site},
    fault,
    states::Made,
    values,
};
use crate::{
    arena_view::Arenas,
    channel::{Channel, Message, Side},
    shared::Mapping,
    wire::{
        Answer, ArenaName, Ask, Creation, Dim, Inference, Place, Reply, Request, Written, decode,
        encode,
    },
};
use std::{collections::VecDeque, ptr, slice, sync::Arc, thread, time::Duration};
use tenon_abi::{
    Code, Create, DType, Dims, KernelTable, Range, ShapeView, Slot, Str, Strs, Support,
};
use tenon_framework::{
    KernelError, PartialShape,
    attr_view::AttrTable,
    infer::{Dimension, SymbolicShape, Symbols, ValueInfo, infer},
    plugin::guard,
    sync::{Mutex, Rank},
};
use tenon_host::{PluginContext, call::Cancellation, fpu::FpGuard, sink::MessageSink};

/// How long a channel's thread sleeps before it checks again; it is usually woken before that.
const SLEEP: Duration = Duration::from_secs(600);
/// Records of asynchronous calls that are kept after the calls' end.
const RETIRED: usize = 64;
/// Held for a conversation while a record's locks are free; the log's lock may be taken.
const TALK: Rank = Rank(100);

/// The worker's side of a channel.
pub(super) struct Line {
    channel: Channel,
    shared: Arc<Shared>,
    /// Held by a thread that asks: any thread of the plugin may.
    talk: Mutex<()>,
    retired: Mutex<VecDeque<Box<call::Record>>>,
}

impl Line {
    /// The arenas.
    pub fn arenas(&self) -> &Arenas {
        &self.shared.arenas
    }

    /// Requests a service of the host; returns a place, if that is the answer.
    pub fn ask(&self, ask: &Ask<'_>) -> Result<Option<Place>, KernelError> {
        let message = encode(&Reply::Ask(ask.clone()));
        let _talk = self.talk.lock();
        self.channel.send(&message);
        while !self.channel.wait(self.look(), SLEEP) {}
        let mut answer = Vec::new();
        let bytes = self.receive(&mut answer)?;
        match decode::<Answer<'_>>(bytes)? {
            Answer::At(place) => Ok(Some(place)),
            Answer::No => Ok(None),
            Answer::Refused(code, message) => Err(KernelError::new(Code(code), message)),
        }
    }

    /// Like [`Line::ask`], where the answer must be a place.
    pub fn ask_place(&self, ask: &Ask<'_>) -> Result<Place, KernelError> {
        self.ask(ask)?
            .ok_or_else(|| KernelError::internal("the host gave no memory, and no reason"))
    }

    fn look(&self) -> Duration {
        self.shared.look
    }

    /// The message that came with the turn.
    fn receive<'b>(&'b self, into: &'b mut Vec<u8>) -> Result<&'b [u8], KernelError> {
        match self.channel.receive(into) {
            Message::Here(_) => Ok(into),
            Message::Arena { offset, bytes } => {
                let data = self.arenas().at(Place { arena: ArenaName::Host, offset }, bytes)?;
                // SAFETY: within the arena; the host does not change a message before the reply.
                Ok(unsafe { slice::from_raw_parts(data.as_ptr().cast(), bytes as usize) })
            }
        }
    }

    /// Sends a reply of any length.
    fn reply(&self, reply: &Reply<'_>) {
        let bytes = encode(reply);
        if Channel::fits(&bytes) {
            return self.channel.send(&bytes);
        }
        let placed = self.ask_place(&Ask::Room { bytes: bytes.len() as u64 });
        let placed =
            placed.and_then(|place| Ok((place, self.arenas().at(place, bytes.len() as u64)?)));
        match placed {
            Ok((place, room)) => {
                // SAFETY: the room has as many bytes, and nothing else writes it.
                unsafe {
                    ptr::copy_nonoverlapping(bytes.as_ptr(), room.as_ptr().cast(), bytes.len());
                }
                self.channel.send_from_arena(place.offset, bytes.len() as u64);
            }
            Err(error) => self.channel.send(&encode(&Reply::Failed(error.code.0, &error.message))),
        }
    }

    /// Keeps the record of an asynchronous call that is over.
    pub fn retire(&self, record: Box<call::Record>) {
        let mut retired = self.retired.lock();
        retired.push_back(record);
        let oldest = if retired.len() > RETIRED { retired.pop_front() } else { None };
        drop(retired);
        drop(oldest);
    }
}

/// The handle of a channel's thread.
pub(super) struct Server {
    running: Arc<Mutex<(u64, Arc<Cancellation>)>>,
}

impl Server {
    /// Starts the thread of a channel.
    pub fn start(shared: &Arc<Shared>, channels: &Arc<Mapping>, at: usize) -> Server {
        let running = Arc::new(Mutex::new((0, Arc::default())));
        let line = Arc::new(Line {
            channel: Channel::new(channels, at, Side::Worker),
            shared: Arc::clone(shared),
            talk: Mutex::ranked(TALK, ()),
            retired: Mutex::default(),
        });
        let calls = Arc::clone(&running);
        thread::spawn(move || {
            fault::set_channel(at);
            let mut message = Vec::new();
            loop {
                if line.channel.wait(line.look(), SLEEP) {
                    serve(&line, &calls, &mut message);
                }
            }
        });
        Server { running }
    }

    /// Cancels a call, if it is the running one.
    pub fn cancel(&self, call: u64) {
        let (number, cancellation) = self.running.lock().clone();
        if number == call {
            cancellation.cancel();
        }
    }
}

fn serve(line: &Arc<Line>, running: &Mutex<(u64, Arc<Cancellation>)>, message: &mut Vec<u8>) {
    let request = match line.receive(message).and_then(decode::<Request<'_>>) {
        Ok(request) => request,
        Err(error) => return line.reply(&Reply::Failed(error.code.0, &error.message)),
    };
    let shared = &*line.shared;
    let result = match &request {
        Request::Create(creation) => {
            guarded(|| create(shared, creation).map(|number| line.reply(&Reply::Created(number))))
        }
        Request::Supports(creation) => guarded(|| {
            supports(shared, creation)
                .map(|(answer, reason)| line.reply(&Reply::Supports(answer.0, &reason)))
        }),
        Request::Infer(inference) => {
            guarded(|| shapes(shared, inference).map(|shapes| line.reply(&Reply::Inferred(shapes))))
        }
        Request::Compute(sent) => guarded(|| {
            let made = shared.states.get(sent.kernel)?;
            let cancellation: Arc<Cancellation> = Arc::default();
            if sent.cancelled {
                cancellation.cancel();
            }
            *running.lock() = (sent.call, Arc::clone(&cancellation));
            let pool = Arc::clone(&shared.pool);
            let site = Site { line: Arc::clone(line), made, pool, cancellation };
            let _state = FpGuard::for_kernels(sent.keep_denormals);
            call::compute(site, sent, |written| done(line, written));
            Ok(())
        }),
    };
    if let Err(error) = result {
        line.reply(&Reply::Failed(error.code.0, &error.message));
    }
}

fn done(line: &Line, written: Result<Vec<Written<'_>>, KernelError>) {
    match written {
        Ok(written) => line.reply(&Reply::Done(written)),
        Err(error) => line.reply(&Reply::Failed(error.code.0, &error.message)),
    }
}

fn guarded(body: impl FnOnce() -> Result<(), KernelError>) -> Result<(), KernelError> {
    guard(body)
        .unwrap_or_else(|panic| Err(KernelError::internal(format!("the worker panicked: {panic}"))))
}

/// A node that a kernel is asked about: owns what the struct of the boundary points to.
struct Node<'a> {
    creation: &'a Creation<'a>,
    context: Arc<PluginContext>,
    attrs: AttrTable,
    input_types: Vec<DType>,
    output_types: Vec<DType>,
    shapes: Vec<PartialShape>,
    constants: Vec<Option<values::Held>>,
}

impl<'a> Node<'a> {
    fn new(shared: &Shared, creation: &'a Creation<'a>) -> Result<Node<'a>, KernelError> {
        let constants = creation.constants.iter().map(|constant| {
            let flags = tenon_abi::slot_flags::CONSTANT;
            let held = |value| values::held(&shared.arenas, value, tenon_abi::NO_ALIAS, flags);
            constant.as_ref().map(held).transpose()
        });
        let shapes = creation.input_shapes.iter();
        Ok(Node {
            creation,
            context: shared.context(&creation.knobs),
            attrs: values::attrs(&shared.arenas, &creation.attrs)?,
            input_types: creation.input_types.iter().map(|&number| DType(number)).collect(),
            output_types: creation.output_types.iter().map(|&number| DType(number)).collect(),
            shapes: shapes.map(|dims| values::shape(dims.as_ref())).collect::<Result<_, _>>()?,
            constants: constants.collect::<Result<_, _>>()?,
        })
    }

    /// Calls `body` with the struct of the boundary.
    fn show<R>(&self, sink: &MessageSink, body: impl FnOnce(&Create) -> R) -> R {
        let creation = self.creation;
        let view = |shape: &PartialShape| {
            let dims = shape.dims();
            ShapeView {
                dims: Dims::new(dims.unwrap_or(&[])),
                unknown_rank: u32::from(dims.is_none()),
            }
        };
        let shapes: Vec<ShapeView> = self.shapes.iter().map(view).collect();
        let constant = |held: &Option<values::Held>| held.as_ref().map_or(Slot::EMPTY, |h| h.slot);
        let constants: Vec<Slot> = self.constants.iter().map(constant).collect();
        let split = |args: &[(&str, u32, u32)]| -> (Vec<Str>, Vec<Range>) {
            let part =
                |&(name, start, len): &(&str, u32, u32)| (Str::new(name), Range { start, len });
            args.iter().map(part).unzip()
        };
        let (input_args, input_ranges) = split(&creation.input_args);
        let (output_args, output_ranges) = split(&creation.output_args);
        body(&Create {
            struct_size: size_of::<Create>() as u32,
            input_count: self.input_types.len() as u32,
            output_count: self.output_types.len() as u32,
            reserved: 0,
            attrs: self.attrs.as_raw(),
            op: Str::new(creation.op),
            node: Str::new(creation.node),
            device: Str::new(creation.device),
            device_state: ptr::null_mut(),
            input_types: self.input_types.as_ptr(),
            output_types: self.output_types.as_ptr(),
            input_shapes: shapes.as_ptr(),
            constants: constants.as_ptr(),
            input_args: Strs::new(&input_args),
            input_ranges: input_ranges.as_ptr(),
            output_args: Strs::new(&output_args),
            output_ranges: output_ranges.as_ptr(),
            context: self.context.as_raw(),
            sink: sink.as_sink(),
            ext: ptr::null(),
        })
    }
}

fn table_of(shared: &Shared, number: u32) -> Result<&'static KernelTable, KernelError> {
    let table = shared.captured.tables.get(number as usize).copied().flatten();
    table.ok_or_else(|| KernelError::internal(format!("the plugin has no kernel {number}")))
}

fn create(shared: &Shared, creation: &Creation<'_>) -> Result<u64, KernelError> {
    let table = table_of(shared, creation.kernel)?;
    let node = Node::new(shared, creation)?;
    let mut state = ptr::null_mut();
    if let Some(create) = table.create {
        let sink = MessageSink::new();
        // SAFETY: the kernel's own entry with a filled struct; `state` is valid for writes.
        let code = node.show(&sink, |raw| unsafe { create(raw, &mut state) });
        sink.check(code)?;
    }
    let mut made = Made::new(table, state, creation.node);
    for (at, constant) in node.constants.iter().enumerate() {
        let Some(constant) = constant else { continue };
        // SAFETY: the host keeps a value in its arena as long as the state; if the value was sent,
        // a kernel that packs keeps its own form of it.
        unsafe { made.prepack(at as u32, &constant.slot)? };
    }
    Ok(shared.states.keep(made))
}

fn supports(shared: &Shared, creation: &Creation<'_>) -> Result<(Support, String), KernelError> {
    let table = table_of(shared, creation.kernel)?;
    let Some(supports) = table.supports else { return Ok((Support::YES, String::new())) };
    let node = Node::new(shared, creation)?;
    let sink = MessageSink::new();
    // SAFETY: the kernel's own entry with a filled struct.
    let answer = node.show(&sink, |raw| unsafe { supports(raw) });
    Ok((answer, sink.take().unwrap_or_default()))
}

fn shapes(shared: &Shared, sent: &Inference<'_>) -> Result<Vec<Option<Vec<Dim>>>, KernelError> {
    let op = shared.captured.ops.get(sent.op as usize).and_then(Option::as_ref);
    let op =
        op.ok_or_else(|| KernelError::internal(format!("the plugin has no op {}", sent.op)))?;
    let attrs = values::attrs(&shared.arenas, &sent.attrs)?;
    let mut symbols = Symbols::continued(sent.symbols);
    let mut inputs = Vec::with_capacity(sent.inputs.len());
    for (dims, constant) in &sent.inputs {
        inputs.push(match constant {
            Some(value) => ValueInfo::of_constant(values::tensor(&shared.arenas, value)?),
            None => ValueInfo {
                shape: symbolic(dims.as_deref(), &mut symbols)?,
                ..ValueInfo::default()
            },
        });
    }
    let inputs: Vec<&ValueInfo> = inputs.iter().collect();
    let outputs = infer(op, &attrs, &inputs, &mut symbols)?;
    let dim = |dim: &Dimension| match dim {
        Dimension::Known(size) => Dim::Known(*size),
        Dimension::Unknown(symbol) => Dim::Unknown(symbol.number()),
    };
    let shape = |output: &ValueInfo| output.shape.dims().map(|dims| dims.iter().map(dim).collect());
    Ok(outputs.iter().map(shape).collect())
}

fn symbolic(dims: Option<&[Dim]>, symbols: &mut Symbols) -> Result<SymbolicShape, KernelError> {
    let Some(dims) = dims else { return Ok(SymbolicShape::UNKNOWN) };
    let dims = dims.iter().map(|dim| match *dim {
        Dim::Known(size) => Dimension::Known(size),
        Dim::Unknown(number) => {
            Dimension::Unknown(symbols.symbol(number).unwrap_or_else(|| symbols.fresh()))
        }
    });
    SymbolicShape::new(dims.collect())
        .map_err(|error| KernelError::new(error.code(), error.to_string()))
}
