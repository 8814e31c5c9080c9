//! Who is let in, and how often.

use permit_notifier::{auth::Token, domain::scope::Scope};
use reqwest::{Method, header::AUTHORIZATION};

use crate::support::api::{TestApi, send};

#[test]
fn a_token_is_recognised_by_its_form_and_told_by_its_checksum() {
    let token = Token::generate().unwrap();
    let text = token.reveal();
    assert!(text.starts_with("pnt_") && text.len() == 42 && text.ends_with(token.hint()), "{text}");
    assert_eq!(Token::parse(text).map(|token| token.hash()), Some(token.hash()));
    assert_ne!(Token::generate().unwrap().reveal(), text);
    let last = if text.ends_with('0') { '1' } else { '0' };
    let mistyped = format!("{}{last}", &text[..41]);
    let swapped = format!("pnt_{}{}{}", &text[5..6], &text[4..5], &text[6..]);
    for wrong in [mistyped.as_str(), &text[..41], "", "pnt_", &text.replace("pnt_", "ghp_"), &format!("{text}0")] {
        assert!(Token::parse(wrong).is_none(), "{wrong}");
    }
    assert!(swapped == text || Token::parse(&swapped).is_none(), "{swapped}");
    assert!(!format!("{token:?}").contains(text), "a token is not for logs");
}

#[tokio::test]
async fn nobody_is_let_in_without_a_token_that_is_good() {
    let api = TestApi::open().await;
    let today = api.office.today();
    let expired = api.create_token("old", Scope::Admin, today.pred_opt()).await;
    let last_day = api.create_token("today", Scope::Read, Some(today)).await;
    let revoked = api.create_token("gone", Scope::Admin, None).await;
    sqlx::query("UPDATE tokens SET revoked_at = created_at WHERE name = 'gone'")
        .execute(&api.office.pool)
        .await
        .unwrap();
    let unknown = Token::generate().unwrap();
    let bearer = |token: &str| format!("Bearer {token}");
    for (given, why) in [
        (None, "Authorization"),
        (Some("Basic YTpi".to_owned()), "Bearer"),
        (Some(bearer("")), "unknown"),
        (Some(bearer("secret")), "unknown"),
        (Some(bearer(unknown.reveal())), "unknown"),
        (Some(bearer(&expired)), "expired"),
        (Some(bearer(&revoked)), "revoked"),
    ] {
        let mut request = api.client.get(format!("{}/api/v1/permits", api.url));
        if let Some(given) = &given {
            request = request.header(AUTHORIZATION, given);
        }
        let refused = send(request).await;
        assert_eq!((refused.status.as_u16(), refused.kind()), (401, "unauthorized"), "{given:?}");
        assert!(refused.text("detail").contains(why), "{given:?}: {refused:?}");
        assert!(refused.header("www-authenticate").starts_with("Bearer"), "{refused:?}");
        assert!(!refused.text("instance").is_empty());
    }
    let let_in = send(api.client.get(format!("{}/api/v1/permits", api.url)).bearer_auth(&last_day)).await;
    assert_eq!(let_in.status, 200);
    api.office.days_pass(1);
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    let over = send(api.client.get(format!("{}/api/v1/permits", api.url)).bearer_auth(&last_day)).await;
    assert_eq!(over.status, 401);
    api.close().await;
}

#[tokio::test]
async fn the_use_of_a_token_is_noted_but_not_each_time() {
    let api = TestApi::open().await;
    let used = || async {
        sqlx::query_scalar::<_, Option<chrono::DateTime<chrono::Utc>>>("SELECT last_used_at FROM tokens")
            .fetch_one(&api.office.pool)
            .await
            .unwrap()
    };
    assert_eq!(used().await, None);
    api.get("/permits").await;
    let first = used().await;
    assert_eq!(first, Some(api.office.clock.now()));
    api.office.clock.advance(chrono::TimeDelta::seconds(30));
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    api.get("/permits").await;
    assert_eq!(used().await, first);
    api.office.clock.advance(chrono::TimeDelta::seconds(31));
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    api.get("/permits").await;
    assert_eq!(used().await, Some(api.office.clock.now()));
    api.close().await;
}

#[tokio::test]
async fn every_answer_says_how_many_requests_are_left_and_the_one_too_many_when_to_go_on() {
    let api = TestApi::with_rate(Some(3)).await;
    for left in [2, 1, 0] {
        let answered = api.get("/permits").await;
        assert_eq!(answered.status, 200);
        assert!(answered.header("ratelimit").starts_with(&format!("\"token\";r={left};t=")), "{answered:?}");
        assert_eq!(answered.header("ratelimit-policy"), "\"token\";q=3;w=60");
    }
    let refused = api.get("/permits").await;
    assert_eq!((refused.status.as_u16(), refused.kind()), (429, "rate-limited"));
    let seconds: u64 = refused.header("retry-after").parse().expect("seconds");
    assert!((1..=20).contains(&seconds), "{seconds}");
    assert!(refused.header("ratelimit").starts_with("\"token\";r=0;"), "{refused:?}");
    let other = api.create_token("other", Scope::Read, None).await;
    let let_in = send(api.client.get(format!("{}/api/v1/permits", api.url)).bearer_auth(&other)).await;
    assert_eq!(let_in.status, 200, "each token has its own");
    api.close().await;
}

#[tokio::test]
async fn the_id_of_a_request_is_in_its_answer_and_in_its_problem() {
    let api = TestApi::open().await;
    let answered = send(api.request(Method::GET, "/nothing").header("x-request-id", "abc-1")).await;
    assert_eq!((answered.status.as_u16(), answered.kind()), (404, "not-found"));
    assert_eq!((answered.header("x-request-id"), answered.text("instance")), ("abc-1", "abc-1"));
    let answered = send(api.request(Method::GET, "/nothing").header("x-request-id", "a b")).await;
    assert_eq!(answered.text("instance"), answered.header("x-request-id"));
    assert_eq!(answered.text("instance").len(), 36);
    api.close().await;
}
