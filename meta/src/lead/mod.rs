//! What only the leader does, one term at a time: sessions, quorum time, bookies' reports, the plan, repairs.

mod auditor;
mod clocks;
mod degraded;
mod duties;
mod handover;
mod keeper;
mod planner;
mod purges;
mod reports;

pub(crate) use self::{
    auditor::Report as AuditReport,
    duties::{Duties, Heard},
    keeper::Renewal,
};
pub(crate) use duties::run;
pub(crate) use handover::hand_over;
