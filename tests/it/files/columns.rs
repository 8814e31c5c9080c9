//! Columns: which field each one carries.

use permit_notifier::domain::permit::PermitStatus;
use permit_notifier::files::{self, FileFault, ImportOptions, Reason};

use super::{HEADER, day, errors, options, plain, read, refused};

#[test]
fn headers_are_matched_without_case_spaces_and_punctuation() {
    let text = "Permit  Number;PERMIT-TYPE;Holder Name;E-Mail;Expiration_Date\n1;Food;Ann;ann@example.org;2026-01-01\n";
    let (_, terms) = read(text, &plain()).unwrap();
    assert_eq!(terms[0].holder_email.as_ref().unwrap().to_string(), "ann@example.org");
    assert_eq!(terms[0].permit_type.as_str(), "food");
}

#[test]
fn the_names_of_blds_are_known() {
    let text = "PermitNum,Description,IssuedDate,StatusCurrent,OriginalAddress1,OriginalCity,OriginalZip,PermitType,\
                ExpiresDate,Owner\n1,Porch,2025-01-01,Issued,1 Elm St,Springfield,62701,Building,2026-01-01,Ann\n";
    let (reading, terms) = read(text, &plain()).unwrap();
    assert!(reading.warnings.is_empty(), "{:?}", reading.warnings);
    assert_eq!(terms[0].site_address.as_deref(), Some("1 Elm St, Springfield, 62701"));
    assert_eq!(terms[0].description.as_deref(), Some("Porch"));
    assert_eq!(terms[0].issued_on, Some(day("2025-01-01")));
    // Who works on it is asked last.
    let text = "PermitNum,PermitType,ExpiresDate,ContractorCompanyName,ContractorEmail\n1,Building,2026-01-01,Acme,a@b.example\n";
    let (_, terms) = read(text, &plain()).unwrap();
    assert_eq!((terms[0].holder_name.as_str(), terms[0].holder_email.is_some()), ("Acme", true));
    let text = text.replace("ExpiresDate", "ExpiresDate,ApplicantName").replace("2026-01-01", "2026-01-01,Ann");
    assert_eq!(read(text, &plain()).unwrap().1[0].holder_name, "Ann");
}

#[test]
fn a_contact_column_is_the_holders_only_where_the_holder_has_no_other() {
    let text = "permit_number,permit_type,holder_name,holder_email,contact_name,contact_email,contact_role,expires_on\n\
                1,Food,Ann,ann@example.org,Bob,bob@example.org; ANN@example.org,agent,2026-01-01\n\
                2,Food,Ann,,Cy,,,2026-01-01\n";
    let (_, terms) = read(text, &plain()).unwrap();
    let contacts = &terms[0].contacts;
    assert_eq!(contacts.len(), 1, "the holder's own address is no contact: {contacts:?}");
    assert_eq!((contacts[0].name.as_str(), contacts[0].role.as_str()), ("Bob", "agent"));
    assert_eq!((terms[1].contacts[0].name.as_str(), terms[1].contacts[0].email.as_ref()), ("Cy", None));
    let text = "permit_number,permit_type,holder_name,contact_email,expires_on\n1,Food,Ann,a@example.org,2026-01-01\n";
    assert!(read(text, &plain()).unwrap().1[0].holder_email.is_some());
    // A name alone is nobody to write to.
    let text =
        "permit_number,permit_type,holder_name,contact_name,contact_role,expires_on\n1,Food,Ann,Bob,agent,2026-01-01\n";
    let (reading, terms) = read(text, &plain()).unwrap();
    assert!(terms[0].contacts.is_empty(), "{terms:?}");
    assert_eq!(reading.warnings[0].detail, "nothing is read from the columns \"contact_name\", \"contact_role\"");
}

#[test]
fn map_chooses_the_column_and_missing_fields_are_named_all_at_once() {
    let text = "A,B,C,D\n1,Food,Ann,2026-01-01\n";
    let FileFault::MissingFields { fields, .. } = refused(text) else { panic!() };
    assert_eq!(fields.len(), 4);
    let sentence = refused(text).to_string();
    assert!(sentence.contains("permit_number, permit_type, holder_name, expires_on"), "{sentence}");
    assert!(sentence.contains("--map FIELD=COLUMN") && sentence.ends_with("\"A\", \"B\", \"C\", \"D\""), "{sentence}");
    let map = ["permit_number=a", "permit-type=B", "Holder Name=C", "expires_on=D"];
    assert_eq!(read(text, &options(&map, &[], None, false)).unwrap().1.len(), 1);
    let typed = ImportOptions::parse(
        &["permit_number=A", "holder_name=C", "expires_on=D"],
        &[""; 0],
        Some("Taxi"),
        None,
        false,
    );
    let (reading, terms) = read(text, &typed.unwrap()).unwrap();
    assert_eq!(terms[0].permit_type_name, "Taxi");
    assert_eq!(reading.warnings[0].detail, "nothing is read from the column \"B\"");
}

#[test]
fn a_file_of_one_column_is_refused_with_its_column() {
    let sentence = refused("permit number\n1\n2\n").to_string();
    assert!(
        sentence.contains("permit_type, holder_name, expires_on") && sentence.ends_with("\"permit number\""),
        "{sentence}"
    );
}

#[test]
fn a_map_to_a_column_that_the_file_lacks_lists_those_it_has() {
    let error = read(format!("{HEADER}1,Food,Ann,,2026-01-01\n"), &options(&["description=Notes"], &[], None, false));
    let sentence = error.unwrap_err().fault.to_string();
    let columns =
        "its columns are \"permit_number\", \"permit_type\", \"holder_name\", \"holder_email\", \"expires_on\"";
    assert!(sentence.contains("\"Notes\"") && sentence.ends_with(columns), "{sentence}");
}

#[test]
fn a_header_that_stands_twice_matters_only_where_it_is_used() {
    let text =
        "permit_number,permit_type,holder_name,Expires On,expires_on,note,note\n1,Food,Ann,2026-01-01,2026-01-01,,\n";
    let FileFault::DuplicateColumn { places, .. } = refused(text) else { panic!() };
    assert_eq!(places, [4, 5]);
    let sentence = refused(text).to_string();
    assert!(sentence.contains("column 4 \"Expires On\", column 5 \"expires_on\" have the same name"), "{sentence}");
    let (reading, _) = read(text, &options(&["expires_on=Expires On"], &[], None, false)).unwrap();
    assert_eq!(reading.warnings[0].code, Reason::UnusedColumns);
    assert!(read(text, &options(&["description=note"], &[], None, false)).is_err());
}

#[test]
fn columns_without_a_name_that_hold_something_are_told() {
    let text = "permit_number,,permit_type,holder_name,expires_on,,\n1,,Food,Ann,2026-01-01,,\n\
                2,a,Food,Ann,2026-01-01,,\n3,,Food,Ann,never,b,\n";
    let (reading, _) = read(text, &plain()).unwrap();
    let told: Vec<_> = reading.warnings.iter().map(|warning| (warning.code, warning.detail.as_str())).collect();
    let detail = "2 rows have cells in columns that have no name; they are not read: column 2, 6";
    assert_eq!(told, [(Reason::BesideTable, detail)]);
}

#[test]
fn types_that_differ_in_signs_alone_are_told() {
    let text = "permit_number,permit_type,holder_name,expires_on\n1,C,Ann,2026-01-01\n2,C++,Ann,2026-01-01\n\
                3,food truck,Ann,2026-01-01\n4,Food-Truck,Ann,2026-01-01\n5,C++,Ann,2026-01-01\n";
    let (reading, _) = read(text, &plain()).unwrap();
    let told: Vec<_> = reading.warnings.iter().map(|warning| (warning.code, warning.detail.as_str())).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].0 == Reason::TypesAlike && told[0].1.contains("one type: \"C\" and \"C++\";"), "{told:?}");
}

#[test]
fn the_columns_of_our_own_export_are_known_or_passed_over() {
    let fields = files::Field::ALL.iter().map(|field| field.as_str()).collect::<Vec<_>>().join(",");
    let text = format!(
        "id,{fields},phase,version,created_at,updated_at,archived_at,custom\n\
        0,1,Food,active,Ann,a@x.org,pt-BR,1 Elm St,Text,2025-01-01,2025-01-02,2026-01-01,E-1,b@x.org,Bob,agent,\
        \"[{{\"\"name\"\":\"\"Cy\"\",\"\"email\"\":null,\"\"role\"\":\"\"tenant\"\",\"\"language\"\":\"\"es\"\"}}]\",a,b,c,d,e,{{}}\n"
    );
    let (reading, terms) = read(text, &plain()).unwrap();
    assert_eq!((reading.rejected, reading.warnings.len()), (0, 0), "{reading:?}");
    assert_eq!(reading.mapped.len(), files::Field::ALL.len());
    assert_eq!(terms[0].external_id.as_deref(), Some("E-1"));
    assert_eq!(terms[0].holder_language.as_deref(), Some("pt-BR"));
    let contacts: Vec<_> = terms[0].contacts.iter().map(|one| (one.role.as_str(), one.language.as_deref())).collect();
    assert_eq!(contacts, [("tenant", Some("es")), ("agent", None)]);
}

#[test]
fn of_other_files_columns_of_the_same_names_are_said_to_be_passed_over() {
    let text = "permit_number,permit_type,holder_name,expires_on,version,custom\n1,Food,Ann,2026-01-31,7,x\n";
    let (reading, _) = read(text, &plain()).unwrap();
    assert_eq!(reading.warnings[0].detail, "nothing is read from the columns \"version\", \"custom\"");
}

#[test]
fn what_others_call_contacts_is_left_alone() {
    let text = "permit_number,permit_type,holder_name,expires_on,contacts\n1,Food,Ann,2026-01-31,ask Bob\n";
    let (reading, terms) = read(text, &plain()).unwrap();
    assert_eq!((reading.rejected, reading.warnings[0].code), (0, Reason::UnusedColumns));
    assert!(terms[0].contacts.is_empty());
    let (reading, _) = read(text, &options(&["contacts=contacts"], &[], None, false)).unwrap();
    assert_eq!((reading.rejected, reading.errors[0].code), (1, Reason::InvalidContacts));
}

#[test]
fn the_apostrophe_before_a_formula_is_not_a_part_of_the_cell() {
    let text = "permit_number,permit_type,holder_name,expires_on\n\
                '-1,Food,'=1+1,2026-01-31\n'2,Food,'Ann',2026-01-31\n3,Food,''@b,2026-01-31\n";
    let (_, terms) = read(text, &plain()).unwrap();
    let names: Vec<_> = terms.iter().map(|term| (term.permit_number.as_str(), term.holder_name.as_str())).collect();
    assert_eq!(names, [("-1", "=1+1"), ("'2", "'Ann'"), ("3", "'@b")]);
}

#[test]
fn status_words_that_are_explained_need_a_column() {
    let text = "permit_number,permit_type,holder_name,expires_on,State now\n1,Food,Ann,2026-01-31,ruhend\n";
    let explained = options(&[], &["ruhend=suspended"], None, false);
    let sentence = read(text, &explained).unwrap_err().fault.to_string();
    let parts = ["no column was recognised for status; name it with --map status=COLUMN;", "\"State now\""];
    assert!(parts.iter().all(|part| sentence.contains(part)), "{sentence}");
    assert!(read(text, &explained.leaving_out(&["status"]).unwrap()).is_ok(), "somebody says that it has none");
    let (_, terms) = read(text, &options(&["status=State now"], &["ruhend=suspended"], None, false)).unwrap();
    assert_eq!(terms[0].status, PermitStatus::Suspended);
}

#[test]
fn a_column_that_was_chosen_for_another_field_is_said_to_be_taken() {
    let text = "permit_number,permit_type,holder_name,expires_on\n1,Food,Ann,2026-01-31\n";
    let error = read(text, &options(&["issued_on=expires_on"], &[], None, false)).unwrap_err();
    let sentence = error.fault.to_string();
    let said = "no column was recognised for expires_on; \"expires_on\" is taken by --map for issued_on; \
                name it with --map expires_on=COLUMN";
    assert!(sentence.starts_with(said), "{sentence}");
}

#[test]
fn the_name_of_a_type_is_no_longer_than_by_hand() {
    let row = |name: &str| format!("permit_number,permit_type,holder_name,expires_on\n1,{name},Ann,2026-01-31\n");
    let (reading, _) = read(row(&"é".repeat(201)), &plain()).unwrap();
    assert_eq!(errors(&reading), [(2, "permit_type", Reason::InvalidPermitType)]);
    assert_eq!(read(row(&"é".repeat(200)), &plain()).unwrap().0.rejected, 0);
}
