//! The columns of an insert. Each is one array parameter, whatever the number of rows.

use crate::RowId;
use bytes::BytesMut;
use std::borrow::Cow;
use std::error::Error;
use std::time::{Duration, SystemTime};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

/// One column of a batch of rows.
pub(crate) struct Column<'a> {
    pub(crate) name: &'static str,
    /// The type of the array.
    pub(crate) kind: Type,
    pub(crate) values: Box<dyn ToSql + Sync + Send + 'a>,
}

/// A batch of rows of one table, from which its columns are built.
pub(crate) struct Rows<'a, R>(pub(crate) Vec<&'a R>);

impl<'a, R> Rows<'a, R> {
    pub(crate) fn id(&self, name: &'static str, of: impl Fn(&'a R) -> RowId) -> Column<'a> {
        self.column(name, Type::UUID_ARRAY, of)
    }

    pub(crate) fn optional_id(&self, name: &'static str, of: impl Fn(&'a R) -> Option<RowId>) -> Column<'a> {
        self.column(name, Type::UUID_ARRAY, of)
    }

    /// Text that is stored byte for byte. A NUL character makes the database reject the row.
    pub(crate) fn raw(&self, name: &'static str, of: impl Fn(&'a R) -> &'a str) -> Column<'a> {
        self.column(name, Type::TEXT_ARRAY, of)
    }

    /// Text in which NUL characters are replaced.
    pub(crate) fn text(&self, name: &'static str, of: impl Fn(&'a R) -> &'a str) -> Column<'a> {
        self.column(name, Type::TEXT_ARRAY, |row| without_nul(of(row)))
    }

    /// Bytes as hexadecimal digits.
    pub(crate) fn hex(&self, name: &'static str, of: impl Fn(&'a R) -> [u8; 16]) -> Column<'a> {
        self.column(name, Type::TEXT_ARRAY, |row| format!("{:032x}", u128::from_be_bytes(of(row))))
    }

    pub(crate) fn optional_text(
        &self,
        name: &'static str,
        of: impl Fn(&'a R) -> Option<&'a String>,
    ) -> Column<'a> {
        self.column(name, Type::TEXT_ARRAY, |row| of(row).map(|text| without_nul(text)))
    }

    /// A JSON array of strings.
    pub(crate) fn list(&self, name: &'static str, of: impl Fn(&'a R) -> &'a [String]) -> Column<'a> {
        self.column(name, Type::JSONB_ARRAY, |row| List::of(of(row)))
    }

    pub(crate) fn number(&self, name: &'static str, of: impl Fn(&'a R) -> u64) -> Column<'a> {
        self.column(name, Type::INT8_ARRAY, |row| signed(of(row)))
    }

    pub(crate) fn optional_number(
        &self,
        name: &'static str,
        of: impl Fn(&'a R) -> Option<u64>,
    ) -> Column<'a> {
        self.column(name, Type::INT8_ARRAY, |row| of(row).map(signed))
    }

    pub(crate) fn small_number(&self, name: &'static str, of: impl Fn(&'a R) -> u16) -> Column<'a> {
        self.column(name, Type::INT4_ARRAY, |row| i32::from(of(row)))
    }

    pub(crate) fn optional_fraction(
        &self,
        name: &'static str,
        of: impl Fn(&'a R) -> Option<f64>,
    ) -> Column<'a> {
        self.column(name, Type::FLOAT8_ARRAY, of)
    }

    pub(crate) fn flag(&self, name: &'static str, of: impl Fn(&'a R) -> bool) -> Column<'a> {
        self.column(name, Type::BOOL_ARRAY, of)
    }

    pub(crate) fn time(&self, name: &'static str, of: impl Fn(&'a R) -> u64) -> Column<'a> {
        self.column(name, Type::TIMESTAMPTZ_ARRAY, |row| time(of(row)))
    }

    fn column<V>(&self, name: &'static str, kind: Type, of: impl Fn(&'a R) -> V) -> Column<'a>
    where
        V: ToSql + Sync + Send + 'a,
    {
        let values: Vec<V> = self.0.iter().map(|row| of(row)).collect();
        Column { name, kind, values: Box::new(values) }
    }
}

/// Replaces NUL, the one character that PostgreSQL text cannot hold. Summaries and model names may contain it.
fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text.into() }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn time(millis: u64) -> SystemTime {
    // A wildly wrong clock must not cost the row, so times are capped at the end of the year 9999.
    const LATEST: u64 = 253_402_300_799_999;
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis.min(LATEST))
}

/// A JSON array of strings.
#[derive(Debug)]
struct List(String);

impl List {
    fn of(lines: &[String]) -> List {
        let lines: Vec<Cow<'_, str>> = lines.iter().map(|line| without_nul(line)).collect();
        // A list of strings always serializes.
        List(serde_json::to_string(&lines).unwrap_or_else(|_| "[]".to_owned()))
    }
}

impl ToSql for List {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        // The binary format of jsonb: a version byte, then the text.
        out.extend_from_slice(&[1]);
        out.extend_from_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::JSONB
    }

    to_sql_checked!();
}

impl ToSql for RowId {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::UUID
    }

    to_sql_checked!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_outside_a_columns_range_are_replaced() {
        assert_eq!(without_nul("a\0b"), "a\u{fffd}b");
        assert_eq!(List::of(&["a\0\"".to_owned(), "ü".to_owned()]).0, "[\"a\u{fffd}\\\"\",\"ü\"]");
        assert_eq!(signed(u64::MAX), i64::MAX);
        assert!(time(u64::MAX) > time(1_700_000_000_000));
    }
}
