//! Things that a worker must not do, one by one, and seeded random conversations.

use super::*;
use std::{sync::atomic::AtomicBool, thread};

/// Random bytes for the choices.
fn random(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    let length = usize::from(next()) * 2 + 8;
    (0..length).map(|_| next()).collect()
}

/// Runs a conversation in which the worker sends `messages`; returns the result and the outputs.
fn says(messages: &[Vec<u8>]) -> (Result<(), Trouble>, Vec<Option<Tensor>>) {
    // Choice 1: raw bytes, with their number.
    let mut bytes = vec![0];
    for message in messages {
        assert!(message.len() < 256);
        bytes.extend([1, message.len() as u8]);
        bytes.extend(message);
    }
    let stage = stage();
    let counted = Arc::new(Counted {
        memory: HostMemory::shared().clone(),
        live: AtomicU64::new(0),
        peak: AtomicU64::new(0),
    });
    let node = node(&stage.memory, &counted);
    let scene = Scene::new(&node, &stage.env, inputs(&stage.memory));
    let mapping = || Arc::new(stage.channels.map().unwrap());
    let channel = Channel::new(&mapping(), 0, Side::Host);
    let mut talk = Talk::new(channel, &stage.memory, &stage.of_host, Default::default());
    talk.send(b"").unwrap();
    let rogue = Rogue {
        choices: Choices(&bytes[1..]),
        channel: Channel::new(&mapping(), 0, Side::Worker),
        memory: stage.memory.clone(),
        places: Vec::new(),
        sent: 0,
    };
    let mut line = Stall { talk, rogue };
    // SAFETY: as in `play_on`.
    let mut host = unsafe { Host::new(scene.frame.call(), &stage.memory) };
    let result = host.converse(&mut line);
    assert!(counted.peak.load(Ordering::Relaxed) < 4096, "a promise takes no memory");
    (result, scene.outputs.iter().map(Value::tensor).collect())
}

fn broken(messages: &[Vec<u8>]) -> String {
    match says(messages).0 {
        Err(Trouble::Broken(why)) => why,
        other => panic!("a message is out of order: {other:?}"),
    }
}

fn allocate(output: u32, dims: &[i64]) -> Vec<u8> {
    encode(&Reply::Ask(Ask::Allocate { output, dims: dims.to_vec() }))
}

fn done(at: usize, written: Written<'_>) -> Vec<u8> {
    let mut all: Vec<Written<'_>> = OUTPUTS.iter().map(|_| Written::Unset).collect();
    all[at] = written;
    encode(&Reply::Done(all))
}

#[test]
fn strings_are_never_taken_as_the_bytes_that_a_worker_wrote() {
    let why = broken(&[allocate(2, &[3]), done(2, Written::There)]);
    assert_eq!(why, "output 2: its strings are sent, never written as bytes");
    let why = broken(&[done(2, Written::There)]);
    assert_eq!(why, "output 2: its strings are sent, never written as bytes");
    // Three numbers have as many bytes as one string, and so do 24 bools.
    for (input, output, dims) in [(3, 2, 1), (2, 3, 9), (4, 2, 1), (2, 5, 72), (5, 1, 24)] {
        let written = Written::Shared { input, dims: vec![dims] };
        let why = broken(&[done(output, written)]);
        assert!(why.contains("of another kind than those of this input"), "{why}");
    }
}

#[test]
fn strings_that_are_promised_take_no_memory() {
    let items: Vec<&[u8]> = vec![b"one"];
    let written = Written::Strings { dims: vec![1 << 26], items };
    let why = broken(&[done(2, written)]);
    assert_eq!(why, "output 2: the strings are not as many as its shape has");
}

#[test]
fn a_shape_whose_bytes_are_more_than_a_number_holds_is_no_shape_of_an_input() {
    // Times 8, it is 24 above 2^64.
    let written = Written::Shared { input: 3, dims: vec![(1 << 61) + 3] };
    let (result, outputs) = says(&[done(3, written)]);
    assert!(matches!(result, Err(Trouble::Failed(_))), "{result:?}");
    assert!(outputs[3].is_none());
}

#[test]
fn bools_that_are_promised_take_no_memory_and_any_byte_is_true_or_false() {
    let (result, outputs) = says(&[allocate(1, &[3 << 20]), encode(&Reply::Failed(3, "no"))]);
    assert!(matches!(result, Err(Trouble::Failed(error)) if error.message == "no"));
    assert!(outputs[1].is_none());
    let (result, outputs) = says(&[allocate(1, &[8]), done(1, Written::There)]);
    assert!(result.is_ok(), "{result:?}");
    outputs[1].as_ref().unwrap().validate().unwrap();
}

#[test]
fn a_room_that_was_never_written_takes_no_memory() {
    let mut bytes = vec![0];
    let room = encode(&Reply::Ask(Ask::Room { bytes: 8 << 20 }));
    bytes.extend([1, room.len() as u8]);
    bytes.extend(room);
    // Choice 3 with the last place, and the number 1 << 22.
    bytes.extend([3, 1, 3, 22]);
    play(&bytes);
}

#[test]
fn messages_of_seeds_break_nothing() {
    let stage = stage();
    for seed in 0..20_000 {
        play_on(&stage, &random(seed));
    }
    assert_eq!(stage.memory.live_bytes(), 0, "nothing of it is in use");
}

#[test]
fn memory_that_changes_while_it_is_read_breaks_nothing() {
    let (stage, over) = (stage(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            // Random bytes in messages and outputs; the turns stay correct.
            let channels = stage.channels.map().unwrap();
            let arena = stage.memory.arena();
            let mut state = 1u64;
            while !over.load(Ordering::Relaxed) {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(99991);
                let (at, byte) = ((state >> 33) % 512, (state >> 20) as u8);
                let message = channels.at(4096 + at, 1).unwrap().cast::<u8>();
                let output = arena.at(at, 1).unwrap().cast::<u8>();
                // SAFETY: within the mappings, whose contents the host treats as arbitrary bytes.
                unsafe {
                    message.write_volatile(byte);
                    output.write_volatile(byte);
                }
            }
        });
        for seed in 0..3_000 {
            play_on(&stage, &random(seed));
        }
        over.store(true, Ordering::Relaxed);
    });
}
