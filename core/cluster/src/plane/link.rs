//! A link: requests and values between two tasks, in both directions.
//!
//! # States
//! A request of this side is *open* from [`Link::ask`] on. It ends by a value, a refusal, or the end of the link. One that is
//! withdrawn stays open without a receiver until the other side has ended it, so that its number has one meaning.
//!
//! A request of the other side is *served* until its value is there, and then a value on its way. An ended link stays ended:
//! the [hub](super::Hub) makes another one.
//!
//! # Pushes
//! A small value is sent before it is asked for, while the other side has given credit: [`EAGER`] bytes at first, and again
//! what was taken there. If it crosses its request, the request is withdrawn as settled. When the link ends, the steps of
//! pushes that may be lost end with it.

mod incoming;
mod serving;
#[cfg(test)]
mod tests;

use super::{
    Serve,
    frame::{Kind, SETTLED, SMALL},
    lane::Lane,
    value::Outgoing,
    writer::Writer,
};
use crate::{
    refusal::Refusal,
    transport::{Done, End, Pusher, Sender, Withdraw},
    way::Way,
    wire::Answer,
};
use prost::Message;
use serving::Serving;
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    io,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tenon_framework::{
    Code,
    sync::{Mutex, rank},
};
use tenon_proto::{RecvBufRequest, RecvTensorRequest};
use tokio::{
    runtime::Handle,
    sync::watch,
    time::{Instant, MissedTickBehavior, interval},
};

/// Bytes of pushes that wait to be taken, at most.
pub(super) const EAGER: usize = 4 << 20;
/// What a push counts besides its bytes.
const OVERHEAD: usize = 256;
/// How often a link that is silent is asked whether the other side is there.
const ASK: Duration = Duration::from_secs(5);
/// How long the other side may be silent, while it is asked whether it is there.
const SILENT: Duration = Duration::from_secs(20);

/// A request for a tensor.
pub(crate) enum Request {
    /// Of a step.
    Tensor(RecvTensorRequest),
    /// Of a collective operation.
    Buffer(RecvBufRequest),
}

struct Asked {
    done: Done,
    /// The step and the key, by which a push finds the request.
    key: Option<(i64, String)>,
}

#[derive(Default)]
struct Asking {
    /// Requests by number; `None` for one that was withdrawn.
    open: BTreeMap<u64, Option<Asked>>,
    by_key: HashMap<(i64, String), u64>,
    next: u64,
    /// Why the link ended.
    ended: Option<String>,
}

impl Asking {
    /// Takes the receiver of a request, which stays open.
    fn take(&mut self, id: u64) -> Option<Asked> {
        let asked = self.open.get_mut(&id)?.take()?;
        if let Some(key) = &asked.key {
            self.by_key.remove(key);
        }
        Some(asked)
    }
}

/// Pushes in both directions.
struct Pushes {
    /// Bytes that this side may still push.
    credit: usize,
    /// The steps of pushes of which the other side has not said that they came.
    unsure: VecDeque<i64>,
    /// Bytes that the other side has pushed without having them back.
    outstanding: usize,
    /// Bytes that it gets back with the next credit.
    taken: usize,
    /// Pushes that came since the last credit.
    came: u64,
}

/// A link to another task.
pub(crate) struct Link {
    /// The name of the other task.
    peer: Arc<str>,
    /// Its address, if this side made the link.
    address: Option<Arc<str>>,
    way: Way,
    checked: bool,
    writer: Writer,
    asking: Mutex<Asking>,
    serving: Mutex<Serving>,
    pushes: Mutex<Pushes>,
    serve: Weak<dyn Serve>,
    begin: Instant,
    /// When something came, in milliseconds since the beginning.
    heard: AtomicU64,
    end: watch::Sender<bool>,
    own: Weak<Link>,
}

/// A pushed value that counts against the credit of its sender until this is dropped, which may send a frame: under no lock of
/// a higher rank than that of a rendezvous.
pub(crate) struct Hold {
    link: Weak<Link>,
    way: Way,
    sender: Sender,
    bytes: usize,
}

impl Hold {
    /// One that counts against nothing.
    #[cfg(test)]
    pub fn free() -> Hold {
        Hold { link: Weak::new(), way: Way::Shm, sender: Sender::Named, bytes: 0 }
    }

    /// What carried the value.
    pub fn way(&self) -> Way {
        self.way
    }

    /// Who pushed it.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(link) = self.link.upgrade() {
            link.give_back(self.bytes);
        }
    }
}

impl Pusher for Link {
    fn push_value(&self, step: i64, key: &str, answer: &Answer) -> bool {
        self.push(step, key, answer)
    }
}

impl Link {
    /// Begins a link that the other task made; its frames are read and written on these threads.
    #[cfg(any(test, feature = "fuzzing"))]
    pub fn begin(threads: &Handle, peer: &str, lane: Lane, serve: Weak<dyn Serve>) -> Arc<Link> {
        Link::begin_with(threads, (peer, None), lane, serve)
    }

    /// Begins a link with a task, at this address if this side made it.
    pub fn begin_with(
        threads: &Handle,
        (peer, address): (&str, Option<&str>),
        lane: Lane,
        serve: Weak<dyn Serve>,
    ) -> Arc<Link> {
        let (way, checked) = (lane.way, lane.checked);
        let (writer, read) = Writer::new(lane);
        let pushes =
            Pushes { credit: EAGER, unsure: VecDeque::new(), outstanding: 0, taken: 0, came: 0 };
        let link = Arc::new_cyclic(|own| Link {
            peer: peer.into(),
            address: address.map(Into::into),
            way,
            checked,
            writer,
            asking: Mutex::ranked(rank::LINK, Asking::default()),
            serving: Mutex::ranked(rank::LINK, Serving::default()),
            pushes: Mutex::ranked(rank::LINK, pushes),
            serve,
            begin: Instant::now(),
            heard: AtomicU64::new(0),
            end: watch::Sender::new(false),
            own: own.clone(),
        });
        threads.spawn(incoming::read(Arc::clone(&link), read));
        threads.spawn(write(Arc::clone(&link)));
        link
    }

    pub fn way(&self) -> Way {
        self.way
    }

    /// Whether it can be used.
    pub fn is_open(&self) -> bool {
        !*self.end.borrow()
    }

    /// Asks for a tensor. `done` is called once, unless the request is withdrawn.
    pub fn ask(&self, request: &Request, done: Done) -> Withdraw {
        let (kind, body, key) = match request {
            Request::Tensor(it) => {
                (Kind::Want, it.encode_to_vec(), Some((it.step_id, it.rendezvous_key.clone())))
            }
            Request::Buffer(it) => (Kind::WantBuffer, it.encode_to_vec(), None),
        };
        if body.len() > super::frame::MOST_BODY {
            let (most, found) = (super::frame::MOST_BODY, body.len());
            done(Err(Refusal::invalid(format!(
                "a request for a tensor has at most {most} bytes, found {found}: its key is too long"
            ))));
            return Box::new(|_| ());
        }
        let mut asking = self.asking.lock();
        if let Some(why) = asking.ended.clone() {
            drop(asking);
            done(Err(self.broken(&why)));
            return Box::new(|_| ());
        }
        asking.next += 1;
        let id = asking.next;
        if let Some(key) = &key {
            asking.by_key.insert(key.clone(), id);
        }
        asking.open.insert(id, Some(Asked { done, key }));
        drop(asking);
        self.sent(self.writer.frame(kind, 0, id, 0, &[&body]));
        let own = self.own.clone();
        Box::new(move |end| {
            if let Some(link) = own.upgrade() {
                link.withdraw(id, end);
            }
        })
    }

    fn withdraw(&self, id: u64, end: End) {
        let asked = self.asking.lock().take(id);
        if asked.is_some() {
            let flags = if end == End::Settled { SETTLED } else { 0 };
            self.sent(self.writer.frame(Kind::Withdraw, flags, id, 0, &[]));
        }
    }

    /// Sends a value that was not asked for; whether it went, so that it need not be kept.
    pub fn push(&self, step: i64, key: &str, answer: &Answer) -> bool {
        let bytes = answer.tensor.as_ref().map_or(0, |tensor| tensor.byte_len());
        if bytes > SMALL || key.len() > SMALL / 4 {
            return false;
        }
        let Ok(Outgoing { head, content }) = Outgoing::of(answer) else { return false };
        if content.len() > SMALL {
            return false;
        }
        let length = (key.len() as u32).to_le_bytes();
        let body: [&[u8]; 4] = [&length, key.as_bytes(), &head, &content];
        let cost = OVERHEAD + body.iter().map(|part| part.len()).sum::<usize>();
        let mut pushes = self.pushes.lock();
        let Some(credit) = pushes.credit.checked_sub(cost) else { return false };
        if !self.is_open() {
            return false;
        }
        pushes.credit = credit;
        pushes.unsure.push_back(step);
        // The order of the steps is that of the frames.
        let written = self.writer.frame(Kind::Push, 0, 0, step.cast_unsigned(), &body);
        drop(pushes);
        self.sent(written);
        true
    }

    /// Gives credit for a push that was taken.
    fn give_back(&self, bytes: usize) {
        let mut pushes = self.pushes.lock();
        pushes.taken += bytes;
        if pushes.taken < EAGER / 4 {
            return;
        }
        let (taken, came) = (std::mem::take(&mut pushes.taken), std::mem::take(&mut pushes.came));
        pushes.outstanding = pushes.outstanding.saturating_sub(taken);
        drop(pushes);
        self.sent(self.writer.frame(Kind::Credit, 0, taken as u64, came, &[]));
    }

    /// Ends the link if a frame could not be sent.
    fn sent(&self, result: io::Result<()>) {
        if let Err(error) = result {
            self.close(&error.to_string());
        }
    }

    /// What a request ends with when the link does.
    fn broken(&self, why: &str) -> Refusal {
        let (peer, way) = (&self.peer, self.way.name());
        let message = format!("the {way} link with {peer} ended: {why}");
        Refusal::new(Code::UNAVAILABLE, message)
    }

    /// Ends the link: all that waits for it fails.
    pub fn close(&self, why: &str) {
        let mut asking = self.asking.lock();
        if asking.ended.is_some() {
            return;
        }
        asking.ended = Some(why.to_owned());
        let open = std::mem::take(&mut asking.open);
        asking.by_key.clear();
        drop(asking);
        self.end.send_replace(true);
        self.writer.end();
        let served = self.serving.lock().end();
        let mut unsure = std::mem::take(&mut self.pushes.lock().unsure);
        let refusal = self.broken(why);
        tracing::debug!("{}", refusal.message);
        for asked in open.into_values().flatten() {
            (asked.done)(Err(refusal.clone()));
        }
        served.into_iter().for_each(|withdraw| withdraw(End::GivenUp));
        unsure.make_contiguous().sort_unstable();
        let mut steps = Vec::from(unsure);
        steps.dedup();
        if let Some(serve) = self.serve.upgrade() {
            serve.lost(&steps, &refusal);
        }
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Asks a silent side whether it is there, or ends the link if it was silent for too long: what was pushed may be lost,
    /// and what is sent from now on goes by another one.
    fn look(&self) {
        if self.writer.has_moved() {
            self.heard.store(self.millis(), Ordering::Relaxed);
        }
        let silent = self.millis().saturating_sub(self.heard.load(Ordering::Relaxed));
        let silent = Duration::from_millis(silent);
        if silent > SILENT {
            self.close(&format!("the other side was silent for {} s", silent.as_secs()));
        } else if silent > ASK / 2 {
            self.sent(self.writer.frame(Kind::Ping, 0, 0, 0, &[]));
        }
    }
}

/// Writes what senders have left, until the link ends.
async fn write(link: Arc<Link>) {
    let mut end = link.end.subscribe();
    let mut ask = interval(ASK);
    ask.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let written = tokio::select! {
            written = link.writer.turn() => written,
            _ = ask.tick() => {
                link.look();
                Ok(())
            }
            _ = end.wait_for(|end| *end) => return,
        };
        link.sent(written);
    }
}
