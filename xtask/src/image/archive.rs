//! An image of one layer as one archive: an OCI layout that also has the manifest which `docker load` reads.

use std::io::Write;

use anyhow::Context;
use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::root::Entry;

/// What an image is made of.
pub(super) struct Image<'a> {
    /// `name:tag`.
    pub(super) name: &'a str,
    pub(super) version: &'a str,
    pub(super) entrypoint: &'a [&'a str],
    /// `uid:gid`.
    pub(super) user: &'a str,
    /// In any order.
    pub(super) entries: &'a [Entry],
}

/// The bytes of an image.
pub(super) struct Archive {
    pub(super) archive: Vec<u8>,
    /// The manifest's digest: the image's identity.
    pub(super) digest: String,
}

struct Blob {
    digest: String,
    bytes: Vec<u8>,
}

impl Blob {
    fn new(bytes: Vec<u8>) -> Self {
        Self { digest: digest(&bytes), bytes }
    }

    fn json(value: &Value) -> anyhow::Result<Self> {
        Ok(Self::new(serde_json::to_vec(value)?))
    }

    fn describe(&self, media_type: &str) -> Value {
        json!({ "mediaType": media_type, "digest": self.digest, "size": self.bytes.len() })
    }

    fn path(&self) -> String {
        format!("blobs/{}", self.digest.replace(':', "/"))
    }
}

impl Image<'_> {
    /// The archive's bytes.
    pub(super) fn archive(&self) -> anyhow::Result<Archive> {
        let layer = tar(self.entries)?;
        let layer_id = digest(&layer);
        let layer = Blob::new(compress(&layer)?);
        let config = Blob::json(&json!({
            "architecture": architecture(),
            "os": "linux",
            "config": {
                "Entrypoint": self.entrypoint,
                "Env": ["PATH=/usr/bin"],
                "User": self.user,
                "WorkingDir": "/",
                "Labels": {
                    "org.opencontainers.image.title": "Tidemill",
                    "org.opencontainers.image.version": self.version,
                    "org.opencontainers.image.licenses": "Apache-2.0",
                },
            },
            "rootfs": { "type": "layers", "diff_ids": [layer_id] },
            "history": [{ "created_by": "cargo xtask image" }],
        }))?;
        let manifest = Blob::json(&json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config.describe("application/vnd.oci.image.config.v1+json"),
            "layers": [layer.describe("application/vnd.oci.image.layer.v1.tar+gzip")],
        }))?;
        let mut described = manifest.describe("application/vnd.oci.image.manifest.v1+json");
        let full = full_name(self.name);
        let tag = self.name.rsplit_once(':').map_or("latest", |(_, tag)| tag);
        described["annotations"] =
            json!({ "io.containerd.image.name": full, "org.opencontainers.image.ref.name": tag });
        let index = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [described],
        });
        let docker = json!([{ "Config": config.path(), "RepoTags": [full], "Layers": [layer.path()] }]);
        let digest = manifest.digest.clone();

        let mut entries = vec![
            Entry::folder("blobs"),
            Entry::folder("blobs/sha256"),
            Entry::file("oci-layout", serde_json::to_vec(&json!({ "imageLayoutVersion": "1.0.0" }))?),
            Entry::file("index.json", serde_json::to_vec(&index)?),
            Entry::file("manifest.json", serde_json::to_vec(&docker)?),
        ];
        for blob in [layer, config, manifest] {
            entries.push(Entry::file(&blob.path(), blob.bytes));
        }
        Ok(Archive { archive: tar(&entries)?, digest })
    }
}

/// The name as container runtimes write it out.
pub(crate) fn full_name(name: &str) -> String {
    match name.split_once('/') {
        None => format!("docker.io/library/{name}"),
        Some((first, _)) if first.contains(['.', ':']) || first == "localhost" => name.to_owned(),
        Some(_) => format!("docker.io/{name}"),
    }
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn digest(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

fn compress(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut to = GzBuilder::new().mtime(0).write(Vec::new(), Compression::new(6));
    to.write_all(bytes)?;
    to.finish().context("compression of the layer")
}

/// A tar archive of the entries, sorted by path, owned by root and as old as the epoch.
fn tar(entries: &[Entry]) -> anyhow::Result<Vec<u8>> {
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by(|a, b| a.path.cmp(&b.path));
    let mut to = tar::Builder::new(Vec::new());
    for entry in sorted {
        let mut header = tar::Header::new_gnu();
        header.set_mode(entry.mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        if entry.folder {
            header.set_entry_type(tar::EntryType::Directory);
            header.set_size(0);
            to.append_data(&mut header, format!("{}/", entry.path), std::io::empty())?;
        } else {
            header.set_entry_type(tar::EntryType::Regular);
            header.set_size(entry.bytes.len() as u64);
            to.append_data(&mut header, &entry.path, entry.bytes.as_slice())?;
        }
    }
    to.into_inner().context("the archive")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(entries: &[Entry]) -> Archive {
        Image { name: "t:1", version: "1", entrypoint: &["/a"], user: "65532:65532", entries }
            .archive()
            .unwrap()
    }

    #[test]
    fn equal_input_gives_equal_bytes_in_any_order() {
        let files = [Entry::file("b", vec![1; 5000]), Entry::file("a", b"x".to_vec()), Entry::folder("tmp")];
        let turned = [Entry::folder("tmp"), Entry::file("a", b"x".to_vec()), Entry::file("b", vec![1; 5000])];
        let (one, two) = (image(&files), image(&turned));
        assert_eq!((one.digest, one.archive), (two.digest, two.archive));
        assert_ne!(image(&files[..1]).digest, image(&files).digest);
    }

    #[test]
    fn every_blob_has_the_digest_of_its_name_and_both_manifests_name_blobs() {
        let made = image(&[Entry::file("a", b"x".to_vec())]);
        let mut paths = Vec::new();
        let mut docker = Value::Null;
        for entry in tar::Archive::new(made.archive.as_slice()).entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut entry, &mut bytes).unwrap();
            if let Some(hex) = path.strip_prefix("blobs/sha256/").filter(|hex| !hex.is_empty()) {
                assert_eq!(digest(&bytes), format!("sha256:{hex}"));
            }
            if path == "manifest.json" {
                docker = serde_json::from_slice(&bytes).unwrap();
            }
            paths.push(path);
        }
        assert!(paths.contains(&format!("blobs/{}", made.digest.replace(':', "/"))), "{paths:?}");
        for key in [&docker[0]["Config"], &docker[0]["Layers"][0]] {
            assert!(paths.contains(&key.as_str().unwrap().to_owned()), "{key} {paths:?}");
        }
        assert_eq!(docker[0]["RepoTags"][0], "docker.io/library/t:1");
    }

    #[test]
    fn names_are_written_out_as_runtimes_do() {
        for (short, full) in [
            ("a:1", "docker.io/library/a:1"),
            ("b/a:1", "docker.io/b/a:1"),
            ("localhost/a:1", "localhost/a:1"),
            ("example.org:5000/b/a:1", "example.org:5000/b/a:1"),
        ] {
            assert_eq!(full_name(short), full);
        }
    }
}
