use super::*;
use crate::{Dialect, OwnText, Placeholder, Side, split};
use smallvec::smallvec;

const BODY: &str = r#"{"messages":[ {"a":0,"content":"x"},{"a":1,"observation":{"type":"tool_output"},"content":[]} ,  {"a":2} ],"n":1}"#;

fn edited(body: &str, edits: &[Edit]) -> Result<String, BadEdit> {
    let (outline, facts) = read(body);
    let pieces = splice(body.as_bytes(), &outline, &facts, edits)?;
    Ok(String::from_utf8(assemble(body.as_bytes(), &pieces)).unwrap())
}

fn read(body: &str) -> (Outline, Vec<MessageFacts>) {
    let outline = split(Dialect::Chat, body.as_bytes()).unwrap();
    let facts = |span: &Span| Dialect::Chat.read_facts(span.of(body.as_bytes())).unwrap();
    let facts = outline.messages.iter().map(facts).collect();
    (outline, facts)
}

fn new(json: &'static str) -> Bytes {
    Bytes::from_static(json.as_bytes())
}

fn mask(message: usize) -> Edit {
    Edit::Mask { message, placeholder: Placeholder::new("[\"]") }
}

#[test]
fn without_edits_the_body_is_one_piece() {
    let (outline, facts) = read(BODY);
    let pieces = splice(BODY.as_bytes(), &outline, &facts, &[]).unwrap();
    assert_eq!(pieces, [Piece::Client(0..BODY.len())]);
}

#[test]
fn a_mask_and_an_untag_share_a_message() {
    let expected = r#"{"messages":[ {"a":0,"content":"[\"]"},{"a":1,"content":"[\"]"} ,  {"a":2} ],"n":1}"#;
    let both = [mask(0), mask(1), Edit::Untag { message: 1 }];
    assert_eq!(edited(BODY, &both).unwrap(), expected);
    let swapped = [mask(0), Edit::Untag { message: 1 }, mask(1)];
    assert_eq!(edited(BODY, &swapped).unwrap(), expected);
}

#[test]
fn a_mask_replaces_every_maskable_value() {
    let body = r#"{"messages":[{"a":"one","observation":{"type":"tool_output"},"b":"two"}]}"#;
    let (outline, mut facts) = read(body);
    let span = |text: &str| {
        let start = body.find(text).unwrap() - outline.messages[0].range().start;
        Span::new(start, start + text.len())
    };
    facts[0].maskable = smallvec![span(r#""one""#), span(r#""two""#)];
    let edits = [mask(0), Edit::Untag { message: 0 }];
    let pieces = splice(body.as_bytes(), &outline, &facts, &edits).unwrap();
    assert_eq!(assemble(body.as_bytes(), &pieces), br#"{"messages":[{"a":"[\"]","b":"[\"]"}]}"#);
}

#[test]
fn a_mask_keeps_the_last_cache_marker_of_the_parts() {
    let part = |text: &str, rest: &str| format!(r#"{{"type":"text","text":"{text}"{rest}}}"#);
    let marker = r#","cache_control": {"ttl":"1h","type":"ephemeral"}"#;
    let masked = |content: &str| {
        let body = format!(r#"{{"messages":[{{"role":"tool","content":{content},"tool_call_id":"c"}}]}}"#);
        edited(&body, &[mask(0)]).unwrap()
    };
    let kept = r#"{"messages":[{"role":"tool","content":[{"type":"text","text":"[\"]","cache_control":{"ttl":"1h","type":"ephemeral"}}],"tool_call_id":"c"}]}"#;
    assert_eq!(masked(&format!("[{}]", part("long", marker))), kept);
    let two = format!("[{},{}]", part("long", r#","cache_control":{"type":"x"}"#), part("longer", marker));
    assert_eq!(masked(&two), kept);
    let plain = r#"{"messages":[{"role":"tool","content":"[\"]","tool_call_id":"c"}]}"#;
    assert_eq!(masked(&format!("[{}]", part("long", ""))), plain);
    assert_eq!(masked(&format!("[{}]", part("long", r#","cache_control":null"#))), plain);
    assert_eq!(masked(r#""long""#), plain);
}

#[test]
fn texts_are_added_as_the_client_writes_its_own() {
    let extended = |content: &str, side, marker: Option<&'static str>| {
        let body = format!(r#"{{"messages":[{{"role":"user","content":{content},"name":"n"}}]}}"#);
        let own = |text, marker: Option<&'static str>| OwnText::new(text, marker.map(new));
        let texts = vec![own("a\n", None), own("b", marker)];
        let out = edited(&body, &[Edit::Extend { message: 0, texts, side }]).unwrap();
        let out = out.strip_prefix(r#"{"messages":[{"role":"user","content":"#).unwrap();
        out.strip_suffix(r#","name":"n"}]}"#).unwrap().to_owned()
    };
    let (front, back) = (Side::Front, Side::Back);
    assert_eq!(extended(r#""x\u0041""#, front, None), r#""a\n\n\nb\n\nx\u0041""#);
    assert_eq!(extended(r#""x""#, back, None), r#""x\n\na\n\n\nb""#);
    let (a, b, x) =
        (r#"{"type":"text","text":"a\n"}"#, r#"{"type":"text","text":"b"}"#, r#"{"type":"text","text":"x"}"#);
    assert_eq!(extended("[ 1 ]", front, None), format!("[{a},{b}, 1 ]"));
    assert_eq!(extended("[ 1 ]", back, None), format!("[ 1 ,{a},{b}]"));
    assert_eq!(extended("[]", front, None), format!("[{a},{b}]"));
    let marked = r#"{"type":"text","text":"b","cache_control":{}}"#;
    assert_eq!(extended(r#""x""#, front, Some("{}")), format!("[{a},{marked},{x}]"));
}

#[test]
fn runs_keep_the_separators_around_them() {
    let replace = |messages: Range<usize>| Edit::Replace { messages, with: new(r#"{"s":1}"#) };
    let insert = |before| Edit::Insert { before, with: new(r#"{"i":1}"#) };
    let remove = |messages| Edit::Remove { messages };
    for (edits, array) in [
        (vec![replace(0..2)], r#"[ {"s":1} ,  {"a":2} ]"#),
        (vec![replace(0..3)], r#"[ {"s":1} ]"#),
        (vec![remove(0..3)], "[  ]"),
        (vec![remove(0..2)], r#"[ {"a":2} ]"#),
        (
            vec![remove(2..3), insert(3)],
            r#"[ {"a":0,"content":"x"},{"a":1,"observation":{"type":"tool_output"},"content":[]},{"i":1} ]"#,
        ),
        (vec![insert(0), remove(0..2), insert(2)], r#"[ {"i":1} ,  {"i":1},{"a":2} ]"#),
        (
            vec![remove(0..1), replace(1..2), insert(3), insert(3)],
            r#"[ {"s":1} ,  {"a":2},{"i":1},{"i":1} ]"#,
        ),
    ] {
        let out = edited(BODY, &edits).unwrap();
        assert_eq!(out, format!("{{\"messages\":{array},\"n\":1}}"), "{edits:?}");
        assert!(serde_json::from_str::<serde_json::Value>(&out).is_ok());
    }
    assert_eq!(
        edited("{\"messages\":[ ]}", &[insert(0), insert(0)]).unwrap(),
        r#"{"messages":[{"i":1},{"i":1} ]}"#
    );
}

#[test]
fn invalid_edits_are_refused() {
    let remove = |messages| Edit::Remove { messages };
    for (edits, error) in [
        (vec![mask(2)], BadEdit::NoContent { edit: 0 }),
        (vec![mask(3)], BadEdit::NoSuchMessage { edit: 0 }),
        (vec![mask(1), mask(0)], BadEdit::OutOfOrder { edit: 1 }),
        (vec![mask(1), mask(1)], BadEdit::OutOfOrder { edit: 1 }),
        (vec![Edit::Untag { message: 0 }], BadEdit::NoTag { edit: 0 }),
        (vec![remove(0..2), mask(1)], BadEdit::OutOfOrder { edit: 1 }),
        (vec![remove(1..4)], BadEdit::NoSuchMessage { edit: 0 }),
        (vec![remove(1..1)], BadEdit::NoSuchMessage { edit: 0 }),
        (vec![Edit::Insert { before: 4, with: new("{}") }], BadEdit::NoSuchMessage { edit: 0 }),
    ] {
        assert_eq!(edited(BODY, &edits), Err(error), "{edits:?}");
    }
}
