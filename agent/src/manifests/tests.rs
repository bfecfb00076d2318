//! On the embedded API, in this process.

use std::cell::RefCell;

use kube::api::{Patch, PatchParams};

use super::*;
use crate::embedded;

const POOL: &str = "apiVersion: nmstate.io/v1\nkind: NodeIPPool\nmetadata: {name: pool}\nspec: {range: {cidr: 10.0.0.0/24}}\n";
const POLICY: &str = "apiVersion: nmstate.io/v1\nkind: NodeNetworkConfigurationPolicy\nmetadata: {name: policy}\nspec: {desiredState: {interfaces: []}}\n";

struct Desk {
    folder: PathBuf,
    manifests: Manifests,
    client: Client,
    told: RefCell<Vec<String>>,
}

impl Drop for Desk {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Desk {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("berth-manifests-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let client = embedded::Api::in_memory().client();
        let manifests = Manifests::new(&folder, client.clone());
        Self { folder, manifests, client, told: RefCell::default() }
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.folder.join(file), text).unwrap();
    }

    async fn look(&mut self) -> Vec<String> {
        let told = &self.told;
        self.manifests.look(&|line: &str| told.borrow_mut().push(line.to_owned())).await;
        self.told.take()
    }

    async fn names(&self) -> Vec<String> {
        let pools: Api<NodeIPPool> = Api::all(self.client.clone());
        let policies: Api<NodeNetworkConfigurationPolicy> = Api::all(self.client.clone());
        let mut names: Vec<String> =
            pools.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect();
        names.extend(policies.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any));
        names
    }
}

#[tokio::test]
async fn files_are_followed() {
    let mut desk = Desk::new("followed");
    desk.write("a.yaml", &format!("{POOL}---\n{POLICY}"));
    desk.write("notes.txt", "not a manifest");
    assert!(desk.look().await.is_empty());
    assert_eq!(desk.names().await, ["pool", "policy"]);
    // Changed.
    let changed = POLICY.replace("interfaces: []", "interfaces: [], routes: {config: []}");
    desk.write("a.yaml", &format!("{POOL}---\n{changed}"));
    assert!(desk.look().await.is_empty());
    let policies: Api<NodeNetworkConfigurationPolicy> = Api::all(desk.client.clone());
    let state = policies.get("policy").await.unwrap().spec.desired_state.unwrap();
    assert!(state.get("routes").is_some());
    // Gone from the files: gone. What no file ever had stays.
    let other: NodeNetworkConfigurationPolicy =
        serde_json::from_value(json!({"metadata": {"name": "by-hand"}, "spec": {}})).unwrap();
    policies.create(&PostParams::default(), &other).await.unwrap();
    desk.write("a.yaml", POOL);
    // Not at once: the file may be half written.
    assert!(desk.look().await.is_empty());
    assert_eq!(desk.names().await, ["pool", "by-hand", "policy"]);
    assert!(desk.look().await.is_empty());
    assert_eq!(desk.names().await, ["pool", "by-hand"]);
}

/// It asks for nothing, and holds nothing else up.
#[tokio::test]
async fn a_policy_need_not_have_a_spec() {
    let mut desk = Desk::new("spec");
    let empty = POLICY.replace("spec: {desiredState: {interfaces: []}}\n", "");
    desk.write("a.yaml", &format!("{empty}---\n{POOL}"));
    assert!(desk.look().await.is_empty());
    assert_eq!(desk.names().await, ["pool", "policy"]);
    desk.write("a.yaml", &format!("{POLICY}---\n{POOL}"));
    assert!(desk.look().await.is_empty());
    desk.write("a.yaml", &format!("{empty}---\n{POOL}"));
    assert!(desk.look().await.is_empty());
    let policies: Api<NodeNetworkConfigurationPolicy> = Api::all(desk.client.clone());
    assert_eq!(policies.get("policy").await.unwrap().spec, Default::default());
}

/// A file that comes and goes again between two looks that are steady: what it brought goes with it.
#[tokio::test]
async fn back_to_what_was_before_is_a_change() {
    let mut desk = Desk::new("back");
    desk.write("pool.yaml", POOL);
    desk.look().await;
    desk.look().await;
    desk.write("policy.yaml", POLICY);
    desk.look().await;
    assert_eq!(desk.names().await, ["pool", "policy"]);
    fs::remove_file(desk.folder.join("policy.yaml")).unwrap();
    desk.look().await;
    desk.look().await;
    assert_eq!(desk.names().await, ["pool"]);
}

/// What a changed file says besides the spec counts too, and what others put there stays.
#[tokio::test]
async fn labels_and_annotations_follow() {
    let mut desk = Desk::new("marks");
    desk.write("policy.yaml", POLICY);
    desk.look().await;
    let policies: Api<NodeNetworkConfigurationPolicy> = Api::all(desk.client.clone());
    let by_hand = Patch::Merge(json!({"metadata": {"annotations": {"example.org/who": "me"}}}));
    policies.patch("policy", &PatchParams::default(), &by_hand).await.unwrap();
    let marked = POLICY.replace("{name: policy}", "{name: policy, annotations: {nmstate.io/probes: none}}");
    desk.write("policy.yaml", &marked);
    assert!(desk.look().await.is_empty());
    let annotations = policies.get("policy").await.unwrap().metadata.annotations.unwrap();
    let pairs: Vec<(&str, &str)> = annotations.iter().map(|(key, value)| (&**key, &**value)).collect();
    assert_eq!(pairs, [("example.org/who", "me"), ("nmstate.io/probes", "none")]);
}

/// A policy that is being rolled out can't be edited: the edit is taken when that is over.
#[tokio::test]
async fn an_edit_waits_for_the_rollout() {
    let mut desk = Desk::new("edit");
    desk.write("policy.yaml", POLICY);
    desk.look().await;
    let policies: Api<NodeNetworkConfigurationPolicy> = Api::all(desk.client.clone());
    let available = |reason: &str| {
        let condition = json!({"type": "Available", "status": "Unknown", "reason": reason});
        Patch::Merge(json!({"status": {"conditions": [condition]}}))
    };
    let params = PatchParams::default();
    policies.patch_status("policy", &params, &available("ConfigurationProgressing")).await.unwrap();
    desk.write("policy.yaml", &POLICY.replace("interfaces: []", "interfaces: [], routes: {config: []}"));
    let told = desk.look().await;
    assert!(told.len() == 1 && told[0].contains("is still in progress; changed when it is over"), "{told:?}");
    for _ in 0..3 {
        assert!(desk.look().await.is_empty(), "said once");
    }
    policies.patch_status("policy", &params, &available("SuccessfullyConfigured")).await.unwrap();
    assert!(desk.look().await.is_empty());
    let state = policies.get("policy").await.unwrap().spec.desired_state.unwrap();
    assert!(state.get("routes").is_some());
}

/// A pool on its way out, whose file is there again: made anew when the former is gone.
#[tokio::test]
async fn what_is_leaving_is_made_anew() {
    let mut desk = Desk::new("leaving");
    desk.write("pool.yaml", POOL);
    desk.look().await;
    let pools: Api<NodeIPPool> = Api::all(desk.client.clone());
    let finalizers = |all: &[&str]| Patch::Merge(json!({"metadata": {"finalizers": all}}));
    let params = PatchParams::default();
    pools.patch("pool", &params, &finalizers(&["nmstate.io/range-in-use"])).await.unwrap();
    fs::remove_file(desk.folder.join("pool.yaml")).unwrap();
    desk.look().await;
    desk.look().await;
    let leaving = pools.get("pool").await.unwrap();
    assert!(leaving.metadata.deletion_timestamp.is_some());
    desk.write("pool.yaml", POOL);
    let told = desk.look().await;
    assert!(told.len() == 1 && told[0].contains("is being deleted; made anew when it is gone"), "{told:?}");
    desk.look().await;
    pools.patch("pool", &params, &finalizers(&[])).await.unwrap();
    desk.look().await;
    let anew = pools.get("pool").await.unwrap();
    assert!(anew.metadata.deletion_timestamp.is_none() && anew.uid() != leaving.uid());
}

/// A broken file is said, with its place, and deletes nothing; the others are taken.
#[tokio::test]
async fn what_is_broken_loses_nothing() {
    let mut desk = Desk::new("broken");
    desk.write("pool.yaml", POOL);
    desk.write("policy.yaml", POLICY);
    assert!(desk.look().await.is_empty());
    desk.write("policy.yaml", "kind: [\n");
    desk.write("more.yaml", &POOL.replace("name: pool", "name: more").replace("10.0.0.0/24", "10.0.1.0/24"));
    let told = desk.look().await;
    assert!(told.len() == 1 && told[0].contains("policy.yaml"), "{told:?}");
    assert_eq!(desk.names().await, ["more", "pool", "policy"]);
    // Said once, not at every look.
    assert!(desk.look().await.is_empty());
    for (text, words) in [
        (POOL.replace("10.0.0.0/24", "nonsense"), "nonsense"),
        (POOL.replace("NodeIPPool", "Pod"), "expected NodeIPPool"),
        (POOL.to_owned(), "given twice"),
        (
            POOL.replace("{name: pool}", "{name: other, labels: oops}"),
            "metadata.labels: expected names and texts",
        ),
        (POOL.replace("{name: pool}", "[oops]"), "metadata.name: is missing"),
    ] {
        desk.write("policy.yaml", &text);
        let told = desk.look().await;
        assert!(told.len() == 1 && told[0].contains(words), "{words}: {told:?}");
        assert_eq!(desk.names().await, ["more", "pool", "policy"]);
    }
}

/// A link to nowhere is a file that can't be read: what it stood for stays. Editors' own, with a dot, are nothing.
#[tokio::test]
async fn a_link_to_nowhere_deletes_nothing() {
    let mut desk = Desk::new("nowhere");
    desk.write("a.yaml", POOL);
    desk.write("b.yaml", POLICY);
    desk.look().await;
    desk.look().await;
    fs::remove_file(desk.folder.join("b.yaml")).unwrap();
    for link in ["b.yaml", ".#a.yaml"] {
        std::os::unix::fs::symlink("nowhere", desk.folder.join(link)).unwrap();
    }
    let said = [desk.look().await, desk.look().await].concat();
    assert!(matches!(&said[..], [line] if line.contains("b.yaml: ")), "{said:?}");
    assert_eq!(desk.names().await, ["pool", "policy"]);
    fs::remove_file(desk.folder.join("b.yaml")).unwrap();
    desk.look().await;
    desk.look().await;
    assert_eq!(desk.names().await, ["pool"]);
}

/// A directory that is gone is said once, takes nothing away, and is followed again when it is back.
#[tokio::test]
async fn a_directory_that_goes_takes_nothing_along() {
    let mut desk = Desk::new("goes");
    desk.write("a.yaml", POOL);
    desk.look().await;
    desk.look().await;
    fs::remove_dir_all(&desk.folder).unwrap();
    let said = desk.look().await;
    assert!(matches!(&said[..], [line] if line.starts_with(&desk.folder.display().to_string())), "{said:?}");
    assert!(desk.look().await.is_empty());
    assert_eq!(desk.names().await, ["pool"]);
    fs::create_dir_all(&desk.folder).unwrap();
    desk.look().await;
    desk.look().await;
    assert!(desk.names().await.is_empty());
}

/// As long and as old as the one before, and another: by its inode, and by when it was put there.
#[tokio::test]
async fn another_file_of_the_same_age_and_length_is_another() {
    let mut desk = Desk::new("same-age");
    desk.write("a.yaml", POOL);
    desk.look().await;
    desk.look().await;
    let path = desk.folder.join("a.yaml");
    let age = fs::metadata(&path).unwrap().modified().unwrap();
    let copy = desk.folder.join("copy");
    fs::write(&copy, POOL.replace("name: pool", "name: loop")).unwrap();
    fs::File::options().write(true).open(&copy).unwrap().set_modified(age).unwrap();
    fs::rename(&copy, &path).unwrap();
    desk.look().await;
    desk.look().await;
    assert_eq!(desk.names().await, ["loop"]);
}
