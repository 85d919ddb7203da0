//! Resources and variables.

use super::*;
use crate::call::Cancellation;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tenon_framework::{
    Code, DType, KernelError, Tensor,
    tensor::{Buffer, host_memory},
};

struct Counted(Arc<AtomicUsize>);

impl Resource for Counted {
    fn type_name(&self) -> &str {
        "test.Counted"
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A copy in a new buffer.
fn copied(tensor: &Tensor) -> Result<Tensor, KernelError> {
    Ok(Tensor::from_bytes(tensor.dtype(), tensor.shape().dims(), tensor.as_bytes()?)?)
}

fn is_free(variable: &Variable, access: Access) -> bool {
    let step = Cancellation::new();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| lock_variables(&[variable], access, &step, copied));
        std::thread::sleep(Duration::from_millis(20));
        step.cancel();
        let locked = waiting.join().unwrap().is_ok();
        if locked {
            unlock_variables(&[variable]);
        }
        locked
    })
}

/// No value of a step shows the buffer.
fn unread(_: &Buffer) -> Result<bool, KernelError> {
    Ok(false)
}

#[test]
fn readers_share_a_variable_and_a_writer_has_it_alone() {
    let (variable, step) = (Variable::new("v", DType::FLOAT), Cancellation::new());
    for (access, shares) in
        [(Access::Shared, true), (Access::SharedUpdate, true), (Access::Exclusive, false)]
    {
        lock_variables(&[&variable, &variable], access, &step, copied).unwrap();
        assert_eq!(is_free(&variable, Access::Shared), shares, "{access:?}");
        assert!(!is_free(&variable, Access::Exclusive), "{access:?}");
        unlock_variables(&[&variable, &variable]);
        assert!(is_free(&variable, Access::Exclusive), "{access:?}");
    }
}

#[test]
fn a_writer_that_waits_is_not_overtaken_and_leaves_nothing_when_it_is_cancelled() {
    let (variable, reader) = (Variable::new("v", DType::FLOAT), Cancellation::new());
    lock_variables(&[&variable], Access::Shared, &reader, copied).unwrap();
    let writer = Cancellation::new();
    std::thread::scope(|scope| {
        let waiting =
            scope.spawn(|| lock_variables(&[&variable], Access::Exclusive, &writer, copied));
        while !variable.is_awaited() {
            std::thread::yield_now();
        }
        assert!(!is_free(&variable, Access::Shared));
        writer.cancel();
        assert_eq!(waiting.join().unwrap().unwrap_err().code, Code::CANCELLED);
    });
    assert!(is_free(&variable, Access::Shared));
    unlock_variables(&[&variable]);
}

#[test]
fn a_shared_update_writes_in_place_where_nobody_else_has_the_value() {
    let (variable, step) = (Variable::new("v", DType::FLOAT), Cancellation::new());
    let assigned = Tensor::from_slice(&[2], &[1f32, 2.0]).unwrap();
    variable.set(Some(assigned.clone())).unwrap();
    assert!(!variable.copies_on_read());
    lock_variables(&[&variable], Access::SharedUpdate, &step, copied).unwrap();
    assert!(variable.copies_on_read(), "from the first such lock on");
    let slot = variable.slot_for_update(unread, copied).unwrap();
    // SAFETY: the slot shows two floats, which nothing else writes.
    unsafe { slot.data.cast::<f32>().write(7.0) };
    assert_eq!(
        variable.slot_for_update(unread, copied).unwrap().data,
        slot.data,
        "it is never copied"
    );
    unlock_variables(&[&variable]);
    assert_eq!(assigned.as_slice::<f32>().unwrap(), [1.0, 2.0], "who had the value keeps it");
    let seen = variable.snapshot(&step).unwrap();
    assert_eq!(seen.as_slice::<f32>().unwrap(), [7.0, 2.0]);
    lock_variables(&[&variable], Access::SharedUpdate, &step, copied).unwrap();
    // SAFETY: the slot shows two floats, which nothing else writes.
    unsafe { variable.slot_for_update(unread, copied).unwrap().data.cast::<f32>().write(8.0) };
    unlock_variables(&[&variable]);
    assert_eq!(seen.as_slice::<f32>().unwrap(), [7.0, 2.0], "a reader has a copy");
}

#[test]
fn readers_that_share_a_variable_cannot_write_it() {
    let (variable, step) = (Variable::new("v", DType::FLOAT), Cancellation::new());
    let assigned = Tensor::from_slice(&[1], &[1f32]).unwrap();
    variable.set(Some(assigned.clone())).unwrap();
    lock_variables(&[&variable], Access::Shared, &step, copied).unwrap();
    let error = variable.slot_for_update(unread, copied).map(drop).unwrap_err();
    assert_eq!(error.code, Code::FAILED_PRECONDITION);
    assert!(error.message.contains("lock it exclusively"), "{}", error.message);
    unlock_variables(&[&variable]);
}

#[test]
fn devices_have_tables_of_their_own_and_a_container_is_cleared_on_all() {
    let resources = Resources::new();
    let (a, b) = (resources.of("/device:A:0"), resources.of("/device:B:0"));
    let of = |manager: &ResourceManager| manager.variable("", "v", DType::FLOAT).unwrap();
    let same = |x: &ResourceRef, y: &ResourceRef| std::ptr::eq(x.get(), y.get());
    assert!(same(&of(&a), &of(&resources.of("/device:A:0"))));
    assert!(!same(&of(&a), &of(&b)));
    let devices: Vec<String> = resources.list().into_iter().map(|found| found.device).collect();
    assert_eq!(devices, ["/device:A:0", "/device:B:0"]);
    assert_eq!(resources.clear(""), 2);
    assert!(resources.list().is_empty());
}

#[test]
fn what_is_in_a_step_s_container_goes_with_the_step() {
    let resources = Resources::new();
    let manager = resources.of("");
    for container in [step_container(7), step_container(8), String::new()] {
        manager.variable(&container, "v", DType::FLOAT).unwrap();
    }
    resources.end_step(9);
    assert_eq!(resources.list().len(), 3);
    resources.end_step(7);
    assert_eq!(resources.list().len(), 2);
    assert!(manager.remove(&step_container(8), "v", VARIABLE_TYPE));
    resources.end_step(8);
    assert_eq!(resources.list().len(), 1);
}

#[test]
fn a_resource_without_a_name_is_made_each_time_and_dies_with_its_last_holder() {
    let resources = Resources::new();
    let (manager, freed) = (resources.of(""), Arc::new(AtomicUsize::new(0)));
    let make = || {
        manager.find_or_make("", "", "test.Counted", || {
            Ok(ResourceRef::new(Counted(Arc::clone(&freed))))
        })
    };
    let (first, second) = (make().unwrap(), make().unwrap());
    assert!(!std::ptr::eq(first.get(), second.get()));
    assert!(resources.list().is_empty());
    drop(first);
    assert_eq!(freed.load(Ordering::SeqCst), 1);
    drop(second);
    assert_eq!(freed.load(Ordering::SeqCst), 2);
}

#[test]
fn bools_that_a_kernel_wrote_into_a_variable_are_0_or_1_once_it_is_unlocked() {
    let (variable, cancellation) =
        (Variable::new("v", tenon_framework::DType::BOOL), Cancellation::new());
    variable.set(Some(Tensor::from_slice(&[3], &[false, true, true]).unwrap())).unwrap();
    lock_variables(&[&variable], Access::Exclusive, &cancellation, copied).unwrap();
    let slot = variable.slot_for_update(unread, |tensor| Ok(tensor.clone())).unwrap();
    // SAFETY: the lock is held, and the slot shows three bytes.
    unsafe { slot.data.cast::<[u8; 3]>().write([0, 40, 255]) };
    unlock_variables(&[&variable]);
    let value = variable.value().unwrap();
    assert_eq!(value.as_bytes().unwrap(), [0, 1, 1]);
    value.validate().unwrap();
}

#[test]
fn a_resource_is_made_once_found_again_and_freed_with_its_last_holder() {
    let resources = Resources::new();
    let manager = resources.of("");
    let freed = Arc::new(AtomicUsize::new(0));
    let made = AtomicUsize::new(0);
    let make = |name: &str| {
        manager
            .find_or_make("", name, "test.Counted", || {
                made.fetch_add(1, Ordering::SeqCst);
                Ok(ResourceRef::new(Counted(Arc::clone(&freed))))
            })
            .unwrap()
    };
    let (a, again, _b) = (make("a"), make("a"), make("b"));
    assert_eq!(made.load(Ordering::SeqCst), 2);
    assert!(manager.find(DEFAULT_CONTAINER, "a", "test.Counted").is_some());
    assert!(manager.find("other", "a", "test.Counted").is_none());
    assert!(manager.find("", "a", "test.Other").is_none());
    assert!(manager.remove("", "a", "test.Counted"));
    assert!(!manager.remove("", "a", "test.Counted"));
    drop(a);
    assert_eq!(freed.load(Ordering::SeqCst), 0, "one holder is left");
    drop(again);
    assert_eq!(freed.load(Ordering::SeqCst), 1);
}

#[test]
fn a_container_is_cleared_and_others_stay() {
    let resources = Resources::new();
    let manager = resources.of("");
    manager.variable("", "v", DType::FLOAT).unwrap();
    manager.variable("other", "v", DType::FLOAT).unwrap();
    let kind = VARIABLE_TYPE.to_owned();
    assert_eq!(
        manager.list(),
        [
            ("localhost".to_owned(), "v".to_owned(), kind.clone()),
            ("other".to_owned(), "v".to_owned(), kind)
        ]
    );
    assert_eq!(manager.clear(""), 1);
    assert_eq!(manager.clear("localhost"), 0);
    assert_eq!(manager.list().len(), 1);
}

#[test]
fn a_factory_that_fails_or_asks_for_itself_leaves_nothing() {
    let resources = Resources::new();
    let manager = resources.of("");
    let no = || Err(KernelError::invalid_argument("no"));
    assert!(manager.find_or_make("", "a", "t", no).is_err());
    let error = manager.find_or_make("", "a", "t", || manager.find_or_make("", "a", "t", no));
    assert!(error.err().unwrap().message.contains("its factory asks for the resource itself"));
    assert!(manager.list().is_empty());
    let outer = manager.find_or_make("", "a", "t", || {
        manager.variable("", "inner", DType::FLOAT).map(|_| ())?;
        manager.variable("", "a", DType::FLOAT)
    });
    assert!(outer.is_ok(), "a factory may make others");
}

#[test]
fn many_threads_that_ask_at_once_get_one() {
    let resources = Resources::new();
    let manager = resources.of("");
    let made = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let result = manager.find_or_make("", "slow", VARIABLE_TYPE, || {
                    made.fetch_add(1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(20));
                    Ok(ResourceRef::new(Variable::new("slow", DType::FLOAT)))
                });
                assert!(result.is_ok());
            });
        }
    });
    assert_eq!(made.into_inner(), 1);
}

#[test]
fn a_variable_keeps_its_type() {
    let resources = Resources::new();
    let manager = resources.of("");
    let resource = manager.variable("", "v", DType::FLOAT).unwrap();
    let error = manager.variable("", "v", DType::INT32).err().unwrap();
    assert_eq!(
        error.message,
        "variable 'v' holds float, asked for as int32: use another name or the same type"
    );
    let variable = Variable::of(&resource).unwrap();
    let error = variable.set(Some(Tensor::scalar(1i32).unwrap())).unwrap_err();
    assert_eq!(error.message, "variable 'v' holds float, assigned int32");
    let unset = variable.slot().err().unwrap();
    assert_eq!(unset.code, Code::FAILED_PRECONDITION);
}

#[test]
fn an_update_copies_only_when_somebody_else_holds_the_value() {
    let variable = Variable::new("v", DType::INT32);
    variable.set(Some(Tensor::from_slice(&[2], &[1i32, 2]).unwrap())).unwrap();
    let copy = |tensor: &Tensor| crate::memory::copy_on_host(tensor, host_memory());
    let before = variable.slot().unwrap().data;
    let alone = variable.slot_for_update(unread, copy).unwrap();
    assert_eq!(alone.data, before);
    let reader = variable.value().unwrap();
    let shared = variable.slot_for_update(unread, copy).unwrap();
    assert_ne!(shared.data, before);
    // SAFETY: the variable's own buffer of two elements, which nothing else holds.
    unsafe { *shared.data.cast::<i32>() = 7 };
    assert_eq!(reader.as_slice::<i32>().unwrap(), &[1, 2]);
    assert_eq!(variable.value().unwrap().as_slice::<i32>().unwrap(), &[7, 2]);
}

#[test]
fn locks_in_any_order_do_not_wait_for_each_other_for_ever() {
    let variables: Vec<Variable> =
        (0..3).map(|at| Variable::new(&format!("v{at}"), DType::INT32)).collect();
    for variable in &variables {
        variable.set(Some(Tensor::scalar(0i32).unwrap())).unwrap();
    }
    let cancellation = Cancellation::new();
    let add = |order: [usize; 3]| {
        for _ in 0..300 {
            // A duplicate is locked once.
            let list: Vec<&Variable> =
                order.iter().chain(&order[..1]).map(|&at| &variables[at]).collect();
            let _locked = LockedVariables::lock(&list, &cancellation).unwrap();
            for variable in &variables {
                let value = variable.value().unwrap().as_slice::<i32>().unwrap()[0];
                std::thread::yield_now();
                variable.set(Some(Tensor::scalar(value + 1).unwrap())).unwrap();
            }
        }
    };
    std::thread::scope(|scope| {
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
            let add = &add;
            scope.spawn(move || add(order));
        }
    });
    for variable in &variables {
        assert_eq!(variable.value().unwrap().as_slice::<i32>().unwrap(), &[1200]);
    }
}

#[test]
fn a_cancelled_step_stops_waiting_and_holds_nothing() {
    let (first, second) = (Variable::new("a", DType::INT32), Variable::new("b", DType::INT32));
    let holder = Cancellation::new();
    let held = LockedVariables::lock(&[&second], &holder).unwrap();
    let step = Cancellation::new();
    std::thread::scope(|scope| {
        let waiting =
            scope.spawn(|| lock_variables(&[&first, &second], Access::Exclusive, &step, copied));
        std::thread::sleep(Duration::from_millis(20));
        step.cancel();
        let error = waiting.join().unwrap().unwrap_err();
        assert_eq!(error.code, Code::CANCELLED);
        assert_eq!(error.message, "the step was cancelled while it waited for variable 'b'");
    });
    // The first variable is free again, and the second still held.
    drop(LockedVariables::lock(&[&first], &holder).unwrap());
    drop(held);
    drop(LockedVariables::lock(&[&first, &second], &holder).unwrap());
}
