//! Mutexes between steps: a lock is a value, which unlocks when its last copy is gone.

use crate::shape::{nothing_known, scalar_output};
use tenon_author::register_op;

register_op!(
    "MutexV2",
    outputs = &["resource: resource"],
    attrs = &["container: string = ''", "shared_name: string = ''"],
    stateful = true,
    shape = scalar_output,
    summary = "The handle of a mutex.",
);

register_op!(
    "MutexLock",
    inputs = &["mutex: resource"],
    outputs = &["mutex_lock: variant"],
    stateful = true,
    shape = scalar_output,
    summary = "Waits for a mutex, and locks it for as long as the output lives.",
);

register_op!(
    "ConsumeMutexLock",
    inputs = &["mutex_lock: variant"],
    stateful = true,
    shape = nothing_known,
    summary = "Takes a lock in, so that its last copy can go.",
);
