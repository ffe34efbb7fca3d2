//! Hashes JSON values independent of their spelling.

use crate::Unreadable;
use crate::cursor::Value;
use crate::field_hasher::FieldHasher;

/// Any value, without its white space and escapes.
pub(crate) fn hash_json(hasher: &mut FieldHasher, value: Value<'_>) -> Result<(), Unreadable> {
    match value.first() {
        Some(b'{') => {
            hasher.field(b'{', b"");
            value.members(|member| {
                hasher.field(b'k', member.key.as_bytes());
                hash_json(hasher, member.value)
            })?;
            hasher.field(b'}', b"");
        }
        Some(b'[') => {
            hasher.field(b'[', b"");
            value.elements(|element| hash_json(hasher, element))?;
            hasher.field(b']', b"");
        }
        _ => match value.text()? {
            Some(text) => hasher.field(b's', text.as_bytes()),
            None => hasher.field(b'v', value.raw()),
        },
    }
    Ok(())
}

/// The members of an object by name: SDKs do not agree on their order.
pub(crate) fn sorted_members(object: Value<'_>) -> Result<Vec<(String, Value<'_>)>, Unreadable> {
    let mut members = Vec::new();
    object.members_of_object(|key, value| {
        members.push((key.to_owned(), value));
        Ok(())
    })?;
    members.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(members)
}
