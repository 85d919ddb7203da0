//! What a caller may choose, and what is refused.

use tenon_gradient::{Options, gradients};
use tenon_graph::GraphBuilder;
use tenon_runtime::framework::{Code, DType, PartialShape};
use tenon_tests::session::runtime;

#[test]
fn an_op_without_a_gradient_is_named_with_the_path() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let x = b.placeholder("x", DType::DOUBLE, PartialShape::UNKNOWN).unwrap();
    let a = b.op("Neg").name("a").input(x).build().unwrap();
    let other = b.op("TruncateMod").name("mod").input(a).input(x).build().unwrap();
    let y = b.op("Square").name("y").input(other).build().unwrap();
    let error = gradients(&mut b, &[y.into()], &[x], &Options::default()).unwrap_err();
    assert_eq!(error.code(), Code::NOT_FOUND);
    assert_eq!(
        error.to_string(),
        "op 'TruncateMod' of node 'mod' has no gradient, but is on the path 'y' <- 'mod' <- 'a' <- 'x': register a \
         gradient for the op, or stop the gradient before it"
    );
}
