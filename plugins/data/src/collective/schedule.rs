//! What a member sends and receives, in which order: pure functions of its place.
//!
//! A schedule is a list of transfers of ranges of one buffer. Members take the steps of theirs one after the other; a send
//! never waits, so no order of members can block another. Every element is merged along one path and copied from there,
//! so that all members get the same bits.

use std::ops::Range;

/// A transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Transfer {
    /// Sends a range of the buffer to a member.
    Send { to: usize, range: Range<usize> },
    /// Receives a range from a member; merged with what is there, or in place of it.
    Receive { from: usize, range: Range<usize>, merges: bool },
}

/// The members as one of them sees them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Members {
    pub place: usize,
    pub size: usize,
    /// The place of the source of a broadcast.
    pub source: usize,
}

/// How a reduction adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    /// Around a ring, in as many parts as there are members: each member sends and receives each element twice.
    Ring,
    /// By halves: a number of messages that grows with the logarithm of the number of members.
    Halving,
    /// Along the members, from the first to the last: the order of sums is that of the places.
    Ordered,
}

impl Transfer {
    fn range(&self) -> &Range<usize> {
        match self {
            Transfer::Send { range, .. } | Transfer::Receive { range, .. } => range,
        }
    }

    /// The same transfer in pieces of at most `most` elements.
    fn pieces(&self, most: usize) -> impl Iterator<Item = Transfer> + '_ {
        let Range { start, end } = *self.range();
        (start..end).step_by(most).map(move |at| {
            let piece = at..end.min(at.saturating_add(most));
            match *self {
                Transfer::Send { to, .. } => Transfer::Send { to, range: piece },
                Transfer::Receive { from, merges, .. } => {
                    Transfer::Receive { from, range: piece, merges }
                }
            }
        })
    }
}

/// Transfers in pieces of at most `most` elements. Where a send precedes a receive of another range, `lead` of its pieces
/// precede, and the others take turns with those of the receive: little is on its way at a time. Both are at least 1: if no
/// piece preceded, all members would wait.
pub(super) fn in_pieces(list: &[Transfer], most: usize, lead: usize) -> Vec<Transfer> {
    let mut pieces = Vec::new();
    let mut list = list.iter().peekable();
    while let Some(transfer) = list.next() {
        let is_apart = |next: &&Transfer| {
            let (own, other) = (transfer.range(), next.range());
            let is_pair =
                matches!((transfer, next), (Transfer::Send { .. }, Transfer::Receive { .. }));
            is_pair && (own.end <= other.start || other.end <= own.start)
        };
        let mut own = transfer.pieces(most);
        if let Some(receive) = list.next_if(is_apart) {
            pieces.extend(own.by_ref().take(lead));
            for piece in receive.pieces(most) {
                pieces.push(piece);
                pieces.extend(own.next());
            }
        }
        pieces.extend(own);
    }
    pieces
}

/// The transfers of a member, without empty ones.
#[derive(Default)]
struct List(Vec<Transfer>);

impl List {
    fn send(&mut self, to: usize, range: Range<usize>) {
        if !range.is_empty() {
            self.0.push(Transfer::Send { to, range });
        }
    }

    fn receive(&mut self, from: usize, range: Range<usize>, merges: bool) {
        if !range.is_empty() {
            self.0.push(Transfer::Receive { from, range, merges });
        }
    }
}

impl Members {
    fn next(&self) -> usize {
        (self.place + 1) % self.size
    }

    fn previous(&self) -> usize {
        (self.place + self.size - 1) % self.size
    }

    /// The part of `count` elements with a number, which wraps around.
    fn part(&self, number: usize, count: usize) -> Range<usize> {
        let at = number % self.size;
        // The product of two lengths in memory; the count of elements is at most that of bytes.
        let edge = |at: usize| (at as u128 * count as u128 / self.size as u128) as usize;
        edge(at)..edge(at + 1)
    }

    /// Merges the parts around a ring: this member ends with that of number `place + shift`.
    fn ring_merge(&self, list: &mut List, count: usize, shift: usize) {
        let (n, p) = (self.size, self.place + self.size + shift);
        for step in 0..n.saturating_sub(1) {
            list.send(self.next(), self.part(p + 2 * n - 1 - step, count));
            list.receive(self.previous(), self.part(p + 2 * n - 2 - step, count), true);
        }
    }

    /// Passes the parts around a ring, of which this member has that of number `place + shift`.
    fn ring_pass(&self, list: &mut List, count: usize, shift: usize) {
        let (n, p) = (self.size, self.place + self.size + shift);
        for step in 0..n.saturating_sub(1) {
            list.send(self.next(), self.part(p + n - step, count));
            list.receive(self.previous(), self.part(p + n - 1 - step, count), false);
        }
    }

    /// Merges all values of `count` elements into one, at every member.
    pub fn reduce(&self, algorithm: Algorithm, count: usize) -> Vec<Transfer> {
        let mut list = List::default();
        match algorithm {
            Algorithm::Ring => {
                self.ring_merge(&mut list, count, 1);
                self.ring_pass(&mut list, count, 1);
            }
            Algorithm::Halving => self.halving(&mut list, count),
            Algorithm::Ordered => self.ordered(&mut list, count),
        }
        list.0
    }

    /// Halves the range with a partner at each step, and doubles it again. Members beyond the largest power of two give
    /// their values to one within it first, and get the result last.
    fn halving(&self, list: &mut List, count: usize) {
        let (p, all) = (self.place, 0..count);
        let within =
            if self.size.is_power_of_two() { self.size } else { self.size.next_power_of_two() / 2 };
        let beyond = self.size - within;
        if p >= within {
            list.send(p - within, all.clone());
            list.receive(p - within, all, false);
            return;
        }
        if p < beyond {
            list.receive(p + within, all.clone(), true);
        }
        let mut halves = Vec::new();
        let mut range = all.clone();
        let mut distance = within / 2;
        while distance > 0 {
            let partner = p ^ distance;
            let middle = range.start + range.len() / 2;
            let (low, high) = (range.start..middle, middle..range.end);
            let (kept, given) = if p & distance == 0 { (low, high) } else { (high, low) };
            list.send(partner, given.clone());
            list.receive(partner, kept.clone(), true);
            halves.push((partner, kept.clone(), given));
            range = kept;
            distance /= 2;
        }
        for (partner, kept, given) in halves.into_iter().rev() {
            list.send(partner, kept);
            list.receive(partner, given, false);
        }
        if p < beyond {
            list.send(p + within, all);
        }
    }

    fn ordered(&self, list: &mut List, count: usize) {
        let last = self.size - 1;
        if self.place > 0 {
            list.receive(self.place - 1, 0..count, true);
        }
        if self.place < last {
            list.send(self.place + 1, 0..count);
            list.receive(last, 0..count, false);
        } else {
            (0..last).for_each(|to| list.send(to, 0..count));
        }
    }

    /// Merges all values into one, of which this member gets its part.
    pub fn reduce_scatter(&self, algorithm: Algorithm, count: usize) -> Vec<Transfer> {
        if algorithm == Algorithm::Ordered {
            return self.reduce(algorithm, count);
        }
        let mut list = List::default();
        self.ring_merge(&mut list, count, 0);
        list.0
    }

    /// Gives every member the parts of all; this one has its own.
    pub fn gather(&self, count: usize) -> Vec<Transfer> {
        let mut list = List::default();
        self.ring_pass(&mut list, count, 0);
        list.0
    }

    /// Gives every member the value of the source, along a tree.
    pub fn broadcast(&self, count: usize) -> Vec<Transfer> {
        let mut list = List::default();
        let from_source = (self.place + self.size - self.source) % self.size;
        let at = |from_source: usize| (from_source + self.source) % self.size;
        let mut distance = 1;
        if from_source > 0 {
            let own = 1 << from_source.ilog2();
            list.receive(at(from_source - own), 0..count, false);
            distance = own * 2;
        }
        while from_source + distance < self.size {
            list.send(at(from_source + distance), 0..count);
            distance *= 2;
        }
        list.0
    }

    /// Gives each member its part of this one's value, and takes this one's parts of theirs.
    pub fn exchange(&self, count: usize) -> Vec<Transfer> {
        let mut list = List::default();
        let others = |step: usize| (self.place + step) % self.size;
        for to in (1..self.size).map(others) {
            list.send(to, self.part(to, count));
        }
        for from in (1..self.size).map(others) {
            list.receive(from, self.part(from, count), false);
        }
        list.0
    }

    /// The part of this member.
    pub fn own(&self, count: usize) -> Range<usize> {
        self.part(self.place, count)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::{HashMap, VecDeque};

    /// Runs the schedules of all members until none of them can go on.
    fn run(
        mut buffers: Vec<Vec<i64>>,
        schedule: impl Fn(Members) -> Vec<Transfer>,
        source: usize,
    ) -> Vec<Vec<i64>> {
        let size = buffers.len();
        let mut left: Vec<VecDeque<Transfer>> =
            (0..size).map(|place| schedule(Members { place, size, source }).into()).collect();
        let mut sent: HashMap<(usize, usize), VecDeque<Vec<i64>>> = HashMap::new();
        let mut moved = true;
        while std::mem::take(&mut moved) {
            for place in 0..size {
                while let Some(transfer) = left[place].front().cloned() {
                    match transfer {
                        Transfer::Send { to, range } => {
                            sent.entry((place, to))
                                .or_default()
                                .push_back(buffers[place][range].to_vec());
                        }
                        Transfer::Receive { from, range, merges } => {
                            let Some(values) = sent.entry((from, place)).or_default().pop_front()
                            else {
                                break;
                            };
                            assert_eq!(values.len(), range.len());
                            for (to, value) in buffers[place][range].iter_mut().zip(values) {
                                *to = if merges { *to + value } else { value };
                            }
                        }
                    }
                    left[place].pop_front();
                    moved = true;
                }
            }
        }
        assert!(left.iter().all(VecDeque::is_empty), "a member waits for what nobody sends");
        assert!(sent.values().all(VecDeque::is_empty), "a member sends what nobody takes");
        buffers
    }

    #[test]
    fn pieces_are_the_same_transfers() {
        for (size, count) in [(1, 5), (2, 1), (2, 40), (3, 40), (5, 64), (8, 200)] {
            let (start, sum) = (values(size, count), sums(&values(size, count)));
            for algorithm in [Algorithm::Ring, Algorithm::Halving, Algorithm::Ordered] {
                for (most, lead) in [(1, 1), (1, 4), (3, 2), (1000, 1)] {
                    let pieces = |it: Members| in_pieces(&it.reduce(algorithm, count), most, lead);
                    let got = run(start.clone(), pieces, 0);
                    assert!(got.iter().all(|it| *it == sum), "{algorithm:?} {size} {count} {most}");
                }
            }
        }
        let [send, receive] = [0..5, 5..9].map(|range| (range.clone(), range));
        let list = [
            Transfer::Send { to: 1, range: send.0 },
            Transfer::Receive { from: 1, range: receive.0, merges: true },
        ];
        let starts = |list: Vec<Transfer>| -> Vec<usize> {
            list.iter().map(|it| it.range().start).collect()
        };
        assert_eq!(starts(in_pieces(&list, 2, 1)), [0, 5, 2, 7, 4]);
    }

    fn values(size: usize, count: usize) -> Vec<Vec<i64>> {
        let value = |place: usize, at: usize| (place * 1000 + at * 7 + 1) as i64;
        (0..size).map(|place| (0..count).map(|at| value(place, at)).collect()).collect()
    }

    fn sums(values: &[Vec<i64>]) -> Vec<i64> {
        (0..values[0].len()).map(|at| values.iter().map(|it| it[at]).sum()).collect()
    }

    #[test]
    fn every_member_gets_the_sum() {
        for size in 1..18 {
            for count in [0, 1, 2, 3, 7, size, 4 * size + 1] {
                let (start, sum) = (values(size, count), sums(&values(size, count)));
                for algorithm in [Algorithm::Ring, Algorithm::Halving, Algorithm::Ordered] {
                    let got = run(start.clone(), |it| it.reduce(algorithm, count), 0);
                    assert!(got.iter().all(|it| *it == sum), "{algorithm:?} {size} {count}");
                    let parts = run(start.clone(), |it| it.reduce_scatter(algorithm, count), 0);
                    for (place, part) in parts.iter().enumerate() {
                        let own = Members { place, size, source: 0 }.own(count);
                        assert_eq!(part[own.clone()], sum[own], "{algorithm:?} {size} {count}");
                    }
                }
            }
        }
    }

    #[test]
    fn values_reach_their_members() {
        for size in 1..18 {
            let count = 3 * size;
            let start = values(size, count);
            for source in 0..size {
                let got = run(start.clone(), |it| it.broadcast(count), source);
                assert!(got.iter().all(|it| *it == start[source]), "{size} {source}");
            }
            let parts = |of: &dyn Fn(usize, usize) -> i64| -> Vec<i64> {
                (0..size)
                    .flat_map(|from| (0..3).map(move |at| (from, at)))
                    .map(|(from, at)| of(from, at))
                    .collect()
            };
            let gathered = parts(&|from, at| start[from][3 * from + at]);
            let got = run(start.clone(), |it| it.gather(count), 0);
            assert!(got.iter().all(|it| *it == gathered), "{size}");
            let got = run(start.clone(), |it| it.exchange(count), 0);
            for (place, it) in got.iter().enumerate() {
                assert_eq!(*it, parts(&|from, at| start[from][3 * place + at]), "{size}");
            }
        }
    }

    #[test]
    fn the_order_of_sums_is_that_of_the_places() {
        let schedule = |place| Members { place, size: 3, source: 0 }.reduce(Algorithm::Ordered, 5);
        let receive = |from, merges| Transfer::Receive { from, range: 0..5, merges };
        let send = |to| Transfer::Send { to, range: 0..5 };
        assert_eq!(schedule(0), [send(1), receive(2, false)]);
        assert_eq!(schedule(1), [receive(0, true), send(2), receive(2, false)]);
        assert_eq!(schedule(2), [receive(1, true), send(0), send(1)]);
    }
}
