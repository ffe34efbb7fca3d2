//! Which conversation a request belongs to, and whose.

use crate::reply::Refusal;
use http::HeaderMap;
use tidegate_config::Conversation;

/// A conversation's name as the client gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConversationId(String);

const MAX_LENGTH: usize = 128;

impl ConversationId {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The conversation that the client names, if it names one. A name that cannot be one is refused rather than ignored: two
/// conversations taken for one, or one for two, is what a client notices last.
pub(crate) fn identify(headers: &HeaderMap, settings: &Conversation) -> Result<Option<ConversationId>, Refusal> {
    let mut values = headers.get_all(&settings.header).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._:/-".contains(byte);
    let id = value.to_str().ok().filter(|id| {
        (1..=MAX_LENGTH).contains(&id.len()) && id.as_bytes().iter().all(allowed) && values.next().is_none()
    });
    match id {
        Some(id) => Ok(Some(ConversationId(id.to_owned()))),
        None => Err(Refusal::ConversationId { header: settings.header.clone() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identified(values: &[&str]) -> Result<Option<String>, Refusal> {
        let settings =
            Conversation { header: "x-conversation-id".to_owned(), tenant: "authorization".to_owned() };
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("x-conversation-id", value.parse().unwrap());
        }
        Ok(identify(&headers, &settings)?.map(|id| id.as_str().to_owned()))
    }

    #[test]
    fn a_name_is_taken_as_it_is_or_refused() {
        assert_eq!(identified(&[]), Ok(None));
        assert_eq!(identified(&["team/a:1_b.C-2"]), Ok(Some("team/a:1_b.C-2".to_owned())));
        let longest = "a".repeat(128);
        assert_eq!(identified(&[&longest]), Ok(Some(longest.clone())));
        for bad in ["", "a b", "ü", "a\tb", "{x}", &"a".repeat(129)] {
            assert!(identified(&[bad]).is_err(), "{bad:?}");
        }
        assert!(identified(&["a", "b"]).is_err());
    }
}
