use tidegate_wire::Usage;

/// What summarizing cost, whether or not it succeeded. If the endpoint does not report usage, tokens are our own count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) usage: Usage,
    /// The number of requests sent.
    pub(crate) calls: u32,
}

impl Spent {
    pub(super) fn add(&mut self, usage: Usage) {
        let sum = &mut self.usage;
        // Saturating, because an endpoint may report any number.
        sum.prompt_tokens = sum.prompt_tokens.saturating_add(usage.prompt_tokens);
        sum.completion_tokens = sum.completion_tokens.saturating_add(usage.completion_tokens);
        sum.cached_tokens = sum.cached_tokens.saturating_add(usage.cached_tokens);
        sum.cache_write_tokens = sum.cache_write_tokens.saturating_add(usage.cache_write_tokens);
        sum.reasoning_tokens = sum.reasoning_tokens.saturating_add(usage.reasoning_tokens);
    }
}
