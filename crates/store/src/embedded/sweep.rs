//! Removes expired conversations in bounded steps, so that no request waits long behind one.

use super::change::touched_at;
use super::lifetime::Moment;
use super::space::Space;
use super::tables::{BY_BURIED, BY_TOUCHED, Tables, at, parse_at};
use crate::store::TOMBSTONE_LIFE;
use crate::{ConversationKey, StoreError};
use redb::{Database, ReadableDatabase, ReadableTable};

/// The outcome of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Swept {
    Everything,
    /// More had expired than one sweep may remove.
    MoreLeft,
}

/// The maximum number of rows in one sweep: a commit of a few milliseconds.
pub(super) const MAX_ROWS: usize = 1_024;

/// Removes at most `rows` rows of expired conversations, and of the oldest ones if the space exceeds its limit. Does not write if there is
/// nothing to remove.
pub(super) fn sweep(
    database: &Database,
    moment: Moment,
    mut rows: usize,
    space: &Space,
) -> Result<Swept, StoreError> {
    let first_alive = moment.first_alive().to_be_bytes();
    let long_ago = long_ago(moment).to_be_bytes();
    let snapshot = database.begin_read()?;
    let due = snapshot.open_table(BY_TOUCHED)?.range::<&[u8]>(..&first_alive[..])?.next();
    let buried = snapshot.open_table(BY_BURIED)?.range::<&[u8]>(..&long_ago[..])?.next();
    let fits = space.used() <= space.limit();
    if fits && due.transpose()?.is_none() && buried.transpose()?.is_none() {
        return Ok(Swept::Everything);
    }
    drop(snapshot);
    let mut transaction = database.begin_write()?;
    transaction.set_quick_repair(true);
    let mut tables = Tables::open(&transaction)?;
    while rows > 0 {
        let due = tables.by_touched.range::<&[u8]>(..&first_alive[..])?.next().transpose()?;
        let Some(due) = due.map(|(row, _)| row.value().to_vec()) else { break };
        let (_, key) = parse_at(&due)
            .ok_or_else(|| StoreError::Corrupt("an index row has the wrong length".to_owned()))?;
        tables.clear(key, &mut rows)?;
    }
    while rows > 0 {
        let due = tables.by_buried.range::<&[u8]>(..&long_ago[..])?.next().transpose()?;
        let Some(due) = due.map(|(row, _)| row.value().to_vec()) else { break };
        rows -= 1;
        forget_deletion(&mut tables, &due, moment)?;
    }
    let evicted = make_room(&mut tables, space, moment, &mut rows)?;
    let used = space.with(&tables);
    drop(tables);
    Space::store(&transaction, used)?;
    transaction.commit()?;
    space.committed(used);
    space.evictions.add(&evicted);
    Ok(if rows > 0 { Swept::Everything } else { Swept::MoreLeft })
}

/// Removes the conversations that were not written to for longest while the space exceeds its limit, at most `rows` rows. Returns those
/// that had not expired. The last one may be removed in part, and looks expired until the rest is.
pub(super) fn make_room(
    tables: &mut Tables<'_>,
    space: &Space,
    moment: Moment,
    rows: &mut usize,
) -> Result<Vec<ConversationKey>, StoreError> {
    let mut evicted = Vec::new();
    while *rows > 0 && space.excess(tables) > 0 {
        let oldest = tables.by_touched.range::<&[u8]>(..)?.next().transpose()?;
        let Some(oldest) = oldest.map(|(row, _)| row.value().to_vec()) else { break };
        let (touched, key) = parse_at(&oldest)
            .ok_or_else(|| StoreError::Corrupt("an index row has the wrong length".to_owned()))?;
        if moment.is_alive(touched) {
            tables.expire(key)?;
            evicted.push(key);
        }
        tables.clear(key, rows)?;
    }
    Ok(evicted)
}

/// Deletions before this time may be forgotten.
fn long_ago(moment: Moment) -> u64 {
    let life = u64::try_from(TOMBSTONE_LIFE.as_millis()).unwrap_or(u64::MAX);
    moment.now.saturating_sub(life)
}

/// Removes a tombstone, unless the conversation exists again: its generation must not change while it lives.
fn forget_deletion(tables: &mut Tables<'_>, due: &[u8], moment: Moment) -> Result<(), StoreError> {
    let (_, key) =
        parse_at(due).ok_or_else(|| StoreError::Corrupt("an index row has the wrong length".to_owned()))?;
    if touched_at(&*tables.touched, key)?.is_none() {
        return Ok(tables.unbury(key)?);
    }
    tables.by_buried.remove(due)?;
    let row = tables.tombstones.get(&key.0[..])?.map(|row| row.value().to_vec());
    if let Some(mut row) = row.filter(|row| row.len() == 16) {
        row[8..].copy_from_slice(&moment.now.to_be_bytes());
        tables.tombstones.insert(&key.0[..], &row[..])?;
        tables.by_buried.insert(&at(moment.now, key)[..], &[][..])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

    use super::*;
    use crate::embedded::change::{Change, apply};
    use crate::embedded::lifetime::Lifetime;
    use crate::embedded::read;
    use crate::embedded::tables::META;
    use crate::embedded::tests::{journal, key, rows_in, turn};
    use crate::store::{Generation, Listing};
    use redb::backends::InMemoryBackend;
    use std::time::Duration;

    fn at(now: fn() -> u64) -> Moment {
        Lifetime::new(Duration::from_millis(100), now).moment()
    }

    fn write(database: &Database, changes: &[Change], moment: Moment) {
        let transaction = database.begin_write().unwrap();
        let applied = apply(&transaction, changes.iter(), moment, &boundless(database)).unwrap();
        assert!(applied.outcomes.iter().all(Result::is_ok));
        transaction.commit().unwrap();
    }

    fn boundless(database: &Database) -> Space {
        Space::open(database, u64::MAX).unwrap()
    }

    fn conversations() -> Database {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let transaction = database.begin_write().unwrap();
        drop(Tables::open(&transaction).unwrap());
        drop(transaction.open_table(META).unwrap());
        transaction.commit().unwrap();
        for number in 0..10 {
            let moment = if number < 5 { at(|| 1_000) } else { at(|| 1_050) };
            let changes = [
                Change::Journal(key(number), Generation::default(), journal("old")),
                Change::Conclude(key(number), Generation::default(), turn(1), Vec::new()),
            ];
            write(&database, &changes, moment);
        }
        database
    }

    #[test]
    fn expired_conversations_are_hidden_before_they_are_swept() {
        let database = conversations();
        let transaction = database.begin_read().unwrap();
        let moment = at(|| 1_100);
        assert!(read::waypoints(&transaction, key(4), moment).unwrap().is_empty());
        assert!(read::messages(&transaction, key(4), moment).unwrap().is_empty());
        assert!(read::turns(&transaction, key(4), moment).unwrap().is_empty());
        assert_eq!(read::head(&transaction, key(4), moment).unwrap(), None);
        let Listing { conversations, total } = read::list(&transaction, 1, 3, moment).unwrap();
        assert_eq!(total, 5);
        assert_eq!(conversations.iter().map(|(key, _)| *key).collect::<Vec<_>>(), [key(8), key(7), key(6)]);
    }

    #[test]
    fn sweeps_are_bounded_and_eventually_remove_everything() {
        let database = conversations();
        let all = rows_in(&database);
        let moment = at(|| 1_100);
        assert_eq!(sweep(&database, moment, 15, &boundless(&database)).unwrap(), Swept::MoreLeft);
        assert!(rows_in(&database) < all);
        // A partly removed conversation is still hidden.
        let transaction = database.begin_read().unwrap();
        assert_eq!(read::list(&transaction, 0, 50, moment).unwrap().total, 5);
        drop(transaction);
        while sweep(&database, moment, 15, &boundless(&database)).unwrap() == Swept::MoreLeft {}
        assert_eq!(rows_in(&database), all / 2);
        assert_eq!(
            sweep(&database, at(|| 1_150), usize::MAX, &boundless(&database)).unwrap(),
            Swept::Everything
        );
        assert_eq!(rows_in(&database), 0);
    }

    #[test]
    fn writing_to_an_expired_conversation_does_not_revive_it() {
        let database = conversations();
        let moment = at(|| 1_100);
        // The first is removed, the second only in part.
        sweep(&database, moment, 20, &boundless(&database)).unwrap();
        for number in 0..3 {
            let new = crate::store::Journal { messages: Vec::new(), waypoint: Some("new".into()) };
            write(&database, &[Change::Journal(key(number), Generation::default(), new)], moment);
            let transaction = database.begin_read().unwrap();
            assert_eq!(read::waypoints(&transaction, key(number), moment).unwrap(), ["new"]);
            assert!(read::messages(&transaction, key(number), moment).unwrap().is_empty());
            assert_eq!(read::head(&transaction, key(number), moment).unwrap(), None);
        }
    }
}
