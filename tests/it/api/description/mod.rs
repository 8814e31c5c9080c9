//! The description of the API against the running API: what it says is taken is taken, what it does not say is not, and
//! answers are what it says.

mod checker;
mod docs;
mod readers;
mod stage;

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::json;

use crate::support::api::{Answered, send};
use stage::{Operation, Stage};

#[tokio::test]
async fn the_description_is_complete_in_itself() {
    let stage = Stage::open().await;
    let document = stage.document();
    assert_eq!(
        (&document["openapi"], &document["info"]["version"]),
        (&json!("3.1.0"), &json!(env!("CARGO_PKG_VERSION")))
    );
    assert!(document.get("servers").is_none(), "where it is, whoever asks knows best");
    let operations = stage.operations();
    let ids: BTreeSet<&str> = operations.iter().map(|operation| operation.id.as_str()).collect();
    assert_eq!(ids.len(), operations.len(), "{ids:?}");
    for operation in &operations {
        let responses = operation.described["responses"].as_object().expect("responses");
        assert!(responses.keys().any(|status| status.starts_with('2')), "{operation:?}");
        let always = ["400", "401", "403", "429", "500", "503"];
        assert!(always.iter().all(|status| responses.contains_key(*status)), "{operation:?}");
        for (status, response) in responses.iter().filter(|(status, _)| status.as_str() >= "400") {
            let kinds = response["x-problems"].as_array().expect("kinds of problems");
            assert!(!kinds.is_empty(), "{} {status}", operation.id);
        }
        let summary = operation.described["summary"].as_str().unwrap_or_default();
        assert!(
            (1..=160).contains(&summary.len()) && !summary.contains(['\n']) && !summary.contains(". "),
            "{summary}"
        );
        assert!(operation.described["security"][0]["token"][0].is_string(), "{operation:?}");
        let in_path = operation.parameters("path");
        assert_eq!(in_path.len(), operation.path.matches('{').count(), "{operation:?}");
        if let Some((_, schema, example)) = operation.body() {
            assert!(!example.is_null(), "{} has no example", operation.id);
            assert_eq!(checker::faults(stage.schemas(), schema, example), Vec::<String>::new(), "{}", operation.id);
        }
    }
    stage.api.close().await;
}

/// Sends the example of the operation, or nothing.
async fn send_example(stage: &Stage, operation: &Operation, path: &str, with_body: bool) -> Answered {
    let mut request = stage.request(operation, path);
    if operation.id == "imports_create" {
        request = request.header("content-type", "text/csv").body(stage::FILE);
    } else if let Some((media_type, _, example)) = operation.body().filter(|_| with_body) {
        request = request.header("content-type", media_type).body(example.to_string());
    }
    send(request).await
}

#[tokio::test]
async fn every_example_does_what_is_described_and_every_answer_is_as_described() {
    let stage = Stage::open().await;
    let mut seen: BTreeSet<(String, u16)> = BTreeSet::new();
    let mut note = |operation: &Operation, answered: &Answered| {
        assert!(answered.status.as_u16() < 400, "{}: {answered:?}", operation.id);
        stage.assert_described(operation, answered);
        seen.insert((operation.id.clone(), answered.status.as_u16()));
    };
    for operation in stage.operations() {
        let path = stage.path(&operation).await;
        let path = if operation.id == "permits_replace" { of_the_example(&stage).await } else { path };
        let answered = send_example(&stage, &operation, &path, true).await;
        note(&operation, &answered);
        if operation.described["requestBody"]["required"] == false {
            wait_for_scans(&stage).await;
            let path = stage.path(&operation).await;
            note(&operation, &send_example(&stage, &operation, &path, false).await);
        }
        if operation.parameters("header").contains(&"If-None-Match") {
            let request = stage.request(&operation, &path).header("if-none-match", answered.etag());
            note(&operation, &send(request).await);
        }
        match operation.id.as_str() {
            "suppressions_create" => note(&operation, &send_example(&stage, &operation, &path, true).await),
            "permit_types_write" => {
                let mut other = operation.body().unwrap().2.clone();
                other["name"] = json!("Taverns");
                note(&operation, &send(stage.api.request(Method::PUT, "/permit-types/taverns").json(&other)).await);
            }
            "notices_copies" => {
                // A copy to somebody who is not on the permit is no state in which other tests would leave an office.
                let cancel = path.replace("/copies", "/cancel");
                assert_eq!(stage.api.post(&cancel, &json!({ "reason": "-" })).await.status, 200);
            }
            "permits_list" => {
                stage.api.create_permit("L-1").await;
                stage.api.create_permit("L-2").await;
                let page = send(stage.request(&operation, "/permits?limit=1")).await;
                assert!(page.header("link").contains("rel=\"next\""), "{page:?}");
                note(&operation, &page);
            }
            _ => {}
        }
    }
    wait_for_scans(&stage).await;
    let described: BTreeSet<(String, u16)> = stage
        .operations()
        .iter()
        .flat_map(|operation| {
            let statuses = operation.described["responses"].as_object().unwrap().keys();
            let successes = statuses.filter_map(|status| status.parse().ok()).filter(|status: &u16| *status < 400);
            successes.map(|status| (operation.id.clone(), status)).collect::<Vec<_>>()
        })
        .collect();
    let unseen: Vec<_> = described.difference(&seen).collect();
    assert!(unseen.is_empty(), "described and never seen: {unseen:?}");
    stage.api.close().await;
}

/// The permit that has the number of the example.
async fn of_the_example(stage: &Stage) -> String {
    let found = stage.api.get("/permits?q=FOOD-0042").await;
    format!("/permits/{}", found.column("id")[0])
}

/// Scans go on after their answer; the next one is refused until they end.
async fn wait_for_scans(stage: &Stage) {
    for _ in 0..1000 {
        if !stage.api.get("/scans").await.column("outcome").contains(&"running") {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("a scan does not end");
}

#[tokio::test]
async fn problems_are_as_described_too() {
    let stage = Stage::open().await;
    for operation in stage.operations() {
        let path = stage.path(&operation).await;
        let url = format!("{}/api/v1{path}", stage.api.url);
        let stranger = send(stage.api.client.request(operation.method.clone(), url)).await;
        assert_eq!(stranger.status, 401);
        stage.assert_described(&operation, &stranger);
        if path != operation.path && !path.starts_with("/permit-types") {
            let nowhere = operation.path.replace("{id}", "019e0000-0000-7000-8000-000000000000");
            let missing = send_example(&stage, &operation, &nowhere, true).await;
            assert_eq!(missing.status, 404, "{}: {missing:?}", operation.id);
            stage.assert_described(&operation, &missing);
        }
        if operation.body().is_some() {
            let request = stage.request(&operation, &path).header("content-type", "text/plain").body("x");
            let refused = send(request).await;
            assert_eq!(refused.status, 415, "{}: {refused:?}", operation.id);
            stage.assert_described(&operation, &refused);
        }
    }
    stage.api.close().await;
}
