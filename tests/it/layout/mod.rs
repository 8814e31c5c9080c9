//! Holds the code to its layers: who may use whom, and which libraries stay behind which wall.
//!
//! `main → commands → app → {web, scan, dispatch, watch, files, inbound} → {store, mail, auth} →
//! domain`. Leaves may be used by all of them and use only each other and the domain.

mod source;
mod statements;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use source::paths;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layer {
    Domain,
    Leaf,
    /// Higher numbers may use lower ones; the same number is a neighbour and may not be used.
    Rank(u8),
    /// `lib.rs`, the map, which names everything.
    Map,
}

/// `scan::schedule` is pure and a part of the configuration, so it is a leaf of its own.
fn layer_of(module: &[String]) -> Option<Layer> {
    let names: Vec<&str> = module.iter().map(String::as_str).collect();
    Some(match names[..] {
        [] => Layer::Map,
        ["domain", ..] => Layer::Domain,
        ["scan", "schedule", ..]
        | ["clock" | "config" | "outgoing" | "shutdown" | "telemetry" | "private_postgres", ..] => Layer::Leaf,
        ["store" | "mail" | "auth", ..] => Layer::Rank(1),
        ["web" | "scan" | "dispatch" | "watch" | "files" | "inbound" | "purge", ..] => Layer::Rank(2),
        ["app", ..] => Layer::Rank(3),
        ["commands", ..] => Layer::Rank(4),
        ["main", ..] => Layer::Rank(5),
        _ => return None,
    })
}

fn may_use(by: Layer, what: Layer) -> bool {
    match (by, what) {
        (Layer::Domain, _) => what == Layer::Domain,
        // Of the map that is the items in `lib.rs` itself, such as the migrator.
        (Layer::Map, _) | (_, Layer::Map | Layer::Domain | Layer::Leaf) => true,
        (Layer::Leaf, Layer::Rank(_)) => false,
        (Layer::Rank(by), Layer::Rank(what)) => by > what,
    }
}

/// Libraries that only some modules may name, and what others may name of them all the same.
fn may_name(module: &[String], path: &[String]) -> bool {
    let top = module.first().map_or("lib", String::as_str);
    let item = path.get(1).map(String::as_str);
    match path[0].as_str() {
        "sqlx" => {
            top == "store" || matches!(top, "app" | "commands" | "lib") && matches!(item, Some("PgPool" | "migrate"))
        }
        "lettre" => matches!(top, "mail" | "config"),
        "axum" => top == "web",
        _ => true,
    }
}

const PURE: [&str; 6] = ["chrono", "chrono_tz", "uuid", "thiserror", "email_address", "idna"];

/// Every breach of the layers in one file, each as a sentence.
fn breaches(module: &[String], source: &str, libraries: &BTreeSet<String>) -> Vec<String> {
    let name = module.join("::");
    let Some(user) = layer_of(module) else {
        return vec![format!("{name} has no place in the map of layers")];
    };
    let mut found = Vec::new();
    for path in paths(source) {
        if let Some(used) = resolve(module, &path) {
            let same = !module.is_empty() && used.first() == module.first();
            match layer_of(&used) {
                _ if same && user == layer_of(&used[..1]).unwrap_or(user) => {}
                None => found.push(format!("{name} uses {}, which has no layer", used.join("::"))),
                Some(layer) if !may_use(user, layer) => {
                    found.push(format!("{name} uses {}", used.join("::")));
                }
                Some(_) => {}
            }
            continue;
        }
        if !libraries.contains(&path[0]) {
            continue;
        }
        let pure = PURE.contains(&path[0].as_str()) || path[0] == "serde";
        if !may_name(module, &path) || (user == Layer::Domain && !pure) {
            found.push(format!("{name} names {}", path.join("::")));
        }
    }
    found
}

/// Where a path inside the crate leads, or `None` for paths to elsewhere. Items of the crate's
/// root are the map's.
fn resolve(module: &[String], path: &[String]) -> Option<Vec<String>> {
    let mut base = match path[0].as_str() {
        "crate" | "permit_notifier" => Vec::new(),
        "self" => module.to_vec(),
        "super" => module[..module.len().saturating_sub(1)].to_vec(),
        _ => return None,
    };
    for segment in &path[1..] {
        if segment == "super" {
            base.pop();
        } else {
            base.push(segment.clone());
        }
    }
    let is_item = |name: &String| name == "*" || name.starts_with(|c: char| c.is_ascii_uppercase());
    if base.first().is_some_and(is_item) {
        base.clear();
    }
    Some(base)
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// `scan/mod.rs` is `scan`, `scan/schedule.rs` is `scan::schedule`, `lib.rs` is the root.
fn module_of(path: &Path) -> Vec<String> {
    let mut module: Vec<String> =
        path.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if module.last().is_some_and(|last| last == "mod" || last == "lib") {
        module.pop();
    }
    module
}

/// The names under `[dependencies]`, as code writes them.
fn libraries() -> BTreeSet<String> {
    let manifest = include_str!("../../../Cargo.toml");
    let start = manifest.find("[dependencies]\n").unwrap();
    manifest[start..]
        .lines()
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name.trim().replace('-', "_"))
        .collect()
}

#[test]
fn the_code_keeps_to_its_layers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 10, "the sources were not found");
    let libraries = libraries();
    let found: Vec<String> = files
        .iter()
        .flat_map(|file| {
            let source = std::fs::read_to_string(file).unwrap();
            breaches(&module_of(file.strip_prefix(&root).unwrap()), &source, &libraries)
        })
        .collect();
    assert!(found.is_empty(), "the layers are breached:\n{}", found.join("\n"));
}

fn check(file: &str, source: &str) -> Vec<String> {
    breaches(&module_of(Path::new(file)), source, &libraries())
}

#[test]
fn a_breach_is_found_however_it_is_written() {
    for (file, source, breach) in [
        ("domain/permit.rs", "use crate::store::permits;", "domain::permit uses store::permits"),
        ("domain/permit.rs", "use super::super::clock::Clock;", "domain::permit uses clock::Clock"),
        ("domain/mod.rs", "fn f() { tokio::spawn(x) }", "domain names tokio::spawn"),
        ("domain/mod.rs", "use anyhow::{self, Result};", "domain names anyhow::self\ndomain names anyhow::Result"),
        ("store/mod.rs", "let x: Vec<crate::web::Web>;", "store uses web::Web"),
        ("store/permits.rs", "use crate::{domain::permit, mail::compose};", "store::permits uses mail::compose"),
        ("scan/mod.rs", "use super::dispatch::lease;", "scan uses dispatch::lease"),
        ("scan/schedule.rs", "use super::run_once;", "scan::schedule uses scan::run_once"),
        ("scan/schedule.rs", "use crate::config::Config;", ""),
        ("config/mod.rs", "crate::app::build()", "config uses app::build"),
        ("web/api/permits.rs", "sqlx::query!(\"\")", "web::api::permits names sqlx::query"),
        ("app.rs", "use sqlx::{PgPool, query};", "app names sqlx::query"),
        ("app.rs", "use crate::commands::serve;", "app uses commands::serve"),
        ("dispatch/send.rs", "use lettre as post;", "dispatch::send names lettre"),
        (
            "shutdown.rs",
            "use axum::{extract::{Path, State}};",
            "shutdown names axum::extract::Path\nshutdown names axum::extract::State",
        ),
        ("helpers/mod.rs", "", "helpers has no place in the map of layers"),
        ("app.rs", "use crate::helpers::x;", "app uses helpers::x, which has no layer"),
        ("main.rs", "use permit_notifier::commands::run;", ""),
        ("commands/serve.rs", "use permit_notifier::main::x;", "commands::serve uses main::x"),
    ] {
        assert_eq!(check(file, source).join("\n"), breach, "{file}: {source}");
    }
}

#[test]
fn what_the_layers_allow_is_no_breach() {
    for (file, source) in [
        ("lib.rs", "pub mod web; pub static M: sqlx::migrate::Migrator = sqlx::migrate!();"),
        ("app.rs", "use sqlx::PgPool; use crate::{MIGRATOR, config::Config, scan, web::{self, Web}};"),
        ("store/permits.rs", "use sqlx::query; use super::notices; use crate::domain::permit::Permit;"),
        ("mail/mod.rs", "use lettre::Message; mod smtp; use self::smtp::Session;"),
        ("web/pages/mod.rs", "use axum::Router; use super::error::Error; use crate::auth::Role;"),
        ("scan/mod.rs", "use self::schedule::ScanSchedule; use crate::store::scans;"),
        ("telemetry/logs.rs", "use crate::config::LogFormat; use crate::domain::notice;"),
        ("domain/notice.rs", "use std::fmt; use chrono::NaiveDate; use serde::Serialize;"),
        ("domain/notice.rs", "// use sqlx::query;\n/* crate::store::x */ let s = \"crate::web::x\";"),
        ("domain/notice.rs", "let r = r#\"a \" crate::web::x\"#; let c = '\"'; let d: &'a str = \"axum::x\";"),
        ("domain/notice.rs", "use super::{permit::Permit, term::Term}; Self::new(); Weekday::Mon;"),
    ] {
        assert_eq!(check(file, source), Vec::<String>::new(), "{file}: {source}");
    }
}
