//! A file on its way in: to a temporary file without a name, a piece at a time, so that neither memory nor the disk
//! keeps anything of a sender who hangs up.

use std::fs::File;

use axum::body::Bytes;
use axum::extract::multipart::{Field, Multipart, MultipartError};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use futures_util::StreamExt;
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;
use tokio::time::{Duration, timeout};

use super::super::files::Uploaded;
use super::super::problem::{Kind, Problem};

/// How much is taken, and how long a sender may be silent.
#[derive(Debug, Clone, Copy)]
pub struct UploadLimits {
    /// Largest file, in bytes.
    pub bytes: u64,
    /// Longest time between two pieces.
    pub silence: Duration,
    /// Longest time for the whole file.
    pub whole: Duration,
}

impl Default for UploadLimits {
    fn default() -> Self {
        Self { bytes: 1 << 30, silence: Duration::from_secs(30), whole: Duration::from_mins(15) }
    }
}

/// What the parts around a file may have beside it, in bytes.
const FORM_MAX: u64 = 64 << 10;

/// Receives the file of a request, raw or in a form; and the hash of its content. `name` is what it is called unless
/// the form says so. While it comes it keeps one of few places, so it may not dribble for ever.
pub async fn receive(
    request: Request,
    name: Option<String>,
    limits: UploadLimits,
) -> Result<(Uploaded, [u8; 32]), Problem> {
    let received = timeout(limits.whole, receive_whole(request, name, limits)).await;
    received.unwrap_or_else(|_| Err(too_slow(limits)))
}

fn too_slow(limits: UploadLimits) -> Problem {
    Problem::new(Kind::Malformed, format!("the file did not come within {} s", limits.whole.as_secs()))
}

async fn receive_whole(
    request: Request,
    name: Option<String>,
    limits: UploadLimits,
) -> Result<(Uploaded, [u8; 32]), Problem> {
    let is_form = is_form(request.headers());
    let most = limits.bytes + if is_form { FORM_MAX } else { 0 };
    if announced(request.headers()).is_some_and(|length| length > most) {
        return Err(too_large(limits));
    }
    let mut spool = Spool::new(limits)?;
    let name = if is_form {
        let of_form = receive_parts(open_form(request).await?, &mut spool).await?;
        name.or(of_form)
    } else {
        let mut pieces = request.into_body().into_data_stream();
        while let Some(piece) = spool.in_time(pieces.next()).await? {
            spool.write(&piece.map_err(|_| broken_off())?).await?;
        }
        name
    };
    spool.finish(named(name)).await
}

/// Receives the file of a form on a page. The first part of such a form proves that it is ours: `prove` looks at it before
/// anything of the file is taken.
pub async fn receive_after(
    request: Request,
    proof: &str,
    prove: impl FnOnce(&str) -> Result<(), Problem>,
    limits: UploadLimits,
) -> Result<Uploaded, Problem> {
    let received = timeout(limits.whole, receive_proven(request, proof, prove, limits)).await;
    received.unwrap_or_else(|_| Err(too_slow(limits)))
}

async fn receive_proven(
    request: Request,
    proof: &str,
    prove: impl FnOnce(&str) -> Result<(), Problem>,
    limits: UploadLimits,
) -> Result<Uploaded, Problem> {
    if announced(request.headers()).is_some_and(|length| length > limits.bytes + FORM_MAX) {
        return Err(too_large(limits));
    }
    let mut spool = Spool::new(limits)?;
    let mut form = open_form(request).await?;
    let first = spool.in_time(form.next_field()).await?.map_err(|error| broken_form(&error))?;
    let given = match first {
        Some(part) if part.name() == Some(proof) => read_short(part, &spool).await?,
        _ => String::new(),
    };
    prove(&given)?;
    let name = receive_parts(form, &mut spool).await?;
    Ok(spool.finish(named(name)).await?.0)
}

/// A part of a few characters.
async fn read_short(mut part: Field<'_>, spool: &Spool) -> Result<String, Problem> {
    const MOST: usize = 1000;
    let mut text = Vec::new();
    while let Some(piece) = spool.in_time(part.chunk()).await?.map_err(|error| broken_form(&error))? {
        text.extend_from_slice(&piece);
        if text.len() > MOST {
            return Err(Problem::new(Kind::Malformed, "a part before the file is too long"));
        }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn named(name: Option<String>) -> String {
    let name = name.map(|name| plain_name(&name)).filter(|name| !name.is_empty());
    name.unwrap_or_else(|| "upload".to_owned())
}

fn is_form(headers: &HeaderMap) -> bool {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    given.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("multipart/form-data")
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The last part of a path, as browsers of old sent it, in one short line.
fn plain_name(name: &str) -> String {
    const NAME_CHARS: usize = 200;
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    crate::domain::text::one_line(last).chars().take(NAME_CHARS).collect()
}

async fn open_form(request: Request) -> Result<Multipart, Problem> {
    let form = Multipart::from_request(request, &()).await;
    form.map_err(|_| Problem::new(Kind::Malformed, "multipart/form-data needs its boundary"))
}

/// Receives the one part `file`; what its sender calls it.
async fn receive_parts(mut form: Multipart, spool: &mut Spool) -> Result<Option<String>, Problem> {
    let mut name = None;
    let mut parts = 0;
    while let Some(part) = spool.in_time(form.next_field()).await?.map_err(|error| broken_form(&error))? {
        parts += 1;
        match part.name() {
            Some("file") if parts == 1 => name = receive_part(part, spool).await?,
            Some("file") => return Err(Problem::field("/file", "too_many", "one file at a time")),
            other => {
                let pointer = format!("/{}", crate::domain::text::one_line(other.unwrap_or_default()));
                return Err(Problem::field(
                    pointer,
                    "unknown_field",
                    "the only part is file; options are query parameters",
                ));
            }
        }
    }
    if parts == 0 {
        return Err(Problem::field("/file", "required", "the form needs a part file"));
    }
    Ok(name)
}

async fn receive_part(mut part: Field<'_>, spool: &mut Spool) -> Result<Option<String>, Problem> {
    while let Some(piece) = spool.in_time(part.chunk()).await?.map_err(|error| broken_form(&error))? {
        spool.write(&piece).await?;
    }
    Ok(part.file_name().map(unescaped))
}

/// The name of a file as browsers write it in a form, where a quotation mark and line ends are written as in addresses.
fn unescaped(name: &str) -> String {
    name.replace("%22", "\"").replace("%0D", "\r").replace("%0A", "\n")
}

fn broken_form(error: &MultipartError) -> Problem {
    tracing::debug!("a form broke off: {error}");
    if error.status() == StatusCode::BAD_REQUEST {
        return Problem::new(Kind::Malformed, "the form is no multipart/form-data, or broke off");
    }
    broken_off()
}

fn broken_off() -> Problem {
    Problem::new(Kind::Malformed, "the body could not be read to its end")
}

fn too_large(limits: UploadLimits) -> Problem {
    Problem::new(Kind::TooLarge, format!("a file has at most {} bytes", limits.bytes))
}

/// The temporary file.
struct Spool {
    file: tokio::fs::File,
    hash: Sha256,
    length: u64,
    limits: UploadLimits,
}

impl Spool {
    fn new(limits: UploadLimits) -> Result<Self, Problem> {
        let file = tempfile::tempfile().map_err(|error| disk_fault(&error))?;
        Ok(Self { file: tokio::fs::File::from_std(file), hash: Sha256::new(), length: 0, limits })
    }

    /// What comes from the sender, unless it is silent for too long.
    async fn in_time<T>(&self, coming: impl Future<Output = T>) -> Result<T, Problem> {
        timeout(self.limits.silence, coming).await.map_err(|_| {
            let seconds = self.limits.silence.as_secs();
            Problem::new(Kind::Malformed, format!("nothing of the body came for {seconds} s"))
        })
    }

    async fn write(&mut self, piece: &Bytes) -> Result<(), Problem> {
        self.length += piece.len() as u64;
        if self.length > self.limits.bytes {
            return Err(too_large(self.limits));
        }
        self.hash.update(piece);
        self.file.write_all(piece).await.map_err(|error| disk_fault(&error))
    }

    async fn finish(mut self, name: String) -> Result<(Uploaded, [u8; 32]), Problem> {
        self.file.flush().await.map_err(|error| disk_fault(&error))?;
        let file: File = self.file.into_std().await;
        Ok((Uploaded { file, name }, self.hash.finalize().into()))
    }
}

fn disk_fault(error: &std::io::Error) -> Problem {
    tracing::error!("an upload could not be kept in a temporary file: {error}");
    super::super::files::busy("the file could not be kept while it came in")
}
