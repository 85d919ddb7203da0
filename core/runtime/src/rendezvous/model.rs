//! Models of the rendezvous for loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p tenon-runtime --lib model`.

use super::{EdgeName, Edges, Key, LocalRendezvous, Parcel, Receiver, Rendezvous};
use crate::error::StepError;
use loom::{
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
};
use tenon_framework::Code;

/// The results that the receiver was called with: a parcel or an error.
type Seen = Arc<Mutex<Vec<Result<bool, Code>>>>;

/// The key of the first edge, which has the same number in every table.
fn key() -> Key {
    Key::of(Edges::default().intern(EdgeName {
        source: "/device:CPU:0".to_owned(),
        incarnation: 1,
        destination: "/device:CPU:1".to_owned(),
        tensor: "x:0".to_owned(),
    }))
}

fn parcel(mark: bool) -> Parcel {
    Parcel { tensor: None, is_dead: mark }
}

fn receiver(seen: &Seen) -> Receiver {
    let seen = Arc::clone(seen);
    Box::new(move |result| {
        let result = result.map(|parcel| parcel.is_dead).map_err(|error| error.code);
        seen.lock().unwrap().push(result);
    })
}

fn seen(seen: &Seen) -> Vec<Result<bool, Code>> {
    seen.lock().unwrap().clone()
}

/// Runs two functions at once, one of them on another thread.
fn with<T: 'static>(
    rendezvous: &Arc<LocalRendezvous>,
    run: impl FnOnce(&LocalRendezvous) -> T + 'static,
) -> JoinHandle<T> {
    let rendezvous = Arc::clone(rendezvous);
    thread::spawn(move || run(&rendezvous))
}

fn nothing_waits(rendezvous: &LocalRendezvous) -> bool {
    rendezvous.table.lock().waiting.is_empty()
}

#[test]
fn send_and_recv_meet_in_either_order() {
    loom::model(|| {
        let (rendezvous, got) = (Arc::new(LocalRendezvous::default()), Seen::default());
        let sender = with(&rendezvous, |to| to.send(&key(), parcel(true)).is_ok());
        rendezvous.recv(&key(), receiver(&got));
        assert!(sender.join().unwrap());
        assert_eq!(seen(&got), [Ok(true)]);
        assert!(nothing_waits(&rendezvous));
    });
}

/// The receiver is called once, with the value or the error, and nothing waits afterwards.
#[test]
fn abort_races_with_send_and_recv() {
    loom::model(|| {
        let (rendezvous, got) = (Arc::new(LocalRendezvous::default()), Seen::default());
        let sender = with(&rendezvous, |to| to.send(&key(), parcel(true)).map_err(|e| e.code));
        let stopper = with(&rendezvous, |to| to.abort(StepError::step(Code::CANCELLED, "stop")));
        rendezvous.recv(&key(), receiver(&got));
        let sent = sender.join().unwrap();
        stopper.join().unwrap();
        let outcome = seen(&got);
        assert!(outcome == [Ok(true)] || outcome == [Err(Code::CANCELLED)], "{outcome:?}");
        assert!(sent == Ok(()) || sent == Err(Code::CANCELLED), "{sent:?}");
        assert!(outcome != [Ok(true)] || sent.is_ok(), "a value that nobody sent");
        assert!(nothing_waits(&rendezvous));
        rendezvous.recv(&key(), receiver(&got));
        assert_eq!(seen(&got).last(), Some(&Err(Code::CANCELLED)));
        assert_eq!(rendezvous.send(&key(), parcel(true)).unwrap_err().code, Code::CANCELLED);
    });
}

/// Of two errors, the first is kept, for current and for later receivers.
#[test]
fn the_first_of_two_aborts_stays() {
    loom::model(|| {
        let (rendezvous, got) = (Arc::new(LocalRendezvous::default()), Seen::default());
        rendezvous.recv(&key(), receiver(&got));
        let stopper = with(&rendezvous, |to| to.abort(StepError::step(Code::INTERNAL, "one")));
        rendezvous.abort(StepError::step(Code::UNAVAILABLE, "two"));
        let now = rendezvous.send(&key(), parcel(false)).unwrap_err().code;
        stopper.join().unwrap();
        let later = rendezvous.send(&key(), parcel(false)).unwrap_err().code;
        assert_eq!(now, later);
        assert_eq!(seen(&got), [Err(later)]);
    });
}

/// After two sends with one key, the receiver gets the first value. The second send is refused, or
/// succeeds if the receiver came in between.
#[test]
fn a_double_send_gives_one_value() {
    loom::model(|| {
        let (rendezvous, got) = (Arc::new(LocalRendezvous::default()), Seen::default());
        let first = with(&rendezvous, |to| to.send(&key(), parcel(true)).map_err(|e| e.code));
        let asker = {
            let receiver = receiver(&got);
            with(&rendezvous, move |from| from.recv(&key(), receiver))
        };
        let second = rendezvous.send(&key(), parcel(false)).map_err(|e| e.code);
        let first = first.join().unwrap();
        asker.join().unwrap();
        let got = seen(&got);
        assert_eq!(got.len(), 1);
        match (first, second) {
            (Ok(()), Ok(())) => assert!(got[0].is_ok() && !nothing_waits(&rendezvous)),
            (Ok(()), Err(Code::INTERNAL)) => {
                assert!(got == [Ok(true)] && nothing_waits(&rendezvous))
            }
            (Err(Code::INTERNAL), Ok(())) => {
                assert!(got == [Ok(false)] && nothing_waits(&rendezvous))
            }
            other => panic!("{other:?}"),
        }
    });
}

/// Receivers are called outside the lock, so a receiver may use the rendezvous.
#[test]
fn a_receiver_may_abort() {
    loom::model(|| {
        let rendezvous = Arc::new(LocalRendezvous::default());
        let sender = with(&rendezvous, |to| to.send(&key(), parcel(true)).is_ok());
        let again = Arc::clone(&rendezvous);
        rendezvous.recv(
            &key(),
            Box::new(move |_| again.abort(StepError::step(Code::ABORTED, "from a receiver"))),
        );
        assert!(sender.join().unwrap());
        assert_eq!(rendezvous.send(&key(), parcel(true)).unwrap_err().code, Code::ABORTED);
    });
}
