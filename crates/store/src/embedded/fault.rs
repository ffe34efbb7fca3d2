//! What an error of the database means for whoever asked.

use crate::StoreError;
use redb::{CommitError, DatabaseError, StorageError, TableError, TransactionError};
use std::io;
use std::path::Path;

/// Why a database could not be opened, with what to do about it. Nothing is ever repaired by deleting.
pub(super) fn while_opening(file: &Path, error: DatabaseError) -> StoreError {
    let file = file.display();
    match error {
        DatabaseError::DatabaseAlreadyOpen => {
            StoreError::Failed(format!("`{file}` is in use by another process; give each its own directory"))
        }
        DatabaseError::UpgradeRequired(version) => StoreError::Corrupt(format!(
            "`{file}` has the file format {version}, which this version does not read; run the version that wrote \
             it, or move the file away to start afresh"
        )),
        // This is how the database says that the file was never one.
        DatabaseError::Storage(StorageError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
            not_ours(&file.to_string(), &error.to_string())
        }
        DatabaseError::Storage(StorageError::Corrupted(detail)) => StoreError::Corrupt(format!(
            "`{file}` is damaged ({detail}); restore it, or move it away to start afresh"
        )),
        DatabaseError::Storage(StorageError::Io(error)) => {
            from_io(&format!("`{file}` cannot be opened"), &error)
        }
        error => StoreError::Failed(format!("`{file}` cannot be opened: {error}")),
    }
}

/// For a file that holds something else.
pub(super) fn not_ours(file: &str, detail: &str) -> StoreError {
    StoreError::Corrupt(format!(
        "`{file}` is not a database of conversations ({detail}); choose another directory, or move the file away"
    ))
}

/// The error of a file operation, told apart by what an operator has to do.
pub(super) fn from_io(what: &str, error: &io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            StoreError::Full(format!("{what}: {error}"))
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly(format!(
            "{what}: {error}; make it writable for the user that runs this process, or choose another directory"
        )),
        _ => StoreError::Failed(format!("{what}: {error}")),
    }
}

impl From<StorageError> for StoreError {
    fn from(error: StorageError) -> StoreError {
        match error {
            StorageError::Io(error) => from_io("the database", &error),
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
    fn the_reason_tells_what_to_do() {
        let cases = [
            (io::ErrorKind::StorageFull, "store_full"),
            (io::ErrorKind::PermissionDenied, "store_readonly"),
            (io::ErrorKind::ReadOnlyFilesystem, "store_readonly"),
            (io::ErrorKind::BrokenPipe, "store_failed"),
        ];
        for (kind, reason) in cases {
            assert_eq!(StoreError::from(StorageError::Io(kind.into())).reason(), reason);
            let opening =
                while_opening(Path::new("x"), DatabaseError::Storage(StorageError::Io(kind.into())));
            assert_eq!(opening.reason(), reason);
        }
    }

    #[test]
    fn a_format_of_another_version_is_told_apart_from_damage() {
        let newer = while_opening(Path::new("x"), DatabaseError::UpgradeRequired(9)).to_string();
        assert!(newer.contains("file format 9") && newer.contains("move the file away"), "{newer}");
    }
}
