//! Schemas of the pool's fields that schemars can't derive in a form that Kubernetes accepts, or not with
//! the bounds that keep the estimated cost of the rules low.

use schemars::{Schema, SchemaGenerator, json_schema};

/// `Auto`, `None`, or a number. The pattern is for strings and the minimum for numbers.
pub(super) fn static_band(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "pattern": "^(Auto|None)$",
        "minimum": 0,
        "maximum": 4_294_967_295_u32,
    })
}

/// A core/v1 `NodeSelector`, with bounds.
pub(super) fn node_selector(_: &mut SchemaGenerator) -> Schema {
    let requirements = json_schema!({
        "type": "array",
        "maxItems": 16,
        "items": {
            "type": "object",
            "required": ["key", "operator"],
            "properties": {
                "key": {"type": "string", "minLength": 1, "maxLength": 317},
                "operator": {
                    "type": "string",
                    "enum": ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"],
                },
                "values": {"type": "array", "maxItems": 64, "items": {"type": "string", "maxLength": 253}},
            },
        },
    });
    json_schema!({
        "type": "object",
        "required": ["nodeSelectorTerms"],
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "nodeSelectorTerms": {
                "type": "array",
                "minItems": 1,
                "maxItems": 16,
                "items": {
                    "type": "object",
                    "properties": {"matchExpressions": requirements, "matchFields": requirements},
                },
            },
        },
    })
}

/// Free strings, few and short: they are copied into every grant.
pub(super) fn attributes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 32,
        "additionalProperties": {"type": "string", "maxLength": 256},
    })
}
