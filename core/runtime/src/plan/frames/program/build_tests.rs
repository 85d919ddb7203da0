//! Programs of small frames, and of random ones, whose steps are compared with a direct evaluation.

use super::*;

/// A node that is added to the frame: its role, what it reads, what it waits for, and its number of outputs.
fn add(
    items: &mut Vec<Item>,
    role: Role,
    reads: &[(Source, u32)],
    controls: &[u32],
    count: u32,
) -> u32 {
    let start = items.last().map_or(0, |item| item.outputs.end);
    items.push(Item {
        role,
        inputs: reads
            .iter()
            .map(|&(source, output)| Input { source, output, counted: true })
            .collect(),
        controls: controls.iter().map(|&node| Source::Node(node)).collect(),
        outputs: Span { start, end: start + count },
    });
    items.len() as u32 - 1
}

/// `i = first; while below(i): i = next(i)`, whose entering value is output 8 and that of the iteration before 7.
fn counting() -> Vec<Item> {
    let mut items = Vec::new();
    add(&mut items, Role::Merge, &[(Source::Entering, 8), (Source::Before, 7)], &[], 2);
    add(&mut items, Role::Plain, &[(Source::Node(0), 0), (Source::There, 9)], &[], 1);
    add(&mut items, Role::LoopCond, &[(Source::Node(1), 2)], &[], 1);
    add(&mut items, Role::Switch, &[(Source::Node(0), 0), (Source::Node(2), 3)], &[], 2);
    add(&mut items, Role::Plain, &[(Source::Node(3), 5)], &[], 1);
    add(&mut items, Role::NextIteration, &[(Source::Node(4), 6)], &[], 1);
    add(&mut items, Role::Exit, &[(Source::Node(3), 4)], &[], 0);
    items
}

#[test]
fn a_loop_goes_on_with_the_second_output_of_its_switch() {
    let made = program(&counting(), 10).unwrap();
    let tasks: Vec<_> = made.steps.iter().map(|step| (step.node, step.class, step.task)).collect();
    assert_eq!(
        tasks,
        [
            (0, ALWAYS, Task::Loop { enter: 0, next: 1 }),
            (1, ALWAYS, Task::Node),
            (2, ALWAYS, Task::Pass),
            (3, ALWAYS, Task::Switch(1)),
            (4, 2, Task::Node),
        ]
    );
    let turn = made.turn.unwrap();
    assert_eq!((turn.continues, &*turn.nexts, &*turn.exits), (2, &[5][..], &[6][..]));
}

#[test]
fn a_loop_whose_values_leave_or_return_by_other_predicates_has_no_program() {
    let mut items = counting();
    items[6].inputs[0].output = 5;
    assert_eq!(program(&items, 10), None);
    let mut items = counting();
    items[5].inputs[0] = items[3].inputs[0];
    assert_eq!(program(&items, 10), None);
    let mut items = counting();
    items[0].inputs.pop();
    assert_eq!(program(&items, 10), None);
    let mut items = counting();
    items[0].role = Role::Enter { frame: 1, constant: false };
    assert_eq!(program(&items, 10), None);
    let mut items = counting();
    items[1].controls.push(Source::Node(4));
    assert_eq!(program(&items, 10), None, "nodes that wait for each other");
}

#[test]
fn what_a_dead_branch_leaves_out_is_passed_in_one_step() {
    let mut items = Vec::new();
    let predicate = add(&mut items, Role::Plain, &[], &[], 1);
    let split =
        add(&mut items, Role::Switch, &[(Source::There, 9), (Source::Node(predicate), 0)], &[], 2);
    let first = add(&mut items, Role::Plain, &[(Source::Node(split), 1)], &[], 1);
    let second = add(&mut items, Role::Plain, &[(Source::Node(first), 3)], &[], 1);
    let other = add(&mut items, Role::Plain, &[(Source::Node(split), 2)], &[], 1);
    let sources = [(Source::Node(second), 4), (Source::Node(other), 5)];
    let join = add(&mut items, Role::Merge, &sources, &[], 2);
    add(&mut items, Role::Plain, &[(Source::Node(join), 6)], &[], 1);
    let made = program(&items, 10).unwrap();
    let order: Vec<_> = made.steps.iter().map(|step| (step.node, step.class)).collect();
    assert_eq!(order, [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (5, 0), (6, 0)]);
    assert_eq!(made.steps[2].next, 4);
    assert_eq!(made.steps[4].next, 5);
    assert!(made.steps.iter().all(|step| !step.releases));
    assert_eq!(made.turn, None);
}

#[test]
fn a_dead_node_with_a_live_input_releases_it() {
    let mut items = Vec::new();
    let predicate = add(&mut items, Role::Plain, &[], &[], 1);
    let split =
        add(&mut items, Role::Switch, &[(Source::There, 9), (Source::Node(predicate), 0)], &[], 2);
    let sources = [(Source::Node(split), 1), (Source::Node(predicate), 0)];
    let reader = add(&mut items, Role::Plain, &sources, &[], 1);
    let made = program(&items, 10).unwrap();
    let step = made.steps.iter().find(|step| step.node == reader).unwrap();
    assert!(step.releases);
    assert_eq!(step.class, 1);
}

/// Numbers that repeat for one seed (Knuth's MMIX generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// A random frame without a loop.
fn random(numbers: &mut Numbers) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    add(&mut items, Role::Plain, &[], &[], 1);
    for _ in 0..1 + numbers.below(20) {
        let made = items.clone();
        let read = |numbers: &mut Numbers| {
            let node = numbers.below(made.len());
            let outputs = made[node].outputs;
            let count = if made[node].role == Role::Switch { 2 } else { 1 };
            (Source::Node(node as u32), outputs.start + numbers.below(count) as u32)
        };
        let reads = [read(numbers), read(numbers)];
        let control = [numbers.below(made.len()) as u32];
        let controls = if numbers.below(4) == 0 { &control[..] } else { &[] };
        match numbers.below(5) {
            0 | 1 => add(&mut items, Role::Switch, &reads, controls, 2),
            2 => add(&mut items, Role::Merge, &reads, controls, 2),
            3 => add(&mut items, Role::Plain, &reads, controls, 1),
            _ => add(&mut items, Role::Plain, &reads[..1], controls, 1),
        };
    }
    items
}

/// The nodes that run if the outputs that are predicates have these values: those whose inputs are all live.
fn evaluated(items: &[Item], values: &[bool]) -> Vec<bool> {
    let mut outputs = vec![false; values.len()];
    let mut nodes = Vec::new();
    for item in items {
        let mut inputs = item.inputs.iter().map(|input| outputs[input.output as usize]);
        let controls = item.controls.iter().all(|source| match source {
            Source::Node(node) => nodes[*node as usize],
            _ => true,
        });
        let runs = match item.role {
            Role::Merge => inputs.any(|live| live),
            _ => inputs.all(|live| live) && controls,
        };
        nodes.push(runs);
        for (at, output) in (item.outputs.start..item.outputs.end).enumerate() {
            let taken = item.role != Role::Switch
                || usize::from(values[item.inputs[1].output as usize]) == at;
            outputs[output as usize] = runs && taken;
        }
    }
    nodes
}

/// The nodes that the steps of a program run.
fn stepped(program: &Program, items: &[Item], values: &[bool]) -> Vec<bool> {
    let mut live = vec![false; program.classes as usize];
    live[ALWAYS as usize] = true;
    let (mut at, mut nodes) = (0, vec![false; items.len()]);
    while let Some(step) = program.steps.get(at) {
        if !live[step.class as usize] {
            at = if step.releases { at + 1 } else { step.next as usize };
            continue;
        }
        at += 1;
        let node = step.node as usize;
        match step.task {
            Task::Switch(classes) => {
                let taken = values[items[node].inputs[1].output as usize];
                live[(classes + u32::from(taken)) as usize] = true;
            }
            Task::Merge { inputs, class } => {
                if !inputs.of(&program.merged).iter().any(|&class| live[class as usize]) {
                    continue;
                }
                live[class as usize] = true;
            }
            Task::Both { with, class } => {
                live[class as usize] |= live[with as usize];
                continue;
            }
            Task::Node | Task::Pass | Task::Loop { .. } => {}
        }
        nodes[node] = true;
    }
    nodes
}

#[test]
fn the_steps_of_random_frames_run_what_is_live() {
    let mut numbers = Numbers(1);
    for case in 0..2000 {
        let items = random(&mut numbers);
        let outputs = items.last().unwrap().outputs.end as usize;
        let made = program(&items, outputs).unwrap();
        for _ in 0..4 {
            let values: Vec<bool> = (0..outputs).map(|_| numbers.below(2) == 1).collect();
            let expected = evaluated(&items, &values);
            assert_eq!(stepped(&made, &items, &values), expected, "case {case}: {items:?}");
        }
    }
}
