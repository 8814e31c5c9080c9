//! A permit number belongs to one permit, for ever.

use permit_notifier::store::StoreError;
use uuid::Uuid;

use crate::support::office::TestOffice;

async fn taken_by(office: &TestOffice, number: &str) -> Option<Uuid> {
    match office.try_create(|p| p.permit_number = number.parse().expect("a number")).await {
        Err(StoreError::NumberTaken { number: named, by }) => {
            assert_eq!(named, number);
            Some(by)
        }
        Err(error) => panic!("{error}"),
        Ok(_) => None,
    }
}

#[tokio::test]
async fn a_number_taken_whatever_its_case_and_spaces_names_who_has_it() {
    let office = TestOffice::new().await;
    let permit = office.create_permit(|p| p.permit_number = "Ab 007".parse().expect("a number")).await;
    for number in ["Ab 007", "ab 007", "AB007", "a b 0 0 7"] {
        assert_eq!(taken_by(&office, number).await, Some(permit), "{number}");
    }
    assert_eq!(taken_by(&office, "ab 07").await, None);
    office.close().await;
}

#[tokio::test]
async fn the_number_of_an_archived_permit_stays_taken() {
    let office = TestOffice::new().await;
    let permit = office.create_permit(|p| p.permit_number = "007".parse().expect("a number")).await;
    office.archive(permit).await;
    assert_eq!(taken_by(&office, "007").await, Some(permit));
    office.close().await;
}

#[tokio::test]
async fn a_permit_cannot_be_given_the_number_of_another_one() {
    let office = TestOffice::new().await;
    let first = office.create_permit(|p| p.permit_number = "A-1".parse().expect("a number")).await;
    let second = office.create_permit(|p| p.permit_number = "A-2".parse().expect("a number")).await;
    let before = office.dump().await;
    let refused = office.try_correct(second, None, |p| p.permit_number = "a-1".parse().expect("a number")).await;
    assert!(matches!(refused, Err(StoreError::NumberTaken { by, .. }) if by == first), "{refused:?}");
    assert_eq!(office.dump().await, before);
    let kept = office.correct(first, |p| p.permit_number = "a-1".parse().expect("a number")).await;
    assert_eq!(kept.data.permit_number.as_str(), "a-1");
    office.close().await;
}
