//! Exclusive leases.

use super::keys::{PARTS, Part, key};
use super::script::{ACQUIRE_LEASE, ACQUIRE_TURN_LEASE, RELEASE_LEASE};
use super::{RedisStore, milliseconds};
use crate::store::Lease;
use crate::{ConversationKey, StoreError};
use std::time::Duration;

/// Which leases a holder may acquire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acquire {
    /// One that is free, or its own.
    Any,
    /// Its own, which is renewed.
    Own,
}

impl RedisStore {
    pub(super) async fn acquire_lease(
        &self,
        conversation: ConversationKey,
        lease: Lease,
        holder: [u8; 16],
        duration: Duration,
        acquire: Acquire,
    ) -> Result<bool, StoreError> {
        let lease_key = key(conversation, part(lease));
        let invocation = match lease {
            Lease::Fold => ACQUIRE_LEASE.on(&[lease_key]),
            Lease::Turn => {
                let keys = PARTS.map(|part| key(conversation, part)).into_iter().chain([lease_key]);
                let keys: Vec<String> = keys.collect();
                ACQUIRE_TURN_LEASE.on(&keys).arg(self.ttl()).arg(self.tombstone_ttl())
            }
        };
        let invocation = invocation.arg(&holder[..]).arg(milliseconds(duration));
        Ok(self.run(&invocation.arg(u8::from(acquire == Acquire::Own))).await? > 0)
    }

    pub(super) async fn release_lease(
        &self,
        conversation: ConversationKey,
        lease: Lease,
        holder: [u8; 16],
    ) -> Result<(), StoreError> {
        let invocation = RELEASE_LEASE.on(&[key(conversation, part(lease))]).arg(&holder[..]);
        self.run(&invocation).await.map(drop)
    }
}

fn part(lease: Lease) -> Part {
    match lease {
        Lease::Fold => Part::FoldLease,
        Lease::Turn => Part::TurnLease,
    }
}
