//! What is to be sent is seen beforehand, and kept back.

use thirtyfour::prelude::*;

use super::{clerk, office, permit};
use crate::support::browser::{Browser, Way};

#[ignore = "wants a browser"]
#[tokio::test]
async fn mail_of_tomorrow_is_looked_at_held_and_skipped() {
    mail_is_kept_back(Way::Usual).await;
}

#[ignore = "wants a browser"]
#[tokio::test]
async fn the_same_without_script() {
    mail_is_kept_back(Way::NarrowWithoutScript).await;
}

#[ignore = "wants a browser"]
#[tokio::test]
async fn the_same_by_keyboard() {
    mail_is_kept_back(Way::Keyboard).await;
}

async fn mail_is_kept_back(way: Way) {
    let api = office().await;
    let mut permits = Vec::new();
    for number in ["A-HELD", "B-SKIP", "C-GOES"] {
        permits.push(permit(&api, number, 31, true).await);
    }
    let browser = clerk(&api, way).await;
    browser.press("Upcoming").await;
    browser.see("3 × expires-30d").await;
    browser.press("Thu 11 Mar 2027").await;
    browser.see("A-HELD").await;
    a_mail_is_looked_at(&browser).await;

    browser.press("Hold or skip expires-30d of A-HELD").await;
    browser.press("Hold").await;
    browser.is_kept_back_at("Reason").await;
    browser.fill("Reason", " ").await;
    browser.press("Hold").await;
    browser.is_refused("The reason must have 1 to 1000 characters.").await;
    assert!(browser.field("Reason").await.is_displayed().await.unwrap(), "the form is open still");
    // The sentence leads to it.
    browser.press("The reason must have 1 to 1000 characters.").await;
    assert_eq!(browser.focused().await, "Reason");
    browser.fill("Reason", "the holder has called").await;
    browser.press("Hold").await;
    browser.is_done("The notice is held until somebody releases or cancels it.").await;
    browser.see("1 held; they are not in this list.").await;
    assert!(!browser.text().await.contains("A-HELD"), "it is no longer in that day");

    browser.press("Hold or skip expires-30d of B-SKIP").await;
    browser.fill("Reason", "renewed on paper").await;
    browser.press("Skip").await;
    browser.is_done("The notice will not be sent.").await;
    let shown = browser.text().await;
    assert!(shown.contains("1 held and 1 cancelled") && shown.contains("C-GOES") && !shown.contains("B-SKIP"));
    browser.press("1 held").await;
    browser.see("the holder has called").await;
    browser.close().await;

    api.office.days_pass(1);
    api.office.scan().await;
    for (permit, state) in permits.into_iter().zip(["held", "cancelled", "pending"]) {
        assert_eq!(api.office.notice(permit, "expires-30d").await.state, state);
    }
    api.close().await;
}

/// Its text, and its HTML as it will look.
async fn a_mail_is_looked_at(browser: &Browser) {
    browser.press("its mail").await;
    browser.see("What the mails of A-HELD expires-30d say").await;
    browser.see("As plain text").await;
    let text = browser.driver.find(By::Css("pre")).await.unwrap().text().await.unwrap();
    assert!(text.contains("Saturday, 10 April 2027") && text.contains("A-HELD"), "{text}");
    browser.fits().await;

    browser.driver.find(By::Css("iframe")).await.unwrap().enter_frame().await.unwrap();
    browser.see("Saturday, 10 April 2027").await;
    let cell = browser.driver.find(By::Css("td[align=left]")).await.unwrap();
    let font = cell.css_value("font-family").await.unwrap();
    assert!(font.contains("Arial"), "the mail has its own styles: {font}");
    browser.driver.enter_default_frame().await.unwrap();
    browser.press("Thursday, 11 March 2027").await;
    browser.see("Upcoming on Thursday, 11 March 2027").await;
}
