//! Schema migrations. Each is one file that only adds to the schema; the table `tidegate_schema` lists the applied ones.

use crate::ArchiveError;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, GenericClient};
use tracing::info;

/// The migrations in order, starting with version 1.
const MIGRATIONS: [&str; 1] = [include_str!("migrations/1.sql")];

/// The advisory lock that is held while migrating.
const LOCK: i64 = i64::from_be_bytes(*b"tidegate");

/// Creates the tables or applies missing migrations. If the schema is current, the `INSERT` privilege is enough.
pub(crate) async fn prepare(client: &mut Client) -> Result<(), ArchiveError> {
    check_encoding(client).await?;
    let found = match recorded_version(client).await {
        Ok(found) => found,
        // Another role owns the tables and does not let us read their version.
        Err(ArchiveError::Denied(_)) if has_tables(client).await? => return Ok(()),
        Err(error) => return Err(error),
    };
    if found == Some(newest()) {
        return Ok(());
    }
    match migrate(client).await {
        // Another role created the tables without `tidegate_schema`, and does not let us migrate.
        Err(ArchiveError::Denied(_)) if found.is_none() && has_tables(client).await? => Ok(()),
        outcome => outcome,
    }
}

async fn migrate(client: &mut Client) -> Result<(), ArchiveError> {
    let transaction = client.transaction().await?;
    // Suppresses a notice for every table that already exists.
    transaction.batch_execute("SET LOCAL client_min_messages = warning").await?;
    transaction.query_typed("SELECT pg_advisory_xact_lock($1)", &[(&LOCK, Type::INT8)]).await?;
    // Another replica may have migrated while we waited for the lock. `CREATE TABLE IF NOT EXISTS` checks the catalog again; a
    // plain query could still see the state from before the wait.
    let create = "CREATE TABLE IF NOT EXISTS tidegate_schema \
                  (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())";
    transaction.batch_execute(create).await?;
    let found = latest(&transaction).await?;
    for (version, migration) in (1..).zip(MIGRATIONS).filter(|(version, _)| *version > found) {
        transaction.batch_execute(migration).await?;
        let record = "INSERT INTO tidegate_schema (version) VALUES ($1)";
        transaction.execute_typed(record, &[(&version, Type::INT4)]).await?;
    }
    transaction.commit().await?;
    if found < newest() {
        info!(from = found, to = newest(), "archive schema migrated");
    }
    Ok(())
}

/// Returns `None` if there is no `tidegate_schema`.
async fn recorded_version(client: &impl GenericClient) -> Result<Option<i32>, ArchiveError> {
    if exists(client, "tidegate_schema").await? { latest(client).await.map(Some) } else { Ok(None) }
}

/// The last applied migration, or 0. A version that we do not know is an error: we cannot know what it requires of writers.
async fn latest(client: &impl GenericClient) -> Result<i32, ArchiveError> {
    let row = client.query_typed_one("SELECT max(version) FROM tidegate_schema", &[]).await?;
    match row.try_get::<_, Option<i32>>(0)?.unwrap_or(0) {
        found if found > newest() => Err(ArchiveError::Newer { found, known: newest() }),
        found => Ok(found),
    }
}

async fn has_tables(client: &impl GenericClient) -> Result<bool, ArchiveError> {
    for table in ["agent_context_turns", "session_summaries", "turn_context_audit"] {
        if !exists(client, table).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Looks a table up on the search path, as an insert does.
async fn exists(client: &impl GenericClient, table: &str) -> Result<bool, ArchiveError> {
    let sql = "SELECT to_regclass($1) IS NOT NULL";
    Ok(client.query_typed_one(sql, &[(&table, Type::TEXT)]).await?.try_get(0)?)
}

/// Rejects databases that cannot store every Unicode character. `SQL_ASCII` stores bytes unchanged.
async fn check_encoding(client: &impl GenericClient) -> Result<(), ArchiveError> {
    let row = client.query_typed_one("SELECT current_setting('server_encoding')", &[]).await?;
    match row.try_get::<_, String>(0)?.as_str() {
        "UTF8" | "SQL_ASCII" => Ok(()),
        other => Err(ArchiveError::Encoding(other.to_owned())),
    }
}

fn newest() -> i32 {
    // The number of migrations always fits.
    i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX)
}
