//! The transfers of a call that knows its place, and the buffer that they are of.

use super::{
    Begin, Plan,
    schedule::{Transfer, in_pieces},
};
use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};
use tenon_sdk::{growth, prelude::*};

/// Bytes of a piece: it stays in the caches of the processor while it is sent, received and merged.
const PIECE: usize = 256 << 10;
/// Receives that are requested ahead, and pieces that are sent ahead of them.
const WINDOW: usize = 4;

/// A call that takes the steps of its schedule.
pub(super) struct Running<T> {
    plan: Plan<T>,
    /// The value of this member, while ranges of it are not in the buffer.
    value: Option<Kept>,
    /// The starts of the ranges that the buffer has.
    there: HashSet<usize>,
    /// The buffer, if it is not the output's.
    own: Option<Vec<T>>,
    /// The number of each transfer among those with the same member in the same direction: both sides count alike.
    numbers: Vec<u64>,
    /// The number of transfers that are done.
    done: usize,
    /// The number of transfers that were looked at for receives, and the receives that are under way.
    requested: usize,
    open: usize,
    /// Tensors that came, by the place of their transfer.
    arrived: HashMap<usize, Kept>,
}

fn numbers(transfers: &[Transfer]) -> Vec<u64> {
    let mut counts: HashMap<(bool, usize), u64> = HashMap::new();
    let number = |transfer: &Transfer| {
        let peer = match *transfer {
            Transfer::Send { to, .. } => (true, to),
            Transfer::Receive { from, .. } => (false, from),
        };
        let count = counts.entry(peer).or_default();
        *count += 1;
        *count - 1
    };
    transfers.iter().map(number).collect()
}

impl<T: Element> Running<T> {
    /// Begins with the value of this member.
    pub fn begin(
        mut plan: Plan<T>,
        value: Option<Kept>,
        call: &mut AsyncCall,
    ) -> Result<Running<T>, KernelError> {
        plan.transfers = in_pieces(&plan.transfers, (PIECE / size_of::<T>()).max(1), WINDOW);
        let is_output = plan.output == (0..plan.count);
        if is_output {
            call.prepare(0, &plan.dims)?;
        }
        let own = (!is_output).then(|| growth::filled(plan.count, T::default())).transpose()?;
        let mut running = Running {
            numbers: numbers(&plan.transfers),
            value,
            there: HashSet::new(),
            own,
            done: 0,
            requested: 0,
            open: 0,
            arrived: HashMap::new(),
            plan,
        };
        if let Begin::At(range) = running.plan.begin.clone() {
            running.fill(range, 0, call)?;
            running.value = None;
        }
        Ok(running)
    }

    fn buffer<'b>(
        own: &'b mut Option<Vec<T>>,
        call: &'b mut AsyncCall,
    ) -> Result<&'b mut [T], KernelError> {
        match own {
            Some(own) => Ok(own),
            None => call.prepared(0),
        }
    }

    /// Copies elements of the value, from one on, to a range of the buffer.
    fn fill(
        &mut self,
        range: Range<usize>,
        first: usize,
        call: &mut AsyncCall,
    ) -> Result<(), KernelError> {
        let value = self.value.as_ref().ok_or_else(no_value)?;
        let elements = value.view::<T>()?.data;
        let elements = elements.get(first..first + range.len()).ok_or_else(no_value)?;
        Self::buffer(&mut self.own, call)?[range].copy_from_slice(elements);
        Ok(())
    }

    /// Notes a tensor that came for a receive.
    pub fn arrived(&mut self, at: usize, tensor: Kept) {
        self.arrived.insert(at, tensor);
    }

    /// The transfer that is next.
    pub fn current(&self) -> Option<&Transfer> {
        self.plan.transfers.get(self.done)
    }

    /// A receive that is to be requested now: its place, the member, and its number.
    pub fn next_receive(&mut self) -> Option<(usize, u32, u64)> {
        while self.open < WINDOW {
            let at = self.requested;
            let transfer = self.plan.transfers.get(at)?;
            self.requested += 1;
            if let Transfer::Receive { from, .. } = transfer {
                self.open += 1;
                return Some((at, *from as u32, self.numbers[at]));
            }
        }
        None
    }

    /// The tensor of the send that is next, with the member and its number.
    pub fn send(&mut self, call: &mut AsyncCall) -> Result<(u32, u64, Kept), KernelError> {
        let Some(Transfer::Send { to, range }) = self.plan.transfers.get(self.done) else {
            return Err(KernelError::internal("the next transfer does not send"));
        };
        let dims = [range.len() as i64];
        let tensor = match &self.value {
            Some(value) if !self.there.contains(&range.start) => {
                value.part(range.start as u64, &dims)?
            }
            _ => Kept::new(&dims, &Self::buffer(&mut self.own, call)?[range.clone()])?,
        };
        let number = self.numbers[self.done];
        self.done += 1;
        Ok((*to as u32, number, tensor))
    }

    /// Takes the tensors that came, in the order of their transfers.
    pub fn merge(&mut self, call: &mut AsyncCall) -> Result<(), KernelError> {
        while let Some(tensor) = self.arrived.remove(&self.done) {
            self.take(&tensor, call)?;
            self.done += 1;
            self.open -= 1;
        }
        Ok(())
    }

    /// Takes the tensor of a receive.
    fn take(&mut self, tensor: &Kept, call: &mut AsyncCall) -> Result<(), KernelError> {
        let transfer = self.plan.transfers.get(self.done).cloned();
        let Some(Transfer::Receive { from, range, merges }) = transfer else {
            return Err(KernelError::internal("a tensor came for a transfer that sends"));
        };
        let elements = tensor.view::<T>()?.data;
        if elements.len() != range.len() {
            return Err(KernelError::internal(format!(
                "member {from} of a collective sent {} elements: expected {}; give all tasks one version and one \
                 data.collective_order",
                elements.len(),
                range.len()
            )));
        }
        let is_new = self.value.is_some() && self.there.insert(range.start);
        if is_new && merges {
            self.fill(range.clone(), range.start, call)?;
        }
        let own = &mut Self::buffer(&mut self.own, call)?[range];
        match self.plan.merge.as_ref().filter(|_| merges) {
            Some(merge) => merge(own, elements),
            None => own.copy_from_slice(elements),
        }
        Ok(())
    }

    /// Writes the result.
    pub fn end(mut self, call: &mut AsyncCall) -> Result<(), KernelError> {
        let buffer = Self::buffer(&mut self.own, call)?;
        let result = &mut buffer[self.plan.output.clone()];
        if let Some(finish) = &self.plan.finish {
            finish(result);
        }
        if let Some(own) = &self.own {
            let output = call.context().output::<T>(0, &self.plan.dims)?;
            output.data.copy_from_slice(&own[self.plan.output.clone()]);
        }
        Ok(())
    }
}

fn no_value() -> KernelError {
    KernelError::internal("a member of a collective does not have the value that it sends")
}
