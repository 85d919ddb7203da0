//! The classes of a frame's nodes, see [`super`].

use super::ALWAYS;
use std::collections::HashMap;

/// How a class comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// It is always live.
    Always,
    /// An output of a `Switch` whose own class is `parent`.
    Case { parent: u32, first: u32, count: u32 },
    /// Both of two classes.
    Both(u32, u32),
    /// One of several classes, all of which imply `parent`.
    Any { parent: u32 },
}

/// The classes so far.
pub(super) struct Classes {
    origins: Vec<Origin>,
    /// The first class of the outputs of switches, by predicate, class of the switch, and number of outputs.
    cases: HashMap<(u32, u32, u32), u32>,
    both: HashMap<(u32, u32), u32>,
}

impl Classes {
    /// Only [`ALWAYS`].
    pub fn new() -> Classes {
        Classes { origins: vec![Origin::Always], cases: HashMap::new(), both: HashMap::new() }
    }

    /// The number of classes.
    pub fn len(&self) -> u32 {
        self.origins.len() as u32
    }

    fn add(&mut self, origin: Origin) -> u32 {
        self.origins.push(origin);
        self.len() - 1
    }

    /// The class of output 0 of a `Switch` of class `parent` with this predicate; those of the other outputs follow.
    pub fn cases(&mut self, predicate: u32, parent: u32, count: u32) -> u32 {
        if let Some(&first) = self.cases.get(&(predicate, parent, count)) {
            return first;
        }
        let first = self.len();
        for _ in 0..count {
            self.add(Origin::Case { parent, first, count });
        }
        self.cases.insert((predicate, parent, count), first);
        first
    }

    /// Whether `class` is live only if `other` is.
    pub fn implies(&self, class: u32, other: u32) -> bool {
        if class == other || other == ALWAYS {
            return true;
        }
        // A class comes after those that it depends on.
        if class < other {
            return false;
        }
        match self.origins[class as usize] {
            Origin::Always => false,
            Origin::Case { parent, .. } | Origin::Any { parent } => self.implies(parent, other),
            Origin::Both(left, right) => self.implies(left, other) || self.implies(right, other),
        }
    }

    /// The classes of a list that none of the others implies, in order and once each.
    fn narrowest(&self, classes: &[u32]) -> Vec<u32> {
        let mut kept: Vec<u32> = Vec::new();
        for &class in classes {
            if kept.iter().any(|&other| self.implies(other, class)) {
                continue;
            }
            kept.retain(|&other| !self.implies(class, other));
            kept.push(class);
        }
        kept
    }

    /// The class of what needs all of these. For each class that has to be made, `make` is given the two that it
    /// depends on and the class itself.
    pub fn all(&mut self, classes: &[u32], mut make: impl FnMut(u32, u32, u32)) -> u32 {
        let kept = self.narrowest(classes);
        let Some((&first, rest)) = kept.split_first() else { return ALWAYS };
        rest.iter().fold(first, |left, &right| {
            if let Some(&known) = self.both.get(&(left, right)) {
                return known;
            }
            let class = self.add(Origin::Both(left, right));
            self.both.insert((left, right), class);
            make(left, right, class);
            class
        })
    }

    /// The class of what needs one of these, and the class under which it is found out: the same, or one that all
    /// imply.
    pub fn any(&mut self, classes: &[u32]) -> (u32, u32) {
        let mut left = classes.to_vec();
        loop {
            // What implies another one adds nothing.
            let all = left.clone();
            left.dedup();
            left.retain(|&class| {
                !all.iter().any(|&other| other != class && self.implies(class, other))
            });
            left.sort_unstable();
            left.dedup();
            let Some(parent) = self.whole(&mut left) else { break };
            left.push(parent);
        }
        match *left {
            [] => (ALWAYS, ALWAYS),
            [class] => (class, class),
            _ => {
                let parent = self.common(&left);
                (self.add(Origin::Any { parent }), parent)
            }
        }
    }

    /// Takes the classes of all outputs of one `Switch` out of a sorted list; returns the class of the `Switch`.
    fn whole(&self, classes: &mut Vec<u32>) -> Option<u32> {
        let complete = |&class: &u32| match self.origins[class as usize] {
            Origin::Case { parent, first, count } if first == class => (first..first + count)
                .all(|case| classes.contains(&case))
                .then_some((parent, first, count)),
            _ => None,
        };
        let (parent, first, count) = classes.iter().find_map(complete)?;
        classes.retain(|class| !(first..first + count).contains(class));
        Some(parent)
    }

    /// A class that all of these imply.
    fn common(&self, classes: &[u32]) -> u32 {
        let mut class = classes.first().copied().unwrap_or(ALWAYS);
        while !classes.iter().all(|&other| self.implies(other, class)) {
            class = match self.origins[class as usize] {
                Origin::Always => ALWAYS,
                Origin::Case { parent, .. } | Origin::Any { parent } => parent,
                Origin::Both(left, _) => left,
            };
        }
        class
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_outputs_of_a_switch_are_its_own_class() {
        let mut classes = Classes::new();
        let outer = classes.cases(7, ALWAYS, 2);
        let inner = classes.cases(8, outer + 1, 3);
        assert_eq!(classes.cases(7, ALWAYS, 2), outer);
        assert_eq!(classes.any(&[outer, outer + 1]), (ALWAYS, ALWAYS));
        assert_eq!(classes.any(&[inner + 2, inner, inner + 1]), (outer + 1, outer + 1));
        assert_eq!(classes.any(&[inner + 2, outer, inner, inner + 1]), (ALWAYS, ALWAYS));
        assert_eq!(classes.any(&[inner, outer + 1]), (outer + 1, outer + 1));
    }

    #[test]
    fn one_of_several_classes_is_found_out_under_what_all_imply() {
        let mut classes = Classes::new();
        let outer = classes.cases(7, ALWAYS, 2);
        let (inner, other) = (classes.cases(8, outer, 2), classes.cases(9, outer, 2));
        let (any, under) = classes.any(&[inner, other + 1]);
        assert_eq!(under, outer);
        assert!(classes.implies(any, outer) && !classes.implies(any, inner));
        assert_eq!(classes.any(&[inner, classes.len() - 1]).1, outer);
    }

    #[test]
    fn the_narrowest_of_nested_classes_is_that_of_all() {
        let mut classes = Classes::new();
        let outer = classes.cases(7, ALWAYS, 2);
        let inner = classes.cases(8, outer, 2);
        let mut made = Vec::new();
        assert_eq!(
            classes.all(&[ALWAYS, inner, outer], |_, _, _| panic!("nothing is made")),
            inner
        );
        let other = classes.cases(9, ALWAYS, 2);
        let class = classes.all(&[inner, other, outer], |a, b, c| made.push((a, b, c)));
        assert_eq!(made, [(inner, other, class)]);
        assert_eq!(classes.all(&[inner, other], |_, _, _| panic!("it is known")), class);
        assert!(classes.implies(class, outer) && classes.implies(class, other));
        assert_eq!(classes.all(&[], |_, _, _| panic!("nothing is made")), ALWAYS);
    }
}
