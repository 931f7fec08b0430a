//! A breadth-first explorer of finite state spaces: every state once, known by a 128-bit fingerprint; the shortest trace
//! to a violation.

use std::collections::{HashMap, VecDeque};

use crate::hash::Prehashed;

/// What can be explored.
pub trait Model {
    /// A state; cheap to clone.
    type State: Clone;
    /// A step.
    type Action: Copy;

    /// The first state.
    fn initial(&self) -> Self::State;
    /// The steps that are possible.
    fn actions(&self, state: &Self::State, out: &mut Vec<Self::Action>);
    /// The state after a step.
    fn apply(&self, state: &Self::State, action: Self::Action) -> Self::State;
    /// Equal for equal states.
    fn fingerprint(&self, state: &Self::State) -> u128;
    /// The invariant that is broken.
    fn violated(&self, state: &Self::State) -> Option<String>;
    /// A line for people.
    fn describe(&self, state: &Self::State, action: Self::Action) -> String;
}

/// What an exploration found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Different states seen.
    pub states: usize,
    /// Longest shortest way to a state.
    pub depth: usize,
    /// The whole space was seen.
    pub complete: bool,
    /// A broken invariant with the steps that lead to it.
    pub violation: Option<(String, Vec<String>)>,
}

/// Explores breadth-first until the space is exhausted, an invariant breaks, or more than `limit` states were seen.
pub fn explore<M: Model>(model: &M, limit: usize) -> Found {
    let first = model.initial();
    let root = model.fingerprint(&first);
    // Fingerprint -> (parent, number of the action there).
    let mut seen: HashMap<u128, (u128, u32), Prehashed> = HashMap::with_hasher(Prehashed);
    seen.insert(root, (root, 0));
    let mut queue = VecDeque::from([(first, root, 0usize)]);
    let mut actions = Vec::new();
    let mut depth = 0;
    while let Some((state, print, d)) = queue.pop_front() {
        depth = depth.max(d);
        actions.clear();
        model.actions(&state, &mut actions);
        for (n, a) in actions.iter().enumerate() {
            let next = model.apply(&state, *a);
            let p = model.fingerprint(&next);
            if seen.contains_key(&p) {
                continue;
            }
            seen.insert(p, (print, u32::try_from(n).unwrap_or(u32::MAX)));
            if let Some(what) = model.violated(&next) {
                let steps = trace(model, &seen, root, p);
                return Found {
                    states: seen.len(),
                    depth: d + 1,
                    complete: false,
                    violation: Some((what, steps)),
                };
            }
            if seen.len() >= limit {
                return Found { states: seen.len(), depth, complete: false, violation: None };
            }
            queue.push_back((next, p, d + 1));
        }
    }
    Found { states: seen.len(), depth, complete: true, violation: None }
}

/// Walks back to the root, then forward again to have the steps described.
fn trace<M: Model>(
    model: &M,
    seen: &HashMap<u128, (u128, u32), Prehashed>,
    root: u128,
    end: u128,
) -> Vec<String> {
    let mut way = Vec::new();
    let mut at = end;
    while at != root {
        let Some((parent, n)) = seen.get(&at) else { break };
        way.push(*n);
        at = *parent;
    }
    let mut state = model.initial();
    let mut out = Vec::with_capacity(way.len());
    let mut actions = Vec::new();
    for n in way.iter().rev() {
        actions.clear();
        model.actions(&state, &mut actions);
        let Some(a) = actions.get(*n as usize) else { break };
        out.push(model.describe(&state, *a));
        state = model.apply(&state, *a);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts up to `top` by steps of 2 and 3; `bad` breaks the invariant.
    struct Count {
        top: u128,
        bad: u128,
    }

    impl Model for Count {
        type State = u128;
        type Action = u128;

        fn initial(&self) -> u128 {
            0
        }
        fn actions(&self, s: &u128, out: &mut Vec<u128>) {
            out.extend([2, 3].into_iter().filter(|d| s + d <= self.top));
        }
        fn apply(&self, s: &u128, a: u128) -> u128 {
            s + a
        }
        fn fingerprint(&self, s: &u128) -> u128 {
            *s
        }
        fn violated(&self, s: &u128) -> Option<String> {
            (*s == self.bad).then(|| "bad".to_owned())
        }
        fn describe(&self, s: &u128, a: u128) -> String {
            format!("{s}+{a}")
        }
    }

    #[test]
    fn sees_every_state_once() {
        let f = explore(&Count { top: 20, bad: 1 }, 1000);
        assert!(f.complete && f.violation.is_none());
        assert_eq!(f.states, 20); // all of 0..=20 but 1
    }

    #[test]
    fn finds_a_shortest_trace() {
        let f = explore(&Count { top: 20, bad: 8 }, 1000);
        assert_eq!(f.violation.unwrap().1.len(), 3);
        assert!(!explore(&Count { top: 20, bad: 1 }, 5).complete);
    }
}
