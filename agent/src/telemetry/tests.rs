use serde_json::Value;

use super::{Level, line};

#[test]
fn people_read_the_text() {
    assert_eq!(line(Level::Info, "node01: at work", false), "node01: at work\n");
}

#[test]
fn machines_read_an_object_a_line() {
    let text = line(Level::Warn, "warning: two\nlines \"quoted\"", true);
    assert_eq!(text.matches('\n').count(), 1);
    let said: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&said["level"], &said["message"]), (&"warn".into(), &"two\nlines \"quoted\"".into()));
    let time = said["time"].as_str().unwrap();
    assert!(time.parse::<k8s_openapi::jiff::Timestamp>().is_ok(), "{time}");
}

#[test]
fn levels_are_in_order() {
    assert!(Level::Error < Level::Warn && Level::Warn < Level::Info && Level::Info < Level::Debug);
}
