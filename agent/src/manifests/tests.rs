//! On the embedded API, in this process.

use std::cell::RefCell;

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
    assert!(desk.look().await.is_empty());
    assert_eq!(desk.names().await, ["pool", "by-hand"]);
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
    ] {
        desk.write("policy.yaml", &text);
        let told = desk.look().await;
        assert!(told.len() == 1 && told[0].contains(words), "{words}: {told:?}");
        assert_eq!(desk.names().await, ["more", "pool", "policy"]);
    }
}
