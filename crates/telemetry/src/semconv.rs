/// The generation of OpenTelemetry's conventions for generative models whose names are used.
///
/// The conventions renamed most of their metrics in autumn 2026, and many backends still expect the old names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Semconv {
    /// `gen_ai.client.token.usage` and `gen_ai.client.operation.*`.
    Old,
    /// `gen_ai.client.inference.*`.
    New,
    /// Both, so that nothing that is built on either breaks.
    #[default]
    Both,
}

impl Semconv {
    #[must_use]
    pub fn has_old(self) -> bool {
        self != Semconv::New
    }

    #[must_use]
    pub fn has_new(self) -> bool {
        self != Semconv::Old
    }
}
