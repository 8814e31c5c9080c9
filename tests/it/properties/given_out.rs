//! Texts that we give out and get back: whatever somebody sends for a token or a cursor, it is what was given out, or it
//! is refused.

use permit_notifier::auth::Token;
use proptest::prelude::*;
use reqwest::Method;
use serde::{Deserialize, Serialize};

use super::check;
use crate::support::api::{TestApi, send};

/// What was done to a text that had been given out.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Change {
    /// The character at this place, counted round, became another.
    Replace(usize, char),
    /// So many characters were cut off the end.
    Cut(usize),
    /// Something was added at this place.
    Insert(usize, String),
    /// Something else altogether.
    Whole(String),
}

fn changes() -> impl Strategy<Value = Change> {
    let letters = prop_oneof![proptest::char::range('0', 'z'), any::<char>()];
    prop_oneof![
        4 => (any::<usize>(), letters).prop_map(|(place, c)| Change::Replace(place, c)),
        1 => (1_usize..50).prop_map(Change::Cut),
        1 => (any::<usize>(), "\\PC{1,5}").prop_map(|(place, text)| Change::Insert(place, text)),
        1 => "\\PC{0,80}".prop_map(Change::Whole),
        1 => "pnt_[0-9A-Za-z]{38}".prop_map(Change::Whole),
    ]
}

fn apply(change: &Change, text: &str) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    match change {
        Change::Replace(place, c) => {
            let place = place % characters.len();
            characters[place] = *c;
        }
        Change::Cut(count) => characters.truncate(characters.len().saturating_sub(*count)),
        Change::Insert(place, more) => {
            let place = place % (characters.len() + 1);
            characters.splice(place..place, more.chars());
        }
        Change::Whole(text) => return text.clone(),
    }
    characters.into_iter().collect()
}

/// The polynomial of CRC-32 tells every change of one character; whole texts by chance in one of four thousand million.
#[test]
fn a_token_that_was_changed_is_refused_without_a_look_at_the_database() {
    let token = Token::generate().expect("random numbers");
    check("tokens", 2000, changes(), |change| {
        let text = apply(change, token.reveal());
        let is_ours = Token::parse(&text).is_some();
        prop_assert_eq!(is_ours, text == token.reveal(), "{} was taken for a token", text);
        Ok(())
    });
}

/// Many requests over one connection would only be slow; each case here is one.
#[test]
fn a_cursor_that_was_changed_is_refused_or_begins_a_page_of_its_list() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let api = runtime.block_on(async {
        let api = TestApi::open().await;
        for number in 0..3 {
            api.create_permit(&format!("F-{number}")).await;
        }
        api
    });
    let cursor = runtime.block_on(api.get("/permits?limit=1")).text("next_cursor").to_owned();
    check("cursors", 150, changes(), |change| {
        let text = apply(change, &cursor);
        let request = api.request(Method::GET, "/permits").query(&[("limit", "1"), ("cursor", &text)]);
        let answered = runtime.block_on(send(request));
        match answered.status.as_u16() {
            200 => prop_assert!(answered.column("permit_number").len() <= 1),
            400 => prop_assert_eq!(answered.kind(), "malformed"),
            other => prop_assert!(false, "{} for {}", other, text),
        }
        Ok(())
    });
    runtime.block_on(api.close());
}
