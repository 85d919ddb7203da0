//! The time by which masters and workers wait for other tasks, by [`Mailbox`], [`pause`], [`sleep`] and [`within`].

use std::{
    collections::VecDeque,
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};
use tenon_framework::sync::{Condvar, Mutex, rank};
use tokio::sync::Notify;

/// The time now.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The time since an earlier one.
pub(crate) fn since(earlier: Instant) -> Duration {
    now().saturating_duration_since(earlier)
}

/// Messages for a thread or a future that waits for them.
pub(crate) struct Mailbox<T>(Arc<Inner<T>>);

struct Inner<T> {
    messages: Mutex<VecDeque<T>>,
    changed: Condvar,
    told: Notify,
}

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Mailbox<T> {
        Mailbox(Arc::clone(&self.0))
    }
}

impl<T: Send + 'static> Mailbox<T> {
    pub fn new() -> Mailbox<T> {
        let messages = Mutex::ranked(rank::LEAF, VecDeque::new());
        Mailbox(Arc::new(Inner { messages, changed: Condvar::new(), told: Notify::new() }))
    }

    /// Adds a message. It stays there if nobody takes it.
    pub fn send(&self, message: T) {
        self.0.messages.lock().push_back(message);
        self.0.changed.notify_one();
        self.0.told.notify_one();
    }

    /// Whether no message waits.
    pub fn is_empty(&self) -> bool {
        self.0.messages.lock().is_empty()
    }

    /// The next message, or `None` if there is none by this time.
    pub fn take_until(&self, until: Instant) -> Option<T> {
        let mut messages = self.0.messages.lock();
        loop {
            if let Some(message) = messages.pop_front() {
                return Some(message);
            }
            let left = until.saturating_duration_since(now());
            if left.is_zero() {
                return None;
            }
            messages = self.0.changed.wait_timeout(messages, left);
        }
    }
}

impl<T: Send + 'static> Mailbox<T> {
    /// As [`Mailbox::take_until`], without a thread.
    pub async fn next_until(&self, until: Instant) -> Option<T> {
        loop {
            let next = self.0.messages.lock().pop_front();
            if next.is_some() {
                return next;
            }
            let left = until.saturating_duration_since(now());
            if left.is_zero() {
                return None;
            }
            // A message that came meanwhile has left a notice.
            within(left, self.0.told.notified()).await;
        }
    }
}

/// Stops this thread for a time.
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Waits for a time, without a thread.
pub(crate) async fn sleep(time: Duration) {
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

    #[tokio::test]
    async fn a_future_waits_for_messages_too() {
        let mailbox = Mailbox::new();
        mailbox.send(1);
        let later = mailbox.clone();
        let sender = std::thread::spawn(move || {
            pause(Duration::from_millis(5));
            later.send(2);
        });
        let end = now() + Duration::from_secs(60);
        assert_eq!(mailbox.next_until(end).await, Some(1));
        assert_eq!(mailbox.next_until(end).await, Some(2));
        let soon = now() + Duration::from_millis(5);
        assert_eq!(mailbox.next_until(soon).await, None);
        sender.join().unwrap();
    }
}
