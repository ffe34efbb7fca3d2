//! Adds the stored history to a request whose client does not resend it. From here on the request is like any other.

use crate::host::heavy::Lane;
use crate::host::held_turn::OpenTurn;
use crate::host::identity::Identity;
use crate::host::shared::Gateway;
use crate::reply::refusal::Refusal;
use crate::transport::overload::Limit;
use bytes::{BufMut, Bytes, BytesMut};
use http::HeaderMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate_store::{Degraded, Log, LoggedTurn, NoTurn, RawMessage, TurnLease};
use tidegate_wire::{MessageFacts, Outline};

/// A request with the whole conversation in it.
#[derive(Debug)]
pub(crate) struct Restored {
    pub(crate) body: Bytes,
    pub(crate) outline: Outline,
    pub(crate) turn: OpenTurn,
}

/// The header by which a client names its attempts at one turn.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Larger histories are joined off the worker.
const INLINE_BYTES: usize = 64 * 1024;

/// Waits for the conversation's turn, for at most `wait`. Whatever is known of the conversation before may have changed by then.
pub(crate) async fn begin_turn(
    gateway: &Gateway,
    identity: &Identity,
    wait: Duration,
) -> Result<TurnLease, Refusal> {
    gateway.conversations.begin_turn(identity.key, wait).await.map_err(|no_turn| match no_turn {
        NoTurn::Busy => Refusal::Busy,
        NoTurn::Unavailable(degraded) => Refusal::History(degraded),
    })
}

/// Reads the history of a conversation whose turn it is.
pub(crate) async fn restore(
    gateway: &Arc<Gateway>,
    identity: &Identity,
    headers: &HeaderMap,
    (body, outline): (Bytes, Outline),
    lease: TurnLease,
    lane: &Lane,
) -> Result<Restored, Refusal> {
    let room = lane.clone();
    let log = gateway.conversations.log(identity.key, Arc::new(move |bytes| room.take(bytes)));
    let log = log.await.map_err(|degraded| match degraded {
        Degraded::NoRoom => Refusal::Overloaded(Limit::Memory),
        degraded => Refusal::History(degraded),
    })?;
    let attempt = Attempt::of(headers);
    let length = body.len() + log.messages().map(|message| message.json.len()).sum::<usize>();
    // A history is many times as long as the request that it is put before.
    if !log.turns.is_empty() && !lane.take(length as u64) {
        return Err(Refusal::Overloaded(Limit::Memory));
    }
    let work = {
        let (gateway, log) = (gateway.clone(), log.clone());
        move || join(&gateway, &log, body, outline, &attempt)
    };
    let joined = if length <= INLINE_BYTES {
        work()
    } else {
        lane.run(length, work).await.map_err(|_| Refusal::Unreadable)?
    }?;
    let Joined { body, outline, request, kept, idempotency } = joined;
    let turn = OpenTurn {
        lease,
        generation: log.generation,
        expected: log.head(),
        parent: log.turns[..kept].last().map(|turn| turn.head),
        restored: log.turns[..kept].iter().map(|turn| turn.messages.len()).sum(),
        request,
        idempotency,
    };
    Ok(Restored { body, outline, turn })
}

/// What the headers say about earlier attempts at the same turn. The count of attempts of the official SDKs is not asked for: they
/// count those that reached no turn, too.
#[derive(Clone, Copy, Debug, Default)]
struct Attempt {
    idempotency: Option<[u8; 32]>,
}

impl Attempt {
    fn of(headers: &HeaderMap) -> Attempt {
        let idempotency = headers.get(IDEMPOTENCY_KEY);
        Attempt { idempotency: idempotency.map(|key| *blake3::hash(key.as_bytes()).as_bytes()) }
    }

    /// Whether this is another attempt at the last turn of the log. People do say the same thing twice, so the same messages are
    /// that only if the client certainly does not have the answer: what it has must not be lost.
    fn repeats(&self, log: &Log, turn: &LoggedTurn, request: &[u8; 32]) -> bool {
        let is_same_key = self.idempotency.is_some() && self.idempotency == turn.idempotency;
        is_same_key || (log.is_undelivered && turn.request == *request)
    }
}

struct Joined {
    body: Bytes,
    outline: Outline,
    /// A hash of the messages that the client sent.
    request: [u8; 32],
    /// The number of turns before this one.
    kept: usize,
    idempotency: Option<[u8; 32]>,
}

fn join(
    gateway: &Gateway,
    log: &Log,
    body: Bytes,
    outline: Outline,
    attempt: &Attempt,
) -> Result<Joined, Refusal> {
    let facts = outline.messages.iter().map(|span| outline.dialect.read_facts(span.of(&body)));
    let sent: Vec<MessageFacts> = facts.collect::<Result<_, _>>().map_err(|_| Refusal::Unreadable)?;
    let new: Vec<&[u8; 32]> =
        sent.iter().filter(|one| !one.role.is_instruction()).map(|one| &one.canonical).collect();
    let (kept, resent) = earlier(log, &new, attempt);
    let request = fingerprint(&new[resent..]);
    let idempotency = attempt.idempotency;
    let has_instructions = sent.first().is_some_and(|one| one.role.is_instruction());
    let instructions = if has_instructions { Vec::new() } else { log.instructions() };
    let restored = &log.turns[..if resent > 0 { 0 } else { kept }];
    if restored.is_empty() && instructions.is_empty() {
        return Ok(Joined { body, outline, request, kept, idempotency });
    }
    let before: Vec<&RawMessage> = restored.iter().flat_map(|turn| turn.in_order()).collect();
    let body = joined(&body, &outline, &sent, &instructions, &before);
    match gateway.reader.outline(outline.dialect, &body) {
        Ok(outline) => Ok(Joined { body, outline, request, kept, idempotency }),
        // Every recorded message was read before, so only the total size can be wrong.
        Err(_) => Err(Refusal::TooLarge { limit: u64::from(u32::MAX) }),
    }
}

/// Returns the number of turns before this one, and how many of their messages the client sends itself: none, or all of them.
fn earlier(log: &Log, new: &[&[u8; 32]], attempt: &Attempt) -> (usize, usize) {
    let known: Vec<&[u8; 32]> =
        log.turns.iter().flat_map(|turn| turn.messages.iter().map(|(hash, _)| hash)).collect();
    let last = log.turns.last();
    let sends_all =
        |known: &[&[u8; 32]]| !known.is_empty() && new.len() > known.len() && new.starts_with(known);
    if sends_all(&known) {
        return (log.turns.len(), known.len());
    }
    let before_last = known.len() - last.map_or(0, |turn| turn.messages.len());
    if let Some(last) = last {
        let resent = if sends_all(&known[..before_last]) { before_last } else { 0 };
        if attempt.repeats(log, last, &fingerprint(&new[resent..])) {
            return (log.turns.len() - 1, resent);
        }
    }
    (log.turns.len(), 0)
}

fn fingerprint(messages: &[&[u8; 32]]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("tidegate turn 1");
    for message in messages {
        hasher.update(&message[..]);
    }
    *hasher.finalize().as_bytes()
}

/// Joins the client's own bytes with the history, which goes between its instructions and what is new.
fn joined(
    body: &[u8],
    outline: &Outline,
    sent: &[MessageFacts],
    instructions: &[&RawMessage],
    before: &[&RawMessage],
) -> Bytes {
    let (array, dialect) = (outline.array.range(), outline.dialect);
    let own = sent.iter().take_while(|one| one.role.is_instruction()).count();
    // In some dialects, a text can stand in place of the messages.
    let is_text = body[array.start] == b'"';
    let text = is_text.then(|| dialect.recorded(Bytes::copy_from_slice(&body[array.clone()])));
    let span = |index: usize| text.as_deref().unwrap_or_else(|| outline.messages[index].of(body));
    let leading = (0..own).map(span).chain(instructions.iter().map(|one| dialect.sent(&one.json)));
    let all =
        leading.chain(before.iter().map(|one| dialect.sent(&one.json))).chain((own..sent.len()).map(span));
    let mut whole =
        BytesMut::with_capacity(body.len() + before.iter().map(|one| one.json.len() + 1).sum::<usize>());
    whole.put_slice(&body[..array.start]);
    whole.put_u8(b'[');
    for (number, message) in all.enumerate() {
        if number > 0 {
            whole.put_u8(b',');
        }
        whole.put_slice(message);
    }
    whole.put_u8(b']');
    whole.put_slice(&body[array.end..]);
    whole.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_store::{MessageId, Standing};
    use tidegate_wire::{Dialect, split};

    fn facts(text: &str) -> (String, MessageFacts) {
        let role = if text.starts_with('a') { "assistant" } else { "user" };
        let json = format!(r#"{{"role":"{role}","content":"{text}"}}"#);
        let facts = Dialect::Chat.read_facts(json.as_bytes()).unwrap();
        (json, facts)
    }

    /// A log with a turn for each question and answer.
    fn logged(texts: &[&str]) -> Log {
        let turn = |texts: &[&str]| {
            let message = |text: &&str| {
                let (json, facts) = facts(text);
                let id = MessageId(facts.canonical);
                let message = RawMessage {
                    id,
                    parent: id,
                    position: 0,
                    at: 0,
                    json: json.into(),
                    standing: Standing::Kept,
                };
                (facts.canonical, message)
            };
            let messages: Vec<_> = texts.iter().map(message).collect();
            let request = fingerprint(&[&messages[0].0]);
            let (parent, head) = (None, messages[1].1.id);
            let idempotency = Some([7; 32]);
            Arc::new(LoggedTurn { parent, head, request, idempotency, instructions: vec![], messages })
        };
        Log { turns: texts.chunks(2).map(turn).collect(), ..Log::default() }
    }

    /// Returns the texts of the restored request.
    fn restored(history: &[&str], sent: &[&str], idempotency: Option<[u8; 32]>) -> Vec<String> {
        restored_from(&logged(history), sent, Attempt { idempotency })
    }

    /// The same if the client does not have the last answer.
    fn restored_undelivered(history: &[&str], sent: &[&str]) -> Vec<String> {
        restored_from(&Log { is_undelivered: true, ..logged(history) }, sent, Attempt::default())
    }

    fn restored_from(log: &Log, sent: &[&str], attempt: Attempt) -> Vec<String> {
        let said: Vec<String> = sent.iter().map(|text| facts(text).0).collect();
        let body = format!(r#"{{"n":1, "messages" : [ {} ],"x":2}}"#, said.join(" , "));
        let outline = split(Dialect::Chat, body.as_bytes()).unwrap();
        let facts: Vec<MessageFacts> = sent.iter().map(|text| facts(text).1).collect();
        let new: Vec<&[u8; 32]> = facts.iter().map(|one| &one.canonical).collect();
        let (kept, resent) = earlier(log, &new, &attempt);
        let turns = &log.turns[..if resent > 0 { 0 } else { kept }];
        let before: Vec<&RawMessage> = turns.iter().flat_map(|turn| turn.in_order()).collect();
        let whole = joined(body.as_bytes(), &outline, &facts, &[], &before);
        let value: serde_json::Value = serde_json::from_slice(&whole).unwrap();
        assert_eq!((&value["n"], &value["x"]), (&1.into(), &2.into()));
        let texts = value["messages"].as_array().unwrap().iter();
        texts.map(|one| one["content"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn new_messages_follow_the_history() {
        assert_eq!(restored(&["u1", "a1"], &["u2"], None), ["u1", "a1", "u2"]);
        assert_eq!(restored(&[], &["u1"], None), ["u1"]);
        // A repeated message that was answered before is a new message.
        assert_eq!(restored(&["u1", "a1"], &["u1"], None), ["u1", "a1", "u1"]);
    }

    #[test]
    fn a_retried_turn_is_not_duplicated() {
        let four = ["u1", "a1", "u2", "a2"];
        assert_eq!(restored_undelivered(&four, &["u2"]), ["u1", "a1", "u2"]);
        assert_eq!(restored_undelivered(&four, &["u1"]), ["u1", "a1", "u2", "a2", "u1"]);
        assert_eq!(restored_undelivered(&[], &["u1"]), ["u1"]);
        assert_eq!(restored(&four, &["u2 again"], Some([7; 32])), ["u1", "a1", "u2 again"]);
        assert_eq!(restored(&["u1", "a1"], &["u1"], Some([8; 32])), ["u1", "a1", "u1"]);
    }

    #[test]
    fn a_client_that_resends_the_history_gets_no_duplicate() {
        assert_eq!(restored(&["u1", "a1"], &["u1", "a1", "u2"], None), ["u1", "a1", "u2"]);
        let resent = ["u1", "a1", "u2"];
        assert_eq!(restored_undelivered(&["u1", "a1", "u2", "a2"], &resent), ["u1", "a1", "u2"]);
    }
}
