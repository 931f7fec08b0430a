//! Who runs in a cluster of `tidemill up`, and with which configuration.

use std::net::SocketAddr;

use super::layout::Layout;
use crate::{
    args::{Setting, UpArgs},
    error::CliError,
};

/// A member to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// `meta`, `bookie` or `broker`.
    pub(crate) role: &'static str,
    /// Such as `bookie-0`.
    pub(crate) name: String,
    /// Where it listens.
    pub(crate) listen: SocketAddr,
    /// Its HTTP port, when it is a process of its own.
    pub(crate) http: SocketAddr,
    /// Its configuration as key and value, before `--set`.
    pub(crate) keys: Vec<(String, String)>,
}

/// All members in the order in which they are started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) metas: Vec<Member>,
    pub(crate) bookies: Vec<Member>,
    pub(crate) brokers: Vec<Member>,
}

/// Copies of a topic unless it says otherwise.
const COPIES: u8 = 3;
/// Memory budget of a broker of `up`, bytes: a quarter of that of a broker with a machine of its own.
const BROKER_MEMORY: u64 = 256 << 20;

impl Plan {
    /// Chooses names, ports and configuration.
    pub(crate) fn new(args: &UpArgs, layout: &mut Layout) -> Result<Self, CliError> {
        let metas = members(args.metas, "meta", layout, |layout, name| {
            vec![("data-dir".to_owned(), layout.member_dir(name).display().to_string())]
        })?;
        let meta_list = metas.iter().map(|m| m.listen.to_string()).collect::<Vec<_>>().join(",");
        let bookies = members(args.bookies, "bookie", layout, |layout, name| {
            vec![
                ("data-dirs".to_owned(), layout.member_dir(name).display().to_string()),
                ("meta".to_owned(), meta_list.clone()),
            ]
        })?;
        let mut brokers = members(args.brokers, "broker", layout, |_, _| {
            let mut keys = vec![("meta".to_owned(), meta_list.clone())];
            keys.push(("memory-bytes".to_owned(), BROKER_MEMORY.to_string()));
            if args.bookies < COPIES {
                keys.push(("max-copies".to_owned(), args.bookies.to_string()));
            }
            keys
        })?;
        if let Some(first) = brokers.first_mut() {
            let chosen = first.listen.port();
            first.listen = args.listen;
            if first.listen.port() == 0 {
                // What it gets is told to clients and looked for by `ready`, so it is chosen here.
                first.listen.set_port(chosen);
            }
        }
        let mut plan = Self { metas, bookies, brokers };
        for member in plan.metas.iter_mut().chain(&mut plan.bookies).chain(&mut plan.brokers) {
            member.finish(&args.set);
        }
        Ok(plan)
    }

    /// Addresses of the quorum's members.
    pub(crate) fn meta_addresses(&self) -> Vec<String> {
        self.metas.iter().map(|m| m.listen.to_string()).collect()
    }
}

impl Member {
    fn finish(&mut self, set: &[Setting]) {
        self.keys.push(("name".to_owned(), self.name.clone()));
        self.keys.push(("listen".to_owned(), self.listen.to_string()));
        for s in set.iter().filter(|s| s.role == self.role) {
            self.keys.retain(|(k, _)| *k != s.key);
            self.keys.push((s.key.clone(), s.value.clone()));
        }
    }

    /// The command line of its process.
    pub(crate) fn args(&self) -> Vec<String> {
        let mut args = vec![self.role.to_owned(), format!("--http={}", self.http)];
        args.extend(self.keys.iter().map(|(k, v)| format!("--{k}={v}")));
        args
    }
}

fn members(
    count: u8,
    role: &'static str,
    layout: &mut Layout,
    keys: impl Fn(&Layout, &str) -> Vec<(String, String)>,
) -> Result<Vec<Member>, CliError> {
    (0..count)
        .map(|i| {
            let name = format!("{role}-{i}");
            let listen = SocketAddr::from(([127, 0, 0, 1], layout.port(&name)?));
            let http = SocketAddr::from(([127, 0, 0, 1], layout.port(&format!("{name}-http"))?));
            Ok(Member { role, keys: keys(layout, &name), name, listen, http })
        })
        .collect()
}
