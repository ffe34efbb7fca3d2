//! Every public name that Tidegate writes, in one place.

/// Response headers.
pub mod header {
    pub const REQUEST_ID: &str = "x-request-id";
    pub const CONVERSATION: &str = "x-tidegate-conversation";
    pub const ROUTE: &str = "x-tidegate-route";
    pub const STRATEGY: &str = "x-tidegate-strategy";
    pub const OVERHEAD: &str = "x-tidegate-overhead-us";
}
