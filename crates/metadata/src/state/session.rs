//! A live session with the replies that it may ask for again (R9).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tidemill_types::meta::{Rejection, Reply};
use tidemill_types::{MemberId, MemberRole, RequestId};

use crate::codec;
use crate::limits::{MAX_REPLIES, MAX_REPLY_BYTES};

/// What the state machine keeps of a live session; one that ended is forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) member: MemberId,
    pub(crate) role: MemberRole,
    /// Requests up to and with this id that are not in `replies`: executed or not, nobody knows.
    forgotten: Option<RequestId>,
    /// Encoded results by request id; bytes rather than values because their size is what has to be bounded.
    replies: BTreeMap<RequestId, Arc<[u8]>>,
    /// Sum of the lengths in `replies`.
    reply_bytes: u64,
}

/// What is known of a request id.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Never executed.
    New,
    /// Executed with this result.
    Done(Box<Result<Reply, Rejection>>),
    /// Too old to tell.
    Forgotten,
}

impl Session {
    pub(crate) fn new(member: MemberId, role: MemberRole) -> Self {
        Self { member, role, forgotten: None, replies: BTreeMap::new(), reply_bytes: 0 }
    }

    /// Whether the sum agrees with what is kept.
    pub(crate) fn is_consistent(&self) -> bool {
        self.reply_bytes == self.replies.values().map(|r| r.len() as u64).sum::<u64>()
            && self.replies.first_key_value().is_none_or(|(first, _)| Some(*first) > self.forgotten)
    }

    pub(crate) fn look_up(&self, request: RequestId) -> Known {
        if let Some(bytes) = self.replies.get(&request) {
            // A result that cannot be read again is as good as forgotten: it must not run a second time.
            return codec::decode_result(bytes).map_or(Known::Forgotten, |r| Known::Done(Box::new(r)));
        }
        if Some(request) <= self.forgotten { Known::Forgotten } else { Known::New }
    }

    /// Keeps the result of a request that was just executed, and forgets the oldest above the bounds.
    pub(crate) fn remember(&mut self, request: RequestId, result: &Result<Reply, Rejection>) {
        let Ok(bytes) = codec::encode_result(result) else {
            // Above the codec's ceiling: the id still counts as executed, so that a retry is told `OutcomeUnknown`.
            self.forgotten = self.forgotten.max(Some(request));
            return;
        };
        self.reply_bytes += bytes.len() as u64;
        self.replies.insert(request, bytes.into());
        while self.replies.len() > MAX_REPLIES
            || (self.reply_bytes > MAX_REPLY_BYTES as u64 && self.replies.len() > 1)
        {
            let Some((id, old)) = self.replies.pop_first() else { break };
            self.reply_bytes -= old.len() as u64;
            self.forgotten = self.forgotten.max(Some(id));
        }
    }
}
