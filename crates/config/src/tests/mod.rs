mod errors;
mod invalid;
mod layers;
mod reference;

mod values;

use crate::{ConfigErrors, Flags, Settings, Source, load};

fn unset(_: &str) -> Option<String> {
    None
}

pub(crate) fn loaded(text: &str) -> Settings {
    load(Source::new("proxy.toml", text), &Flags::default(), &unset)
        .unwrap_or_else(|errors| panic!("{errors}"))
}

fn errors(text: &str) -> ConfigErrors {
    load(Source::new("proxy.toml", text), &Flags::default(), &unset).unwrap_err()
}

/// An environment with these variables.
fn environment<'a>(variables: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
    |name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
}

/// Formats the resolved value of a path as `value (origin)`.
fn shown(settings: &Settings, path: &str) -> String {
    let resolved = settings.resolved.iter().find(|resolved| resolved.path == path);
    let resolved = resolved.unwrap_or_else(|| panic!("{path} is not resolved"));
    format!("{} ({})", resolved.value, resolved.origin)
}
