//! Every public name that Tidegate writes, in one place.

/// Headers: those that a client speaks to us with, and those that we answer with.
pub mod header {
    pub const REQUEST_ID: &str = "x-request-id";
    /// Of a request: do nothing to it.
    pub const BYPASS: &str = "x-tidegate-bypass";
    pub const CONVERSATION: &str = "x-tidegate-conversation";
    pub const ROUTE: &str = "x-tidegate-route";
    pub const STRATEGY: &str = "x-tidegate-strategy";
    pub const TOKENS_BEFORE: &str = "x-tidegate-tokens-before";
    pub const TOKENS_AFTER: &str = "x-tidegate-tokens-after";
    pub const BUDGET: &str = "x-tidegate-budget";
    pub const EDITS: &str = "x-tidegate-edits";
    pub const TRIGGER: &str = "x-tidegate-trigger";
    pub const STOP_HINT: &str = "x-tidegate-stop-hint";
    pub const DEGRADED: &str = "x-tidegate-degraded";
    pub const OVERHEAD: &str = "x-tidegate-overhead-us";
}
