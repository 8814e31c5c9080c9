//! What the database lets us do: change anything, make tables, see other sessions, and open enough connections.

use super::{Check, fault, ok, warning};
use crate::store::{
    PgConnection,
    connect::said,
    facts::{AccountFacts, account_facts, takes_no_changes},
    migrate::is_up_to_date,
    processes::count_living,
};

/// Connections of one process, as `docs/operating.md` counts them.
const OF_A_PROCESS: i64 = 50;
/// Connections for commands, backups and people.
const OF_OTHERS: i64 = 20;

/// Every check that asks what our account may do.
pub(super) async fn check(connection: &mut PgConnection) -> Vec<Check> {
    let mut checks = vec![check_changes(connection).await];
    match account_facts(connection).await {
        Ok(facts) => {
            let pending = !is_up_to_date(connection).await.unwrap_or(true);
            let processes = count_living(connection).await.unwrap_or(0);
            checks.extend(check_rights(&facts, pending));
            checks.push(check_room(facts.connections, processes));
        }
        Err(error) => checks.push(fault("rights", error.to_string(), "look at the database's log")),
    }
    checks
}

async fn check_changes(connection: &mut PgConnection) -> Check {
    const NAME: &str = "changes";
    match takes_no_changes(connection).await {
        Ok(None) => ok(NAME, "the database takes them"),
        Ok(Some(why)) => fault(NAME, format!("the database {why}"), why.advice()),
        Err(error) => fault(NAME, said(&error), "look at the database's log"),
    }
}

fn check_rights(facts: &AccountFacts, pending: bool) -> Vec<Check> {
    const NAME: &str = "rights";
    let AccountFacts { account, schema, .. } = facts;
    let mut checks = Vec::new();
    if !facts.may_create {
        let schema = schema.as_deref().unwrap_or("public");
        let why = if pending { "migrations are pending" } else { "each start asks for it" };
        let found = format!("{account} may not make tables in the schema {schema}, and {why}");
        checks.push(fault(NAME, found, format!("GRANT USAGE, CREATE ON SCHEMA {schema} TO {account}")));
    }
    if !facts.sees_others {
        let found = format!("{account} does not see what sessions of others do, so nobody hears of database_held");
        checks.push(warning(NAME, found, format!("GRANT pg_read_all_stats TO {account}")));
    }
    if checks.is_empty() {
        checks.push(ok(NAME, format!("{account} may make tables, and sees other sessions")));
    }
    checks
}

/// `processes` are alive; the first one is counted before it starts.
fn check_room(connections: i64, processes: i64) -> Check {
    const NAME: &str = "room for connections";
    let processes = processes.max(1);
    let needed = processes * OF_A_PROCESS + OF_OTHERS;
    let many = if processes == 1 { "one process".to_owned() } else { format!("{processes} processes") };
    let found = format!("{connections} are allowed; {many} and the commands may need {needed}");
    let advice = "raise max_connections, or the limit of the database or of the account, and see Scaling in \
                  docs/operating.md";
    match connections {
        few if few < OF_A_PROCESS => fault(NAME, found, advice),
        few if few < needed => warning(NAME, found, advice),
        _ => ok(NAME, found),
    }
}
