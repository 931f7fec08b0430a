//! The cluster's network: a namespace with a bridge, and a pair of interfaces that lets this machine reach it.
//!
//! All addresses are of 198.18.0.0/15, set aside for tests of networks: they mean nothing outside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::process::{output, run};

/// The namespace, and what the interfaces' names begin with.
const NAME: &str = "tidemill-kube";
const HOST_SIDE: &str = "tidemill-kube0";
const INNER_SIDE: &str = "host";
const HOST: &str = "198.18.128.1";
const INNER: &str = "198.18.128.2";

/// Addresses of pods and nodes.
pub(super) const PODS: &str = "198.18.64.0/18";
/// The bridge: API server and name server listen here.
pub(super) const GATEWAY: &str = "198.18.64.1";
/// The first address for a pod; those before it are the nodes'.
pub(super) const FIRST_POD: &str = "198.18.65.1";
/// Addresses of Services.
pub(super) const SERVICES: &str = "198.19.64.0/18";

/// The address of a node.
pub(super) fn node_address(number: u8) -> String {
    format!("198.18.64.{}", 10 + u16::from(number))
}

/// A program that runs inside of the cluster's network.
pub(super) fn inside(program: &Path) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net={}", place().display())).arg("--").arg(program);
    command
}

/// Makes the network.
pub(super) fn create() -> anyhow::Result<()> {
    ip(&["netns", "add", NAME])?;
    ip(&["link", "add", HOST_SIDE, "type", "veth", "peer", "name", INNER_SIDE, "netns", NAME])?;
    ip(&["address", "add", &format!("{HOST}/30"), "dev", HOST_SIDE])?;
    ip(&["link", "set", HOST_SIDE, "up"])?;
    for args in [
        vec!["address", "add", "198.18.128.2/30", "dev", INNER_SIDE],
        vec!["link", "set", INNER_SIDE, "up"],
        vec!["link", "set", "lo", "up"],
        vec!["link", "add", "pods", "type", "bridge"],
        vec!["address", "add", "198.18.64.1/18", "dev", "pods"],
        vec!["link", "set", "pods", "up"],
        // The API server refuses a network without a way out.
        vec!["route", "add", "default", "via", HOST],
    ] {
        run(inside(Path::new("ip")).args(args))?;
    }
    run(inside(Path::new("sysctl")).args(["-q", "-w", "net.ipv4.ip_forward=1"]))?;
    for range in [PODS, SERVICES] {
        ip(&["route", "replace", range, "via", INNER])?;
    }
    Ok(())
}

/// Gives a node its address.
pub(super) fn add_node(number: u8) -> anyhow::Result<()> {
    let address = format!("{}/32", node_address(number));
    run(inside(Path::new("ip")).args(["address", "replace", &address, "dev", "pods"]))
}

/// Removes the network with everything in it.
pub(super) fn remove() -> anyhow::Result<()> {
    // Routes and the inner side go with the interface, the bridge and all rules with the namespace.
    if fs::exists(format!("/sys/class/net/{HOST_SIDE}"))? {
        ip(&["link", "delete", HOST_SIDE])?;
    }
    if place().exists() {
        ip(&["netns", "delete", NAME])?;
    }
    Ok(())
}

fn place() -> PathBuf {
    Path::new("/run/netns").join(NAME)
}

fn ip(args: &[&str]) -> anyhow::Result<()> {
    output(Command::new("ip").args(args)).map(drop)
}
