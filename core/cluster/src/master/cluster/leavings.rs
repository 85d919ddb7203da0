//! What workers still have to drop: steps and sessions that are over.
//!
//! A worker that does not acknowledge it is asked again while this process lives, since its connection to this process keeps
//! the step and the session in use there. One that was started anew has nothing left.

use super::{
    CONTROL,
    links::{Link, together},
};
use crate::{clock, methods, refusal::Refusal};
use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};
use tenon_framework::{
    Code,
    sync::{Mutex, rank},
};
use tenon_proto::{CleanupGraphRequest, DeleteWorkerSessionRequest};
use tenon_runtime::CancelToken;

/// How long a worker may take to clean up.
const CLEAN_UP: Duration = Duration::from_secs(10);
/// How long it is asked again. A worker that is away for longer collects what is left by itself.
const GIVE_UP: Duration = Duration::from_secs(600);
/// How many requests wait to be sent again, at most.
const MOST: usize = 10_000;
/// How many of them are sent at a time.
const AT_ONCE: usize = 64;

/// What a worker is to drop.
#[derive(Clone)]
enum Left {
    Step(i64),
    Session(String),
}

struct Waiting {
    link: Link,
    left: Left,
    since: Instant,
}

/// What workers have not acknowledged.
pub(crate) struct Leavings(Mutex<VecDeque<Waiting>>);

impl Leavings {
    pub fn new() -> Arc<Leavings> {
        Arc::new(Leavings(Mutex::ranked(rank::LEAF, VecDeque::new())))
    }

    /// Makes workers drop a step, without waiting for them.
    pub(super) fn clean_up<'l>(self: &Arc<Self>, step: i64, links: impl Iterator<Item = &'l Link>) {
        let since = clock::now();
        for link in links {
            self.send(Waiting { link: link.clone(), left: Left::Step(step), since });
        }
    }

    /// Closes a session at workers, and waits for them for a time.
    pub(super) fn close<'l>(
        self: &Arc<Self>,
        session: &str,
        links: impl Iterator<Item = &'l Link>,
        limit: Duration,
    ) {
        let links: Vec<Link> = links.cloned().collect();
        let request = DeleteWorkerSessionRequest { session_handle: session.to_owned() };
        let calls = links.iter().map(|link| (link.clone(), request.clone())).collect();
        let answers = together::<methods::DeleteWorkerSession>(calls, limit);
        for (link, (task, answer)) in links.into_iter().zip(answers) {
            if let Err(refusal) = answer {
                tracing::info!("{task} did not close a session: {}", refusal.message);
                let left = Left::Session(session.to_owned());
                self.keep(Waiting { link, left, since: clock::now() }, &refusal);
            }
        }
    }

    /// Sends again what was not acknowledged.
    pub fn send_again(self: &Arc<Self>) {
        let now = clock::now();
        let mut again = Vec::new();
        let mut waiting = self.0.lock();
        waiting.retain(|it| now.saturating_duration_since(it.since) < GIVE_UP);
        let count = waiting.len().min(AT_ONCE);
        again.extend(waiting.drain(..count));
        drop(waiting);
        again.into_iter().for_each(|it| self.send(it));
    }

    fn send(self: &Arc<Self>, waiting: Waiting) {
        let (all, left, link) = (Arc::clone(self), waiting.left.clone(), waiting.link.clone());
        let done = move |refused: Option<Refusal>| {
            if let Some(refusal) = refused {
                all.keep(waiting, &refusal);
            }
        };
        match left {
            Left::Step(step_id) => {
                let request = CleanupGraphRequest { step_id };
                // It takes no time here, and is not refused.
                let here = link.here::<methods::CleanupGraph>(request, &CancelToken::new());
                if let Err(request) = here {
                    let done = |answer: Result<_, _>| done(answer.err());
                    link.start::<methods::CleanupGraph>(request, Some(CLEAN_UP), done);
                }
            }
            Left::Session(session_handle) => {
                let request = DeleteWorkerSessionRequest { session_handle };
                let done = |answer: Result<_, _>| done(answer.err());
                link.start::<methods::DeleteWorkerSession>(request, Some(CONTROL), done);
            }
        }
    }

    /// Keeps what was not acknowledged, unless the worker itself refused it.
    fn keep(&self, waiting: Waiting, refusal: &Refusal) {
        let is_away = [Code::UNAVAILABLE, Code::DEADLINE_EXCEEDED, Code::CANCELLED];
        if !waiting.link.is_other() || !is_away.contains(&refusal.code) {
            return;
        }
        let mut all = self.0.lock();
        if all.len() < MOST {
            all.push_back(waiting);
        }
    }
}
