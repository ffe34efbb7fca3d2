//! Parses `multipart/form-data` bodies of file uploads.

use memchr::memmem;

use crate::recorded::Recorded;

pub(crate) struct Part<'a> {
    pub(crate) filename: Option<String>,
    pub(crate) body: &'a [u8],
}

impl Part<'_> {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(self.body).into_owned()
    }
}

/// The part with this name. `None` if it is missing or the form is malformed.
pub(crate) fn part<'a>(request: &'a Recorded, name: &str) -> Option<Part<'a>> {
    let content_type = request.header("content-type")?;
    let boundary = parameter(content_type, "boundary")?;
    let delimiter = format!("--{boundary}");
    let mut rest = after(&request.body, delimiter.as_bytes())?;
    let closing = format!("\r\n{delimiter}");
    while let Some(inner) = rest.strip_prefix(b"\r\n") {
        let end = memmem::find(inner, closing.as_bytes())?;
        let split = memmem::find(&inner[..end], b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&inner[..split]);
        let disposition =
            head.split("\r\n").find(|line| line.to_ascii_lowercase().starts_with("content-disposition:"))?;
        if parameter(disposition, "name").as_deref() == Some(name) {
            return Some(Part { filename: parameter(disposition, "filename"), body: &inner[split + 4..end] });
        }
        rest = &inner[end + closing.len()..];
    }
    None
}

fn after<'a>(text: &'a [u8], marker: &[u8]) -> Option<&'a [u8]> {
    memmem::find(text, marker).map(|at| &text[at + marker.len()..])
}

fn parameter(value: &str, name: &str) -> Option<String> {
    value.split(';').skip(1).find_map(|pair| {
        let (key, value) = pair.trim().split_once('=')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim_matches('"').to_owned())
    })
}
