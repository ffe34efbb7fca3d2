/// How a command ended without an error. `main` maps it to the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Success,
    /// The user did not confirm.
    Cancelled,
    /// The running process is not well, or not ready.
    Unhealthy,
    /// The command needs a confirmation, and standard input is not a terminal.
    ConfirmationRequired,
    /// The proxy would refuse the request. Scripts can tell this from an error.
    Refused,
    /// An id matches no conversation, or several. Scripts can tell this from an error.
    NoUniqueConversation,
}
