//! Finding and reading the configuration.

use crate::args::ConfigArgs;
use std::path::{Path, PathBuf};
use tidegate_config::{ConfigErrors, Settings, Source, load};

/// The file that is meant: the one that was named, or `proxy.toml` here if there is one.
pub(crate) fn path(args: &ConfigArgs) -> Option<PathBuf> {
    let beside = Path::new("proxy.toml");
    args.config.clone().or_else(|| beside.exists().then(|| beside.to_owned()))
}

/// Reads the file anew and resolves it with the flags and the environment.
pub(crate) fn read(args: &ConfigArgs) -> Result<Settings, ConfigErrors> {
    let source = path(args).map_or_else(|| Ok(Source::none()), Source::read)?;
    load(source, &args.flags, &|name| std::env::var(name).ok())
}
