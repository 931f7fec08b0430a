//! `GetFeatureLevel`, `RaiseFeatureLevel`.

use tidemill_meta_client::FeatureLevel;
use tidemill_proto::v1;

use super::Caller;
use crate::{fault::Fault, service::admin::unanswered};

async fn ask(caller: Caller<'_>, level: u32, dry_run: bool) -> Result<FeatureLevel, Fault> {
    let asked = caller.core.client.raise_feature_level(level, dry_run);
    let late = || if dry_run { Fault::deadline() } else { Fault::deadline_unknown() };
    let answer = caller.deadline.bound(asked).await.map_err(|_| late())?;
    answer.map_err(|e| unanswered("the feature level", &e))
}

pub(super) async fn get(
    caller: Caller<'_>,
    _: v1::GetFeatureLevelRequest,
) -> Result<v1::GetFeatureLevelResponse, Fault> {
    let f = ask(caller, 0, true).await?;
    Ok(v1::GetFeatureLevelResponse { level: f.level, highest: f.highest })
}

pub(super) async fn raise(
    caller: Caller<'_>,
    r: v1::RaiseFeatureLevelRequest,
) -> Result<v1::RaiseFeatureLevelResponse, Fault> {
    caller.check_epoch().await?;
    let f = ask(caller, r.level, false).await?;
    Ok(v1::RaiseFeatureLevelResponse { level: f.level })
}
