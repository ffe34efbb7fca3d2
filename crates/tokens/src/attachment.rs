use tidegate_engine::Tokens;

use crate::base64::{Base64, base64_of_data_url};

/// The tokens of an `input_audio` part: ten per second, as OpenAI bills it.
///
/// The duration of a `wav` follows from the byte rate in its header. Every other format is assumed to have 64 kbit per second; most
/// have more, so the count is too high rather than too low.
#[must_use]
pub fn audio_tokens(format: &str, base64: &str) -> Tokens {
    let audio = Base64(base64.as_bytes());
    let rate = match format {
        "wav" => audio.little_u32(28).filter(|rate| *rate > 0),
        _ => None,
    };
    let bytes = audio.len() as u64;
    let tokens = bytes.saturating_mul(10).div_ceil(rate.unwrap_or(COMPRESSED_BYTES_PER_SECOND).into());
    Tokens(tokens.max(1))
}

/// The tokens of a `file` part. `data` is its `file_data`; `None` for a file that was uploaded before.
///
/// A text file is estimated like [`crate::estimate`], but from its bytes. Any other file is assumed to have a page of 1,500 tokens per
/// 50,000 bytes, and an uploaded file one page.
#[must_use]
pub fn file_tokens(data: Option<&str>) -> Tokens {
    let Some(data) = data else { return PER_PAGE };
    let (bytes, text) = match base64_of_data_url(data) {
        Some(payload) => (payload.len() as u64, is_text(data)),
        None => (Base64(data.as_bytes()).len() as u64, false),
    };
    if text {
        Tokens(bytes.saturating_mul(5).div_ceil(16))
    } else {
        Tokens(PER_PAGE.0.saturating_mul(bytes.div_ceil(BYTES_PER_PAGE).max(1)))
    }
}

const COMPRESSED_BYTES_PER_SECOND: u32 = 8_000;
const BYTES_PER_PAGE: u64 = 50_000;
const PER_PAGE: Tokens = Tokens(1_500);

fn is_text(data_url: &str) -> bool {
    ["data:text/", "data:application/json", "data:application/xml"]
        .iter()
        .any(|kind| data_url.starts_with(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes this many zero bytes, a multiple of three, as base64.
    fn zeros(bytes: usize) -> String {
        assert_eq!(bytes % 3, 0);
        "A".repeat(bytes / 3 * 4)
    }

    #[test]
    fn compressed_audio_has_ten_tokens_per_second() {
        assert_eq!(audio_tokens("mp3", &zeros(24_000)), Tokens(30));
        assert_eq!(audio_tokens("mp3", ""), Tokens(1));
    }

    #[test]
    fn a_wav_states_its_own_rate() {
        // Bytes 28 to 31 of the header are the rate, 32,000 bytes per second in little endian. 27 bytes come before that group.
        let header = format!("{}{}", zeros(27), "AAB9AAAA");
        let wav = format!("{header}{}", zeros(96_000 - 33));
        assert_eq!(audio_tokens("wav", &wav), Tokens(30));
        assert_eq!(audio_tokens("mp3", &wav), Tokens(120));
        assert_eq!(audio_tokens("wav", &zeros(24_000)), Tokens(30), "a rate of zero is ignored");
    }

    #[test]
    fn files_are_counted_by_type_and_length() {
        assert_eq!(file_tokens(None), Tokens(1_500));
        assert_eq!(file_tokens(Some(&zeros(150_000))), Tokens(4_500));
        let url = |kind: &str| format!("data:{kind};base64,{}", zeros(480));
        assert_eq!(file_tokens(Some(&url("text/plain"))), Tokens(150));
        assert_eq!(file_tokens(Some(&url("application/pdf"))), Tokens(1_500));
    }
}
