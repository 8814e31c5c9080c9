//! Files on their way into the database, and out of it again.

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use uuid::Uuid;

use super::{KEPT_MAX, PATH, check, not_taken, sentence};
use crate::store::kept_files::{
    get_kept_file, insert_kept_file, insert_part, list_kept_files, read_part, remove_old_files,
};
use crate::store::unit;
use crate::web::api::files::{ImportWords, Uploaded, busy, take_place};
use crate::web::api::imports::receive_after;
use crate::web::api::problem::{Kind, Problem};
use crate::web::pages::Pages;
use crate::web::pages::access::{User, check_token};
use crate::web::pages::frame::CSRF;

/// Size of a piece in the database.
const PIECE: usize = 1 << 20;

/// Takes a file, checks it as it is, and leads to what came out.
pub(super) async fn upload(State(pages): State<Pages>, user: User, request: Request) -> Result<Response, Problem> {
    let _place = take_place(&pages.api.imports, "imports")?;
    let prove = |given: &str| check_token(given, &user.csrf);
    let upload = match receive_after(request, CSRF, prove, pages.api.uploads).await {
        Ok(upload) => upload,
        Err(problem) if matches!(problem.kind(), Kind::ValidationFailed | Kind::TooLarge) => {
            return not_taken(&pages, &user, problem.kind().status(), sentence(problem.detail())).await;
        }
        Err(problem) => return Err(problem),
    };
    let bytes = upload.file.metadata().map_err(|error| disk_fault(&error))?.len();
    if bytes == 0 {
        let status = Kind::ValidationFailed.status();
        return not_taken(&pages, &user, status, "Choose a file that is not empty.".to_owned()).await;
    }
    let Some((id, upload)) = keep(&pages, &user, upload, bytes).await? else {
        let why = format!("{KEPT_MAX} files wait to be imported. Import or discard one of them first.");
        return not_taken(&pages, &user, Kind::WrongState.status(), why).await;
    };
    let mut connection = pages.api.connection().await?;
    let file = get_kept_file(&mut *connection, id).await?;
    drop(connection);
    check::check(&pages, &user, &file, upload, ImportWords::default()).await?;
    Ok(Redirect::to(&format!("{PATH}/file/{id}")).into_response())
}

/// Puts a file into the database; none when too many wait.
async fn keep(pages: &Pages, user: &User, upload: Uploaded, bytes: u64) -> Result<Option<(Uuid, Uploaded)>, Problem> {
    let mut connection = pages.api.connection().await?;
    let now = pages.api.moment(&mut connection).await?.now;
    let mut work = unit::begin(&mut connection).await?;
    remove_old_files(&mut work, now).await?;
    if list_kept_files(&mut *work, now).await?.len() >= KEPT_MAX {
        return Ok(None);
    }
    let id = insert_kept_file(&mut work, &upload.name, bytes, &user.by, now).await?;
    let mut file = File::from_std(upload.file);
    file.rewind().await.map_err(|error| disk_fault(&error))?;
    for number in 0.. {
        let mut piece = Vec::with_capacity(PIECE);
        (&mut file).take(PIECE as u64).read_to_end(&mut piece).await.map_err(|error| disk_fault(&error))?;
        if piece.is_empty() {
            break;
        }
        insert_part(&mut work, id, number, &piece).await?;
    }
    work.commit().await.map_err(Problem::from)?;
    Ok(Some((id, Uploaded { file: file.into_std().await, name: upload.name })))
}

/// The file out of the database, in a temporary one without a name.
pub(super) async fn fetch(pages: &Pages, id: Uuid, name: &str) -> Result<Uploaded, Problem> {
    let mut file = File::from_std(tempfile::tempfile().map_err(|error| disk_fault(&error))?);
    let mut connection = pages.api.connection().await?;
    for number in 0.. {
        let Some(piece) = read_part(&mut connection, id, number).await? else { break };
        file.write_all(&piece).await.map_err(|error| disk_fault(&error))?;
    }
    file.flush().await.map_err(|error| disk_fault(&error))?;
    Ok(Uploaded { file: file.into_std().await, name: name.to_owned() })
}

pub(super) fn disk_fault(error: &std::io::Error) -> Problem {
    tracing::error!("a file that waits to be imported could not be kept in a temporary file: {error}");
    busy("the file could not be kept while it was looked at")
}
