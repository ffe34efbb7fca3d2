//! Finds and reads the configuration.

use crate::args::ConfigArgs;
use std::path::{Path, PathBuf};
use tidegate_config::{ConfigErrors, Settings, Source, load};

/// The configuration file: the one given by `--config`, or `./proxy.toml` if it exists.
pub(crate) fn path(args: &ConfigArgs) -> Option<PathBuf> {
    let default = Path::new("proxy.toml");
    args.config.clone().or_else(|| default.exists().then(|| default.to_owned()))
}

/// Reads the file and resolves it with the flags and the environment.
pub(crate) fn read(args: &ConfigArgs) -> Result<Settings, ConfigErrors> {
    let source = path(args).map_or_else(|| Ok(Source::none()), Source::read)?;
    load(source, &args.flags, &|name| std::env::var(name).ok())
}
