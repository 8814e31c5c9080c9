//! Signing in and out, sessions, and the proof that a form is ours.

use chrono::TimeDelta;
use permit_notifier::domain::role::Role;

use crate::support::{
    api::{Options, TestApi},
    pages::PASSWORD,
};

const ADA: &str = "ada@office.example";

#[tokio::test]
async fn who_signs_in_gets_a_session_that_scripts_and_other_sites_cannot_use() {
    let api = TestApi::open().await;
    api.add_user(ADA, Role::Clerk).await;
    let visitor = api.visitor();
    let page = visitor.sign_in("  ADA@office.example ", PASSWORD).await;
    assert_eq!((page.status.as_u16(), page.header("location")), (303, "/"));
    let cookie = page.header("set-cookie");
    assert!(
        cookie.starts_with("session=") && cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"),
        "{cookie}"
    );
    assert!(cookie.contains("Path=/") && !cookie.contains("Secure"), "{cookie}");
    let account = visitor.get("/account").await;
    assert_eq!(account.status, 200);
    account.shows(&[ADA, "clerk"]);
    assert!(account.header("content-security-policy").starts_with("default-src 'none'"), "{account:?}");
    assert!(!account.text.contains("<script>") && !account.text.contains("style="), "{account:?}");
    api.close().await;
}

#[tokio::test]
async fn over_https_the_cookie_is_for_this_host_alone() {
    let https = Some("https://permits.example.org".to_owned());
    let api = TestApi::with(Options { public_url: https, ..Options::default() }).await;
    let page = api.visitor().get("/sign-in").await;
    let cookie = page.header("set-cookie");
    assert!(cookie.starts_with("__Host-visit=") && cookie.contains("Secure"), "{cookie}");
    assert_eq!(page.header("strict-transport-security"), "max-age=31536000");
    api.close().await;
}

#[tokio::test]
async fn unknown_and_wrong_are_answered_alike() {
    let api = TestApi::open().await;
    api.add_user(ADA, Role::Clerk).await;
    let visitor = api.visitor();
    let wrong = visitor.sign_in(ADA, "not the password at all").await;
    let unknown = visitor.sign_in("eve@office.example", PASSWORD).await;
    let without = visitor.sign_in(ADA, "").await;
    for page in [&wrong, &unknown, &without] {
        assert_eq!(page.status, 401);
        page.shows(&["The email address or the password is not right."]);
    }
    let plain = |text: &str| text.replace(ADA, "*").replace("eve@office.example", "*");
    assert_eq!(plain(&wrong.text), plain(&unknown.text));
    api.close().await;
}

#[tokio::test]
async fn who_guesses_waits_longer_and_longer_known_or_not() {
    let api = TestApi::open().await;
    api.add_user(ADA, Role::Clerk).await;
    for email in [ADA, "eve@office.example"] {
        let visitor = api.visitor();
        for _ in 0..5 {
            assert_eq!(visitor.sign_in(email, "not the password at all").await.status, 401);
        }
        // The right one has to wait too.
        let page = visitor.sign_in(email, PASSWORD).await;
        assert_eq!(page.status, 429, "{page:?}");
        page.shows(&["Too many tries failed. Try again in"]);
        assert_eq!(page.header("retry-after"), "2");
        api.office.clock.advance(TimeDelta::seconds(2));
        assert_eq!(visitor.sign_in(email, "not the password at all").await.status, 401);
        assert_eq!(visitor.sign_in(email, PASSWORD).await.header("retry-after"), "3");
        api.office.clock.advance(TimeDelta::seconds(3));
    }
    assert_eq!(api.visitor().sign_in(ADA, PASSWORD).await.status, 303);
    // A success forgets the failures.
    let visitor = api.visitor();
    for _ in 0..4 {
        assert_eq!(visitor.sign_in(ADA, "not the password at all").await.status, 401);
    }
    assert_eq!(visitor.sign_in(ADA, PASSWORD).await.status, 303);
    api.close().await;
}

#[tokio::test]
async fn guessing_from_one_place_at_many_accounts_becomes_slow_too() {
    let api = TestApi::open().await;
    let visitor = api.visitor();
    let mut statuses = Vec::new();
    for number in 0..32 {
        statuses.push(visitor.sign_in(&format!("p{number}@office.example"), PASSWORD).await.status.as_u16());
    }
    assert_eq!((statuses[30], statuses[31]), (401, 429), "{statuses:?}");
    api.close().await;
}

#[tokio::test]
async fn a_proxy_in_front_is_not_taken_for_who_guesses() {
    let api = TestApi::with(Options { proxies: Some("10.0.0.0/8"), ..Options::default() }).await;
    let visitor = api.visitor();
    let guess = async |number: usize, forwarded: &str| {
        let csrf = visitor.get("/sign-in").await.csrf();
        let email = format!("p{number}@office.example");
        let form = [("csrf", csrf.as_str()), ("email", &email), ("password", PASSWORD)];
        let request = visitor.client.post(format!("{}/sign-in", visitor.url)).form(&form);
        request.header("x-forwarded-for", forwarded).send().await.expect("an answer").status().as_u16()
    };
    for number in 0..32 {
        // Whatever it says of those behind it, this one comes from one place.
        let said = format!("192.0.2.{number}, 2001:db8:0:7::{number:x}, 10.1.2.3");
        assert_eq!(guess(number, &said).await, if number < 31 { 401 } else { 429 }, "{number}");
    }
    assert_eq!(guess(32, "2001:db8:0:8::1, 10.1.2.3").await, 401, "somebody else, through the same proxy");
    api.close().await;
}

#[tokio::test]
async fn a_session_ends_when_it_is_not_used_and_after_a_day_of_work() {
    let api = TestApi::open().await;
    let visitor = api.signed_in(Role::Viewer).await;
    api.office.clock.advance(TimeDelta::minutes(119));
    assert_eq!(visitor.get("/account").await.status, 200);
    api.office.clock.advance(TimeDelta::minutes(119));
    assert_eq!(visitor.get("/account").await.status, 200, "use keeps it");
    api.office.clock.advance(TimeDelta::minutes(121));
    let page = visitor.get("/account").await;
    assert_eq!((page.status.as_u16(), page.header("location")), (303, "/sign-in?next=%2Faccount"));

    let visitor = api.visitor();
    visitor.sign_in("viewer@office.example", PASSWORD).await;
    for _ in 0..11 {
        api.office.clock.advance(TimeDelta::minutes(61));
        assert_eq!(visitor.get("/account").await.status, 200);
    }
    api.office.clock.advance(TimeDelta::minutes(61));
    assert_eq!(visitor.get("/account").await.status, 303, "twelve hours have passed");
    api.close().await;
}

#[tokio::test]
async fn signing_out_ends_this_session_or_all() {
    let api = TestApi::open().await;
    let one = api.signed_in(Role::Viewer).await;
    let mut other = api.visitor();
    other.sign_in("viewer@office.example", PASSWORD).await;
    other.csrf = other.get("/account").await.csrf();
    let third = api.visitor();
    third.sign_in("viewer@office.example", PASSWORD).await;

    assert_eq!(one.post("/sign-out", &[]).await.header("location"), "/sign-in?done=signed-out");
    assert_eq!(one.get("/account").await.status, 303);
    assert_eq!(other.get("/account").await.status, 200);
    other.post("/account/sign-out-everywhere", &[]).await;
    assert_eq!(other.get("/account").await.status, 303);
    assert_eq!(third.get("/account").await.status, 303);
    api.close().await;
}

#[tokio::test]
async fn a_form_of_somebody_else_is_refused() {
    let api = TestApi::open().await;
    let visitor = api.signed_in(Role::Viewer).await;
    for form in [&[][..], &[("csrf", "")], &[("csrf", "0000")]] {
        let page = visitor.send("/sign-out", form).await;
        assert_eq!(page.status, 403, "{page:?}");
    }
    let from_elsewhere = visitor.client.post(format!("{}/sign-out", api.url)).header("sec-fetch-site", "cross-site");
    let answered = from_elsewhere.form(&[("csrf", &visitor.csrf)]).send().await.unwrap();
    assert_eq!(answered.status(), 403);
    let as_json = visitor.client.post(format!("{}/sign-out", api.url)).json(&[visitor.csrf.as_str()]);
    assert_eq!(as_json.send().await.unwrap().status(), 415);
    assert_eq!(visitor.get("/account").await.status, 200);
    // To sign somebody in as somebody else is refused too.
    let stranger = api.visitor();
    let form = [("csrf", visitor.csrf.as_str()), ("email", "viewer@office.example"), ("password", PASSWORD)];
    assert_eq!(stranger.send("/sign-in", &form).await.status, 403);
    api.close().await;
}

#[tokio::test]
async fn signing_in_leads_back_to_our_pages_and_nowhere_else() {
    let api = TestApi::open().await;
    api.add_user(ADA, Role::Clerk).await;
    let wanted = [
        ("/account?x=1", "/account?x=1"),
        ("//evil.example/", "/"),
        ("https://evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("/\nset-cookie: a=b", "/"),
        ("", "/"),
    ];
    for (next, leads_to) in wanted {
        let visitor = api.visitor();
        let csrf = visitor.get("/sign-in").await.csrf();
        let form = [("csrf", csrf.as_str()), ("email", ADA), ("password", PASSWORD), ("next", next)];
        let page = visitor.send("/sign-in", &form).await;
        assert_eq!((page.status.as_u16(), page.header("location")), (303, leads_to), "{next:?}");
    }
    api.close().await;
}

#[tokio::test]
async fn a_new_password_ends_all_other_sessions() {
    let api = TestApi::open().await;
    let visitor = api.signed_in(Role::Viewer).await;
    let other = api.visitor();
    other.sign_in("viewer@office.example", PASSWORD).await;
    let change = |present: &str, password: &str, again: &str| {
        let form = [("present", present.to_owned()), ("password", password.to_owned()), ("again", again.to_owned())];
        let visitor = &visitor;
        async move {
            let form: Vec<(&str, &str)> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
            visitor.post("/account/password", &form).await
        }
    };
    let new = "another long password";
    change("wrong password", new, new).await.shows(&["The present password is not right."]);
    change(PASSWORD, "short", "short").await.shows(&["must have 12 to 200 characters"]);
    change(PASSWORD, "passwordpassword", "passwordpassword").await.shows(&["among the first that are tried"]);
    change(PASSWORD, "viewer@office.example", "viewer@office.example").await.shows(&["must not be the email address"]);
    change(PASSWORD, new, "another").await.shows(&["The two passwords are not the same."]);
    assert_eq!(other.get("/account").await.status, 200, "nothing was changed");
    assert_eq!(change(PASSWORD, new, new).await.status, 303);
    assert_eq!(visitor.get("/account").await.status, 200);
    assert_eq!(other.get("/account").await.status, 303);
    assert_eq!(other.sign_in("viewer@office.example", PASSWORD).await.status, 401);
    assert_eq!(other.sign_in("viewer@office.example", new).await.status, 303);
    api.close().await;
}
