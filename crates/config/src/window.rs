use crate::fold::nonzero;
use crate::section::Section;
use std::num::NonZeroU32;

/// How much of the beginning and the end `strategy = "window"` keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    pub head_ratio: f64,
    pub tail_ratio: f64,
    pub head_max: NonZeroU32,
    pub tail_max: NonZeroU32,
    pub head_min: NonZeroU32,
    pub tail_min: NonZeroU32,
}

impl Window {
    pub(crate) fn read(section: &mut Section<'_>) -> Window {
        let window = Window {
            head_ratio: section.ratio("head_ratio", 0.25),
            tail_ratio: section.ratio("tail_ratio", 0.70),
            head_max: section.count("head_max", nonzero(20)),
            tail_max: section.count("tail_max", nonzero(20)),
            head_min: section.count("head_min", nonzero(3)),
            tail_min: section.count("tail_min", nonzero(5)),
        };
        if window.head_ratio + window.tail_ratio > 1.0 {
            let must = "`head_ratio` and `tail_ratio` must not add up to more than 1";
            section.reject(&["tail_ratio", "head_ratio"], must, "lower one of them");
        }
        if window.head_min > window.head_max {
            let hint = "lower `head_min` or raise `head_max`";
            section.reject(&["head_min", "head_max"], "`head_min` must not exceed `head_max`", hint);
        }
        if window.tail_min > window.tail_max {
            let hint = "lower `tail_min` or raise `tail_max`";
            section.reject(&["tail_min", "tail_max"], "`tail_min` must not exceed `tail_max`", hint);
        }
        window
    }
}
