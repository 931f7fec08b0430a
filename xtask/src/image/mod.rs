//! `cargo xtask image`: the container image, without a daemon or a builder.
//!
//! One layer with the two binaries, the C library that they are linked against, and the list of everything that went
//! in. Equal input gives equal bytes: no clock, no user name and no order of a directory gets into them.

mod archive;
mod libraries;
mod root;
mod sbom;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::workspace::Workspace;
use archive::Image;
pub(crate) use archive::full_name;
pub(crate) use root::single;

/// Above this size an image is not what a node should have to fetch.
const LARGEST: u64 = 40 * 1024 * 1024;

/// Flags of `cargo xtask image`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Take the unoptimised binaries of the test build, which must be there, instead of building optimised ones
    #[arg(long)]
    debug_binaries: bool,
    /// The image's name; by default tidemill with the version of the workspace
    #[arg(long, value_name = "NAME:TAG")]
    name: Option<String>,
    /// Where the archive goes; by default image/tidemill.tar in the target folder
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the image's files into this folder instead of an archive: for a builder (see Containerfile)
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "name"])]
    root: Option<PathBuf>,
}

/// An image that was written.
pub(crate) struct Written {
    /// Its name with the tag.
    pub(crate) name: String,
    /// The archive, as OCI and docker load it.
    pub(crate) archive: PathBuf,
}

/// Runs the command.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> anyhow::Result<bool> {
    if let Some(dir) = &args.root {
        root::write(&root::entries(workspace, args.debug_binaries)?, dir)?;
        println!("wrote {}", dir.display());
        return Ok(true);
    }
    build(workspace, args.debug_binaries, args.name.as_deref(), args.output.as_deref())?;
    Ok(true)
}

/// Builds the image and says what it is.
pub(crate) fn build(
    workspace: &Workspace,
    debug_binaries: bool,
    name: Option<&str>,
    output: Option<&Path>,
) -> anyhow::Result<Written> {
    let name = match name {
        Some(name) => name.to_owned(),
        None => format!("tidemill:{}", version(workspace)?),
    };
    let archive = match output {
        Some(output) => output.to_owned(),
        None => workspace.target()?.join("image/tidemill.tar"),
    };
    let entries = root::entries(workspace, debug_binaries)?;
    let image = Image {
        name: &name,
        version: &version(workspace)?,
        entrypoint: &["/usr/bin/tidemill"],
        user: "65532:65532",
        entries: &entries,
    };
    let bytes = image.archive()?;
    let folder = archive.parent().context("the archive needs a folder")?;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    fs::write(&archive, &bytes.archive).with_context(|| archive.display().to_string())?;
    if let Some(sbom) = entries.iter().find(|entry| entry.path.ends_with("sbom.cdx.json")) {
        fs::write(archive.with_extension("cdx.json"), &sbom.bytes)?;
    }
    let size = bytes.archive.len() as u64;
    println!("{name}\n  {}\n  {}\n  {size} bytes, {} files", archive.display(), bytes.digest, entries.len());
    ensure!(debug_binaries || size <= LARGEST, "the image has {size} bytes, more than {LARGEST}");
    Ok(Written { name, archive })
}

fn version(workspace: &Workspace) -> anyhow::Result<String> {
    let metadata = crate::metadata::Metadata::of_members(workspace)?;
    let package = metadata.packages.into_iter().find(|package| package.name == "tidemill");
    Ok(package.context("the workspace has no package `tidemill`")?.version)
}
