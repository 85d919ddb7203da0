//! A task at the other end of a link that sends arbitrary frames, chosen by bytes.
//!
//! For all bytes: the link does not panic; what it sends back are frames; it ends soon after the lane does, and then nothing
//! waits for it. Memory is bounded by the checks of lengths, credit and the number of requests.

use super::{
    Serve,
    frame::{HEADER, Header, Kind},
    lane::Lane,
    link::{Hold, Link, Request},
};
use crate::{
    refusal::Refusal,
    transport::{Done, End, Withdraw},
    way::Way,
    wire::Answer,
};
use prost::Message;
use std::{
    sync::{Arc, Weak, mpsc},
    time::Duration,
};
use tenon_framework::{Code, Tensor, sync::Mutex};
use tenon_proto::{RecvBufRequest, RecvTensorRequest};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    runtime::Builder,
    time::timeout,
};

const PEER: &str = "/job:w/replica:0/task:1";
/// The frames of one play at most.
const FRAMES: usize = 64;
/// How long a link may take to end after its lane.
const GRACE: Duration = Duration::from_secs(20);

/// Gives a small tensor, a large one, nothing yet, or a refusal, by the number of the step.
#[derive(Default)]
struct Given {
    kept: Mutex<Vec<(Option<Done>, Option<Hold>)>>,
}

impl Given {
    fn give(&self, which: i64, done: Done) -> Withdraw {
        let of = |bytes: usize| {
            let tensor = Tensor::from_slice(&[bytes as i64], &vec![5u8; bytes]).ok();
            Ok(Answer { tensor, is_dead: false, send_start_micros: 1, must_confirm: false })
        };
        match which.rem_euclid(4) {
            0 => done(of(100)),
            1 => done(of(1 << 20)),
            2 => done(Err(Refusal::new(Code::NOT_FOUND, "there is none"))),
            _ => self.kept.lock().push((Some(done), None)),
        }
        Box::new(|_: End| ())
    }
}

impl Serve for Given {
    fn tensor(&self, request: RecvTensorRequest, done: Done) -> Withdraw {
        self.give(request.step_id, done)
    }

    fn buffer(&self, request: RecvBufRequest, done: Done) -> Withdraw {
        self.give(request.step_id, done)
    }

    fn pushed(&self, step: i64, _: String, _: Answer, hold: Hold) {
        // A hold that is not kept is dropped before the lock.
        let hold = Some(hold).filter(|_| step % 2 == 0);
        self.kept.lock().push((None, hold));
    }

    fn lost(&self, _: &[i64], _: &Refusal) {}
}

/// Bytes that are used up by choices; zeros follow.
struct Bytes<'b>(&'b [u8]);

impl Bytes<'_> {
    fn one(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn some(&mut self, most: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken.to_vec()
    }

    /// A small number, or an edge.
    fn number(&mut self) -> u64 {
        match self.one() {
            255 => u64::MAX,
            254 => 1 << 40,
            253 => 4 << 20,
            small => u64::from(small % 5),
        }
    }

    /// A frame: nearly always one with right checksums.
    fn frame(&mut self) -> Vec<u8> {
        let kinds = [
            Kind::Want,
            Kind::WantBuffer,
            Kind::Withdraw,
            Kind::Head,
            Kind::Chunk,
            Kind::Refused,
            Kind::Push,
            Kind::Credit,
            Kind::Ping,
            Kind::Pong,
            Kind::Bye,
        ];
        let choice = usize::from(self.one());
        if choice == 255 {
            return self.some(40);
        }
        let kind = kinds[choice % kinds.len()];
        let (id, at, length) = (self.number(), self.number(), usize::from(self.one()));
        let body = match kind {
            Kind::Want => {
                RecvTensorRequest { step_id: at as i64, ..Default::default() }.encode_to_vec()
            }
            Kind::Push => push(self.one(), &self.some(length)),
            Kind::Head => head(self.one(), &self.some(length)),
            _ => self.some(length),
        };
        let mut bytes = Header::of(kind, id, at, &[&body], true).bytes().to_vec();
        bytes.extend(body);
        bytes
    }
}

/// A head for so many bytes, with some of them, or any bytes.
fn head(choice: u8, bytes: &[u8]) -> Vec<u8> {
    if choice.is_multiple_of(4) {
        return bytes.to_vec();
    }
    let total = u64::from(choice);
    let mut head = vec![1, 0, 1, 0];
    head.extend(tenon_framework::DType::UINT8.0.to_le_bytes());
    head.extend(total.to_le_bytes());
    head.extend(0u64.to_le_bytes());
    head.extend(total.to_le_bytes());
    head.extend(bytes.iter().take(usize::from(choice)));
    head
}

fn push(choice: u8, bytes: &[u8]) -> Vec<u8> {
    let key = format!("{PEER}/device:CPU:0;1;x;t;0:0");
    let mut body = (key.len() as u32).to_le_bytes().to_vec();
    body.extend(key.as_bytes());
    body.extend(head(choice | 1, &vec![bytes.first().copied().unwrap_or(1); 256]));
    body
}

/// Reads what the link sends; what is not a frame.
async fn listen(mut stream: tokio::io::ReadHalf<DuplexStream>) -> Result<(), String> {
    let mut header = [0; HEADER];
    while stream.read_exact(&mut header).await.is_ok() {
        let header = Header::read(&header, true).map_err(|error| error.to_string())?;
        let mut body = vec![0; header.length];
        if stream.read_exact(&mut body).await.is_err() {
            break;
        }
        header.check(&body).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Sends the frames that these bytes choose.
///
/// # Errors
/// What the link must not do.
///
/// # Panics
/// When threads cannot be started.
pub fn play(bytes: &[u8]) -> Result<(), String> {
    let threads = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let threads = threads.expect("threads can be started");
    let (near, far) = tokio::io::duplex(16 << 10);
    let given = Arc::<Given>::default();
    let served: Arc<dyn Serve> = given.clone();
    let serve: Weak<dyn Serve> = Arc::downgrade(&served);
    let link = Link::begin(threads.handle(), PEER, Lane::of_stream(Way::Tcp, near), serve);
    let (sender, ends) = mpsc::channel();
    for step in 0..3 {
        let sender = sender.clone();
        let request = Request::Tensor(RecvTensorRequest { step_id: step, ..Default::default() });
        let done = Box::new(move |_| {
            let _ = sender.send(());
        });
        drop(link.ask(&request, done));
    }
    drop(sender);
    let played = threads.block_on(async {
        let (read, mut write) = tokio::io::split(far);
        let heard = tokio::spawn(listen(read));
        let mut choices = Bytes(bytes);
        for _ in 0..FRAMES {
            // An ended link takes no more.
            if choices.0.is_empty() || write.write_all(&choices.frame()).await.is_err() {
                break;
            }
        }
        let _ = write.shutdown().await;
        drop(write);
        timeout(GRACE, heard).await
    });
    match played {
        Err(_) => return Err("the link does not end with its lane".to_owned()),
        Ok(Err(error)) => return Err(format!("a reader did not return: {error}")),
        Ok(Ok(heard)) => heard?,
    }
    // Each request of this side has ended, by an answer or by the end of the link.
    link.close("the play is over");
    for _ in 0..3 {
        ends.recv_timeout(GRACE).map_err(|_| "a request does not end with its link".to_owned())?;
    }
    Ok(())
}

/// Numbers of a seed: SplitMix64 (Steele, Lea and Flood, 2014).
#[cfg(test)]
pub(crate) struct SplitMix(pub u64);

#[cfg(test)]
impl SplitMix {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::{SplitMix, play};

    #[test]
    fn frames_of_seeds_harm_no_link() {
        let rounds = std::env::var("TENON_TEST_FUZZ_FRAMES").ok().and_then(|it| it.parse().ok());
        for seed in 0..rounds.unwrap_or(300u64) {
            let mut numbers = SplitMix(seed);
            let bytes: Vec<u8> = (0..400).map(|_| numbers.next() as u8).collect();
            if let Err(fault) = play(&bytes) {
                panic!("seed {seed}: {fault}");
            }
        }
    }
}
