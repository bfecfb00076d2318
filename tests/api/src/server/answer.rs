//! What a server answered, and what a test asks of it.

use hyper::{HeaderMap, Response};
use kube::client::Body;
use serde_json::Value;

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    /// What was asked, for messages.
    pub asked: String,
    pub code: u16,
    pub headers: HeaderMap,
    pub text: String,
    /// Null where the text is not JSON.
    pub body: Value,
}

impl Answer {
    pub(super) async fn read(asked: String, response: Response<Body>) -> Answer {
        let (head, body) = response.into_parts();
        let bytes = body.collect_bytes().await.unwrap_or_else(|wrong| panic!("{asked}: {wrong}"));
        let text = String::from_utf8(bytes.to_vec()).unwrap_or_else(|wrong| panic!("{asked}: {wrong}"));
        let body = serde_json::from_str(&text).unwrap_or_default();
        Answer { asked, code: head.status.as_u16(), headers: head.headers, text, body }
    }

    /// The object; panics if it was refused.
    #[track_caller]
    pub fn ok(self) -> Value {
        assert!(matches!(self.code, 200..=202), "{}: {} {}", self.asked, self.code, self.text);
        self.body
    }

    /// The object that was made.
    #[track_caller]
    pub fn created(self) -> Value {
        assert_eq!(self.code, 201, "{}: {}", self.asked, self.text);
        self.body
    }

    /// The Status it was refused with, whose shape, code and reason are checked here.
    #[track_caller]
    pub fn refused(self, code: u16, reason: &str) -> Value {
        let found = (self.code, self.body["reason"].as_str().unwrap_or_default());
        assert_eq!(found, (code, reason), "{}: {}", self.asked, self.text);
        self.check_status();
        self.body
    }

    /// As [`Answer::refused`], and with exactly these words.
    #[track_caller]
    pub fn says(self, code: u16, reason: &str, message: &str) -> Value {
        let asked = self.asked.clone();
        let status = self.refused(code, reason);
        assert_eq!(status["message"], message, "{asked}");
        status
    }

    /// A Status looks the same whatever it says.
    #[track_caller]
    fn check_status(&self) {
        let asked = &self.asked;
        assert_eq!(self.body["kind"], "Status", "{asked}: {}", self.text);
        assert_eq!(self.body["apiVersion"], "v1", "{asked}: {}", self.text);
        assert_eq!(self.body["status"], "Failure", "{asked}: {}", self.text);
        assert_eq!(self.body["code"], self.code, "{asked}: {}", self.text);
        assert!(self.body["metadata"].is_object(), "{asked}: {}", self.text);
        let content = self.headers.get("content-type").and_then(|value| value.to_str().ok());
        assert_eq!(content, Some("application/json"), "{asked}: {}", self.text);
    }

    /// The texts of its `Warning` headers: `299 - "text"`.
    #[track_caller]
    pub fn warnings(&self) -> Vec<String> {
        let warning = |value: &hyper::header::HeaderValue| {
            let text = value.to_str().expect("a Warning header is text");
            let text = text.strip_prefix("299 - \"").and_then(|text| text.strip_suffix('"'));
            text.unwrap_or_else(|| panic!("{}: {value:?}", self.asked)).replace("\\\"", "\"")
        };
        self.headers.get_all("warning").iter().map(warning).collect()
    }
}
