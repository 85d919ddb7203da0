//! What comes in.

use super::{EAGER, Hold, Link, OVERHEAD, Request, serving};
use crate::{
    keys::task_of,
    plane::{
        frame::{Header, Kind, SETTLED, UNCHECKED},
        reader::{ReadError, Reader},
        value::{HeadError, Incoming},
    },
    refusal::Refusal,
    transport::{End, Sender},
    wire::Answer,
};
use prost::Message;
use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
};
use tenon_framework::{Code, text::cut_message};
use tokio::io::AsyncRead;

/// Why the link ends, and whether the other side is told.
struct Fault {
    why: String,
    tell: bool,
}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Fault {
        let tell = matches!(error, ReadError::Frame(_));
        Fault { why: error.to_string(), tell }
    }
}

impl From<String> for Fault {
    fn from(why: String) -> Fault {
        Fault { why, tell: true }
    }
}

/// A content that has not come completely.
enum Filling {
    Value(Box<Incoming>),
    /// One for which there is no memory.
    Skipped {
        left: u64,
        refusal: Refusal,
    },
}

struct Fill {
    at: u64,
    what: Filling,
}

/// Reads frames until the link ends.
pub(super) async fn read(link: Arc<Link>, lane: impl AsyncRead + Unpin) {
    let mut end = link.end.subscribe();
    let mut incoming = In { filling: HashMap::new(), body: Vec::new() };
    let mut reader = Reader::new(lane, link.checked);
    let fault = tokio::select! {
        fault = incoming.frames(&link, &mut reader) => fault,
        _ = end.wait_for(|end| *end) => return,
    };
    if fault.tell {
        tracing::warn!("{}", link.broken(&fault.why).message);
        link.sent(link.writer.frame(Kind::Bye, 0, 0, 0, &[fault.why.as_bytes()]));
    }
    link.close(&fault.why);
}

struct In {
    filling: HashMap<u64, Fill>,
    body: Vec<u8>,
}

impl In {
    /// Takes frames; why there are no more.
    async fn frames(&mut self, link: &Link, reader: &mut Reader<impl AsyncRead + Unpin>) -> Fault {
        loop {
            let header = match reader.header().await {
                Ok(Some(header)) => header,
                Ok(None) => {
                    return Fault { why: "the other side closed it".to_owned(), tell: false };
                }
                Err(error) => return error.into(),
            };
            link.heard.store(link.millis(), Ordering::Relaxed);
            let taken = match header.kind {
                Kind::Chunk => self.chunk(link, reader, &header).await,
                _ => match reader.body(&header, &mut self.body).await {
                    Ok(()) => self.take(link, &header),
                    Err(error) => Err(error.into()),
                },
            };
            if let Err(fault) = taken {
                return fault;
            }
        }
    }

    /// The next bytes of a content.
    async fn chunk(
        &mut self,
        link: &Link,
        reader: &mut Reader<impl AsyncRead + Unpin>,
        header: &Header,
    ) -> Result<(), Fault> {
        let id = header.id;
        let fill = self.filling.get_mut(&id);
        let fill = fill.filter(|fill| fill.at == header.at && header.length > 0);
        let fill = fill.ok_or_else(|| {
            format!(
                "{} bytes from {} on of request {id}: others were expected",
                header.length, header.at
            )
        })?;
        let length = header.length as u64;
        fill.at += length;
        match &mut fill.what {
            Filling::Value(value) if length <= value.missing && value.has_elements() => {
                if let Some(filler) = value.filler() {
                    reader.fill(header, filler).await?;
                }
                value.filled(header.length);
            }
            Filling::Value(value) => {
                reader.body(header, &mut self.body).await?;
                value.put(&self.body)?;
            }
            Filling::Skipped { left, .. } => {
                reader.body(header, &mut self.body).await?;
                let more = || format!("request {id} gets more bytes than its head says");
                *left = left.checked_sub(length).ok_or_else(more)?;
            }
        }
        self.complete(link, id);
        Ok(())
    }

    /// Ends a request all of whose bytes have come.
    fn complete(&mut self, link: &Link, id: u64) {
        let missing = self.filling.get(&id).map(|fill| match &fill.what {
            Filling::Value(value) => value.missing,
            Filling::Skipped { left, .. } => *left,
        });
        if missing != Some(0) {
            return;
        }
        let Some(fill) = self.filling.remove(&id) else { return };
        let peer = &link.peer;
        let answer = match fill.what {
            Filling::Value(value) => value.finish().map_err(|why| {
                Refusal::new(Code::DATA_LOSS, format!("what {peer} sent is not a value: {why}"))
            }),
            Filling::Skipped { refusal, .. } => Err(refusal),
        };
        link.answered(id, answer);
    }

    /// Takes any other frame.
    fn take(&mut self, link: &Link, header: &Header) -> Result<(), Fault> {
        let Header { kind, id, at, flags, .. } = *header;
        match kind {
            Kind::Want => link.serve(id, Request::Tensor(decode(&self.body)?))?,
            Kind::WantBuffer => link.serve(id, Request::Buffer(decode(&self.body)?))?,
            Kind::Withdraw if flags & SETTLED != 0 => link.withdrawn(id, End::Settled),
            Kind::Withdraw => link.withdrawn(id, End::GivenUp),
            Kind::Head => self.head(link, id)?,
            Kind::Chunk => {}
            Kind::Refused => {
                let refusal = serving::refusal(&self.body);
                let refusal =
                    refusal.ok_or_else(|| format!("the refusal of request {id} is not one"))?;
                link.expect_open(id)?;
                self.filling.remove(&id);
                link.answered(id, Err(refusal));
            }
            Kind::Push => link.pushed(at.cast_signed(), &self.body)?,
            Kind::Credit => link.credited(id, at)?,
            Kind::Ping => link.sent(link.writer.frame(Kind::Pong, 0, 0, 0, &[])),
            Kind::Pong => {}
            Kind::Bye => {
                let why = String::from_utf8_lossy(&self.body).into_owned();
                let why = format!("the other side ended it: {}", cut_message(&why));
                return Err(Fault { why, tell: false });
            }
        }
        debug_assert!(flags & !(SETTLED | UNCHECKED) == 0);
        Ok(())
    }

    /// The head of an answer, perhaps with its content.
    fn head(&mut self, link: &Link, id: u64) -> Result<(), Fault> {
        link.expect_open(id)?;
        if self.filling.contains_key(&id) {
            return Err(format!("request {id} is answered twice").into());
        }
        let (at, what) = match Incoming::begin(&self.body) {
            Ok((mut value, rest)) => {
                value.put(rest)?;
                (rest.len() as u64, Filling::Value(Box::new(value)))
            }
            Err(HeadError::Wrong(why)) => return Err(why.into()),
            Err(HeadError::NoMemory { why, at, left }) => {
                let message = format!("no memory for a tensor of {}: {why}", link.peer);
                let refusal = Refusal::new(Code::RESOURCE_EXHAUSTED, message);
                (at, Filling::Skipped { left, refusal })
            }
        };
        self.filling.insert(id, Fill { at, what });
        self.complete(link, id);
        Ok(())
    }
}

fn decode<M: Message + Default>(body: &[u8]) -> Result<M, String> {
    M::decode(body).map_err(|error| format!("a request is not its message: {error}"))
}

impl Link {
    fn expect_open(&self, id: u64) -> Result<(), String> {
        let is_open = self.asking.lock().open.contains_key(&id);
        is_open.then_some(()).ok_or_else(|| format!("an answer to request {id}, which is not open"))
    }

    /// Ends a request of this side.
    fn answered(&self, id: u64, answer: Result<Answer, Refusal>) {
        let mut asking = self.asking.lock();
        let asked = asking.take(id);
        asking.open.remove(&id);
        drop(asking);
        if let Some(asked) = asked {
            (asked.done)(answer);
        }
    }

    /// Takes a value that the other side pushed.
    fn pushed(&self, step: i64, body: &[u8]) -> Result<(), String> {
        let bytes = OVERHEAD + body.len();
        let mut pushes = self.pushes.lock();
        pushes.outstanding += bytes;
        pushes.came += 1;
        if pushes.outstanding > EAGER {
            let found = pushes.outstanding;
            return Err(format!("{found} bytes were pushed, with credit for {EAGER}"));
        }
        drop(pushes);
        let sender = match &self.address {
            Some(address) => Sender::At(Arc::clone(address)),
            None => Sender::Named,
        };
        let is_named = sender == Sender::Named;
        let hold = Hold { link: self.own.clone(), way: self.way, sender, bytes };
        let cut = || "a push is cut off".to_owned();
        let (length, rest) = body.split_first_chunk::<4>().ok_or_else(cut)?;
        let length = u32::from_le_bytes(*length) as usize;
        let (key, rest) = rest.split_at_checked(length).ok_or_else(cut)?;
        let key =
            std::str::from_utf8(key).map_err(|_| "the key of a push is not text".to_owned())?;
        let sender = task_of(key.split(';').next().unwrap_or_default());
        // Where this side made the link, the step compares the address with that of the sender.
        if is_named && sender != &*self.peer {
            let sender = tenon_framework::text::cut(sender);
            return Err(format!("it pushed a tensor of '{sender}'"));
        }
        let answer = whole(rest)?;
        let key = (step, key.to_owned());
        let mut asking = self.asking.lock();
        let id = asking.by_key.get(&key).copied();
        let asked = id.and_then(|id| asking.take(id));
        drop(asking);
        match (id, asked) {
            (Some(id), Some(asked)) => {
                (asked.done)(Ok(answer));
                self.sent(self.writer.frame(Kind::Withdraw, SETTLED, id, 0, &[]));
            }
            _ => {
                if let Some(serve) = self.serve.upgrade() {
                    serve.pushed(key.0, key.1, answer, hold);
                }
            }
        }
        Ok(())
    }

    /// The other side has taken pushes.
    fn credited(&self, bytes: u64, came: u64) -> Result<(), String> {
        let mut pushes = self.pushes.lock();
        let credit = usize::try_from(bytes).ok().and_then(|it| pushes.credit.checked_add(it));
        let came = usize::try_from(came).ok().filter(|came| *came <= pushes.unsure.len());
        let (Some(credit), Some(came)) = (credit.filter(|it| *it <= EAGER), came) else {
            return Err(format!("credit for {bytes} bytes, more than were pushed"));
        };
        pushes.credit = credit;
        pushes.unsure.drain(..came);
        Ok(())
    }
}

/// A value that is complete in these bytes.
fn whole(bytes: &[u8]) -> Result<Answer, String> {
    let (mut value, rest) = Incoming::begin(bytes).map_err(|error| match error {
        HeadError::Wrong(why) | HeadError::NoMemory { why, .. } => why,
    })?;
    value.put(rest)?;
    if value.missing > 0 {
        return Err(format!("{} bytes of a push are missing", value.missing));
    }
    value.finish()
}
