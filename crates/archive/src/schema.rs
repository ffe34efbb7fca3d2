//! The tables, and how they came to be. Every change is one file that only adds; the table `tidegate_schema` says which have
//! been made.

use crate::ArchiveError;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, GenericClient};
use tracing::info;

/// In order; the first is version 1.
const MIGRATIONS: [&str; 1] = [include_str!("migrations/1.sql")];

/// The one who migrates holds this advisory lock; the bytes spell the program's name.
const LOCK: i64 = i64::from_be_bytes(*b"tidegate");

/// Makes the tables, or those changes to them that are missing. Where they are as they should be, only the right to insert is
/// needed.
pub(crate) async fn prepare(client: &mut Client) -> Result<(), ArchiveError> {
    check_encoding(client).await?;
    let found = match version(client).await {
        Ok(found) => found,
        // Somebody else keeps the tables, and does not let us read which version they are of.
        Err(ArchiveError::Denied(_)) if has_tables(client).await? => return Ok(()),
        Err(error) => return Err(error),
    };
    if found == Some(newest()) {
        return Ok(());
    }
    match migrate(client).await {
        // Somebody else made the tables, without our list of changes, and does not let us make any.
        Err(ArchiveError::Denied(_)) if found.is_none() && has_tables(client).await? => Ok(()),
        outcome => outcome,
    }
}

async fn migrate(client: &mut Client) -> Result<(), ArchiveError> {
    let transaction = client.transaction().await?;
    // Without it the server tells us about every table that is there already.
    transaction.batch_execute("SET LOCAL client_min_messages = warning").await?;
    transaction.query_typed("SELECT pg_advisory_xact_lock($1)", &[(&LOCK, Type::INT8)]).await?;
    // Another replica may have been quicker. The server asks itself anew whether there is a table only when it is to make one,
    // and else remembers what it found before we waited.
    let create = "CREATE TABLE IF NOT EXISTS tidegate_schema \
                  (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())";
    transaction.batch_execute(create).await?;
    let found = latest(&transaction).await?;
    for (version, migration) in (1..).zip(MIGRATIONS).filter(|(version, _)| *version > found) {
        transaction.batch_execute(migration).await?;
        let note = "INSERT INTO tidegate_schema (version) VALUES ($1)";
        transaction.execute_typed(note, &[(&version, Type::INT4)]).await?;
    }
    transaction.commit().await?;
    if found < newest() {
        info!(from = found, to = newest(), "the archive's tables are up to date");
    }
    Ok(())
}

/// None where there is no list of changes.
async fn version(client: &impl GenericClient) -> Result<Option<i32>, ArchiveError> {
    if exists(client, "tidegate_schema").await? { latest(client).await.map(Some) } else { Ok(None) }
}

/// The last change that was made, or 0. One that we do not know is an error: we cannot know what it asks of us.
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

/// Where our inserts would look for it.
async fn exists(client: &impl GenericClient, table: &str) -> Result<bool, ArchiveError> {
    let sql = "SELECT to_regclass($1) IS NOT NULL";
    Ok(client.query_typed_one(sql, &[(&table, Type::TEXT)]).await?.try_get(0)?)
}

/// A message can hold every character there is. A database that does not care about encodings keeps them as they are.
async fn check_encoding(client: &impl GenericClient) -> Result<(), ArchiveError> {
    let row = client.query_typed_one("SELECT current_setting('server_encoding')", &[]).await?;
    match row.try_get::<_, String>(0)?.as_str() {
        "UTF8" | "SQL_ASCII" => Ok(()),
        other => Err(ArchiveError::Encoding(other.to_owned())),
    }
}

fn newest() -> i32 {
    // There are as many as stand above.
    i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX)
}
