//! What every request passes first: who sends it, whether that one may call the service, and how much it may use.

use crate::{
    audit::{Audit, Event},
    client::Client,
    limits::Usage,
    methods::WORKER,
    plane::GREET,
    refusal::Refusal,
    tls::Certified,
    tokens::{Role, Tokens},
};
use http::header::AUTHORIZATION;
use http_body::Frame;
use prost::bytes::{Buf, Bytes};
use serde_json::Value;
use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};
use tenon_framework::Code;
use tonic::{Status, body::Body};

/// The bytes before a message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// What every request passes first.
pub(crate) struct Gate {
    /// Tokens, one of which each request has to bring.
    pub tokens: Option<Arc<Tokens>>,
    pub usage: Usage,
    pub audit: Option<Audit>,
    pub served: Served,
}

/// Requests that were answered.
#[derive(Default)]
pub(crate) struct Served {
    /// Steps of clients.
    pub steps: AtomicU64,
    /// Parts of steps, for masters of other tasks.
    pub parts: AtomicU64,
}

/// Who sends a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Who {
    /// The name by its token, its certificate, or its address.
    pub name: String,
    /// The address.
    pub from: String,
}

/// The role that a method requires.
fn required(path: &str) -> Role {
    if path.starts_with(WORKER) || path == GREET { Role::Worker } else { Role::Client }
}

impl Gate {
    /// Who sends the request, if that one may.
    pub fn admit<B>(&self, request: &http::Request<B>) -> Result<Arc<Who>, Status> {
        let path = request.uri().path();
        let caller = request.extensions().get::<Client>().and_then(Client::caller);
        let address = caller.as_ref().and_then(|caller| caller.address);
        let from = address.map_or_else(|| "-".to_owned(), |address| address.to_string());
        let certified = caller.as_ref().and_then(|caller| caller.certified.as_ref());
        let name = match certified {
            Some(certified) => certified.name.clone(),
            None => address.map_or_else(|| "-".to_owned(), |address| address.ip().to_string()),
        };
        let mut who = Who { name, from };
        let checked = self.check(request, certified, required(path), &mut who);
        checked.inspect_err(|status| {
            let what = path.rsplit('/').next().unwrap_or_default();
            let code = Code(status.code() as i32);
            self.record(&who, what, code, status.message(), &[]);
        })?;
        Ok(Arc::new(who))
    }

    fn check<B>(
        &self,
        request: &http::Request<B>,
        certified: Option<&Certified>,
        role: Role,
        who: &mut Who,
    ) -> Result<(), Status> {
        if let Some(certified) = certified
            && !certified.roles.has(role)
        {
            return Err(denied("certificate", &certified.name, role));
        }
        let Some(tokens) = &self.tokens else { return Ok(()) };
        let header = request.headers().get(AUTHORIZATION).ok_or_else(|| {
            Status::unauthenticated(
                "the request has no token: expected metadata `authorization: Bearer TOKEN`; TensorFlow's own client sends one \
                 through `tenon proxy`",
            )
        })?;
        let holder = tokens.holder(header).ok_or_else(|| {
            Status::unauthenticated(
                "the server does not know the token: is it still in the server's --token-file?",
            )
        })?;
        let may = holder.roles.has(role);
        who.name = holder.name;
        if may { Ok(()) } else { Err(denied("token", &who.name, role)) }
    }

    /// Writes to the audit log, if there is one.
    pub fn record(
        &self,
        who: &Who,
        what: &str,
        code: Code,
        why: &str,
        more: &[(&'static str, Value)],
    ) {
        if let Some(audit) = &self.audit {
            audit.write(&Event { who: &who.name, from: &who.from, what, code, why, more });
        }
    }

    /// Looks now whether the tokens have changed.
    pub fn reload(&self) {
        if let Some(tokens) = &self.tokens {
            tokens.reload();
        }
    }
}

fn denied(what: &str, name: &str, role: Role) -> Status {
    let service = match role {
        Role::Client => "MasterService",
        Role::Worker => "WorkerService",
    };
    Status::permission_denied(format!(
        "the {what} of {name} does not have role {}, which {service} requires",
        role.name()
    ))
}

/// The body of a request, whose bytes count for its client until it is dropped: those that its messages announce, before they
/// are received.
pub(crate) struct Counted {
    body: Body,
    gate: Arc<Gate>,
    who: Arc<Who>,
    /// The prefix of the message, as far as it has come.
    prefix: Vec<u8>,
    taken: Arc<Taken>,
}

/// Bytes that a client has back when this is dropped.
pub(crate) struct Taken {
    gate: Arc<Gate>,
    who: Arc<Who>,
    bytes: AtomicUsize,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.gate.usage.give_bytes(&self.who.name, *self.bytes.get_mut());
    }
}

impl Counted {
    /// The body, and what holds its bytes until the request is answered.
    pub fn new(body: Body, gate: &Arc<Gate>, who: &Arc<Who>) -> (Counted, Arc<Taken>) {
        let (gate, who) = (Arc::clone(gate), Arc::clone(who));
        let taken =
            Arc::new(Taken { gate: Arc::clone(&gate), who: Arc::clone(&who), bytes: 0.into() });
        (Counted { body, gate, who, prefix: Vec::new(), taken: Arc::clone(&taken) }, taken)
    }

    /// Counts the message once its prefix is there.
    fn note(&mut self, data: &Bytes) -> Result<(), Refusal> {
        let lacking = PREFIX.saturating_sub(self.prefix.len());
        if lacking == 0 {
            return Ok(());
        }
        self.prefix.extend_from_slice(&data[..lacking.min(data.len())]);
        let Some(length) = self.prefix.get(1..PREFIX) else { return Ok(()) };
        let bytes = usize::try_from((&mut &*length).get_u32()).unwrap_or(usize::MAX);
        let taken = self.gate.usage.take_bytes(&self.who.name, bytes);
        match &taken {
            Ok(()) => self.taken.bytes.store(bytes, Ordering::Relaxed),
            Err(refusal) => {
                self.gate.record(&self.who, "request", refusal.code, &refusal.message, &[]);
            }
        }
        taken
    }
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
            && let Err(refusal) = self.note(data)
        {
            return Poll::Ready(Some(Err(refusal.into())));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}
