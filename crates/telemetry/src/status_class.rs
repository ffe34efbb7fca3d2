/// How an upstream answered, coarse enough for a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusClass {
    /// Below 300.
    Success,
    Redirection,
    ClientError,
    ServerError,
    /// It did not answer.
    NoAnswer,
}

pub(crate) const STATUS_CLASSES: [StatusClass; 5] = [
    StatusClass::Success,
    StatusClass::Redirection,
    StatusClass::ClientError,
    StatusClass::ServerError,
    StatusClass::NoAnswer,
];

impl StatusClass {
    pub(crate) fn of(status: Option<u16>) -> StatusClass {
        match status {
            None => StatusClass::NoAnswer,
            Some(..300) => StatusClass::Success,
            Some(300..400) => StatusClass::Redirection,
            Some(400..500) => StatusClass::ClientError,
            Some(500..) => StatusClass::ServerError,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            StatusClass::Success => "2xx",
            StatusClass::Redirection => "3xx",
            StatusClass::ClientError => "4xx",
            StatusClass::ServerError => "5xx",
            StatusClass::NoAnswer => "none",
        }
    }
}
