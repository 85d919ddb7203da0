//! Gradients of ops that move elements.

use super::numeric::{any, check, ints};
use tenon_tests::session::runtime;

#[test]
fn reshapes() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    check(&runtime, "Reshape", &[any(&[2, 3]), ints(&[3, -1])]);
}
