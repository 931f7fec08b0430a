//! Small file systems of a test's own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

/// A mounted tmpfs; dropping it unmounts it.
#[derive(Debug)]
pub(crate) struct Mount(PathBuf);

impl Mount {
    /// Mounts an empty tmpfs of `mib` MiB on a folder that it makes.
    ///
    /// # Errors
    /// This process may not mount: such a test needs root, or `CAP_SYS_ADMIN` in a mount namespace of its own.
    pub(crate) fn tmpfs(on: &Path, mib: u64) -> Result<Self> {
        fs::create_dir_all(on)?;
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &format!("size={mib}m,mode=0755"), "tidemill-e2e"]).arg(on);
        let out = command.output().context("mount(8)")?;
        ensure!(
            out.status.success(),
            "a tmpfs cannot be mounted on {}: {}; this test needs the right to mount (root)",
            on.display(),
            String::from_utf8_lossy(&out.stderr).trim()
        );
        Ok(Self(on.to_path_buf()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: a process that is just being killed may still hold a file. A failure leaves the folder, which is then reported.
        drop(Command::new("umount").arg("--lazy").arg(&self.0).status());
    }
}
