//! What this process counts in each minute, told to the store, and what other processes have told: so the overview survives a restart,
//! and has the figures of all processes that share a store.
//!
//! There is a topic of facts for each minute, with a fact for each process. Nothing of this is on the path of a request. A store that
//! fails delays it: what could not be written or read is tried again with the next round.

use crate::history::{COARSE_STEP, COARSE_STEPS, History};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tidegate_store::{Conversations, Degraded, wall_clock};
use tidegate_telemetry::{ModelTally, decode_tallies, encode_tallies};

/// How often figures are written and read.
pub(crate) const SHARE_INTERVAL: Duration = Duration::from_secs(5);

/// The minutes that other processes may still be counting in, the current one included.
const UNSETTLED: u64 = 3;

/// The maximum size of what is read at once, so that figures of very many processes do not fill the memory.
const MAX_BYTES: usize = 64 << 20;

/// The figures of this process and of the others, on their way to and from the store.
#[derive(Debug)]
pub(crate) struct SharedHistory {
    /// Unique to this process: after a restart, it is another one.
    process: String,
    /// The newest minute that was written.
    saved: u64,
    /// The start of the oldest minute that was read; `None` before the first.
    read_from: Option<u64>,
    bytes: usize,
}

impl SharedHistory {
    pub(crate) fn new() -> SharedHistory {
        // The state of the hasher is random.
        let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), wall_clock());
        SharedHistory { process: format!("{random:016x}"), saved: 0, read_from: None, bytes: 0 }
    }

    /// Writes what is new here, and reads what is new elsewhere.
    pub(crate) async fn exchange(&mut self, history: &History, conversations: &Arc<Conversations>) {
        // A store that fails is reported where requests use it.
        let _ = self.save(history, conversations).await;
        let _ = self.read(history, conversations).await;
    }

    /// Writes the minutes that have changed.
    pub(crate) async fn save(
        &mut self,
        history: &History,
        conversations: &Arc<Conversations>,
    ) -> Result<(), Degraded> {
        let mut unsaved = history.take_unsaved().into_iter();
        while let Some((minute, tallies)) = unsaved.next() {
            let fact = Bytes::from(encode_tallies(&tallies));
            if let Err(degraded) = conversations.publish(&topic(minute), &self.process, fact).await {
                history.keep_unsaved(std::iter::once(minute).chain(unsaved.map(|(minute, _)| minute)));
                return Err(degraded);
            }
            if minute > self.saved {
                self.saved = minute;
                // The overview ends there. Facts expire, but much later, so it does not matter if this fails.
                let oldest = minute.saturating_sub(COARSE_STEP * (COARSE_STEPS + 1));
                let _ = conversations.forget(&topic(oldest)).await;
            }
        }
        Ok(())
    }

    /// Reads the whole day once, the newest minute first, and then the last minutes again and again if others write them.
    async fn read(&mut self, history: &History, conversations: &Arc<Conversations>) -> Result<(), Degraded> {
        let now = wall_clock();
        let current = now - now % COARSE_STEP;
        let first = current.saturating_sub(COARSE_STEP * (COARSE_STEPS - 1));
        if let Some(read_from) = self.read_from {
            if conversations.is_shared() {
                for number in 0..UNSETTLED {
                    self.read_minute(history, conversations, current.saturating_sub(number * COARSE_STEP))
                        .await?;
                }
            }
            if read_from <= first {
                return Ok(());
            }
        }
        let mut minute = self.read_from.map_or(current, |minute| minute.saturating_sub(COARSE_STEP));
        while minute >= first && self.bytes < MAX_BYTES {
            self.read_minute(history, conversations, minute).await?;
            self.read_from = Some(minute);
            minute = minute.saturating_sub(COARSE_STEP);
        }
        self.read_from = Some(first);
        Ok(())
    }

    async fn read_minute(
        &mut self,
        history: &History,
        conversations: &Arc<Conversations>,
        minute: u64,
    ) -> Result<(), Degraded> {
        let facts = conversations.published(&topic(minute)).await?;
        let others = facts.into_iter().filter(|(process, _)| *process != self.process);
        let mut tallies: Vec<ModelTally> = Vec::new();
        for (_, fact) in others {
            self.bytes += fact.len();
            tallies.extend(decode_tallies(&fact).unwrap_or_default());
        }
        if !tallies.is_empty() {
            history.adopt(minute, wall_clock(), tallies);
        }
        Ok(())
    }
}

fn topic(minute: u64) -> String {
    format!("figures:{}", minute / COARSE_STEP)
}
