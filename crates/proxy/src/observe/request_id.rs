use http::{HeaderMap, HeaderValue};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegate_telemetry::names;

/// Identifies one request in logs and in its response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestId(String);

const MAX_LENGTH: usize = 128;

impl RequestId {
    /// Returns the client's own id if it sent a valid one, so that its logs and ours can be correlated.
    pub(crate) fn of(headers: &HeaderMap) -> RequestId {
        let usable = |id: &&str| {
            let plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:/-".contains(&byte));
            plain && !id.is_empty() && id.len() <= MAX_LENGTH
        };
        let sent = headers.get(names::header::REQUEST_ID).and_then(|value| value.to_str().ok());
        sent.filter(usable).map_or_else(RequestId::fresh, |id| RequestId(id.to_owned()))
    }

    fn fresh() -> RequestId {
        RequestId(format!("tg-{:032x}", unique()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn to_header(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.0).ok()
    }
}

/// Returns a number that is unique across processes.
pub(crate) fn unique() -> u128 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    static KEYS: OnceLock<[RandomState; 2]> = OnceLock::new();
    let keys = KEYS.get_or_init(|| [RandomState::new(), RandomState::new()]);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    u128::from(keys[0].hash_one(number)) << 64 | u128::from(keys[1].hash_one(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valid_id_is_kept_and_any_other_replaced() {
        let with = |id: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(names::header::REQUEST_ID, HeaderValue::from_static(id));
            RequestId::of(&headers)
        };
        assert_eq!(with("req_1-2:3").as_str(), "req_1-2:3");
        for bad in ["", "a b", "<script>"] {
            assert!(with(bad).as_str().starts_with("tg-"), "{bad}");
        }
        assert_ne!(RequestId::fresh(), RequestId::fresh());
    }
}
