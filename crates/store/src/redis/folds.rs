//! Restores the order of folds.

use crate::store::FOLDS;
use bytes::Bytes;
use std::collections::BTreeMap;

/// Returns the records of folds, which are keyed by what they cover, in the order in which they were stored.
///
/// The two keys are not read atomically, and a server that is short of memory may evict one of them. So entries without a record
/// are skipped, and folds without a position come first, in a stable order.
pub(super) fn in_order(mut folds: BTreeMap<Vec<u8>, Vec<u8>>, order: &[Vec<u8>]) -> Vec<Bytes> {
    let ordered: Vec<Vec<u8>> = order.iter().filter_map(|covers| folds.remove(covers)).collect();
    let mut all: Vec<Bytes> = folds.into_values().chain(ordered).map(Bytes::from).collect();
    all.drain(..all.len().saturating_sub(FOLDS));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_without_a_position_come_first_and_positions_without_a_fold_are_skipped() {
        let name = |name: &str| name.as_bytes().to_vec();
        let folds = ["a", "b", "c", "d"].map(|covers| (name(covers), name(covers))).into_iter().collect();
        let order = ["x", "d", "b"].map(name);
        assert_eq!(in_order(folds, &order), ["a", "c", "d", "b"]);
    }
}
