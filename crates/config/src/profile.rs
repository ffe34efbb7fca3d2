use crate::report::Report;
use crate::tree::{self, Node, Value};
use crate::value::{self, InvalidValue};
use crate::{Origin, Source};

/// The built-in profiles: named sets of settings, one layer below `[context]`.
const PROFILES: [(&str, &str); 6] = [
    ("budgeted-chat", include_str!("profiles/budgeted-chat.toml")),
    ("agent", include_str!("profiles/agent.toml")),
    ("story", include_str!("profiles/story.toml")),
    ("assistant", include_str!("profiles/assistant.toml")),
    ("rolling-memory", include_str!("profiles/rolling-memory.toml")),
    ("coding-agent", include_str!("profiles/coding-agent.toml")),
];

/// Parses the name of a profile.
pub(crate) fn name(node: &Node) -> Result<String, InvalidValue> {
    let names: Vec<&str> = PROFILES.iter().map(|(name, _)| *name).collect();
    value::one_of(node, &names).map(str::to_owned)
}

/// Returns the layer of the profile that the topmost of these layers names, or `None` if there is no such profile.
pub(crate) fn layer<'a>(layers: impl DoubleEndedIterator<Item = &'a Node>) -> Option<Node> {
    let named = layers.rev().find_map(|layer| layer.get("profile"))?;
    let name = name(named).ok()?;
    let (_, text) = PROFILES.iter().find(|(known, _)| *known == name)?;
    // A test checks that every built-in profile is valid.
    let root = tree::parse(&Source::new(name.as_str(), *text), &|_| None, &Report::default()).ok()?;
    Some(rebased(root, "context", &Origin::Profile(name)))
}

/// Whether any value of a profile is left in the merged layers.
pub(crate) fn shows(profile: &Node, merged: &Node) -> bool {
    match (&profile.value, &merged.value) {
        (Value::Table(own), Value::Table(_)) => {
            own.iter().any(|(key, own)| merged.get(key).is_some_and(|merged| shows(own, merged)))
        }
        _ => merged.origin == profile.origin,
    }
}

/// Changes the path and the origin of a value and its parts.
fn rebased(node: Node, path: &str, origin: &Origin) -> Node {
    let value = match node.value {
        Value::Table(entries) => {
            let entries = entries.into_iter().map(|(key, entry)| {
                let path = tree::join(path, &key);
                (key, rebased(entry, &path, origin))
            });
            Value::Table(entries.collect())
        }
        value => value,
    };
    Node { value, path: path.to_owned(), origin: origin.clone(), ..node }
}

#[cfg(test)]
mod tests {
    use crate::tests::loaded;

    #[test]
    fn every_profile_is_valid_and_is_the_origin_of_its_values() {
        for (name, _) in super::PROFILES {
            let settings = loaded(&format!("[context]\nprofile = \"{name}\"\n"));
            let origin = format!("profile {name}");
            let from_it = settings.resolved.iter().filter(|value| value.origin.to_string() == origin).count();
            assert!(from_it >= 8, "{name}: {from_it}");
            assert_eq!(settings.routes[0].context.profile.as_deref(), Some(name));
        }
    }
}
