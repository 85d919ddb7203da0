//! A worker that sends arbitrary messages, chosen by bytes, in a conversation with the host.
//!
//! Channel, arena and services are those of a real call; only the process is missing. For all
//! bytes: no memory of the host is read or written as a wrong type, a bool that the host receives
//! is 0 or 1, and what the host allocates in its own memory is bounded by what was sent. Fuzzing
//! and a seeded test use it.

use super::{
    arena::ArenaMemory,
    channel::{CHANNELS_BYTES, Channel, MESSAGE_BYTES, Side},
    outputs::{Host, Line, Trouble},
    shared::SharedFile,
    talk::Talk,
    wire::{Answer, Ask, Dim, Place, Reply, Written, decode, encode},
};
use std::{
    ffi::c_void,
    ptr::{self, NonNull},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tenon_abi::{DType, MemoryKind, Slot, slot_flags};
use tenon_framework::{
    KernelError, Shape, Tensor,
    tensor::{Buffer, Memory},
};
use tenon_host::{
    call::{CallFrame, NodeInfo, OutputSpec, StepEnv, Value},
    memory::HostMemory,
    pool::ThreadPool,
    resources::Resources,
};

/// Types of the outputs of the call.
const OUTPUTS: [DType; 6] =
    [DType::FLOAT, DType::BOOL, DType::STRING, DType::INT64, DType::RESOURCE, DType::UINT8];
/// Outputs that may have memory before the call.
const PLANNED: [usize; 2] = [0, 1];
/// Bytes of the worker's arena.
const ARENA: u64 = 16 << 20;
/// Bytes that the host may allocate beyond what was sent: outputs of small size, and their shapes.
const SLACK: u64 = 64 << 10;

/// Bytes as a sequence of choices, followed by zeros.
struct Choices<'b>(&'b [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end
    }

    fn word(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// A number of a typical size: a small one, an edge case, or any.
    fn number(&mut self) -> u64 {
        match self.byte() % 8 {
            0 => 0,
            1 => 1 << 26,
            2 => u64::MAX,
            3 => 1 << (self.byte() % 64),
            4 => self.word(),
            _ => u64::from(self.byte()),
        }
    }

    fn dims(&mut self) -> Vec<i64> {
        match self.byte() % 8 {
            0 => vec![],
            1 => vec![self.number() as i64],
            2 => (0..self.below(12)).map(|_| i64::from(self.byte() % 4)).collect(),
            3 => vec![self.number() as i64, self.number() as i64],
            // The shapes of the inputs, and shapes with as many bytes.
            4 => vec![3],
            5 => vec![6],
            6 => vec![24],
            _ => vec![i64::from(self.byte())],
        }
    }

    fn bytes(&mut self) -> Vec<u8> {
        (0..self.byte()).map(|_| self.byte()).collect()
    }
}

/// Memory of the host that records the most bytes in use at once.
struct Counted {
    memory: Arc<HostMemory>,
    live: AtomicU64,
    peak: AtomicU64,
}

// SAFETY: blocks are those of the underlying pool.
unsafe impl Memory for Counted {
    fn kind(&self) -> MemoryKind {
        MemoryKind::HOST
    }

    fn device(&self) -> u64 {
        0
    }

    fn allocate(&self, bytes: usize) -> Result<NonNull<c_void>, KernelError> {
        let data = self.memory.allocate(bytes)?;
        let live = self.live.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        self.peak.fetch_max(live, Ordering::Relaxed);
        Ok(data)
    }

    unsafe fn deallocate(&self, data: NonNull<c_void>, bytes: usize) {
        self.live.fetch_sub(bytes as u64, Ordering::Relaxed);
        // SAFETY: `data` came from `allocate`, and so from `memory`, with this size; the caller is
        // its last user.
        unsafe { self.memory.deallocate(data, bytes) }
    }
}

/// What all runs share: memory whose pages exist only once they are used.
struct Stage {
    memory: Arc<ArenaMemory>,
    of_host: Arc<dyn Memory>,
    channels: SharedFile,
    env: StepEnv,
}

fn stage() -> Stage {
    Stage {
        memory: Arc::new(ArenaMemory::new("tenon-rogue", ARENA).expect("shared memory")),
        // No answer is so long that it needs it.
        of_host: HostMemory::shared().clone(),
        channels: SharedFile::new("tenon-rogue", CHANNELS_BYTES).expect("shared memory"),
        env: StepEnv::new(Arc::new(ThreadPool::new(1)), Arc::new(Resources::new())),
    }
}

/// The worker's side of the channel, and the memory that it received.
struct Rogue<'b> {
    choices: Choices<'b>,
    channel: Channel,
    memory: Arc<ArenaMemory>,
    places: Vec<Place>,
    sent: u64,
}

impl Rogue<'_> {
    fn written(&mut self) -> Vec<u8> {
        let (texts, count) = (self.choices.bytes(), self.choices.below(8));
        let outputs = if count == 7 { self.choices.below(9) } else { OUTPUTS.len() };
        let all = (0..outputs).map(|_| match self.choices.byte() % 6 {
            0 | 1 => Written::Unset,
            2 | 3 => Written::There,
            4 => Written::Shared { input: self.choices.below(7) as u32, dims: self.choices.dims() },
            _ => {
                let dims = self.choices.dims();
                let items = self.choices.below(8);
                Written::Strings { dims, items: (0..items).map(|_| &texts[..]).collect() }
            }
        });
        encode(&Reply::Done(all.collect()))
    }

    fn message(&mut self) -> Vec<u8> {
        let output = self.choices.below(8) as u32;
        let reply = match self.choices.byte() % 12 {
            0..=2 => {
                let dims = self.choices.dims();
                return encode(&Reply::Ask(Ask::Allocate { output, dims }));
            }
            3 | 4 => {
                let (input, dims) = (self.choices.below(7) as u32, self.choices.dims());
                return encode(&Reply::Ask(Ask::Forward { input, output, dims }));
            }
            5 => Reply::Ask(Ask::Room { bytes: self.choices.number() }),
            6 => Reply::Ask(Ask::Span { name: "span", began: self.choices.word(), ended: 0 }),
            7 => Reply::Failed(i32::from(self.choices.byte()), "as asked for"),
            8 => Reply::Created(self.choices.word()),
            9 => Reply::Inferred(vec![Some(vec![Dim::Unknown(self.choices.number())])]),
            _ => return self.written(),
        };
        encode(&reply)
    }

    /// Writes arbitrary bytes where it was told to write, or elsewhere.
    fn scribble(&mut self) {
        let at = self.choices.below(8);
        let offset = match self.places.get(at) {
            Some(place) => place.offset,
            None => self.choices.number() % ARENA,
        };
        let bytes = self.choices.bytes();
        if let Some(to) = self.memory.arena().at(offset, bytes.len() as u64) {
            // SAFETY: within the arena, whose contents the host treats as arbitrary bytes.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast().as_ptr(), bytes.len()) }
        }
    }

    /// Sends a message; false when no choices are left.
    fn play(&mut self) -> bool {
        while !self.choices.0.is_empty() {
            match self.choices.byte() % 8 {
                0 => self.scribble(),
                1 => {
                    let bytes = self.choices.bytes();
                    return self.send(&bytes);
                }
                2 => {
                    let mut message = self.message();
                    let at = self.choices.below(message.len().min(256));
                    message[at] ^= 1 << (self.choices.byte() % 8);
                    return self.send(&message);
                }
                3 => {
                    let (offset, bytes) = (self.offset(), self.choices.number());
                    self.channel.send_from_arena(offset, bytes);
                    return true;
                }
                4 => {
                    let (offset, message) = (self.offset(), self.message());
                    if let Some(to) = self.memory.arena().at(offset, message.len() as u64) {
                        // SAFETY: as in `scribble`.
                        unsafe {
                            let to = to.cast::<u8>().as_ptr();
                            ptr::copy_nonoverlapping(message.as_ptr(), to, message.len());
                        }
                    }
                    self.sent += message.len() as u64;
                    self.channel.send_from_arena(offset, message.len() as u64);
                    return true;
                }
                _ => {
                    let message = self.message();
                    return self.send(&message);
                }
            }
        }
        false
    }

    fn offset(&mut self) -> u64 {
        match self.places.last() {
            Some(place) if self.choices.below(4) > 0 => place.offset,
            _ => self.choices.number(),
        }
    }

    fn send(&mut self, message: &[u8]) -> bool {
        let message = &message[..message.len().min(MESSAGE_BYTES)];
        self.sent += message.len() as u64;
        self.channel.send(message);
        true
    }

    /// Receives the host's answer.
    fn receive(&mut self) {
        let mut message = Vec::new();
        self.channel.receive(&mut message);
        if let Ok(Answer::At(place)) = decode::<Answer<'_>>(&message) {
            self.places.push(place);
        }
    }
}

/// The host's side of the conversation: nothing waits, since the worker acts when the host asks for
/// its next message.
struct Stall<'s, 'b> {
    talk: Talk<'s>,
    rogue: Rogue<'b>,
}

impl Line for Stall<'_, '_> {
    fn next(&mut self) -> Result<Reply<'_>, KernelError> {
        if !self.rogue.play() {
            return Err(KernelError::internal("the worker has nothing more to say"));
        }
        assert!(self.talk.channel().wait(Duration::ZERO, Duration::ZERO), "it is the host's turn");
        self.talk.received()
    }

    fn answer(&mut self, answer: &Answer<'_>) -> Result<(), KernelError> {
        self.talk.send_encoded(answer)?;
        self.rogue.receive();
        Ok(())
    }

    fn give_room(&mut self, bytes: u64) -> Result<(), KernelError> {
        self.talk.give_room(bytes)?;
        self.rogue.receive();
        Ok(())
    }
}

/// Inputs of every kind; the second one is in the worker's arena and belongs to the call alone.
fn inputs(memory: &Arc<ArenaMemory>) -> Vec<Tensor> {
    let theirs: Arc<dyn Memory> = memory.clone();
    let donated = Tensor::allocate(&theirs, DType::FLOAT, Shape::new(&[6]).expect("a shape"));
    let donated = donated.expect("the arena has room");
    // SAFETY: newly allocated memory of this size.
    unsafe { donated.buffer().data().cast::<u8>().write_bytes(0, 24) };
    let made = [
        Tensor::from_slice(&[6], &[1.0f32; 6]),
        Ok(donated),
        Tensor::from_strings(&[3], &["a", "", "a text that is longer than a pointer"]),
        Tensor::from_slice(&[3], &[-1i64, 2, 3]),
        Tensor::from_slice(&[24], &[true; 24]),
        Tensor::from_slice(&[24], &[7u8; 24]),
    ];
    made.into_iter().map(|tensor| tensor.expect("a small tensor")).collect()
}

fn node(memory: &Arc<ArenaMemory>, counted: &Arc<Counted>) -> NodeInfo {
    let (theirs, ours): (Arc<dyn Memory>, Arc<dyn Memory>) = (memory.clone(), counted.clone());
    let output = |&dtype: &DType| {
        let lies_there = !dtype.needs_drop() && dtype != DType::BOOL;
        OutputSpec { dtype, memory: if lies_there { theirs.clone() } else { ours.clone() } }
    };
    NodeInfo {
        name: "rogue".to_owned(),
        op: "Rogue".to_owned(),
        def: None,
        outputs: OUTPUTS.iter().map(output).collect(),
        input_args: Vec::new(),
        output_args: Vec::new(),
        functions: Vec::new(),
        host_memory: ours.clone(),
        device_memory: ours.clone(),
        device: ptr::null_mut(),
        device_state: ptr::null_mut(),
    }
}

/// Runs the conversation that the bytes choose.
///
/// # Panics
/// When one of the conditions above is violated.
pub fn play(bytes: &[u8]) {
    static STAGE: LazyLock<Stage> = LazyLock::new(stage);
    play_on(&STAGE, bytes);
}

fn play_on(stage: &Stage, bytes: &[u8]) {
    let counted = Arc::new(Counted {
        memory: HostMemory::shared().clone(),
        live: AtomicU64::new(0),
        peak: AtomicU64::new(0),
    });
    let node = node(&stage.memory, &counted);
    let mapping = || Arc::new(stage.channels.map().expect("shared memory"));
    let mut choices = Choices(bytes);
    let plans = choices.byte() % 2 == 1;
    let rogue = Rogue {
        choices,
        channel: Channel::new(&mapping(), 0, Side::Worker),
        memory: stage.memory.clone(),
        places: Vec::new(),
        sent: 0,
    };
    let channel = Channel::new(&mapping(), 0, Side::Host);
    let mut talk = Talk::new(channel, &stage.memory, &stage.of_host, Default::default());
    let mut scene = Scene::new(&node, &stage.env, inputs(&stage.memory));
    if plans {
        PLANNED.iter().for_each(|&at| scene.plan(at, &[6]));
    }
    talk.send(b"a request").expect("a short message");
    let mut line = Stall { talk, rogue };
    let call = scene.frame.call();
    // SAFETY: a filled call that outlives the host's side, and that nothing else uses.
    let mut host = unsafe { Host::new(call, &stage.memory) };
    for at in 0..OUTPUTS.len() as u32 {
        host.planned(at).expect("the arena has room");
    }
    let result = host.converse(&mut line);
    drop(host);
    scene.check(&result);
    let (peak, sent) = (counted.peak.load(Ordering::Relaxed), line.rogue.sent);
    // A string takes 24 bytes, and at least one in a message. Bools are copied from the arena,
    // which is bounded.
    assert!(peak <= SLACK + 24 * sent + ARENA, "{peak} bytes of the host's for {sent} sent");
}

/// A call's record with everything that it points to.
struct Scene {
    frame: Box<CallFrame>,
    outputs: Box<[Slot]>,
    values: Box<[Value]>,
    _input_values: Box<[Value]>,
    _input_slots: Box<[Slot]>,
}

impl Scene {
    fn new(node: &NodeInfo, env: &StepEnv, inputs: Vec<Tensor>) -> Scene {
        let slot = |spec: &OutputSpec| Slot { dtype: spec.dtype.base(), ..Slot::EMPTY };
        let mut outputs: Box<[Slot]> = node.outputs.iter().map(slot).collect();
        let mut values: Box<[Value]> = node.outputs.iter().map(|_| Value::default()).collect();
        let mut input_values: Box<[Value]> = inputs.iter().map(|_| Value::default()).collect();
        let mut input_slots = vec![Slot::EMPTY; inputs.len()].into_boxed_slice();
        for ((tensor, value), slot) in inputs.iter().zip(&mut input_values).zip(&mut input_slots) {
            value.hold(slot, tensor);
            value.readers.store(1, Ordering::Relaxed);
        }
        let slots = input_slots.iter().map(ptr::from_ref).collect();
        let held = input_values.iter_mut().map(ptr::from_mut).collect();
        // SAFETY: slots and values are boxed and live as long as the frame; node and environment
        // live longer.
        let frame = unsafe {
            CallFrame::new(node, env, slots, held, outputs.as_mut_ptr(), values.as_mut_ptr())
        };
        let mut frame = Box::new(frame);
        frame.settle();
        let (_input_values, _input_slots) = (input_values, input_slots);
        Scene { frame, outputs, values, _input_values, _input_slots }
    }

    /// Gives an output memory before the call.
    fn plan(&mut self, at: usize, dims: &[i64]) {
        let spec = &self.frame.node().outputs[at];
        let (value, slot) = (&mut self.values[at], &mut self.outputs[at]);
        let count = dims.iter().product::<i64>() as usize;
        let bytes = count * spec.dtype.size().expect("elements of a fixed size");
        let buffer = Buffer::allocate(&spec.memory, spec.dtype, count, bytes).expect("memory");
        value.dims[..dims.len()].copy_from_slice(dims);
        let flags = slot_flags::PLANNED;
        tenon_host::call::fill_slot(slot, &buffer, spec.dtype, &value.dims[..dims.len()], flags);
        value.owner = Some(buffer);
    }

    /// Reads every output as the host would.
    fn check(&self, result: &Result<(), Trouble>) {
        if result.is_err() {
            return;
        }
        for (slot, dtype) in self.outputs.iter().zip(OUTPUTS) {
            let Some(tensor) = Value::tensor(slot) else { continue };
            assert_eq!(tensor.dtype(), dtype);
            match dtype {
                DType::STRING => {
                    let texts = tensor.as_strings().expect("strings of the host's");
                    assert!(texts.iter().all(|text| text.len() < MESSAGE_BYTES));
                }
                DType::RESOURCE => panic!("a resource came out of a worker"),
                DType::BOOL => tensor.validate().expect("bools"),
                _ => assert_eq!(tensor.as_bytes().expect("bytes").len(), tensor.byte_len()),
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
