//! Determines the conversation and the tenant of a request.

use crate::host::heavy::Lane;
use crate::host::identity::{Identity, Secret, derived_name, short};
use crate::host::shared::Gateway;
use crate::host::worker::Worker;
use crate::reply::refusal::Refusal;
use bytes::Bytes;
use http::HeaderMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use tidegate_config::{Anonymous, Conversation};
use tidegate_engine::Digest;
use tidegate_store::{Anchor, Branch, BranchNote, ConversationKey};
use tidegate_wire::{BranchPoints, Outline, Session};

const MAX_LENGTH: usize = 128;

/// Identifies the conversation that a request continues: the one that its header names, else the one of the session that the client
/// names anyway, else the one of this tenant with the same content (`points`). Returns `None` for a request without any of them, and for
/// one whose tenant is not known.
///
/// An invalid name is refused rather than ignored: a client would hardly notice that two conversations were taken for one.
pub(crate) fn identify(
    headers: &HeaderMap,
    settings: &Conversation,
    secret: &Secret,
    access: Access,
    sessions: &[Session],
    points: Option<&BranchPoints>,
) -> Result<Option<Identity>, Refusal> {
    if !is_known(headers, settings, access) {
        return named(headers, settings).map(|_| None);
    }
    let tenant = credentials(headers, settings).unwrap_or_default();
    let key = |kind: &[u8], id: &[u8]| {
        let mut hasher = blake3::Hasher::new_keyed(&secret.0);
        // Each part is preceded by its length, so that no tenant and id can be confused with another pair.
        for part in [kind, tenant, id] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        let mut key = ConversationKey([0; 16]);
        hasher.finalize_xof().fill(&mut key.0);
        key
    };
    let owner = || short(&key(b"tenant", b""));
    if let Some(name) = named(headers, settings)? {
        let key = key(b"named", name.as_bytes());
        return Ok(Some(Identity { key, branch: None, name: name.to_owned(), tenant: owner() }));
    }
    let sent = settings.session_headers.iter().find_map(|name| headers.get(name));
    let fields = &settings.session_fields;
    let noted = sessions.iter().find(|session| fields.iter().any(|field| field == session.member));
    let session = sent.map(|value| value.as_bytes()).filter(|session| !session.is_empty());
    if let Some(session) = session.or(noted.map(|session| session.id.as_bytes())) {
        let key = key(b"session", session);
        let name = std::str::from_utf8(session).ok().filter(|name| is_valid(name));
        let name = name.map_or_else(|| derived_name(&key), str::to_owned);
        return Ok(Some(Identity { key, branch: None, name, tenant: owner() }));
    }
    Ok(points.map(|points| {
        let all =
            |kind: &[u8], digests: &[Digest]| digests.iter().map(|digest| key(kind, &digest.0)).collect();
        let mut own: Vec<ConversationKey> = all(b"branch", &[points.end]);
        own.extend(points.answers.first().map(|answer| key(b"stem", &answer.0)));
        let anchor = |anchor: &tidegate_wire::Anchor| Anchor {
            key: key(b"anchor", &anchor.digest.0),
            distance: anchor.distance,
        };
        let branch = Branch {
            own,
            previous: all(b"branch", &points.before_answers),
            stems: all(b"stem", &points.answers),
            anchors: points.anchors.iter().map(anchor).collect(),
            note: BranchNote::default(),
            is_changed: false,
        };
        let key = key(b"opening", &points.opening.0);
        let name = format!("auto-{}", short(&key));
        Identity { key, branch: Some(Box::new(branch)), name, tenant: owner() }
    }))
}

/// Whether the headers name a conversation that this process has served before.
pub(crate) fn is_under_way(
    gateway: &Gateway,
    headers: &HeaderMap,
    settings: &Conversation,
    access: Access,
) -> bool {
    let identity = identify(headers, settings, &gateway.secret, access, &[], None);
    identity.ok().flatten().is_some_and(|identity| gateway.conversations.is_known(identity.key))
}

/// The digests by which a conversation is recognised. Many new messages are read off the worker.
pub(crate) async fn branch_points(
    gateway: &Arc<Gateway>,
    body: &Bytes,
    outline: &Outline,
    lane: &Lane,
    most_queued: NonZeroU32,
) -> Result<Option<BranchPoints>, Refusal> {
    const MAX_UNREAD: usize = 16 * 1024;
    let unread = gateway.reader.unread_bytes(outline);
    if unread <= MAX_UNREAD {
        return Ok(gateway.reader.branch_points(body, outline));
    }
    // Whose messages are mostly known is under way, whatever it is called.
    let is_under_way = unread < body.len() / 2;
    gateway.heavy.admit(most_queued, is_under_way).map_err(Refusal::Overloaded)?;
    let (gateway, body, outline) = (gateway.clone(), body.clone(), outline.clone());
    let lane = lane.with_progress(is_under_way);
    let reading = lane.run(unread, move || gateway.reader.branch_points(&body, &outline));
    Ok(reading.await.ok().flatten())
}

/// Whether a request says whose it is, or need not.
pub(crate) fn is_known(headers: &HeaderMap, settings: &Conversation, access: Access) -> bool {
    let needs_credentials = access == Access::Remote && settings.anonymous == Anonymous::Loopback;
    !needs_credentials || credentials(headers, settings).is_some()
}

pub(crate) fn credentials<'a>(headers: &'a HeaderMap, settings: &Conversation) -> Option<&'a [u8]> {
    let values = settings.tenant.iter().filter_map(|name| headers.get(name)).map(|value| value.as_bytes());
    values.into_iter().find(|value| is_credential(value))
}

/// A client without a key sends an empty one, or none behind the scheme. All of them would be one tenant.
fn is_credential(value: &[u8]) -> bool {
    const SCHEMES: [&[u8]; 4] = [b"", b"Bearer", b"Basic", b"Token"];
    let value = value.trim_ascii();
    !SCHEMES.iter().any(|scheme| value.eq_ignore_ascii_case(scheme))
}

/// Who can reach the listener of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// This machine only.
    Loopback,
    Remote,
}

impl Access {
    pub(crate) fn of(worker: &Worker) -> Access {
        if worker.is_loopback { Access::Loopback } else { Access::Remote }
    }
}

fn named<'a>(headers: &'a HeaderMap, settings: &Conversation) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(&settings.header).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let id = value.to_str().ok().filter(|id| is_valid(id) && values.next().is_none());
    id.map(Some).ok_or_else(|| Refusal::ConversationId { header: settings.header.clone() })
}

fn is_valid(id: &str) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._:/-".contains(byte);
    (1..=MAX_LENGTH).contains(&id.len()) && id.as_bytes().iter().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::Config;
    use std::time::Duration;

    fn settings() -> Conversation {
        Conversation {
            header: "x-conversation-id".to_owned(),
            session_headers: vec!["session-id".to_owned()],
            session_fields: vec!["metadata".to_owned(), "prompt_cache_key".to_owned()],
            tenant: vec!["authorization".to_owned(), "api-key".to_owned()],
            anonymous: Anonymous::Loopback,
            secret_env: String::new(),
            turn_timeout: Duration::ZERO,
        }
    }

    fn points() -> BranchPoints {
        let digest = Digest([2; 32]);
        BranchPoints {
            opening: digest,
            end: digest,
            before_answers: vec![],
            answers: vec![],
            anchors: vec![],
        }
    }

    fn noted() -> Vec<Session> {
        let noted = [("session_id", "not asked for"), ("metadata", "noted"), ("prompt_cache_key", "cache")];
        noted.map(|(member, id)| Session { member, id: id.to_owned() }).to_vec()
    }

    fn identified(headers: &[(&'static str, &str)]) -> Result<Option<Identity>, Refusal> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        identify(&map, &settings(), &Secret::new(None), Access::Loopback, &noted(), Some(&points()))
    }

    fn key(headers: &[(&'static str, &str)]) -> ConversationKey {
        identified(headers).unwrap().unwrap().key
    }

    #[test]
    fn a_valid_name_is_used_unchanged_and_any_other_refused() {
        let longest = "a".repeat(128);
        for name in ["team/a:1_b.C-2", &longest] {
            assert_eq!(identified(&[("x-conversation-id", name)]).unwrap().unwrap().name, name);
        }
        for bad in ["", "a b", "ü", "a\tb", "{x}", &"a".repeat(129)] {
            assert!(identified(&[("x-conversation-id", bad)]).is_err(), "{bad:?}");
        }
        assert!(identified(&[("x-conversation-id", "a"), ("x-conversation-id", "b")]).is_err());
    }

    #[test]
    fn tenants_do_not_share_conversations_of_the_same_name() {
        let of = |tenant: &str, name: &str| key(&[("authorization", tenant), ("x-conversation-id", name)]);
        assert_eq!(of("Bearer a", "x"), of("Bearer a", "x"));
        assert_ne!(of("Bearer a", "x"), of("Bearer b", "x"));
        assert_ne!(of("Bearer a", "x"), of("Bearer a", "y"));
        assert_ne!(of("ab", "c"), of("a", "bc"));
        assert_ne!(key(&[("authorization", "a")]), key(&[("authorization", "b")]));
    }

    #[test]
    fn an_unnamed_conversation_is_identified_by_its_first_message() {
        let auto = |headers: &HeaderMap, access| {
            identify(headers, &settings(), &Secret::new(None), access, &[], Some(&points()))
        };
        assert_eq!(auto(&HeaderMap::new(), Access::Remote), Ok(None), "nobody knows whose it is");
        let auto = auto(&HeaderMap::new(), Access::Loopback).unwrap().unwrap();
        assert!(auto.name.starts_with("auto-") && auto.name.len() == 21, "{}", auto.name);
        let nothing =
            identify(&HeaderMap::new(), &settings(), &Secret::new(None), Access::Loopback, &[], None);
        assert_eq!(nothing, Ok(None));
    }

    #[test]
    fn a_session_id_comes_before_the_content() {
        let session = key(&[("session-id", "s1")]);
        assert_eq!(identified(&[("session-id", "s1")]).unwrap().unwrap().name, "s1");
        assert_ne!(session, key(&[("session-id", "s2")]));
        assert_ne!(session, key(&[("x-conversation-id", "s1")]));
        assert_eq!(
            key(&[("x-conversation-id", "c"), ("session-id", "s1")]),
            key(&[("x-conversation-id", "c")])
        );
        for headers in [&[][..], &[("session-id", "")]] {
            assert_eq!(identified(headers).unwrap().unwrap().name, "noted");
        }
        let odd = identified(&[("session-id", "{\"id\": 1}")]).unwrap().unwrap().name;
        assert!(odd.starts_with("session-"), "{odd}");
    }

    #[test]
    fn the_first_credential_that_is_present_names_the_tenant() {
        let of = |headers: &[(&'static str, &str)]| key(&[headers, &[("x-conversation-id", "c")]].concat());
        assert_ne!(of(&[("api-key", "AAAA")]), of(&[("api-key", "BBBB")]));
        assert_ne!(of(&[("api-key", "AAAA")]), of(&[]));
        assert_eq!(of(&[("authorization", "a"), ("api-key", "AAAA")]), of(&[("authorization", "a")]));
    }

    #[test]
    fn an_empty_credential_names_nobody() {
        for empty in ["", " ", "Bearer", "bearer ", "Basic "] {
            let sent = [("authorization", empty), ("x-conversation-id", "c")];
            let headers: HeaderMap = sent
                .iter()
                .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()))
                .collect();
            assert!(!is_known(&headers, &settings(), Access::Remote), "{empty:?}");
            let keyed = key(&[("authorization", empty), ("api-key", "AAAA"), ("x-conversation-id", "c")]);
            assert_eq!(keyed, key(&[("api-key", "AAAA"), ("x-conversation-id", "c")]), "{empty:?}");
        }
    }

    proptest! {
        #![proptest_config(Config::with_cases(100_000))]

        /// Keys are equal exactly if tenants and names are, even if one is a prefix of the other or the boundary between tenant and
        /// name moves.
        #[test]
        fn keys_are_equal_only_for_equal_tenants_and_names(tenants: (u16, u16), names: (u64, u64), cut in 1usize..4) {
            let key = |tenant: &str, name: &str| {
                let mut map = HeaderMap::new();
                map.insert("authorization", tenant.parse().unwrap());
                map.insert("x-conversation-id", name.parse().unwrap());
                let secret = Secret::new(Some("s"));
                identify(&map, &settings(), &secret, Access::Remote, &[], None).unwrap().unwrap().key
            };
            // Short, so that equal ones and prefixes of each other occur.
            let written = |number: u64| format!("{number:x}");
            let (one, other) = (written(u64::from(tenants.0 % 300)), written(u64::from(tenants.1 % 300)));
            let (name, another) = (written(names.0 >> (names.0 % 60)), written(names.1 >> (names.1 % 60)));
            prop_assert_eq!(key(&one, &name) == key(&other, &name), one == other);
            prop_assert_eq!(key(&one, &name) == key(&one, &another), name == another);
            if let Some((moved, rest)) = name.split_at_checked(cut).filter(|(_, rest)| !rest.is_empty()) {
                prop_assert_ne!(key(&format!("{one}{moved}"), rest), key(&one, &name));
            }
        }
    }
}
