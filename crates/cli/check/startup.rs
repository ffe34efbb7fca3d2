//! What `serve` refuses to start with, although the file is valid.

use crate::{listen, store};
use tidegate_config::Settings;
use tidegate_proxy::Gateway;

pub(super) fn check(settings: &Settings) -> anyhow::Result<()> {
    listen::require_token(settings.admin.listen, &settings.admin.token_env)?;
    Gateway::check(settings)?;
    store::options(settings)?;
    store::check(settings)?;
    store::archive(settings).map(drop)
}
