//! `tidegate conversations`: reads and manages stored conversations.

pub(crate) mod args;
mod delete;
mod export;
mod figures;
mod list;
mod memory;
mod show;
mod source;
mod summaries;
pub(crate) mod terminal;
mod transcript;
mod turns;

use crate::exit::Exit;
use crate::settings;
use args::{ConversationsArgs, ConversationsCommand};
use tidegate_admin::AdminError;
use tidegate_config::Settings;

pub(crate) fn run(args: &ConversationsArgs) -> anyhow::Result<Exit> {
    let settings = settings::read(&args.command.target().config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let source = source::open(&settings).await?;
        match &args.command {
            ConversationsCommand::List(args) => list::run(&source, args).await,
            ConversationsCommand::Show(args) => show::run(&source, args).await,
            ConversationsCommand::Export(args) => export::run(&source, args).await,
            ConversationsCommand::Memory(args) => memory::run(&source, args).await,
            ConversationsCommand::Delete(args) => delete::run(&source, args).await,
        }
    });
    result.or_else(|error| match error.downcast::<AdminError>() {
        Ok(error) => explain_error(&error, &settings),
        Err(error) => Err(error),
    })
}

/// Adds a hint to an API error. An id that names no conversation, or several, is an outcome rather than an
/// error.
fn explain_error(error: &AdminError, settings: &Settings) -> anyhow::Result<Exit> {
    let hint = match error {
        AdminError::Refused { code, .. } => match code.as_str() {
            "conversation_not_found" => {
                terminal::notice(&format!(
                    "{error}\n  hint: `tidegate conversations list` shows all of them"
                ));
                return Ok(Exit::NoUniqueConversation);
            }
            "ambiguous_conversation" => {
                terminal::notice(&format!("{error}\n  hint: use one of these ids, or --tenant"));
                return Ok(Exit::NoUniqueConversation);
            }
            "unauthorized" => {
                format!("put the token of the running process into {}", settings.admin.token_env)
            }
            "store_unavailable" => format!("check that the store at {} is running", settings.store.url),
            "memory_too_long" => memory::TOO_LONG_HINT.to_owned(),
            "invalid_memory" => "`tidegate conversations memory --help` describes what is allowed".to_owned(),
            _ => "check that the running process has the same version".to_owned(),
        },
        AdminError::Unreachable { .. } | AdminError::NotTidegate { .. } => {
            "set the admin address of the running process with --admin or `admin.listen`".to_owned()
        }
        AdminError::InvalidResponse => "this is a bug in Tidegate".to_owned(),
    };
    anyhow::bail!("{}\n  hint: {hint}", terminal::plain(&error.to_string()))
}
