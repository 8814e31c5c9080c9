//! What needs a person, settled one after the other.

use thirtyfour::prelude::*;
use uuid::Uuid;

use super::{clerk, office, permit};
use crate::support::{
    api::TestApi,
    browser::{Browser, Way},
};

#[ignore = "wants a browser"]
#[tokio::test]
async fn every_problem_is_settled() {
    problems_are_settled(Way::Usual).await;
}

#[ignore = "wants a browser"]
#[tokio::test]
async fn the_same_without_script() {
    problems_are_settled(Way::NarrowWithoutScript).await;
}

#[ignore = "wants a browser"]
#[tokio::test]
async fn the_same_by_keyboard() {
    problems_are_settled(Way::Keyboard).await;
}

async fn problems_are_settled(way: Way) {
    let mut api = office().await;
    held_by_two_scans(&mut api).await;
    for (number, outcome) in
        [("LOST", "ambiguous"), ("THERE", "ambiguous"), ("GIVEN-UP", "rejected"), ("AGAIN", "rejected")]
    {
        let permit = permit(&api, number, 5, false).await;
        api.office.transport(permit, outcome).await;
    }
    api.office
        .create_permit(|p| {
            (p.permit_number, p.expires_on) = ("LETTER".parse().unwrap(), api.office.in_days(5));
            p.holder_email = None;
        })
        .await;

    let browser = clerk(&api, way).await;
    browser.press("Problems").await;
    for kind in ["Ambiguous: 2", "Could not be sent: 2", "Held: 4", "Letters to post: 1"] {
        browser.see(kind).await;
    }
    what_nobody_knows_is_found_out(&browser).await;
    what_failed_goes_again_or_is_given_up(&browser).await;
    what_scans_held_is_settled(&browser).await;
    a_letter_is_posted(&browser).await;
    browser.see("Nothing needs a person.").await;
    browser.close().await;

    for (number, step, state) in [
        ("THERE", "expires-7d", "sent"),
        ("LOST", "expires-7d", "pending"),
        ("AGAIN", "expires-7d", "pending"),
        ("GIVEN-UP", "expires-7d", "cancelled"),
        ("SCAN-1A", "expires-30d", "pending"),
        ("SCAN-1B", "expires-30d", "pending"),
        ("SCAN-2A", "expires-30d", "cancelled"),
        ("SCAN-2B", "expires-30d", "cancelled"),
        ("LETTER", "expires-7d", "sent"),
    ] {
        assert_eq!(state_of(&api, number, step).await, state, "{number} {step}");
    }
    api.close().await;
}

/// Two scans find more than may go without a person's word.
async fn held_by_two_scans(api: &mut TestApi) {
    for (number, days) in [("SCAN-1A", 31), ("SCAN-1B", 31), ("SCAN-2A", 32), ("SCAN-2B", 32)] {
        permit(api, number, days, true).await;
    }
    api.office.rules.claim_limit = 1;
    for _ in 0..2 {
        api.office.days_pass(1);
        assert_eq!(api.office.scan().await.counts.held, 2);
    }
}

async fn what_nobody_knows_is_found_out(browser: &Browser) {
    browser.see("The whole message was handed over; the server's answer to its end never came. (phase dot)").await;
    browser.see("Look for the Message-ID in the mail server's log, or ask the recipient").await;
    let button = what_became_of_the_first(browser).await;
    browser.press(button).await;
    browser.is_kept_back_at("How do you know?").await;
    browser.fill("How do you know?", " ").await;
    browser.press(button).await;
    browser.is_refused("The reason is needed.").await;
    browser.press("The reason is needed.").await;
    assert_eq!(browser.focused().await, "How do you know?");
    settle(browser, "it is in the log of the server", button).await;
    browser.see("it is in the log of the server").await;

    browser.press("Problems").await;
    browser.see("Ambiguous: 1").await;
    let button = what_became_of_the_first(browser).await;
    settle(browser, "the holder was asked", button).await;
    browser.see("Ambiguous: 0").await;
}

async fn settle(browser: &Browser, reason: &str, button: &str) {
    browser.fill("How do you know?", reason).await;
    browser.press(button).await;
    browser.is_done("What you found out is recorded.").await;
}

/// The button that is right for the first card.
async fn what_became_of_the_first(browser: &Browser) -> &'static str {
    let permit = browser.driver.find(By::Css("section.card h3 a[href^='/permits/']")).await.unwrap();
    match permit.text().await.unwrap().as_str() {
        "THERE" => "It was delivered",
        "LOST" => "It was not: send it again",
        other => panic!("{other} is not ambiguous"),
    }
}

async fn what_failed_goes_again_or_is_given_up(browser: &Browser) {
    browser.press("Send the ticked again").await;
    browser.is_refused("Tick the notices that are meant.").await;
    browser.tick("expires-7d of AGAIN").await;
    browser.press("Send the ticked again").await;
    browser.is_done("It is done with all that were ticked.").await;
    browser.see("Could not be sent: 1").await;

    browser.tick("expires-7d of GIVEN-UP").await;
    browser.press("Give the ticked up").await;
    browser.is_refused("Give the reason.").await;
    browser.press("Give the reason.").await;
    assert_eq!(browser.focused().await, "Reason to give up");
    // What was ticked is ticked still.
    browser.fill("Reason to give up", "they have moved").await;
    browser.press("Give the ticked up").await;
    browser.is_done("It is done with all that were ticked.").await;
    browser.see("Could not be sent: 0").await;
}

async fn what_scans_held_is_settled(browser: &Browser) {
    for left in [4, 2] {
        browser.see(&format!("Held: {left}")).await;
        let is_first_scan = browser.driver.find(By::Css("caption + thead + tbody tr td a")).await.unwrap();
        let button = if is_first_scan.text().await.unwrap().starts_with("SCAN-1") { "Release" } else { "Cancel" };
        browser.press(&format!("{button} all 2")).await;
        browser.is_kept_back_at("Reason").await;
        browser.fill("Reason", "looked through").await;
        browser.press(&format!("{button} all 2")).await;
        browser.is_done("What was held is").await;
    }
    browser.see("Held: 0").await;
}

async fn a_letter_is_posted(browser: &Browser) {
    browser.fill("Posted on", "2027-03-13").await;
    browser.press("It is posted").await;
    // Tomorrow.
    browser.is_kept_back_at("Posted on").await;
    browser.fill("Posted on", "2027-03-11").await;
    browser.fill("Tracking number", "RR 12").await;
    browser.press("It is posted").await;
    browser.is_refused("The day of posting must be from").await;
    browser.fill("Posted on", "2027-03-12").await;
    browser.press("It is posted").await;
    browser.is_done("The letter is recorded as posted.").await;
    browser.see("tracking number RR 12").await;
    browser.press("Problems").await;
}

async fn state_of(api: &TestApi, number: &str, step: &str) -> String {
    let permit = format!("SELECT id::text FROM permits WHERE permit_number = '{number}'");
    let permit: Uuid = api.office.text(&permit).await.remove(0).parse().unwrap();
    api.office.notice(permit, step).await.state
}
