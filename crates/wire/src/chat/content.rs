use super::message::CACHE_CONTROL;
use crate::cursor::{Value, once};
use crate::{Content, Part, Span, Unreadable};
use std::borrow::Cow;

/// Reads a content. Returns it with the value of its last cache marker.
pub(super) fn read_content<'a>(value: Value<'a>) -> Result<(Content<'a>, Option<Span>), Unreadable> {
    let mut breakpoint = None;
    match value.first() {
        Some(b'[') => {
            let mut parts = Vec::new();
            value.elements(|element| {
                parts.push(read_part(element, &mut breakpoint)?);
                Ok(())
            })?;
            Ok((Content::Parts(parts), breakpoint))
        }
        _ => {
            let content = match value.text()? {
                Some(text) => Content::Text(text),
                None if value.raw() == b"null" => Content::Null,
                None => Content::Unexpected(value.raw()),
            };
            Ok((content, None))
        }
    }
}

fn read_part<'a>(value: Value<'a>, breakpoint: &mut Option<Span>) -> Result<Part<'a>, Unreadable> {
    if value.first() != Some(b'{') {
        return value.check().map(|()| Part::Other(value.raw()));
    }
    let mut kind = None;
    let mut text = None;
    let mut refusal = None;
    let mut image = None;
    let mut audio = None;
    let mut file = None;
    value.members(|member| match &*member.key {
        "type" => once(&mut kind, member.value.text()?, "type"),
        "text" => once(&mut text, member.value.text()?, "text"),
        "refusal" => once(&mut refusal, member.value.text()?, "refusal"),
        "image_url" => once(&mut image, read_fields(member.value, ["url", "detail", ""])?, "image_url"),
        "input_audio" => once(&mut audio, read_fields(member.value, ["data", "format", ""])?, "input_audio"),
        "file" => once(&mut file, read_fields(member.value, ["file_id", "filename", "file_data"])?, "file"),
        CACHE_CONTROL => {
            member.value.check()?;
            if member.value.raw() != b"null" {
                *breakpoint = Some(member.value.span());
            }
            Ok(())
        }
        _ => member.value.check(),
    })?;

    let part = match kind.flatten().as_deref() {
        Some("text") => text.flatten().map(Part::Text),
        Some("refusal") => refusal.flatten().map(Part::Refusal),
        Some("image_url") => image.and_then(|[url, detail, _]| Some(Part::Image { url: url?, detail })),
        Some("input_audio") => audio.and_then(|[data, format, _]| Some(Part::Audio { data: data?, format })),
        Some("file") => file.map(|[id, name, data]| Part::File { id, name, data }),
        Some(_) | None => None,
    };
    Ok(part.unwrap_or(Part::Other(value.raw())))
}

/// Returns the texts of up to three members. A string in place of the object counts as the first of them, because some servers
/// accept `"image_url": "https://…"`.
fn read_fields<'a>(
    value: Value<'a>,
    names: [&'static str; 3],
) -> Result<[Option<Cow<'a, str>>; 3], Unreadable> {
    if value.first() != Some(b'{') {
        return Ok([value.text()?, None, None]);
    }
    let mut slots = [None, None, None];
    value.members(|member| match names.iter().position(|name| *name == member.key && !name.is_empty()) {
        Some(index) => once(&mut slots[index], member.value.text()?, names[index]),
        None => member.value.check(),
    })?;
    Ok(slots.map(Option::flatten))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Content<'_>, Unreadable> {
        read_content(Value::whole(json.as_bytes(), 100)).map(|(content, _)| content)
    }

    #[test]
    fn parts_of_every_kind_are_read() {
        let content = read(
            r#"[{"type":"text","text":"a\nb","cache_control":{}},
                {"image_url":{"detail":"low","url":"data:image/png;base64,AA"},"type":"image_url"},
                {"type":"input_audio","input_audio":{"data":"UklG","format":"wav"}},
                {"type":"file","file":{"file_id":"f1"}}, {"type":"refusal","refusal":"no"},
                {"type":"thinking","thinking":"x"}, "bare", {"type":"text"}]"#,
        );
        let Ok(Content::Parts(parts)) = content else { panic!("{content:?}") };
        assert_eq!(parts[0], Part::Text("a\nb".into()));
        assert_eq!(
            parts[1],
            Part::Image { url: "data:image/png;base64,AA".into(), detail: Some("low".into()) }
        );
        assert_eq!(parts[2], Part::Audio { data: "UklG".into(), format: Some("wav".into()) });
        assert_eq!(parts[3], Part::File { id: Some("f1".into()), name: None, data: None });
        assert_eq!(parts[4], Part::Refusal("no".into()));
        assert_eq!(parts[5], Part::Other(br#"{"type":"thinking","thinking":"x"}"#));
        assert_eq!(parts[6], Part::Other(b"\"bare\""));
        assert_eq!(parts[7], Part::Other(br#"{"type":"text"}"#));
    }

    #[test]
    fn content_other_than_text_is_kept_as_it_is() {
        assert_eq!(read("null"), Ok(Content::Null));
        assert_eq!(read("1e999"), Ok(Content::Unexpected(b"1e999")));
        assert_eq!(read("{}"), Ok(Content::Unexpected(b"{}")));
        assert!(read("nul").is_err());
        assert!(read(r#"[{"type":"text","text":"a\q"}]"#).is_err());
        assert_eq!(
            read(r#"[{"type":"text","text":"a","t\u0065xt":"b"}]"#),
            Err(Unreadable::Ambiguous("text"))
        );
    }
}
