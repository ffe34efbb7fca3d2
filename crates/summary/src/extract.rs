mod artifact;
mod candidate;
mod claim;
mod conflict;
mod cue;
mod disown;
mod grammar;
mod observation;
mod phrase;
mod question;
mod reading;
mod supersede;
mod topic;
mod value;
mod worth;

use self::candidate::Candidate;
use self::reading::{REPORT_PREFIX, Reading};
use self::worth::WORTH_KEEPING;
use crate::parse::bounded;
use crate::{Entry, MAX_ENTRIES, Section, Source, Summary};

/// Summarizes without a model: picks the sentences that carry the task, decisions, facts, questions and
/// things to do, and the names of files, links and commands.
///
/// A later statement replaces an earlier one, also one of the earlier summary, when it gives the same matter
/// another value of the same sort (`The deadline moved to May 12`), or gives the earlier value up by name
/// (`Scrap Postgres`). Both stay where it may be about something else: an outdated line is a smaller harm than
/// a lost one, and a reader is told that the later of two holds.
///
/// The same input gives the same summary, in time that grows with the length of the text. The rules are for
/// English; in other languages names, numbers, paths and the user's own statements are still kept.
/// `max_tokens` is about how long the rendering may get: with less room the best of everything is kept rather
/// than everything of the newest. What remains over it is for [`cap`](crate::cap).
pub fn extract(previous: Option<&Summary>, sources: &[Source<'_>], max_tokens: u32) -> Summary {
    let mut reading = Reading::default();
    if let Some(previous) = previous {
        reading.earlier(previous);
    }
    for (place, source) in sources.iter().enumerate() {
        reading.message(place + 1, source, sources.len() - place);
    }
    reading.close_questions();
    let summary = chosen(reading, max_tokens as usize * CHARS_PER_TOKEN);
    bounded(summary, |_| true)
}

const CHARS_PER_TOKEN: usize = 4;
/// What the frame around the entries takes.
const FRAME_CHARS: usize = 400;
const MAX_ERRORS: usize = 6;
const MAX_RESULTS: usize = 12;
const MAX_ARTIFACT_CHARS: usize = 1_200;

/// What of it all fits, the best of each sort.
fn chosen(mut reading: Reading<'_>, room: usize) -> Summary {
    let mut candidates = std::mem::take(&mut reading.candidates);
    for (list, most) in [(std::mem::take(&mut reading.errors), MAX_ERRORS), (reading.results(), MAX_RESULTS)]
    {
        let fresh: Vec<Candidate> =
            list.into_iter().filter(|found| !reading.is_stale_routine(found)).collect();
        candidates.extend(latest(fresh, most));
    }
    candidates.retain(|candidate| !reading.is_stale_routine(candidate));
    candidates.sort_by_key(|candidate| candidate.place);
    let candidates = conflict::resolved(candidates);
    let mut room = room.saturating_sub(FRAME_CHARS).max(room / 4);
    let mut summary = Summary::default();
    if let Some(report) = reading.last_report {
        summary.summary_text = format!("{REPORT_PREFIX}{report}");
        room = room.saturating_sub(summary.summary_text.chars().count());
    }
    // Shares in percent of what is left when their turn comes. What was settled and what is known compete for
    // one room, because which of the two a sentence is hangs on a word; the rest gets what they leave.
    for (sections, share) in [
        (&[Section::Goals][..], 15),
        (&[Section::Decisions, Section::KeyFacts], 88),
        (&[Section::OpenQuestions], 40),
        (&[Section::ActionItems], 50),
    ] {
        let chosen = best(&candidates, sections, room * share / 100);
        for &section in sections {
            let of_section = chosen.iter().filter(|candidate| candidate.section == section);
            let entries: Vec<Entry> = of_section.map(|candidate| candidate.entry()).collect();
            room = room.saturating_sub(length(&entries));
            *summary.list_mut(section) = entries;
        }
    }
    summary.artifacts = reading.artifacts.best(most(Section::Artifacts), room.min(MAX_ARTIFACT_CHARS));
    summary
}

/// The most entries of a section that are worth reading.
fn most(section: Section) -> usize {
    match section {
        Section::Goals => 5,
        Section::Decisions | Section::KeyFacts => MAX_ENTRIES,
        Section::OpenQuestions => 8,
        Section::ActionItems => 10,
        Section::Artifacts => 16,
    }
}

fn latest(list: Vec<Candidate>, most: usize) -> impl Iterator<Item = Candidate> {
    let surplus = list.len().saturating_sub(most);
    list.into_iter().skip(surplus)
}

/// The best candidates of some sections that fit, in the order in which they were said.
fn best<'a>(candidates: &'a [Candidate], sections: &[Section], room: usize) -> Vec<&'a Candidate> {
    let is_worth_it = |candidate: &Candidate| {
        candidate.score >= if candidate.section == Section::KeyFacts { WORTH_KEEPING } else { 1 }
    };
    let mut ranked: Vec<(usize, &Candidate)> = candidates
        .iter()
        .enumerate()
        .filter(|(_, candidate)| sections.contains(&candidate.section) && is_worth_it(candidate))
        .collect();
    ranked.sort_by_key(|(place, candidate)| std::cmp::Reverse((candidate.rank(), *place)));
    let mut room = room;
    let mut kept: Vec<(usize, &Candidate)> = Vec::new();
    for (place, candidate) in ranked {
        let cost = candidate.text.chars().count() + 3;
        // The task stays even where nothing else has room: what still does not fit is cut when the summary is
        // capped.
        let is_task = candidate.section == Section::Goals && kept.is_empty();
        let of_section = kept.iter().filter(|(_, other)| other.section == candidate.section).count();
        if (cost <= room || is_task) && of_section < most(candidate.section) {
            room = room.saturating_sub(cost);
            kept.push((place, candidate));
        }
    }
    kept.sort_by_key(|(place, _)| *place);
    kept.into_iter().map(|(_, candidate)| candidate).collect()
}

fn length(entries: &[Entry]) -> usize {
    entries.iter().map(|entry| entry.text.chars().count() + 3).sum()
}
