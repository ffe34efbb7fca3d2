//! Hosts the turns of the context crate: the store, summarizers, background work, and what all workers share.

pub(crate) mod archive;
pub(crate) mod cache_sizes;
pub(crate) mod calibrations;
pub(crate) mod drive;
pub(crate) mod fold;
pub(crate) mod heavy;
pub(crate) mod held_turn;
pub(crate) mod identity;
pub(crate) mod recalls;
pub(crate) mod saved_fold;
pub(crate) mod shared;
pub(crate) mod snapshot;
pub(crate) mod summarize;
pub(crate) mod summary_limits;
pub(crate) mod timeline;
pub(crate) mod turn_log;
pub(crate) mod windows;
pub(crate) mod worker;
