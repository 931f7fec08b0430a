//! Sessions and what rests on them (metadata, Sessions; M27): the production keeper of deadlines and the production judge of validity,
//! between a log, two leaders, messages that are delayed for ever, and an owner that answers from memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, dead_code, reason = "a test")]

#[path = "../../meta/src/lead/keeper.rs"]
mod keeper;
#[path = "../../crates/meta-client/src/session/validity.rs"]
mod validity;

use std::time::Duration;

use keeper::{Keeper, Renewal};
use tidemill_sim::{
    explore::{Found, Model, explore},
    hash::Print,
};
use tidemill_types::{MemberId, SessionId};
use uuid::Uuid;
use validity::Validity;

/// One unit of time; a session lives for five of them.
const UNIT: Duration = Duration::from_secs(1);
const TTL: u64 = 5;
const OLD: SessionId = SessionId(1);
/// The session that the same process opens afterwards.
const LATER: SessionId = SessionId(2);

/// The rules, and how much happens.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
struct World {
    units: u64,
    renewals: u8,
    /// A leader that proposed an expiry answers no renewal of that session (M26).
    silent_after_proposal: bool,
    /// A new leader answers only after it applied what it inherited (M26).
    applies_before_it_leads: bool,
    /// Nothing is answered from memory once `Release` was sent (M27).
    silent_after_release: bool,
    /// The session that counts is the one of the `Acquire` (M27).
    session_of_the_acquire: bool,
}

impl World {
    fn new() -> Self {
        Self {
            units: 12,
            renewals: 2,
            silent_after_proposal: true,
            applies_before_it_leads: true,
            silent_after_release: true,
            session_of_the_acquire: true,
        }
    }
}

/// An entry of the log that is not committed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Expire,
    Release,
}

#[derive(Clone, Debug)]
struct State {
    now: u64,
    /// 1 or 2: who leads.
    term: u64,
    /// The second leader counts sessions.
    leads: bool,
    keeper: Keeper,
    /// Proposed and not committed, in order; a new leader inherits it.
    log: Vec<Entry>,
    /// What the current leader has applied says that the old session is live.
    seen_live: bool,
    /// Committed: the old session is over, and the partition was released.
    expired: bool,
    released: bool,
    /// Sent by the owner, when and for which session.
    renewals: Vec<(u64, SessionId)>,
    answers: Vec<(u64, SessionId)>,
    renewals_left: u8,
    old: Validity,
    later: Option<Validity>,
    release_sent: bool,
    /// Somebody else acquired the partition.
    taken: bool,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Tick,
    Poll,
    Renew(SessionId),
    Deliver(usize),
    Answer(usize),
    Commit,
    Elect,
    Lead,
    Reopen,
    Release,
    Acquire,
}

fn member() -> MemberId {
    MemberId(Uuid::from_u128(9))
}

fn at(units: u64) -> Duration {
    UNIT * u32::try_from(units).unwrap()
}

fn ms(units: u64) -> i64 {
    i64::try_from(at(units).as_millis()).unwrap()
}

impl World {
    /// Whether the old owner answers from memory, as the rules let it.
    fn answers(&self, s: &State) -> bool {
        if self.silent_after_release && s.release_sent {
            return false;
        }
        let valid = |v: &Validity| v.left(at(s.now), ms(s.now)).is_some();
        valid(&s.old) || (!self.session_of_the_acquire && s.later.as_ref().is_some_and(valid))
    }

    /// Sessions as the leader's state has them.
    fn live(s: &State) -> Vec<(SessionId, MemberId)> {
        let mut live = Vec::new();
        if s.seen_live {
            live.push((OLD, member()));
        }
        if s.later.is_some() {
            live.push((LATER, member()));
        }
        live
    }

    fn commit(s: &mut State, e: Entry) {
        match e {
            Entry::Expire => s.expired = true,
            Entry::Release => s.released = true,
        }
    }
}

impl Model for World {
    type State = State;
    type Action = Step;

    fn initial(&self) -> State {
        let mut keeper = Keeper::new(at(TTL));
        assert!(keeper.lead(1, [(OLD, member())], at(0)));
        let mut old = Validity::none();
        old.renewed(at(0), ms(0), at(TTL));
        State {
            now: 0,
            term: 1,
            leads: true,
            keeper,
            log: Vec::new(),
            seen_live: true,
            expired: false,
            released: false,
            renewals: Vec::new(),
            answers: Vec::new(),
            renewals_left: self.renewals,
            old,
            later: None,
            release_sent: false,
            taken: false,
        }
    }

    fn actions(&self, s: &State, out: &mut Vec<Step>) {
        if s.now < self.units {
            out.push(Step::Tick);
        }
        if s.renewals_left > 0 {
            out.push(Step::Renew(OLD));
            if s.later.is_some() {
                out.push(Step::Renew(LATER));
            }
        }
        if s.leads {
            out.push(Step::Poll);
            out.extend((0..s.renewals.len()).map(Step::Deliver));
        } else {
            out.push(Step::Lead);
        }
        out.extend((0..s.answers.len()).map(Step::Answer));
        if !s.log.is_empty() {
            out.push(Step::Commit);
        }
        if s.term == 1 {
            out.push(Step::Elect);
        }
        if s.expired && s.later.is_none() {
            out.push(Step::Reopen);
        }
        if !s.release_sent && !s.expired {
            out.push(Step::Release);
        }
        if (s.expired || s.released) && !s.taken {
            out.push(Step::Acquire);
        }
    }

    fn apply(&self, s: &State, a: Step) -> State {
        let mut s = s.clone();
        match a {
            Step::Tick => s.now += 1,
            Step::Poll => {
                let due = s.keeper.poll(Self::live(&s), at(s.now));
                if due.iter().any(|(session, _)| *session == OLD) && !s.log.contains(&Entry::Expire) {
                    s.log.push(Entry::Expire);
                }
            }
            Step::Renew(session) => {
                s.renewals_left -= 1;
                s.renewals.push((s.now, session));
            }
            Step::Deliver(n) => {
                let (sent, session) = s.renewals.remove(n);
                // The leader looks its state up first, as the service does; its leadership is proved by now.
                if Self::live(&s).iter().any(|(live, _)| *live == session) {
                    let answer = s.keeper.renew(s.term, session, member(), at(s.now));
                    let renewed = matches!(answer, Renewal::Renewed(_))
                        || (!self.silent_after_proposal && answer == Renewal::Expiring);
                    if renewed {
                        s.answers.push((sent, session));
                    }
                }
            }
            Step::Answer(n) => {
                let (sent, session) = s.answers.remove(n);
                let v = if session == OLD { Some(&mut s.old) } else { s.later.as_mut() };
                if let Some(v) = v {
                    v.renewed(at(sent), ms(sent), at(TTL));
                }
            }
            Step::Commit => {
                let e = s.log.remove(0);
                Self::commit(&mut s, e);
                s.seen_live &= !s.expired || !s.leads;
            }
            Step::Elect => {
                // What was proposed may be inherited; that it is not is the state without it.
                s.term = 2;
                s.leads = false;
            }
            Step::Lead => {
                if self.applies_before_it_leads {
                    for e in std::mem::take(&mut s.log) {
                        Self::commit(&mut s, e);
                    }
                    s.seen_live = !s.expired;
                }
                s.leads = s.keeper.lead(2, Self::live(&s), at(s.now));
            }
            Step::Reopen => {
                let mut v = Validity::none();
                v.renewed(at(s.now), ms(s.now), at(TTL));
                s.later = Some(v);
            }
            Step::Release => {
                s.release_sent = true;
                s.log.push(Entry::Release);
            }
            Step::Acquire => s.taken = true,
        }
        s
    }

    fn fingerprint(&self, s: &State) -> u128 {
        Print::of(&format!("{s:?}"))
    }

    fn violated(&self, s: &State) -> Option<String> {
        (s.taken && self.answers(s)).then(|| {
            format!("the old owner answers from memory at {} although another one owns the partition", s.now)
        })
    }

    fn describe(&self, s: &State, a: Step) -> String {
        match a {
            Step::Tick => format!("time {}", s.now + 1),
            Step::Poll => format!("leader {} looks at the deadlines", s.term),
            Step::Renew(session) => format!("the owner sends a renewal of session {}", session.0),
            Step::Deliver(n) => format!("arrives at leader {}: renewal {:?}", s.term, s.renewals[n]),
            Step::Answer(n) => format!("arrives at the owner: answer to {:?}", s.answers[n]),
            Step::Commit => format!("committed: {:?}", s.log[0]),
            Step::Elect => "another leader is elected, with the log as it is".to_owned(),
            Step::Lead => "it begins to count sessions".to_owned(),
            Step::Reopen => "the owner's process opens another session".to_owned(),
            Step::Release => "the owner sends Release".to_owned(),
            Step::Acquire => "another broker acquires the partition".to_owned(),
        }
    }
}

const LIMIT: usize = 400_000;

fn run(name: &str, world: World) -> Found {
    let f = explore(&world, LIMIT);
    println!("{name}: {} states, depth {}, complete {}", f.states, f.depth, f.complete);
    if let Some((what, steps)) = &f.violation {
        println!("  {what}");
        for (n, s) in steps.iter().enumerate() {
            println!("  {:2}. {s}", n + 1);
        }
    }
    f
}

fn broken(name: &str, off: impl FnOnce(&mut World)) {
    let mut world = World::new();
    off(&mut world);
    let f = run(name, world);
    let (_, steps) = f.violation.expect("the rule is off, a violation has to be found");
    assert!(!steps.is_empty());
    let same = explore(&World::new(), f.states);
    assert!(same.violation.is_none(), "{name}: broken with the rule on: {:?}", same.violation);
}

#[test]
fn sessions_and_ownership_hold() {
    let f = run("sessions", World { units: 9, renewals: 1, ..World::new() });
    assert!(f.violation.is_none(), "{:?}", f.violation);
}

#[test]
fn m27_answers_after_the_release_was_sent() {
    broken("M27a", |w| w.silent_after_release = false);
}

#[test]
fn m27_answers_under_a_later_session_of_the_same_process() {
    broken("M27b", |w| w.session_of_the_acquire = false);
}
