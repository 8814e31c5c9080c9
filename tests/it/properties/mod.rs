//! Properties that hold for every input: tried on a kept corpus first, then on random cases.
//!
//! `corpus/<property>/` holds inputs that failed once or are worth keeping, one JSON file each, named after what they
//! are. Every run tries all of them. A random case that fails is made as small as it goes and written there as
//! `found-….json`; with the fault it is committed under a better name. `PROPERTY_CASES` sets how many random cases each
//! property gets; `PROPERTY_SEED` repeats those of a run that failed.
//!
//! A new property is a file here: a case that serde can write, a strategy that makes some, and a call of [`check`].

mod conversations;
mod csv_bytes;
mod csv_tables;
mod given_out;
mod messages;
mod office_hours;
mod replies;
mod scan_times;
mod served;
mod zones;

use std::{
    env,
    fmt::Debug,
    fs,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::{Path, PathBuf},
};

use proptest::{
    strategy::Strategy,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestCaseResult, TestError, TestRng, TestRunner},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest as _, Sha256};

/// Tries `property` on every kept case, and on `usual` random ones or as many as were asked for.
pub fn check<C>(
    property: &str,
    usual: u32,
    cases: impl Strategy<Value = C>,
    holds: impl Fn(&C) -> Result<(), TestCaseError>,
) where
    C: Debug + Serialize + DeserializeOwned,
{
    let kept = corpus(property);
    for path in files(&kept) {
        try_kept(&path, &holds);
    }
    let seed = setting("PROPERTY_SEED").unwrap_or_else(|| fastrand::u64(..));
    let cases_wanted = setting("PROPERTY_CASES").map_or(usual, |count| u32::try_from(count).expect("fewer cases"));
    match runner(cases_wanted, seed).run(&cases, |case| holds(&case)) {
        Ok(()) => {}
        Err(TestError::Abort(reason)) => panic!("{property}: no cases could be made: {reason}"),
        Err(TestError::Fail(reason, case)) => {
            let path = keep(&kept, &case);
            panic!(
                "{property} does not hold: {reason}\n{case:?}\nkept in {}; PROPERTY_SEED={seed} repeats the run",
                path.display()
            );
        }
    }
}

fn try_kept<C: DeserializeOwned>(path: &Path, holds: &impl Fn(&C) -> TestCaseResult) {
    let text = fs::read(path).expect("a kept case can be read");
    let case = serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{} is no case: {error}", path.display()));
    match catch_unwind(AssertUnwindSafe(|| holds(&case))) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => panic!("it does not hold for {}: {error}", path.display()),
        Err(panicked) => {
            eprintln!("panicked with {}", path.display());
            resume_unwind(panicked)
        }
    }
}

fn corpus(property: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/properties/corpus").join(property)
}

/// The kept cases in the order of their names. A property without any was misspelt, or its folder lost.
fn files(kept: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(kept).unwrap_or_else(|error| panic!("{}: {error}", kept.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", kept.display());
    files
}

fn setting(name: &str) -> Option<u64> {
    let value = env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is a number, not {value:?}")))
}

fn runner(cases: u32, seed: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 20_000,
        // In milliseconds.
        max_shrink_time: 30_000,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

fn keep<C: Serialize>(kept: &Path, case: &C) -> PathBuf {
    let text = serde_json::to_string_pretty(case).expect("a case can be written") + "\n";
    let digest = Sha256::digest(text.as_bytes());
    let path = kept.join(format!("found-{:02x}{:02x}{:02x}{:02x}.json", digest[0], digest[1], digest[2], digest[3]));
    if let Err(error) = fs::write(&path, &text) {
        eprintln!("it could not be kept ({error}); the case is\n{text}");
    }
    path
}

/// Bytes, written as text where they are UTF-8 and as numbers where not.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Bytes(pub Vec<u8>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Numbers(Vec<u8>),
}

impl From<Written> for Bytes {
    fn from(written: Written) -> Self {
        match written {
            Written::Text(text) => Self(text.into_bytes()),
            Written::Numbers(bytes) => Self(bytes),
        }
    }
}

impl From<Bytes> for Written {
    fn from(bytes: Bytes) -> Self {
        String::from_utf8(bytes.0).map_or_else(|error| Self::Numbers(error.into_bytes()), Self::Text)
    }
}

impl Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}
