//! The keys of transfers as text, as workers of different processes exchange them: names and incarnation of the devices, the
//! name of the tensor, and the frame with its iteration. Both ends compare them byte for byte.

use crate::refusal::Refusal;
use tenon_framework::text::cut;
use tenon_runtime::rendezvous::{EdgeName, Edges, Key};

/// The task of a device, such as `/job:ps/replica:0/task:0`.
pub(crate) fn task_of(device: &str) -> &str {
    device.find("/device:").map_or(device, |at| &device[..at])
}

/// What the name of a device says besides its task, such as `/device:CPU:0`.
pub(crate) fn in_task(device: &str) -> &str {
    &device[task_of(device).len()..]
}

/// The text of a key.
pub(crate) fn text(key: &Key) -> String {
    edge_text(key.edge.name(), key.frame, key.iteration)
}

/// The text of the key of an edge outside all loops.
pub(crate) fn of_edge(edge: &EdgeName) -> String {
    edge_text(edge, 0, 0)
}

fn edge_text(edge: &EdgeName, frame: u64, iteration: u64) -> String {
    let EdgeName { source, incarnation, destination, tensor } = edge;
    format!("{source};{incarnation:016x};{destination};{tensor};{frame}:{iteration}")
}

/// Reads a key.
///
/// # Errors
/// Text of another form.
pub(crate) fn parse(edges: &Edges, text: &str) -> Result<Key, Refusal> {
    read(edges, text).ok_or_else(|| {
        Refusal::invalid(format!(
            "key '{}': expected SENDER;INCARNATION;RECEIVER;TENSOR;FRAME:ITERATION",
            cut(text)
        ))
    })
}

fn read(edges: &Edges, text: &str) -> Option<Key> {
    let mut parts = text.split(';');
    let mut next = || parts.next();
    let (source, incarnation, destination, tensor) = (next()?, next()?, next()?, next()?);
    let (frame, iteration) = next()?.split_once(':')?;
    let incarnation = u64::from_str_radix(incarnation, 16).ok()?;
    let (frame, iteration) = (frame.parse().ok()?, iteration.parse().ok()?);
    let is_all = parts.next().is_none();
    let own = |text: &str| text.to_owned();
    let (source, destination, tensor) = (own(source), own(destination), own(tensor));
    let edge = EdgeName { source, incarnation, destination, tensor };
    is_all.then(|| Key { edge: edges.intern(edge), frame, iteration })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_is_written() {
        let edges = Edges::default();
        let written = "/job:ps/replica:0/task:0/device:CPU:0;00000000000000ff;\
                       /job:worker/replica:0/task:1/device:CPU:0;edge_5_w/read;18446744073709551615:3";
        let key = parse(&edges, written).unwrap();
        assert_eq!((key.edge.name().incarnation, key.frame, key.iteration), (255, u64::MAX, 3));
        assert_eq!(text(&key), written);
        for wrong in ["", "a;1;b;c", "a;x;b;c;0:0", "a;1;b;c;0", "a;1;b;c;0:0;d", "a;1;b;c;-1:0"] {
            let refusal = parse(&edges, wrong).unwrap_err();
            assert!(refusal.message.contains("expected SENDER;"), "{wrong}");
        }
    }
}
