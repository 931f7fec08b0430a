//! Reads on the data connection.

use tidemill_proto::bookie::ReadRequest;
use tidemill_types::EntryId;

use super::{DataClient, Target, codes, identity};
use crate::{
    core::ReadAnswer,
    transport::{ReadItem, ReadSpec},
};

pub(super) async fn read(mut client: DataClient, target: Target, spec: ReadSpec) -> Vec<ReadItem> {
    let request = ReadRequest {
        identity: Some(identity(&target)),
        ledger: spec.ledger.0,
        first: spec.first.0,
        last: spec.last.0,
        max_bytes: spec.max_bytes,
        header_only: spec.header_only,
        fence: spec.fence,
    };
    let mut out = Vec::new();
    let failed = match client.read(request).await {
        Err(s) => Some(codes::status(&s)),
        Ok(r) => {
            let mut stream = r.into_inner();
            loop {
                match stream.message().await {
                    Ok(Some(m)) => out.extend(
                        m.results
                            .into_iter()
                            .map(|r| (EntryId(r.entry), codes::read(codes::code(r.code), r.bytes))),
                    ),
                    Ok(None) => break None,
                    Err(s) => break Some(codes::status(&s)),
                }
            }
        }
    };
    if let Some(why) = failed {
        let next = out.last().map_or(spec.first, |(e, _): &ReadItem| e.next());
        out.push((next, ReadAnswer::Unknown(why)));
    }
    out
}
