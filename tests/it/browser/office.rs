//! What an administrator looks after, and that the audit says who did it.

use permit_notifier::domain::role::Role;
use thirtyfour::prelude::*;

use super::{office, permit};
use crate::support::{
    api::{TestApi, send},
    browser::{Browser, Way},
    pages::PASSWORD,
};

const ADMIN: &str = "admin@office.example";
const NEW: &str = "new@office.example";
/// Addresses are the same without regard to case.
const CLERK_IN_CAPITALS: &str = "CLERK@office.example";

#[ignore = "wants a browser"]
#[tokio::test]
async fn an_office_is_looked_after_and_the_audit_has_it() {
    let api = office().await;
    api.add_user(ADMIN, Role::Admin).await;
    // Its notice of thirty days before is sent; one of twenty-five would be due.
    permit(&api, "F-1", 20, true).await;
    let browser = Browser::used(Way::Usual, &api.url).await;
    browser.sign_in(ADMIN).await;
    a_schedule_is_changed(&browser).await;
    assert_eq!(api.office.scan().await.counts.claimed, 1, "as was foreseen");
    an_address_is_suppressed_and_lifted(&browser).await;
    a_token_is_made_and_revoked(&api, &browser).await;
    let link = a_user_is_added(&browser).await;
    the_audit_has_it(&browser).await;
    browser.press("Sign out").await;
    browser.is_done("You are signed out.").await;
    they_set_a_password_and_look(&api, &browser, &link).await;
    browser.close().await;
    api.close().await;
}

async fn a_schedule_is_changed(browser: &Browser) {
    browser.press("Permit types").await;
    browser.press("Food").await;
    browser.press("Add a line").await;
    browser.fill("Notice of line 11", "expires-25d").await;
    browser.fill("Days from expiry of line 11", "soon").await;
    browser.press("See what the change would mean").await;
    browser.is_refused("Line 11 of the schedule, offset days must be a whole number").await;
    browser.fill("Days from expiry of line 11", "-25").await;
    browser.fill("Days of grace after expiry", "14").await;
    browser.press("See what the change would mean").await;
    browser.see("1\nwould be due at the next scan if it ran now. Without the change it would be 0.").await;
    browser.see("0\nthat wait to be sent would end unsent").await;
    browser.fits().await;
    browser.press("Save the change").await;
    browser.is_done("The permit type is changed.").await;
    assert_eq!(browser.value("Notice of line 11").await, "expires-25d");
}

async fn an_address_is_suppressed_and_lifted(browser: &Browser) {
    browser.press("Suppressions").await;
    browser.fill("Email address", "gone@example").await;
    browser.fill("Why", "it came back").await;
    browser.press("Suppress the address").await;
    browser.is_refused("Address: the domain of an email address needs a dot").await;
    browser.fill("Email address", "gone@example.org").await;
    browser.choose("What is not sent", "courtesy").await;
    browser.press("Suppress the address").await;
    browser.is_done("The address is suppressed.").await;
    browser.press("Lift the suppression of gone@example.org").await;
    browser.press("Lift the suppression").await;
    browser.is_kept_back_at("Why may it be mailed again?").await;
    browser.fill("Why may it be mailed again?", "the holder asked for it").await;
    browser.press("Lift the suppression").await;
    browser.is_done("The address may be mailed again.").await;
    browser.see("No address is suppressed.").await;
}

async fn a_token_is_made_and_revoked(api: &TestApi, browser: &Browser) {
    browser.press("Tokens").await;
    browser.fill("What uses it", "portal").await;
    browser.press("Make the token").await;
    browser.is_done("This is the token of portal. It is shown only now").await;
    let token = browser.value("Token of portal").await;
    let ask = async || send(api.client.get(format!("{}/api/v1/whoami", api.url)).bearer_auth(&token)).await;
    assert_eq!(ask().await.text("name"), "portal");
    // By way of another page, for the one with the token has the same address.
    browser.press("Users").await;
    browser.is_at("/users").await;
    browser.press("Tokens").await;
    browser.see("portal").await;
    assert!(!browser.driver.source().await.unwrap().contains(&token), "it is shown once");
    browser.press("Revoke portal").await;
    browser.press("Revoke the token").await;
    browser.is_done("The token is revoked.").await;
    assert_eq!(ask().await.status, 401);
}

/// The link by which they set a password.
async fn a_user_is_added(browser: &Browser) -> String {
    browser.press("Users").await;
    browser.fill("Email address", CLERK_IN_CAPITALS).await;
    browser.press("Add the user").await;
    browser.is_refused("There is a user with this email address already.").await;
    browser.fill("Email address", NEW).await;
    browser.choose("Role", "viewer").await;
    browser.press("Add the user").await;
    browser.is_done(&format!("Give this link to {NEW}. It works once, for three days, and is shown only now.")).await;
    browser.value("Link to set the password").await
}

async fn the_audit_has_it(browser: &Browser) {
    browser.press("Audit").await;
    browser.choose("Who", ADMIN).await;
    browser.press("Filter").await;
    browser.is_at("by=").await;
    let rows = browser.driver.find_all(By::Css("tbody > tr")).await.unwrap();
    let mut said = Vec::new();
    for row in rows {
        said.push(row.text().await.unwrap().replace('\n', " "));
    }
    let expected = [
        "added user new@office.example 1 field role is viewer",
        "revoked token portal",
        "made token portal",
        "lifted suppression gone@example.org",
        "suppressed suppression gone@example.org",
        "changed permit-type food 2 fields grace days was 0 is 14 steps: expires-25d is day -25, statutory, late by 7",
    ];
    assert_eq!(said.len(), expected.len(), "{said:#?}");
    for (row, expected) in said.iter().zip(expected) {
        let who = format!("2027-03-10 09:00 {ADMIN} {expected}");
        assert!(row.starts_with(&who), "{expected:?}: {row:?}");
    }
    browser.fits().await;
}

async fn they_set_a_password_and_look(api: &TestApi, browser: &Browser, link: &str) {
    browser.goto(link.strip_prefix(&api.url).expect("a link of ours")).await;
    browser.see(NEW).await;
    browser.fill("New password", PASSWORD).await;
    browser.fill("The same once more", "another long password").await;
    browser.press("Set the password").await;
    browser.is_refused("The two passwords are not the same.").await;
    browser.fill("New password", PASSWORD).await;
    browser.fill("The same once more", PASSWORD).await;
    browser.press("Set the password").await;
    browser.see("Today").await;
    browser.press("Sign out").await;
    browser.is_done("You are signed out.").await;
    browser.goto(link.strip_prefix(&api.url).expect("a link of ours")).await;
    browser.see("the link was used or is too old").await;
    browser.sign_in(NEW).await;
    browser.press("Permits").await;
    browser.press("F-1").await;
    browser.see("What will be sent, and why").await;
    let places = browser.driver.find(By::Css("nav")).await.unwrap().text().await.unwrap();
    assert!(places.contains("Problems") && !places.contains("Users") && !places.contains("Audit"), "{places}");
    let forms = browser.driver.find_all(By::Css("form[method=post]")).await.unwrap();
    assert_eq!(forms.len(), 1, "only to sign out");
}

#[ignore = "wants a browser"]
#[tokio::test]
async fn a_notice_is_found_with_its_attempts_and_the_exact_message() {
    let api = office().await;
    let refused = permit(&api, "F-1", 5, false).await;
    permit(&api, "F-2", 5, true).await;
    api.office.transport(refused, "rejected").await;
    api.office
        .sql(
            "UPDATE attempts SET response = 'no such user', smtp_code = 550, enhanced_code = '5.1.1'
             WHERE outcome = 'rejected';
             INSERT INTO attempt_messages SELECT id, convert_to('Subject: for ' || notice_key, 'UTF8') FROM attempts",
        )
        .await;
    let browser = super::clerk(&api, Way::Usual).await;
    browser.press("Notices").await;
    browser.see("F-2").await;
    browser.choose("State", "failed").await;
    browser.fill("Due from", &api.office.in_days(-2).to_string()).await;
    browser.press("Filter").await;
    browser.is_at("state=failed").await;
    browser.see("F-1").await;
    assert!(!browser.text().await.contains("F-2"));
    browser.press("expires-7d").await;
    for text in ["ada@example.org", "550 5.1.1 no such user", "smtp, dot", "Send again", "Give up"] {
        browser.see(text).await;
    }
    browser.fits().await;
    browser.press("the very bytes").await;
    assert_eq!(browser.downloaded("").await, format!("Subject: for {refused}:expires-7d:2027-03-15"));
    browser.press("See what its mails say").await;
    browser.see("As plain text").await;
    browser.close().await;
    api.close().await;
}
