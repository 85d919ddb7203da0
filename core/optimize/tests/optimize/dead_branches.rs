use crate::{
    bench::{Case, check},
    support::{count_to_ten, x},
};
use tenon_framework::Tensor;
use tenon_graph::{GraphBuilder, NodeId, Output};

/// `if (p) relu(x) else -x`; returns the `Merge`.
fn branches(b: &mut GraphBuilder<'static>, p: Output) -> NodeId {
    let x = x(b);
    let s = b.op("Switch").name("s").input(x).input(p).build().unwrap();
    let yes = b.op("Relu").name("yes").input(Output::new(s, 1)).build().unwrap();
    let no = b.op("Neg").name("no").input(Output::new(s, 0)).build().unwrap();
    b.op("Merge").name("m").input(no).input(yes).build().unwrap()
}

fn constant(b: &mut GraphBuilder<'static>, value: bool) -> Output {
    b.constant("p", Tensor::scalar(value).unwrap()).unwrap()
}

#[test]
fn the_branch_that_is_taken_is_all_that_is_left() {
    for (value, branch) in
        [(true, "yes = Relu(x)\nm = Identity(yes)"), (false, "no = Neg(x)\nm = Identity(no)")]
    {
        check("dead_branches", branch, |b| {
            let p = constant(b, value);
            vec![branches(b, p).into()]
        });
    }
}

#[test]
fn the_number_of_the_branch_is_known() {
    check(
        "dead_branches",
        "m = Identity(yes)\nm/value_index = Const() ^m\ny = Neg(m/value_index)\nyes = Relu(x)",
        |b| {
            let p = constant(b, true);
            let merge = branches(b, p);
            let y = b.op("Neg").name("y").input(Output::new(merge, 1)).build().unwrap();
            vec![y.into(), merge.into()]
        },
    );
}

#[test]
fn a_predicate_that_is_fed_leaves_both() {
    let mut case = Case::new(|b| {
        let p = constant(b, true);
        vec![branches(b, p).into()]
    });
    case.feeds.push(case.graph.tensor("p").unwrap());
    let after = case.after("dead_branches");
    assert!(after.contains("m = Merge(no, yes)") && after.contains("s = Switch(x, p)"), "{after}");
}

#[test]
fn a_fetch_on_the_dead_branch_is_left_for_the_step_to_refuse() {
    let case = Case::new(|b| {
        let p = constant(b, true);
        let merge = branches(b, p);
        let no = b.graph().find("no").unwrap();
        vec![merge.into(), no.into()]
    });
    let after = case.after("dead_branches");
    assert!(after.contains("s = Switch(x, p)") && after.contains("m = Merge(no, yes)"), "{after}");
}

#[test]
fn loops_are_left_alone() {
    let case = Case::new(|b| {
        let p = constant(b, true);
        vec![branches(b, p).into(), count_to_ten(b, "loop")]
    });
    assert!(case.after("dead_branches").contains("m = Merge(no, yes)"));
    let all = case.after("all");
    assert!(all.contains("loop/exit = Exit(loop/switch)"), "{all}");
}
