use crate::{RecordError, StoreError};

/// Why the store could not be used, or why what it returned is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Degraded {
    /// No server could be reached.
    Unreachable,
    /// An operation did not complete in time.
    Timeout,
    /// The store denied access.
    Denied,
    /// The store refuses writes.
    ReadOnly,
    /// The store has no room for writes.
    Full,
    /// The store is starting up or failing over.
    Loading,
    /// The store returned unexpected data, or a record is damaged.
    Corrupt,
    /// A record was written by a newer version.
    NewerRecord,
    /// A record is encrypted with a key that is not configured.
    NoKey,
    /// What the store returned is larger than the memory that is left.
    NoRoom,
    /// The store failed for another reason.
    Failed,
}

impl Degraded {
    /// A low-cardinality label for headers and metrics.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Degraded::Unreachable => "store_unreachable",
            Degraded::Timeout => "store_timeout",
            Degraded::Denied => "store_denied",
            Degraded::ReadOnly => "store_readonly",
            Degraded::Full => "store_full",
            Degraded::Loading => "store_loading",
            Degraded::Corrupt => "store_corrupt",
            Degraded::NewerRecord => "store_newer_record",
            Degraded::NoKey => "store_no_key",
            Degraded::NoRoom => "store_no_room",
            Degraded::Failed => "store_failed",
        }
    }
}

impl From<&StoreError> for Degraded {
    fn from(error: &StoreError) -> Degraded {
        match error {
            StoreError::Unreachable(_) => Degraded::Unreachable,
            StoreError::Timeout => Degraded::Timeout,
            StoreError::Denied(_) => Degraded::Denied,
            StoreError::ReadOnly(_) => Degraded::ReadOnly,
            StoreError::Full(_) => Degraded::Full,
            StoreError::Loading(_) => Degraded::Loading,
            StoreError::Corrupt(_) => Degraded::Corrupt,
            StoreError::InUse(_) | StoreError::Failed(_) => Degraded::Failed,
        }
    }
}

impl From<RecordError> for Degraded {
    fn from(error: RecordError) -> Degraded {
        match error {
            RecordError::Newer(_) => Degraded::NewerRecord,
            RecordError::Damaged => Degraded::Corrupt,
            RecordError::NoKey => Degraded::NoKey,
            RecordError::NoRoom => Degraded::NoRoom,
        }
    }
}
