use crate::{OwnRole, chat};
use bytes::Bytes;

/// A message of our own. The instructions stand outside the messages, and no message may be one, so it is always the user's.
pub(crate) fn own_message(_: OwnRole, text: &str) -> Bytes {
    chat::own_message(OwnRole::User, text)
}
