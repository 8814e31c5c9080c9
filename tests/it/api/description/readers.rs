//! What the readers take is what the description says: no field and no query parameter more, and none less.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::stage::Stage;
use crate::support::api::send;

/// Nothing is ever called so.
const SURPRISE: &str = "sur~prise/0";

#[tokio::test]
async fn every_described_field_is_known_and_no_other() {
    let stage = Stage::open().await;
    let operations = stage.operations();
    let mut vocabulary: BTreeSet<String> = BTreeSet::from([SURPRISE.to_owned()]);
    for (_, schema) in stage.schemas().as_object().expect("schemas") {
        vocabulary.extend(schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()));
    }
    for operation in &operations {
        let Some((media_type, schema, _)) = operation.body() else { continue };
        for part in stage.parts(schema) {
            let path = stage.path(operation).await;
            let send = async |fields: Vec<&str>| {
                // No field can be this, so nothing is ever done.
                let fields: Map<String, Value> =
                    fields.iter().map(|name| ((*name).to_owned(), Value::from(0.5))).collect();
                let (body, pointer) = part.body(fields.into());
                let request = stage.request(operation, &path).header("content-type", media_type);
                let refused = send(request.body(body.to_string())).await;
                stage.assert_described(operation, &refused);
                (refused, pointer)
            };
            if !part.fields.is_empty() {
                let (refused, _) = send(part.fields.clone()).await;
                let faults = refused.faults();
                assert!(!faults.is_empty(), "{}: {refused:?}", operation.id);
                let unknown: Vec<_> = faults.iter().filter(|(_, code)| *code == "unknown_field").collect();
                assert!(unknown.is_empty(), "{} describes what it does not know: {unknown:?}", operation.id);
            }
            let others: Vec<&str> =
                vocabulary.iter().map(String::as_str).filter(|name| !part.fields.contains(name)).collect();
            let (refused, pointer) = send(others.clone()).await;
            assert_eq!(refused.status, 422, "{}: {refused:?}", operation.id);
            let faults = refused.faults();
            for name in others {
                let at = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                let codes = ["unknown_field", "read_only"];
                let is_named = faults.iter().any(|(pointer, code)| *pointer == at && codes.contains(code));
                assert!(is_named, "{} takes {at}, which it does not describe", operation.id);
            }
        }
    }
    stage.api.close().await;
}

#[tokio::test]
async fn every_described_query_parameter_is_known_and_no_other() {
    let stage = Stage::open().await;
    let operations = stage.operations();
    let mut vocabulary: BTreeSet<&str> =
        operations.iter().flat_map(|operation| operation.parameters("query")).collect();
    vocabulary.insert("surprise");
    assert!(vocabulary.len() > 10, "{vocabulary:?}");
    for operation in &operations {
        let known = operation.parameters("query");
        let path = stage.path(operation).await;
        for name in &vocabulary {
            let answered = send(stage.request(operation, &format!("{path}?{name}=%2D"))).await;
            stage.assert_described(operation, &answered);
            if known.contains(name) {
                let is_unknown = answered.text("detail").starts_with("there is no query parameter");
                assert!(!is_unknown, "{} describes {name}, which it does not know", operation.id);
            } else {
                assert_eq!((answered.status.as_u16(), answered.text("parameter")), (400, *name), "{}", operation.id);
            }
        }
    }
    stage.api.close().await;
}
