//! What a call reads and writes beside its buffers, what it reads of unwritten memory, and whether
//! it leaves its inputs alone.

use super::{
    judge::{Likeness, alike},
    plain::{First, Plain, said},
    site::{ReadOnly, Site, copies, name_outputs},
    steady::{Control, Wrong},
    verdicts::Verdicts,
};
use crate::{
    check::{clause::Clause, heap},
    harness::Form,
    node::{Refusal, Stage},
};
use std::sync::Arc;
use tenon_framework::{
    DType, Tensor,
    device::base::{DeviceBase, LocalDevice},
    tensor::Memory,
};
use tenon_runtime::host::{
    devices::{PluginDevice, copy_tensor},
    instance::call_once,
    memory::{
        HostMemory,
        guarded::{Guard, GuardOptions, Side},
    },
};

/// What fresh memory and the bytes beside buffers hold in a call that is held against the first.
#[derive(Clone, Copy)]
struct Setting {
    poison: u8,
    canary: u8,
    side: Side,
}

impl Setting {
    fn usual() -> Setting {
        let GuardOptions { poison, canary, .. } = GuardOptions::default();
        Setting { poison, canary, side: Side::End }
    }

    fn apply(self, guard: &Guard) {
        guard.set_poison(self.poison);
        guard.set_canary(self.canary);
        guard.set_side(self.side);
    }
}

/// Another setting, the clause that is broken where results change with it, and what it changes.
struct Other {
    setting: Setting,
    clause: Clause,
    what: &'static str,
}

impl Other {
    fn all() -> [Other; 2] {
        [
            Other {
                setting: Setting { poison: 0x5a, ..Setting::usual() },
                clause: Clause::Uninitialised,
                what: "memory that nobody wrote",
            },
            Other {
                setting: Setting { canary: 0x34, side: Side::Start, ..Setting::usual() },
                clause: Clause::Bounds,
                what: "bytes beside its inputs",
            },
        ]
    }
}

/// Judges the three clauses, the first call's findings aside.
pub(super) fn examine(plain: &Plain<'_>, first: &First, verdicts: &mut Verdicts<'_>) {
    for other in &Other::all() {
        under(plain, first, other, verdicts);
    }
    verdicts.pass(Clause::Uninitialised);
    if !plain.site.device().info().host_memory {
        on_device(plain, verdicts);
        let reason =
            "buffers in the device's own memory have nothing beside them that is looked at";
        verdicts.skip(Clause::Bounds, reason);
    }
}

/// Calls once more under another setting: where results change with it, they depend on what it sets.
fn under(plain: &Plain<'_>, first: &First, other: &Other, verdicts: &mut Verdicts<'_>) {
    let Some(guard) = HostMemory::guarded() else {
        return verdicts.skip(other.clause, "the process does not guard its memory");
    };
    verdicts.begin(other.clause);
    if plain.site.is_stateful() {
        return;
    }
    let likeness = first.likeness(&plain.site.subject.kernel);
    let call = || repeat(plain, verdicts);
    if let Some(problem) = changed(plain.site, (&first.outputs, likeness), (guard, other), call) {
        plain.tell(other.clause, Wrong::Differs(problem), first, verdicts);
    }
}

/// How the results of a call change under another setting.
fn changed(
    site: &Site<'_>,
    (first, likeness): (&[Tensor], Likeness<'_>),
    (guard, other): (&Guard, &Other),
    call: impl FnOnce() -> Option<Result<Vec<Tensor>, Refusal>>,
) -> Option<String> {
    let Other { setting, what, .. } = other;
    setting.apply(guard);
    heap::perturb(!setting.poison);
    poison_device(site.device(), first, setting.poison);
    let result = call();
    Setting::usual().apply(guard);
    heap::perturb(0);
    let kernel = &site.subject.kernel;
    let problem = match &result? {
        Ok(outputs) => alike(kernel, likeness, first, outputs).err()?,
        Err(refusal) => said(refusal),
    };
    Some(format!("the result changes with {what}: {problem}"))
}

/// What of memory that is not the call's its results depend on, and how.
pub(super) fn depends(control: &Control<'_>) -> Option<(Clause, String)> {
    let Control { site, case, inputs, first, likeness } = *control;
    let guard = HostMemory::guarded()?;
    Other::all().into_iter().find_map(|other| {
        let call = || Some(site.run(case, &copies(inputs)?, Form::Shapes));
        let problem = changed(site, (first, likeness), (guard, &other), call)?;
        Some((other.clause, problem))
    })
}

/// In how many of these calls under another setting, the one of a clause, results differ from the first.
pub(super) fn again(control: &Control<'_>, clause: Clause, calls: usize) -> usize {
    let Control { site, case, inputs, first, likeness } = *control;
    let (Some(guard), Some(other)) =
        (HostMemory::guarded(), Other::all().into_iter().find(|other| other.clause == clause))
    else {
        return calls;
    };
    let differs = |_: &usize| {
        let call = || Some(site.run(case, &copies(inputs)?, Form::Shapes));
        changed(site, (first, likeness), (guard, &other), call).is_some()
    };
    (0..calls).filter(differs).count()
}

/// The call on copies of the inputs, which are in memory of the present setting.
fn repeat(plain: &Plain<'_>, verdicts: &mut Verdicts<'_>) -> Option<Result<Vec<Tensor>, Refusal>> {
    let inputs = ReadOnly::copies(plain.inputs)?;
    let result = plain.call(Form::Shapes, inputs.tensors(), verdicts);
    if let Ok(outputs) = &result {
        name_outputs(outputs, inputs.tensors());
    }
    Some(result)
}

/// Leaves blocks of the outputs' sizes full of poison in the pool of a device's own memory, which gives them
/// to the next caller. This does not reach a pool that gives other blocks.
fn poison_device(device: &Arc<PluginDevice>, outputs: &[Tensor], byte: u8) {
    if device.info().host_memory {
        return;
    }
    let memory = device.ordinary_memory();
    // All are held before the first goes back, so that each output finds one. What cannot be made is left.
    let _blocks: Vec<Tensor> = outputs
        .iter()
        .filter(|output| !output.dtype().needs_drop())
        .filter_map(|output| {
            let bytes = vec![byte; output.byte_len()];
            let poison = Tensor::from_bytes(DType::UINT8, &[bytes.len() as i64], &bytes).ok()?;
            copy_tensor(&poison, None, &memory, local(device, &memory)).ok()
        })
        .collect();
}

/// The inputs' copies in a device's own memory are looked at after the call.
fn on_device(plain: &Plain<'_>, verdicts: &mut Verdicts<'_>) {
    verdicts.begin(Clause::Inputs);
    match changed_on_device(plain.site, plain) {
        Ok(Some(at)) => {
            let problem = format!(
                "the call changed input {at} in the device's memory, which it does not own"
            );
            verdicts.fail(Clause::Inputs, plain.on(problem));
        }
        Ok(None) => {}
        Err(refusal) => verdicts.fail(Clause::Inputs, plain.on(said(&refusal))),
    }
}

/// The first input that is not what it was, after a call on copies of the inputs where the kernel takes them.
fn changed_on_device(site: &Site<'_>, plain: &Plain<'_>) -> Result<Option<usize>, Refusal> {
    let node = site.node(plain.case, plain.inputs, Form::Shapes)?;
    let instance = site.instance(&node, Form::Shapes)?;
    let device = site.device();
    let place = |(at, tensor): (usize, &Tensor)| match instance.input_memory(at) {
        Some(memory) => copy_tensor(tensor, None, memory, local(device, memory))
            .map_err(Refusal::at(Stage::Compute)),
        None => Ok(tensor.clone()),
    };
    let placed: Vec<Tensor> =
        plain.inputs.iter().enumerate().map(place).collect::<Result<_, _>>()?;
    call_once(&instance, &placed, &site.env()).map_err(Refusal::at(Stage::Compute))?;
    let host: Arc<dyn Memory> = HostMemory::shared().clone();
    for (at, (tensor, before)) in placed.iter().zip(plain.inputs).enumerate() {
        let from = local(device, tensor.buffer().memory());
        let now = copy_tensor(tensor, from, &host, None).map_err(Refusal::at(Stage::Compute))?;
        if !crate::harness::compare_bytes(before, &now) {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// The device, where the memory is its own.
fn local<'a>(
    device: &'a Arc<PluginDevice>,
    memory: &Arc<dyn Memory>,
) -> Option<&'a dyn LocalDevice> {
    (memory.device() == device.number()).then_some(&**device as &dyn LocalDevice)
}
