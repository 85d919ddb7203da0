//! Models of handovers for loom: `RUSTFLAGS="--cfg loom" cargo test -p tenon-host --lib handover::model`.

use super::Handover;
use loom::{cell::UnsafeCell, thread};
use std::sync::Arc;
use tenon_abi::Code;

/// A call whose output one thread writes and that one thread goes on with.
struct Call {
    handover: Handover,
    output: UnsafeCell<u32>,
}

// SAFETY: the handover orders the accesses to the output, which loom checks.
unsafe impl Sync for Call {}

/// One of the two threads goes on, and sees what the other one did before.
#[test]
fn the_second_goes_on() {
    loom::model(|| {
        let call = Arc::new(Call { handover: Handover::default(), output: UnsafeCell::new(0) });
        call.handover.begin();
        let completing = {
            let call = Arc::clone(&call);
            thread::spawn(move || {
                // SAFETY: the thread that completes the call owns its outputs.
                call.output.with_mut(|output| unsafe { *output = 7 });
                let goes_on = call.handover.arrives(Code::NOT_FOUND);
                if goes_on {
                    // SAFETY: the starting thread has left the call.
                    call.output.with_mut(|output| unsafe { *output += 1 });
                }
                goes_on
            })
        };
        let early = call.handover.is_done();
        let found = call.handover.waits();
        assert!(!early || found.is_some());
        if found.is_some() {
            assert_eq!(found, Some(Code::NOT_FOUND));
            // SAFETY: the completing thread has left the call.
            call.output.with(|output| assert_eq!(unsafe { *output }, 7));
        }
        let goes_on = completing.join().unwrap();
        assert!(goes_on != found.is_some(), "one of the two");
    });
}
