//! The links of a server, by the addresses of the other tasks.
//!
//! A link is made by the task that first needs a tensor of the other, and serves both directions. Whether an address has a
//! data plane is asked once, and again some time after the answer was no.

mod handshake;
mod tickets;

use super::{
    Serve,
    greet::{GreetRequest, GreetResponse, VERSION},
    lane::Lane,
    link::Link,
    shm::{self, Door},
};
use crate::{
    dial::Dialer,
    refusal::Refusal,
    way::{DataPlane, Way},
};
use std::{
    collections::{BTreeMap, HashMap},
    future::Future,
    io,
    sync::{Arc, OnceLock, Weak},
    time::{Duration, Instant},
};
use tenon_framework::{
    Code,
    sync::{Mutex, rank},
    text::{cut, cut_message},
};
use tickets::Tickets;
use tokio::{net::UnixListener, runtime::Handle, sync::watch};

pub(crate) use handshake::is_hello;

/// What follows the name of a task in a ticket for a session with a cluster of its own.
const GUEST: &str = " of another cluster";
/// How long an address without a data plane is not asked again.
const AGAIN: Duration = Duration::from_secs(30);
/// How long one that did not answer is not asked again.
const SOON: Duration = Duration::from_secs(1);
/// How long the steps of a handshake may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is known of an address.
enum Place {
    Linked(Arc<Link>),
    /// There is none before this time.
    Without(Missing, Instant),
}

/// Why there is no link.
#[derive(Clone)]
enum Missing {
    /// The other task has no data plane, or no way that this one has.
    No(String),
    /// It did not answer.
    Unknown(Refusal),
}

#[derive(Default)]
struct Places {
    known: HashMap<String, Place>,
    /// Held by the thread that asks an address, so that others wait for the answer.
    turns: HashMap<String, Arc<tokio::sync::Mutex<()>>>,
    /// Links that other tasks have made, whatever their addresses.
    others: Vec<Weak<Link>>,
    stopped: bool,
}

/// The links of a server.
pub(crate) struct Hub {
    wish: DataPlane,
    threads: Handle,
    task: Arc<str>,
    /// The addresses of the server's own cluster.
    cluster: BTreeMap<String, String>,
    tickets: Tickets,
    places: Mutex<Places>,
    serve: OnceLock<Weak<dyn Serve>>,
    boot: String,
    door: Option<Door>,
}

impl Hub {
    /// # Errors
    /// Shared memory is required and cannot be had.
    pub fn new(
        threads: &Handle,
        wish: DataPlane,
        task: &str,
        cluster: BTreeMap<String, String>,
    ) -> io::Result<(Arc<Hub>, Option<UnixListener>)> {
        let wants = cluster.len() > 1 && wish.allows(Way::Shm);
        let opened = wants.then(|| Door::open(threads, &crate::handles::new_handle())).transpose();
        let (door, listener) = match opened {
            Ok(opened) => opened.unzip(),
            Err(error) if wish == DataPlane::Shm => return Err(error),
            Err(error) => {
                tracing::warn!("no shared memory for tensors of other tasks: {error}");
                (None, None)
            }
        };
        let hub = Hub {
            wish,
            threads: threads.clone(),
            task: task.into(),
            cluster,
            tickets: Tickets::default(),
            places: Mutex::ranked(rank::LINK, Places::default()),
            serve: OnceLock::new(),
            boot: shm::boot(),
            door,
        };
        Ok((Arc::new(hub), listener))
    }

    /// Sets what serves the other tasks.
    pub fn serve(&self, serve: Weak<dyn Serve>) {
        let _ = self.serve.set(serve);
    }

    /// The link with an address, if there is one.
    pub fn link(&self, address: &str) -> Option<Arc<Link>> {
        match self.places.lock().known.get(address) {
            Some(Place::Linked(link)) if link.is_open() => Some(Arc::clone(link)),
            _ => None,
        }
    }

    /// What is known of an address: its link, or that it has none.
    fn known(&self, address: &str) -> Option<Result<Arc<Link>, Missing>> {
        let places = self.places.lock();
        if places.stopped {
            return Some(Err(stops()));
        }
        match places.known.get(address)? {
            Place::Linked(link) if link.is_open() => Some(Ok(Arc::clone(link))),
            Place::Linked(_) => None,
            Place::Without(why, until) => (Instant::now() < *until).then(|| Err(why.clone())),
        }
    }

    /// The link with a task, made now if need be with what `greet` answers; `None` if tensors go over gRPC.
    ///
    /// # Errors
    /// The options require a way that the task does not have.
    pub async fn reach(
        &self,
        (task, address): (&str, &str),
        dialer: &Dialer,
        greet: impl AsyncFnOnce(GreetRequest) -> Result<GreetResponse, Refusal>,
    ) -> Result<Option<Arc<Link>>, Refusal> {
        if self.wish == DataPlane::Grpc {
            return Ok(None);
        }
        let turn = {
            let mut places = self.places.lock();
            Arc::clone(places.turns.entry(address.to_owned()).or_default())
        };
        let _turn = turn.lock().await;
        let made = match self.known(address) {
            Some(known) => known,
            None => self.make((task, address), dialer, greet).await,
        };
        match made {
            Ok(link) => Ok(Some(link)),
            Err(_) if self.wish == DataPlane::Auto => Ok(None),
            Err(Missing::Unknown(refusal)) => Err(refusal),
            Err(Missing::No(why)) => {
                let wish = self.wish.name();
                let message = format!(
                    "there is no way to {task} by --data-plane {wish}: {why}; use --data-plane auto"
                );
                Err(Refusal::new(Code::FAILED_PRECONDITION, message))
            }
        }
    }

    async fn make(
        &self,
        (task, address): (&str, &str),
        dialer: &Dialer,
        greet: impl AsyncFnOnce(GreetRequest) -> Result<GreetResponse, Refusal>,
    ) -> Result<Arc<Link>, Missing> {
        let boot = if self.wish.allows(Way::Shm) { self.boot.clone() } else { String::new() };
        let request =
            GreetRequest { version: VERSION, task: self.task.to_string(), boot, guest: false };
        let greeted = tokio::time::timeout(PATIENCE, greet(request)).await;
        let answer = match greeted {
            Ok(Ok(answer)) => answer,
            Ok(Err(refusal)) if refusal.code == Code::UNIMPLEMENTED => {
                let why = "it is a task of TensorFlow, or of a version without a data plane";
                return Err(self.without(address, Missing::No(why.to_owned())));
            }
            Ok(Err(refusal)) => return Err(self.without(address, Missing::Unknown(refusal))),
            Err(_) => {
                let why = format!("it did not answer within {PATIENCE:?}");
                let refusal = Refusal::unreachable(task, &why);
                return Err(self.without(address, Missing::Unknown(refusal)));
            }
        };
        if !answer.refused.is_empty() {
            let why = cut_message(&answer.refused).to_string();
            return Err(self.without(address, Missing::No(why)));
        }
        match self.dial(address, dialer, &answer).await {
            Ok(lane) => {
                self.begin(self.name_at(address, task), Some(address), true, lane).ok_or_else(stops)
            }
            Err(why) => {
                tracing::warn!("no link with {task}: {why}");
                Err(self.without(address, Missing::No(why)))
            }
        }
    }

    /// The name of the task at an address in the server's own cluster, whose tensors may be pushed; else that of a session.
    fn name_at<'n>(&'n self, address: &str, task: &'n str) -> &'n str {
        let named = self.cluster.iter().find(|(_, other)| *other == address);
        named.map_or(task, |(name, _)| name.as_str())
    }

    /// Remembers that an address has no link.
    fn without(&self, address: &str, why: Missing) -> Missing {
        let pause = match &why {
            Missing::No(_) => AGAIN,
            Missing::Unknown(_) => SOON,
        };
        let place = Place::Without(why.clone(), Instant::now() + pause);
        let mut places = self.places.lock();
        // The other task may have made a link meanwhile.
        let is_linked =
            matches!(places.known.get(address), Some(Place::Linked(it)) if it.is_open());
        let former = (!is_linked).then(|| places.known.insert(address.to_owned(), place));
        drop(places);
        drop(former);
        why
    }

    /// Begins a link with a task, which has this address, and to which this side made it or not; `None` if the server stops.
    fn begin(
        &self,
        task: &str,
        address: Option<&str>,
        is_made_here: bool,
        lane: Lane,
    ) -> Option<Arc<Link>> {
        let serve = self.serve.get().cloned()?;
        let made_to = address.filter(|_| is_made_here);
        let link = Link::begin_with(&self.threads, (task, made_to), lane, serve);
        tracing::info!("tensors from and to {task} go by {}", link.way().name());
        let mut places = self.places.lock();
        if places.stopped {
            drop(places);
            link.close("the server stops");
            return None;
        }
        let former = address.and_then(|address| {
            let is_open =
                matches!(places.known.get(address), Some(Place::Linked(it)) if it.is_open());
            let place = Place::Linked(Arc::clone(&link));
            (!is_open).then(|| places.known.insert(address.to_owned(), place)).flatten()
        });
        places.others.retain(|link| link.strong_count() > 0);
        places.others.push(Arc::downgrade(&link));
        drop(places);
        drop(former);
        Some(link)
    }

    /// Answers a task that asks for a link.
    pub fn greeted(&self, request: &GreetRequest) -> GreetResponse {
        let mut answer =
            GreetResponse { version: VERSION, task: self.task.to_string(), ..Default::default() };
        if request.version != VERSION {
            let (task, found) = (&self.task, request.version);
            answer.refused = format!(
                "{task} has version {VERSION} of the data plane, and the other task version {found}"
            );
            return answer;
        }
        if !request.task.starts_with("/job:") || request.task.len() > 256 {
            answer.refused = format!("'{}' is not the name of a task", cut(&request.task));
            return answer;
        }
        // Its link is not the one with the address that the name has in this cluster.
        let guest = request.guest.then(|| format!("{}{GUEST}", request.task));
        let name = guest.as_ref().unwrap_or(&request.task);
        if self.wish.allows(Way::Tcp) {
            answer.tcp = self.tickets.issue(name, Way::Tcp);
        }
        let is_here = !self.boot.is_empty() && request.boot == self.boot;
        if let Some(door) = self.door.as_ref().filter(|_| is_here) {
            answer.shm = self.tickets.issue(name, Way::Shm);
            answer.door = door.name().to_owned();
        }
        if answer.tcp.is_empty() && answer.shm.is_empty() {
            let (task, wish) = (&self.task, self.wish.name());
            answer.refused = format!("{task} was started with --data-plane {wish}");
        }
        answer
    }

    /// Ends all links.
    pub fn stop(&self) {
        let mut places = self.places.lock();
        places.stopped = true;
        let known = std::mem::take(&mut places.known);
        let others = std::mem::take(&mut places.others);
        drop(places);
        others.iter().filter_map(Weak::upgrade).for_each(|link| link.close("the server stops"));
        drop(known);
    }
}

fn stops() -> Missing {
    Missing::Unknown(Refusal::new(Code::UNAVAILABLE, "the server stops"))
}

/// Runs a part of a handshake within its time.
async fn in_time<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| {
        Err(io::Error::new(io::ErrorKind::TimedOut, format!("it took more than {PATIENCE:?}")))
    })
}

/// Serves the door of shared memory until the server stops.
pub(crate) async fn admit(
    hub: Arc<Hub>,
    listener: UnixListener,
    mut stopped: watch::Receiver<bool>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        match accepted {
            Ok((stream, _)) => {
                let hub = Arc::clone(&hub);
                tokio::spawn(async move { hub.welcome_here(stream).await });
            }
            Err(error) => {
                tracing::warn!("a connection to shared memory cannot be accepted: {error}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}
