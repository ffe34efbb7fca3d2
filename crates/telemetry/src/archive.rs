/// The window that an upstream has named for a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowFact {
    pub upstream: String,
    pub model: String,
    pub tokens: u64,
}

/// The state of the archive's queue: records waiting, and records by outcome so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArchiveCounts {
    pub queued: u64,
    pub written: u64,
    pub dropped: u64,
    pub rejected: u64,
    pub connected: bool,
}
