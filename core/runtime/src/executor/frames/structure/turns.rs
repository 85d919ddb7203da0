//! Frame instances whose iterations run by a program.
//!
//! Such an instance holds its nodes back until every value has entered. Then the program starts with the first
//! iteration, or, if a value is dead, the nodes that were held back are woken. While the program runs, the instance has
//! one iteration at a time.

use super::{FrameState, Start, Structure};

impl Structure {
    /// Wakes a node of an iteration for which something has arrived, unless its instance holds nodes back.
    pub(super) fn arrived(&mut self, id: u32, node: u32, dead: bool) {
        let instance = self.iterations[id as usize].instance;
        let instance = &mut self.instances[instance as usize];
        match instance.holds {
            true => instance.held.push((node, dead)),
            false => self.push(id, Start::Node { node, dead }),
        }
    }

    /// Ends the holding back in an instance that all values have entered.
    pub(super) fn entered(&mut self, at: u32) {
        let instance = &mut self.instances[at as usize];
        if !instance.holds {
            return;
        }
        let first = instance.iterations[0];
        if instance.is_steady && instance.held.iter().all(|&(_, dead)| !dead) {
            instance.held.clear();
            return self.push(first, Start::Program);
        }
        instance.holds = false;
        let mut held = std::mem::take(&mut instance.held);
        for (node, dead) in held.drain(..) {
            self.push(first, Start::Node { node, dead });
        }
        self.instances[at as usize].held = held;
    }

    /// Starts the next iteration of an instance that runs by its program: in the state `spare`, of the iteration
    /// before, if there is one. The token of iteration `id` becomes one of the next, whose number is returned.
    pub fn turn(&mut self, owner: &FrameState, id: u32, spare: Option<u32>) -> u32 {
        let at = self.iterations[id as usize].instance;
        let next = match spare {
            Some(spare) => {
                let instance = &mut self.instances[at as usize];
                instance.iterations.push_back(spare);
                let (number, iteration) = (instance.number, instance.first + 1);
                let state = self.state(spare);
                // SAFETY: the states live as long as `FrameState`, and this one has no tokens.
                unsafe { state.as_ref() }.start_program(number, iteration);
                spare
            }
            None => {
                self.start(owner, at);
                let instance = &mut self.instances[at as usize];
                instance.held.clear();
                instance.iterations.back().copied().unwrap_or(id)
            }
        };
        let instance = &mut self.instances[at as usize];
        instance.iterations.pop_front();
        instance.first += 1;
        self.record(id).tokens -= 1;
        self.record(next).tokens += 1;
        next
    }

    /// Ends the program of the instance of iteration `id`, its last one or one after which others follow without the
    /// program; `spare` is the state of the iteration before.
    pub fn end_program(&mut self, id: u32, spare: Option<u32>) {
        let record = self.record(id);
        let (at, plan) = (record.instance, record.plan);
        self.instances[at as usize].holds = false;
        self.free_iterations[plan as usize].extend(spare);
    }
}
