//! Models of tickets for loom: `RUSTFLAGS="--cfg loom" cargo test -p tenon-host --lib
//! ticket::model`.

use super::Ticket;
use loom::thread;
use std::sync::Arc;

/// The low bits of the record of the next call.
fn begin(ticket: &Ticket, step: u64) -> u64 {
    let record = ticket.begin(step).expect("no call runs");
    (record.addr() & super::LOW) as u64 >> 1
}

/// Two threads complete one call: the first ends it, the second learns which step it belonged to.
#[test]
fn a_call_is_ended_once() {
    loom::model(|| {
        let ticket = Arc::new(Ticket::new());
        let low = begin(&ticket, 7);
        let other = {
            let ticket = Arc::clone(&ticket);
            thread::spawn(move || ticket.end(low).is_some())
        };
        let here = ticket.end(low).is_some();
        assert!(here != other.join().unwrap(), "one of the two");
        assert_eq!(ticket.again(low).step, Some(7));
    });
}

/// A second completion of one call never ends the next one, and is not attributed to the next step.
#[test]
fn a_late_completion_does_not_end_the_next_call() {
    loom::model(|| {
        let ticket = Arc::new(Ticket::new());
        let first = begin(&ticket, 1);
        assert!(ticket.end(first).is_some());
        let late = {
            let ticket = Arc::clone(&ticket);
            thread::spawn(move || (ticket.end(first).is_some(), ticket.again(first).step))
        };
        let second = begin(&ticket, 2);
        let (ended, step) = late.join().unwrap();
        assert!(!ended);
        assert!(step.is_none() || step == Some(1));
        assert!(ticket.end(second).is_some());
        assert_eq!(ticket.again(first).step, None);
    });
}
