use crate::report::Report;
use crate::tree::{self, Node, Value};
use crate::value::{self, Wrong};
use crate::{Origin, Source};

/// The built-in profiles: named sets of settings below `[context]`.
const PROFILES: [(&str, &str); 5] = [
    ("budgeted-chat", include_str!("profiles/budgeted-chat.toml")),
    ("agent", include_str!("profiles/agent.toml")),
    ("story", include_str!("profiles/story.toml")),
    ("assistant", include_str!("profiles/assistant.toml")),
    ("rolling-memory", include_str!("profiles/rolling-memory.toml")),
];

/// The name of a profile that there is.
pub(crate) fn name(node: &Node) -> Result<String, Wrong> {
    let names: Vec<&str> = PROFILES.iter().map(|(name, _)| *name).collect();
    value::one_of(node, &names).map(str::to_owned)
}

/// The layer of the profile that the uppermost of these layers names; none if none of them names one that there is.
pub(crate) fn layer<'a>(layers: impl DoubleEndedIterator<Item = &'a Node>) -> Option<Node> {
    let named = layers.rev().find_map(|layer| layer.get("profile"))?;
    let name = name(named).ok()?;
    let (_, text) = PROFILES.iter().find(|(known, _)| *known == name)?;
    // The texts are part of the program and tested, so nothing is reported.
    let root = tree::parse(&Source::new(name.as_str(), *text), &|_| None, &Report::default()).ok()?;
    Some(moved(root, "context", &Origin::Profile(name)))
}

/// The same values, with where they really stand and whom they come from.
fn moved(node: Node, path: &str, origin: &Origin) -> Node {
    let value = match node.value {
        Value::Table(entries) => {
            let entries = entries.into_iter().map(|(key, entry)| {
                let path = tree::join(path, &key);
                (key, moved(entry, &path, origin))
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
    fn every_profile_is_valid_alone_and_says_so() {
        for (name, _) in super::PROFILES {
            let settings = loaded(&format!("[context]\nprofile = \"{name}\"\n"));
            let origin = format!("profile {name}");
            let from_it = settings.resolved.iter().filter(|value| value.origin.to_string() == origin).count();
            assert!(from_it >= 8, "{name}: {from_it}");
            assert_eq!(settings.routes[0].context.profile.as_deref(), Some(name));
        }
    }
}
