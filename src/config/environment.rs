//! Where values come from in a running program: the process environment, then `.env` in the
//! working folder. The process environment is only read, never changed.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::env::VarError;
use std::io::ErrorKind;
use std::path::Path;

use super::Config;
use super::error::{ConfigErrors, Fault};

pub(super) fn read(ignored: &[&str]) -> Result<Config, ConfigErrors> {
    let mut faults = Vec::new();
    let file = read_dotenv(Path::new(".env")).unwrap_or_else(|fault| {
        faults.push(fault);
        HashMap::new()
    });
    let faults = RefCell::new(faults);
    let known = RefCell::new(BTreeSet::new());
    let config = Config::read(&|variable| {
        known.borrow_mut().insert(variable.to_owned());
        if ignored.contains(&variable) {
            return None;
        }
        match std::env::var(variable) {
            Ok(value) => Some(value),
            Err(VarError::NotPresent) => file.get(variable).cloned(),
            Err(VarError::NotUnicode(_)) => {
                faults
                    .borrow_mut()
                    .push(Fault { variable: variable.to_owned(), message: "must be text in UTF-8".to_owned() });
                None
            }
        }
    });
    let mut faults = faults.into_inner();
    match config {
        Ok(mut config) if faults.is_empty() => {
            let set = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).chain(file.into_keys());
            config.warnings.extend(misspelt(&known.into_inner(), set));
            Ok(config)
        }
        Ok(_) => Err(ConfigErrors(faults)),
        Err(more) => {
            faults.extend(more.0);
            Err(ConfigErrors(faults))
        }
    }
}

/// Names that are set, are none of ours and look like one: whoever wrote them believes that they count. Other names are
/// somebody else's.
pub fn misspelt(known: &BTreeSet<String>, set: impl Iterator<Item = String>) -> Vec<String> {
    let set: BTreeSet<String> = set.filter(|name| name.len() >= 6 && !known.contains(name)).collect();
    let looks_like = |name: &String| {
        let name = name.to_ascii_uppercase();
        known.iter().find(|one| strsim::damerau_levenshtein(one, &name) <= 2)
    };
    let like: Vec<(&String, &String)> = set.iter().filter_map(|name| Some((name, looks_like(name)?))).collect();
    like.into_iter().map(|(name, one)| format!("{name} is set and not read; did you mean {one}?")).collect()
}

/// A missing file is no fault. Messages name the last good entry and never repeat the bad line,
/// which may well be the one with the password.
pub fn read_dotenv(path: &Path) -> Result<HashMap<String, String>, Fault> {
    let fault = |message: String| Fault { variable: ".env".to_owned(), message };
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(HashMap::new()),
        Err(error) => {
            return Err(fault(format!("in the working folder cannot be read: {error}")));
        }
    };
    let text = text.trim_start_matches('\u{feff}');
    let mut values = HashMap::new();
    let mut last = None;
    for entry in dotenvy::from_read_iter(text.as_bytes()) {
        let Ok((name, value)) = entry else {
            let place = last.map_or("its first entry".to_owned(), |name: String| format!("the entry after {name}"));
            return Err(fault(format!(
                "in the working folder has a line that is not NAME=value: {place}; values with \
                 blanks, quotes or $ go between single quotes"
            )));
        };
        last = Some(name.clone());
        // As in a shell that reads the file with every name already set, the first one stays.
        values.entry(name).or_insert(value);
    }
    Ok(values)
}
