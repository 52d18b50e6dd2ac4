//! SQL statements of the test harness on PostgreSQL: on one server, or on each node of a Citus cluster.

use std::time::Duration;

/// The environment variable with the addresses of the other nodes, separated by commas, if the PostgreSQL server is the coordinator of a
/// Citus cluster (see `tests/citus.sh`). The harness then distributes the stores of each database over the nodes before a test runs.
const WORKERS: &str = "COUNTERPART_TEST_CITUS_WORKERS";

/// Returns the addresses of the nodes of the cluster apart from the coordinator `admin`. Empty for a single server.
pub fn workers() -> Vec<String> {
    let workers = std::env::var_os(WORKERS).unwrap_or_default();
    workers.to_string_lossy().split(',').filter(|url| !url.is_empty()).map(str::to_owned).collect()
}

/// Executes a statement on the PostgreSQL server `admin` and on the other nodes of its cluster.
pub fn execute_on_nodes(admin: &str, statement: &str) {
    workers().iter().map(String::as_str).chain([admin]).for_each(|node| execute(node, statement));
}

/// Joins the new databases with this name, one on each node, into a cluster.
pub fn make_cluster(admin: &str, name: &str) {
    execute_on_databases(admin, name, "create extension citus");
    let place = |url: &str| {
        let address = url.rsplit('@').next().and_then(|rest| rest.split('/').next()).unwrap_or_default().to_owned();
        address.split_once(':').map(|(host, port)| format!("('{host}', {port})")).expect("a node's address has a host and a port")
    };
    execute(&on_database(admin, name), &format!("select citus_set_coordinator_host{}", place(admin)));
    for worker in workers() {
        let add = format!("select citus_add_node{}", place(&worker));
        // Citus sometimes cannot connect to a worker while other tests create databases on it.
        let is_added = (0..20).any(|_| {
            let outcome = run_on(&on_database(admin, name), async |connection| {
                sea_orm::ConnectionTrait::execute_unprepared(&connection, &add).await?;
                connection.close().await
            });
            outcome.inspect_err(|_| std::thread::sleep(Duration::from_millis(500))).is_ok()
        });
        assert!(is_added, "{add} failed 20 times");
    }
}

/// Executes a statement in the database with this name on each node.
fn execute_on_databases(admin: &str, name: &str, statement: &str) {
    workers().iter().map(String::as_str).chain([admin]).for_each(|node| execute(&on_database(node, name), statement));
}

/// Connects to a database and executes a statement.
pub fn execute(url: &str, statement: &str) {
    run_on(url, async |connection| {
        sea_orm::ConnectionTrait::execute_unprepared(&connection, statement).await?;
        connection.close().await
    })
    .unwrap_or_else(|error| panic!("{statement}: {error}"));
}

/// Connects to a database and does `work` on the connection.
pub fn run_on(url: &str, work: impl AsyncFnOnce(sea_orm::DatabaseConnection) -> Result<(), sea_orm::DbErr>) -> Result<(), sea_orm::DbErr> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { work(sea_orm::Database::connect(url).await.expect("the database can be reached")).await })
}

/// Returns the address of the database `name` on the server of `url`.
pub fn on_database(url: &str, name: &str) -> String {
    let (address, options) = url.split_once('?').map_or((url, None), |(address, options)| (address, Some(options)));
    let start = address.find("://").map_or(0, |at| at + 3);
    let server = address[start..].find('/').map_or(address, |at| &address[..start + at]);
    format!("{server}/{name}{}", options.map(|options| format!("?{options}")).unwrap_or_default())
}
