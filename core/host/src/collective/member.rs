//! The place of one call in a collective operation.
//!
//! # States
//! *joining its group* → *joining the operation* → *ready*; each of them → *failed*, with the first error. A request to
//! another task, or to the table of groups, is in `requests` until it is answered or given up.
//!
//! # When the leader is asked
//! In a step over several tasks, the leader of a group is asked for the group once: each task keeps it until a member fails.
//! The operation is asked for only where its exchange would not show that [members agree](super::Agreed).
//!
//! A group that a task keeps may be out of date: one of its devices was started anew, or the key was used for others. Its
//! devices and their incarnations are compared with each tensor that is requested. A member that gets none, since the others
//! wait for the group that they form, [asks for the group again](Member::look) when it has waited for a second.

use super::{
    Abandon, Agreed, Arrived, BufferKey, Collectives, Done, Group, GroupDevice, GroupRequest,
    InstanceKey, InstanceRequest, Wanted, agreed::is_shown, buffers::StepBuffers,
};
use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};
use tenon_abi::CollectiveKind;
use tenon_framework::{
    Code, DType, KernelError, Tensor,
    sync::{Mutex, rank},
};

/// How long a member waits before it asks for its group again; then twice as long, and so on.
const LOOK: Duration = Duration::from_secs(1);

/// How a call takes part.
#[derive(Debug, Clone)]
pub struct Join {
    /// The operation.
    pub key: InstanceKey,
    /// The number of devices of its group.
    pub size: i32,
    /// The kind of operation.
    pub kind: CollectiveKind,
    /// The device of the call.
    pub device: GroupDevice,
    /// Element type of the values.
    pub dtype: DType,
    /// Dimensions of the values.
    pub dims: Vec<i64>,
    /// Whether the call has the value of a broadcast.
    pub is_source: bool,
    /// The limit of the operation.
    pub timeout: Option<Duration>,
}

/// The place of a call among the members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its place.
    pub place: u32,
    /// The number of members.
    pub size: u32,
    /// The place of the source of a broadcast, else 0.
    pub source: u32,
}

#[derive(Default)]
struct State {
    group: Option<(Arc<Group>, u32)>,
    failed: Option<KernelError>,
    ready: Option<Done<Place>>,
    is_ready: bool,
    next: u64,
    /// What gives up the requests that run, by number; `None` until they are on their way.
    requests: HashMap<u64, Option<Abandon>>,
    /// How often it has asked for its group again.
    looks: u32,
    /// What waits for tensors of other tasks, by number of the request.
    arrivals: HashMap<u64, Arrived>,
}

/// The place of a call.
pub struct Member {
    own: Weak<Member>,
    all: Arc<Collectives>,
    join: Join,
    buffers: Arc<StepBuffers>,
    begun: Instant,
    state: Mutex<State>,
}

impl Member {
    pub(super) fn begin(all: &Arc<Collectives>, join: Join, ready: Done<Place>) -> Arc<Member> {
        let buffers = all.buffers(join.key.step);
        let state = State { ready: Some(ready), ..State::default() };
        let member = Arc::new_cyclic(|own| Member {
            own: own.clone(),
            all: Arc::clone(all),
            buffers,
            begun: Instant::now(),
            state: Mutex::ranked(rank::RENDEZVOUS, state),
            join,
        });
        if let Some(limit) = member.join.timeout
            && !all.timer.add(&member, limit)
        {
            let why = "no thread for the time limit of a collective";
            member.fail(KernelError::new(Code::RESOURCE_EXHAUSTED, why));
            return member;
        }
        member.join_group();
        member
    }

    /// Notes a request; `None` if the operation has failed.
    fn request(&self) -> Option<u64> {
        let mut state = self.state.lock();
        if state.failed.is_some() {
            return None;
        }
        state.next += 1;
        let number = state.next;
        state.requests.insert(number, None);
        Some(number)
    }

    /// Notes what gives a request up. It is given up at once if the operation failed meanwhile; an answered one is not.
    fn started(&self, number: u64, abandon: Abandon) {
        let mut state = self.state.lock();
        let is_failed = state.failed.is_some();
        if let Some(place) = state.requests.get_mut(&number) {
            *place = Some(abandon);
        } else if is_failed {
            drop(state);
            abandon();
        }
    }

    /// Ends a request; false if it was given up.
    fn answered(&self, number: u64) -> bool {
        self.state.lock().requests.remove(&number).is_some()
    }

    /// Calls `then` with the answer of a request, unless it was given up.
    fn on_answer<T: 'static>(
        &self,
        number: u64,
        then: impl FnOnce(&Member, T) + Send + 'static,
    ) -> Done<T> {
        let own = self.own.clone();
        Box::new(move |answer| {
            let Some(member) = own.upgrade().filter(|member| member.answered(number)) else {
                return;
            };
            match answer {
                Ok(value) => then(&member, value),
                Err(error) => member.fail(error),
            }
        })
    }

    /// What it says to join its group.
    fn group_request(&self) -> GroupRequest {
        let Join { key, size, kind, device, .. } = &self.join;
        GroupRequest { key: key.group, size: *size, kind: *kind, device: device.clone() }
    }

    fn join_group(&self) {
        let Some(number) = self.request() else { return };
        let (key, request) = (self.join.key, self.group_request());
        let done = self.on_answer(number, Member::join_instance);
        let Some(remote) = self.all.remote(key.step) else {
            let all = Arc::clone(&self.all);
            let (group, joined) = (key.group, self.all.groups.join(request, done));
            return self.started(number, Box::new(move || all.groups.leave(group, joined)));
        };
        match self.all.known(&request) {
            Some(group) => done(Ok(group)),
            None => {
                let abandon = remote.join_group(key.step, request, done);
                self.started(number, abandon);
            }
        }
    }

    fn join_instance(&self, group: Arc<Group>) {
        let Join { key, device, .. } = &self.join;
        let Some(place) = group.place_of(&device.name) else {
            let name = &device.name;
            let message = format!("group {} does not have the device {name}", group.key);
            return self.fail(KernelError::internal(message));
        };
        let size = group.devices.len();
        self.state.lock().group = Some((Arc::clone(&group), place as u32));
        let is_shared = self.all.remote(key.step).is_some();
        if is_shared {
            let agreed = Agreed::of(&group, &self.join);
            self.all.keep(group);
            let joined = self.buffers.join(place as u32, agreed, &self.join, self.own.clone());
            if let Err(error) = joined {
                return self.fail(error);
            }
        }
        match is_shared && is_shown(&self.join) {
            true => self.complete(Place { place: place as u32, size: size as u32, source: 0 }),
            false => self.ask_for_instance(place, size),
        }
    }

    /// Joins the operation at the leader, which compares what the members say and knows the source of a broadcast.
    fn ask_for_instance(&self, place: usize, size: usize) {
        let Some(number) = self.request() else { return };
        let Join { key, kind, device, dtype, dims, is_source, .. } = &self.join;
        let request = InstanceRequest {
            key: *key,
            size,
            kind: *kind,
            dtype: *dtype,
            dims: dims.clone(),
            is_source: *is_source,
            device: (device.name.clone(), place),
        };
        let done = self.on_answer(number, move |member: &Member, source: usize| {
            member.complete(Place {
                place: place as u32,
                size: size as u32,
                source: source as u32,
            });
        });
        if let Some(remote) = self.all.remote(key.step) {
            let abandon = remote.join_instance(request, done);
            return self.started(number, abandon);
        }
        let (all, key) = (Arc::clone(&self.all), *key);
        let joined = all.groups.join_instance(request, done);
        let given_up = KernelError::new(Code::CANCELLED, "a member gave the collective up");
        let leave = move || all.groups.leave_instance(&key, joined, &given_up);
        self.started(number, Box::new(leave));
    }

    /// Asks the leader for the group again, if it has waited for long: others may form it anew meanwhile, and wait for this
    /// one. The operation fails if the group is another one then.
    pub(super) fn look(&self, now: Instant) {
        let Some(remote) = self.all.remote(self.join.key.step) else { return };
        let mut state = self.state.lock();
        let pause = LOOK.saturating_mul(1 << state.looks.min(20));
        let is_due = now.saturating_duration_since(self.begun) >= pause;
        let Some((group, _)) = state.group.clone().filter(|_| is_due) else { return };
        state.looks += 1;
        drop(state);
        let Some(number) = self.request() else { return };
        let done = self.on_answer(number, move |member: &Member, found: Arc<Group>| {
            if *found != *group {
                let key = found.key;
                let message = format!("group {key} was formed anew: run the step again");
                member.fail(KernelError::new(Code::ABORTED, message));
            }
        });
        let abandon = remote.join_group(self.join.key.step, self.group_request(), done);
        self.started(number, abandon);
    }

    /// How the call takes part.
    pub(super) fn joined(&self) -> &Join {
        &self.join
    }

    fn complete(&self, place: Place) {
        let mut state = self.state.lock();
        state.is_ready = true;
        let ready = state.ready.take();
        drop(state);
        if let Some(ready) = ready {
            ready(Ok(place));
        }
    }

    /// Fails the operation: what waits here, and what members of other tasks wait for. Only the first error counts.
    pub fn fail(&self, error: KernelError) {
        let mut state = self.state.lock();
        if state.failed.is_some() {
            return;
        }
        state.failed = Some(error.clone());
        let requests = std::mem::take(&mut state.requests);
        let arrivals = std::mem::take(&mut state.arrivals);
        let (ready, group) = (state.ready.take(), state.group.take());
        drop(state);
        if let Some((group, _)) = group {
            self.all.forget(&group);
        }
        requests.into_values().flatten().for_each(|abandon| abandon());
        self.buffers.abort(&error);
        arrivals.into_values().for_each(|done| done(Err(error.clone())));
        if let Some(ready) = ready {
            ready(Err(error));
        }
    }

    /// Fails the operation because its time has passed.
    pub(super) fn time_out(&self) {
        let is_ready = self.state.lock().is_ready;
        let Join { key, timeout, .. } = &self.join;
        let what = if is_ready { "during its exchange" } else { "waiting for other members" };
        let message = format!(
            "collective instance {} of group {} has timed out {what}, after {:?}",
            key.instance,
            key.group,
            timeout.unwrap_or_default()
        );
        self.fail(KernelError::new(Code::DEADLINE_EXCEEDED, message));
    }

    /// The group and the place of the call, once it is ready.
    fn place(&self) -> Result<(Arc<Group>, u32), KernelError> {
        let state = self.state.lock();
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        let not_ready = || KernelError::internal("a collective was used before all had joined");
        state.group.clone().filter(|_| state.is_ready).ok_or_else(not_ready)
    }

    fn key(&self, from: u32, to: u32, number: u64) -> BufferKey {
        BufferKey { instance: self.join.key, from, to, number }
    }

    /// Sends a tensor to a member.
    ///
    /// # Errors
    /// The group has no member at that place, or the operation has failed.
    pub fn send(&self, to: u32, number: u64, tensor: Tensor) -> Result<(), KernelError> {
        let (group, place) = self.place()?;
        member_of(&group, to)?;
        self.buffers.send(self.key(place, to, number), tensor)
    }

    /// Takes a tensor that a member sends.
    pub fn recv(&self, from: u32, number: u64, done: Arrived) {
        let (group, place) = match self.place() {
            Ok(place) => place,
            Err(error) => return done(Err(error)),
        };
        let key = self.key(from, place, number);
        let device = match member_of(&group, from) {
            Ok(device) => device.clone(),
            Err(error) => return done(Err(error)),
        };
        let step = self.join.key.step;
        let Some(remote) = self.all.remote(step) else { return self.buffers.recv(key, done) };
        let agreed = Agreed::of(&group, &self.join);
        if remote.is_here(step, &device.name) {
            return self.buffers.recv_agreed(key, agreed, done);
        }
        let Some(request) = self.request() else {
            return done(Err(KernelError::new(Code::CANCELLED, "the collective has failed")));
        };
        self.state.lock().arrivals.insert(request, done);
        let (to, dtype) = (self.join.device.clone(), self.join.dtype);
        let own = self.own.clone();
        let arrived: Arrived = Box::new(move |tensor| {
            let Some(member) = own.upgrade() else { return };
            let mut state = member.state.lock();
            state.requests.remove(&request);
            let done = state.arrivals.remove(&request);
            drop(state);
            if let Some(done) = done {
                done(tensor);
            }
        });
        let abandon = remote.receive(Wanted { key, from: device, to, dtype, agreed }, arrived);
        self.started(request, abandon);
    }
}

impl Drop for Member {
    /// Gives up what it has asked for and needs no more.
    fn drop(&mut self) {
        let requests = std::mem::take(&mut self.state.lock().requests);
        requests.into_values().flatten().for_each(|abandon| abandon());
    }
}

/// A device of a group.
fn member_of(group: &Group, at: u32) -> Result<&GroupDevice, KernelError> {
    group.devices.get(at as usize).ok_or_else(|| {
        let size = group.devices.len();
        KernelError::invalid_argument(format!("group {} has no member {at} of {size}", group.key))
    })
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member").field("join", &self.join).finish_non_exhaustive()
    }
}
