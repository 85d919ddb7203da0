//! `For`: a function that is called once for each value of a counter.
//!
//! Each call takes what the one before it returned. A call that is done at once is followed by the
//! next one in a loop; one that waits leaves the thread, and its end goes on with the loop.

use std::sync::{Arc, Mutex, PoisonError};
use tenon_sdk::prelude::*;

/// The values of a counter that are left.
struct Counter {
    next: i32,
    delta: i32,
    left: u32,
}

impl Counter {
    fn new(start: i32, limit: i32, delta: i32) -> Result<Counter, KernelError> {
        if delta == 0 || (delta > 0 && start > limit) || (delta < 0 && start < limit) {
            return Err(KernelError::invalid_argument(format!(
                "a counter from {start} to {limit} by {delta}: expected a step other than 0 that leads to the limit"
            )));
        }
        Ok(Counter {
            next: start,
            delta,
            left: start.abs_diff(limit).div_ceil(delta.unsigned_abs()),
        })
    }
}

impl Iterator for Counter {
    type Item = i32;

    fn next(&mut self) -> Option<i32> {
        self.left = self.left.checked_sub(1)?;
        let value = self.next;
        // After the last value the counter may leave the range of the type.
        self.next = value.wrapping_add(self.delta);
        Some(value)
    }
}

/// A loop between two calls.
struct Loop {
    body: Function,
    counter: Counter,
    values: Vec<Kept>,
}

/// How far a call is when the code that started it comes back.
enum Turn {
    Starting,
    /// It is done; the starting code goes on.
    Done(AsyncCall, Loop, FunctionResults),
    /// The starting code has left; the end of the call goes on.
    Left,
}

impl Loop {
    fn of(c: &ComputeContext<'_>) -> Result<Loop, KernelError> {
        // The type of the inputs is int32.
        let number = |input, name| c.integer(input, name).map(|number| number as i32);
        let counter = Counter::new(number(0, "start")?, number(1, "limit")?, number(2, "delta")?)?;
        let values = (3..c.input_count()).map(|input| c.keep(input)).collect::<Result<_, _>>()?;
        Ok(Loop { body: c.function("body")?, counter, values })
    }

    /// Calls the body until it waits or no value is left.
    fn run(mut self, mut call: AsyncCall) {
        loop {
            let Some(value) = self.counter.next() else { return self.finish(call) };
            let args = call.context().watch().check().and_then(|()| self.args(value));
            let args = match args {
                Ok(args) => args,
                Err(error) => return call.finish(Err(error)),
            };
            let body = self.body.clone();
            let turn = Arc::new(Mutex::new(Turn::Starting));
            let shared = Arc::clone(&turn);
            body.call_within(call, &args, Schedule::Inline, move |call, results| {
                let mut turn = shared.lock().unwrap_or_else(PoisonError::into_inner);
                if matches!(*turn, Turn::Left) {
                    drop(turn);
                    return self.resume(call, results);
                }
                *turn = Turn::Done(call, self, results);
            });
            let mut turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
            let Turn::Done(ended, state, results) = std::mem::replace(&mut *turn, Turn::Left)
            else {
                return;
            };
            drop(turn);
            (call, self) = (ended, state);
            match results {
                Ok(values) => self.values = values,
                Err(error) => return call.finish(Err(error)),
            }
        }
    }

    /// Goes on after a call that has waited.
    fn resume(mut self, call: AsyncCall, results: FunctionResults) {
        match results {
            Ok(values) => {
                self.values = values;
                self.run(call);
            }
            Err(error) => call.finish(Err(error)),
        }
    }

    /// The arguments of a call: the counter and the values.
    fn args(&mut self, value: i32) -> Result<Vec<Kept>, KernelError> {
        let mut args = vec![Kept::new(&[], &[value])?];
        args.append(&mut self.values);
        Ok(args)
    }

    fn finish(self, mut call: AsyncCall) {
        let context = call.context();
        let outputs = context.output_count();
        let result = if self.values.len() == outputs {
            let mut given = self.values.iter().enumerate();
            given.try_for_each(|(at, value)| context.output_kept(at, value))
        } else {
            Err(KernelError::invalid_argument(format!(
                "the body has {} results: expected {outputs}, one for each value",
                self.values.len()
            )))
        };
        call.finish(result);
    }
}

struct For;

impl Kernel for For {
    const MODE: Mode = Mode::Async;

    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(For)
    }

    fn start(&self, mut call: AsyncCall) {
        match Loop::of(&call.context()) {
            Ok(state) => state.run(call),
            Err(error) => call.finish(Err(error)),
        }
    }

    fn compute(&self, _: &ComputeContext<'_>) -> Result<(), KernelError> {
        Ok(())
    }
}

register_kernel!("For" on "CPU": For);

#[cfg(test)]
mod tests {
    use super::Counter;

    #[test]
    fn a_counter_has_the_values_up_to_its_limit() {
        let values = |start, limit, delta| Counter::new(start, limit, delta).unwrap();
        assert_eq!(values(0, 5, 2).collect::<Vec<_>>(), [0, 2, 4]);
        assert_eq!(values(5, 0, -2).collect::<Vec<_>>(), [5, 3, 1]);
        assert_eq!(values(3, 3, 1).count(), 0);
        assert_eq!(values(i32::MIN, i32::MAX, i32::MAX).count(), 3);
        assert_eq!(values(i32::MAX, i32::MIN, i32::MIN).collect::<Vec<_>>(), [i32::MAX, -1]);
        for (start, limit, delta) in [(0, 5, 0), (0, 5, -1), (5, 0, 1)] {
            assert!(Counter::new(start, limit, delta).is_err(), "{start} {limit} {delta}");
        }
    }
}
