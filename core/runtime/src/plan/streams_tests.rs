use super::*;

fn node(kind: Kind, before: &[u32]) -> StreamNode {
    StreamNode { kind, before: before.iter().copied().collect() }
}

fn active(before: &[u32]) -> StreamNode {
    node(Kind::Active, before)
}

fn streams(assignment: &Assignment) -> Vec<u32> {
    assignment.nodes.iter().map(|node| node.stream).collect()
}

/// The nodes that a node waits for.
fn waits(assignment: &Assignment, number: usize) -> Vec<usize> {
    let source = |event: &u32| {
        let recorded = assignment.nodes.iter().position(|node| node.event == Some(*event));
        recorded.expect("an event that is waited for is recorded")
    };
    assignment.nodes[number].waits.iter().map(source).collect()
}

#[test]
fn a_chain_stays_on_one_stream_without_events() {
    let nodes = [active(&[]), active(&[0]), active(&[1]), node(Kind::Outgoing, &[2])];
    let found = assign(&nodes, 4);
    assert_eq!((streams(&found), found.streams, found.events), (vec![0; 4], 1, 0));
}

#[test]
fn branches_part_and_the_join_waits_for_the_one_that_it_does_not_follow() {
    let nodes = [active(&[]), active(&[0]), active(&[0]), active(&[1, 2])];
    let found = assign(&nodes, 4);
    assert_eq!(streams(&found), [0, 0, 1, 1]);
    assert_eq!((waits(&found, 2), waits(&found, 3)), (vec![0], vec![1]));
    assert_eq!((found.streams, found.events), (2, 2));
}

#[test]
fn sources_are_spread_over_as_many_streams_as_there_may_be() {
    let nodes: Vec<StreamNode> = (0..10).map(|_| active(&[])).collect();
    assert_eq!(streams(&assign(&nodes, 4)), [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]);
    let found = assign(&nodes, 100);
    assert_eq!((found.streams, found.events), (10, 0));
    let nodes: Vec<StreamNode> = (0..100).map(|_| active(&[])).collect();
    assert_eq!(assign(&nodes, 100).streams, MAX_STREAMS);
}

#[test]
fn one_stream_has_no_events() {
    let nodes = [active(&[]), active(&[]), node(Kind::State, &[0]), active(&[0, 1, 2])];
    for most in [0, 1] {
        let found = assign(&nodes, most);
        assert_eq!((streams(&found), found.streams, found.events), (vec![0; 4], 1, 0));
        assert!(!found.nodes.iter().any(NodeStream::has_events));
    }
}

#[test]
fn what_enqueues_nothing_is_transparent_or_joins() {
    let passive = |before| node(Kind::Passive, before);
    // Node 2 is represented by 0, 3 by none, and 4 joins 0 and 1; 5 continues after 0, which 2 and
    // 3 have not done.
    let nodes =
        [active(&[]), active(&[]), passive(&[0]), passive(&[]), passive(&[1, 2]), active(&[2, 3])];
    let found = assign(&nodes, 4);
    assert_eq!(streams(&found), [0, 1, 0, 0, 1, 0]);
    assert_eq!((waits(&found, 4), waits(&found, 5)), (vec![0], vec![]));
}

#[test]
fn state_shares_the_first_stream() {
    let state = |before| node(Kind::State, before);
    let nodes = [active(&[]), active(&[]), state(&[1]), state(&[]), active(&[2])];
    let found = assign(&nodes, 4);
    assert_eq!(streams(&found), [0, 1, 0, 0, 2]);
    assert_eq!((waits(&found, 2), waits(&found, 4)), (vec![1], vec![2]));
}

#[test]
fn a_copy_that_leaves_takes_no_stream_from_what_goes_on() {
    let nodes = [active(&[]), node(Kind::Outgoing, &[0]), active(&[0]), node(Kind::Outgoing, &[2])];
    let found = assign(&nodes, 4);
    assert_eq!(streams(&found), [0, 1, 0, 0]);
    assert_eq!((waits(&found, 1), waits(&found, 3)), (vec![0], vec![]));
}

#[test]
fn a_wait_that_another_implies_is_left_out() {
    // Node 3 comes after 0, but so does 2, and 3 waits for 2.
    let nodes = [active(&[]), active(&[]), active(&[0, 1]), active(&[]), active(&[0, 2, 3])];
    let found = assign(&nodes, 4);
    assert_eq!(streams(&found), [0, 1, 1, 2, 2]);
    assert_eq!(waits(&found, 4), [2]);
}

/// Marsaglia, "Xorshift RNGs", 2003.
fn next(state: &mut u64, below: usize) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state % below as u64) as usize
}

fn random(seed: u64) -> Vec<StreamNode> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let count = 1 + next(&mut state, 60);
    let mut nodes: Vec<StreamNode> = Vec::new();
    for number in 0..count {
        let kinds = [Kind::Active, Kind::Active, Kind::Active, Kind::Passive, Kind::State];
        let kind = kinds[next(&mut state, kinds.len())];
        let many = [0, 1, 1, 2, 2, 3, 20][next(&mut state, 7)].min(number);
        let before = (0..many).map(|_| next(&mut state, number) as u32).collect();
        nodes.push(StreamNode { kind, before });
    }
    for _ in 0..next(&mut state, 5) {
        nodes.push(node(Kind::Outgoing, &[next(&mut state, count) as u32]));
    }
    nodes
}

/// All ancestors of each node in the graph.
fn ancestors(nodes: &[StreamNode]) -> Vec<BTreeSet<u32>> {
    let mut all: Vec<BTreeSet<u32>> = Vec::new();
    for node in nodes {
        let further = node.before.iter().flat_map(|&it| all[it as usize].iter().copied());
        let own = node.before.iter().copied().chain(further).collect();
        all.push(own);
    }
    all
}

/// No predecessor that enqueues may run after its node: it is earlier on the node's own stream, or
/// comes before an event that this stream waits for.
#[test]
fn whatever_comes_before_is_ordered_before() {
    for seed in 0..500 {
        let nodes = random(seed);
        let (before, found) = (ancestors(&nodes), assign(&nodes, 1 + (seed % 6) as u32));
        assert!(found.streams <= 1 + (seed % 6) as u32);
        let enqueues = |number: u32| nodes[number as usize].kind != Kind::Passive;
        let mut ordered: Vec<BTreeSet<u32>> = Vec::new();
        for (number, own) in found.nodes.iter().enumerate() {
            let on_stream = before[number].iter().copied();
            let here = on_stream.filter(|&it| found.nodes[it as usize].stream == own.stream);
            let waited = waits(&found, number).into_iter().map(|it| it as u32);
            let direct: BTreeSet<u32> = here.chain(waited).collect();
            let further = direct.iter().flat_map(|&it| ordered[it as usize].iter().copied());
            let all: BTreeSet<u32> = direct.iter().copied().chain(further).collect();
            if enqueues(number as u32) {
                let missing: Vec<&u32> = before[number]
                    .iter()
                    .filter(|&&it| enqueues(it) && !all.contains(&it))
                    .collect();
                assert!(missing.is_empty(), "seed {seed}: {number} is not behind {missing:?}");
            }
            ordered.push(all);
        }
    }
}

#[test]
fn wide_graphs_are_assigned_in_no_time() {
    let mut nodes: Vec<StreamNode> = vec![active(&[])];
    nodes.extend((0..20_000).map(|_| active(&[0])));
    nodes.push(StreamNode { kind: Kind::Active, before: (1..=20_000).collect() });
    let found = assign(&nodes, 4);
    assert_eq!(found.streams, 4);
    // The last of the wide nodes is on the join's own stream, as is every fourth one.
    assert_eq!(found.nodes[20_001].waits.len(), 15_000);
}
