//! The places in a request by which its conversation is recognised if nothing names it.

use crate::{Outline, Reader, chain};
use std::collections::VecDeque;
use tidegate_engine::{Digest, Role};

/// Digests at the places of a request where an earlier request of the same conversation may have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchPoints {
    /// At the first message.
    pub opening: Digest,
    /// At the last message.
    pub end: Digest,
    /// At the messages before the last answers, the newest first: there the requests ended that were answered.
    pub before_answers: Vec<Digest>,
    /// At the last answers, the newest first: up to there a client does not change its messages any more.
    pub answers: Vec<Digest>,
    /// At earlier answers, the newest first: up to one of them a client has changed nothing that has changed later ones.
    pub anchors: Vec<Anchor>,
}

/// An answer further back than clients usually change their messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    pub digest: Digest,
    /// About how many answers back it is, if it is one of the request's own; `None` if only an earlier request may have chosen it.
    pub distance: Option<u32>,
}

/// How many answers back an earlier request is looked for.
const MAX_ANSWERS: usize = 4;

/// How many answers back anchors are. The next request is one answer longer and still finds them: each keeps its place for half its
/// distance, and the place before is looked for, too.
const DISTANCES: [usize; 6] = [2, 4, 8, 16, 32, 64];

impl Reader {
    /// Returns the digests by which a conversation is recognised from its content. `None` if it has no messages besides
    /// instructions, or cannot be read.
    #[must_use]
    pub fn branch_points(&self, body: &[u8], outline: &Outline) -> Option<BranchPoints> {
        branch_points(&self.gists(body, outline)?)
    }
}

fn branch_points(gists: &[(Role, [u8; 32])]) -> Option<BranchPoints> {
    let answered = gists.iter().filter(|(role, _)| *role == Role::Assistant).count();
    let mut places = anchor_places(answered);
    let (mut opening, mut digest, mut count) = (None, Digest::default(), 0);
    let (mut before_answers, mut answers) = (VecDeque::new(), VecDeque::new());
    let mut anchors = Vec::new();
    for (role, canonical) in gists.iter().filter(|(role, _)| !role.is_instruction()) {
        let before = digest;
        digest = chain(before, canonical);
        if *role == Role::Assistant {
            count += 1;
            if opening.is_some() {
                before_answers.push_front(before);
            }
            answers.push_front(digest);
            before_answers.truncate(MAX_ANSWERS);
            answers.truncate(MAX_ANSWERS);
            if let Some((_, distance)) = places.pop_if(|(place, _)| *place == count) {
                anchors.push(Anchor { digest, distance });
            }
        }
        opening.get_or_insert(digest);
    }
    anchors.reverse();
    Some(BranchPoints {
        opening: opening?,
        end: digest,
        before_answers: before_answers.into(),
        answers: answers.into(),
        anchors,
    })
}

/// Which of this many answers are anchors, the last first: each with its distance if it is the request's own.
fn anchor_places(answers: usize) -> Vec<(usize, Option<u32>)> {
    let mut places: Vec<(usize, Option<u32>)> = Vec::new();
    for (distance, number) in DISTANCES.into_iter().zip(1u32..) {
        let step = distance / 2;
        let own = answers.saturating_sub(distance) / step * step;
        for (place, distance) in [(own, Some(1 << number)), (own.saturating_sub(step), None)] {
            match places.iter_mut().find(|(known, _)| *known == place) {
                Some((_, known)) => *known = known.or(distance),
                None if place > 0 => places.push((place, distance)),
                None => {}
            }
        }
    }
    places.sort_unstable_by_key(|(place, _)| std::cmp::Reverse(*place));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(answers: usize) -> Vec<usize> {
        anchor_places(answers).into_iter().filter(|(_, own)| own.is_some()).map(|(place, _)| place).collect()
    }

    #[test]
    fn anchors_are_further_and_further_back() {
        assert!(own(2).is_empty());
        assert_eq!(own(3), [1]);
        assert_eq!(own(12), [10, 8, 4]);
        assert_eq!(own(100), [98, 96, 92, 80, 64, 32]);
    }

    #[test]
    fn the_next_request_finds_an_anchor_before_whatever_has_changed() {
        for answers in 4..300 {
            let known = own(answers);
            // The next request has one answer more, or two.
            for next in [answers + 1, answers + 2] {
                let sought: Vec<usize> = anchor_places(next).into_iter().map(|(place, _)| place).collect();
                for changed in 1..answers.min(64) {
                    // The first answer that the client has changed.
                    let first = answers - changed + 1;
                    let found = sought.iter().find(|place| **place < first && known.contains(place));
                    // At most as far back again, unless the conversation has only just begun.
                    let earliest = answers.saturating_sub(3 * changed + 2);
                    match found {
                        Some(place) => assert!(*place >= earliest, "{answers}, {changed}: {place}"),
                        None => assert!(earliest == 0, "{answers}, {changed}: {known:?}, {sought:?}"),
                    }
                }
            }
        }
    }

    #[test]
    fn anchors_are_digests_at_answers() {
        let gists: Vec<(Role, [u8; 32])> = (0..24u8)
            .map(|number| (if number % 2 == 0 { Role::User } else { Role::Assistant }, [number; 32]))
            .collect();
        let points = branch_points(&gists).unwrap();
        for (anchor, (place, distance)) in points.anchors.iter().zip(anchor_places(12)) {
            assert_eq!(anchor.distance, distance);
            assert_eq!(anchor.digest, branch_points(&gists[..2 * place]).unwrap().end);
        }
        assert_eq!(points.anchors.len(), anchor_places(12).len());
    }
}
