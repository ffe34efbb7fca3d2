use serde::Serialize;
use std::fmt;

/// How a request ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The upstream's answer was relayed to its end.
    #[default]
    Answered,
    /// The upstream answered with an error, whatever the status, or did not answer at all.
    UpstreamError,
    /// The upstream's answer ended before it was complete.
    UpstreamBroke,
    /// The client disconnected before the end of the answer.
    ClientClosed,
    /// Tidegate answered with an error of its own, or cut the answer off.
    Refused,
    /// The upstream refused the request as too long, and answered it when it was sent again, shortened.
    Rescued,
}

pub(crate) const OUTCOMES: [Outcome; 6] = [
    Outcome::Answered,
    Outcome::UpstreamError,
    Outcome::UpstreamBroke,
    Outcome::ClientClosed,
    Outcome::Refused,
    Outcome::Rescued,
];

impl Outcome {
    /// The value in records and metric labels.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Answered => "answered",
            Outcome::UpstreamError => "upstream_error",
            Outcome::UpstreamBroke => "upstream_broke",
            Outcome::ClientClosed => "client_closed",
            Outcome::Refused => "refused",
            Outcome::Rescued => "rescued",
        }
    }

    /// Whether the client has received a complete answer of the model.
    #[must_use]
    pub fn is_success(self) -> bool {
        match self {
            Outcome::Answered | Outcome::Rescued => true,
            Outcome::UpstreamError | Outcome::UpstreamBroke | Outcome::ClientClosed | Outcome::Refused => {
                false
            }
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
