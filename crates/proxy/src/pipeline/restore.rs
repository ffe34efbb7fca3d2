//! Adds the stored history to a request whose client does not resend it. From here on the request is like any other.

use crate::host::identity::Identity;
use crate::host::shared::Gateway;
use crate::reply::refusal::Refusal;
use bytes::{BufMut, Bytes, BytesMut};
use http::HeaderMap;
use tidegate_store::{Degraded, History, RawMessage};
use tidegate_wire::{Dialect, MessageFacts, Outline};

/// A request with the whole conversation in it.
#[derive(Debug)]
pub(crate) struct Restored {
    pub(crate) body: Bytes,
    pub(crate) outline: Outline,
    /// Why the history may be incomplete.
    pub(crate) degraded: Option<Degraded>,
}

/// The header in which the official SDKs count their attempts.
const RETRY_COUNT: &str = "x-stainless-retry-count";

pub(crate) async fn restore(
    gateway: &Gateway,
    identity: &Identity,
    headers: &HeaderMap,
    body: Bytes,
    outline: Outline,
) -> Result<Restored, Refusal> {
    let (history, degraded) = gateway.conversations.history(identity.key).await;
    let sent: Option<Vec<MessageFacts>> =
        outline.messages.iter().map(|span| outline.dialect.read_facts(span.of(&body)).ok()).collect();
    // The upstream judges what cannot be read.
    let Some(sent) = sent else { return Ok(Restored { body, outline, degraded }) };
    let is_retry = headers.get(RETRY_COUNT).is_some_and(|count| count.as_bytes() != b"0");
    let before = earlier(outline.dialect, &history, &sent, is_retry);
    let has_instructions = sent.iter().any(|one| one.role.is_instruction());
    let instructions = if has_instructions { &[][..] } else { &history.instructions };
    if before.is_empty() && instructions.is_empty() {
        return Ok(Restored { body, outline, degraded });
    }
    let body = joined(&body, &outline, &sent, instructions, before);
    match gateway.reader.outline(outline.dialect, &body) {
        Ok(outline) => Ok(Restored { body, outline, degraded }),
        // Every recorded message was read before, so only the total size can be wrong.
        Err(_) => Err(Refusal::TooLarge { limit: u64::from(u32::MAX) }),
    }
}

/// Returns the part of the history that goes before what the client sends. Messages that end the history unanswered are being sent
/// again, and so are answered ones if the client says that it retries. A client that resends everything gets nothing prepended.
fn earlier<'h>(
    dialect: Dialect,
    history: &'h History,
    sent: &[MessageFacts],
    is_retry: bool,
) -> &'h [RawMessage] {
    let path = &history.messages;
    let new: Vec<&[u8; 32]> =
        sent.iter().filter(|one| !one.role.is_instruction()).map(|one| &one.canonical).collect();
    let known: Vec<Option<MessageFacts>> =
        path.iter().map(|one| dialect.read_facts(&one.json).ok()).collect();
    let is_same = |from: usize| {
        let known = known[from..].iter().map(|one| one.as_ref().map(|one| &one.canonical));
        known.zip(&new).all(|(known, new)| known == Some(*new))
    };
    if new.len() >= path.len() && is_same(0) {
        return &[];
    }
    let again = |end: usize| end.checked_sub(new.len()).filter(|from| !new.is_empty() && is_same(*from));
    if let Some(from) = again(path.len()) {
        return &path[..from];
    }
    let answered = path.len().checked_sub(1).filter(|_| is_retry).and_then(again);
    answered.map_or(path, |from| &path[..from])
}

/// Joins the client's own bytes with the history, which goes between its instructions and what is new.
fn joined(
    body: &[u8],
    outline: &Outline,
    sent: &[MessageFacts],
    instructions: &[RawMessage],
    before: &[RawMessage],
) -> Bytes {
    let array = outline.array.range();
    let own = sent.iter().take_while(|one| one.role.is_instruction()).count();
    let span = |index: usize| outline.messages[index].of(body);
    let leading = (0..own).map(span).chain(instructions.iter().map(|one| &one.json[..]));
    let all = leading.chain(before.iter().map(|one| &one.json[..])).chain((own..sent.len()).map(span));
    let mut whole =
        BytesMut::with_capacity(body.len() + before.iter().map(|one| one.json.len() + 1).sum::<usize>());
    whole.put_slice(&body[..=array.start]);
    for (number, message) in all.enumerate() {
        if number > 0 {
            whole.put_u8(b',');
        }
        whole.put_slice(message);
    }
    whole.put_slice(&body[array.end - 1..]);
    whole.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_store::MessageId;
    use tidegate_wire::split;

    fn recorded(texts: &[&str]) -> History {
        let one = |(index, text): (usize, &&str)| {
            let role = if text.starts_with('a') { "assistant" } else { "user" };
            let json = format!(r#"{{"role":"{role}","content":"{text}"}}"#);
            let id = |index: usize| MessageId([u8::try_from(index).unwrap(); 32]);
            RawMessage { id: id(index + 1), parent: id(index), position: 0, at: 0, json: json.into() }
        };
        History { messages: texts.iter().enumerate().map(one).collect(), instructions: Vec::new() }
    }

    /// Returns the texts of the restored request.
    fn restored(history: &[&str], sent: &[&str], is_retry: bool) -> Vec<String> {
        let history = recorded(history);
        let said: Vec<String> = recorded(sent)
            .messages
            .iter()
            .map(|one| String::from_utf8_lossy(&one.json).into_owned())
            .collect();
        let body = format!(r#"{{"n":1, "messages" : [ {} ],"x":2}}"#, said.join(" , "));
        let outline = split(Dialect::Chat, body.as_bytes()).unwrap();
        let facts: Vec<MessageFacts> = outline
            .messages
            .iter()
            .map(|span| Dialect::Chat.read_facts(span.of(body.as_bytes())).unwrap())
            .collect();
        let before = earlier(Dialect::Chat, &history, &facts, is_retry);
        let whole = joined(body.as_bytes(), &outline, &facts, &[], before);
        let value: serde_json::Value = serde_json::from_slice(&whole).unwrap();
        assert_eq!((&value["n"], &value["x"]), (&1.into(), &2.into()));
        let texts = value["messages"].as_array().unwrap().iter();
        texts.map(|one| one["content"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn new_messages_follow_the_history() {
        assert_eq!(restored(&["u1", "a1"], &["u2"], false), ["u1", "a1", "u2"]);
        assert_eq!(restored(&[], &["u1"], false), ["u1"]);
        // A repeated message that was answered before is a new message.
        assert_eq!(restored(&["u1", "a1"], &["u1"], false), ["u1", "a1", "u1"]);
    }

    #[test]
    fn a_retried_message_is_not_duplicated() {
        assert_eq!(restored(&["u1", "a1", "u2"], &["u2"], false), ["u1", "a1", "u2"]);
        assert_eq!(restored(&["u1", "a1", "u2", "a2"], &["u2"], true), ["u1", "a1", "u2"]);
        assert_eq!(restored(&["u1", "a1", "u2"], &["u2"], true), ["u1", "a1", "u2"]);
        assert_eq!(restored(&["u1"], &["u1"], true), ["u1"]);
    }

    #[test]
    fn a_client_that_resends_the_history_gets_no_duplicate() {
        assert_eq!(restored(&["u1", "a1"], &["u1", "a1", "u2"], false), ["u1", "a1", "u2"]);
    }
}
