//! Folds by the order in which they came.

use crate::store::FOLDS;
use bytes::Bytes;
use std::collections::BTreeMap;

/// The records of folds, by what they cover, in their order.
///
/// The two are read one after the other, and a server that is short of memory may drop one of them alone. So what has no record
/// is left out, and what has no place comes first, as the oldest: it is not lost, and it is the same each time.
pub(super) fn in_order(mut folds: BTreeMap<Vec<u8>, Vec<u8>>, order: &[Vec<u8>]) -> Vec<Bytes> {
    let placed: Vec<Vec<u8>> = order.iter().filter_map(|covers| folds.remove(covers)).collect();
    let mut all: Vec<Bytes> = folds.into_values().chain(placed).map(Bytes::from).collect();
    all.drain(..all.len().saturating_sub(FOLDS));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_without_a_place_come_first_and_places_without_a_fold_are_skipped() {
        let name = |name: &str| name.as_bytes().to_vec();
        let folds = ["a", "b", "c", "d"].map(|covers| (name(covers), name(covers))).into_iter().collect();
        let order = ["x", "d", "b"].map(name);
        assert_eq!(in_order(folds, &order), ["a", "c", "d", "b"]);
    }
}
