//! Makes new volumes writable for everybody.
//!
//! The controllers make the folder of a volume for root alone, and a kubelet changes no owner of such a volume, whatever
//! a pod asks for: a pod that does not run as root could not use it. A real provisioner knows better.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{convert::Infallible, env};

use anyhow::Context;
use rustix::fs::inotify;

use super::process::start;
use super::state::State;

/// Where the controllers make volumes; no flag moves it.
pub(super) const FOLDER: &str = "/tmp/hostpath_pv";

/// Starts this very program as the one that does it.
pub(super) fn start_opener(state: &State) -> anyhow::Result<()> {
    let mut command = Command::new(this_program()?);
    command.args(["kube", "open-volumes"]).env("TIDEMILL_KUBE_STATE", state.dir());
    start(state, "volumes", command)
}

/// Where this program lies. A build that ran meanwhile has put another file of the same name there, and the system then
/// says that the one that runs was deleted.
pub(crate) fn this_program() -> anyhow::Result<PathBuf> {
    let runs = env::current_exe()?;
    let place = runs.to_str().and_then(|p| p.strip_suffix(" (deleted)")).map(PathBuf::from);
    Ok(place.unwrap_or(runs))
}

/// Opens every volume that is made from now on.
pub(super) fn open() -> anyhow::Result<Infallible> {
    let folder = Path::new(FOLDER);
    fs::create_dir_all(folder).with_context(|| FOLDER.to_owned())?;
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC)?;
    inotify::add_watch(&watch, folder, inotify::WatchFlags::CREATE | inotify::WatchFlags::ONLYDIR)?;
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(&watch, &mut buffer);
    loop {
        let event = events.next().context("events of the folder")?;
        let Some(name) = event.file_name() else { continue };
        let volume = folder.join(name.to_str().context("the name of a volume")?);
        match fs::set_permissions(&volume, fs::Permissions::from_mode(0o777)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| volume.display().to_string());
            }
            Ok(()) | Err(_) => {}
        }
    }
}
