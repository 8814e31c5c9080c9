//! Permit types and the schedule editor: lines without script, what a change would mean before it is made, and two
//! administrators at once.

use permit_notifier::domain::role::Role;

use crate::support::api::TestApi;
use crate::support::pages::{Page, Visitor};

/// A form as the page sends it.
#[derive(Clone)]
struct TypeForm(Vec<(String, String)>);

impl TypeForm {
    /// With the lines of the usual schedule.
    fn usual(version: &str) -> Self {
        let mut form = Self(Vec::new());
        for (name, value) in [("version", version), ("name", "Food"), ("grace_days", "0")] {
            form.set(name, value);
        }
        let days = ["-90", "-60", "-30", "-14", "-7", "-1", "0", "1", "30"];
        for (at, days) in days.into_iter().enumerate() {
            let name = match days.trim_start_matches('-') {
                "0" => "expires-today".to_owned(),
                number if days.starts_with('-') => format!("expires-{number}d"),
                number => format!("expired-{number}d"),
            };
            form.line(at, &name, days, "statutory");
        }
        form.line(9, "renewed", "", "courtesy");
        form
    }

    fn set(&mut self, name: &str, value: &str) {
        self.0.retain(|(known, _)| known != name);
        self.0.push((name.to_owned(), value.to_owned()));
    }

    fn line(&mut self, at: usize, notice_type: &str, days: &str, class: &str) {
        let parts = [
            ("notice_type", notice_type),
            ("offset_days", days),
            ("class", class),
            ("late_by_days", "7"),
            ("enabled", "on"),
        ];
        for (name, value) in parts {
            self.set(&format!("steps/{at}/{name}"), value);
        }
    }

    async fn send(&self, visitor: &Visitor, button: &str) -> Page {
        let mut fields: Vec<(&str, &str)> =
            self.0.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        fields.push(("do", button));
        visitor.post("/permit-types/food", &fields).await
    }
}

async fn version(api: &TestApi) -> String {
    api.office.text("SELECT version::text FROM permit_types WHERE code = 'food'").await.remove(0)
}

#[tokio::test]
async fn a_change_says_what_it_means_for_notices_before_it_is_made() {
    let api = TestApi::open().await;
    let admin = api.signed_in(Role::Admin).await;
    // Its notice of thirty days before is pending, and that of twenty-five is not due by the usual schedule.
    let permit = api.office.permit_expiring_in(20).await;
    api.office.permit_expiring_in(365).await;
    let page = admin.get("/permit-types/food").await;
    page.shows(&["value=\"expires-90d\"", "value=\"-90\"", "name=\"version\" value=\"1\""]);
    let mut form = TypeForm::usual("1");
    form.line(2, "expires-25d", "-25", "statutory");
    form.set("office_contact", "1 Main Street\r\nSpringfield");

    let check = form.send(&admin, "check").await;
    assert_eq!(check.status, 200, "{check:?}");
    check.shows(&[
        "<th scope=\"row\">steps: expires-25d</th>",
        "<th scope=\"row\">steps: expires-30d</th>",
        "<div class=\"big\">1</div><p>would be due at the next scan if it ran now. Without the change it would be 0.",
        "<div class=\"big\">0</div><p>would be held",
        "<div class=\"big\">1</div><p>that wait to be sent would end unsent",
        "name=\"steps/2/notice_type\" value=\"expires-25d\"",
    ]);
    let pending = format!("SELECT notice_type FROM notices WHERE permit_id = '{permit}' AND state = 'pending'");
    assert_eq!(api.office.text(&pending).await, ["expires-30d"], "nothing is made yet");
    assert_eq!(version(&api).await, "1");
    form.send(&admin, "edit").await.shows(&["value=\"expires-25d\"", "1 Main Street"]);

    let saved = form.send(&admin, "save").await;
    assert_eq!(saved.header("location"), "/permit-types/food?done=type-changed", "{saved:?}");
    let ended = format!("SELECT state FROM notices WHERE permit_id = '{permit}' AND notice_type = 'expires-30d'");
    assert_eq!(api.office.text(&ended).await, ["superseded"]);
    assert_eq!(api.office.scan().await.counts.claimed, 1, "as was foreseen");
    let deed = "SELECT by || ' ' || action || ' ' || (before -> 'steps' ->> 'expires-30d') || ' / ' || \
                (after -> 'steps' ->> 'expires-25d') || ' / ' || (after ->> 'office_contact') FROM office_log";
    assert_eq!(
        api.office.text(deed).await,
        ["user:admin@office.example changed day -30, statutory, late by 7 / day -25, statutory, late by 7 / \
          1 Main Street\nSpringfield"]
    );
    let nothing = TypeForm::usual(&version(&api).await);
    nothing.send(&admin, "check").await.shows(&["steps: expires-30d"]);
    api.close().await;
}

#[tokio::test]
async fn a_step_taken_away_or_moved_says_how_many_permits_have_it_still_to_come() {
    let api = TestApi::open().await;
    let admin = api.signed_in(Role::Admin).await;
    for days in [20, 200, 365] {
        api.office.permit_expiring_in(days).await;
    }
    let [suspended, archived] = [api.office.permit_expiring_in(300).await, api.office.permit_expiring_in(300).await];
    api.office.sql(&format!("UPDATE permits SET status = 'suspended' WHERE id = '{suspended}'")).await;
    api.office.sql(&format!("UPDATE permits SET archived_at = updated_at WHERE id = '{archived}'")).await;
    let mut form = TypeForm::usual("1");
    form.0.retain(|(name, _)| name != "steps/1/enabled" && !name.starts_with("steps/9/"));
    form.line(3, "expires-14d", "-10", "statutory");
    form.line(4, "expires-7d", "-7", "courtesy");
    let check = form.send(&admin, "check").await;
    assert_eq!(check.status, 200, "{check:?}");
    // Nothing of it is due today, and the step of sixty days before is past for the one that expires in twenty.
    check.shows(&[
        "<div class=\"big\">0</div><p>would be due at the next scan",
        "<div class=\"big\">2</div><p>active permits have expires-60d still to come and would no longer get it, because \
         it is switched off. It is statutory: owed by law.",
        "<div class=\"big\">3</div><p>active permits have expires-14d still to come and would get it on another day: \
         day -10 instead of day -14. It is statutory",
        "<p>renewed would go to nobody who renews, because it is removed.</p>",
    ]);
    assert!(!check.text.contains("expires-7d still to come"), "{check:?}");
    api.close().await;
}

#[tokio::test]
async fn lines_come_and_go_without_script_and_faults_stand_beside_their_fields() {
    let api = TestApi::open().await;
    let admin = api.signed_in(Role::Admin).await;
    let mut form = TypeForm::usual("1");
    form.set("name", "Food & drink");
    form.set("renewal_url", "\"><b>hostile");
    let page = form.send(&admin, "add").await;
    page.shows(&["name=\"steps/10/notice_type\"", "value=\"Food &#38; drink\"", "&#34;&#62;&#60;b&#62;hostile"]);
    let page = form.send(&admin, "remove-0").await;
    assert!(!page.text.contains("expires-90d") && page.text.contains("value=\"expires-60d\""), "{page:?}");
    assert!(!page.text.contains("steps/9/notice_type"), "one fewer: {page:?}");

    form.line(10, "", "", "statutory");
    form.line(11, "Not a type", "soon", "statutory");
    form.set("grace_days", "-1");
    let refused = form.send(&admin, "check").await;
    assert_eq!(refused.status, 422, "{refused:?}");
    refused.shows(&[
        "href=\"#renewal_url\">Renewal url must be an http:// or https:// URL without a password, up to 1000 bytes.",
        "href=\"#grace_days\">Grace days must be a whole number from 0 to 3650.",
        "href=\"#steps/10/notice_type\">Line 11 of the schedule, notice type: a notice type has 1 to 40",
        "href=\"#steps/10/offset_days\">Line 11 of the schedule, offset days must be a whole number",
        "value=\"soon\" aria-invalid=\"true\"",
    ]);
    let mut twice = TypeForm::usual("1");
    twice.line(1, "expires-90d", "-60", "statutory");
    twice.send(&admin, "save").await.shows(&["The schedule: notice type expires-90d stands twice in the schedule."]);
    assert_eq!(version(&api).await, "1");
    api.close().await;
}

#[tokio::test]
async fn who_comes_second_sees_what_the_first_one_changed() {
    let api = TestApi::open().await;
    let admin = api.signed_in(Role::Admin).await;
    let mut first = TypeForm::usual("1");
    first.set("grace_days", "30");
    assert_eq!(first.send(&admin, "save").await.status, 303);
    let mut second = TypeForm::usual("1");
    second.set("name", "Foods");
    for button in ["check", "save"] {
        let conflict = second.send(&admin, button).await;
        assert_eq!(conflict.status, 409, "{conflict:?}");
        conflict.shows(&[
            "Somebody else changed it meanwhile",
            "<tr><th scope=\"row\">grace days</th><td>30</td><td>0</td></tr>",
            "<tr><th scope=\"row\">name</th><td>Food</td><td>Foods</td></tr>",
            "name=\"version\" value=\"2\"",
            "value=\"Foods\"",
        ]);
    }
    second.set("version", "2");
    assert_eq!(second.send(&admin, "save").await.status, 303);
    assert_eq!(api.office.text("SELECT name || grace_days FROM permit_types").await, ["Foods0"]);
    api.close().await;
}

#[tokio::test]
async fn a_type_is_added_by_an_administrator_alone_and_read_by_everybody() {
    let api = TestApi::open().await;
    let admin = api.signed_in(Role::Admin).await;
    let refused = admin.post("/permit-types", &[("code", "Dogs"), ("name", "")]).await;
    assert_eq!(refused.status, 422);
    refused.shows(&["Code: ", "value=\"Dogs\""]);
    admin.post("/permit-types", &[("code", "food"), ("name", "More food")]).await.shows(&["with this code already"]);
    admin
        .post("/permit-types", &[("code", "meals"), ("name", "Food")])
        .await
        .shows(&["belongs to another permit type"]);
    let made = admin.post("/permit-types", &[("code", "dogs"), ("name", "Dogs")]).await;
    assert_eq!(made.header("location"), "/permit-types/dogs?done=type-made");
    admin.get("/permit-types").await.shows(&["<a href=\"/permit-types/dogs\">Dogs</a>"]);
    let clerk = api.signed_in(Role::Clerk).await;
    let page = clerk.get("/permit-types/dogs").await;
    page.shows(&["expires-90d", "An administrator can change it."]);
    assert!(!page.text.contains("name=\"steps/"), "{page:?}");
    assert_eq!(TypeForm::usual("1").send(&clerk, "save").await.status, 403);
    assert_eq!(clerk.post("/permit-types", &[("code", "cats"), ("name", "Cats")]).await.status, 403);
    assert_eq!(admin.get("/permit-types/none").await.status, 404);
    assert_eq!(api.office.text("SELECT action || label FROM office_log").await, ["madedogs"]);
    api.close().await;
}
