//! The textual parts of the page.

use super::escaped;
use crate::comparison::Comparison;
use crate::figures::Figures;
use crate::recommend::Recommendation;
use crate::run::Setup;
use std::fmt::Write;

pub(super) fn heading(setup: &Setup, comparison: &Comparison, notes: &[String]) -> String {
    let requests = comparison.totals.first().and_then(|totals| totals.first()).map_or(0, |raw| raw.requests);
    let models: Vec<String> = comparison.models.iter().map(|model| escaped(model)).collect();
    let mut text = format!(
        "<header><h1>Tidegate replay</h1><p>{} · {} · {}</p></header>\n",
        plural(comparison.conversations.len() as u64, "conversation"),
        plural(requests, "request"),
        models.join(", ")
    );
    if !notes.is_empty() {
        text += "<ul class=\"notes\">";
        for note in notes {
            let _ = write!(text, "<li>{}</li>", escaped(note));
        }
        text += "</ul>\n";
    }
    if setup.regimes.len() > 1 {
        text += "<nav id=\"prices\">";
        for (number, regime) in setup.regimes.iter().enumerate() {
            let _ = write!(text, "<button data-price=\"{number}\">{}</button>", escaped(&regime.to_string()));
        }
        text += "</nav>\n";
    }
    text
}

/// The table of one price.
pub(super) fn price(
    setup: &Setup,
    comparison: &Comparison,
    regime: usize,
    recommended: Option<&Recommendation>,
) -> String {
    let totals = &comparison.totals[regime];
    let mut text = format!("<section class=\"price\" data-price=\"{regime}\">\n");
    let _ = write!(
        text,
        "<h2>{}</h2>\n{}",
        escaped(&setup.regimes[regime].to_string()),
        cards(setup, totals, recommended)
    );
    text += "<div class=\"scroll\"><table>\n<thead><tr><th>policy</th><th>requests</th><th>tokens sent</th><th>cached</th>\
             <th>input cost</th><th>/ raw</th><th></th><th>worst conversation</th><th>refused</th><th>edited</th><th>moves</th>\
             <th>summaries</th></tr></thead>\n<tbody>\n";
    let highest = totals
        .iter()
        .take(setup.main)
        .map(|figures| figures.cost.ratio_to(&totals[0].cost))
        .fold(1.0, f64::max);
    for (index, (policy, figures)) in setup.policies.iter().zip(totals).take(setup.main).enumerate() {
        let ratio = figures.cost.ratio_to(&totals[0].cost);
        let kind = if index == 0 {
            "raw"
        } else if ratio > 1.005 {
            "more"
        } else {
            "less"
        };
        let worst = comparison.worst(regime, index).filter(|_| index > 0);
        let worst =
            worst.map_or("–".to_owned(), |(id, ratio)| format!("{ratio:.2} <span>{}</span>", escaped(id)));
        let _ = writeln!(
            text,
            "<tr><td><i data-policy=\"{index}\"></i>{}</td><td>{}</td><td>{}</td><td>{:.0} %</td><td>{}</td><td>{ratio:.3}</td>\
             <td><div class=\"bar {kind}\" style=\"width:{:.1}px\"></div></td><td class=\"id\">{worst}</td><td>{}</td><td>{}</td>\
             <td>{}</td><td>{}</td></tr>",
            escaped(&policy.to_string()),
            grouped(figures.requests),
            grouped(figures.sent),
            figures.cached_share() * 100.0,
            cost(figures),
            ratio / highest * 64.0,
            grouped(figures.unanswered()),
            grouped(figures.edited),
            grouped(figures.moves),
            grouped(figures.summaries),
        );
    }
    text += "</tbody></table></div>\n";
    if let Some(best) = recommended {
        let policy = setup.policies[best.policy].to_string();
        let _ = writeln!(
            text,
            "<div class=\"recommended\"><p>Recommended: <b>{}</b>, at {:.3} of the cost of raw.</p><pre>{}</pre></div>",
            escaped(&policy),
            best.ratio,
            escaped(&best.snippet)
        );
    }
    text + "</section>\n"
}

/// The three most important figures. With a recommendation, that is the cheap one: the cheapest of all may be out of bounds.
fn cards(setup: &Setup, totals: &[Figures], recommended: Option<&Recommendation>) -> String {
    let raw = &totals[0];
    let others = || {
        setup
            .policies
            .iter()
            .zip(totals)
            .take(setup.main)
            .skip(1)
            .filter(|(_, figures)| figures.unanswered() == 0)
    };
    let ratio = |figures: &Figures| figures.cost.ratio_to(&raw.cost);
    let by = |one: &(_, &Figures), other: &(_, &Figures)| ratio(one.1).total_cmp(&ratio(other.1));
    let mut text = "<div class=\"cards\">".to_owned();
    let mut card = |name: &str, value: &str, more: &str| {
        let _ = write!(
            text,
            "<div><span>{}</span><strong>{}</strong><span>{}</span></div>",
            escaped(name),
            escaped(value),
            escaped(more)
        );
    };
    card("without edits", &cost(raw), &plural(raw.sent, "token"));
    if let Some(best) = recommended {
        let (policy, figures) = (&setup.policies[best.policy], &totals[best.policy]);
        let saved = (1.0 - ratio(figures)) * 100.0;
        card("recommended", &cost(figures), &format!("{policy}: {} %", signed(-saved)));
    } else if let Some((policy, figures)) = others().min_by(by) {
        let saved = (1.0 - ratio(figures)) * 100.0;
        card("cheapest", &cost(figures), &format!("{policy}: {} %", signed(-saved)));
    }
    if let Some((policy, figures)) = others().max_by(by) {
        let more = (ratio(figures) - 1.0) * 100.0;
        card("most expensive", &cost(figures), &format!("{policy}: {} %", signed(more)));
    }
    text + "</div>\n"
}

fn signed(percent: f64) -> String {
    let rounded = percent.round();
    if rounded < 0.0 { format!("−{:.0}", -rounded) } else { format!("+{:.0}", rounded.abs()) }
}

fn cost(figures: &Figures) -> String {
    match figures.cost.known_usd() {
        Some(usd) if usd >= 100.0 => format!("${usd:.0}"),
        Some(usd) if usd >= 1.0 => format!("${usd:.2}"),
        Some(usd) => format!("${usd:.4}"),
        None => "n/a".to_owned(),
    }
}

fn plural(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", grouped(number), if number == 1 { "" } else { "s" })
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
