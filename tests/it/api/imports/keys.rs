//! A key with which an import is asked for again.

use futures_util::future::join;

use super::{GOOD, HEADER, count, with_key};
use crate::support::api::TestApi;

#[tokio::test]
async fn a_key_imports_once_and_belongs_to_one_file_with_its_options() {
    let api = TestApi::open().await;
    let first = with_key(&api, "k", "", GOOD).await;
    assert_eq!((first.status.as_u16(), first.header("idempotency-replayed")), (201, ""), "{first:?}");
    let again = with_key(&api, "k", "", GOOD).await;
    assert_eq!((again.status.as_u16(), again.header("idempotency-replayed")), (201, "true"));
    assert_eq!((&again.body, again.header("location")), (&first.body, first.header("location")));
    assert_eq!(count(&api, "imports").await, 1);
    for (query, body) in [("?catch_up=true", GOOD), ("", &GOOD.replace("I-2", "I-3"))] {
        let other = with_key(&api, "k", query, body).await;
        assert_eq!((other.status.as_u16(), other.kind()), (422, "key-reused"), "{query}");
    }
    let refused = with_key(&api, "r", "", HEADER).await;
    assert_eq!(refused.status, 422);
    let again = with_key(&api, "r", "", HEADER).await;
    assert_eq!((again.status.as_u16(), again.header("idempotency-replayed")), (422, "true"), "a refusal is kept too");
    assert_eq!(with_key(&api, &"k".repeat(256), "", GOOD).await.kind(), "malformed");
    api.close().await;
}

#[tokio::test]
async fn two_at_once_with_one_key_are_one_import() {
    let api = TestApi::open().await;
    let (first, second) = join(with_key(&api, "k", "", GOOD), with_key(&api, "k", "", GOOD)).await;
    let mut replayed = [first.header("idempotency-replayed"), second.header("idempotency-replayed")];
    replayed.sort_unstable();
    assert_eq!((first.status.as_u16(), second.status.as_u16(), replayed), (201, 201, ["", "true"]));
    assert_eq!((first.text("id"), count(&api, "imports").await), (second.text("id"), 1));
    api.close().await;
}
