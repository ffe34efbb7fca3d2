//! The configuration in force, value by value, with where each came from.

use crate::reloads::{Reload, Reloads};
use serde::Serialize;
use tidegate_config::{Origin, Resolved, Settings};

#[derive(Clone, Debug, Serialize)]
pub(crate) struct ConfigurationPage {
    file: Option<String>,
    /// What is not of a route.
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
    /// Its policy as a text that can be changed and tried.
    policy: String,
}

#[derive(Clone, Debug, Serialize)]
struct Setting {
    key: String,
    /// As TOML, without passwords, and with `${…}` as it is written.
    value: String,
    origin: From,
}

#[derive(Clone, Debug, Serialize)]
struct From {
    kind: &'static str,
    text: String,
}

impl ConfigurationPage {
    pub(crate) fn of(settings: &Settings, reloads: &Reloads) -> ConfigurationPage {
        let process = settings.resolved.iter().filter(|value| !value.path.starts_with("routes["));
        let route = |(number, route): (usize, &tidegate_config::Route)| {
            let prefix = format!("routes[{number}].");
            let values = settings.resolved.iter().filter(|value| value.path.starts_with(&prefix));
            RoutePage {
                name: route.name.clone(),
                upstream: route.upstream.name.clone(),
                values: values.map(|value| Setting::of(value, &prefix)).collect(),
                policy: settings.policy_text(number),
            }
        };
        ConfigurationPage {
            file: reloads.file.clone(),
            process: process.map(|value| Setting::of(value, "")).collect(),
            routes: settings.routes.iter().enumerate().map(route).collect(),
            warnings: settings.warnings.clone(),
            reload: reloads.last(),
        }
    }
}

impl Setting {
    fn of(value: &Resolved, prefix: &str) -> Setting {
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
            origin: From { kind, text: value.origin.to_string() },
        }
    }
}
