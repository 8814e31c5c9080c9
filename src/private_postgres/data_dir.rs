//! Which folder `DATA_DIR` means for a private server.

use std::path::{Path, PathBuf};

use super::account::Account;
use super::{Error, folders};

/// The folder for the program's data, absolute and existing, and a sentence to print when it is not the expected one.
///
/// `explicit` is `DATA_DIR`. Without it `./data` is taken, or `/var/lib/permit-notifier` when the account that runs
/// PostgreSQL cannot reach `./data` (root, with the checkout in a closed home folder). A folder that was asked for and
/// cannot be reached is an error. Only for the private server: with `DATABASE_URL` any folder will do.
pub fn resolve_data_dir(explicit: Option<&Path>) -> Result<(PathBuf, Option<String>), Error> {
    choose_data_dir(explicit, Path::new("data"), Path::new("/var/lib/permit-notifier"))
}

/// [`resolve_data_dir`] with the two folders of its rule given.
pub fn choose_data_dir(
    explicit: Option<&Path>,
    default: &Path,
    fallback: &Path,
) -> Result<(PathBuf, Option<String>), Error> {
    if let Some(folder) = explicit {
        return Ok((reachable(folder)?, None));
    }
    match reachable(default) {
        Err(Error::Unreachable { folder, account }) => {
            let taken = reachable(fallback)?;
            let sentence = format!(
                "The account {account}, which runs the database, cannot enter {}, so {} is used; set DATA_DIR to choose another folder.",
                folder.display(),
                taken.display()
            );
            Ok((taken, Some(sentence)))
        }
        other => Ok((other?, None)),
    }
}

fn reachable(folder: &Path) -> Result<PathBuf, Error> {
    let folder = folders::absolute(folder)?;
    let account = Account::for_folder(&folder.join("postgres"))?;
    // Looked at before it is made, so that nothing is left where it is of no use.
    let existing = folder.ancestors().find(|path| path.exists()).unwrap_or(&folder);
    if !account.can_enter(existing) {
        return Err(Error::unreachable(&folder, &account));
    }
    folders::create(&folder, &account)?;
    Ok(folder)
}
