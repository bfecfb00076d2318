use super::*;

fn shown(path: &str) -> String {
    match target(path) {
        Ok(target) => format!(
            "{} {:?} {:?} {}",
            target.resource.qualified(),
            target.namespace.as_deref().unwrap_or("-"),
            target.name.as_deref().unwrap_or("-"),
            target.status
        ),
        Err(status) => status.code.as_str().to_owned(),
    }
}

#[test]
fn paths_name_collections_objects_and_their_status() {
    let table = [
        ("/api/v1/nodes", r#"nodes "-" "-" false"#),
        ("/api/v1/nodes/", r#"nodes "-" "-" false"#),
        ("/api/v1/watch/nodes/a", r#"nodes "-" "a" false"#),
        ("/api/v1/nodes/a", r#"nodes "-" "a" false"#),
        ("/api/v1/nodes/a/status", r#"nodes "-" "a" true"#),
        ("/api/v1/namespaces", r#"namespaces "-" "-" false"#),
        ("/api/v1/namespaces/x", r#"namespaces "-" "x" false"#),
        ("/api/v1/namespaces/x/status", r#"namespaces "-" "x" true"#),
        ("/api/v1/namespaces/x/events", r#"events "x" "-" false"#),
        ("/api/v1/namespaces/x/events/e.1", r#"events "x" "e.1" false"#),
        ("/api/v1/events", r#"events "-" "-" false"#),
        ("/apis/nmstate.io/v1beta1/nodenetworkstates/a", r#"nodenetworkstates.nmstate.io "-" "a" false"#),
        ("/apis/coordination.k8s.io/v1/namespaces/n/leases/l", r#"leases.coordination.k8s.io "n" "l" false"#),
    ];
    for (path, expected) in table {
        assert_eq!(shown(path), expected, "{path}");
    }
}

#[test]
fn other_paths_name_nothing() {
    let paths = [
        "/api/v1/pods",
        "/api/v2/nodes",
        "/api/v1//nodes",
        "/api/v1/../v1/nodes",
        "/api/v1/nodes//",
        "/api/v1/nodes/a%2fb",
        "/api/v1/nodes/a/scale",
        "/api/v1/namespaces/x/nodes",
        "/api/v1/namespaces/x/events/e/status",
        "/api/v1/events/e",
        "/apis/nmstate.io/v1beta1/nodeippools",
        "/apis/nmstate.io/v1/namespaces/x/nodeippools",
        "/",
        "/apis",
    ];
    for path in paths {
        assert_eq!(shown(path), "404", "{path}");
    }
    for path in ["/api/v1/nodes/..", "/api/v1/nodes/%2e%2e", "/api/v1/nodes/a%252fb", "/api/v1/nodes/%ff"] {
        assert_eq!(shown(path), "400", "{path}");
    }
}
