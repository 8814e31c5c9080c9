//! The pages for whoever writes programs: the description as a page, and what each kind of problem means.

use std::collections::BTreeSet;

use permit_notifier::web::api::problem::Kind;

use super::stage::Stage;

struct Page {
    status: u16,
    policy: String,
    content_type: String,
    text: String,
}

async fn get(stage: &Stage, path: &str) -> Page {
    let response = stage.api.client.get(format!("{}{path}", stage.api.url)).send().await.expect("an answer");
    let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    let (policy, content_type) = (header("content-security-policy"), header("content-type"));
    Page {
        status: response.status().as_u16(),
        policy: policy.unwrap_or_default(),
        content_type: content_type.unwrap_or_default(),
        text: response.text().await.expect("the whole page"),
    }
}

/// What stands in an attribute, wherever it is.
fn attributes<'p>(page: &'p str, name: &str) -> Vec<&'p str> {
    let start = format!(" {name}=\"");
    page.split(start.as_str()).skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

#[tokio::test]
async fn every_operation_field_and_problem_is_on_the_page() {
    let stage = Stage::open().await;
    let page = get(&stage, "/docs").await;
    assert_eq!((page.status, page.content_type.as_str()), (200, "text/html; charset=utf-8"));
    let anchors: BTreeSet<&str> = attributes(&page.text, "id").into_iter().collect();
    for operation in stage.operations() {
        assert!(anchors.contains(operation.id.as_str()), "{} is missing", operation.id);
        let article = page.text.split(&format!("<article id=\"{}\">", operation.id)).nth(1).expect("its article");
        let article = article.split("</article>").next().unwrap();
        assert!(article.contains(&format!("{} /api/v1{}", operation.method, operation.path)), "{article}");
        assert!(article.contains("Authorization: Bearer $TOKEN"), "{article}");
        assert!(article.contains("Needs the scope <code>"), "{article}");
        if operation.id == "imports_create" {
            assert!(article.contains("/imports?dry_run=true&#34; \\"), "{article}");
            assert!(article.contains("--data-binary @permits.csv"), "{article}");
            for field in permit_notifier::files::Field::ALL {
                assert!(article.contains(&format!("<code>{field}</code>")), "{field}: {article}");
            }
        }
        for place in ["path", "query", "header"] {
            for name in operation.parameters(place) {
                assert!(article.contains(&format!("<code>{name}</code>")), "{name}: {article}");
            }
        }
        if let Some((_, schema, _)) = operation.body() {
            for name in &stage.parts(schema)[0].fields {
                assert!(article.contains(&format!("<code>{name}</code>")), "{name}: {article}");
            }
        }
        for (status, response) in operation.described["responses"].as_object().unwrap() {
            assert!(article.contains(&format!("<th scope=\"row\">{status}</th>")), "{status}: {article}");
            for kind in response["x-problems"].as_array().into_iter().flatten() {
                assert!(article.contains(&format!("\"/problems/{}\"", kind.as_str().unwrap())), "{kind}: {article}");
            }
        }
    }
    for (name, _) in stage.schemas().as_object().unwrap() {
        assert!(anchors.contains(format!("schema-{name}").as_str()), "{name} is missing");
    }
    stage.api.close().await;
}

#[tokio::test]
async fn all_links_lead_somewhere_and_nothing_comes_from_elsewhere() {
    let stage = Stage::open().await;
    let mut to_see = vec!["/docs".to_owned()];
    let mut seen: BTreeSet<String> = BTreeSet::new();
    while let Some(path) = to_see.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        let page = get(&stage, &path).await;
        assert_eq!(page.status, 200, "{path}");
        if !page.content_type.starts_with("text/html") {
            continue;
        }
        assert_eq!(
            page.policy,
            "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        );
        for forbidden in ["<script", " style=", "<style", " on", "src="] {
            let found =
                page.text.split('<').find(|tag| format!("<{tag}").split('>').next().unwrap().contains(forbidden));
            assert!(found.is_none(), "{path}: {found:?}");
        }
        let anchors: BTreeSet<&str> = attributes(&page.text, "id").into_iter().collect();
        assert_eq!(anchors.len(), attributes(&page.text, "id").len(), "{path}: an id stands twice");
        for link in attributes(&page.text, "href") {
            if let Some(anchor) = link.strip_prefix('#') {
                assert!(anchors.contains(anchor), "{path}: {link}");
            } else {
                assert!(link.starts_with('/') && !link.starts_with("//"), "{path}: {link}");
                to_see.push(link.to_owned());
            }
        }
    }
    for kind in Kind::ALL {
        assert!(seen.contains(&kind.uri()), "nothing leads to {}", kind.slug());
    }
    assert!(seen.contains("/docs/style.css") && seen.contains("/openapi.json"), "{seen:?}");
    stage.api.close().await;
}

#[tokio::test]
async fn each_kind_of_problem_has_a_page_and_others_have_none() {
    let stage = Stage::open().await;
    for kind in Kind::ALL {
        let page = get(&stage, &kind.uri()).await;
        assert_eq!(page.status, 200, "{}", kind.slug());
        let text = page.text.replace("&#39;", "'");
        assert!(text.contains(&format!("<h1>{}</h1>", kind.title())), "{text}");
        assert!(text.contains(kind.explanation()), "{text}");
    }
    for path in ["/problems/nothing", "/problems/%3Cscript%3E", "/problems/stale/more"] {
        let page = get(&stage, path).await;
        assert_eq!(page.status, 404, "{path}");
        assert!(!page.text.contains("<script>"), "{}", page.text);
    }
    stage.api.close().await;
}

#[tokio::test]
async fn what_the_description_says_is_escaped_on_the_page() {
    let stage = Stage::open().await;
    let page = get(&stage, "/docs").await;
    // The examples of bodies have quotation marks, as the heads of the requests have.
    assert!(page.text.contains("&#34;permit_number&#34;: &#34;FOOD-0042&#34;"), "quotation marks stand as they are");
    assert!(page.text.contains("If-Match: &#34;1&#34;"), "quotation marks stand as they are");
    stage.api.close().await;
}
