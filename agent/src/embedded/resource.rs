//! What is served: our five kinds as their CRDs have them, and the few built-in kinds that agents need.
//!
//! The router, discovery and tables read it. Built once per process, never changed. Must never be the place of a rule:
//! those are in `crds` and in [`super::admit`].

use std::sync::LazyLock;

use crds::Kind;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, CustomResourceDefinitionVersion,
};

/// A kind of object that can be asked for.
#[derive(Debug)]
pub struct Resource {
    /// Empty for the core group.
    pub group: &'static str,
    /// The preferred one first.
    pub versions: Vec<Version>,
    /// The version that objects are stored as: an index into `versions`.
    pub stored: usize,
    pub plural: String,
    pub singular: String,
    pub kind: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    /// Whether `/status` is a subresource: then the main one leaves it alone.
    pub has_status: bool,
    pub form: Form,
    pub ours: Option<Kind>,
    /// Where its objects are: events of both groups are the same objects.
    pub table: Table,
}

/// A version of a resource. All of them have the same schema.
#[derive(Debug)]
pub struct Version {
    pub name: String,
    /// What whoever uses it is told, in a `Warning` header.
    pub deprecated: Option<String>,
    /// Columns for people; empty for built-in kinds, whose tables are code.
    pub columns: Vec<CustomResourceColumnDefinition>,
}

/// What has to be known of a kind beyond its table entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Ours(Kind),
    Namespace,
    Node,
    Lease,
    /// An Event as the core group has it, and as it is stored.
    CoreEvent,
    /// An Event as `events.k8s.io` has it: converted on the way in and out.
    NewEvent,
}

/// The place of a resource's objects in the store: an index into [`all`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Table(pub(crate) u8);

impl Resource {
    /// `nodes`, `nodeippools.nmstate.io`.
    pub fn qualified(&self) -> String {
        qualify(&self.plural, self.group)
    }

    /// `Node`, `NodeIPPool.nmstate.io`.
    pub fn qualified_kind(&self) -> String {
        qualify(&self.kind, self.group)
    }

    /// `v1`, `nmstate.io/v1`: what stands in `apiVersion`.
    pub fn api_version(&self, version: usize) -> String {
        let version = &self.versions[version].name;
        if self.group.is_empty() { version.clone() } else { format!("{}/{version}", self.group) }
    }

    /// Whether a whole collection may be deleted at once: Namespaces go one by one, as kube-apiserver has it.
    pub fn deletes_collections(&self) -> bool {
        self.form != Form::Namespace
    }

    /// Which of its versions has this name.
    pub fn version(&self, name: &str) -> Option<usize> {
        self.versions.iter().position(|version| version.name == name)
    }
}

impl Table {
    /// The resource whose form objects of this table are stored in.
    pub fn resource(self) -> &'static Resource {
        &all()[usize::from(self.0)]
    }

    /// As the store names it on disk: never to be changed.
    pub fn name(self) -> String {
        self.resource().qualified()
    }

    /// Every table.
    pub fn all() -> impl Iterator<Item = Self> {
        all().iter().enumerate().filter(|(index, r)| usize::from(r.table.0) == *index).map(|(_, r)| r.table)
    }

    /// The table of that name on disk.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|table| table.name() == name)
    }

    /// The table of a kind of ours or of a built-in one, by group and plural.
    pub fn of(group: &str, plural: &str) -> Option<Self> {
        all().iter().find(|r| r.group == group && r.plural == plural).map(|r| r.table)
    }
}

fn qualify(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

/// Everything that is served.
pub fn all() -> &'static [Resource] {
    static ALL: LazyLock<Vec<Resource>> = LazyLock::new(|| {
        let mut all: Vec<Resource> = built_in();
        all.extend(Kind::ALL.into_iter().map(of_kind));
        // Events of the newer group are those of the core group: the same objects.
        let core_events = all.iter().position(|r| r.form == Form::CoreEvent).unwrap_or_default();
        for (index, resource) in all.iter_mut().enumerate() {
            let table = if resource.form == Form::NewEvent { core_events } else { index };
            resource.table = Table(u8::try_from(table).unwrap_or(u8::MAX));
        }
        all
    });
    &ALL
}

/// The resource that a path names.
pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static Resource> {
    all().iter().find(|r| r.group == group && r.plural == plural && r.version(version).is_some())
}

/// A built-in kind: group, version, plural, kind, short names, whether it has a namespace and a status.
type BuiltIn = (&'static str, &'static str, &'static str, &'static [&'static str], bool, bool, Form);

fn built_in() -> Vec<Resource> {
    let table: [BuiltIn; 5] = [
        ("", "namespaces", "Namespace", &["ns"], false, true, Form::Namespace),
        ("", "nodes", "Node", &["no"], false, true, Form::Node),
        ("", "events", "Event", &["ev"], true, false, Form::CoreEvent),
        ("events.k8s.io", "events", "Event", &["ev"], true, false, Form::NewEvent),
        ("coordination.k8s.io", "leases", "Lease", &[], true, false, Form::Lease),
    ];
    let resource = |(group, plural, kind, short, namespaced, has_status, form): BuiltIn| Resource {
        group,
        versions: vec![Version { name: "v1".to_owned(), deprecated: None, columns: Vec::new() }],
        stored: 0,
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        kind: kind.to_owned(),
        short_names: short.iter().map(ToString::to_string).collect(),
        categories: Vec::new(),
        namespaced,
        has_status,
        form,
        ours: None,
        table: Table(0),
    };
    table.into_iter().map(resource).collect()
}

fn of_kind(kind: Kind) -> Resource {
    let CustomResourceDefinition { spec, .. } = &kind.definition().crd;
    let mut served: Vec<&CustomResourceDefinitionVersion> =
        spec.versions.iter().filter(|version| version.served).collect();
    // Kubernetes prefers what is final; among ours that is the shorter name.
    served.sort_by_key(|version| (version.name.contains("beta"), version.name.clone()));
    let stored = served.iter().position(|version| version.storage).unwrap_or_default();
    let has_status = served.iter().any(|v| v.subresources.as_ref().is_some_and(|s| s.status.is_some()));
    let names = &spec.names;
    Resource {
        group: "nmstate.io",
        versions: served.into_iter().map(version).collect(),
        stored,
        plural: names.plural.clone(),
        singular: names.singular.clone().unwrap_or_else(|| names.kind.to_lowercase()),
        kind: names.kind.clone(),
        short_names: names.short_names.clone().unwrap_or_default(),
        categories: names.categories.clone().unwrap_or_default(),
        namespaced: spec.scope == "Namespaced",
        has_status,
        form: Form::Ours(kind),
        ours: Some(kind),
        table: Table(0),
    }
}

fn version(version: &CustomResourceDefinitionVersion) -> Version {
    let standard = || {
        format!("nmstate.io/{} is deprecated", version.name) // the CRDs give words of their own
    };
    let deprecated = version.deprecated.unwrap_or_default();
    Version {
        name: version.name.clone(),
        deprecated: deprecated.then(|| version.deprecation_warning.clone().unwrap_or_else(standard)),
        columns: version.additional_printer_columns.clone().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
