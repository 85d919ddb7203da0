//! The functions behind the fuzz targets, placed here so that tests run them too.

use crate::{decode_graph_def, encode};

/// Reads `data` as a graph; a graph that was read must stay the same when it is written and read
/// again.
///
/// # Panics
/// When it changes, which is the finding. Bytes are compared rather than messages, since NaN
/// differs from itself.
pub fn fuzz_graph_def(data: &[u8]) {
    let Ok(graph) = decode_graph_def(data) else {
        return;
    };
    let written = encode(&graph).expect("a graph that was read can be written");
    let again = decode_graph_def(&written).expect("a graph that was written can be read");
    assert_eq!(encode(&again).as_ref(), Ok(&written), "writing is not stable");
}
