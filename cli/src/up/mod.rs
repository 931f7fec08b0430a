//! `tidemill up`: a whole cluster on this machine.

mod bootstrap;
pub(crate) mod child;
mod layout;
mod members;
mod pages;
mod plan;
mod ready;

use tidemill_meta_client::{MetaClient, MetaClientConfig};
use tidemill_runtime::{Health, Metrics, Supervisor, http};
use tidemill_types::ClusterId;

use self::{
    layout::Layout,
    members::Members,
    plan::{Member, Plan},
};
use crate::{
    args::{Global, UpArgs},
    commands,
    error::CliError,
    logs, output, roles, signals,
};

/// Runs until a signal.
#[expect(clippy::needless_pass_by_value, reason = "the arguments end here")]
pub(crate) fn run(global: &Global, args: UpArgs) -> Result<(), CliError> {
    logs::start(global.log_format, logs::level(global, "warn"))?;
    roles::runtime()?.block_on(serve(global, &args))
}

async fn serve(global: &Global, args: &UpArgs) -> Result<(), CliError> {
    let health = Health::new();
    let sup = Supervisor::new(health.clone());
    health.waits_for("start", "the cluster is starting");
    let mut layout = Layout::open(&args.data_dir)?;
    let plan = Plan::new(args, &mut layout)?;
    layout.save()?;
    signals::watch(&sup, false)?;
    let metrics = Metrics::new();
    let pages = Supervisor::new(health.clone());
    pages::announce(args, &plan, &metrics);
    http::serve(&pages, args.http, &pages::title(args, &plan), health.clone(), metrics.clone())
        .await
        .map_err(|e| roles::bind_error(&e).help("choose other ports with --listen and --http"))?;
    let cluster = Cluster::new(args, &sup, &metrics);
    let result = cluster.run(global, args, &plan, &mut layout, &sup).await;
    pages.stop().await;
    result
}

/// The members, in this process or as processes of their own.
struct Cluster {
    here: Option<Members>,
    processes: [Supervisor; 3],
    metrics: Metrics,
}

impl Cluster {
    fn new(args: &UpArgs, sup: &Supervisor, metrics: &Metrics) -> Self {
        Self {
            here: (!args.processes).then(Members::default),
            processes: [sup.apart(), sup.apart(), sup.apart()],
            metrics: metrics.clone(),
        }
    }

    async fn run(
        mut self,
        global: &Global,
        args: &UpArgs,
        plan: &Plan,
        layout: &mut Layout,
        sup: &Supervisor,
    ) -> Result<(), CliError> {
        let started = self.start(args, plan, layout, sup).await;
        let result = match started {
            Ok(id) => {
                sup.health().has("start");
                if !global.quiet {
                    announce(args, plan, id);
                }
                if let Err(e) = manifests(args, plan).await {
                    sup.fatal("the manifests were not applied");
                    self.stop().await;
                    return Err(e);
                }
                sup.token().cancelled().await;
                roles::ended(sup)
            }
            Err(e) => Err(e),
        };
        self.stop().await;
        result
    }

    async fn start(
        &mut self,
        args: &UpArgs,
        plan: &Plan,
        layout: &mut Layout,
        sup: &Supervisor,
    ) -> Result<ClusterId, CliError> {
        self.start_role(args, layout, &plan.metas, sup, 0).await?;
        let client = MetaClient::connect(MetaClientConfig::new(plan.meta_addresses()), &sup.child());
        let id = bootstrap::quorum(&client, plan, layout, sup).await?;
        let old = ready::old_sessions(&client, plan, |name| layout.is_gone(name), sup).await?;
        self.start_role(args, layout, &plan.bookies, sup, 1).await?;
        self.start_role(args, layout, &plan.brokers, sup, 2).await?;
        ready::wait(&client, plan, &old, sup).await?;
        Ok(id)
    }

    async fn start_role(
        &mut self,
        args: &UpArgs,
        layout: &Layout,
        members: &[Member],
        sup: &Supervisor,
        role: usize,
    ) -> Result<(), CliError> {
        match &mut self.here {
            None => members.iter().try_for_each(|m| {
                let spec = child::Spec { name: m.name.clone(), args: m.args() };
                child::run(&self.processes[role], layout.root(), spec, args.restart)
            }),
            Some(here) => {
                tokio::select! {
                    done = async {
                        match role {
                            0 => here.start_metas(members, sup, &self.metrics).await,
                            1 => here.start_bookies(members, sup, &self.metrics).await,
                            _ => here.start_brokers(members, sup, &self.metrics).await,
                        }
                    } => done,
                    () = sup.token().cancelled() => Err(bootstrap::stopped(sup)),
                }
            }
        }
    }

    /// Brokers first, so that they can hand over; the quorum last.
    async fn stop(self) {
        if let Some(here) = self.here {
            here.stop().await;
        }
        for role in self.processes.iter().rev() {
            role.stop().await;
        }
    }
}

/// `-f`: applied once the cluster serves. What is refused ends it: whoever gives manifests wants them.
async fn manifests(args: &UpArgs, plan: &Plan) -> Result<(), CliError> {
    let Some(first) = plan.brokers.first().filter(|_| !args.manifests.is_empty()) else { return Ok(()) };
    let config = tidemill_client::ClientConfig::new([first.listen.to_string()]);
    let client = tidemill_client::Client::connect(config).await.map_err(|e| commands::connect_failed(&e))?;
    commands::manifest::apply_files(&client, &args.manifests).await
}

fn announce(args: &UpArgs, plan: &Plan, id: ClusterId) {
    let first = plan.brokers.first().map(|b| b.listen.to_string()).unwrap_or_default();
    if args.bookies < 3 {
        output::note(&format!(
            "warning: {} of 3 bookies: topics get at most {} copies and survive no loss of a disk",
            args.bookies, args.bookies
        ));
    }
    let hint = if args.listen.port() == tidemill_runtime::defaults::PORT_GRPC {
        String::new()
    } else {
        format!("--server http://{first} ")
    };
    output::note(&format!(
        "tidemill serves on {first} (cluster {id}, {} bookies, {} brokers, data in {}); try: tidemill {hint}topic create orders --partitions 8",
        plan.bookies.len(),
        plan.brokers.len(),
        args.data_dir.display(),
    ));
}
