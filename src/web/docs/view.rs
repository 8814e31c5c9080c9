//! What the page of the API shows, read from its description.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::api::description::METHODS;
use super::super::api::problem::Kind;
use super::curl::curl;
use super::prose::Prose;
use super::shape::{Field, Limit, Shape, fields, limits};

/// The whole page.
pub struct Description<'d> {
    pub title: &'d str,
    pub version: &'d str,
    pub text: Prose<'d>,
    pub groups: Vec<Group<'d>>,
    pub schemas: Vec<Schema<'d>>,
}

/// The operations on one sort of thing.
pub struct Group<'d> {
    pub tag: &'d str,
    pub operations: Vec<Operation<'d>>,
}

pub struct Operation<'d> {
    pub id: &'d str,
    pub method: String,
    pub path: &'d str,
    pub summary: Prose<'d>,
    pub text: Prose<'d>,
    pub parameters: Vec<Parameter<'d>>,
    pub body: Option<Body<'d>>,
    pub curl: String,
    pub successes: Vec<Success<'d>>,
    pub failures: Vec<Failure<'d>>,
}

pub struct Parameter<'d> {
    pub name: &'d str,
    /// `path`, `query` or `header`.
    pub place: &'d str,
    pub shape: Shape,
    pub is_required: bool,
    pub text: Prose<'d>,
    pub limits: Vec<Limit>,
}

pub struct Body<'d> {
    pub is_required: bool,
    pub media_types: Vec<&'d str>,
    pub text: Prose<'d>,
    pub fields: Vec<Field<'d>>,
}

pub struct Success<'d> {
    pub status: &'d str,
    pub text: Prose<'d>,
    /// Media type and what is in it.
    pub contents: Vec<(&'d str, Shape)>,
    pub headers: Vec<&'d str>,
}

pub struct Failure<'d> {
    pub status: &'d str,
    pub text: Prose<'d>,
    pub kinds: Vec<Kind>,
}

pub struct Schema<'d> {
    pub name: &'d str,
    pub text: Prose<'d>,
    pub fields: Vec<Field<'d>>,
}

fn text<'d>(value: &'d Value, name: &str) -> &'d str {
    value[name].as_str().unwrap_or_default()
}

impl<'d> Description<'d> {
    pub fn of(document: &'d Value) -> Self {
        let schemas = &document["components"]["schemas"];
        let mut groups: BTreeMap<&str, Vec<Operation<'d>>> = BTreeMap::new();
        for (path, item) in document["paths"].as_object().into_iter().flatten() {
            for method in METHODS {
                if let Some(operation) = item.get(method) {
                    let tag = operation["tags"][0].as_str().unwrap_or_default();
                    groups.entry(tag).or_default().push(Operation::of(method, path, operation, schemas));
                }
            }
        }
        let schemas = schemas.as_object().into_iter().flatten();
        Self {
            title: text(&document["info"], "title"),
            version: text(&document["info"], "version"),
            text: Prose::of(text(&document["info"], "description")),
            groups: groups.into_iter().map(|(tag, operations)| Group { tag, operations }).collect(),
            schemas: schemas
                .map(|(name, schema)| Schema {
                    name,
                    text: Prose::of(text(schema, "description")),
                    fields: fields(schema),
                })
                .collect(),
        }
    }
}

impl<'d> Operation<'d> {
    fn of(method: &str, path: &'d str, operation: &'d Value, schemas: &'d Value) -> Self {
        let responses = operation["responses"].as_object().into_iter().flatten();
        let (failures, successes): (Vec<_>, Vec<_>) = responses.partition(|(status, _)| status.as_str() >= "400");
        Self {
            id: text(operation, "operationId"),
            method: method.to_uppercase(),
            path,
            summary: Prose::of(text(operation, "summary")),
            text: Prose::of(text(operation, "description")),
            parameters: operation["parameters"].as_array().into_iter().flatten().map(Parameter::of).collect(),
            body: operation.get("requestBody").map(|body| Body::of(body, schemas)),
            curl: curl(method, path, operation),
            successes: successes.into_iter().map(|(status, response)| Success::of(status, response)).collect(),
            failures: failures.into_iter().map(|(status, response)| Failure::of(status, response)).collect(),
        }
    }
}

impl<'d> Parameter<'d> {
    fn of(parameter: &'d Value) -> Self {
        Self {
            name: text(parameter, "name"),
            place: text(parameter, "in"),
            shape: Shape::of(&parameter["schema"]),
            is_required: parameter["required"] == true,
            text: Prose::of(text(parameter, "description")),
            limits: limits(&parameter["schema"]),
        }
    }
}

impl<'d> Body<'d> {
    fn of(body: &'d Value, schemas: &'d Value) -> Self {
        let contents = body["content"].as_object().into_iter().flatten();
        let schema = contents.clone().find_map(|(_, content)| Some(&schemas[Shape::of(&content["schema"]).schema()?]));
        let schema = schema.unwrap_or(&Value::Null);
        Self {
            is_required: body["required"] == true,
            media_types: contents.map(|(name, _)| name.as_str()).collect(),
            text: Prose::of(text(schema, "description")),
            fields: fields(schema),
        }
    }
}

impl<'d> Success<'d> {
    fn of(status: &'d str, response: &'d Value) -> Self {
        let contents = response["content"].as_object().into_iter().flatten();
        let headers = response["headers"].as_object().into_iter().flatten();
        Self {
            status,
            text: Prose::of(text(response, "description")),
            contents: contents.map(|(name, content)| (name.as_str(), Shape::of(&content["schema"]))).collect(),
            headers: headers.map(|(name, _)| name.as_str()).collect(),
        }
    }
}

impl<'d> Failure<'d> {
    fn of(status: &'d str, response: &'d Value) -> Self {
        let slugs = response["x-problems"].as_array().into_iter().flatten().filter_map(Value::as_str);
        Self {
            status,
            text: Prose::of(text(response, "description")),
            kinds: slugs.filter_map(Kind::of_slug).collect(),
        }
    }
}
