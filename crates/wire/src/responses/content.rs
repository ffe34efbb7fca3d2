use super::BREAKPOINT;
use crate::cursor::{Value, once};
use crate::{Content, Part, Span, Unreadable};
use std::borrow::Cow;

/// Reads a content, or the output of a call. Sets `breakpoint` to the value of its last cache marker.
pub(super) fn read_content<'a>(
    value: Value<'a>,
    breakpoint: &mut Option<Span>,
) -> Result<Content<'a>, Unreadable> {
    if value.first() != Some(b'[') {
        return Ok(match value.text()? {
            Some(text) => Content::Text(text),
            None if value.raw() == b"null" => Content::Null,
            None => Content::Unexpected(value.raw()),
        });
    }
    let mut parts = Vec::new();
    value.elements(|element| {
        parts.push(read_part(element, breakpoint)?);
        Ok(())
    })?;
    Ok(Content::Parts(parts))
}

fn read_part<'a>(value: Value<'a>, breakpoint: &mut Option<Span>) -> Result<Part<'a>, Unreadable> {
    if value.first() != Some(b'{') {
        return value.check().map(|()| Part::Other(value.raw()));
    }
    let mut read = Members::default();
    value.members(|member| read.read(&member.key, member.value))?;
    *breakpoint = read.marker.or(*breakpoint);
    let Members {
        kind,
        text,
        refusal,
        image_url,
        detail,
        file_id,
        filename,
        file_data,
        audio,
        audio_format,
        ..
    } = read;
    let part = match kind.as_deref() {
        Some("input_text" | "output_text" | "text" | "summary_text" | "reasoning_text") => {
            text.map(Part::Text)
        }
        Some("refusal") => refusal.map(Part::Refusal),
        Some("input_image" | "computer_screenshot") => {
            image_url.or(file_id).map(|url| Part::Image { url, detail })
        }
        Some("input_file") => Some(Part::File { id: file_id, name: filename, data: file_data }),
        Some("input_audio") => audio.map(|data| Part::Audio { data, format: audio_format }),
        Some(_) | None => None,
    };
    Ok(part.unwrap_or(Part::Other(value.raw())))
}

#[derive(Debug, Default)]
struct Members<'a> {
    kind: Option<Cow<'a, str>>,
    text: Option<Cow<'a, str>>,
    refusal: Option<Cow<'a, str>>,
    image_url: Option<Cow<'a, str>>,
    detail: Option<Cow<'a, str>>,
    file_id: Option<Cow<'a, str>>,
    filename: Option<Cow<'a, str>>,
    file_data: Option<Cow<'a, str>>,
    audio: Option<Cow<'a, str>>,
    audio_format: Option<Cow<'a, str>>,
    marker: Option<Span>,
}

impl<'a> Members<'a> {
    fn read(&mut self, key: &str, value: Value<'a>) -> Result<(), Unreadable> {
        let slot = match key {
            "type" => (&mut self.kind, "type"),
            "text" => (&mut self.text, "text"),
            "refusal" => (&mut self.refusal, "refusal"),
            "image_url" => (&mut self.image_url, "image_url"),
            "detail" => (&mut self.detail, "detail"),
            "file_id" => (&mut self.file_id, "file_id"),
            "filename" => (&mut self.filename, "filename"),
            "file_data" => (&mut self.file_data, "file_data"),
            "input_audio" => {
                value.check()?;
                return value.members_of_object(|key, value| {
                    match key {
                        "data" => self.audio = value.text()?,
                        "format" => self.audio_format = value.text()?,
                        _ => {}
                    }
                    Ok(())
                });
            }
            BREAKPOINT => {
                value.check()?;
                self.marker = (value.first() == Some(b'{')).then(|| value.span());
                return Ok(());
            }
            _ => return value.check(),
        };
        match value.text()? {
            Some(text) => once(slot.0, text, slot.1),
            None => Ok(()),
        }
    }
}
