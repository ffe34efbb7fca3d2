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

/// Summarizes without a model: selects the sentences that state the task, decisions, facts, questions and things to do, and the
/// names of files, links and commands.
///
/// A later statement replaces an earlier one, also one from the previous summary, if it gives the same subject another value of the
/// same kind (`The deadline moved to May 12`) or revokes the earlier value by name (`Scrap Postgres`). If in doubt, both stay: an
/// outdated line does less harm than a lost one, and the rendering says that the later of two holds.
///
/// The result is deterministic, and the time is linear in the text. The rules are for English; in other languages, names, numbers,
/// paths and the user's own statements are still kept. `max_tokens` is the approximate length of the rendering: with less room, the
/// best entries of each kind are kept rather than the newest ones. [`cap`](crate::cap()) enforces the limit.
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
/// The approximate length of the frame around the entries.
const FRAME_CHARS: usize = 400;
const MAX_ERRORS: usize = 6;
const MAX_RESULTS: usize = 12;
const MAX_ARTIFACT_CHARS: usize = 1_200;

/// Selects the best candidates of each section that fit.
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

/// The maximum number of entries in a section.
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

/// Returns the best candidates of some sections that fit, in chronological order.
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
