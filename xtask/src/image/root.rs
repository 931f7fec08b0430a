//! The files of the image.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use super::archive::Image;
use super::{libraries, sbom};
use crate::workspace::Workspace;

/// The binaries, as packages and programs are called alike.
const BINARIES: [&str; 2] = ["tidemill", "tidemill-operator"];

/// A file or a folder.
pub(crate) struct Entry {
    /// Relative to the root, without a leading slash.
    pub(super) path: String,
    pub(super) mode: u32,
    pub(super) folder: bool,
    pub(super) bytes: Vec<u8>,
}

impl Entry {
    pub(super) fn folder(path: &str) -> Self {
        Self { path: path.to_owned(), mode: 0o755, folder: true, bytes: Vec::new() }
    }

    pub(super) fn file(path: &str, bytes: Vec<u8>) -> Self {
        Self { path: path.to_owned(), mode: 0o644, folder: false, bytes }
    }

    fn program(path: &str, bytes: Vec<u8>) -> Self {
        Self { mode: 0o755, ..Self::file(path, bytes) }
    }
}

/// Everything that goes into the image.
pub(super) fn entries(workspace: &Workspace, debug: bool) -> anyhow::Result<Vec<Entry>> {
    let built = binaries(workspace, debug)?;
    let found = libraries::of(&built)?;
    let mut entries = vec![
        Entry::folder("etc"),
        // Nothing but these two tells the C library how to find names and who it runs as.
        Entry::file("etc/nsswitch.conf", b"hosts: files dns\n".to_vec()),
        Entry::file("etc/passwd", b"tidemill:x:65532:65532::/:/sbin/nologin\n".to_vec()),
        Entry { mode: 0o1777, ..Entry::folder("tmp") },
    ];
    for (name, path) in BINARIES.iter().zip(&built) {
        entries.push(Entry::program(&format!("usr/bin/{name}"), stripped(path)?));
    }
    let mut packages = Vec::new();
    for library in found {
        entries.push(Entry::program(library.path.trim_start_matches('/'), read(Path::new(&library.real))?));
        packages.push(library.package);
    }
    packages.sort();
    packages.dedup();
    for package in &packages {
        let from = Path::new("/usr/share/doc").join(&package.name).join("copyright");
        entries.push(Entry::file(&format!("usr/share/doc/{}/copyright", package.name), read(&from)?));
    }
    entries.push(Entry::file("usr/share/doc/tidemill/LICENSE", read(&workspace.root().join("LICENSE"))?));
    let list = sbom::cyclone_dx(workspace, &BINARIES, &packages)?;
    entries.push(Entry::file("usr/share/tidemill/sbom.cdx.json", list));
    Ok(with_parents(entries))
}

/// Writes the files into an empty folder.
pub(super) fn write(entries: &[Entry], dir: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    ensure!(fs::read_dir(dir)?.next().is_none(), "{} is not empty", dir.display());
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by(|a, b| a.path.cmp(&b.path));
    for entry in sorted {
        let path = dir.join(&entry.path);
        if entry.folder { fs::create_dir(&path) } else { fs::write(&path, &entry.bytes) }
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(entry.mode)))
            .with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// An image of one static program, for the cluster's own needs.
pub(crate) fn single(program: &Path, name: &str, to: &Path) -> anyhow::Result<()> {
    let file = program.file_name().and_then(|name| name.to_str()).context("a program needs a name")?;
    let entries = [Entry::program(file, read(program)?)];
    let entrypoint = format!("/{file}");
    let image = Image {
        name,
        version: "0",
        entrypoint: &[entrypoint.as_str()],
        user: "65535:65535",
        entries: &entries,
    };
    fs::write(to, image.archive()?.archive).with_context(|| to.display().to_string())
}

/// The two binaries, built when they are the optimised ones.
fn binaries(workspace: &Workspace, debug: bool) -> anyhow::Result<Vec<PathBuf>> {
    let folder = workspace.target()?.join(if debug { "debug" } else { "release" });
    if !debug {
        let mut build = workspace.cargo(&["build", "--release", "--locked"]);
        let status = build.args(BINARIES.iter().flat_map(|name| ["--package", name])).status()?;
        ensure!(status.success(), "the binaries did not build");
    }
    let paths: Vec<PathBuf> = BINARIES.iter().map(|name| folder.join(name)).collect();
    for path in &paths {
        ensure!(path.is_file(), "{} is not there: run `cargo build --workspace` first", path.display());
    }
    Ok(paths)
}

/// A binary without its symbols, which are two thirds of it.
fn stripped(path: &Path) -> anyhow::Result<Vec<u8>> {
    let to = path.with_extension("stripped");
    let status =
        Command::new("strip").arg("-o").arg(&to).arg(path).status().context("strip (Debian: binutils)")?;
    ensure!(status.success(), "strip of {} ended with {status}", path.display());
    let bytes = read(&to)?;
    fs::remove_file(&to)?;
    Ok(bytes)
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| path.display().to_string())
}

/// Adds the folders that the files lie in.
fn with_parents(mut entries: Vec<Entry>) -> Vec<Entry> {
    let mut missing: Vec<String> = Vec::new();
    for entry in &entries {
        let parents =
            Path::new(&entry.path).ancestors().skip(1).filter_map(Path::to_str).filter(|p| !p.is_empty());
        missing.extend(parents.map(str::to_owned));
    }
    missing.sort();
    missing.dedup();
    missing.retain(|path| entries.iter().all(|entry| entry.path != *path));
    entries.extend(missing.iter().map(|path| Entry::folder(path)));
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_added_once() {
        let made = with_parents(vec![Entry::file("a/b/c", Vec::new()), Entry::file("a/d", Vec::new())]);
        let mut paths: Vec<&str> = made.iter().map(|entry| entry.path.as_str()).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["a", "a/b", "a/b/c", "a/d"]);
    }

    #[test]
    fn a_root_is_written_with_its_modes_and_only_into_an_empty_folder() {
        let dir = tempfile::tempdir().unwrap();
        let entries = with_parents(vec![Entry::program("bin/x", b"1".to_vec())]);
        write(&entries, dir.path()).unwrap();
        let mode = fs::metadata(dir.path().join("bin/x")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        assert!(write(&entries, dir.path()).unwrap_err().to_string().contains("not empty"));
    }
}
