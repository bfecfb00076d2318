//! `deploy/image.sh`: the image of one program, the same bytes each time, as an OCI image layout has to be.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const IMAGE: &str = "localhost/berth:1.2.3";

/// What is printed by a command that must go well.
fn said(command: &mut Command) -> String {
    let output = command.output().expect("it can be run");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("image-{name}"));
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("remove what an earlier run left");
    }
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// A program of this mode in a folder of its own, and the image of it; what the script printed.
fn write(folder: &Path, mode: u32, umask: &str) -> String {
    said(&mut writing(folder, mode, umask))
}

fn writing(folder: &Path, mode: u32, umask: &str) -> Command {
    let program = folder.join("berth");
    fs::write(&program, "#!/bin/true\n".repeat(1000)).expect("a program");
    fs::set_permissions(&program, fs::Permissions::from_mode(mode)).expect("its mode");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/image.sh");
    let line = format!("umask {umask}; exec \"$0\" \"$@\"");
    let mut command = Command::new("bash");
    command.args(["-c", &line]).arg(script).arg(program).arg(IMAGE).arg(folder.join("image.tar"));
    command.env_remove("IMAGE_TARGET").env_remove("COMPRESSION");
    command
}

/// The image in a folder, taken apart there.
fn unpack(folder: &Path) {
    said(Command::new("tar").arg("-xf").arg(folder.join("image.tar")).arg("-C").arg(folder));
}

#[test]
fn the_same_program_gives_the_same_bytes() {
    let (one, other) = (folder("one"), folder("other"));
    let digest = |said: &str| said.rsplit_once("sha256:").expect("a digest").1.to_owned();
    let first = write(&one, 0o755, "022");
    let second = write(&other, 0o700, "077");
    assert_eq!(digest(&first), digest(&second));
    let bytes = |folder: &Path| fs::read(folder.join("image.tar")).expect("an image");
    assert!(bytes(&one) == bytes(&other), "the images differ");
}

/// What a descriptor refers to, which must be there under its digest and in its size.
fn blob(image: &Path, descriptor: &Value) -> PathBuf {
    let digest = descriptor["digest"].as_str().expect("a digest").strip_prefix("sha256:").expect("sha256");
    let path = image.join("blobs/sha256").join(digest);
    assert!(said(Command::new("sha256sum").arg(&path)).starts_with(digest), "{descriptor}");
    assert_eq!(descriptor["size"], fs::metadata(&path).expect("a blob").len());
    path
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

#[test]
fn it_is_an_oci_layout_of_one_program() {
    let folder = folder("layout");
    let printed = write(&folder, 0o755, "022");
    unpack(&folder);

    assert_eq!(json(&folder.join("oci-layout"))["imageLayoutVersion"], "1.0.0");
    let index = json(&folder.join("index.json"));
    let entry = &index["manifests"][0];
    assert_eq!(entry["annotations"]["io.containerd.image.name"], IMAGE);
    assert_eq!(entry["annotations"]["org.opencontainers.image.ref.name"], "1.2.3");
    assert!(printed.contains(entry["digest"].as_str().expect("a digest")), "{printed}");
    let manifest = json(&blob(&folder, entry));
    let config = json(&blob(&folder, &manifest["config"]));
    assert_eq!(config["config"]["Entrypoint"], serde_json::json!(["/berth"]));

    // One file, root's, executable, of no time; and what it is without compression is what the configuration says.
    let layer = blob(&folder, &manifest["layers"][0]);
    let plain = folder.join("layer.tar");
    fs::write(&plain, Command::new("gzip").arg("-dc").arg(layer).output().expect("gzip").stdout)
        .expect("a layer");
    let digest = said(Command::new("sha256sum").arg(&plain));
    let diff_id = config["rootfs"]["diff_ids"][0].as_str().expect("a digest");
    assert!(digest.starts_with(diff_id.strip_prefix("sha256:").expect("sha256")), "{diff_id}");
    let list = said(Command::new("tar").args(["--numeric-owner", "--utc", "-tvf"]).arg(&plain));
    let words: Vec<&str> = list.split_whitespace().collect();
    assert_eq!(words, ["-rwxr-xr-x", "0/0", "12000", "1970-01-01", "00:00", "berth"]);

    // For those who know Docker's own form alone.
    let docker = json(&folder.join("manifest.json"));
    assert_eq!(docker[0]["RepoTags"][0], IMAGE);
    for path in [&docker[0]["Config"], &docker[0]["Layers"][0]] {
        assert!(folder.join(path.as_str().expect("a path")).exists(), "{path}");
    }
}

/// Noise doesn't get smaller. Nothing is written; and whoever is in a hurry has it all the same.
#[test]
fn one_that_is_too_large_is_refused_and_its_size_is_said() {
    let folder = folder("large");
    let mut command = writing(&folder, 0o755, "022");
    let noise = File::open("/dev/urandom").expect("noise");
    let mut program = File::create(folder.join("berth")).expect("a program");
    io::copy(&mut noise.take(15_100_000), &mut program).expect("written");
    let output = command.output().expect("it runs");
    let wrong = String::from_utf8_lossy(&output.stderr);
    let said = format!("image.sh: {IMAGE} would be 15.1 MB compressed, more than the 15 that it may be\n");
    assert_eq!((output.status.code(), wrong.as_ref()), (Some(1), said.as_str()));
    assert!(!folder.join("image.tar").exists());
    assert!(self::said(command.env("COMPRESSION", "1")).contains(", 15.1 MB compressed, "));
}

/// Of what the program was built for, not of the machine that it was built on.
#[test]
fn its_architecture_is_that_of_the_program() {
    for (target, architecture) in [
        ("x86_64-unknown-linux-gnu", "amd64"),
        ("aarch64-unknown-linux-gnu", "arm64"),
        ("riscv64gc-unknown-linux-gnu", "riscv64"),
    ] {
        let folder = folder(target);
        said(writing(&folder, 0o755, "022").env("IMAGE_TARGET", target));
        unpack(&folder);
        let entry = &json(&folder.join("index.json"))["manifests"][0];
        let manifest = json(&blob(&folder, entry));
        let config = json(&blob(&folder, &manifest["config"]));
        assert_eq!(
            (&entry["platform"]["architecture"], &config["architecture"]),
            (&architecture.into(), &architecture.into()),
            "{target}"
        );
    }
    let other = folder("other-target");
    let output = writing(&other, 0o755, "022").env("IMAGE_TARGET", "z80-none-elf").output().expect("it runs");
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && wrong.contains("known for z80-none-elf"), "{wrong}");
}
