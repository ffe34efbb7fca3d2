use crate::Unreadable;
use crate::cursor::{Value, once};
use std::borrow::Cow;

/// The members of an item that have a meaning here. Each of those that decide anything may occur once.
#[derive(Debug)]
pub(super) struct Item<'a> {
    pub(super) value: Value<'a>,
    pub(super) kind: Option<Cow<'a, str>>,
    pub(super) role: Option<Cow<'a, str>>,
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) call_id: Option<Cow<'a, str>>,
    pub(super) name: Option<Cow<'a, str>>,
    /// What a call asks for: a text, or any other value.
    pub(super) input: Option<Value<'a>>,
    pub(super) content: Option<Value<'a>>,
    pub(super) output: Option<Value<'a>>,
    pub(super) summary: Option<Value<'a>>,
    /// The size of what only the provider can read.
    pub(super) encrypted: usize,
    /// The call that this one was made by.
    pub(super) caller: Option<Cow<'a, str>>,
    pub(super) approval: Option<Cow<'a, str>>,
}

impl<'a> Item<'a> {
    /// Reads an item and checks every byte of it, except for `content`, `output` and `summary`, which are for others to read.
    pub(super) fn read(value: Value<'a>) -> Result<Item<'a>, Unreadable> {
        let mut item = Item {
            value,
            kind: None,
            role: None,
            id: None,
            call_id: None,
            name: None,
            input: None,
            content: None,
            output: None,
            summary: None,
            encrypted: 0,
            caller: None,
            approval: None,
        };
        value.members(|member| item.member(&member.key, member.value))?;
        Ok(item)
    }

    fn member(&mut self, key: &str, value: Value<'a>) -> Result<(), Unreadable> {
        match key {
            "type" => text(&mut self.kind, value, "type"),
            "role" => text(&mut self.role, value, "role"),
            "id" => text(&mut self.id, value, "id"),
            "call_id" => text(&mut self.call_id, value, "call_id"),
            "name" => text(&mut self.name, value, "name"),
            "approval_request_id" => text(&mut self.approval, value, "approval_request_id"),
            "content" => once(&mut self.content, value, "content"),
            "output" => once(&mut self.output, value, "output"),
            "summary" => once(&mut self.summary, value, "summary"),
            "arguments" | "input" | "action" | "operation" => {
                value.check()?;
                // An item has one of them. A second one is for the model to make sense of.
                self.input = self.input.or(Some(value));
                Ok(())
            }
            "encrypted_content" => {
                value.check()?;
                self.encrypted += value.raw().len();
                Ok(())
            }
            "caller" => {
                value.check()?;
                value.members_of_object(|key, value| match key {
                    "caller_id" => text(&mut self.caller, value, "caller_id"),
                    _ => Ok(()),
                })
            }
            _ => value.check(),
        }
    }

    /// What the item is. A message needs no type, and a reference none either.
    pub(super) fn kind(&self) -> &str {
        match (self.kind.as_deref(), &self.role) {
            (Some(kind), _) => kind,
            (None, Some(_)) => "message",
            (None, None) => "item_reference",
        }
    }

    /// Checks what nobody has read.
    pub(super) fn check_rest(&self) -> Result<(), Unreadable> {
        [self.content, self.output, self.summary].into_iter().flatten().try_for_each(Value::check)
    }
}

fn text<'a>(slot: &mut Option<Cow<'a, str>>, value: Value<'a>, key: &'static str) -> Result<(), Unreadable> {
    match value.text()? {
        Some(text) => once(slot, text, key),
        None => Ok(()),
    }
}
