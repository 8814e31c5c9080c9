//! What the database alone can do.

use std::{path::Path, process::Command, time::Duration};

use permit_notifier::store::lists::permits::{COLUMNS, FROM};

use crate::{
    CONNECTIONS, Error,
    office::{ID_START, PERMITS},
};

/// Reads one permit after the other for so long; says how many in a second. The id is put together in the database,
/// which costs it next to nothing.
pub fn run(url: &str, folder: &Path, time: Duration) -> Result<f64, Error> {
    let script = folder.join("read.sql");
    let by_id = format!("WHERE p.id = ('{ID_START}' || lpad((:number)::text, 12, '0'))::uuid");
    let select = [COLUMNS, FROM].concat().split_whitespace().collect::<Vec<_>>().join(" ");
    std::fs::write(&script, format!("\\set number random(1, {PERMITS})\n{select} {by_id};\n"))?;
    let clients = CONNECTIONS.to_string();
    let done = Command::new("pgbench")
        .args(["-n", "-M", "prepared", "-c", &clients, "-j", "2", "-T", &time.as_secs().to_string(), "-f"])
        .arg(&script)
        .arg(url)
        .output()
        .map_err(|error| format!("pgbench, a part of PostgreSQL, cannot be run: {error}"))?;
    let said = String::from_utf8_lossy(&done.stdout);
    let speed = said.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    speed.ok_or_else(|| format!("pgbench: {said} {}", String::from_utf8_lossy(&done.stderr)).into())
}
