//! The description of the API as it is given out: what the handlers say of themselves, and what all operations of a
//! sort have in common.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use axum::http::Method;
use serde_json::{Map, Value, json};

use super::access::needed;
use super::openapi::routes;
use super::problem::Kind;
use super::{ROOT, repeat};

/// The methods that operations have here, as the description spells them.
pub const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// The whole description, made once.
pub fn description() -> &'static Value {
    static DESCRIPTION: LazyLock<Value> = LazyLock::new(describe);
    &DESCRIPTION
}

/// Names of the query parameters of an operation; `None` if there is no such operation.
pub fn query_parameters(method: &Method, path: &str) -> Option<&'static [&'static str]> {
    static NAMES: LazyLock<HashMap<(String, String), Vec<&'static str>>> = LazyLock::new(|| {
        let operations = description()["paths"].as_object().into_iter().flatten().flat_map(|(path, item)| {
            let methods = item.as_object().into_iter().flatten();
            methods.map(move |(method, operation)| ((method.to_uppercase(), path.clone()), names_in_query(operation)))
        });
        operations.collect()
    });
    // What is read without its body is still read.
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    NAMES.get(&(method.to_string(), path.to_owned())).map(Vec::as_slice)
}

fn names_in_query(operation: &Value) -> Vec<&str> {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    parameters
        .filter(|parameter| parameter["in"] == "query")
        .filter_map(|parameter| parameter["name"].as_str())
        .collect()
}

fn describe() -> Value {
    let (_, made) = routes();
    let mut document = json!(made);
    let mut schemas = document["components"]["schemas"].take();
    let mut paths = Map::new();
    if let Value::Object(made) = document["paths"].take() {
        for (path, mut item) in made {
            let path = format!("{ROOT}{path}");
            for method in METHODS {
                if let Some(operation) = item.get_mut(method) {
                    complete(&path, method, operation, &mut schemas);
                }
            }
            paths.insert(path, item);
        }
    }
    document["paths"] = paths.into();
    document["components"] = json!({
        "schemas": schemas,
        "headers": headers(),
        "securitySchemes": { "token": { "type": "http", "scheme": "bearer", "bearerFormat": "pnt_…" } },
    });
    document
}

/// Adds what every operation of its sort has in common.
fn complete(path: &str, method: &str, operation: &mut Value, schemas: &mut Value) {
    let tag = operation["tags"][0].as_str().unwrap_or_default().replace(' ', "_");
    let name = operation["operationId"].as_str().unwrap_or_default();
    operation["operationId"] = format!("{tag}_{name}").into();

    let http = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap_or_default();
    let scope = needed(&http, path).as_str();
    operation["security"] = json!([{ "token": [scope] }]);
    shorten_summary(operation);
    let text = operation["description"].as_str().map(|text| format!("{text}\n\n")).unwrap_or_default();
    operation["description"] = format!("{text}Needs the scope `{scope}`.").into();

    add_parameters(method, operation);
    if let Some(body) = operation.get_mut("requestBody") {
        complete_body(body, schemas);
    }
    add_problems(path, method, operation);
    add_headers(method, operation, schemas);
}

/// The summary is one sentence, for lists; what a handler says besides stands in the description.
fn shorten_summary(operation: &mut Value) {
    let summary = operation["summary"].as_str().unwrap_or_default().replace('\n', " ");
    let Some(end) = summary.find(". ").into_iter().chain(summary.find("; ")).min() else { return };
    let (first, rest) = (format!("{}.", &summary[..end]), summary[end + 1..].trim());
    let mut chars = rest.chars();
    let rest: String = chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect();
    let text = operation["description"].as_str().map(|text| format!("\n\n{text}")).unwrap_or_default();
    operation["description"] = format!("{rest}{text}").into();
    operation["summary"] = first.into();
}

fn add_parameters(method: &str, operation: &mut Value) {
    let mut more = Vec::new();
    if method == "post" {
        let text = "Names the request: sent again with the same key and body within 7 days, it is answered as the first \
                    time and does nothing more. 1 to 255 characters, quoted or bare.";
        more.push(json!({
            "name": "Idempotency-Key", "in": "header", "required": false, "description": text,
            "schema": { "type": "string", "minLength": 1, "maxLength": repeat::KEY_MAX + 2, "pattern": "^[ -~]+$" },
        }));
    }
    if operation["responses"].get("304").is_some() {
        more.push(json!({
            "name": "If-None-Match", "in": "header", "required": false,
            "description": "An ETag that was read; if it is still the present one, the answer is 304 without a body.",
            "schema": { "type": "string" },
        }));
    }
    if more.is_empty() {
        return;
    }
    if let Some(present) = operation.get_mut("parameters").and_then(Value::as_array_mut) {
        present.extend(more);
    } else {
        operation["parameters"] = more.into();
    }
}

/// A body that may be left out is still no null; its example stands with the operation; and it has no fields but those
/// described.
fn complete_body(body: &mut Value, schemas: &mut Value) {
    let mut is_required = true;
    for content in body["content"].as_object_mut().into_iter().flat_map(Map::values_mut) {
        if let Some(choice) = content["schema"]["oneOf"].get(0).cloned() {
            is_required = false;
            content["schema"] = choice;
        }
        let Some(name) = component(&content["schema"]) else { continue };
        if content.get("example").is_none()
            && let Some(example) = schemas[&name].get("example")
        {
            content["example"] = example.clone();
        }
        close(&name, schemas);
    }
    body["required"] = is_required.into();
}

fn close(name: &str, schemas: &mut Value) {
    let Some(schema) = schemas.get_mut(name).filter(|schema| schema["type"] == "object") else { return };
    schema["additionalProperties"] = false.into();
    let inner: Vec<String> =
        schema["properties"].as_object().into_iter().flatten().flat_map(|(_, s)| named(s)).collect();
    for name in inner {
        if schemas[&name].get("additionalProperties").is_none() {
            close(&name, schemas);
        }
    }
}

/// Names of the schemas to which one leads, directly, as an entry of a list, or as one of several.
fn named(schema: &Value) -> Vec<String> {
    let choices = schema["oneOf"].as_array().into_iter().flatten();
    [schema, &schema["items"]].into_iter().chain(choices).filter_map(component).collect()
}

/// Name of the schema that is referred to.
pub fn component(schema: &Value) -> Option<String> {
    Some(schema.get("$ref")?.as_str()?.rsplit('/').next()?.to_owned())
}

/// The problems that an operation may answer. A handler names those of its own by their slugs, as the description of a
/// response.
fn add_problems(path: &str, method: &str, operation: &mut Value) {
    let mut by_status: BTreeMap<String, Vec<Kind>> = BTreeMap::new();
    let responses = operation["responses"].as_object();
    for (status, response) in responses.into_iter().flatten().filter(|(status, _)| status.as_str() >= "400") {
        let kinds =
            response["description"].as_str().unwrap_or_default().split(", ").map(Kind::of_slug).collect::<Option<_>>();
        by_status.insert(status.clone(), kinds.unwrap_or_default());
    }
    for kind in common_kinds(path, method, operation) {
        let kinds = by_status.entry(kind.status().as_str().to_owned()).or_default();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    for (status, kinds) in by_status {
        let titles: Vec<String> = kinds.iter().map(|kind| format!("{} (`{}`)", kind.title(), kind.slug())).collect();
        let slugs: Vec<&str> = kinds.iter().map(|kind| kind.slug()).collect();
        operation["responses"][status] = json!({
            "description": titles.join("; "),
            "x-problems": slugs,
            "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
        });
    }
}

/// The problems that every operation of a sort may answer.
fn common_kinds(path: &str, method: &str, operation: &Value) -> Vec<Kind> {
    let mut kinds = vec![
        Kind::Malformed,
        Kind::Unauthorized,
        Kind::Forbidden,
        Kind::RateLimited,
        Kind::Internal,
        Kind::Unavailable,
    ];
    if path.contains('{') {
        kinds.push(Kind::NotFound);
    }
    if operation.get("requestBody").is_some() {
        kinds.extend([Kind::TooLarge, Kind::UnsupportedMediaType, Kind::ValidationFailed]);
    }
    if method == "post" {
        kinds.extend([Kind::StillRunning, Kind::KeyReused]);
    }
    let mut parameters = operation["parameters"].as_array().into_iter().flatten();
    if let Some(if_match) = parameters.find(|parameter| parameter["name"] == "If-Match") {
        kinds.push(Kind::Stale);
        if if_match["required"] == true {
            kinds.push(Kind::PreconditionRequired);
        }
    }
    kinds
}

fn headers() -> Value {
    let header = |required: bool, description: &str| json!({ "description": description, "required": required, "schema": { "type": "string" } });
    json!({
        "ETag": header(true, "The version, for If-Match and If-None-Match."),
        "Idempotency-Replayed": header(false, "`true` when the answer is that of an earlier request with the same key."),
        "Link": header(false, "Where the next page is, with `rel=\"next\"`; missing on the last page."),
        "Location": header(true, "Where the new resource is."),
        "RateLimit": header(false, "Requests left, and in how many seconds all are there again; missing without a limit."),
        "RateLimit-Policy": header(false, "Requests of a minute."),
        "Retry-After": header(true, "Seconds after which to try again."),
        "WWW-Authenticate": header(true, "What is wrong with the token."),
    })
}

fn add_headers(method: &str, operation: &mut Value, schemas: &Value) {
    let Some(responses) = operation["responses"].as_object_mut() else { return };
    for (status, response) in responses {
        let schema = &response["content"]["application/json"]["schema"];
        let is_list = component(schema).is_some_and(|name| schemas[name]["properties"].get("next_cursor").is_some());
        let mut names = Vec::new();
        match status.as_str() {
            "201" | "202" => names.push("Location"),
            "401" | "403" => names.push("WWW-Authenticate"),
            "429" | "503" => names.push("Retry-After"),
            _ => {}
        }
        if status.as_str() < "400" {
            names.extend(["RateLimit", "RateLimit-Policy"]);
            names.extend((status == "304" || is_versioned(schema, schemas)).then_some("ETag"));
            names.extend(is_list.then_some("Link"));
            names.extend((method == "post").then_some("Idempotency-Replayed"));
        }
        if names.is_empty() {
            continue;
        }
        let headers = names.into_iter().map(|name| (name, json!({ "$ref": format!("#/components/headers/{name}") })));
        response["headers"] = headers.map(|(name, header)| (name.to_owned(), header)).collect::<Map<_, _>>().into();
    }
}

/// Whether it is a resource with a version, which every answer that shows it says in its `ETag`.
fn is_versioned(schema: &Value, schemas: &Value) -> bool {
    component(schema).is_some_and(|name| schemas[name]["properties"].get("version").is_some())
}
