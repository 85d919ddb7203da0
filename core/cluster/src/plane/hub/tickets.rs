//! Tickets: what a connection brings to show that the server has admitted its task by a call.

use crate::way::Way;
use std::{
    collections::HashMap,
    fs::File,
    io::Read,
    time::{Duration, Instant},
};
use tenon_framework::sync::Mutex;

/// Bytes of a ticket.
pub(super) const TICKET: usize = 16;
/// How long a ticket is good.
const GOOD: Duration = Duration::from_secs(30);
/// Tickets at the same time; the oldest ones go first.
const MOST: usize = 4096;

struct Ticket {
    task: String,
    way: Way,
    made: Instant,
}

/// The tickets that were not used yet.
#[derive(Default)]
pub(super) struct Tickets(Mutex<HashMap<[u8; TICKET], Ticket>>);

impl Tickets {
    /// A ticket for one connection of a task; empty where the system has no random bytes.
    pub fn issue(&self, task: &str, way: Way) -> Vec<u8> {
        let mut number = [0; TICKET];
        if let Err(error) = File::open("/dev/urandom").and_then(|mut it| it.read_exact(&mut number))
        {
            tracing::warn!("no random bytes for a link: {error}");
            return Vec::new();
        }
        let mut tickets = self.0.lock();
        tickets.retain(|_, ticket| ticket.made.elapsed() < GOOD);
        if tickets.len() >= MOST {
            let oldest = tickets.iter().min_by_key(|(_, ticket)| ticket.made);
            if let Some(oldest) = oldest.map(|(number, _)| *number) {
                tickets.remove(&oldest);
            }
        }
        tickets.insert(number, Ticket { task: task.to_owned(), way, made: Instant::now() });
        number.to_vec()
    }

    /// The task of a ticket, which is used up.
    pub fn take(&self, number: &[u8; TICKET], way: Way) -> Option<String> {
        let ticket = self.0.lock().remove(number)?;
        (ticket.way == way && ticket.made.elapsed() < GOOD).then_some(ticket.task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_for_one_connection_of_its_way() {
        let tickets = Tickets::default();
        let number = |bytes: Vec<u8>| <[u8; TICKET]>::try_from(bytes).unwrap();
        let first = number(tickets.issue("/job:w/replica:0/task:1", Way::Tcp));
        let second = number(tickets.issue("/job:w/replica:0/task:1", Way::Shm));
        assert_ne!(first, second);
        assert_eq!(tickets.take(&first, Way::Tcp).unwrap(), "/job:w/replica:0/task:1");
        assert!(tickets.take(&first, Way::Tcp).is_none(), "it is used up");
        assert!(tickets.take(&second, Way::Tcp).is_none(), "it is for another way");
        assert!(tickets.take(&[0; TICKET], Way::Tcp).is_none());
        (0..MOST + 5).for_each(|_| drop(tickets.issue("t", Way::Tcp)));
        assert_eq!(tickets.0.lock().len(), MOST);
    }
}
