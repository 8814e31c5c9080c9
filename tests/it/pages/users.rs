//! Users: added by an administrator, invited by a link that works once, disabled, and never all administrators.

use chrono::TimeDelta;
use permit_notifier::auth::Secret;
use permit_notifier::domain::role::Role;
use permit_notifier::store::people::links::insert_link;

use crate::support::{api::TestApi, pages::PASSWORD, program::Desk};

const BO: &str = "bo@office.example";

#[tokio::test]
async fn a_new_user_sets_a_password_by_a_link_that_works_once() {
    let api = TestApi::open().await;
    let admin = api.signed_in(Role::Admin).await;
    let page = admin.post("/users", &[("email", BO), ("role", "clerk")]).await;
    assert_eq!(page.status, 201, "{page:?}");
    let link = page.between("readonly value=\"", "\"").to_owned();
    let path = link.strip_prefix(&format!("{}/", api.url)).map(|path| format!("/{path}")).expect("a link of ours");
    assert!(!admin.get("/users").await.text.contains(&link), "it is shown once");

    let bo = api.visitor();
    bo.sign_in(BO, "").await;
    // Whoever looks at it, or a program that follows links, uses nothing up.
    for _ in 0..3 {
        let page = bo.get(&path).await;
        assert_eq!(page.status, 200);
        page.shows(&[BO]);
    }
    let csrf = bo.get(&path).await.csrf();
    let wrong = bo.send(&path, &[("csrf", &csrf), ("password", "short"), ("again", "short")]).await;
    assert_eq!(wrong.status, 422);
    let form = [("csrf", csrf.as_str()), ("password", PASSWORD), ("again", PASSWORD)];
    assert_eq!(bo.send(&path, &form).await.status, 303);
    bo.get("/account").await.shows(&[BO, "clerk"]);
    assert_eq!(bo.send(&path, &form).await.status, 404, "it was used");
    assert_eq!(bo.get("/users").await.status, 403);

    let page = admin.get("/users").await;
    page.shows(&[BO]);
    let wrong = admin.post("/users", &[("email", "bo"), ("role", "clerk")]).await;
    wrong.shows(&["The email address must be a well-formed email address (name@domain.example)."]);
    let twice = admin.post("/users", &[("email", "BO@office.example"), ("role", "admin")]).await;
    assert_eq!(twice.status, 409, "{twice:?}");
    api.close().await;
}

#[tokio::test]
async fn a_link_is_taken_for_three_days_and_replaced_by_the_next() {
    let api = TestApi::open().await;
    let admin = api.signed_in(Role::Admin).await;
    let page = admin.post("/users", &[("email", BO), ("role", "viewer")]).await;
    let first = page.between("readonly value=\"", "\"").replace(&api.url, "");
    let id = page.between("bo@office.example</label>\n<select id=\"role-", "\"").to_owned();
    let second = admin.post(&format!("/users/{id}/link"), &[]).await;
    let second = second.between("readonly value=\"", "\"").replace(&api.url, "");
    assert_eq!(api.visitor().get(&first).await.status, 404);
    assert_eq!(api.visitor().get(&second).await.status, 200);
    api.office.clock.advance(TimeDelta::days(3));
    assert_eq!(api.visitor().get(&second).await.status, 404);
    assert_eq!(api.visitor().get("/set-password/nonsense").await.status, 404);
    api.close().await;
}

#[tokio::test]
async fn who_is_disabled_is_out_at_once_and_the_last_administrator_cannot_be() {
    let api = TestApi::open().await;
    let admin = api.signed_in(Role::Admin).await;
    let clerk = api.signed_in(Role::Clerk).await;
    let page = admin.get("/users").await;
    let id_of = |email: &str| page.between(&format!("{email}</label>\n<select id=\"role-"), "\"").to_owned();
    let (admin_id, clerk_id) = (id_of("admin@office.example"), id_of("clerk@office.example"));
    let refused = admin.post(&format!("/users/{admin_id}/disable"), &[]).await;
    assert_eq!(refused.status, 409, "{refused:?}");
    refused.shows(&["the only administrator"]);
    let refused = admin.post(&format!("/users/{admin_id}/role"), &[("role", "clerk")]).await;
    assert_eq!(refused.status, 409);

    let link = admin.post(&format!("/users/{clerk_id}/link"), &[]).await;
    let link = link.between("readonly value=\"", "\"").replace(&api.url, "");
    assert_eq!(api.visitor().get(&link).await.status, 200);
    assert_eq!(admin.post(&format!("/users/{clerk_id}/disable"), &[]).await.status, 303);
    assert_eq!(api.visitor().get(&link).await.status, 404);
    assert_eq!(clerk.get("/account").await.status, 303);
    assert_eq!(clerk.sign_in("clerk@office.example", PASSWORD).await.status, 401);
    assert_eq!(admin.post(&format!("/users/{clerk_id}/enable"), &[]).await.status, 303);
    assert_eq!(clerk.sign_in("clerk@office.example", PASSWORD).await.status, 303);
    // A role that is changed counts at once, and sessions of the other one end.
    assert_eq!(admin.post(&format!("/users/{clerk_id}/role"), &[("role", "admin")]).await.status, 303);
    assert_eq!(clerk.get("/users").await.header("location"), "/sign-in?next=%2Fusers");
    assert_eq!(clerk.sign_in("clerk@office.example", PASSWORD).await.status, 303);
    assert_eq!(clerk.get("/users").await.status, 200);
    assert_eq!(admin.post(&format!("/users/{admin_id}/role"), &[("role", "viewer")]).await.status, 303);
    assert_eq!(admin.get("/users").await.header("location"), "/sign-in?next=%2Fusers");
    assert_eq!(admin.sign_in("admin@office.example", PASSWORD).await.status, 303);
    assert_eq!(admin.get("/users").await.status, 403);
    let deeds: Vec<String> = sqlx::query_scalar("SELECT action FROM office_log ORDER BY id")
        .fetch_all(&api.office.pool)
        .await
        .expect("the log");
    assert_eq!(deeds, ["link-made", "disabled", "enabled", "role-changed", "role-changed"]);
    api.close().await;
}

#[tokio::test]
async fn a_link_to_become_the_first_administrator_is_good_only_while_there_is_nobody() {
    let api = TestApi::open().await;
    let secret = Secret::generate().expect("a secret");
    let mut connection = api.office.connection().await;
    insert_link(&mut connection, &secret.hash(), None, api.office.clock.now()).await.expect("a link");
    let path = format!("/set-password/{}", secret.reveal());
    assert_eq!(api.visitor().get(&path).await.status, 200);
    api.add_user(BO, Role::Viewer).await;
    assert_eq!(api.visitor().get(&path).await.status, 404);
    drop(connection);
    api.close().await;
}

#[tokio::test]
async fn who_gets_another_role_by_command_signs_in_anew() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    assert_eq!(clerk.get("/account").await.status, 200);
    let desk = Desk::new().with("DATABASE_URL", &api.office.url);
    let done = desk.run(&["user", "add", "clerk@office.example", "--role", "viewer"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(clerk.get("/account").await.header("location"), "/sign-in?next=%2Faccount");
    api.close().await;
}

#[tokio::test]
async fn an_account_that_was_there_is_changed_by_command_only_aloud_and_never_as_the_last_administrator() {
    let api = TestApi::open().await;
    let admin = api.signed_in(Role::Admin).await;
    api.add_user(BO, Role::Viewer).await;
    let desk = Desk::new().with("DATABASE_URL", &api.office.url).with("LISTEN_ADDR", "127.0.0.1:0");
    let add = |email: &str, role: &str| {
        let done = desk.run(&["user", "add", email, "--role", role]);
        let only_link = done.out.lines().count() == 1 && done.out.contains("/set-password/");
        assert_eq!((done.code, only_link), (Some(0), true), "{done:?}");
        done.err
    };
    let refused = desk.run(&["user", "add", "ADMIN@office.example", "--role", "viewer"]);
    assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""), "{refused:?}");
    assert!(refused.err.contains("admin@office.example is the only administrator who can sign in"), "{refused:?}");
    // An office whose only administrator lost the password gets in, and nobody is thrown out by it.
    let said = add("admin@office.example", "admin");
    assert!(said.contains("existed already with the role admin; nothing but the link is new."), "{said}");
    assert!(said.contains("set PUBLIC_URL"), "{said}");
    assert_eq!(admin.get("/account").await.status, 200);
    let said = add(BO, "clerk");
    assert!(said.contains("the role was changed from viewer to clerk."), "{said}");
    let id = api.office.text("SELECT id::text FROM users WHERE email = 'bo@office.example'").await.remove(0);
    assert_eq!(admin.post(&format!("/users/{id}/disable"), &[]).await.status, 303);
    let said = add(BO, "clerk");
    assert!(said.contains("is enabled again, with the role clerk as before."), "{said}");
    let said = add("new@office.example", "viewer");
    assert!(!said.contains("existed"), "{said}");
    assert_eq!(
        api.office.text("SELECT action FROM office_log ORDER BY id").await,
        ["link-made", "role-changed", "link-made", "disabled", "enabled", "link-made", "added"]
    );
    api.close().await;
}

#[tokio::test]
async fn only_administrators_come_near_users() {
    let api = TestApi::open().await;
    for role in [Role::Viewer, Role::Clerk] {
        let visitor = api.signed_in(role).await;
        assert_eq!(visitor.get("/users").await.status, 403);
        assert_eq!(visitor.post("/users", &[("email", BO), ("role", "admin")]).await.status, 403);
    }
    assert_eq!(api.visitor().get("/users").await.header("location"), "/sign-in?next=%2Fusers");
    assert_eq!(api.visitor().send("/users", &[]).await.status, 401);
    let count: i64 = sqlx::query_scalar("SELECT count(*) FROM users WHERE email = 'bo@office.example'")
        .fetch_one(&api.office.pool)
        .await
        .expect("a number");
    assert_eq!(count, 0);
    api.close().await;
}
