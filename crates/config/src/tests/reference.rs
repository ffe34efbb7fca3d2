//! The reference file at the root of the repository states the defaults, names every key, and has valid examples.

use super::{loaded, unset};
use crate::settings::read_all;
use crate::{Flags, Settings, Source};
use regex::Regex;

const REFERENCE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../proxy.toml"));

#[test]
fn the_reference_states_the_defaults() {
    let without_origins = |text| Settings { resolved: Vec::new(), ..loaded(text) };
    assert_eq!(without_origins(REFERENCE), without_origins(""));
}

#[test]
fn the_reference_sets_every_key_that_has_a_default() {
    let settings = loaded(REFERENCE);
    // The reference shows a route only as an example.
    let optional =
        |path: &str| path.strip_prefix("routes[0].").is_some_and(|path| !path.starts_with("context."));
    let defaults = settings.resolved.iter().filter(|resolved| resolved.origin == crate::Origin::Default);
    let missing: Vec<&str> =
        defaults.map(|resolved| resolved.path.as_str()).filter(|path| !optional(path)).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn the_reference_names_every_key_and_its_examples_are_valid() {
    let example = Regex::new(r"(?m)^# ([a-z_]+ = |\[)").unwrap();
    let text = example.replace_all(REFERENCE, "$1").into_owned();
    let (settings, findings) = read_all(&Source::new("proxy.toml", text), &Flags::default(), &unset).unwrap();

    let missing: Vec<_> = findings.keys.iter().filter(|(_, found)| !**found).map(|(key, _)| key).collect();
    assert!(missing.is_empty(), "not in proxy.toml: {missing:?}");
    assert!(findings.keys.len() > 80, "the keys were not collected: {}", findings.keys.len());

    assert_eq!(findings.errors, []);
    assert_eq!(settings.routes[0].name, "agents");
    assert_eq!(settings.models["my-model"].output, Some(10.0));
    assert_eq!(settings.summarizers.len(), 1);
    assert!(settings.server.tls.is_some());
}
