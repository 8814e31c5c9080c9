//! The file of rejected rows: known to be writable before anything is imported, and in its place only when it is whole.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use futures_util::StreamExt;
use tempfile::NamedTempFile;

use crate::files::export::Chunks;

/// Where the rows go.
#[derive(Debug)]
pub struct ErrorsFile {
    path: PathBuf,
    to: To,
}

#[derive(Debug)]
enum To {
    /// Into a file beside the one of this path, whose place it takes in the end.
    Beside(NamedTempFile, PathBuf),
    /// Straight into what is no file, such as a terminal or a pipe.
    Straight(File),
}

impl ErrorsFile {
    /// Refuses a path to which nothing can be written, and that of the file which is imported.
    pub fn open(path: &Path, imported: &Path) -> Result<Self> {
        let found = fs::metadata(path);
        if let (Ok(found), Ok(imported)) = (&found, fs::metadata(imported))
            && found.is_file()
            && (found.dev(), found.ino()) == (imported.dev(), imported.ino())
        {
            bail!("--errors: {} is the file that is to be imported; name another", path.display());
        }
        let to = To::open(path, found).with_context(|| cannot(path))?;
        Ok(Self { path: path.to_owned(), to })
    }

    /// Writes all of it.
    pub async fn write(self, rows: Chunks) -> Result<()> {
        let Self { path, to } = self;
        to.write(rows).await.with_context(|| cannot(&path))
    }
}

fn cannot(path: &Path) -> String {
    format!("--errors: {} cannot be written", path.display())
}

impl To {
    fn open(path: &Path, found: io::Result<fs::Metadata>) -> io::Result<Self> {
        let (target, permissions) = match found {
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) if is_stream(&found) => return Ok(Self::Straight(File::options().write(true).open(path)?)),
            // A file that may not be written to is not replaced either; a link stays one.
            Ok(found) => {
                File::options().append(true).open(path)?;
                (fs::canonicalize(path)?, Some(found.permissions()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => (path.to_owned(), None),
            Err(error) => return Err(error),
        };
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // As any new file, which the mask of the process narrows.
        let usual = Permissions::from_mode(0o666);
        let file = tempfile::Builder::new().prefix(".errors-").permissions(usual).tempfile_in(folder)?;
        if let Some(permissions) = permissions {
            file.as_file().set_permissions(permissions)?;
        }
        Ok(Self::Beside(file, target))
    }

    async fn write(self, rows: Chunks) -> Result<()> {
        match self {
            Self::Straight(file) => write_all(&file, rows).await,
            Self::Beside(file, target) => {
                write_all(file.as_file(), rows).await?;
                file.persist(target)?;
                Ok(())
            }
        }
    }
}

fn is_stream(found: &fs::Metadata) -> bool {
    let kind = found.file_type();
    kind.is_char_device() || kind.is_fifo() || kind.is_socket()
}

async fn write_all(file: &File, mut rows: Chunks) -> Result<()> {
    let mut file = BufWriter::new(file);
    while let Some(piece) = rows.next().await {
        file.write_all(&piece?)?;
    }
    Ok(file.flush()?)
}
