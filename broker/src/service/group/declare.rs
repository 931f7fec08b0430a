//! `DeclareGroup`, `ReleaseGroup`: what objects say of a group. Whose it is and which resets are done stands at its coordinator,
//! its configuration in the quorum. The claim comes first and goes last, so that whatever fails in between is done again by
//! its holder.

use std::sync::Arc;

use tidemill_group::{Declare, GroupError, Release, Released};
use tidemill_proto::v1;
use tidemill_types::{Claim, GroupName};

use super::{configure, convert, run};
use crate::{
    core::Core,
    deadline::Deadline,
    fault::Fault,
    groups::{Groups, group_name, refused},
    route::topic_name,
};

pub(super) async fn declare(
    core: &Arc<Core>,
    r: v1::DeclareGroupRequest,
    deadline: Deadline,
) -> Result<v1::DeclareGroupResponse, Fault> {
    let group = group_name(&r.group)?;
    let Some(claim) = r.claim else {
        return Err(Fault::invalid("claim", "nothing", "who declares the group"));
    };
    let topics: Result<_, Fault> = r.topics.iter().map(|t| topic_name(t)).collect();
    let config = configure::config(r.config.unwrap_or_default())?;
    let declare = Declare {
        group: group.clone(),
        claim: Claim { uid: claim.uid, owner: claim.owner },
        from_uid: (!r.from_uid.is_empty()).then_some(r.from_uid),
        topics: topics?,
    };
    let declared = run(core, &group, deadline, move |c, now| c.declare(declare, now)).await?;
    let (version, configured) = configure::merge(core, &group, config, deadline).await?;
    Ok(v1::DeclareGroupResponse { changed: declared || configured, version })
}

pub(super) async fn release(
    core: &Arc<Core>,
    r: v1::ReleaseGroupRequest,
    deadline: Deadline,
) -> Result<v1::ReleaseGroupResponse, Fault> {
    let group = group_name(&r.group)?;
    if r.claim_uid.is_empty() {
        return Err(Fault::invalid("claim_uid", "nothing", "the uid that holds the claim"));
    }
    if r.delete && holds(core, &group, &r.claim_uid, deadline).await? {
        configure::remove(core, &group, deadline).await?;
    }
    let release = Release { group: group.clone(), uid: r.claim_uid, delete: r.delete };
    let done = run(core, &group, deadline, move |c, _| c.release(&release)).await?;
    let (done, held_by) = match done {
        Released::Done => (v1::ReleaseDone::Done, None),
        Released::Absent => (v1::ReleaseDone::Absent, None),
        Released::NotHolder(claim) => (v1::ReleaseDone::NotHolder, claim),
    };
    Ok(v1::ReleaseGroupResponse { done: done.into(), held_by: held_by.as_ref().map(convert::claim_to) })
}

/// Whether the group is this uid's; one with members is refused.
async fn holds(core: &Arc<Core>, group: &GroupName, uid: &str, deadline: Deadline) -> Result<bool, Fault> {
    let handle = Groups::coordinator(core, group, deadline).await?;
    let name = group.clone();
    let found = handle
        .ask(deadline, move |c| c.group(&name).map(|g| (g.declared.claim.clone(), g.members.len())))
        .await?;
    match found {
        Some((Some(claim), members)) if claim.uid == uid => match members {
            0 => Ok(true),
            members => Err(refused(group, &GroupError::NotEmpty { members })),
        },
        _ => Ok(false),
    }
}
