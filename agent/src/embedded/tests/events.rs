//! Events come and go: they can't fill a disk.

use super::*;

const EVENTS: &str = "/api/v1/namespaces/default/events";

fn event(name: &str, last: Option<&str>) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "type": "Normal", "reason": "Told",
        "message": "something", "count": 1, "lastTimestamp": last,
        "involvedObject": {"apiVersion": "nmstate.io/v1", "kind": "NodeIPPool", "name": "traffic-1"},
    })
}

async fn names(api: &Api) -> Vec<String> {
    let (code, listed) = ask(api, "GET", EVENTS, None).await;
    assert_eq!(code, 200, "{listed}");
    let items = listed["items"].as_array().unwrap();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn what_is_over_an_hour_old_goes_with_the_next_event() {
    let api = Api::in_memory();
    let later = |hours: i64| {
        let then = k8s_openapi::jiff::Timestamp::now().as_second() + 3600 * hours;
        k8s_openapi::jiff::Timestamp::from_second(then).unwrap().to_string()
    };
    for name in ["recent", "renewed"] {
        assert_eq!(ask(&api, "POST", EVENTS, Some(event(name, None))).await.0, 201);
    }
    // Created at a time that is long ago by the clock of the store: put there as a restored backup would have it.
    let table = resource::Table::of("", "events").unwrap();
    api.store()
        .write(move |tx| {
            for (name, last) in [("old", later(-2)), ("series", later(-2)), ("kept", later(0))] {
                let mut value = event(name, Some(&last));
                if name == "series" {
                    value["series"] = json!({"count": 7, "lastObservedTime": later(0)});
                }
                value["metadata"] =
                    json!({"name": name, "namespace": "default", "creationTimestamp": later(-3)});
                tx.put(Key::new(table, "default", name), &value);
            }
            Ok(())
        })
        .await
        .unwrap();
    assert_eq!(names(&api).await, ["kept", "old", "recent", "renewed", "series"]);
    // Those before it in order of change are younger: they are looked at first, and end the look.
    let touched = json!({"count": 2});
    for name in ["recent", "renewed"] {
        patch(&api, &format!("{EVENTS}/{name}"), "merge-patch+json", touched.clone()).await;
    }
    assert_eq!(ask(&api, "POST", EVENTS, Some(event("new", None))).await.0, 201);
    assert_eq!(names(&api).await, ["kept", "new", "recent", "renewed", "series"]);
}

#[tokio::test]
async fn there_are_never_more_than_so_many() {
    const MOST: usize = 2000;
    let api = Api::in_memory();
    let (table, made) = (resource::Table::of("", "events").unwrap(), event("", None));
    let now = k8s_openapi::jiff::Timestamp::now().to_string();
    api.store()
        .write(move |tx| {
            for number in 0..MOST + 10 {
                let (name, mut value) = (format!("e{number:05}"), made.clone());
                // A finalizer doesn't keep it.
                value["metadata"] =
                    json!({"name": name, "namespace": "default", "creationTimestamp": now, "finalizers": ["a/b"]});
                tx.put(Key::new(table, "default", &name), &value);
            }
            Ok(())
        })
        .await
        .unwrap();
    assert_eq!(ask(&api, "POST", EVENTS, Some(event("new", None))).await.0, 201);
    let names = names(&api).await;
    assert_eq!(names.len(), MOST);
    assert_eq!((names[0].as_str(), names[MOST - 1].as_str()), ("e00011", "new"));
}
