//! What kustomize and Helm make of `deploy`, as objects. kubectl's own kustomize, with its bounds on where it reads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use api_tests::control_plane::Programs;
use serde_json::Value;

/// Kind, namespace and name.
pub(crate) type Id = (String, String, String);
pub(crate) type Objects = BTreeMap<Id, Value>;

pub(crate) static PROGRAMS: LazyLock<Programs> =
    LazyLock::new(|| Programs::find().unwrap_or_else(|wrong| panic!("{wrong}")));

pub(crate) fn root() -> PathBuf {
    std::fs::canonicalize(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).expect("the repository")
}

#[track_caller]
pub(crate) fn text_of(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|wrong| panic!("{command:?}: {wrong}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// All objects of a text; two of one name are one too many.
#[track_caller]
pub(crate) fn objects(text: &str) -> Objects {
    let all: Vec<Value> = serde_saphyr::from_multiple(text).expect("YAML");
    let mut objects = Objects::new();
    for object in all.into_iter().filter(|object| !object.is_null()) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let meta = &object["metadata"];
        let id = (text(&object["kind"]), text(&meta["namespace"]), text(&meta["name"]));
        assert!(objects.insert(id.clone(), object).is_none(), "{id:?} is there twice");
    }
    objects
}

/// A folder of the repository, or any by its whole path.
#[track_caller]
pub(crate) fn kustomized(folder: &str) -> Objects {
    objects(&text_of(Command::new(&PROGRAMS.kubectl).arg("kustomize").arg(root().join(folder))))
}

/// `helm template` of the chart with these arguments, and with the CRDs that it would install.
#[track_caller]
pub(crate) fn helmed(arguments: &[&str]) -> Objects {
    helmed_from(&root().join("deploy/chart"), arguments)
}

/// The real one.
pub(crate) fn helm() -> Command {
    static HELM: LazyLock<String> =
        LazyLock::new(|| text_of(&mut Command::new(root().join("tests/helm/build.sh"))).trim().to_owned());
    Command::new(HELM.as_str())
}

/// The same of a chart that is elsewhere.
#[track_caller]
pub(crate) fn helmed_from(chart: &Path, arguments: &[&str]) -> Objects {
    let mut helm = helm();
    helm.args(["template", "berth", "--include-crds"]).arg(chart).args(arguments);
    objects(&text_of(&mut helm))
}

#[track_caller]
pub(crate) fn the<'a>(objects: &'a Objects, kind: &str, name: &str) -> &'a Value {
    let found = objects.iter().find(|((of, _, called), _)| of == kind && called == name);
    found.map(|(_, object)| object).unwrap_or_else(|| panic!("there is no {kind} {name}"))
}

/// What is only in the first, only in the second, and in both but not the same.
pub(crate) fn differences(one: &Objects, other: &Objects) -> Vec<String> {
    let name = |(kind, namespace, name): &Id| format!("{kind} {namespace}/{name}");
    let gone = one.keys().filter(|id| !other.contains_key(*id)).map(|id| format!("- {}", name(id)));
    let new = other.keys().filter(|id| !one.contains_key(*id)).map(|id| format!("+ {}", name(id)));
    let changed = one.iter().filter(|(id, object)| other.get(*id).is_some_and(|now| now != *object));
    gone.chain(new).chain(changed.map(|(id, _)| format!("~ {}", name(id)))).collect()
}
