//! Errors of the archive, classified by how the writer handles them.

use std::error::Error;
use thiserror::Error;
use tokio_postgres::error::{DbError, SqlState};

/// Why the archive cannot be opened or written. The texts go to logs: they contain neither credentials nor archived content.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ArchiveError {
    #[error("the archive URL {0}")]
    Url(String),
    #[error("the archive must be opened inside a Tokio runtime")]
    NoRuntime,
    #[error("cannot reach the archive: {0}")]
    Unreachable(String),
    #[error("the archive did not answer in time")]
    Timeout,
    #[error("the archive denied access: {0}")]
    Denied(String),
    #[error("the archive is read-only: {0}")]
    ReadOnly(String),
    #[error("the archive is out of resources: {0}")]
    Full(String),
    #[error("the archive has an unexpected schema: {0}")]
    Schema(String),
    #[error("the archive was written by a newer version: its schema is {found}, this version knows {known}")]
    Newer { found: i32, known: i32 },
    #[error("the archive database has encoding {0}, which cannot hold every message; use UTF8")]
    Encoding(String),
    #[error("the archive rejected a record: {0}")]
    Data(String),
    #[error("the archive failed: {0}")]
    Failed(String),
}

impl ArchiveError {
    /// A low-cardinality label for metrics.
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

    /// Whether retrying is pointless until an operator changes the database or upgrades Tidegate.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, ArchiveError::Newer { .. } | ArchiveError::Encoding(_))
    }
}

impl From<tokio_postgres::Error> for ArchiveError {
    fn from(error: tokio_postgres::Error) -> ArchiveError {
        match error.as_db_error() {
            Some(answer) => server_error(answer),
            None => client_error(&error),
        }
    }
}

/// Classifies an error that the server reported by its SQLSTATE. Its message is passed on only if it is about the server, the
/// schema or our privileges: a message about a value may quote the value.
fn server_error(answer: &DbError) -> ArchiveError {
    let code = answer.code();
    let text = || format!("{} ({})", answer.message(), code.code());
    match *code {
        SqlState::INSUFFICIENT_PRIVILEGE => ArchiveError::Denied(text()),
        SqlState::READ_ONLY_SQL_TRANSACTION => ArchiveError::ReadOnly(text()),
        SqlState::QUERY_CANCELED | SqlState::LOCK_NOT_AVAILABLE => ArchiveError::Timeout,
        _ => match code.code().get(..2).unwrap_or_default() {
            // A value that does not fit, a constraint, a server limit, or a trigger that an operator added.
            "22" | "23" | "44" | "54" | "P0" => ArchiveError::Data(state_and_constraint(answer)),
            "28" => ArchiveError::Denied(text()),
            "3D" | "3F" | "42" => ArchiveError::Schema(text()),
            "53" => ArchiveError::Full(text()),
            // Starting up, shutting down, or disconnected.
            "08" | "57" => ArchiveError::Unreachable(text()),
            _ => ArchiveError::Failed(format!("SQLSTATE {}", code.code())),
        },
    }
}

fn state_and_constraint(answer: &DbError) -> String {
    let constraint = answer.constraint().map(|name| format!(", constraint `{name}`")).unwrap_or_default();
    format!("SQLSTATE {}{constraint}", answer.code().code())
}

/// Classifies an error without a server response. The library's text names the failed step; its source says why.
fn client_error(error: &tokio_postgres::Error) -> ArchiveError {
    let text = error.to_string();
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    match text.as_str() {
        text if text.starts_with("error serializing") => {
            ArchiveError::Data("it cannot be serialized".to_owned())
        }
        "authentication error" | "invalid configuration" => ArchiveError::Denied(text + &cause),
        _ => ArchiveError::Unreachable(text + &cause),
    }
}
