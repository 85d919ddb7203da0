//! What this side sends because the other side has asked for it.

use super::{Link, Request};
use crate::{
    plane::{
        frame::{Kind, SMALL},
        value::Outgoing,
    },
    refusal::{HEADER_BYTES, Mark, Refusal},
    transport::{Done, End, Pusher, Withdraw},
    wire::Answer,
};
use std::{collections::BTreeMap, sync::Arc};
use tenon_framework::Code;

/// Requests of the other side that wait for their values, at most.
pub(super) const MOST: usize = 1 << 16;

/// The requests of the other side that wait for their values.
#[derive(Default)]
pub(super) struct Serving {
    /// `None` until the request is on its way.
    open: BTreeMap<u64, Option<Withdraw>>,
    ended: bool,
}

impl Serving {
    /// Takes all requests, and none from now on.
    pub fn end(&mut self) -> Vec<Withdraw> {
        self.ended = true;
        std::mem::take(&mut self.open).into_values().flatten().collect()
    }
}

impl Link {
    /// Serves a request.
    ///
    /// # Errors
    /// The other side breaks the rules.
    pub(super) fn serve(&self, id: u64, request: Request) -> Result<(), String> {
        let mut serving = self.serving.lock();
        if serving.ended {
            return Ok(());
        }
        if serving.open.len() >= MOST {
            return Err(format!("more than {MOST} requests wait for their tensors"));
        }
        if serving.open.contains_key(&id) {
            return Err(format!("request {id} came twice"));
        }
        serving.open.insert(id, None);
        drop(serving);
        let Some(serve) = self.serve.upgrade() else {
            self.answer(id, Err(Refusal::new(Code::UNAVAILABLE, "the server stops")));
            return Ok(());
        };
        let own = self.own.clone();
        let done: Done = Box::new(move |answer| {
            if let Some(link) = own.upgrade() {
                link.answer(id, answer);
            }
        });
        if let Request::Tensor(request) = &request
            && self.address.is_none()
            && let Some(own) = self.own.upgrade()
        {
            let own: Arc<dyn Pusher> = own;
            serve.asked(request.step_id, &request.rendezvous_key, &own);
        }
        let withdraw = match request {
            Request::Tensor(request) => serve.tensor(request, done),
            Request::Buffer(request) => serve.buffer(request, done),
        };
        let mut serving = self.serving.lock();
        match serving.open.get_mut(&id) {
            Some(waiting) => *waiting = Some(withdraw),
            // The link ended meanwhile, or the answer is on its way, so that this has no effect.
            None => {
                let ended = serving.ended;
                drop(serving);
                if ended {
                    withdraw(End::GivenUp);
                }
            }
        }
        Ok(())
    }

    /// Sends the answer to a request that was not withdrawn.
    fn answer(&self, id: u64, answer: Result<Answer, Refusal>) {
        let waiting = self.serving.lock().open.remove(&id);
        if waiting.is_none() {
            return;
        }
        let outgoing = answer.and_then(|answer| {
            Outgoing::of(&answer).map_err(|why| Refusal::new(Code::UNIMPLEMENTED, why))
        });
        match outgoing {
            Ok(value) => self.sent(self.writer.value(id, value, SMALL)),
            Err(refusal) => self.refuse(id, &refusal),
        }
    }

    fn refuse(&self, id: u64, refusal: &Refusal) {
        let message = &refusal.message;
        let message = &message[..message.floor_char_boundary(HEADER_BYTES)];
        let mark = [match refusal.mark {
            Mark::None => 0,
            Mark::Derived => 1,
            Mark::Restarted => 2,
        }];
        let body: [&[u8]; 3] = [&refusal.code.0.to_le_bytes(), &mark, message.as_bytes()];
        self.sent(self.writer.frame(Kind::Refused, 0, id, 0, &body));
    }

    /// Ends a request that the other side withdraws.
    pub(super) fn withdrawn(&self, id: u64, end: End) {
        let waiting = self.serving.lock().open.remove(&id);
        let was_open = match waiting {
            Some(withdraw) => {
                withdraw.into_iter().for_each(|withdraw| withdraw(end));
                true
            }
            None => self.writer.withdraw(id),
        };
        if was_open {
            self.refuse(id, &Refusal::new(Code::CANCELLED, "the request was withdrawn"));
        }
    }
}

/// Reads a refusal.
pub(super) fn refusal(body: &[u8]) -> Option<Refusal> {
    let (code, rest) = body.split_first_chunk::<4>()?;
    let (mark, message) = rest.split_first()?;
    let mark = match mark {
        0 => Mark::None,
        1 => Mark::Derived,
        2 => Mark::Restarted,
        _ => return None,
    };
    let message = std::str::from_utf8(message).ok().filter(|it| it.len() <= HEADER_BYTES)?;
    let code = Code(i32::from_le_bytes(*code));
    // A refusal with the code of success would be a value without one.
    (1..=16).contains(&code.0).then(|| Refusal::new(code, message).marked(mark))
}
