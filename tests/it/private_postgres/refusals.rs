//! What the private server refuses, and the one sentence it says then.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use nix::unistd::geteuid;
use permit_notifier::private_postgres::{Error, Options, PrivatePostgres, choose_data_dir};

use super::{open_fast, open_in, socket_folder};
use crate::support::run_folder::TestDir;

#[test]
fn a_socket_folder_of_somebody_else_is_refused() {
    let dir = TestDir::new();
    let data_dir = dir.path().join("long-name-".repeat(12));
    let server = open_in(&data_dir);
    let folder = socket_folder(&server);
    server.stop();
    if geteuid().is_root() {
        fs::create_dir(&folder).expect("the folder");
        std::os::unix::fs::chown(&folder, Some(1), None).expect("to give it away");
    } else {
        // Nobody can give a folder away; a link to a foreign one is the next best trick.
        std::os::unix::fs::symlink("/usr", &folder).expect("the link");
    }
    let error = PrivatePostgres::open(&data_dir).expect_err("not with a foreign folder").to_string();
    let _ = fs::remove_dir(&folder).or_else(|_| fs::remove_file(&folder));
    assert!(error.contains(folder.to_str().expect("text")), "{error}");
    one_sentence(&error);
}

#[test]
fn a_data_dir_that_postgresql_cannot_reach_is_an_error_or_falls_back() {
    let dir = TestDir::new();
    let closed = dir.path().join("closed");
    fs::create_dir(&closed).expect("a folder");
    fs::set_permissions(&closed, Permissions::from_mode(0o700)).expect("its mode");
    let (wanted, fallback) = (closed.join("data"), dir.path().join("fallback"));
    if geteuid().is_root() {
        let error = choose_data_dir(Some(&wanted), &wanted, &fallback).expect_err("unreachable").to_string();
        assert!(error.contains("DATA_DIR") && error.contains(wanted.to_str().expect("text")), "{error}");
        one_sentence(&error);
        assert!(!wanted.exists() && !fallback.exists(), "nothing is made in vain");
        let (taken, sentence) = choose_data_dir(None, &wanted, &fallback).expect("the fallback");
        assert_eq!(taken, fallback);
        one_sentence(&sentence.expect("it is said"));
        assert!(matches!(PrivatePostgres::open(&wanted), Err(Error::Unreachable { .. })));
    } else {
        let (taken, sentence) = choose_data_dir(None, &wanted, &fallback).expect("our own folder");
        assert_eq!((taken, sentence), (wanted, None));
    }
    let (taken, sentence) = choose_data_dir(Some(&dir.path().join("a/b")), &closed, &closed).expect("a reachable one");
    assert_eq!((taken.clone(), sentence), (dir.path().join("a/b"), None));
    open_in(&taken).stop();
}

#[test]
fn a_data_dir_that_cannot_be_made_is_named() {
    let dir = TestDir::new();
    let file = dir.path().join("file");
    fs::write(&file, "").expect("a file");
    let error = PrivatePostgres::open(&file.join("data")).expect_err("a file is in the way").to_string();
    assert!(error.contains(file.to_str().expect("text")) && error.contains("DATA_DIR"), "{error}");
    one_sentence(&error);
}

#[test]
fn without_programs_the_error_says_how_to_get_them() {
    let dir = TestDir::new();
    let options = Options { binary_folders: Some(vec![dir.path().to_owned()]), ..Options::default() };
    let error = failure(&dir, &options);
    assert!(error.contains("apt-get install postgresql") && error.contains("DATABASE_URL"), "{error}");
}

#[test]
fn programs_that_are_too_old_are_not_taken() {
    let dir = TestDir::new();
    let error = failure(&dir, &fake_programs(&dir, "13.2", ""));
    assert!(error.contains("14 or newer"), "{error}");
}

#[test]
fn a_cluster_of_another_version_is_not_touched() {
    let dir = TestDir::new();
    open_fast(&dir).stop();
    let error = failure(&dir, &fake_programs(&dir, "99beta1", ""));
    assert!(error.contains("but only 99 was found"), "{error}");
    open_fast(&dir).stop();
}

#[test]
fn a_full_disk_is_one_sentence_with_the_folder_and_leaves_nothing_behind() {
    let dir = TestDir::new();
    let words = "initdb: error: could not write to file: No space left on device";
    let error = failure(&dir, &fake_programs(&dir, "15.1", words));
    assert!(error.contains("no room") && error.contains(dir.path().to_str().expect("text")), "{error}");
    open_fast(&dir).stop();
    let names = fs::read_dir(dir.path().join("postgres")).expect("the folder").flatten();
    let unfinished = names.filter(|entry| entry.file_name().to_string_lossy().starts_with("data.new"));
    assert_eq!(unfinished.count(), 0);
}

#[test]
fn a_server_that_does_not_come_up_says_why() {
    let dir = TestDir::new();
    open_fast(&dir).stop();
    let conf = dir.path().join("postgres/data/postgresql.conf");
    fs::write(&conf, "no_such_setting = 1\n").expect("a broken configuration");
    let error = failure(&dir, &Options::default());
    assert!(error.contains("could not be started") && error.contains("postgres/log"), "{error}");
}

/// A folder with programs that say what a test wants.
fn fake_programs(dir: &TestDir, version: &str, words_of_initdb: &str) -> Options {
    let folder = dir.path().join("bin");
    fs::create_dir(&folder).expect("a folder");
    for (name, words) in [("postgres", format!("postgres (PostgreSQL) {version}")), ("initdb", String::new())] {
        let script = format!("#!/bin/sh\necho '{words}'\necho '{words_of_initdb}' >&2\n[ {name} = postgres ]\n");
        let program = folder.join(name);
        fs::write(&program, script).expect("a script");
        fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("its mode");
    }
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("its mode");
    Options { binary_folders: Some(vec![folder]), ..Options::default() }
}

fn failure(dir: &TestDir, options: &Options) -> String {
    let error = PrivatePostgres::open_with(dir.path(), options).expect_err("no server").to_string();
    one_sentence(&error);
    error
}

fn one_sentence(text: &str) {
    assert!(!text.contains('\n') && !text.contains("  ") && text.len() < 400, "{text}");
}
