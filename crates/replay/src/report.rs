//! The HTML report of a replay: tables, plots and the edits of each request, in one self-contained file.
//!
//! Ids and names come from recordings, so everything is escaped: as HTML in the page, and as JSON that cannot
//! close its element in the data. The page may load nothing.

mod data;
mod rows;

use crate::comparison::Comparison;
use crate::recommend::Recommendation;
use crate::run::Setup;
use std::fmt::Write;

const STYLE: &str = include_str!("report/page.css");
const SCRIPT: &str = include_str!("report/page.js");

/// Allows only what is in the page itself.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// Renders the page. `recommended` has one entry per price, or is empty.
#[must_use]
pub fn report(
    setup: &Setup,
    comparison: &Comparison,
    notes: &[String],
    recommended: &[Option<Recommendation>],
) -> String {
    let mut page = String::with_capacity(256 * 1024);
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{CONTENT_POLICY}\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>Tidegate replay</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
    );
    page += &rows::heading(setup, comparison, notes);
    for regime in 0..setup.regimes.len() {
        page += &rows::price(setup, comparison, regime, recommended.get(regime).and_then(Option::as_ref));
    }
    page += PLOTS;
    let data = data::of(setup, comparison).to_string();
    // Without `<`, the data cannot close its element.
    let data = data.replace('<', "\\u003c");
    let _ = write!(
        page,
        "<footer>Made by <code>tidegate replay</code> {}. This page loads nothing.</footer>\n</main>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    );
    page
}

const PLOTS: &str = "\
<section class=\"plots\">
<figure id=\"size\"><figcaption><b>Context size</b> mean tokens of the n-th request</figcaption></figure>
<figure id=\"cost\"><figcaption><b>Cumulative cost</b> of the first n requests of all conversations</figcaption></figure>
<figure id=\"window\"><figcaption><b>Cost by window size</b> relative to raw, by turns kept unedited</figcaption></figure>
</section>
<section class=\"strips\">
<h2>Messages kept, masked and folded</h2>
<p><label>Conversation <select id=\"conversation\"></select></label> <span id=\"keys\"></span></p>
<p class=\"hint\">Each column is a request: below the line is what was sent, above it what was left out. A dot marks a request whose \
edits change a prefix in the provider's cache.</p>
<div id=\"strips\"></div>
</section>
";

/// Escapes a text for HTML, including attribute values.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;
    use crate::price::Regime;
    use crate::run::Replayed;
    use tidegate_config::{Flags, Source, load};

    #[test]
    fn recorded_text_never_becomes_markup() {
        let settings = load(Source::none(), &Flags::default(), &|_| None).unwrap();
        let policies = Policy::all(["\"><img src=x>".to_owned()]);
        let setup = Setup { settings, main: policies.len(), policies, regimes: vec![Regime::Table], gap: 0 };
        let mut comparison = Comparison::new(&setup);
        let hostile = "</script><script>alert(1)</script><!--";
        comparison.add(
            0,
            Replayed {
                id: hostile.to_owned(),
                has_times: false,
                models: vec![hostile.to_owned()],
                figures: comparison.totals.clone(),
                turns: vec![vec![Vec::new(); setup.policies.len()]],
            },
        );
        let page = report(&setup, &comparison, &[hostile.to_owned()], &[]);
        assert_eq!(page.matches("<script").count(), 2, "{page}");
        assert_eq!(page.matches("</script").count(), 2);
        assert!(!page.contains("<img") && !page.contains("<!--"));
        assert!(page.contains("&lt;/script&gt;"));
    }

    #[test]
    fn the_page_loads_nothing() {
        for text in [STYLE, SCRIPT, PLOTS] {
            for forbidden in [
                "http:",
                "https:",
                "//cdn",
                "url(",
                "@import",
                "fetch(",
                "XMLHttpRequest",
                "innerHTML",
                "eval(",
            ] {
                // The SVG namespace looks like a URL but is not loaded.
                assert!(!text.replace("http://www.w3.org/2000/svg", "").contains(forbidden), "{forbidden}");
            }
        }
    }
}
