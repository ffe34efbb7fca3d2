use super::TEXT_PART;
use crate::chat::with_part;
use bytes::Bytes;

/// A message of our own with a cache marker, which needs a part to stand in.
pub(crate) fn with_breakpoint(own: &Bytes, marker: &[u8]) -> Bytes {
    with_part(own, marker, &TEXT_PART)
}
