//! Reads `/metrics`.

/// The sum of all series of a metric that have these labels; `None` if there is no such series.
pub(crate) fn value(page: &str, name: &str, labels: &[&str]) -> Option<f64> {
    let values = page.lines().filter_map(|line| {
        let rest = line.strip_prefix(name).filter(|rest| rest.starts_with([' ', '{']))?;
        let (found, value) = rest.rsplit_once(' ')?;
        labels.iter().all(|label| found.contains(label)).then(|| value.parse::<f64>().unwrap())
    });
    values.reduce(|sum, value| sum + value)
}
