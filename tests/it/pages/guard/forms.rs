//! Forms that are not ours, or not as a browser sends them: refused, and nothing is changed; or answered clearly.

use reqwest::multipart;

use super::sent::{URLENCODED, encoded, faults_of, found, is_open, keep_signed_in, page_of, send_bytes, with_proof};
use crate::support::{
    filled::{Filled, plainly},
    html::Form,
    pages::Page,
};

/// The fields without the proof, or with this one.
fn with(fields: &[(String, String)], proof: Option<&str>) -> Vec<(String, String)> {
    let others = fields.iter().filter(|(name, _)| name != "csrf").cloned();
    others.chain(proof.map(|proof| ("csrf".to_owned(), proof.to_owned()))).collect()
}

fn parts(fields: &[(String, String)]) -> multipart::Form {
    fields.iter().fold(multipart::Form::new(), |form, (name, value)| form.text(name.clone(), value.clone()))
}

async fn upload(filled: &Filled, action: &str, form: multipart::Form) -> Page {
    let request = filled.admin.client.post(format!("{}{action}", filled.admin.url)).multipart(form);
    page_of(request.send().await.unwrap()).await
}

#[tokio::test]
async fn a_form_without_the_proof_that_it_is_ours_is_refused_and_changes_nothing() {
    let filled = Filled::open(plainly).await;
    let forms = found(&filled).await;
    let before = filled.api.office.dump().await;
    let mut faults = Vec::new();
    let posted = forms.iter().filter(|(form, _)| form.method == "POST");
    let mut count = 0;
    for (form, button) in posted {
        count += 1;
        let fields = form.filled_in(button);
        let theirs = filled.clerk.csrf.as_str();
        for proof in [None, Some(""), Some("0000"), Some(theirs)] {
            let fields = with(&fields, proof);
            let file = multipart::Part::bytes(b"a,b\n1,2\n".to_vec()).file_name("x.csv");
            let as_parts = upload(&filled, &button.action, parts(&fields).part("file", file)).await;
            if ![400, 403, 415].contains(&as_parts.status.as_u16()) {
                faults.push(format!("{} as parts with {proof:?}: {}", button.action, as_parts.status));
            }
            if form.is_upload {
                continue;
            }
            let page = send_bytes(&filled.admin, &button.action, URLENCODED, encoded(&fields)).await;
            if page.status != 403 {
                faults.push(format!("{} with {proof:?}: {}", button.action, page.status));
            }
        }
    }
    assert!(count > 40, "{count} forms");
    assert!(faults.is_empty(), "{faults:#?}");
    assert_eq!(filled.api.office.dump().await, before);
    filled.api.close().await;
}

/// Values that no browser sends, or no person means, of each field.
const STRANGE: [&str; 7] =
    ["a%00b", "%FF%FE", "%zz%", "%0D%0Ax-evil:%201", "%E2%80%AE", "-99999999999999999999", "0000-99-99"];

/// Each way to send a form otherwise than it is filled in, with what must become of it if that is certain.
fn variants(fields: &[(String, String)]) -> Vec<(String, &'static str, Vec<u8>, Option<u16>)> {
    let whole = encoded(fields);
    let twice = [whole.clone(), whole.clone()].join(&b'&');
    let mut large = whole.clone();
    large.extend_from_slice(format!("&more={}", "x".repeat(300_000)).as_bytes());
    let many = [whole.clone(), "&a=b".repeat(2001).into_bytes()].concat();
    let mut variants = vec![
        ("as text".to_owned(), "text/plain", whole.clone(), Some(415)),
        ("as JSON".to_owned(), "application/json", b"{}".to_vec(), Some(415)),
        ("as parts that are none".to_owned(), "multipart/form-data", whole, None),
        ("too large".to_owned(), URLENCODED, large, Some(413)),
        ("with too many fields".to_owned(), URLENCODED, many, Some(413)),
        ("twice".to_owned(), URLENCODED, twice, None),
    ];
    let names = fields.iter().map(|(name, _)| name).filter(|name| *name != "csrf");
    for (at, name) in names.enumerate() {
        // The worst of them in each field, the others in turn.
        for strange in [STRANGE[0], STRANGE[1 + at % (STRANGE.len() - 1)]] {
            let rest: Vec<_> = fields.iter().filter(|(other, _)| other != name).cloned().collect();
            let encoded_name: String = url::form_urlencoded::byte_serialize(name.as_bytes()).collect();
            let body = [encoded(&rest), format!("&{encoded_name}={strange}").into_bytes()].concat();
            variants.push((format!("{name}={strange}"), URLENCODED, body, None));
        }
    }
    variants
}

#[tokio::test]
async fn a_form_that_is_not_as_a_browser_sends_it_gets_a_clear_answer() {
    let mut filled = Filled::open(plainly).await;
    let mut faults = Vec::new();
    for (form, button) in found(&filled).await {
        let fields = form.filled_in(&button);
        if form.method == "GET" {
            faults.extend(ask_strangely(&filled, &form).await);
            continue;
        }
        for (how, kind, body, expected) in variants(&with_proof(&filled.admin, &form, fields.clone()).await) {
            if form.is_upload && expected == Some(413) {
                continue;
            }
            let page = send_bytes(&filled.admin, &button.action, kind, body).await;
            let mut wrong = faults_of(&page);
            if expected.is_some_and(|expected| page.status != expected) {
                wrong.push(page.status.to_string());
            }
            faults.extend(wrong.into_iter().map(|fault| format!("{} {how}: {fault}", button.action)));
            // The rest of this form would be refused for the proof alone.
            if !is_open(&form) && keep_signed_in(&mut filled, &page).await {
                break;
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    filled.api.close().await;
}

/// The same of a form that only asks.
async fn ask_strangely(filled: &Filled, form: &Form) -> Vec<String> {
    let mut faults = Vec::new();
    for field in &form.fields {
        for strange in STRANGE {
            let address = format!("{}?{}={strange}", form.action, field.name);
            let page = filled.admin.get(&address).await;
            faults.extend(faults_of(&page).into_iter().map(|fault| format!("{address}: {fault}")));
        }
    }
    let twice = format!("{}?a=1&a=2&done=x&done=y&next=a&next=b", form.action);
    let page = filled.admin.get(&twice).await;
    faults.extend(faults_of(&page).into_iter().map(|fault| format!("{twice}: {fault}")));
    faults
}

/// Where somebody would like forms to lead.
const ELSEWHERE: [&str; 9] = [
    "https://evil.example/",
    "//evil.example/",
    "/\\evil.example/",
    "\\\\evil.example",
    "/problems\r\nx-evil: 1",
    "/notices/\t/evil.example",
    "/problems/../..//evil.example",
    "javascript:alert(1)",
    "/problems?kind=held#//evil.example",
];

#[tokio::test]
async fn no_form_leads_to_another_host() {
    let mut filled = Filled::open(plainly).await;
    let mut faults = Vec::new();
    let mut redirects = 0;
    for (form, button) in found(&filled).await {
        let leads = |name: &str| matches!(name, "back" | "next" | "query" | "field");
        if form.method == "GET" || !form.fields.iter().any(|field| leads(&field.name)) {
            continue;
        }
        for elsewhere in ELSEWHERE {
            let fields = with_proof(&filled.admin, &form, form.filled_in(&button)).await;
            let fields = fields
                .into_iter()
                .map(|(name, value)| if leads(&name) { (name, elsewhere.to_owned()) } else { (name, value) });
            let right = |(name, value): (String, String)| match (form.action.as_str(), name.as_str()) {
                ("/sign-in", "email") => (name, "clerk@office.example".to_owned()),
                ("/sign-in", "password") => (name, crate::support::pages::PASSWORD.to_owned()),
                _ => (name, value),
            };
            let fields: Vec<_> = fields.map(right).collect();
            let page = send_bytes(&filled.admin, &button.action, URLENCODED, encoded(&fields)).await;
            redirects += usize::from(page.status == 303);
            faults
                .extend(faults_of(&page).into_iter().map(|fault| format!("{} {elsewhere:?}: {fault}", button.action)));
            keep_signed_in(&mut filled, &page).await;
        }
    }
    assert!(redirects >= ELSEWHERE.len(), "{redirects}");
    let client = &filled.admin.client;
    for path in ["/permits", "/nothing", "/sign-in"] {
        let asked = client
            .get(format!("{}{path}", filled.admin.url))
            .header("host", "evil.example")
            .header("x-forwarded-host", "evil.example");
        let page = page_of(asked.send().await.unwrap()).await;
        assert!(!page.text.contains("evil.example") && faults_of(&page).is_empty(), "{page:?}");
    }
    assert!(faults.is_empty(), "{faults:#?}");
    filled.api.close().await;
}

/// Names and contents of files that were made to break something.
#[tokio::test]
async fn a_strange_file_gets_a_clear_answer() {
    let filled = Filled::open(plainly).await;
    let good: &[u8] = b"Number,Type,Holder,Expires\nS-1,food,Ann,2029-01-31\n";
    let files: [(&str, &[u8]); 14] = [
        ("nul\0.csv", good),
        ("line\r\nx-evil: 1.csv", good),
        ("../../etc/passwd", good),
        (&"long".repeat(500), good),
        ("\u{202e}vsc.exe", good),
        ("nul.csv", b"Number,Type,Holder,Expires\nS-\x001,fo\x00od,A\x00nn,2029-01-31\n"),
        ("broken.csv", b"Number,Type,Holder,Expires\nS-\xff1,food,A\xfe\xffnn,2029-01-31\n"),
        ("header.csv", b"Number,Type,Holder,Expires\n"),
        ("line.csv", b"\n"),
        ("bom.csv", b"\xef\xbb\xbf"),
        ("wide.csv", b"\xff\xfeN\x00u\x00m\x00"),
        ("quote.csv", b"Number,Type,Holder,Expires\n\"S-1,food,Ann,2029-01-31\n"),
        ("zip.csv", b"PK\x03\x04nothing"),
        ("nuls.csv", &[0; 5000]),
    ];
    let mut faults = Vec::new();
    for (name, content) in files {
        let page = filled.admin.upload("/import", name, content).await;
        let mut wrong = faults_of(&page);
        if page.status == 303 {
            let shown = filled.admin.get(page.header("location")).await;
            wrong.extend(faults_of(&shown));
            let discarded = filled.admin.post(page.header("location"), &[("do", "discard")]).await;
            wrong.extend(faults_of(&discarded));
        }
        faults.extend(wrong.into_iter().map(|fault| format!("{name:?}: {fault}")));
    }
    // A client that is no browser writes names as it likes.
    for name in [&b"nul\0.csv"[..], b"\xff\xfe.csv", b"quo\\\"te.csv", b"re\rturn.csv", b"\\..\\x.csv", b""] {
        let page = upload_as(&filled, name, good).await;
        let mut wrong = faults_of(&page);
        if page.status == 303 {
            wrong.extend(faults_of(&filled.admin.get(page.header("location")).await));
            filled.admin.post(page.header("location"), &[("do", "discard")]).await;
        }
        faults.extend(wrong.into_iter().map(|fault| format!("{:?}: {fault}", String::from_utf8_lossy(name))));
    }
    faults.extend(faults_of(&filled.admin.get("/import").await));
    assert!(faults.is_empty(), "{faults:#?}");
    filled.api.close().await;
}

/// Sends a file with these bytes as its name.
async fn upload_as(filled: &Filled, name: &[u8], content: &[u8]) -> Page {
    let part = |what: &[u8]| [b"--edge\r\ncontent-disposition: form-data; name=", what, b"\r\n\r\n"].concat();
    let body = [
        part(b"\"csrf\""),
        filled.admin.csrf.as_bytes().to_vec(),
        b"\r\n".to_vec(),
        part(&[b"\"file\"; filename=\"", name, b"\""].concat()),
        content.to_vec(),
        b"\r\n--edge--\r\n".to_vec(),
    ];
    send_bytes(&filled.admin, "/import", "multipart/form-data; boundary=edge", body.concat()).await
}
