//! The parameters of a request: what stands after the question mark, each read once and refused if it makes no sense.

use super::route::decode;
use super::status::{Cause, Status};

/// The parameters as they were sent.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

/// What to do about fields that the schema doesn't know, and keys that are given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// How the revision of a list is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    Unset,
    NotOlderThan,
    Exact,
}

impl Query {
    pub fn parse(text: &str) -> Result<Self, Status> {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let text = |part| decode(part, true);
            text(name).zip(text(value)).ok_or_else(|| Status::bad_request("the query is not valid UTF-8"))
        });
        Ok(Self(pairs.collect::<Result<_, _>>()?))
    }

    /// A parameter, if it was given and isn't empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.given(name).filter(|value| !value.is_empty())
    }

    /// A parameter as it was given, empty or not.
    pub fn given(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A switch: as kube-apiserver reads them, given without a value is on.
    pub fn flag(&self, name: &str) -> Result<bool, Status> {
        match self.given(name) {
            None | Some("false" | "0" | "f" | "F" | "False" | "FALSE") => Ok(false),
            Some("" | "true" | "1" | "t" | "T" | "True" | "TRUE") => Ok(true),
            Some(other) => Err(Status::bad_request(format!("{name}: {other:?} is neither true nor false"))),
        }
    }

    /// A switch that may be absent.
    pub fn maybe_flag(&self, name: &str) -> Result<Option<bool>, Status> {
        self.given(name).map(|_| self.flag(name)).transpose()
    }

    /// A number.
    pub fn number(&self, name: &str) -> Result<Option<u64>, Status> {
        let Some(text) = self.given(name) else { return Ok(None) };
        let wrong = || Status::bad_request(format!("{name}: {text:?} is not a number"));
        // Negative ones count as none, as kube-apiserver has it for limits and time-outs.
        let number: i64 = text.parse().map_err(|_| wrong())?;
        Ok(u64::try_from(number).ok())
    }

    /// The revision that a read is about.
    pub fn revision(&self) -> Result<Option<u64>, Status> {
        let Some(text) = self.get("resourceVersion") else { return Ok(None) };
        let wrong = || Status::bad_request(format!("invalid resource version: {text:?} is not a number"));
        text.parse().map(Some).map_err(|_| wrong())
    }

    /// How that revision is meant.
    pub fn revision_match(&self) -> Result<Match, Status> {
        match self.get("resourceVersionMatch") {
            None => Ok(Match::Unset),
            Some(text) => match text {
                "NotOlderThan" => Ok(Match::NotOlderThan),
                "Exact" => Ok(Match::Exact),
                other => Err(list_options(Cause::new(
                    "FieldValueNotSupported",
                    format!(r#"Unsupported value: {other:?}: supported values: "Exact", "NotOlderThan", """#),
                    "resourceVersionMatch",
                ))),
            },
        }
    }

    /// What to do about unknown fields. kube-apiserver warns where nothing is said.
    pub fn field_validation(&self) -> Result<FieldValidation, Status> {
        match self.get("fieldValidation") {
            None | Some("Warn") => Ok(FieldValidation::Warn),
            Some("Ignore") => Ok(FieldValidation::Ignore),
            Some("Strict") => Ok(FieldValidation::Strict),
            Some(other) => Err(options(
                "CreateOptions",
                vec![Cause::new(
                    "FieldValueNotSupported",
                    format!(
                        r#"Unsupported value: {other:?}: supported values: "", "Ignore", "Strict", "Warn""#
                    ),
                    "fieldValidation",
                )],
            )),
        }
    }

    /// Whether nothing is to be written, by the parameter of these options.
    pub fn dry_run(&self, kind: &str) -> Result<bool, Status> {
        let all: Vec<&str> =
            self.0.iter().filter(|(key, _)| key == "dryRun").map(|(_, value)| value.as_str()).collect();
        dry_run(kind, &all)
    }
}

/// `dryRun` is a list, and `All` is its only word. `kind` is that of the options it stands in.
pub fn dry_run(kind: &str, values: &[&str]) -> Result<bool, Status> {
    if values.iter().all(|value| *value == "All") {
        return Ok(!values.is_empty());
    }
    let given: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
    let message = format!(r#"Unsupported value: [{}]: supported values: "All""#, given.join(","));
    Err(options(kind, vec![Cause::new("FieldValueNotSupported", message, "dryRun")]))
}

/// Options that make no sense.
pub fn options(kind: &str, causes: Vec<Cause>) -> Status {
    let told: Vec<String> =
        causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
    let message = format!("{kind}.meta.k8s.io \"\" is invalid: {}", told.join(", "));
    let mut status = Status::new(hyper::StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message);
    status.details.group = "meta.k8s.io".to_owned();
    status.details.kind = kind.to_owned();
    status.details.causes = causes;
    status
}

/// Options of a list or a watch that make no sense.
pub fn list_options(cause: Cause) -> Status {
    options("ListOptions", vec![cause])
}
