//! Members for people.

use tidemill_proto::v1;
use tidemill_types::{BookieState, Member, MemberRole};

use crate::fault::address;

/// A member as the admin API tells it.
pub(crate) fn to_proto(m: &Member, load: u64) -> v1::Member {
    v1::Member {
        id: m.id.to_string(),
        role: role(m.role).to_owned(),
        name: m.name.clone(),
        address: address(&m.endpoint),
        zone: m.zone.clone(),
        state: state(m.state).to_owned(),
        live: m.session.is_some(),
        free_bytes: m.free_bytes,
        load,
    }
}

/// A broker as clients see it.
pub(crate) fn broker(m: &Member) -> v1::Broker {
    v1::Broker {
        name: m.name.clone(),
        address: address(&m.endpoint),
        live: m.session.is_some(),
        zone: m.zone.clone(),
        id: m.id.to_string(),
    }
}

fn role(r: MemberRole) -> &'static str {
    match r {
        MemberRole::Meta => "meta",
        MemberRole::Bookie => "bookie",
        MemberRole::Broker => "broker",
    }
}

fn state(s: BookieState) -> &'static str {
    match s {
        BookieState::Rw => "rw",
        BookieState::Ro => "ro",
        BookieState::Limbo => "limbo",
        BookieState::Draining => "draining",
        BookieState::Lost => "lost",
        BookieState::Retired => "retired",
    }
}
