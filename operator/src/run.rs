//! The life of the operator: pages, lead, definitions, controllers, ordered stop.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use kube::{Api, Client, Resource, api::ListParams};
use tidemill_crd::{Cluster, ConsumerGroup, Topic};
use tidemill_runtime::{Health, Metrics, Supervisor, http, telemetry};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    args::{Args, LogForm},
    context::{Context, Settings},
    controller, definitions,
    election::Election,
    metrics::OperatorMetrics,
};

/// Between two looks for the definitions.
const LOOK: Duration = Duration::from_secs(2);

/// Runs until a signal, or until the lead is lost.
///
/// # Errors
/// No API server is configured, the HTTP port is taken, or the lead was lost: the process must end then, so that nothing
/// of it goes on beside the new leader.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let form = match args.log_format {
        LogForm::Text => telemetry::LogFormat::Text,
        LogForm::Json => telemetry::LogFormat::Json,
    };
    telemetry::init_logs(form, &args.log).map_err(|e| anyhow::anyhow!("{e}"))?;
    let health = Health::new();
    let pages = Supervisor::new(health.clone());
    let sup = Supervisor::new(health.clone());
    let metrics = Metrics::new();
    let counters = OperatorMetrics::new(&metrics);
    health.waits_for("lead", "not elected yet");
    http::serve(&pages, args.http, "tidemill-operator", health.clone(), metrics).await?;
    watch_signals(&sup)?;
    let client = Client::try_default().await.context("no API server: set KUBECONFIG or run inside a pod")?;
    let identity =
        args.identity.clone().unwrap_or_else(|| format!("tidemill-operator-{}", uuid::Uuid::new_v4()));
    let mut election = Election::new(client.clone(), &args.lease_namespace, &args.lease_name, &identity);
    let stop = sup.token().clone();
    let elected = tokio::select! {
        () = election.wait(|why| health.waits_for("lead", why)) => true,
        () = stop.cancelled() => false,
    };
    let mut lost = None;
    if elected {
        health.has("lead");
        counters.leader.set(1);
        tracing::info!(identity, "leads");
        let work = work(client, &args, counters.clone(), &sup, &identity);
        tokio::select! {
            why = election.hold() => lost = Some(why),
            () = work => {}
            () = stop.cancelled() => {}
        }
        sup.stop().await;
        counters.leader.set(0);
        if lost.is_none() {
            election.release().await;
        }
    }
    pages.stop().await;
    match lost {
        Some(why) => Err(anyhow::anyhow!("the lead was lost: {why}")),
        None => Ok(()),
    }
}

/// Waits for the definitions, then runs the controllers.
async fn work(client: Client, args: &Args, metrics: OperatorMetrics, sup: &Supervisor, identity: &str) {
    wait_for_definitions(&client, args, sup).await;
    let old = definitions::warn_when_old(&client).await;
    metrics.old_definitions.set(i64::try_from(old).unwrap_or(i64::MAX));
    let settings = Settings {
        repository: args.image_repository.clone(),
        version: args.default_version.clone(),
        domain: args.cluster_domain.clone(),
        namespace: args.namespace.clone(),
    };
    let context = Arc::new(Context::new(client, settings, metrics, sup, identity));
    sup.spawn("clusters", controller::cluster::run(context.clone(), sup.clone()));
    sup.spawn("topics", controller::topic::run(context.clone(), sup.clone()));
    sup.spawn("consumer groups", controller::group::run(context, sup.clone()));
    sup.token().cancelled().await;
}

/// Rule 14: the operator may start before its definitions exist.
async fn wait_for_definitions(client: &Client, args: &Args, sup: &Supervisor) {
    loop {
        let seen = futures::join!(
            seen::<Cluster>(client, args),
            seen::<Topic>(client, args),
            seen::<ConsumerGroup>(client, args)
        );
        match seen.0.and(seen.1).and(seen.2) {
            Ok(()) => return sup.health().has("definitions"),
            Err(why) => sup.health().waits_for("definitions", &why),
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = sup.token().cancelled() => return,
        }
    }
}

async fn seen<K>(client: &Client, args: &Args) -> Result<(), String>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let api: Api<K> = match &args.namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let name = format!("{}.tidemill.dev", K::plural(&()));
    match api.list_metadata(&ListParams::default().limit(1)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(s)) if s.code == 404 => {
            Err(format!("{name} is not installed: install the chart tidemill-crds or apply crds/"))
        }
        Err(kube::Error::Api(s)) if s.code == 403 => Err(format!("no right to list {name}: {}", s.message)),
        Err(e) => Err(e.to_string()),
    }
}

fn watch_signals(sup: &Supervisor) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let token = sup.token().clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
        token.cancel();
    });
    Ok(())
}
