//! Writes `crds/*.yaml` and the templates of the chart `tidemill-crds` from the types. Run it after changing them:
//! `cargo run -p tidemill-crd --example generate`. A test fails while the files differ.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (path, text) in files::all()? {
        let path = top.join(path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, text)?;
    }
    Ok(())
}

#[path = "../tests/files/mod.rs"]
mod files;
