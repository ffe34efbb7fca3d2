//! Storage of conversations.
//!
//! [`Store`] is the interface, implemented in memory ([`MemoryStore`]), in a directory ([`EmbeddedStore`]) and in Redis
//! ([`RedisStore`]). Entries are added under unique names and never changed, so that processes can share a store without locks.
//! Only making a summary, which costs money, takes a lease. [`Conversations`] is what the proxy uses: it gives every operation a
//! deadline, skips a store that is down, and serves from a local cache meanwhile.
//!
//! This crate makes no decisions about conversations, and never puts their content into a log line or an error.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use std::{sync::Arc, time::Duration};
//! use tidegate_engine::{Digest, Timestamp, Waypoint};
//! use tidegate_store::{ConversationKey, Conversations, Entries, MemoryStore, Options};
//!
//! let ttl = Duration::from_secs(60);
//! let store = Arc::new(MemoryStore::new(ttl));
//! let options = Options { timeout: Duration::from_millis(250), ttl, raw: true, keyring: None };
//! let conversations = Conversations::new(store, options);
//! let key = ConversationKey([1; 16]);
//! let waypoint = Waypoint { end: Digest([2; 32]), at: Timestamp(5), ..Waypoint::default() };
//! conversations.journal(key, Entries { waypoint: Some(waypoint.clone()), ..Entries::default() }).await.unwrap();
//! assert_eq!(conversations.recall(key).await.memory.waypoints(), [waypoint]);
//! # }
//! ```

mod conversations;
mod degraded;
mod embedded;
mod evictions;
mod exchanges;
mod facts;
mod head;
mod health;
mod key;
mod leases;
mod local_cache;
mod memory;
mod recalled;
mod record;
mod redis;
mod seal;
mod store;

pub use conversations::{
    Anchor, Branch, BranchNote, BranchState, Conversations, Entries, FoldLease, History, Log, LogRoom,
    NewTurn, NoTurn, NotKept, Options, Pinned, Records, Timeline, TurnLease,
};
pub use degraded::Degraded;
pub use embedded::EmbeddedStore;
pub use exchanges::ExchangeStore;
pub use facts::FactStore;
pub use head::Head;
pub use key::{ConversationKey, InvalidKey};
pub use memory::{Clock, MemoryStore, wall_clock};
pub use recalled::Recalled;
pub use record::{LoggedTurn, RawMessage, RecordError, Room, Standing, StoredFold};
pub use redis::RedisStore;
pub use seal::{InvalidKeyring, Keyring};
pub use store::{
    Append, Appended, Delivery, FOLDS, FoldWritten, Generation, Journal, Lease, Listing, LogRead, MessageId,
    Recollection, Store, StoreError, StoreFuture, StoreSize, Turn, WAYPOINTS, Written,
};
