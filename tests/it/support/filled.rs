//! An office with one of everything that pages can show.

use permit_notifier::domain::{permit::PermitStatus, role::Role};
use reqwest::multipart::{Form, Part};
use serde_json::json;
use uuid::Uuid;

use super::{
    api::{Options, TestApi, send},
    html::Dom,
    office::contact,
    pages::Visitor,
};

/// What a text that people, files or servers fill in says: most tests are content with its name.
pub type Say = fn(&str) -> String;

/// An office in use. Ends with `filled.api.close()`.
pub struct Filled {
    pub api: TestApi,
    /// Everybody who can sign in.
    pub viewer: Visitor,
    pub clerk: Visitor,
    pub admin: Visitor,
    /// The path of an unused link to set a password.
    pub link: String,
}

/// The name of each text as it is.
pub fn plainly(name: &str) -> String {
    name.to_owned()
}

impl Filled {
    pub async fn open(say: Say) -> Self {
        let mut api = TestApi::with(Options { claim_limit: 1, ..Options::default() }).await;
        old_notices(&mut api, say).await;
        let viewer = api.signed_in(Role::Viewer).await;
        let clerk = api.signed_in(Role::Clerk).await;
        let admin = api.signed_in(Role::Admin).await;
        let mut filled = Self { api, viewer, clerk, admin, link: String::new() };
        filled.permit_type(say).await;
        filled.suppressions(say).await;
        filled.permits(say).await;
        filled.attempts(say).await;
        filled.deeds(say).await;
        filled.imports(say).await;
        filled.people(say).await;
        filled
    }

    /// A permit with its number, expiring in five days, and its notice.
    async fn due(
        &self,
        number: String,
        edit: impl FnOnce(&mut permit_notifier::store::permits::PermitData),
    ) -> (Uuid, Uuid) {
        let office = &self.api.office;
        let permit = office.create_permit(|p| {
            (p.permit_number, p.expires_on) = (number.parse().unwrap(), office.in_days(5));
            edit(p);
        });
        let permit = permit.await;
        (permit, office.notice(permit, "expires-7d").await.id)
    }

    async fn permit_type(&self, say: Say) {
        let food = self.api.get("/permit-types/food").await;
        let mut body = food.body.clone();
        body["name"] = json!(say("type name"));
        body["office_contact"] = json!(say("office contact"));
        body["renewal_url"] = json!(format!("https://renew.example/?q={}", say("renewal-url").replace(' ', "%20")));
        let changed = self.api.put("/permit-types/food", food.etag(), &body).await;
        assert_eq!(changed.status, 200, "{changed:?}");
    }

    async fn suppressions(&self, say: Say) {
        for (address, class) in [("all@example.org", "all"), ("o'x&x@example.org", "courtesy")] {
            let fields = [("address", address), ("class", class), ("reason", &say("suppression reason"))];
            let done = self.clerk.post("/suppressions", &fields).await;
            assert_eq!(done.status, 303, "{done:?}");
        }
    }

    /// Permits of every kind, and notices in most states.
    async fn permits(&self, say: Say) {
        let office = &self.api.office;
        self.due(say("F-full"), |p| {
            p.holder_name = say("holder name");
            p.site_address = Some(say("site address"));
            p.description = Some(say("description"));
            p.external_id = Some(say("external id"));
            p.custom = json!({ say("custom key"): say("custom value") });
            let mut agent = contact("agent", "all@example.org");
            (agent.name, agent.role) = (say("contact name"), say("contact role"));
            p.contacts = vec![agent];
        })
        .await;
        // The day after tomorrow something goes.
        let number = say("F-upcoming");
        office
            .create_permit(|p| {
                (p.permit_number, p.expires_on) = (number.parse().unwrap(), office.in_days(32));
                p.holder_name = say("upcoming holder");
                p.contacts = vec![contact("agent", "agent@example.org")];
            })
            .await;
        let (archived, _) = self.due(say("F-archived"), |_| {}).await;
        office.archive(archived).await;
        let (suspended, _) = self.due(say("F-suspended"), |_| {}).await;
        office.set_status(suspended, PermitStatus::Suspended).await;
        let (paused, _) = self.due(say("F-paused"), |_| {}).await;
        office.pause(paused, Some(office.in_days(3))).await;
        let (renewed, _) = self.due(say("F-renewed"), |_| {}).await;
        office.renew(renewed, office.in_days(400)).await;
        self.due(say("F-letter"), |p| {
            (p.holder_email, p.holder_name) = (None, say("letter holder"));
            p.site_address = Some(say("letter site"));
        })
        .await;
    }

    /// What servers said.
    async fn attempts(&self, say: Say) {
        let office = &self.api.office;
        for (number, outcome) in [("F-sent", "accepted"), ("F-ambiguous", "ambiguous"), ("F-failed", "rejected")] {
            let (permit, _) = self.due(say(number), |p| p.holder_name = say("holder of a tried one")).await;
            office.transport(permit, outcome).await;
        }
        let (response, enhanced, error) = (say("server response"), say("enhanced code"), say("last error"));
        let late = say("late result");
        office
            .sql(&format!(
                "INSERT INTO attempt_messages SELECT id, 'Subject: x' FROM attempts;
                 UPDATE attempts SET response = $t${response}$t$, enhanced_code = $t${enhanced}$t$,
                        late_result = $t${late}$t$;
                 UPDATE deliveries SET last_error = $t${error}$t$ WHERE state IN ('failed', 'ambiguous');
                 INSERT INTO scans (id, scheduled_for, trigger, as_of, own_day, boot_id, started_at, finished_at,
                                    outcome, lock, error)
                 SELECT gen_random_uuid(), started_at, 'schedule', as_of, true, boot_id, started_at, finished_at,
                        'failed', lock, $t${}$t$ FROM scans ORDER BY started_at DESC LIMIT 1",
                say("scan error")
            ))
            .await;
    }

    /// What people did with notices, and why.
    async fn deeds(&self, say: Say) {
        let today = self.api.office.today().to_string();
        for (number, verb, reason) in [("F-held", "hold", "hold reason"), ("F-cancelled", "cancel", "cancel reason")] {
            let (_, notice) = self.due(say(number), |_| {}).await;
            let done = self.clerk.post(&format!("/notices/{notice}/{verb}"), &[("reason", &say(reason))]).await;
            assert_eq!(done.status, 303, "{done:?}");
        }
        let (permit, notice) = self.due(say("F-resolved"), |_| {}).await;
        self.api.office.transport(permit, "ambiguous").await;
        let found = [("outcome", "delivered"), ("reason", &say("resolution"))];
        assert_eq!(self.clerk.post(&format!("/notices/{notice}/resolve"), &found).await.status, 303);
        let missing = "INSERT INTO attempt_messages SELECT id, 'Subject: x' FROM attempts ON CONFLICT DO NOTHING";
        self.api.office.sql(missing).await;
        let (_, notice) = self.due(say("F-posted"), |p| p.holder_email = None).await;
        let posted = [("posted_on", today.as_str()), ("tracking", &say("tracking"))];
        let done = self.clerk.post(&format!("/notices/{notice}/posted"), &posted).await;
        assert_eq!(done.status, 303, "{done:?}");
        let (office, number) = (&self.api.office, say("F-ahead"));
        let permit = office
            .create_permit(|p| (p.permit_number, p.expires_on) = (number.parse().unwrap(), office.in_days(95)))
            .await;
        let ahead = [("notice_type", "expires-90d"), ("action", "hold"), ("reason", &say("step reason"))];
        let done = self.clerk.post(&format!("/permits/{permit}/steps"), &ahead).await;
        assert_eq!(done.status, 303, "{done:?}");
        let edited = self.api.office.permit(permit).await;
        let changed = self
            .api
            .patch(
                &format!("/permits/{permit}"),
                &format!("\"{}\"", edited.version),
                &json!({ "holder_name": say("new name") }),
            )
            .await;
        assert_eq!(changed.status, 200, "{changed:?}");
    }

    /// One import that held what it found, one with rejected rows, and files that wait, understood and not.
    async fn imports(&self, say: Say) {
        let header = "Number,Type,Holder,Email,Expires,Status";
        let due = |number: &str, day: i64| {
            format!("{number},food,{},a@example.org,{},active", cell(&say("cell")), self.api.office.in_days(day))
        };
        let held = format!("{header}\n{}\n{}\n", due("H-1", 5), due("H-2", 6));
        let path = self.upload(&say("held.csv"), &held).await;
        self.clerk.post(&path, &[("catch_up", "on")]).await;
        self.import(&path).await;

        let wrong = |name: &str| {
            format!(
                "{},food,{},{},2028-13-01,{}",
                cell(&say(name)),
                cell(&say(name)),
                cell(&say("email")),
                cell(&say("status"))
            )
        };
        let mixed = format!(
            "{header},{}\n{},x\n{},{}\n",
            cell(&say("header")),
            due("M-1", 300),
            wrong("cell"),
            cell(&say("sample"))
        );
        let path = self.upload(&say("mixed.csv"), &mixed).await;
        self.clerk.post(&path, &[("keep_good_rows", "on"), ("complete", "on")]).await;
        self.import(&path).await;

        let path = self.upload(&say("waiting.csv"), &mixed).await;
        let mapping = say("mapping");
        let chosen = [("permit_type", say("type of all")), ("field/permit_type", "-".to_owned())];
        let saved = [("do", "save".to_owned()), ("mapping_name", mapping.chars().take(100).collect())];
        let form: Vec<(&str, &str)> = chosen.iter().chain(&saved).map(|(name, text)| (*name, text.as_str())).collect();
        let done = self.clerk.post(&path, &form).await;
        assert_eq!(done.status, 303, "{done:?}");
        let named = self.api.request(reqwest::Method::POST, "/imports").query(&[("file_name", say("by-api.csv"))]);
        let named = send(named.header("content-type", "text/csv").body(mixed)).await;
        assert_eq!(named.status, 201, "{named:?}");
        self.upload(&say("refused.csv"), &format!("{},b\n1,2\n", cell(&say("unknown header")))).await;
    }

    async fn upload(&self, name: &str, content: &str) -> String {
        let file = Part::bytes(content.as_bytes().to_vec()).file_name(name.to_owned());
        let form = Form::new().text("csrf", self.clerk.csrf.clone()).part("file", file);
        let page = self.clerk.upload_form("/import", form).await;
        assert_eq!(page.status, 303, "{page:?}");
        page.header("location").to_owned()
    }

    async fn import(&self, path: &str) {
        let page = self.clerk.get(path).await;
        let checked = page.between("name=\"checked\" value=\"", "\"").to_owned();
        let done = self.clerk.post(path, &[("checked", &checked), ("do", "import")]).await;
        assert_eq!(done.status, 303, "{done:?}");
    }

    async fn people(&mut self, say: Say) {
        for email in ["gone@office.example", "o'x&x@office.example"] {
            let added = self.admin.post("/users", &[("email", email), ("role", "viewer")]).await;
            assert_eq!(added.status, 201, "{added:?}");
            let dom = Dom::of("/users", &added.text);
            let given = dom.all("input[readonly]")[0].attr("value").unwrap().to_owned();
            given.strip_prefix(&self.api.url).unwrap().clone_into(&mut self.link);
        }
        let gone = self.api.office.text("SELECT id::text FROM users WHERE email = 'gone@office.example'").await;
        assert_eq!(self.admin.post(&format!("/users/{}/disable", gone[0]), &[]).await.status, 303);
        for name in ["token", "revoked token"] {
            let body = json!({ "name": say(name), "scope": "read" });
            let token = self.api.post("/tokens", &body).await;
            assert_eq!(token.status, 201, "{token:?}");
            if name != "token" {
                send(self.api.request(reqwest::Method::DELETE, token.path())).await;
            }
        }
        let exported = [("query", "archived=any"), ("format", "csv")];
        assert_eq!(self.clerk.post("/permits/export", &exported).await.status, 200);
    }
}

/// What was skipped because nobody looked in time, and what a scan holds.
async fn old_notices(api: &mut TestApi, say: Say) {
    let number = |name: &str| say(name).parse().unwrap();
    let in_days = api.office.in_days(5);
    api.office.create_permit(|p| (p.permit_number, p.expires_on) = (number("F-skipped"), in_days)).await;
    api.office.days_pass(60);
    api.office.scan().await;
    let in_days = api.office.in_days(31);
    for name in ["F-scan-1", "F-scan-2"] {
        let edit = |p: &mut permit_notifier::store::permits::PermitData| {
            (p.permit_number, p.expires_on, p.holder_name) = (number(name), in_days, say("held holder"));
        };
        api.office.create_permit(edit).await;
    }
    api.office.days_pass(1);
    api.office.rules.claim_limit = 1;
    assert_eq!(api.office.scan().await.counts.held, 2);
    api.office.rules.claim_limit = 0;
}

/// A cell of a csv file.
fn cell(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
