//! What goes wrong with an archive, and what that means for the records that wait.

use std::error::Error;
use thiserror::Error;
use tokio_postgres::error::{DbError, SqlState};

/// Why an archive cannot be opened, or is not written to. The texts are for logs; they hold no credentials and nothing
/// of what is archived.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ArchiveError {
    #[error("the archive's URL {0}")]
    Url(String),
    #[error("the archive is opened outside of a runtime")]
    NoRuntime,
    #[error("the archive cannot be reached: {0}")]
    Unreachable(String),
    #[error("the archive did not answer in time")]
    Timeout,
    #[error("the archive refuses us: {0}")]
    Denied(String),
    #[error("the archive takes no writes: {0}")]
    ReadOnly(String),
    #[error("the archive has no room: {0}")]
    Full(String),
    #[error("the archive's tables are not as they should be: {0}")]
    Schema(String),
    #[error("the archive is of a newer version: its schema is {found}, the newest that we know is {known}")]
    Newer { found: i32, known: i32 },
    #[error("the archive's database is encoded as {0}, in which not every message can be written")]
    Encoding(String),
    #[error("the archive refuses what a record says: {0}")]
    Data(String),
    #[error("the archive failed: {0}")]
    Failed(String),
}

impl ArchiveError {
    /// The label for metrics: one of few.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            ArchiveError::Url(_) | ArchiveError::NoRuntime => "archive_misconfigured",
            ArchiveError::Unreachable(_) => "archive_unreachable",
            ArchiveError::Timeout => "archive_timeout",
            ArchiveError::Denied(_) => "archive_denied",
            ArchiveError::ReadOnly(_) => "archive_readonly",
            ArchiveError::Full(_) => "archive_full",
            ArchiveError::Schema(_) => "archive_schema",
            ArchiveError::Newer { .. } => "archive_newer",
            ArchiveError::Encoding(_) => "archive_encoding",
            ArchiveError::Data(_) => "archive_data",
            ArchiveError::Failed(_) => "archive_failed",
        }
    }

    /// Whether trying again is of no use until somebody changes the archive or the program.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, ArchiveError::Newer { .. } | ArchiveError::Encoding(_))
    }
}

impl From<tokio_postgres::Error> for ArchiveError {
    fn from(error: tokio_postgres::Error) -> ArchiveError {
        match error.as_db_error() {
            Some(answer) => refusal(answer),
            None => no_answer(&error),
        }
    }
}

/// What the server's code says. The text of a refusal is passed on only where it is about the server, its tables or our
/// rights: one about a value may repeat it.
fn refusal(answer: &DbError) -> ArchiveError {
    let code = answer.code();
    let text = || format!("{} ({})", answer.message(), code.code());
    match *code {
        SqlState::INSUFFICIENT_PRIVILEGE => ArchiveError::Denied(text()),
        SqlState::READ_ONLY_SQL_TRANSACTION => ArchiveError::ReadOnly(text()),
        SqlState::QUERY_CANCELED | SqlState::LOCK_NOT_AVAILABLE => ArchiveError::Timeout,
        _ => match code.code().get(..2).unwrap_or_default() {
            // A value that does not fit, a constraint, a limit of the server's, or a trigger that somebody has added.
            "22" | "23" | "44" | "54" | "P0" => ArchiveError::Data(data(answer)),
            "28" => ArchiveError::Denied(text()),
            "3D" | "3F" | "42" => ArchiveError::Schema(text()),
            "53" => ArchiveError::Full(text()),
            // Starting up, shutting down, or cut off.
            "08" | "57" => ArchiveError::Unreachable(text()),
            _ => ArchiveError::Failed(format!("SQLSTATE {}", code.code())),
        },
    }
}

fn data(answer: &DbError) -> String {
    let constraint = answer.constraint().map(|name| format!(", constraint `{name}`")).unwrap_or_default();
    format!("SQLSTATE {}{constraint}", answer.code().code())
}

/// The library says what it did, and its cause why that failed.
fn no_answer(error: &tokio_postgres::Error) -> ArchiveError {
    let text = error.to_string();
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    match text.as_str() {
        text if text.starts_with("error serializing") => {
            ArchiveError::Data("it cannot be encoded".to_owned())
        }
        "authentication error" | "invalid configuration" => ArchiveError::Denied(text + &cause),
        _ => ArchiveError::Unreachable(text + &cause),
    }
}
