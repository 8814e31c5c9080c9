//! One PostgreSQL for all tests of a run, started at first use; it ends with the process, however that ends.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use permit_notifier::private_postgres::{Options, PrivatePostgres};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::run_folder::run_folder;

/// The server shared by the tests of this run.
pub struct Cluster(PrivatePostgres);

impl Cluster {
    /// The URL of one of its databases.
    pub fn url_for(&self, database: &str) -> String {
        self.0.url_for(database)
    }
}

/// The shared server; the first call makes and starts it, blocking.
pub fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| {
        let options = Options { durable: false, ..Options::default() };
        let server = PrivatePostgres::open_with(&run_folder().join("cluster"), &options);
        Cluster(server.unwrap_or_else(|error| panic!("{error}")))
    })
}

/// The URL of a new, empty database that no other test has.
pub async fn empty_database() -> String {
    create_database("").await
}

/// The URL of a new copy of a database to which nobody is connected.
pub async fn database_from(template: &str) -> String {
    create_database(&format!("TEMPLATE {template}")).await
}

async fn create_database(from: &str) -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let name = format!("test_{}", MADE.fetch_add(1, Ordering::Relaxed));
    let cluster = cluster();
    let mut connection = PgConnection::connect(&cluster.url_for("permits")).await.expect("the test cluster");
    let statement = format!("CREATE DATABASE {name} {from}");
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.expect("a new database");
    connection.close().await.expect("the end of the connection");
    cluster.url_for(&name)
}
