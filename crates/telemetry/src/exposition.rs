//! The text format of Prometheus.

use opentelemetry::{KeyValue, Value};
use opentelemetry_sdk::metrics::data::{
    AggregatedMetrics, HistogramDataPoint, Metric, MetricData, ResourceMetrics,
};
use std::collections::BTreeMap;
use std::fmt::{Display, Write};

/// Renders metrics, ordered by name and labels, so that the same values give the same text.
pub(crate) fn exposition(read: &ResourceMetrics) -> String {
    let metrics = read.scope_metrics().flat_map(|scope| scope.metrics());
    let families: BTreeMap<String, &Metric> = metrics.map(|metric| (family_name(metric), metric)).collect();
    let mut page = String::new();
    for (name, metric) in &families {
        family(&mut page, name, metric);
    }
    page
}

/// The name with its unit as a suffix, by the conventions of Prometheus.
fn family_name(metric: &Metric) -> String {
    let name = underscored(metric.name());
    match metric.unit() {
        "s" => name + "_seconds",
        "By" => name + "_bytes",
        // Names with dots are OpenTelemetry's, which follow its rules for Prometheus. The others are public as they are.
        _ if is_counter(metric) && metric.name().contains('.') => name + "_total",
        _ => name,
    }
}

fn is_counter(metric: &Metric) -> bool {
    matches!(metric.data(), AggregatedMetrics::U64(MetricData::Sum(sum)) if sum.is_monotonic())
}

fn underscored(name: &str) -> String {
    name.chars().map(|char| if char.is_ascii_alphanumeric() || char == '_' { char } else { '_' }).collect()
}

fn family(page: &mut String, name: &str, metric: &Metric) {
    match metric.data() {
        AggregatedMetrics::F64(data) => points(page, name, metric, data),
        AggregatedMetrics::U64(data) => points(page, name, metric, data),
        AggregatedMetrics::I64(data) => points(page, name, metric, data),
    }
}

fn points<T: Copy + Display>(page: &mut String, name: &str, metric: &Metric, data: &MetricData<T>) {
    let kind = match data {
        MetricData::Sum(sum) if sum.is_monotonic() => "counter",
        MetricData::Sum(_) | MetricData::Gauge(_) => "gauge",
        MetricData::Histogram(_) => "histogram",
        // No instrument here is exponential.
        MetricData::ExponentialHistogram(_) => return,
    };
    let help = metric.description().replace('\\', "\\\\").replace('\n', "\\n");
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
    let mut lines = Vec::new();
    match data {
        MetricData::Sum(sum) => {
            lines.extend(
                sum.data_points().map(|point| sample(name, &labels(point.attributes()), point.value())),
            );
        }
        MetricData::Gauge(gauge) => {
            lines.extend(
                gauge.data_points().map(|point| sample(name, &labels(point.attributes()), point.value())),
            );
        }
        MetricData::Histogram(histogram) => {
            lines.extend(histogram.data_points().map(|point| buckets(name, point)));
        }
        MetricData::ExponentialHistogram(_) => {}
    }
    lines.sort();
    page.extend(lines);
}

fn buckets<T: Copy + Display>(name: &str, point: &HistogramDataPoint<T>) -> String {
    let labels = labels(point.attributes());
    let mut text = String::new();
    let mut cumulative = 0;
    let bounds = point.bounds().map(|bound| bound.to_string()).chain(["+Inf".to_owned()]);
    for (bound, count) in bounds.zip(point.bucket_counts()) {
        cumulative += count;
        let comma = if labels.is_empty() { "" } else { "," };
        let _ = writeln!(text, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {cumulative}");
    }
    text.push_str(&sample(&format!("{name}_sum"), &labels, point.sum()));
    text.push_str(&sample(&format!("{name}_count"), &labels, point.count()));
    text
}

fn sample(name: &str, labels: &str, value: impl Display) -> String {
    match labels {
        "" => format!("{name} {value}\n"),
        labels => format!("{name}{{{labels}}} {value}\n"),
    }
}

/// Renders labels as `a="1",b="2"`, ordered by name.
fn labels<'a>(attributes: impl Iterator<Item = &'a KeyValue>) -> String {
    let mut labels: Vec<String> = attributes
        .map(|KeyValue { key, value, .. }| format!("{}=\"{}\"", underscored(key.as_str()), escaped(value)))
        .collect();
    labels.sort();
    labels.join(",")
}

fn escaped(value: &Value) -> String {
    value.as_str().replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
