//! A large file over HTTP, with the memory of the process and the API beside it. It runs alone, by
//! `cargo test --test it large_import -- --ignored --nocapture`.

use std::time::Duration;

use permit_notifier::domain::phase::Phase;
use reqwest::{Body, Client, StatusCode};
use serde_json::Value;

use crate::support::program::Desk;

const ROWS: u32 = 200_000;
/// As the design wants it, in kB.
const MEMORY_MAX: u64 = 150 * 1024;

/// The file, a thousand rows at a time.
fn rows() -> Body {
    let header = "permit_number,permit_type,holder_name,holder_email,site_address,expires_on\n".to_owned();
    let batches = (0..ROWS / 1000).map(|batch| {
        let numbers = batch * 1000..(batch + 1) * 1000;
        let line =
            |i: u32| format!("L-{i},Food,Holder {i},h{i}@example.org,{i} Long Street,2030-{:02}-28\n", 1 + i % 12);
        numbers.map(line).collect::<String>()
    });
    let pieces = std::iter::once(header).chain(batches).map(Ok::<_, std::io::Error>);
    Body::wrap_stream(futures_util::stream::iter(pieces))
}

fn peak(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "wants the machine for itself"]
async fn two_hundred_thousand_rows_stay_small_while_the_api_answers() {
    let desk = Desk::new().with("LOG_FORMAT", "json").with("API_RATE_PER_MINUTE", "0");
    let mut serve = desk.start(&["serve"]);
    let line = serve.wait_for("Listening on http://");
    let url = line.split_whitespace().last().expect("an address").to_owned();
    let made = desk.run(&["token", "create", "load", "--scope", "write"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let token = made.out.trim().to_owned();
    let client = Client::builder().no_proxy().timeout(Duration::from_mins(15)).build().expect("a client");
    let upload = client.post(format!("{url}api/v1/imports")).bearer_auth(&token).body(rows()).send();
    let mut upload = std::pin::pin!(upload);
    let mut answers = 0;
    let answer = loop {
        let beside =
            client.get(format!("{url}api/v1/permits?limit=1&phase={}", Phase::Active)).bearer_auth(&token).send();
        tokio::select! {
            answer = &mut upload => break answer.expect("an answer"),
            beside = beside => {
                assert_eq!(beside.expect("an answer").status(), StatusCode::OK);
                answers += 1;
            }
        }
    };
    let report: Value = answer.json().await.expect("the report");
    assert_eq!(report["permits_created"], ROWS, "{report}");
    assert!(answers > 0, "the API answers meanwhile");
    let after_import = peak(serve.pid().as_raw());
    let mut export =
        client.get(format!("{url}api/v1/permits/export")).bearer_auth(&token).send().await.expect("a file");
    let mut lines = 0;
    while let Some(piece) = export.chunk().await.expect("the whole file") {
        lines += piece.split(|byte| *byte == b'\n').count() - 1;
    }
    assert_eq!(lines, ROWS as usize + 1);
    let after_export = peak(serve.pid().as_raw());
    println!("{ROWS} rows: peak {after_import} kB, {answers} answers meanwhile; with an export {after_export} kB");
    assert!(after_export < MEMORY_MAX, "{after_export} kB");
}
