//! Notifications that a test hears.

use std::{
    ffi::c_void,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
};
use tenon_cuda::Cuda;
use tenon_sdk::{Code, abi::Notify, device::author::Notification};

/// A device to let go of, and who hears of it then.
type Held = (Option<Arc<Cuda>>, Sender<Code>);

unsafe extern "C" fn tell(data: *mut c_void, code: Code) {
    // SAFETY: `held` gives a box, and this is called once.
    let (device, sender) = *unsafe { Box::from_raw(data.cast::<Held>()) };
    drop(device);
    sender.send(code).expect("the test listens");
}

fn held(device: Option<Arc<Cuda>>) -> (Notification, Receiver<Code>) {
    let (sender, receiver) = channel();
    let data = Box::into_raw(Box::new((device, sender))).cast();
    // SAFETY: `tell` takes the box, once, from any thread.
    (unsafe { Notification::new(Notify { run: Some(tell) }, data) }, receiver)
}

/// A notification, and where it is heard.
pub fn notification() -> (Notification, Receiver<Code>) {
    held(None)
}

/// One whose call lets go of a device, before it is heard.
pub fn farewell(device: &Arc<Cuda>) -> (Notification, Receiver<Code>) {
    held(Some(Arc::clone(device)))
}
