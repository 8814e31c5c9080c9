//! What an import makes of permits and their terms.

use permit_notifier::domain::permit::PermitStatus;
use permit_notifier::files::Reason;
use permit_notifier::store::changes::{self, ChangeRules};
use permit_notifier::store::permit_types::create_permit_type;
use permit_notifier::store::permits::Contact;

use super::{Desk, HEADER, TODAY, catch_up, day, keep_good_rows, moment, rules, sample};

const BARE: &str = "permit_number,permit_type,holder_name,expires_on";

#[tokio::test]
async fn a_second_import_of_a_register_changes_nothing() {
    let desk = Desk::new().await;
    let first = desk.try_import(&sample(), &keep_good_rows(), &rules()).await.unwrap();
    assert!(first.committed && first.id.is_some());
    let good = first.rows - first.rejected;
    let permits = desk.ask("SELECT count(DISTINCT number_key) FROM permits").await;
    assert_eq!(permits, first.permits_created.to_string());
    assert_eq!((good, first.permits_created + first.history_terms), (196, 196));
    assert_eq!(desk.ask("SELECT count(*) FROM terms").await, "196");
    let before = desk.dump().await;
    let second = desk.try_import(&sample(), &keep_good_rows(), &rules()).await.unwrap();
    assert!(second.committed);
    assert_eq!((second.permits_created, second.permits_renewed, second.permits_updated), (0, 0, 0));
    assert_eq!((second.unchanged, second.history_terms, second.types_created), (first.permits_created, 0, 0));
    assert_eq!(desk.dump().await, before);
    assert_eq!(desk.ask("SELECT count(*) FROM imports WHERE report ->> 'rows' = '203'").await, "2");
    assert_eq!(desk.ask("SELECT file_name FROM imports LIMIT 1").await, "chicago_sample.csv");
}

#[tokio::test]
async fn rows_of_one_number_are_its_terms_and_the_last_is_current() {
    let desk = Desk::new().await;
    let lines = [
        "A-1,Food,Newest,2028-05-31,2027-06-01,active",
        "a-1,Food,Oldest,2026-05-31,,revoked",
        "A-1,Food,Earlier start,2028-05-31,2027-01-01,active",
        "A -1,Food,Middle,2027-05-31,2026-06-01,closed",
        "A-1,Bar,Newest again,2028-05-31,2027-06-01,suspended",
    ];
    let report =
        desk.import("permit_number,permit_type,holder_name,expires_on,effective_on,status", &lines, &rules()).await;
    assert_eq!((report.permits_created, report.history_terms, report.types_created), (1, 3, 1));
    let terms = "1,,2026-05-31 2,2026-06-01,2027-05-31 3,2027-01-01,2028-05-31 4,2027-06-01,2028-05-31";
    assert_eq!(desk.terms("a-1").await, terms);
    let permit = desk.permit("a-1").await;
    assert_eq!((permit.holder_name.as_str(), permit.status), ("Newest again", PermitStatus::Suspended));
    assert_eq!((permit.permit_type.as_str(), permit.notices_from), ("bar", Some(day(TODAY))));
    let since = "SELECT string_agg(DISTINCT since::text, ' ') || count(*) FROM expiry_periods";
    assert_eq!(desk.ask(since).await, format!("{TODAY}3"));
}

#[tokio::test]
async fn a_known_permit_is_renewed_by_a_later_date_and_left_alone_by_an_earlier_one() {
    let desk = Desk::new().await;
    desk.import(HEADER, &["1,Food,Ann,ann@example.org,2026-12-31"], &catch_up()).await;
    let lines = ["1,Food,Ann,ann@example.org,2028-12-31", "1,Food,Ann,ann@example.org,2027-12-31"];
    let report = desk.import(HEADER, &lines, &rules()).await;
    assert_eq!((report.permits_renewed, report.history_terms, report.unchanged), (1, 1, 0));
    assert_eq!(desk.terms("1").await, "1,,2026-12-31 2,,2027-12-31 3,,2028-12-31");
    let before = desk.dump().await;
    let report = desk.import(HEADER, &["1,Bar,Bob,bob@example.org,2025-12-31"], &rules()).await;
    assert_eq!((report.unchanged, report.history_terms, report.types_created), (1, 0, 0));
    assert_eq!(desk.dump().await, before);
    assert_eq!(desk.permit("1").await.notices_from, None, "an import never sets it on a known permit");
}

#[tokio::test]
async fn a_date_that_comes_back_keeps_the_day_on_which_it_was_first_known() {
    let desk = Desk::new().await;
    desk.import(HEADER, &["1,Food,Ann,,2027-12-31"], &rules()).await;
    desk.correct("1", |data| data.expires_on = day("2027-06-30")).await;
    let later = permit_notifier::files::ImportRules { moment: moment("2026-07-01"), ..rules() };
    desk.import(HEADER, &["1,Food,Ann,,2027-12-31"], &later).await;
    assert_eq!(desk.ask("SELECT period_since FROM permits").await, TODAY);
}

#[tokio::test]
async fn a_field_that_the_file_lacks_is_never_overwritten() {
    let desk = Desk::new().await;
    let header = "permit_number,permit_type,holder_name,holder_email,expires_on,status,holder_language,site_address,\
                  description,issued_on,effective_on,external_id,contact_name,contact_email";
    let full =
        "1,Food,Ann,ann@example.org,2027-05-31,suspended,fr,1 Road,Stall,2020-01-01,2026-05-01,X-1,Cy,cy@example.org";
    desk.import(header, &[full], &rules()).await;
    let before = desk.dump().await;
    let report = desk.import(BARE, &["1,Food,Ann,2027-05-31"], &rules()).await;
    assert_eq!(report.unchanged, 1);
    let empty = "permit_number,permit_type,holder_name,expires_on,status,holder_language";
    assert_eq!(desk.import(empty, &["1,Food,Ann,2027-05-31,,"], &rules()).await.unchanged, 1);
    assert_eq!(desk.dump().await, before, "an empty status or language says nothing either");
    let report = desk.import(BARE, &["1,Food,Bob,2028-05-31"], &rules()).await;
    assert_eq!(report.permits_renewed, 1);
    let permit = desk.permit("1").await;
    assert_eq!((permit.holder_name.as_str(), permit.status), ("Bob", PermitStatus::Suspended));
    assert_eq!(permit.holder_email.unwrap().to_string(), "ann@example.org");
    assert_eq!((permit.holder_language.as_str(), permit.contacts.len()), ("fr", 1));
    assert_eq!((permit.site_address.as_deref(), permit.external_id.as_deref()), (Some("1 Road"), Some("X-1")));
    assert_eq!((permit.issued_on, permit.effective_on), (Some(day("2020-01-01")), None), "the new term has no start");
    let emptied = "permit_number,permit_type,holder_name,expires_on,holder_email,site_address,issued_on";
    let report = desk.import(emptied, &["1,Food,Bob,2028-05-31,,,"], &rules()).await;
    assert_eq!(report.permits_updated, 1);
    let permit = desk.permit("1").await;
    assert_eq!((permit.holder_email, permit.site_address, permit.issued_on), (None, None, None));
    assert_eq!(permit.description.as_deref(), Some("Stall"));
}

#[tokio::test]
async fn a_correction_of_the_days_of_a_term_reaches_the_term_too() {
    let desk = Desk::new().await;
    let header = "permit_number,permit_type,holder_name,expires_on,effective_on";
    desk.import(header, &["1,Food,Ann,2027-05-31,2026-05-01"], &rules()).await;
    let report = desk.import(header, &["1,Food,Ann,2027-05-31,2026-04-01"], &rules()).await;
    assert_eq!((report.permits_updated, report.history_terms), (1, 0));
    assert_eq!(desk.terms("1").await, "1,2026-04-01,2027-05-31");
    assert_eq!(desk.ask("SELECT takes_effect_on || ' ' || version FROM permits").await, "2026-04-01 2");
}

#[tokio::test]
async fn contacts_follow_their_columns_and_without_them_are_only_added_to() {
    let desk = Desk::new().await;
    let header = "permit_number,permit_type,holder_name,expires_on,holder_email";
    desk.import(header, &["1,Food,Ann,2027-05-31,ann@example.org"], &rules()).await;
    let by_hand = Contact {
        name: "Eve".to_owned(),
        email: Some("eve@example.org".parse().unwrap()),
        role: "agent".to_owned(),
        language: "es".to_owned(),
    };
    desk.correct("1", |data| data.contacts = vec![by_hand.clone()]).await;
    let two = "1,Food,Ann,2027-05-31,ann@example.org; EVE@example.org; cy@example.org";
    assert_eq!(desk.import(header, &[two], &rules()).await.permits_updated, 1);
    let contacts = desk.permit("1").await.contacts;
    assert_eq!(contacts[0], by_hand);
    assert_eq!((contacts.len(), contacts[1].email.as_ref().unwrap().to_string()), (2, "cy@example.org".to_owned()));
    assert_eq!(desk.import(header, &[two], &rules()).await.unchanged, 1);
    let header = &format!("{header},contact_name,contact_email,contact_role");
    let lines = ["1,Food,Ann,2027-05-31,ann@example.org,Eva,eve@example.org,agent"];
    assert_eq!(desk.import(header, &lines, &rules()).await.permits_updated, 1);
    assert_eq!(desk.permit("1").await.contacts, [Contact { name: "Eva".to_owned(), ..by_hand }]);
    assert_eq!(desk.import(header, &lines, &rules()).await.unchanged, 1);
}

#[tokio::test]
async fn an_archived_permit_is_never_touched_and_a_warning_names_it() {
    let desk = Desk::new().await;
    desk.import(HEADER, &["P-1,Food,Ann,ann@example.org,2026-12-31"], &rules()).await;
    desk.archive("p-1").await;
    let before = desk.dump().await;
    let lines = ["P-2,Food,Bob,,2026-12-31", "P-1,Bar,Cy,,2027-12-31"];
    let report = desk.import(HEADER, &lines, &catch_up()).await;
    assert_eq!((report.permits_created, report.unchanged, report.types_created), (1, 1, 0));
    let [warning] = &report.warnings[..] else { panic!("{:?}", report.warnings) };
    assert_eq!((warning.row, warning.code, warning.value.as_deref()), (Some(3), Reason::ArchivedPermit, Some("P-1")));
    let row = "SELECT string_agg(p::text, ' ') FROM permits p WHERE number_key = 'p-1'";
    assert!(before.contains(&desk.ask(row).await));
}

#[tokio::test]
async fn a_permit_type_is_known_by_its_name_without_regard_to_case_or_by_its_code() {
    let desk = Desk::new().await;
    let mut connection = desk.connect().await;
    let now = moment(TODAY).now;
    create_permit_type(&mut connection, &"eatery".parse().unwrap(), "Food Stand", now).await.unwrap();
    create_permit_type(&mut connection, &"taxi-cab".parse().unwrap(), "Hackney", now).await.unwrap();
    let lines = ["1,FOOD stand,Ann,,2027-01-31", "2,Taxi Cab,Bob,,2027-01-31", "3,eatery,Cy,,2027-01-31"];
    let report = desk.import(HEADER, &lines, &rules()).await;
    assert_eq!(report.types_created, 0);
    let types = desk.rows("SELECT permit_number, permit_type FROM permits ORDER BY 1").await;
    assert_eq!(types, "1,eatery 2,taxi-cab 3,eatery");
    let lines = ["4,Night  Market,Di,,2027-01-31", "5,NIGHT market,Di,,2027-01-31"];
    let report = desk.import(HEADER, &lines, &rules()).await;
    assert_eq!(report.types_created, 1);
    assert_eq!(desk.ask("SELECT count(*) FROM schedule_steps WHERE permit_type = 'night-market'").await, "10");
}

#[tokio::test]
async fn permit_types_named_in_another_script_are_told_apart_and_known_again() {
    let desk = Desk::new().await;
    let lines = [
        "1,Ψησταριά,Ann,,2027-01-31",
        "2,Ζαχαροπλαστείο,Bob,,2027-01-31",
        "3,Bar-Café,Cy,,2027-01-31",
        "4,Bar-Cafè,Di,,2027-01-31",
    ];
    assert_eq!(desk.import(HEADER, &lines, &rules()).await.types_created, 4);
    let names =
        "SELECT p.permit_number, t.name FROM permits p JOIN permit_types t ON t.code = p.permit_type ORDER BY 1";
    assert_eq!(desk.rows(names).await, "1,Ψησταριά 2,Ζαχαροπλαστείο 3,Bar-Café 4,Bar-Cafè");
    let lines = ["5,ΨΗΣΤΑΡΙΆ,Ann,,2027-01-31", "6,bar café,Bob,,2027-01-31"];
    assert_eq!(desk.import(HEADER, &lines, &rules()).await.types_created, 0);
    let known = "SELECT p.permit_number, t.name FROM permits p JOIN permit_types t ON t.code = p.permit_type
                 WHERE p.permit_number IN ('5', '6') ORDER BY 1";
    assert_eq!(desk.rows(known).await, "5,Ψησταριά 6,Bar-Café");
}

#[tokio::test]
async fn a_renewal_by_hand_is_not_undone_by_an_older_file() {
    let desk = Desk::new().await;
    let lines = ["1,Food,Ann,ann@example.org,2026-06-20"];
    desk.import(HEADER, &lines, &rules()).await;
    let id = desk.id("1").await;
    let rules_of_change = ChangeRules::at(moment(TODAY), None);
    changes::renew(&mut desk.connect().await, id, None, day("2027-06-20"), None, &rules_of_change).await.unwrap();
    let before = desk.dump().await;
    assert_eq!(desk.import(HEADER, &lines, &rules()).await.unchanged, 1);
    assert_eq!(desk.dump().await, before);
}
