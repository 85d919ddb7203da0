//! Requests that arrive late, so that they overtake each other, or twice, as a transport that retries sends them.

use super::random::Random;
use crate::{grpc::Services, methods::WORKER, wire};
use prost::bytes::Bytes;
use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};
use tonic::body::Body;
use tower_service::Service;

/// How often, in a hundred, a request between tasks is late, or comes twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Habits {
    pub late: u64,
    pub twice: u64,
}

/// How late a request is at most.
const LATE: u64 = 300;

/// Services whose requests from other tasks do not arrive as they were sent.
#[derive(Clone)]
pub(super) struct Unruly {
    pub services: Services,
    pub habits: Habits,
    pub random: Arc<Mutex<Random>>,
}

/// What becomes of a request.
enum Fate {
    Late(Duration),
    /// It comes again after a time; the caller gets the answer of the first or of the second one.
    Twice(Duration, bool),
    Usual,
}

impl Unruly {
    fn fate(&self, path: &str) -> Fate {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let after = Duration::from_millis(random.between(0, LATE));
        match (random.chance(self.habits.late), random.chance(self.habits.twice)) {
            _ if !path.starts_with(WORKER) => Fate::Usual,
            (true, _) => Fate::Late(after),
            (false, true) => Fate::Twice(after / 4, random.chance(50)),
            (false, false) => Fate::Usual,
        }
    }
}

type Answer = Result<http::Response<Body>, Infallible>;

impl Service<http::Request<Body>> for Unruly {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let mut services = self.services.clone();
        match self.fate(request.uri().path()) {
            Fate::Usual => services.call(request),
            Fate::Late(time) => Box::pin(async move {
                crate::clock::sleep(time).await;
                services.call(request).await
            }),
            Fate::Twice(time, is_first) => Box::pin(twice(services, request, time, is_first)),
        }
    }
}

async fn twice(
    mut services: Services,
    request: http::Request<Body>,
    time: Duration,
    is_first: bool,
) -> Answer {
    let (head, mut body) = request.into_parts();
    let mut pieces = Vec::new();
    while let Some(Ok(frame)) = wire::next_frame(&mut body).await {
        pieces.extend(frame.into_data());
    }
    let again = |pieces: &[Bytes]| {
        http::Request::from_parts(head.clone(), wire::body_of(pieces.iter().cloned()))
    };
    let first = services.call(again(&pieces));
    let second = services.call(again(&pieces));
    let second = async move {
        crate::clock::sleep(time).await;
        second.await
    };
    // Both run to their ends, as if the answer of the other one was lost.
    let (first, second) = tokio::join!(first, second);
    if is_first { first } else { second }
}
