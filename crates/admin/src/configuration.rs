//! The configuration page: every active value and its origin.

use crate::reloads::{Reload, Reloads};
use serde::Serialize;
use tidegate_config::{Origin, Resolved, Settings};

#[derive(Clone, Debug, Serialize)]
pub(crate) struct ConfigurationPage {
    file: Option<String>,
    /// Settings that do not belong to a route.
    process: Vec<Setting>,
    routes: Vec<RoutePage>,
    warnings: Vec<String>,
    reload: Reload,
}

#[derive(Clone, Debug, Serialize)]
struct RoutePage {
    name: String,
    upstream: String,
    values: Vec<Setting>,
    /// The route's policy as TOML, which `/api/explain` accepts back with changes.
    policy: String,
}

#[derive(Clone, Debug, Serialize)]
struct Setting {
    key: String,
    /// As TOML, with passwords removed and `${…}` unexpanded.
    value: String,
    origin: ValueOrigin,
}

#[derive(Clone, Debug, Serialize)]
struct ValueOrigin {
    kind: &'static str,
    text: String,
}

impl ConfigurationPage {
    pub(crate) fn new(settings: &Settings, reloads: &Reloads) -> ConfigurationPage {
        let process = settings.resolved.iter().filter(|value| !value.path.starts_with("routes["));
        let route = |(number, route): (usize, &tidegate_config::Route)| {
            let prefix = format!("routes[{number}].");
            let values = settings.resolved.iter().filter(|value| value.path.starts_with(&prefix));
            RoutePage {
                name: route.name.clone(),
                upstream: route.upstream.name.clone(),
                values: values.map(|value| Setting::new(value, &prefix)).collect(),
                policy: settings.policy_text(number),
            }
        };
        ConfigurationPage {
            file: reloads.file.clone(),
            process: process.map(|value| Setting::new(value, "")).collect(),
            routes: settings.routes.iter().enumerate().map(route).collect(),
            warnings: settings.warnings.clone(),
            reload: reloads.last(),
        }
    }
}

impl Setting {
    fn new(value: &Resolved, prefix: &str) -> Setting {
        let kind = match &value.origin {
            Origin::Default => "default",
            Origin::Profile(_) => "profile",
            Origin::File { .. } => "file",
            Origin::Environment(_) => "environment",
            Origin::Flag(_) => "flag",
        };
        Setting {
            key: value.path.strip_prefix(prefix).unwrap_or(&value.path).to_owned(),
            value: value.value.clone(),
            origin: ValueOrigin { kind, text: value.origin.to_string() },
        }
    }
}
