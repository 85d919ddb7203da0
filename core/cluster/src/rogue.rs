//! Clients that send arbitrary requests, chosen by bytes, to a server without a socket.
//!
//! The requests go through the services that a connection would reach: paths, codec, threads and master are those of a
//! [`Server`](crate::Server). For all bytes:
//! - a request is answered, or has ended soon after its client stopped waiting;
//! - no method panics, and no refusal has the code `INTERNAL` or `UNKNOWN`;
//! - a refusal has a message of bounded length, and an answer is the message of its method.
//!
//! [`frames`] does the same with frames of a link of the data plane.
//!
//! The memory that the requests take is bounded by the runtime's own limit (`host.memory_limit_mb`). Fuzzing and a seeded
//! test use this module.

mod choices;
mod graphs;
mod requests;
mod worker;

pub use crate::plane::rogue::play as frames;

use crate::{
    grpc::Services,
    master::{Limits, Master},
    refusal::HEADER_BYTES,
    server::{ServerOptions, services},
};
use choices::Choices;
use http::uri::PathAndQuery;
use prost::bytes::{Buf, BufMut};
use requests::{Known, Method, Sent};
use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};
use tenon_framework::Code;
use tenon_proto::MAX_MESSAGE_BYTES;
use tenon_runtime::Worker;
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinSet,
    time::timeout,
};
use tonic::{
    Request, Status,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

/// The number of requests of one play at most.
const REQUESTS: usize = 48;
/// The number of sessions that the server may have at the same time.
const SESSIONS: usize = 4;
/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_millis(50);
/// The time within which a request ends after its client stopped waiting.
const GRACE: Duration = Duration::from_secs(20);

/// Bytes of a message, as they are.
#[derive(Default)]
struct AsBytes;

impl Codec for AsBytes {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = AsBytes;
    type Decoder = AsBytes;

    fn encoder(&mut self) -> AsBytes {
        AsBytes
    }

    fn decoder(&mut self) -> AsBytes {
        AsBytes
    }
}

impl Encoder for AsBytes {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, message: Vec<u8>, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put_slice(&message);
        Ok(())
    }
}

impl Decoder for AsBytes {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut message = vec![0; from.remaining()];
        from.copy_to_slice(&mut message);
        Ok(Some(message))
    }
}

/// What came of a request: the bytes of the answer, a refusal, or nothing within the client's patience.
type Outcome = Option<Result<Vec<u8>, Status>>;

/// Sends one request, and waits for its answer.
async fn send(services: Services, sent: Sent) -> (Sent, Outcome) {
    let mut grpc = Grpc::new(services)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let path = PathAndQuery::from_static(sent.method.path());
    let request = Request::new(sent.message.clone());
    let answer = timeout(PATIENCE, grpc.unary(request, path, AsBytes)).await;
    (sent, answer.ok().map(|answer| answer.map(|answer| answer.into_inner())))
}

/// Why an outcome is not one that a server may give.
fn judge(method: Method, outcome: &Outcome, known: &mut Known) -> Result<(), String> {
    let refused = |code: Code, message: &str| match code {
        Code::INTERNAL | Code::UNKNOWN | Code::DATA_LOSS => {
            Err(format!("expected a refusal with a code of the caller's, found {code}: {message}"))
        }
        _ if message.is_empty() => Err(format!("expected a message with {code}, found none")),
        _ => Ok(()),
    };
    match outcome {
        None => Ok(()),
        Some(Ok(answer)) => match known.learn(method, answer)? {
            None => {
                known.answered.insert(method.path());
                Ok(())
            }
            Some((code, message)) => refused(code, &message),
        },
        Some(Err(status)) if status.message().len() > HEADER_BYTES => {
            let found = status.message().len();
            Err(format!("expected a message of at most {HEADER_BYTES} bytes, found {found}"))
        }
        Some(Err(status)) => refused(Code(status.code() as i32), status.message()),
    }
}

/// A server without a socket, for one play after another.
pub struct Stage {
    worker: Worker,
    threads: Runtime,
}

impl Stage {
    /// A server of this worker, whose values all plays forget at their end.
    ///
    /// # Panics
    /// When threads cannot be started.
    pub fn new(worker: Worker) -> Stage {
        let threads = Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(REQUESTS * 2)
            .thread_name("tenon-rogue")
            .enable_all()
            .build()
            .expect("threads can be started");
        Stage { worker, threads }
    }

    /// Sends the requests that these bytes choose to a new server; the paths of the methods that it answered without a
    /// refusal.
    ///
    /// # Errors
    /// What the server must not do, with the method of the request.
    pub fn play(&self, bytes: &[u8]) -> Result<BTreeSet<&'static str>, String> {
        let limits = Limits { sessions: SESSIONS, ..Limits::default() };
        let options = ServerOptions { limits, ..ServerOptions::default() };
        let services = services(self.worker.clone(), self.threads.handle(), &options)
            .expect("options without files");
        let played = self.threads.block_on(play(&services, Choices::new(bytes)));
        services.master.close_all();
        services.worker.close_all();
        let ended = ends(&services.master);
        self.worker.reset(&["", "other"]);
        ended.and(played)
    }
}

/// Sends requests, some of which run while others are sent.
async fn play(
    services: &Services,
    mut choices: Choices<'_>,
) -> Result<BTreeSet<&'static str>, String> {
    let mut known = Known::new(choices.one_in(2));
    let mut running = JoinSet::new();
    for _ in 0..REQUESTS {
        if choices.are_over() {
            break;
        }
        let sent = requests::make(&mut choices, &known);
        let together = choices.one_in(4);
        running.spawn(send(services.clone(), sent));
        while !together && let Some(done) = running.join_next().await {
            judge_one(done, &mut known)?;
        }
    }
    while let Some(done) = running.join_next().await {
        judge_one(done, &mut known)?;
    }
    Ok(known.answered)
}

fn judge_one(
    done: Result<(Sent, Outcome), tokio::task::JoinError>,
    known: &mut Known,
) -> Result<(), String> {
    let (sent, outcome) = done.map_err(|error| format!("a request did not return: {error}"))?;
    judge(sent.method, &outcome, known).map_err(|why| format!("{:?}: {why}", sent.method))
}

/// Waits until no request uses the master.
fn ends(master: &Arc<Master>) -> Result<(), String> {
    let end = Instant::now() + GRACE;
    while Arc::strong_count(master) > 1 {
        if Instant::now() > end {
            let left = Arc::strong_count(master) - 1;
            return Err(format!("{left} requests run {GRACE:?} after their sessions were closed"));
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    match master.is_busy() {
        true => Err("a step is counted that does not run".to_owned()),
        false => Ok(()),
    }
}
