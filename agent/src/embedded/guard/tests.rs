use serde_json::json;

use super::*;
use crate::embedded::resource::Table;
use crate::embedded::store::{Key, Limits, Store};

#[tokio::test]
async fn a_bug_costs_the_work_that_met_it() {
    let done = bit_by_bit(async {
        tokio::task::yield_now().await;
        7
    });
    assert_eq!(done.await, Ok(7));
    let bug = bit_by_bit(async {
        tokio::task::yield_now().await;
        assert!(std::hint::black_box(false), "a bug");
    });
    let status = bug.await.unwrap_err();
    assert_eq!((status.code.as_u16(), status.reason), (500, "InternalError"));
    assert!(INSIDE.get() == Inside::Nothing);
    let said: Result<(), String> = reading(|| panic!("page {} is not there", 7));
    assert_eq!(said, Err("page 7 is not there".to_owned()));
}

#[tokio::test]
async fn a_bug_in_one_write_leaves_nothing_behind_and_the_next_is_made() {
    let key = |name: &str| Key::new(Table::of("", "nodes").unwrap(), "", name);
    let node = |name: &str| json!({"metadata": {"name": name, "uid": name}});
    let store = Store::in_memory(Limits::default()).unwrap();
    let bug = store
        .write(move |tx| -> Result<(), Status> {
            tx.put(key("half"), &node("half"));
            panic!("a bug");
        })
        .await;
    assert_eq!(bug.unwrap_err().code, 500);
    store.write(move |tx| Ok(tx.put(key("whole"), &node("whole")))).await.unwrap();
    let state = store.read();
    assert!(state.get(&key("half")).is_none());
    assert_eq!((state.get(&key("whole")).unwrap().revision, state.revision), (1, 1));
}
