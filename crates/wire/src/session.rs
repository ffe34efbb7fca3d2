use crate::Unreadable;
use crate::cursor::Value;
use serde::Deserialize;
use std::borrow::Cow;

/// A name by which a client groups its requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The member of the body that it comes from.
    pub member: &'static str,
    /// Any text but the empty one.
    pub id: String,
}

/// The members of `metadata` that name a session. If several are there, the first of this list counts.
const NAMES: [&str; 4] = ["session_id", "litellm_session_id", "conversation_id", "thread_id"];

/// The session that a client's `metadata` names.
pub(crate) fn of_metadata(metadata: Value<'_>) -> Result<Option<String>, Unreadable> {
    let mut found: [Option<String>; NAMES.len() + 1] = Default::default();
    metadata.members_of_object(|key, value| {
        if let Some(at) = NAMES.iter().position(|name| *name == key) {
            found[at] = value.text()?.filter(|id| !id.is_empty()).map(Cow::into_owned);
        } else if key == "user_id" {
            found[NAMES.len()] = of_user(value)?;
        }
        Ok(())
    })?;
    Ok(found.into_iter().flatten().next())
}

/// Claude Code notes its session beside the user: in JSON, which may be written as a text, or behind `_session_`.
fn of_user(value: Value<'_>) -> Result<Option<String>, Unreadable> {
    #[derive(Deserialize)]
    struct User {
        session_id: String,
    }
    let text = value.text()?;
    let json = text.as_deref().map_or(value.raw(), str::as_bytes);
    if json.first() == Some(&b'{') {
        let user = serde_json::from_slice::<User>(json).ok();
        return Ok(user.map(|user| user.session_id).filter(|id| !id.is_empty()));
    }
    let named = text.as_deref().filter(|user| user.starts_with("user_"));
    let id = named.and_then(|user| user.rsplit_once("_session_")).map(|(_, id)| id);
    Ok(id.filter(|id| !id.is_empty()).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use crate::{Dialect, Session, split};

    fn sessions(envelope: &str) -> Vec<(&'static str, String)> {
        let body = format!("{{\"messages\":[]{envelope}}}");
        let sessions = split(Dialect::Chat, body.as_bytes()).unwrap().sessions;
        sessions.into_iter().map(|Session { member, id }| (member, id)).collect()
    }

    #[track_caller]
    fn check(envelope: &str, expected: &[(&'static str, &str)]) {
        let sessions = sessions(envelope);
        let sessions: Vec<(&str, &str)> =
            sessions.iter().map(|(member, id)| (*member, id.as_str())).collect();
        assert_eq!(sessions, expected, "{envelope}");
    }

    #[test]
    fn sessions_are_in_the_order_of_the_table_whatever_their_order_in_the_body() {
        let all = r#","prompt_cache_key":"k","metadata":{"session_id":"m"},"litellm_session_id":"l","session_id":"s""#;
        check(
            all,
            &[("session_id", "s"), ("litellm_session_id", "l"), ("metadata", "m"), ("prompt_cache_key", "k")],
        );
    }

    #[test]
    fn metadata_names_a_session_in_several_ways() {
        let names =
            |metadata: &str, id: &str| check(&format!(",\"metadata\":{metadata}"), &[("metadata", id)]);
        names(r#"{"session_id":"a"}"#, "a");
        names(r#"{"thread_id":"t","conversation_id":"c"}"#, "c");
        names(r#"{"thread_id":"t","user_id":"user_1_account__session_s"}"#, "t");
        names(r#"{"user_id":"user_0f_account_9_session_3b2c-1"}"#, "3b2c-1");
        names(r#"{"user_id":"{\"device_id\":\"d\",\"session_id\":\"3b2c-2\"}"}"#, "3b2c-2");
        names(r#"{"user_id":{"session_id":"3b2c-3"}}"#, "3b2c-3");
        names(r#"{"session_id":"\u0061\n"}"#, "a\n");
    }

    #[test]
    fn anything_else_names_none() {
        for metadata in [
            "null",
            "[]",
            "\"session_id\"",
            "{}",
            r#"{"session_id":""}"#,
            r#"{"session_id":7}"#,
            r#"{"session_id":{"session_id":"x"}}"#,
            r#"{"user_id":"ada"}"#,
            r#"{"user_id":"my_session_1"}"#,
            r#"{"user_id":"user_1_session_"}"#,
            r#"{"user_id":"{broken"}"#,
            r#"{"user_id":"{\"session_id\":7}"}"#,
            r#"{"user_id":["user_1_session_2"]}"#,
        ] {
            check(&format!(",\"metadata\":{metadata}"), &[]);
        }
        check(r#","prompt_cache_key":"","session_id":null"#, &[]);
    }

    #[test]
    fn broken_metadata_is_no_json() {
        for metadata in [r#"{"session_id":"a}"#, r#"{"a":}"#, r#"{"user_id":{"a":}}"#, "{\"a\":\"\\x\"}"] {
            let body = format!("{{\"messages\":[],\"metadata\":{metadata}}}");
            assert!(split(Dialect::Chat, body.as_bytes()).is_err(), "{metadata}");
        }
    }
}
