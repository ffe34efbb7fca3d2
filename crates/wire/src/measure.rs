use crate::{Content, MessageView, Part};
use tidegate_engine::Tokens;
use tidegate_tokens::chat::{message_tokens, tool_call_tokens};
use tidegate_tokens::{
    Detail, Encoding, ImageRule, audio_tokens, count, file_tokens, is_estimated, pixels_of_data_url,
};

/// How the tokens of a message are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Meter {
    pub encoding: Encoding,
    /// The cost of images.
    pub images: ImageRule,
    /// Whether words are counted besides tokens.
    pub unit: Unit,
}

/// The unit of size limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Unit {
    #[default]
    Tokens,
    /// Words separated by white space.
    Words,
}

/// Counts the words of a text.
#[must_use]
pub fn words(text: &str) -> Tokens {
    Tokens(text.split_whitespace().count() as u64)
}

/// The cost of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// The whole message: marks, role, name, content and calls.
    pub tokens: Tokens,
    /// The content alone, which a mask replaces.
    pub content: Tokens,
    /// The number of words, if that is the unit.
    pub words: Option<Tokens>,
    /// What is counted by a rule of thumb: images, recordings, files, and members that we do not know.
    pub estimated: Tokens,
}

impl Meter {
    #[must_use]
    pub fn measure(&self, view: &MessageView<'_>) -> Measure {
        let own = self.content(&view.content);
        let results: Tokens = view.results.iter().map(|result| self.content(&result.content)).sum();
        let maskable = view.results.iter().filter(|result| result.maskable.is_some());
        let content = match view.results.is_empty() {
            true => own,
            false => maskable.map(|result| self.content(&result.content)).sum(),
        };
        let frame =
            message_tokens(self.encoding, view.role.as_deref().unwrap_or_default(), view.name.as_deref());
        let refusal = view.refusal.as_deref().map_or(Tokens::ZERO, |text| count(self.encoding, text));
        let calls: Tokens =
            view.calls().map(|call| tool_call_tokens(self.encoding, &call.name, &call.arguments)).sum();
        let words = (self.unit == Unit::Words).then(|| message_words(view));
        let tokens = frame + own + results + refusal + calls + unknown_members(view);
        Measure { tokens, content, words, estimated: self.estimated(view) }
    }

    fn content(&self, content: &Content<'_>) -> Tokens {
        match content {
            Content::Absent | Content::Null => Tokens::ZERO,
            Content::Text(text) => count(self.encoding, text),
            Content::Parts(parts) => parts.iter().map(|part| self.part(part)).sum(),
            Content::Unexpected(raw) => self.raw(raw),
        }
    }

    fn part(&self, part: &Part<'_>) -> Tokens {
        match part {
            Part::Text(text) | Part::Refusal(text) => count(self.encoding, text),
            Part::Image { url, detail } => {
                self.images.tokens(Detail::from_field(detail.as_deref()), pixels_of_data_url(url))
            }
            Part::Audio { data, format } => audio_tokens(format.as_deref().unwrap_or_default(), data),
            Part::File { data, .. } => file_tokens(data.as_deref()),
            Part::Other(raw) => self.raw(raw),
        }
    }

    fn estimated(&self, view: &MessageView<'_>) -> Tokens {
        let text = |text: &str| match is_estimated(self.encoding, text) {
            true => count(self.encoding, text),
            false => Tokens::ZERO,
        };
        let part = |part: &Part<'_>| match part {
            Part::Text(own) | Part::Refusal(own) => text(own),
            Part::Image { .. } | Part::Audio { .. } | Part::File { .. } | Part::Other(_) => self.part(part),
        };
        let content = |content: &Content<'_>| match content {
            Content::Absent | Content::Null => Tokens::ZERO,
            Content::Text(own) => text(own),
            Content::Parts(parts) => parts.iter().map(part).sum(),
            Content::Unexpected(raw) => self.raw(raw),
        };
        view.contents().map(content).sum::<Tokens>() + unknown_members(view)
    }

    fn raw(&self, raw: &[u8]) -> Tokens {
        count(self.encoding, &String::from_utf8_lossy(raw))
    }
}

fn message_words(view: &MessageView<'_>) -> Tokens {
    let part = |part: &Part<'_>| match part {
        Part::Text(text) | Part::Refusal(text) => words(text),
        Part::Image { .. } | Part::Audio { .. } | Part::File { .. } | Part::Other(_) => Tokens::ZERO,
    };
    let content = |content: &Content<'_>| match content {
        Content::Text(text) => words(text),
        Content::Parts(parts) => parts.iter().map(part).sum(),
        Content::Absent | Content::Null | Content::Unexpected(_) => Tokens::ZERO,
    };
    let content: Tokens = view.contents().map(content).sum();
    let calls: Tokens = view.calls().map(|call| words(&call.name) + words(&call.arguments)).sum();
    content + view.refusal.as_deref().map_or(Tokens::ZERO, words) + calls
}

/// Estimates unknown members, such as reasoning that the client sends back, at four bytes per token. Only the provider knows whether
/// the model sees them; calibration corrects the estimate.
fn unknown_members(view: &MessageView<'_>) -> Tokens {
    Tokens(view.unknown_bytes.div_ceil(4) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;

    fn measure(json: &str) -> Measure {
        let meter = Meter { encoding: Encoding::O200k, images: ImageRule::DEFAULT, unit: Unit::Words };
        meter.measure(&Dialect::Chat.read_message(json.as_bytes()).unwrap())
    }

    fn text(text: &str) -> Tokens {
        count(Encoding::O200k, text)
    }

    #[test]
    fn a_message_costs_its_frame_and_its_content() {
        let plain = measure(r#"{"role":"user","content":"Hello, world! \u00e9"}"#);
        assert_eq!(plain.content, text("Hello, world! é"));
        assert_eq!(plain.tokens, plain.content + Tokens(3) + text("user"));
        let named = measure(r#"{"role":"user","name":"ada","content":"Hello, world! é"}"#);
        assert_eq!(named.tokens, plain.tokens + Tokens(1) + text("ada"));
    }

    #[test]
    fn calls_count_but_not_as_content() {
        let calling = measure(
            r#"{"role":"assistant","content":null,"tool_calls":[
                {"id":"x","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},
                {"id":"y","type":"function","function":{"name":"g","arguments":"{}"}}]}"#,
        );
        assert_eq!(calling.content, Tokens::ZERO);
        let calls = text("f") + text(r#"{"a":1}"#) + text("g") + text("{}") + Tokens(6);
        assert_eq!(calling.tokens, Tokens(3) + text("assistant") + calls);
    }

    #[test]
    fn an_image_costs_tiles_and_not_its_base64() {
        let url = format!("data:image/png;base64,{}", "A".repeat(100_000));
        let image = format!(
            r#"{{"role":"user","content":[{{"type":"text","text":"look"}},
                {{"type":"image_url","image_url":{{"url":"{url}","detail":"low"}}}}]}}"#
        );
        assert_eq!(measure(&image).content, text("look") + Tokens(85));
        assert_eq!(measure(&image).estimated, Tokens(85));
    }

    #[test]
    fn unknown_members_add_tokens() {
        let plain = measure(r#"{"role":"assistant","content":"x"}"#);
        let thinking =
            measure(r#"{"role":"assistant","content":"x","reasoning_content":"01234567890123456789"}"#);
        assert!(thinking.tokens > plain.tokens && thinking.content == plain.content);
    }
}
