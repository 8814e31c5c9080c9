//! What a connection can do to an import.

use std::io::Write as _;
use std::time::Duration;

use permit_notifier::web::api::UploadLimits;

use super::{GOOD, HEADER, count, import, until_nothing_is_left, with_key};
use crate::support::api::{Options, TestApi};

#[tokio::test]
async fn a_file_that_is_too_large_is_refused_with_and_without_a_length() {
    let limits = UploadLimits { bytes: 2000, ..UploadLimits::default() };
    let api = TestApi::with(Options { uploads: limits, ..Options::default() }).await;
    let line = "1,Food,Ann,,2028-01-31\n";
    let text = format!("{HEADER}\n{}", line.repeat(100));
    let refused = import(&api, "", text.clone()).await;
    assert_eq!((refused.status.as_u16(), refused.kind()), (413, "too-large"));
    let pieces = text.into_bytes().chunks(100).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect::<Vec<_>>();
    let refused = import(&api, "", reqwest::Body::wrap_stream(futures_util::stream::iter(pieces))).await;
    assert_eq!((refused.status.as_u16(), refused.kind()), (413, "too-large"));
    let fits = format!("{HEADER}\n{}", line.repeat(50));
    assert_eq!(import(&api, "", fits).await.status, 201);
    until_nothing_is_left(&api).await;
    api.close().await;
}

#[tokio::test]
async fn a_sender_who_falls_silent_is_given_up() {
    let limits = UploadLimits { silence: Duration::from_millis(200), ..UploadLimits::default() };
    let api = TestApi::with(Options { uploads: limits, ..Options::default() }).await;
    let first = futures_util::stream::iter([Ok::<_, std::io::Error>(format!("{HEADER}\n"))]);
    let silent = futures_util::StreamExt::chain(first, futures_util::stream::pending());
    let refused = import(&api, "", reqwest::Body::wrap_stream(silent)).await;
    assert_eq!((refused.status.as_u16(), refused.kind()), (400, "malformed"), "{refused:?}");
    until_nothing_is_left(&api).await;
    api.close().await;
}

#[tokio::test]
async fn a_sender_who_dribbles_does_not_keep_a_place_from_others_for_ever() {
    let limits = UploadLimits { whole: Duration::from_millis(500), ..UploadLimits::default() };
    let api = TestApi::with(Options { uploads: limits, ..Options::default() }).await;
    let drops = futures_util::stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Some((Ok::<_, std::io::Error>("\n"), ()))
    });
    let dribbled = import(&api, "", reqwest::Body::wrap_stream(drops));
    let refused = tokio::time::timeout(Duration::from_secs(20), dribbled).await.expect("an answer");
    assert_eq!((refused.status.as_u16(), refused.kind()), (400, "malformed"), "{refused:?}");
    assert_eq!(import(&api, "", GOOD).await.status, 201);
    api.close().await;
}

/// Temporary files without a name and of this length that this process holds.
fn nameless_files(length: u64) -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten().map(|entry| entry.path());
    let nameless = open.filter(|fd| {
        let target = std::fs::read_link(fd).unwrap_or_default();
        target.starts_with(std::env::temp_dir()) && target.to_string_lossy().ends_with("(deleted)")
    });
    nameless.filter(|fd| std::fs::metadata(fd).is_ok_and(|file| file.len() == length)).count()
}

#[tokio::test]
async fn who_hangs_up_in_the_middle_leaves_nothing() {
    let api = TestApi::open().await;
    let address = api.url.strip_prefix("http://").unwrap().to_owned();
    let half = format!("{GOOD}{}", " ".repeat(4321 - GOOD.len()));
    let mut streams = Vec::new();
    for key in ["", "idempotency-key: k\r\n"] {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        let head = format!("host: x\r\nauthorization: Bearer {}\r\n{key}content-length: 9000", api.token);
        write!(stream, "POST /api/v1/imports HTTP/1.1\r\n{head}\r\n\r\n{half}").unwrap();
        streams.push(stream);
    }
    let until_held = async |wanted: usize| {
        for _ in 0..1500 {
            if nameless_files(4321) == wanted {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{} temporary files, not {wanted}", nameless_files(4321));
    };
    until_held(2).await;
    drop(streams);
    until_held(0).await;
    until_nothing_is_left(&api).await;
    assert_eq!(count(&api, "imports").await, 0);
    assert_eq!(import(&api, "", GOOD).await.status, 201, "places for imports are free");
    api.close().await;
}

#[tokio::test]
async fn without_its_database_an_import_is_put_off() {
    let api = TestApi::open().await;
    // As others do who lock what an import needs, for longer than it waits.
    let limit = "ALTER TABLE imports ADD CONSTRAINT away CHECK (false) NOT VALID";
    api.office.sql(limit).await;
    let failed = import(&api, "", GOOD).await;
    assert_eq!((failed.status.as_u16(), failed.kind()), (500, "internal-error"), "{failed:?}");
    assert!(!failed.body.to_string().contains("away"), "nothing of the inside is shown");
    assert_eq!(count(&api, "permits").await, 0);
    api.office.sql("ALTER TABLE imports DROP CONSTRAINT away").await;
    api.office
        .sql(
            "CREATE FUNCTION busy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                        RAISE EXCEPTION 'busy' USING ERRCODE = '55P03'; END $$;
                    CREATE TRIGGER busy BEFORE INSERT ON imports FOR EACH ROW EXECUTE FUNCTION busy()",
        )
        .await;
    let busy = with_key(&api, "k", "", GOOD).await;
    assert_eq!((busy.status.as_u16(), busy.kind(), busy.header("retry-after")), (503, "unavailable", "5"), "{busy:?}");
    api.office.sql("DROP TRIGGER busy ON imports").await;
    let done = with_key(&api, "k", "", GOOD).await;
    assert_eq!((done.status.as_u16(), done.header("idempotency-replayed")), (201, ""));
    api.close().await;
}
