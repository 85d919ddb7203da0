//! The time by which masters and workers wait: that of the system, or a virtual one in simulations.
//!
//! Code of this crate that waits for other tasks takes the time from here, and waits by [`Mailbox`], [`pause`], [`sleep`] and
//! [`within`]. A simulation then decides when it passes.

#[cfg(feature = "fuzzing")]
pub(crate) mod virtual_time;

use std::{
    collections::VecDeque,
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};
use tenon_framework::sync::{Condvar, Mutex, rank};

/// The time now.
pub(crate) fn now() -> Instant {
    #[cfg(feature = "fuzzing")]
    if let Some(time) = virtual_time::current() {
        return time.instant();
    }
    Instant::now()
}

/// The time since an earlier one.
pub(crate) fn since(earlier: Instant) -> Duration {
    now().saturating_duration_since(earlier)
}

/// Messages for a thread that waits for them.
pub(crate) struct Mailbox<T>(Arc<Inner<T>>);

struct Inner<T> {
    messages: Mutex<VecDeque<T>>,
    changed: Condvar,
}

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Mailbox<T> {
        Mailbox(Arc::clone(&self.0))
    }
}

impl<T: Send + 'static> Mailbox<T> {
    pub fn new() -> Mailbox<T> {
        let messages = Mutex::ranked(rank::LEAF, VecDeque::new());
        Mailbox(Arc::new(Inner { messages, changed: Condvar::new() }))
    }

    /// Adds a message. It stays there if nobody takes it.
    pub fn send(&self, message: T) {
        self.0.messages.lock().push_back(message);
        self.0.changed.notify_one();
    }

    /// Whether no message waits.
    pub fn is_empty(&self) -> bool {
        self.0.messages.lock().is_empty()
    }

    /// The next message, or `None` if there is none by this time.
    pub fn take_until(&self, until: Instant) -> Option<T> {
        #[cfg(feature = "fuzzing")]
        if let Some(time) = virtual_time::current() {
            let inner = Arc::clone(&self.0);
            let _timer = time.at_instant(until, move || {
                // A waiter is either before its look at the time, or waits already.
                drop(inner.messages.lock());
                inner.changed.notify_all();
            });
            return self.wait(until, |messages, _| self.0.changed.wait(messages));
        }
        self.wait(until, |messages, left| self.0.changed.wait_timeout(messages, left))
    }

    fn wait<'m>(
        &'m self,
        until: Instant,
        wait: impl Fn(Messages<'m, T>, Duration) -> Messages<'m, T>,
    ) -> Option<T> {
        let mut messages = self.0.messages.lock();
        loop {
            if let Some(message) = messages.pop_front() {
                return Some(message);
            }
            let left = until.saturating_duration_since(now());
            if left.is_zero() {
                return None;
            }
            messages = wait(messages, left);
        }
    }
}

type Messages<'m, T> = tenon_framework::sync::MutexGuard<'m, VecDeque<T>>;

/// Stops this thread for a time.
pub(crate) fn pause(time: Duration) {
    let _nothing: Option<()> = Mailbox::new().take_until(now() + time);
}

/// Waits for a time, without a thread.
pub(crate) async fn sleep(time: Duration) {
    #[cfg(feature = "fuzzing")]
    if let Some(clock) = virtual_time::current() {
        return clock.sleep(time).await;
    }
    tokio::time::sleep(time).await;
}

/// What a future gives, or `None` if it does not within this time.
pub(crate) async fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = sleep(limit) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mailbox_gives_messages_in_order_or_the_time_passes() {
        let mailbox = Mailbox::new();
        mailbox.send(1);
        mailbox.clone().send(2);
        let soon = now() + Duration::from_millis(5);
        assert_eq!([mailbox.take_until(soon), mailbox.take_until(soon)], [Some(1), Some(2)]);
        assert_eq!(mailbox.take_until(soon), None);
        assert!(now() >= soon);
        let later = mailbox.clone();
        let sender = std::thread::spawn(move || later.send(3));
        assert_eq!(mailbox.take_until(now() + Duration::from_secs(60)), Some(3));
        sender.join().unwrap();
    }
}
