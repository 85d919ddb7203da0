//! The outputs of a call while it runs in a worker: the services that the worker requests, and the
//! data that it wrote.
//!
//! [`super::protocol`] decides what a message may do to an output; this module does it. An
//! announced size allocates nothing in the host's own memory: strings arrive whole before their
//! memory is allocated, and the elements of a bool output are copied from the memory that the
//! worker can write, each converted to 0 or 1.

use super::{
    arena::ArenaMemory,
    protocol::{self, Act, Kind, State},
    wire::{Answer, ArenaName, Ask, Place, Reply, Written, checked_dims},
};
use std::{ptr, sync::Arc};
use tenon_abi::{
    Call, CallRecord, CallServices, Code, DType, MemoryKind, Slot, Str, StringElement, slot_flags,
};
use tenon_framework::{
    KernelError,
    tensor::{Buffer, Memory, set_string},
};
use tenon_host::{bools, call::monotonic_ns};

/// Most spans that one call may add to a trace, and most characters of a span's name.
const SPANS: u32 = 10_000;
const SPAN_NAME: usize = 200;

/// The host's side of a conversation about a call.
pub(super) trait Line {
    /// The worker's next message.
    fn next(&mut self) -> Result<Reply<'_>, KernelError>;
    /// Answers a request for a service.
    fn answer(&mut self, answer: &Answer<'_>) -> Result<(), KernelError>;
    /// Answers with room for a reply that is too long for a channel.
    fn give_room(&mut self, bytes: u64) -> Result<(), KernelError>;
}

/// Why a call failed.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The kernel, a service or the process failed.
    Failed(KernelError),
    /// The worker sent an unexpected message, so that none of its messages can be trusted any more.
    Broken(String),
}

impl From<KernelError> for Trouble {
    fn from(error: KernelError) -> Trouble {
        Trouble::Failed(error)
    }
}

/// Memory in which an output is written before it is copied to its destination.
struct Detour {
    buffer: Buffer,
    bytes: usize,
    /// The shape of an output that has no memory yet.
    dims: Option<Vec<i64>>,
}

/// An output.
struct Target {
    kind: Kind,
    state: State,
    detour: Option<Detour>,
}

/// A call as the host's executor made it.
pub(super) struct Host<'a> {
    call: &'a Call,
    services: &'a CallServices,
    /// The memory that the worker can write.
    memory: &'a Arc<ArenaMemory>,
    targets: Vec<Target>,
    spans: u32,
}

impl<'a> Host<'a> {
    /// The call of a kernel whose worker writes to `memory`.
    ///
    /// # Safety
    /// - `call` is a filled call of the host that lives for `'a`.
    /// - Its outputs belong to the caller.
    pub unsafe fn new(call: &'a Call, memory: &'a Arc<ArenaMemory>) -> Host<'a> {
        // SAFETY: a call of the host has its services.
        let services = unsafe { &*call.services };
        let targets = Vec::with_capacity(call.output_count as usize);
        let mut host = Host { call, services, memory, targets, spans: 0 };
        for at in 0..call.output_count {
            let kind = Kind::of(host.slot(at).dtype);
            host.targets.push(Target { kind, state: State::Unset, detour: None });
        }
        host
    }

    /// The call.
    pub fn call(&self) -> &'a Call {
        self.call
    }

    /// Fails the call.
    pub fn fail(&self, error: &KernelError) -> Code {
        let Some(fail) = self.services.fail else { return error.code };
        // SAFETY: the call's own record, and a text that is valid during the call.
        unsafe { fail(self.record(), error.code, Str::new(&error.message)) }
    }

    /// An input.
    pub fn input(&self, at: u32) -> Option<&'a Slot> {
        // SAFETY: the call has `input_count` pointers to filled slots, which live as long as the
        // call.
        (at < self.call.input_count).then(|| unsafe { &**self.call.inputs.add(at as usize) })
    }

    /// The current slot of an output.
    pub fn slot(&self, at: u32) -> Slot {
        assert!(at < self.call.output_count, "there is an output {at}");
        // SAFETY: the call has `output_count` slots, which belong to this call.
        unsafe { *self.call.outputs.add(at as usize) }
    }

    /// The dimensions of an output that has memory already, and the place where the worker writes
    /// it.
    pub fn planned(&mut self, at: u32) -> Result<Option<(Vec<i64>, Place)>, KernelError> {
        let slot = self.slot(at);
        let is_planned = slot.flags & slot_flags::PLANNED != 0 && !slot.data.is_null();
        if !is_planned || matches!(self.targets[at as usize].kind, Kind::Strings | Kind::Kept) {
            return Ok(None);
        }
        let place = self.placed(at)?;
        self.targets[at as usize].state = State::Planned;
        // SAFETY: a planned output has its dimensions.
        Ok(Some((unsafe { slot.shape() }.to_vec(), place)))
    }

    /// Serves the worker until the kernel is done, and takes what it wrote.
    pub fn converse(&mut self, line: &mut impl Line) -> Result<(), Trouble> {
        loop {
            let answer = match line.next()? {
                Reply::Done(written) => return self.take(&written),
                Reply::Failed(code, message) => {
                    return Err(KernelError::new(Code(code), message).into());
                }
                Reply::Ask(Ask::Room { bytes }) => {
                    line.give_room(bytes)?;
                    continue;
                }
                Reply::Ask(ask) => self.serve(&ask),
                other => {
                    let kind = match other {
                        Reply::Created(_) => "Created",
                        Reply::Supports(..) => "Supports",
                        _ => "Inferred",
                    };
                    return Err(Trouble::Broken(format!("a call is not answered by {kind}")));
                }
            };
            match answer {
                Ok(Some(place)) => line.answer(&Answer::At(place))?,
                Ok(None) => line.answer(&Answer::No)?,
                Err(Trouble::Failed(error)) => {
                    line.answer(&Answer::Refused(error.code.0, &error.message))?;
                }
                Err(broken) => return Err(broken),
            }
        }
    }

    fn serve(&mut self, ask: &Ask<'_>) -> Result<Option<Place>, Trouble> {
        match ask {
            Ask::Allocate { output, dims } => self.allocate(*output, dims).map(Some),
            Ask::Forward { input, output, dims } => self.forward(*input, *output, dims),
            Ask::Span { name, began, ended } => {
                self.span(name, *began, *ended);
                Ok(None)
            }
            Ask::Room { .. } => Ok(None),
        }
    }

    /// The state of an output after a message, if the message is valid.
    fn after(&self, output: u32, act: Act) -> Result<State, Trouble> {
        let count = self.targets.len();
        let target = self.targets.get(output as usize).ok_or_else(|| {
            Trouble::Broken(format!("it names output {output}, and the node has {count}"))
        })?;
        protocol::after(target.state, target.kind, act)
            .map_err(|why| Trouble::Broken(format!("output {output}: {why}")))
    }

    fn kind_of_input(&self, input: u32) -> Result<Kind, Trouble> {
        let count = self.call.input_count;
        let slot = self.input(input).ok_or_else(|| {
            Trouble::Broken(format!("it names input {input}, and the node has {count}"))
        })?;
        let is_reference = slot.flags & slot_flags::REF != 0;
        Ok(if is_reference { Kind::Kept } else { Kind::of(slot.dtype) })
    }

    fn record(&self) -> *mut CallRecord {
        self.call.record
    }

    fn check(&self, code: Code) -> Result<(), KernelError> {
        // The service has set the message; an empty one does not replace it.
        if code.is_ok() { Ok(()) } else { Err(KernelError::new(code, "")) }
    }

    fn allocate(&mut self, output: u32, dims: &[i64]) -> Result<Place, Trouble> {
        let state = self.after(output, Act::Allocate)?;
        let dims = checked_dims(dims)?;
        let at = output as usize;
        let place = if self.targets[at].kind == Kind::Bool {
            let (buffer, place) = self.lend(protocol::elements(dims))?;
            let bytes = buffer.capacity();
            self.targets[at].detour = Some(Detour { buffer, bytes, dims: Some(dims.to_vec()) });
            place
        } else {
            self.allocate_here(output, dims)?;
            self.placed(output)?
        };
        self.targets[at].state = state;
        Ok(place)
    }

    /// Allocates an output by the host's own service.
    fn allocate_here(&self, output: u32, dims: &[i64]) -> Result<(), KernelError> {
        let allocate =
            self.services.allocate.ok_or_else(|| KernelError::internal("no `allocate`"))?;
        // SAFETY: the call's own record, and as many dimensions as given.
        let code = unsafe {
            let (first, rank) = (dims.as_ptr(), dims.len() as u32);
            allocate(self.record(), output, first, rank, MemoryKind::ORDINARY)
        };
        self.check(code)
    }

    /// Memory that the worker can write, of `bytes` bytes.
    fn lend(&self, bytes: Option<u64>) -> Result<(Buffer, Place), KernelError> {
        let memory: Arc<dyn Memory> = self.memory.clone();
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX);
        let buffer = Buffer::allocate(&memory, DType::UINT8, bytes, bytes)?;
        let place = self.place(buffer.data());
        let place =
            place.ok_or_else(|| KernelError::internal("a shared block lies in no arena"))?;
        Ok((buffer, place))
    }

    fn place(&self, data: *const std::ffi::c_void) -> Option<Place> {
        let offset = self.memory.arena().offset_of(data)?;
        Some(Place { arena: ArenaName::Worker, offset })
    }

    /// Where the worker writes an output that has memory: its own place, or one that it is copied
    /// from.
    fn placed(&mut self, output: u32) -> Result<Place, KernelError> {
        let slot = self.slot(output);
        let target = output as usize;
        if let Some(place) = self.place(slot.data) {
            self.targets[target].detour = None;
            return Ok(place);
        }
        let (buffer, place) = self.lend(Some(slot.bytes))?;
        let bytes = slot.bytes as usize;
        self.targets[target].detour = Some(Detour { buffer, bytes, dims: None });
        Ok(place)
    }

    fn forward(&mut self, input: u32, output: u32, dims: &[i64]) -> Result<Option<Place>, Trouble> {
        let state = self.after(output, Act::Forward(self.kind_of_input(input)?))?;
        let dims = checked_dims(dims)?;
        // The worker can write only its own arena.
        let lies_there = |slot: &Slot| self.place(slot.data).is_some();
        if !self.input(input).is_some_and(lies_there) {
            return Ok(None);
        }
        let Some(forward) = self.services.forward else { return Ok(None) };
        // SAFETY: the call's own record, and as many dimensions as given.
        let took = unsafe {
            let (first, rank) = (dims.as_ptr(), dims.len() as u32);
            forward(self.record(), input, output, first, rank)
        };
        if took == 0 {
            return Ok(None);
        }
        let place = self.placed(output)?;
        self.targets[output as usize].state = state;
        Ok(Some(place))
    }

    fn span(&mut self, name: &str, began: u64, ended: u64) {
        let Some(trace) = self.services.trace else { return };
        if self.call.tracing == 0 || self.spans == SPANS {
            return;
        }
        self.spans += 1;
        let now = monotonic_ns();
        let (begin, end) = (now.saturating_sub(began), now.saturating_sub(ended));
        let name = name.char_indices().nth(SPAN_NAME).map_or(name, |(at, _)| &name[..at]);
        // SAFETY: the call's own record, and a name that is valid during the call.
        unsafe { trace(self.record(), Str::new(name), begin, end) }
    }

    /// Takes what the kernel wrote.
    fn take(&mut self, written: &[Written<'_>]) -> Result<(), Trouble> {
        let count = self.targets.len();
        if written.len() != count {
            let found = written.len();
            return Err(Trouble::Broken(format!("it tells of {found} outputs of {count}")));
        }
        for (output, written) in (0..).zip(written) {
            let state = match written {
                Written::Unset => self.after(output, Act::Unset)?,
                Written::There => self.take_there(output)?,
                Written::Shared { input, dims } => self.share(*input, output, dims)?,
                Written::Strings { dims, items } => self.take_strings(output, dims, items)?,
            };
            self.targets[output as usize].state = state;
        }
        Ok(())
    }

    fn take_there(&mut self, output: u32) -> Result<State, Trouble> {
        let state = self.after(output, Act::There)?;
        let Some(Detour { buffer, bytes, dims }) = self.targets[output as usize].detour.take()
        else {
            return Ok(state);
        };
        if let Some(dims) = dims {
            self.allocate_here(output, &dims)?;
        }
        let slot = self.slot(output);
        if slot.data.is_null() || bytes < slot.bytes as usize {
            let found = slot.bytes;
            return Err(Trouble::Broken(format!("output {output} has {found} bytes, not {bytes}")));
        }
        // SAFETY: both ranges have this many bytes, and do not overlap. Nothing else uses the copy
        // yet.
        unsafe {
            let (from, to) = (buffer.data().cast::<u8>(), slot.data.cast::<u8>());
            ptr::copy_nonoverlapping(from, to, slot.bytes as usize);
            if self.targets[output as usize].kind == Kind::Bool {
                bools::normalise_raw(to, slot.bytes as usize);
            }
        }
        Ok(state)
    }

    fn share(&mut self, input: u32, output: u32, dims: &[i64]) -> Result<State, Trouble> {
        let state = self.after(output, Act::Shared(self.kind_of_input(input)?))?;
        let dims = checked_dims(dims)?;
        let share = self.services.share.ok_or_else(|| KernelError::internal("no `share`"))?;
        // SAFETY: the call's own record, and as many dimensions as given.
        let code = unsafe { share(self.record(), input, output, dims.as_ptr(), dims.len() as u32) };
        self.check(code)?;
        Ok(state)
    }

    fn take_strings(
        &mut self,
        output: u32,
        dims: &[i64],
        items: &[&[u8]],
    ) -> Result<State, Trouble> {
        let dims = checked_dims(dims)?;
        let (shape, sent) = (protocol::elements(dims), items.len() as u64);
        let state = self.after(output, Act::Strings { shape, sent })?;
        self.allocate_here(output, dims)?;
        let first = self.slot(output).data.cast::<StringElement>();
        for (at, item) in items.iter().enumerate() {
            // SAFETY: the output has as many elements, newly allocated and so empty.
            let code = unsafe { set_string(first.add(at), item) };
            if !code.is_ok() {
                let message = format!("no memory for a string of {} bytes", item.len());
                return Err(KernelError::new(code, message).into());
            }
        }
        Ok(state)
    }
}
