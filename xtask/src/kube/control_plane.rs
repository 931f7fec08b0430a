//! etcd, API server, controllers, scheduler, proxy and name server.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};

use super::network::{GATEWAY, PODS, SERVICES, inside};
use super::process::{output, run, start, wait};
use super::state::State;
use super::tools::Tools;
use super::up::render;

const LIMIT: Duration = Duration::from_secs(90);
const ETCD: &str = "http://127.0.0.1:2379";

/// Starts etcd and the API server and waits until it answers.
pub(super) fn start_api_server(workspace: &Path, tools: &Tools, state: &State) -> anyhow::Result<()> {
    let dir = state.dir();
    let file = |name: &str| dir.join(name).display().to_string();
    let key = file("service-accounts.key");
    let curve = ["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out"];
    output(Command::new("openssl").args(curve).arg(&key)).context("openssl")?;
    let token = output(Command::new("openssl").args(["rand", "-hex", "16"]))?;
    let token = token.trim();
    fs::write(dir.join("tokens.csv"), format!("{token},admin,admin,system:masters\n"))?;

    let mut etcd = inside(&tools.program("etcd"));
    etcd.arg("--data-dir").arg(dir.join("etcd")).args([
        "--unsafe-no-fsync",
        "--listen-client-urls",
        ETCD,
        "--advertise-client-urls",
        ETCD,
        "--listen-peer-urls",
        "http://127.0.0.1:2380",
    ]);
    start(state, "etcd", etcd)?;

    let mut server = inside(&tools.program("kube-apiserver"));
    server.args(["--etcd-servers", ETCD, "--bind-address", GATEWAY, "--advertise-address", GATEWAY]);
    server.args(["--secure-port", "6443", "--service-cluster-ip-range", SERVICES]);
    server.args(["--cert-dir", &file("certificates"), "--token-auth-file", &file("tokens.csv")]);
    server.args(["--authorization-mode", "Node,RBAC", "--allow-privileged=true"]);
    server.args(["--kubelet-preferred-address-types", "InternalIP"]);
    server.args(["--service-account-key-file", &key, "--service-account-signing-key-file", &key]);
    server.args(["--service-account-issuer", "https://kubernetes.default.svc"]);
    start(state, "kube-apiserver", server)?;

    let template = fs::read_to_string(workspace.join("e2e/kube/config/kubeconfig.yaml"))?;
    let values = [("gateway", GATEWAY), ("state", &dir.display().to_string()), ("token", token)];
    fs::write(state.kubeconfig(), render(&template, &values)?)?;
    wait("the API server", LIMIT, || output(tools.kubectl(state).args(["get", "--raw", "/readyz"])).map(drop))
}

/// Starts what makes a cluster of an API server.
pub(super) fn start_controllers(workspace: &Path, tools: &Tools, state: &State) -> anyhow::Result<()> {
    let kubeconfig = state.kubeconfig().display().to_string();
    let certificate = state.dir().join("certificates/apiserver.crt").display().to_string();
    let program = |name: &str| {
        let mut command = inside(&tools.program(name));
        command.args(["--kubeconfig", &kubeconfig]);
        command
    };
    let certificates = |name: &str| state.dir().join(format!("certificates-{name}")).display().to_string();

    let mut controllers = program("kube-controller-manager");
    controllers.args(["--leader-elect=false", "--use-service-account-credentials=true"]);
    controllers.arg("--service-account-private-key-file").arg(state.dir().join("service-accounts.key"));
    controllers.args(["--root-ca-file", &certificate, "--cert-dir", &certificates("controllers")]);
    // Volumes: a folder of this machine each.
    controllers.args(["--bind-address", "127.0.0.1", "--enable-hostpath-provisioner=true"]);
    start(state, "kube-controller-manager", controllers)?;

    let mut scheduler = program("kube-scheduler");
    scheduler.args(["--leader-elect=false", "--bind-address", "127.0.0.1"]);
    scheduler.args(["--cert-dir", &certificates("scheduler")]);
    start(state, "kube-scheduler", scheduler)?;

    // One proxy serves all nodes: they share the network namespace. Answers must pass it on their way back, also on a
    // machine whose bridges do not ask the firewall: hence every connection to a Service is masqueraded. The tables of
    // connections belong to the whole machine and stay as they are.
    let mut proxy = program("kube-proxy");
    proxy.args(["--proxy-mode", "iptables", "--hostname-override", "node-0", "--cluster-cidr", PODS]);
    proxy.args(["--masquerade-all", "--bind-address", "127.0.0.1"]);
    proxy.args(["--conntrack-max-per-core", "0", "--conntrack-min", "0"]);
    proxy.args(["--conntrack-tcp-timeout-established", "0", "--conntrack-tcp-timeout-close-wait", "0"]);
    start(state, "kube-proxy", proxy)?;

    let template = fs::read_to_string(workspace.join("e2e/kube/config/Corefile"))?;
    let corefile = state.dir().join("Corefile");
    fs::write(&corefile, render(&template, &[("gateway", GATEWAY), ("kubeconfig", &kubeconfig)])?)?;
    let mut names = inside(&tools.program("coredns"));
    names.arg("-conf").arg(&corefile);
    start(state, "coredns", names)?;

    run(tools.kubectl(state).args(["apply", "-f"]).arg(workspace.join("e2e/kube/config/storageclass.yaml")))
}

/// Waits until pods can run on all of the nodes.
pub(super) fn ready(tools: &Tools, state: &State, nodes: u8) -> anyhow::Result<()> {
    wait("nodes", LIMIT, || {
        let all = output(tools.kubectl(state).args(["get", "nodes", "--no-headers"]))?;
        let ready = all.lines().filter(|line| line.split_whitespace().nth(1) == Some("Ready")).count();
        ensure!(ready == usize::from(nodes), "{ready} of {nodes} are ready");
        Ok(())
    })?;
    wait("the first service account", LIMIT, || {
        output(tools.kubectl(state).args(["get", "serviceaccount", "default", "-n", "default"])).map(drop)
    })
}
