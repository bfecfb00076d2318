//! The events of a watch, one at a time, each awaited with a deadline.

use http_body_util::BodyExt;
use hyper::{HeaderMap, Response};
use kube::client::Body;
use serde_json::Value;

use super::Answer;
use crate::wait::LIMIT;

/// An open watch; dropping it ends it.
#[derive(Debug)]
pub struct Watch {
    path: String,
    pub headers: HeaderMap,
    body: Body,
    buffer: Vec<u8>,
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.
    pub kind: String,
    pub object: Value,
}

impl Event {
    pub fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    pub fn version(&self) -> &str {
        self.object["metadata"]["resourceVersion"].as_str().unwrap_or_default()
    }

    /// Kind and name, which is what most tests compare.
    pub fn brief(&self) -> (&str, &str) {
        (&self.kind, self.name())
    }
}

impl Watch {
    pub(super) async fn open(path: String, response: Response<Body>) -> Watch {
        let code = response.status().as_u16();
        if code != 200 {
            let answer = Answer::read(path, response).await;
            panic!("{}: {} {}", answer.asked, answer.code, answer.text);
        }
        let (head, body) = response.into_parts();
        Watch { path, headers: head.headers, body, buffer: Vec::new() }
    }

    /// The next event, whatever it is; nothing at the end of the stream.
    pub async fn next_or_end(&mut self) -> Option<Event> {
        let next = tokio::time::timeout(LIMIT, self.line());
        let line = next.await.unwrap_or_else(|_| panic!("{}: no event within {LIMIT:?}", self.path))?;
        let mut event: Value = serde_json::from_slice(&line)
            .unwrap_or_else(|wrong| panic!("{}: {wrong}: {}", self.path, String::from_utf8_lossy(&line)));
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        Some(Event { kind, object: event["object"].take() })
    }

    pub async fn next(&mut self) -> Event {
        self.next_or_end().await.unwrap_or_else(|| panic!("{}: the watch ended", self.path))
    }

    /// The next event about an object of this name; others belong to other tests.
    pub async fn next_of(&mut self, name: &str) -> Event {
        loop {
            let event = self.next().await;
            assert_ne!(event.kind, "ERROR", "{}: {}", self.path, event.object);
            if event.name() == name {
                return event;
            }
        }
    }

    /// The next event of this kind, others passed over.
    pub async fn next_kind(&mut self, kind: &str) -> Event {
        loop {
            let event = self.next().await;
            if event.kind == kind {
                return event;
            }
        }
    }

    async fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let rest = self.buffer.split_off(end + 1);
                return Some(std::mem::replace(&mut self.buffer, rest));
            }
            match self.body.frame().await? {
                Ok(frame) => self.buffer.extend(frame.data_ref().into_iter().flatten()),
                Err(wrong) => panic!("{}: {wrong}", self.path),
            }
        }
    }
}
