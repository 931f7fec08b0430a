//! The members of a cluster in this process.

use tidemill_runtime::{Metrics, Supervisor, config::Layers};

use super::plan::Member;
use crate::{
    error::CliError,
    roles::{Role, bookie::Bookie, broker::Broker, config_error, meta::Meta},
};

/// A running member.
pub(crate) struct Running<R: Role> {
    handle: R::Handle,
    sup: Supervisor,
}

/// Everything that runs in this process.
#[derive(Default)]
pub(crate) struct Members {
    metas: Vec<Running<Meta>>,
    bookies: Vec<Running<Bookie>>,
    brokers: Vec<Running<Broker>>,
}

impl Members {
    pub(crate) async fn start_metas(
        &mut self,
        members: &[Member],
        sup: &Supervisor,
        metrics: &Metrics,
    ) -> Result<(), CliError> {
        start(&mut self.metas, members, sup, metrics).await
    }

    pub(crate) async fn start_bookies(
        &mut self,
        members: &[Member],
        sup: &Supervisor,
        metrics: &Metrics,
    ) -> Result<(), CliError> {
        start(&mut self.bookies, members, sup, metrics).await
    }

    pub(crate) async fn start_brokers(
        &mut self,
        members: &[Member],
        sup: &Supervisor,
        metrics: &Metrics,
    ) -> Result<(), CliError> {
        start(&mut self.brokers, members, sup, metrics).await
    }

    /// Brokers first, so that they can hand over; the quorum last.
    pub(crate) async fn stop(self) {
        stop(self.brokers).await;
        stop(self.bookies).await;
        stop(self.metas).await;
    }
}

async fn start<R: Role>(
    into: &mut Vec<Running<R>>,
    members: &[Member],
    sup: &Supervisor,
    metrics: &Metrics,
) -> Result<(), CliError> {
    let starts = members.iter().map(|member| async move {
        let mut layers = Layers::new(&R::Config::default()).map_err(config_error)?;
        for (key, value) in &member.keys {
            layers.flag(key, value).map_err(config_error)?;
        }
        let config: R::Config = layers.build().map_err(config_error)?;
        let part = sup.apart();
        let handle = R::start(config, &part, metrics).await?;
        Ok::<_, CliError>(Running::<R> { handle, sup: part })
    });
    for started in futures::future::join_all(starts).await {
        into.push(started?);
    }
    Ok(())
}

async fn stop<R: Role>(members: Vec<Running<R>>) {
    futures::future::join_all(members.into_iter().map(|m| async move {
        R::stop(m.handle).await;
        m.sup.stop().await;
    }))
    .await;
}
