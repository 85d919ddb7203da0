use crate::{
    bench::{Case, text},
    support::x,
};
use tenon_framework::DType;
use tenon_graph::{NodeId, Output};
use tenon_optimize::{Draft, NewNode, Pass, PassError, built_in};

/// A pass of a test.
struct Does(&'static str, fn(&mut Draft<'_>) -> Result<(), PassError>);

impl Pass for Does {
    fn name(&self) -> &str {
        self.0
    }

    fn run(&self, draft: &mut Draft<'_>) -> Result<(), PassError> {
        (self.1)(draft)
    }
}

fn two_relus() -> Case {
    Case::new(|b| {
        let x = x(b);
        let a = b.op("Relu").name("a").input(x).build().unwrap();
        let y = b.op("Neg").name("y").input(a).build().unwrap();
        b.op("Neg").name("elsewhere").input(a).build().unwrap();
        vec![y.into()]
    })
}

fn named(draft: &Draft<'_>, name: &str) -> NodeId {
    let order = draft.order().unwrap();
    order.into_iter().find(|id| draft.node(*id).name == name).unwrap()
}

/// Makes all possible changes, and then fails.
fn fails(draft: &mut Draft<'_>) -> Result<(), PassError> {
    let (a, y) = (named(draft, "a"), named(draft, "y"));
    let added = draft.add(a, "more", NewNode::new("Neg").input(a))?;
    draft.redirect(a.into(), added.into())?;
    draft.replace(y, NewNode::new("Relu").input(draft.node(a).inputs[0]))?;
    draft.sweep();
    draft.note(y, "is worse");
    Err(PassError::Failed("nothing came of it".to_owned()))
}

#[test]
fn a_pass_that_fails_leaves_the_graph_and_says_so() {
    let case = two_relus();
    let failing = Does("failing", fails);
    let done = case.optimized(&[&failing]);
    assert_eq!(text(&done), "a = Relu(x)\ny = Neg(a)");
    let report = &done.report;
    assert_eq!(report.failures().collect::<Vec<_>>(), [("failing", "nothing came of it")]);
    assert_eq!((report.passes[0].runs, report.passes[0].changes.len(), report.rounds), (1, 0, 1));
    assert_eq!(done.graph.len(), case.graph.len());
    // The passes after it still run.
    let after = Does("after", |draft| {
        let (a, y) = (named(draft, "a"), named(draft, "y"));
        draft.redirect(a.into(), draft.node(a).inputs[0])?;
        draft.note(y, "reads the input");
        Ok(())
    });
    let done = case.optimized(&[&failing, &after]);
    assert_eq!(text(&done), "y = Neg(x)");
    assert!(
        done.report
            .of("a")
            .any(|(pass, change)| pass == "after" && change.what.contains("no longer needed"))
    );
}

#[test]
fn a_cycle_is_a_failure() {
    let done = two_relus().optimized(&[&Does("cyclic", |draft| {
        let (a, y) = (named(draft, "a"), named(draft, "y"));
        draft.set_control(a, vec![y]);
        Ok(())
    })]);
    assert_eq!(text(&done), "a = Relu(x)\ny = Neg(a)");
    let (_, error) = done.report.failures().next().unwrap();
    assert!(error.contains("without cycles"), "{error}");
}

#[test]
fn edits_that_change_types_or_shapes_are_refused() {
    two_relus().optimized(&[&Does("looks", |draft| {
        let (a, y) = (named(draft, "a"), named(draft, "y"));
        let refused = |result: Result<(), PassError>, expected: &str| {
            let error = result.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        let shape = NewNode::new("Shape").input(a);
        refused(draft.replace(y, shape), "'y:0': expected type float, found int32");
        let one = NewNode::new("Sum").input(a).input(a);
        refused(draft.replace(y, one), "node 'y'");
        let none = NewNode::new("NoSuchOp").input(a);
        refused(draft.replace(y, none), "op 'NoSuchOp' is not registered");
        let unknown = NewNode::new("Relu").input(Output::new(NodeId(99), 0));
        refused(draft.replace(y, unknown), "expected a node of the step's graph");
        let gone = NewNode::new("Relu").input(NodeId(3));
        assert!(!draft.is_live(NodeId(3)), "no step needs it");
        refused(draft.replace(y, gone), "expected a node of the step's graph");
        let rank = draft.add(a, "rank", NewNode::new("Rank").input(a))?;
        refused(draft.redirect(a.into(), rank.into()).map(drop), "expected type float");
        let x = draft.node(a).inputs[0].node;
        refused(draft.replace(x, NewNode::new("Relu").input(a)), "stays as it is");
        Ok(())
    })]);
}

#[test]
fn stateful_nodes_run_whoever_needs_them() {
    let case = Case::new(|b| {
        let x = x(b);
        let v = b.op("TestVariable").name("v").attr("dtype", DType::FLOAT).build().unwrap();
        let read = b.op("Identity").name("read").input(v).build().unwrap();
        let y = b.op("AddV2").name("y").input(x).input(read).build().unwrap();
        vec![y.into()]
    });
    let done = case.optimized(&[&Does("forgets", |draft| {
        let (y, read) = (named(draft, "y"), named(draft, "read"));
        let x = draft.node(y).inputs[0];
        draft.redirect(read.into(), x).map(drop)
    })]);
    assert_eq!(text(&done), "v = TestVariable()\ny = AddV2(x, x)");
    assert_eq!(done.sub.targets.len(), 1);
}

#[test]
fn passes_repeat_until_nothing_changes() {
    let case = Case::new(|b| {
        let x = x(b);
        let one = b.constant("one", crate::support::floats(&[])).unwrap();
        let two = b.op("AddV2").name("two").input(one).input(one).build().unwrap();
        // Known to be 1 only after folding.
        let scaled = b.op("Mul").name("scaled").input(x).input(two).build().unwrap();
        let passed = b.op("Identity").name("passed").input(scaled).build().unwrap();
        vec![b.op("Relu").name("y").input(passed).build().unwrap().into()]
    });
    assert_eq!(case.after("all"), "y = Relu(x)");
}

#[test]
fn names_of_passes_are_those_of_their_knobs() {
    let names: Vec<String> = built_in().iter().map(|pass| pass.name().to_owned()).collect();
    assert_eq!(names, tenon_optimize::BUILT_IN);
}
