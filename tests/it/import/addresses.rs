//! What becomes of known addresses: those that an import brought, those that a person entered, and those in whose place a
//! file has something that is none.

use permit_notifier::files::Reason;
use permit_notifier::store::permits::Contact;

use super::{Desk, HEADER, keep_good_rows, rules};

fn line(cell: &str) -> String {
    format!("1,Food,Ann,{cell},2027-05-31")
}

impl Desk {
    async fn import_cell(&self, cell: &str) -> u64 {
        self.import(HEADER, &[&line(cell)], &rules()).await.permits_updated
    }

    async fn contacts(&self) -> String {
        self.rows("SELECT email FROM contacts ORDER BY position").await
    }
}

#[tokio::test]
async fn further_addresses_of_the_holder_are_replaced_by_the_next_file() {
    let desk = Desk::new().await;
    desk.import_cell("a@example.org; second1@example.org").await;
    for cell in ["second2@example.org", "second3@example.org; third@example.org"] {
        assert_eq!(desk.import_cell(&format!("a@example.org; {cell}")).await, 1);
        assert_eq!(desk.contacts().await, cell.replace(';', ""));
        assert_eq!(desk.import_cell(&format!("a@example.org; {cell}")).await, 0, "the same again");
    }
    let bare = "permit_number,permit_type,holder_name,expires_on";
    assert_eq!(desk.import(bare, &["1,Food,Ann,2027-05-31"], &rules()).await.permits_updated, 0);
    assert_eq!(
        desk.contacts().await,
        "second3@example.org third@example.org",
        "a file without the column says nothing"
    );
    assert_eq!(desk.import_cell("a@example.org").await, 1);
    assert_eq!(desk.contacts().await, "");
}

#[tokio::test]
async fn whom_a_person_entered_stays_whatever_the_holders_cell_says() {
    let desk = Desk::new().await;
    desk.import_cell("a@example.org; second1@example.org").await;
    let by_hand = Contact {
        name: "Eve".to_owned(),
        email: Some("eve@example.org".parse().unwrap()),
        role: "agent".to_owned(),
        language: "en".to_owned(),
    };
    desk.correct("1", |data| data.contacts.push(by_hand)).await;
    assert_eq!(desk.import_cell("a@example.org; second1@example.org").await, 0);
    assert_eq!(desk.import_cell("a@example.org; eve@example.org; second2@example.org").await, 1);
    assert_eq!(desk.contacts().await, "eve@example.org second2@example.org");
    assert_eq!(desk.import_cell("a@example.org").await, 1);
    assert_eq!(desk.contacts().await, "eve@example.org");
}

#[tokio::test]
async fn more_contacts_than_a_permit_can_have_are_an_error_of_the_row() {
    let desk = Desk::new().await;
    let cell = |count| (0..=count).map(|i| format!("a{i}@example.org")).collect::<Vec<_>>().join("; ");
    let report = desk.import(HEADER, &[&line(&cell(21))], &rules()).await;
    let [error] = &report.errors[..] else { panic!("{:?}", report.errors) };
    assert_eq!((error.column.as_deref(), error.code), (Some("holder_email"), Reason::InvalidContacts));
    assert!(error.detail.contains("at most 20 contacts"), "{}", error.detail);
    assert!(desk.import(HEADER, &[&line(&cell(20))], &rules()).await.committed);
}

#[tokio::test]
async fn a_malformed_address_leaves_the_known_one_and_says_so() {
    let desk = Desk::new().await;
    let header = format!("{HEADER},contact_email");
    desk.import(&header, &["1,Food,Ann,good@example.org; second@example.org,2027-05-31,c@example.org"], &rules()).await;
    let known = "good@example.org,{second@example.org,c@example.org}";
    let state =
        "SELECT holder_email, (SELECT array_agg(email ORDER BY position)::text FROM contacts) AS c FROM permits";
    let state = async || desk.rows(state).await.replace('"', "");
    assert_eq!(state().await, known);
    let import = async |row: &str| {
        let path = desk.file("bad.csv", &format!("{header}\n{row}\n"));
        desk.try_import(&path, &keep_good_rows(), &rules()).await.unwrap()
    };
    let report = import("1,Food,Ann,good@@example.org,2027-05-31,c@@example.org").await;
    assert_eq!((report.unchanged, report.warnings.len()), (1, 2));
    assert_eq!(report.warnings[0].code, Reason::MalformedAddress);
    assert!(report.warnings[0].detail.ends_with("what is known of these addresses stays"), "{:?}", report.warnings);
    assert_eq!(state().await, known);
    // Something else changes, and the term too.
    let report = import("1,Food,Ann Lee,good@@example.org,2028-05-31,c@example.org").await;
    assert_eq!((report.permits_renewed, state().await.as_str()), (1, known));
    let report = import("1,Food,Ann Lee,new@example.org; second@@example.org,2028-05-31,d@@example.org").await;
    assert_eq!((report.permits_updated, state().await), (1, known.replace("good", "new")));
    let report = import("1,Food,Ann Lee,new(at)example.org; asst@example.org,2028-05-31,c@example.org").await;
    assert_eq!((report.permits_updated, report.addresses_missing), (1, 1));
    let state_now = state().await;
    assert!(state_now.starts_with("new@example.org,") && state_now.contains("asst@example.org"), "{state_now}");
    import("1,Food,Ann Lee,,2028-05-31,").await;
    assert_eq!(state().await, ",", "an empty cell says that there is none");
}

#[tokio::test]
async fn who_stays_because_an_address_is_none_is_not_there_once_more_by_name_alone() {
    let desk = Desk::new().await;
    let header = format!("{HEADER},contact_email,contact_name");
    let line = |address: &str| format!("1,Food,Ann,a@example.org,2027-05-31,{address},Bob");
    desk.import(&header, &[&line("bob@example.org")], &rules()).await;
    let path = desk.file("bad.csv", &format!("{header}\n{}\n", line("bob@@example.org")));
    let report = desk.try_import(&path, &keep_good_rows(), &rules()).await.unwrap();
    assert_eq!((report.unchanged, report.warnings.len()), (1, 1), "{:?}", report.warnings);
    let people = async || desk.rows("SELECT name, email FROM contacts ORDER BY position").await;
    assert_eq!(people().await, "Bob,bob@example.org");
    // Of somebody else the name at least is known by now.
    let path = desk.file("other.csv", &format!("{header}\n{}\n", line("cy@@example.org").replace("Bob", "Cy")));
    desk.try_import(&path, &keep_good_rows(), &rules()).await.unwrap();
    assert_eq!(people().await, "Bob,bob@example.org Cy,");
}

#[tokio::test]
async fn there_is_room_for_twenty_contacts_and_first_for_whom_a_person_entered() {
    let desk = Desk::new().await;
    desk.import_cell("a@example.org").await;
    let by_hand = |i: usize| Contact {
        name: format!("P{i}"),
        email: Some(format!("p{i}@example.org").parse().unwrap()),
        role: "agent".to_owned(),
        language: "en".to_owned(),
    };
    desk.correct("1", |data| data.contacts = (0..18).map(by_hand).collect()).await;
    let cell = "a@example.org; b@example.org; p3@example.org; c@example.org; d@example.org; e@example.org";
    for updated in [1, 0] {
        let report = desk.import(HEADER, &[&line(cell)], &rules()).await;
        assert_eq!(report.permits_updated, updated);
        let [left_out] = &report.warnings[..] else { panic!("{:?}", report.warnings) };
        assert_eq!((left_out.row, left_out.code), (Some(2), Reason::InvalidContacts));
        assert!(left_out.detail.contains("at most 20 contacts, so 2 of this row are left out"), "{left_out:?}");
        let contacts = desk.contacts().await;
        assert_eq!(contacts.split(' ').count(), 20, "{contacts}");
        assert!(contacts.starts_with("p0@example.org p1@example.org"), "{contacts}");
        assert!(contacts.ends_with("p17@example.org b@example.org c@example.org"), "{contacts}");
    }
    let report = desk.import(HEADER, &[&line("a@example.org; d@example.org")], &rules()).await;
    assert_eq!((report.permits_updated, report.warnings.len()), (1, 0), "{:?}", report.warnings);
    assert!(desk.contacts().await.ends_with("p17@example.org d@example.org"));
}
