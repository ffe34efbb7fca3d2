//! Converts errors of the database.

use crate::StoreError;
use redb::{CommitError, DatabaseError, StorageError, TableError, TransactionError};
use std::io;
use std::path::Path;

/// Explains why a database could not be opened, and what to do about it. Nothing is ever repaired by deleting.
pub(super) fn open_error(file: &Path, error: DatabaseError) -> StoreError {
    let file = file.display();
    match error {
        DatabaseError::DatabaseAlreadyOpen => {
            StoreError::InUse(format!("`{file}` is in use by another process; give each its own directory"))
        }
        DatabaseError::UpgradeRequired(version) => StoreError::Corrupt(format!(
            "`{file}` has file format {version}, which this version cannot read; run the version that wrote \
             it, or move the file away to start empty"
        )),
        // The library reports this if the file was never a database.
        DatabaseError::Storage(StorageError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
            not_ours(&file.to_string(), &error.to_string())
        }
        DatabaseError::Storage(StorageError::Corrupted(detail)) => StoreError::Corrupt(format!(
            "`{file}` is damaged ({detail}); restore it, or move it away to start empty"
        )),
        DatabaseError::Storage(StorageError::Io(error)) => io_error(&format!("cannot open `{file}`"), &error),
        error => StoreError::Failed(format!("cannot open `{file}`: {error}")),
    }
}

/// The file contains something else.
pub(super) fn not_ours(file: &str, detail: &str) -> StoreError {
    StoreError::Corrupt(format!(
        "`{file}` is not a database of conversations ({detail}); choose another directory, or move the file away"
    ))
}

/// Classifies an I/O error by what an operator has to do about it. `context` says what failed.
pub(super) fn io_error(context: &str, error: &io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            StoreError::Full(format!("{context}: {error}"))
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly(format!(
            "{context}: {error}; make it writable for the user that runs this process, or choose another directory"
        )),
        _ => StoreError::Failed(format!("{context}: {error}")),
    }
}

impl From<StorageError> for StoreError {
    fn from(error: StorageError) -> StoreError {
        match error {
            StorageError::Io(error) => io_error("database I/O failed", &error),
            StorageError::Corrupted(detail) => StoreError::Corrupt(detail),
            error => StoreError::Failed(error.to_string()),
        }
    }
}

impl From<TransactionError> for StoreError {
    fn from(error: TransactionError) -> StoreError {
        match error {
            TransactionError::Storage(error) => error.into(),
            error => StoreError::Failed(error.to_string()),
        }
    }
}

impl From<TableError> for StoreError {
    fn from(error: TableError) -> StoreError {
        match error {
            TableError::Storage(error) => error.into(),
            error => StoreError::Corrupt(error.to_string()),
        }
    }
}

impl From<CommitError> for StoreError {
    fn from(error: CommitError) -> StoreError {
        match error {
            CommitError::Storage(error) => error.into(),
            error => StoreError::Failed(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_errors_are_classified_by_kind() {
        let cases = [
            (io::ErrorKind::StorageFull, "store_full"),
            (io::ErrorKind::PermissionDenied, "store_readonly"),
            (io::ErrorKind::ReadOnlyFilesystem, "store_readonly"),
            (io::ErrorKind::BrokenPipe, "store_failed"),
        ];
        for (kind, reason) in cases {
            assert_eq!(StoreError::from(StorageError::Io(kind.into())).reason(), reason);
            let opening = open_error(Path::new("x"), DatabaseError::Storage(StorageError::Io(kind.into())));
            assert_eq!(opening.reason(), reason);
        }
    }

    #[test]
    fn an_unknown_format_is_distinguished_from_damage() {
        let newer = open_error(Path::new("x"), DatabaseError::UpgradeRequired(9)).to_string();
        assert!(newer.contains("file format 9") && newer.contains("move the file away"), "{newer}");
    }
}
