//! The shared libraries of a binary, and the Debian packages that they come from.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::kube::output;

/// A shared library of this machine.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Library {
    /// Where the binary looks for it.
    pub(super) path: String,
    /// The file behind all links.
    pub(super) real: PathBuf,
    pub(super) package: Package,
}

/// A package of the machine that the image is built on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
}

/// All libraries that the binaries need, each once.
pub(super) fn of(binaries: &[PathBuf]) -> anyhow::Result<Vec<Library>> {
    let mut paths = BTreeSet::new();
    for binary in binaries {
        let told = output(Command::new("ldd").arg(binary)).context("ldd (Debian: libc-bin)")?;
        for line in told.lines() {
            paths.extend(library(line)?);
        }
    }
    paths.into_iter().map(describe).collect()
}

/// The path in a line of ldd: `name => path (address)`, or `path (address)` for the loader.
fn library(line: &str) -> anyhow::Result<Option<String>> {
    let line = line.trim();
    if line.contains("not found") {
        bail!("the binary needs what this machine does not have: {line}");
    }
    let place = line.split_once("=> ").map_or(line, |(_, place)| place);
    // The kernel's own page has a name and no file.
    Ok(place.split_whitespace().next().filter(|path| path.starts_with('/')).map(str::to_owned))
}

fn describe(path: String) -> anyhow::Result<Library> {
    let real = fs::canonicalize(&path).with_context(|| path.clone())?;
    let package = owner(&[Path::new(&path), real.as_path()])?;
    Ok(Library { path, real, package })
}

/// The package that owns one of the paths: where /lib is a link to /usr/lib, it knows a file by either name.
fn owner(paths: &[&Path]) -> anyhow::Result<Package> {
    let mut asked = Vec::new();
    for path in paths {
        asked.push(path.to_path_buf());
        asked.extend(path.strip_prefix("/usr").ok().map(|rest| Path::new("/").join(rest)));
    }
    for path in &asked {
        let Ok(told) = output(Command::new("dpkg-query").arg("--search").arg(path)) else { continue };
        let Some((name, _)) = told.split_once([':', ' ']) else { continue };
        let version = output(Command::new("dpkg-query").args(["--show", "--showformat=${Version}", name]))?;
        return Ok(Package { name: name.to_owned(), version });
    }
    bail!("no Debian package owns any of {asked:?}: the image takes its C library from one")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_ldd_are_read() {
        let path = |line| library(line).unwrap();
        assert_eq!(path("\tlinux-vdso.so.1 (0x00007ffd)"), None);
        assert_eq!(path("\tlibc.so.6 => /lib/libc.so.6 (0x00007f)").as_deref(), Some("/lib/libc.so.6"));
        assert_eq!(path("\t/lib64/ld-linux.so.2 (0x0)").as_deref(), Some("/lib64/ld-linux.so.2"));
        assert!(library("\tlibx.so => not found").is_err());
    }
}
