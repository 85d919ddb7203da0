//! The requests that have already arrived. A client numbers them, so that a request that the transport sends again is
//! not run twice.

use crate::refusal::Refusal;
use std::collections::{HashSet, VecDeque};
use tenon_framework::{
    Code,
    sync::{Mutex, rank},
};

/// The numbers of the latest requests.
pub(crate) struct Requests {
    latest: Mutex<Latest>,
    /// How many are remembered.
    most: usize,
}

#[derive(Default)]
struct Latest {
    order: VecDeque<i64>,
    numbers: HashSet<i64>,
}

impl Requests {
    /// Remembers as many numbers.
    pub fn remembering(most: usize) -> Requests {
        Requests { latest: Mutex::ranked(rank::LEAF, Latest::default()), most }
    }

    /// Notes a number; 0 is that of a request which may be repeated.
    ///
    /// # Errors
    /// `ABORTED` if it came before.
    pub fn note(&self, number: i64) -> Result<(), Refusal> {
        if number == 0 {
            return Ok(());
        }
        let mut latest = self.latest.lock();
        if !latest.numbers.insert(number) {
            return Err(Refusal::new(
                Code::ABORTED,
                format!(
                    "request {number} came before: a request that is sent again is not run twice"
                ),
            ));
        }
        latest.order.push_back(number);
        if latest.order.len() > self.most
            && let Some(oldest) = latest.order.pop_front()
        {
            latest.numbers.remove(&oldest);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_taken_once_and_forgotten_after_many_others() {
        let requests = Requests::remembering(10);
        requests.note(7).unwrap();
        assert_eq!(requests.note(7).unwrap_err().code, Code::ABORTED);
        (8..18).for_each(|number| requests.note(number).unwrap());
        requests.note(7).unwrap();
        requests.note(0).unwrap();
        requests.note(0).unwrap();
    }
}
