//! Writes `crds/yaml`, one file per CRD: `cargo run -p crds --example generate`.

use std::{error::Error, fs, path::Path};

use crds::Kind;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("yaml");
    fs::create_dir_all(&folder)?;
    for kind in Kind::ALL {
        fs::write(folder.join(format!("{}.yaml", kind.name().to_lowercase())), crds::yaml(kind)?)?;
    }
    Ok(())
}
