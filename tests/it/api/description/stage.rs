//! An office in which every operation of the description finds something to work on.

use permit_notifier::domain::permit::PermitStatus;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use super::checker::{faults, resolve};
use crate::support::api::{Answered, TestApi, send};

/// A file of one good row and one that is wrong.
pub const FILE: &str = "permit_number,permit_type,holder_name,expires_on\nI-1,food,Ada,2027-12-31\nI-2,food,Bo,never\n";

/// The API and its description, as it is given out.
pub struct Stage {
    pub api: TestApi,
    document: Value,
}

/// One operation of the description.
#[derive(Debug, Clone)]
pub struct Operation {
    pub id: String,
    pub method: Method,
    /// Under `/api/v1`, with names in braces.
    pub path: String,
    pub described: Value,
}

impl Operation {
    /// Its JSON body: media type, schema, example.
    pub fn body(&self) -> Option<(&str, &Value, &Value)> {
        let contents = self.described["requestBody"]["content"].as_object()?;
        let (media_type, content) = contents.iter().find(|(name, _)| name.ends_with("json"))?;
        Some((media_type, &content["schema"], &content["example"]))
    }

    /// Names of its parameters in that place.
    pub fn parameters(&self, place: &str) -> Vec<&str> {
        let parameters = self.described["parameters"].as_array().into_iter().flatten();
        parameters.filter(|one| one["in"] == place).map(|one| one["name"].as_str().unwrap()).collect()
    }
}

impl Stage {
    pub async fn open() -> Self {
        let api = TestApi::open().await;
        let document = send(api.client.get(format!("{}/openapi.json", api.url))).await.body;
        Self { api, document }
    }

    pub fn schemas(&self) -> &Value {
        &self.document["components"]["schemas"]
    }

    pub fn document(&self) -> &Value {
        &self.document
    }

    /// Every operation, things before what belongs to them, making before changing.
    pub fn operations(&self) -> Vec<Operation> {
        let mut operations = Vec::new();
        for (path, item) in self.document["paths"].as_object().expect("paths") {
            let path = path.strip_prefix("/api/v1").expect("a path of the API");
            for method in ["get", "post", "put", "patch", "delete"] {
                if let Some(described) = item.get(method) {
                    operations.push(Operation {
                        id: described["operationId"].as_str().expect("an id").to_owned(),
                        method: Method::from_bytes(method.to_uppercase().as_bytes()).unwrap(),
                        path: path.to_owned(),
                        described: described.clone(),
                    });
                }
            }
        }
        assert!(operations.len() > 35, "{operations:?}");
        operations
    }

    /// A request for the operation, with the headers that it needs.
    pub fn request(&self, operation: &Operation, path: &str) -> RequestBuilder {
        let request = self.api.request(operation.method.clone(), path);
        let needs_version = operation.parameters("header").contains(&"If-Match");
        if needs_version && operation.method != Method::POST { request.header("if-match", "*") } else { request }
    }

    /// The path of something of its own on which the operation can be done.
    pub async fn path(&self, operation: &Operation) -> String {
        let Some((things, rest)) = operation.path.split_once("/{") else { return operation.path.clone() };
        let (_, verb) = rest.split_once('}').expect("a name in braces");
        let id = match things {
            "/permits" => self.permit(verb).await,
            "/permit-types" => return format!("/permit-types/food{verb}"),
            "/notices" => self.notice(verb).await.0,
            "/deliveries" => self.notice(verb).await.1,
            "/imports" => self.import().await.text("id").parse().expect("an id"),
            "/scans" => self.api.office.scan().await.id.expect("its row"),
            "/suppressions" => self.made(things, &json!({ "address": unique(), "reason": "-" })).await,
            "/tokens" => self.made(things, &json!({ "name": unique(), "scope": "read" })).await,
            other => panic!("nothing is on the stage for {other}"),
        };
        format!("{things}/{id}{verb}")
    }

    async fn made(&self, path: &str, body: &Value) -> Uuid {
        self.api.post(path, body).await.text("id").parse().expect("an id")
    }

    /// An import of one good row and one that is wrong.
    pub async fn import(&self) -> Answered {
        send(
            self.api
                .request(Method::POST, "/imports?keep_good_rows=true")
                .header("content-type", "text/csv")
                .body(FILE),
        )
        .await
    }

    async fn permit(&self, verb: &str) -> Uuid {
        let permit = self.api.office.create_permit(|permit| permit.status = PermitStatus::Active).await;
        if verb == "/restore" {
            self.api.office.archive(permit).await;
        }
        permit
    }

    /// A notice in the state that the verb wants, and its delivery.
    async fn notice(&self, verb: &str) -> (Uuid, Uuid) {
        let office = &self.api.office;
        let by_letter = verb == "/posted";
        let permit = office
            .create_permit(|permit| {
                permit.expires_on = office.in_days(20);
                if by_letter {
                    permit.holder_email = None;
                }
            })
            .await;
        match verb {
            "/retry" => office.transport(permit, "rejected").await,
            "/resolve" => office.transport(permit, "ambiguous").await,
            "/message" => {
                office.transport(permit, "accepted").await;
                let keep = format!(
                    "INSERT INTO attempt_messages SELECT a.id, 'mail' FROM attempts a
                     JOIN deliveries d ON d.id = a.delivery_id JOIN notices n ON n.id = d.notice_id
                     WHERE n.permit_id = '{permit}'"
                );
                office.sql(&keep).await;
            }
            _ => {}
        }
        let notice = office.notice(permit, "expires-30d").await;
        if verb == "/release" {
            let held = self.api.post(&format!("/notices/{}/hold", notice.id), &json!({ "reason": "-" })).await;
            assert_eq!(held.status, 200, "{held:?}");
        }
        (notice.id, notice.deliveries[0].id)
    }

    /// Panics unless the operation describes this answer: its status, its content type, its body, its headers.
    pub fn assert_described(&self, operation: &Operation, answered: &Answered) {
        let what = format!("{} answered {answered:?}", operation.id);
        let response = &operation.described["responses"][answered.status.as_str()];
        assert!(response.is_object(), "the status is not described: {what}");
        for (name, header) in response["headers"].as_object().into_iter().flatten() {
            let name_in_list = header["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
            let described = &self.document["components"]["headers"][name_in_list];
            assert!(described.is_object(), "{name_in_list} is not described");
            let is_there = !answered.header(&name.to_lowercase()).is_empty();
            assert!(is_there || described["required"] == false, "{name} is missing: {what}");
        }
        let Some(contents) = response["content"].as_object() else {
            assert!(answered.body.is_null() && answered.header("content-type").is_empty(), "a body came: {what}");
            return;
        };
        let media_type = answered.header("content-type").split(';').next().unwrap_or_default();
        let content = contents.get(media_type).unwrap_or_else(|| panic!("the content type is not described: {what}"));
        if media_type.ends_with("json") {
            assert!(answered.status != StatusCode::NO_CONTENT && answered.body.is_object(), "{what}");
            let faults = faults(self.schemas(), &content["schema"], &answered.body);
            assert!(faults.is_empty(), "{faults:#?}: {what}");
        }
    }

    /// Names of the fields of a body, and of the bodies inside it: how to put one there, where it is, and its fields.
    pub fn parts<'s>(&'s self, schema: &'s Value) -> Vec<Part<'s>> {
        let whole = resolve(self.schemas(), schema);
        let mut parts = vec![Part { within: None, in_list: false, fields: names(whole) }];
        for (name, field) in whole["properties"].as_object().into_iter().flatten() {
            let choice = field["oneOf"].get(0).unwrap_or(field);
            let in_list = field["items"].is_object();
            let inner = resolve(self.schemas(), if in_list { &field["items"] } else { choice });
            if inner["properties"].is_object() {
                parts.push(Part { within: Some(name), in_list, fields: names(inner) });
            }
        }
        parts
    }
}

/// A part of a body.
pub struct Part<'s> {
    /// The field in which it is.
    within: Option<&'s str>,
    in_list: bool,
    pub fields: Vec<&'s str>,
}

impl Part<'_> {
    /// The body with `fields` in this part, and the pointer to it.
    pub fn body(&self, fields: Value) -> (Value, String) {
        match self.within {
            None => (fields, String::new()),
            Some(name) if self.in_list => (json!({ name: [fields] }), format!("/{name}/0")),
            Some(name) => (json!({ name: fields }), format!("/{name}")),
        }
    }
}

fn names(schema: &Value) -> Vec<&str> {
    schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

/// A name that nobody has.
fn unique() -> String {
    format!("x{}@example.org", Uuid::now_v7().simple())
}
