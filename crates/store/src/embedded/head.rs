//! The stored format of a head.

use crate::{Head, StoreError};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Separate from [`Head`], so that a change there does not silently change the format on disk.
#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    labels: Cow<'a, BTreeMap<String, String>>,
    counts: Cow<'a, BTreeMap<String, u64>>,
    first: u64,
    last: u64,
}

pub(super) fn encode(head: &Head) -> Vec<u8> {
    let Head { labels, counts, first, last } = head;
    let stored =
        Stored { labels: Cow::Borrowed(labels), counts: Cow::Borrowed(counts), first: *first, last: *last };
    // Maps with string keys always serialize.
    serde_json::to_vec(&stored).unwrap_or_default()
}

pub(super) fn decode(bytes: &[u8]) -> Result<Head, StoreError> {
    let Stored { labels, counts, first, last } = serde_json::from_slice(bytes)
        .map_err(|error| StoreError::Corrupt(format!("cannot parse the head of a conversation: {error}")))?;
    Ok(Head { labels: labels.into_owned(), counts: counts.into_owned(), first, last })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_decode_as_they_were_encoded() {
        let mut head = Head { first: u64::MAX, ..Head::default() };
        head.add(7, true, &[("tokens", u64::MAX)], vec![("name", "ü\"\n".to_owned())]);
        assert_eq!(decode(&encode(&head)), Ok(head));
        assert!(matches!(decode(b"{}"), Err(StoreError::Corrupt(_))));
    }
}
