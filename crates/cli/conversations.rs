//! Reading conversations back, as an operator.

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

use crate::settings;
use args::{ConversationsArgs, ConversationsCommand};
use std::process::ExitCode;
use tidegate_admin::AdminError;
use tidegate_config::Settings;

/// The exit code for an id that means no conversation, or more than one, so that a script can tell it from a failure.
const NOT_ONE: u8 = 4;

pub(crate) fn run(args: &ConversationsArgs) -> anyhow::Result<ExitCode> {
    let settings = settings::read(&args.command.whose().config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let source = source::open(&settings).await?;
        match &args.command {
            ConversationsCommand::List(args) => list::run(&source, args).await,
            ConversationsCommand::Show(args) => show::run(&source, args).await,
            ConversationsCommand::Export(args) => export::run(&source, args).await,
            ConversationsCommand::Memory(args) => memory::run(&source, args).await,
            ConversationsCommand::Delete(args) => delete::run(&source, args).await,
        }
    });
    outcome.or_else(|error| match error.downcast::<AdminError>() {
        Ok(error) => refused(&error, &settings),
        Err(error) => Err(error),
    })
}

/// What to do about an answer that is none.
fn refused(error: &AdminError, settings: &Settings) -> anyhow::Result<ExitCode> {
    let hint = match error {
        AdminError::Refused { code, .. } => match code.as_str() {
            "conversation_not_found" => {
                terminal::say(&format!("{error}\n  hint: `tidegate conversations list` shows what there is"));
                return Ok(ExitCode::from(NOT_ONE));
            }
            "ambiguous_conversation" => {
                terminal::say(&format!("{error}\n  hint: give one of these ids, or --tenant"));
                return Ok(ExitCode::from(NOT_ONE));
            }
            "unauthorized" => {
                format!("put the token of the running Tidegate into {}", settings.admin.token_env)
            }
            "store_unavailable" => format!("is the store at {} up?", settings.store.url),
            "memory_too_long" => memory::SHORTER.to_owned(),
            "invalid_memory" => "`tidegate conversations memory --help` says what a memory is".to_owned(),
            _ => "is the running Tidegate of another version?".to_owned(),
        },
        AdminError::Unreachable { .. } | AdminError::NotTidegate { .. } => {
            "name the address of your Tidegate with --admin or `admin.listen`".to_owned()
        }
        AdminError::InvalidResponse => "this is a bug in Tidegate".to_owned(),
    };
    anyhow::bail!("{}\n  hint: {hint}", terminal::plain(&error.to_string()))
}
