//! Which conversation a request belongs to, and whose.

use crate::reply::Refusal;
use http::HeaderMap;
use tidegate_config::Conversation;
use tidegate_engine::Digest;

/// A conversation, named for the client and keyed for us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) key: ConversationKey,
    /// What the client calls it, or a name made from what it begins with.
    pub(crate) name: String,
    /// Stands for the tenant; says nothing about its credentials.
    pub(crate) tenant: String,
}

/// Where the memory of a conversation is kept. Equal names of two tenants have different keys, and nobody can compute the
/// key of another tenant's conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ConversationKey(pub(crate) [u8; 32]);

/// The secret under which tenants and conversations are hashed.
#[derive(Clone)]
pub(crate) struct Secret([u8; 32]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// One for this process: its memories do not outlive it.
    pub(crate) fn random() -> Secret {
        use std::hash::BuildHasher;
        let mut secret = [0; 32];
        for chunk in secret.chunks_mut(8) {
            let word = std::collections::hash_map::RandomState::new().hash_one("tidegate");
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        Secret(secret)
    }
}

const MAX_LENGTH: usize = 128;

/// The conversation that a request continues: the one that its header names, else the one of this tenant that begins with
/// the same message (`opening`). None for a request without either.
///
/// A name that cannot be one is refused rather than ignored: two conversations taken for one, or one for two, is what a
/// client notices last.
pub(crate) fn identify(
    headers: &HeaderMap,
    settings: &Conversation,
    secret: &Secret,
    opening: impl FnOnce() -> Option<Digest>,
) -> Result<Option<Identity>, Refusal> {
    let tenant = headers.get(&settings.tenant).map_or(&b""[..], |value| value.as_bytes());
    let key = |kind: &[u8], id: &[u8]| {
        let mut hasher = blake3::Hasher::new_keyed(&secret.0);
        // Lengths first, so that no tenant's name can be continued into another's conversation.
        for part in [kind, tenant, id] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        ConversationKey(*hasher.finalize().as_bytes())
    };
    let owner = || short(&key(b"tenant", b""));
    if let Some(name) = named(headers, settings)? {
        let key = key(b"named", name.as_bytes());
        return Ok(Some(Identity { key, name: name.to_owned(), tenant: owner() }));
    }
    Ok(opening().map(|opening| {
        let key = key(b"opening", &opening.0);
        Identity { key, name: format!("auto-{}", short(&key)), tenant: owner() }
    }))
}

fn short(key: &ConversationKey) -> String {
    key.0[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn named<'a>(headers: &'a HeaderMap, settings: &Conversation) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(&settings.header).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._:/-".contains(byte);
    let id = value.to_str().ok().filter(|id| {
        (1..=MAX_LENGTH).contains(&id.len()) && id.as_bytes().iter().all(allowed) && values.next().is_none()
    });
    id.map(Some).ok_or_else(|| Refusal::ConversationId { header: settings.header.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Conversation {
        Conversation { header: "x-conversation-id".to_owned(), tenant: "authorization".to_owned() }
    }

    fn identified(headers: &[(&'static str, &str)]) -> Result<Option<Identity>, Refusal> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        identify(&map, &settings(), &Secret([1; 32]), || Some(Digest([2; 32])))
    }

    fn key(headers: &[(&'static str, &str)]) -> ConversationKey {
        identified(headers).unwrap().unwrap().key
    }

    #[test]
    fn a_name_is_taken_as_it_is_or_refused() {
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
    fn equal_names_of_two_tenants_are_two_conversations() {
        let of = |tenant: &str, name: &str| key(&[("authorization", tenant), ("x-conversation-id", name)]);
        assert_eq!(of("Bearer a", "x"), of("Bearer a", "x"));
        assert_ne!(of("Bearer a", "x"), of("Bearer b", "x"));
        assert_ne!(of("Bearer a", "x"), of("Bearer a", "y"));
        assert_ne!(of("ab", "c"), of("a", "bc"));
        assert_ne!(key(&[("authorization", "a")]), key(&[("authorization", "b")]));
    }

    #[test]
    fn without_a_name_it_is_known_by_how_it_begins() {
        let auto = identified(&[]).unwrap().unwrap();
        assert!(auto.name.starts_with("auto-") && auto.name.len() == 21, "{}", auto.name);
        let nothing = identify(&HeaderMap::new(), &settings(), &Secret([1; 32]), || None);
        assert_eq!(nothing, Ok(None));
    }
}
