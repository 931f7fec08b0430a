//! `ApplyTopics`: makes topics be as wished, never smaller, never gone.

use tidemill_types::meta::{Adoption, Change, ControlReply, Rejection, TopicApplied, TopicDone, TopicWish};
use tidemill_types::{Claim, TopicControl, TopicRecord};

use crate::State;
use crate::command::topic::check_config;
use crate::limits::{MAX_CLAIM_OWNER_LEN, MAX_CLAIM_UID_LEN, MAX_PARTITIONS};
use crate::reject::{conflict, invalid};

fn check_claim(claim: &Claim) -> Result<(), Rejection> {
    for (field, text, max) in
        [("claim.uid", &claim.uid, MAX_CLAIM_UID_LEN), ("claim.owner", &claim.owner, MAX_CLAIM_OWNER_LEN)]
    {
        if !(1..=max).contains(&text.len()) {
            return Err(invalid(field, format_args!("1 to {max} bytes")));
        }
    }
    Ok(())
}

fn check_wish(w: &TopicWish) -> Result<(), Rejection> {
    if w.name.is_internal() {
        return Err(invalid("name", "names that begin with two underscores belong to the system"));
    }
    if !(1..=MAX_PARTITIONS).contains(&w.partitions) {
        return Err(invalid("partitions", format_args!("1 to {MAX_PARTITIONS}")));
    }
    check_config(&w.config)?;
    w.claim.as_ref().map_or(Ok(()), check_claim)
}

/// What differs, for people.
fn differences(w: &TopicWish, have: &TopicRecord) -> String {
    let mut all = Vec::new();
    if w.partitions != have.partitions {
        all.push(format!("{} partitions, {} wished", have.partitions, w.partitions));
    }
    if w.config != have.config {
        all.push("another configuration".to_owned());
    }
    all.join(" and ")
}

/// Rule 8: whether the wish may have a topic that is live.
fn may_have(w: &TopicWish, have: &TopicRecord, holder: Option<&Claim>) -> Result<(), Rejection> {
    let refuse = |why: String| Err(Rejection::Claimed { holder: holder.cloned(), why });
    match (holder, &w.claim) {
        (Some(h), Some(c)) if h.uid == c.uid => Ok(()),
        (Some(h), _) => refuse(format!("topic {} is claimed by {}", w.name, h.owner)),
        (None, None) => Ok(()),
        (None, Some(_)) => match w.adoption {
            Adoption::Take => Ok(()),
            Adoption::Fail => refuse(format!("topic {} exists and is claimed by nobody", w.name)),
            Adoption::IfMatches => match differences(w, have) {
                d if d.is_empty() => Ok(()),
                d => refuse(format!("topic {} exists, is claimed by nobody and has {d}", w.name)),
            },
        },
    }
}

/// Who deleted it may have it back, and so may whoever may take any topic.
fn may_undelete(w: &TopicWish, have: &TopicRecord, former: Option<&Claim>) -> Result<(), Rejection> {
    let same = match (former, &w.claim) {
        (None, _) => true,
        (Some(f), Some(c)) => f.owner == c.owner || f.uid == c.uid,
        (Some(_), None) => false,
    };
    let allowed = match w.adoption {
        _ if same => true,
        Adoption::Take => true,
        Adoption::IfMatches => differences(w, have).is_empty(),
        Adoption::Fail => false,
    };
    if allowed {
        return Ok(());
    }
    let by = former.map_or("nobody", |f| f.owner.as_str());
    let why = format!("topic {} was deleted by {by} and is not purged yet", w.name);
    Err(Rejection::Tombstoned { why })
}

impl State {
    pub(crate) fn apply_topics(&mut self, wishes: &[TopicWish], out: &mut Vec<Change>) -> ControlReply {
        // One command stays small however much it asks for: the rest of the wishes goes into another one.
        let mut room = MAX_PARTITIONS;
        ControlReply::Applied(wishes.iter().map(|w| self.apply_topic(w, &mut room, out)).collect())
    }

    fn apply_topic(
        &mut self,
        w: &TopicWish,
        room: &mut u32,
        out: &mut Vec<Change>,
    ) -> Result<TopicApplied, Rejection> {
        check_wish(w)?;
        let more = |new: u32, room: &u32| {
            if new > *room {
                return Err(conflict(format_args!("at most {MAX_PARTITIONS} new partitions per command")));
            }
            Ok(())
        };
        let Some(old) = self.names.get(&w.name).and_then(|id| self.topic(*id)).cloned() else {
            more(w.partitions, room)?;
            let topic = self.new_topic(&w.name, w.partitions, &w.config, out)?;
            *room -= w.partitions;
            let mut control = self.control_or_new(topic.id);
            if w.claim.is_some() {
                control.claim.clone_from(&w.claim);
                control = self.put_control(control, out);
            }
            return Ok(TopicApplied { done: TopicDone::Created, before: None, topic, control });
        };
        let had = self.control_or_new(old.id);
        let undelete = had.tombstone.is_some();
        match &had.tombstone {
            Some(t) => may_undelete(w, &old, t.former.as_ref())?,
            None => may_have(w, &old, had.claim.as_ref())?,
        }
        if w.partitions < old.partitions {
            return Err(invalid(
                "partitions",
                format_args!("{} to {MAX_PARTITIONS}: a topic never shrinks", old.partitions),
            ));
        }
        more(w.partitions - old.partitions, room)?;
        let topic = self.changed_topic(&old, Some(w.partitions), Some(&w.config), out)?;
        *room -= w.partitions - old.partitions;
        let mut control = TopicControl { claim: w.claim.clone(), tombstone: None, ..had.clone() };
        let done = if undelete {
            TopicDone::Undeleted
        } else if topic != old || control != had {
            TopicDone::Changed
        } else {
            TopicDone::Unchanged
        };
        if control != had {
            control = self.put_control(control, out);
        }
        Ok(TopicApplied { done, before: Some(old), topic, control })
    }
}
