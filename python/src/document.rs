//! Results: the documents that the program prints with `-o json`, with its texts, pages and tables.

use flashwise_bufferpool::simulate::PoolReport;
use flashwise_learn::score::Score;
use flashwise_profile::DeviceProfile;
use flashwise_report::audit::AuditDocument;
use flashwise_report::study::StudyDocument;
use flashwise_report::trace::TraceInfo;
use flashwise_report::{
    Column, Style, Table, Values, audit_page, pool_page, profile_page, render_audit, render_pool, render_profile,
    render_score, render_simulation, render_study, render_sweep, render_trace_info, simulation_page, study_page,
    sweep_table, time_series_table, to_json_line,
};
use flashwise_sim::Simulation;
use flashwise_sim::sweep::Sweep;
use pyo3::prelude::*;
use serde::Serialize;
use serde_json::Value;

use crate::arrow::Columns;
use crate::failure::Failure;

/// Columns of a text: those of a terminal.
const WIDTH: u16 = 80;

/// What a document is of.
pub(crate) enum Content {
    Simulation(Box<Simulation>),
    Sweep(Box<Sweep>),
    Pool(Box<PoolReport>),
    Audit(Box<AuditDocument>),
    Profile(Box<DeviceProfile>, Option<Box<Score>>),
    Study(Box<StudyDocument>),
    Trace(Box<TraceInfo>),
    /// One that came from another process: its JSON, its text and its page.
    Stored(String, String, Option<String>),
}

/// A result.
#[pyclass(frozen, module = "flashwise._native")]
pub(crate) struct Document(pub(crate) Content);

/// A profile and its score, as one document.
#[derive(Serialize)]
struct Scored<'a> {
    #[serde(flatten)]
    profile: &'a DeviceProfile,
    score: &'a Score,
}

impl Document {
    fn to_json(&self) -> Result<String, Failure> {
        Ok(match &self.0 {
            Content::Simulation(simulation) => to_json_line(simulation)?,
            Content::Sweep(sweep) => to_json_line(sweep)?,
            Content::Pool(report) => to_json_line(report)?,
            Content::Audit(document) => to_json_line(document)?,
            Content::Profile(profile, None) => to_json_line(profile)?,
            Content::Profile(profile, Some(score)) => to_json_line(&Scored { profile, score })?,
            Content::Study(document) => to_json_line(document)?,
            Content::Trace(info) => to_json_line(info)?,
            Content::Stored(json, ..) => json.clone(),
        })
    }

    fn to_text(&self) -> String {
        let style = Style { color: false, width: WIDTH };
        match &self.0 {
            Content::Simulation(simulation) => render_simulation(simulation, style),
            Content::Sweep(sweep) => render_sweep(sweep, style),
            Content::Pool(report) => render_pool(report, style),
            Content::Audit(document) => render_audit(document, style),
            Content::Profile(profile, None) => render_profile(profile, style),
            Content::Profile(profile, Some(score)) => {
                render_profile(profile, style).and("\n").and(render_score(score, style))
            }
            Content::Study(document) => render_study(document, style),
            Content::Trace(info) => render_trace_info(info, style),
            Content::Stored(_, text, _) => return text.clone(),
        }
        .to_string()
    }

    fn to_page(&self) -> Option<String> {
        match &self.0 {
            Content::Simulation(simulation) => Some(simulation_page(simulation)),
            Content::Pool(report) => Some(pool_page(report)),
            Content::Audit(document) => Some(audit_page(document)),
            Content::Profile(profile, _) => Some(profile_page(profile)),
            Content::Study(document) => Some(study_page(document)),
            Content::Sweep(_) | Content::Trace(_) => None,
            Content::Stored(.., page) => page.clone(),
        }
    }

    /// The rows: those of `--csv`, or the list of this name in the document.
    fn to_table(&self, list: &str) -> Result<Table, Failure> {
        match &self.0 {
            Content::Simulation(simulation) => Ok(time_series_table(simulation)),
            Content::Sweep(sweep) => Ok(sweep_table(sweep)),
            _ => {
                let document: Value = serde_json::from_str(&self.to_json()?)?;
                let rows = document.get(list).and_then(Value::as_array).cloned().unwrap_or_default();
                Ok(table_of(&rows))
            }
        }
    }
}

#[pymethods]
impl Document {
    /// The document.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        self.to_json().map_err(|failure| failure.raise(py))
    }

    /// What the program prints.
    fn text(&self) -> String {
        self.to_text()
    }

    /// The page that `--html` writes, if there is one.
    fn page(&self) -> Option<String> {
        self.to_page()
    }

    /// A profile as the file that other commands read.
    fn toml(&self, py: Python<'_>) -> PyResult<Option<String>> {
        match &self.0 {
            Content::Profile(profile, _) => profile.to_toml().map(Some).map_err(|error| Failure::from(error).raise(py)),
            _ => Ok(None),
        }
    }

    /// The rows as a table.
    fn columns(&self, py: Python<'_>, list: &str) -> PyResult<Columns> {
        self.to_table(list).map(|table| Columns::of(&table)).map_err(|failure| failure.raise(py))
    }
}

/// A document that another process has made: what can be read back is, the rest keeps its texts.
#[pyfunction]
pub(crate) fn restore(json: String, text: String, page: Option<String>) -> Document {
    let schema = serde_json::from_str::<Value>(&json).ok();
    let schema = schema.as_ref().and_then(|document| document.get("schema")?.as_str()).unwrap_or_default();
    let content = match schema {
        "flashwise.simulation" => serde_json::from_str(&json).ok().map(Content::Simulation),
        "flashwise.sweep" => serde_json::from_str(&json).ok().map(Content::Sweep),
        "flashwise.study" => serde_json::from_str(&json).ok().map(Content::Study),
        "flashwise.profile" => serde_json::from_str(&json).ok().map(|profile| Content::Profile(profile, None)),
        _ => None,
    };
    Document(content.unwrap_or(Content::Stored(json, text, page)))
}

/// Objects as rows; the fields of objects in them have both names, with a point between.
fn table_of(rows: &[Value]) -> Table {
    let flat: Vec<Vec<(String, &Value)>> = rows.iter().map(flattened).collect();
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in flat.iter().flatten() {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let column = |name: &&str| {
        let mut values: Vec<Option<&Value>> = Vec::with_capacity(flat.len());
        for row in &flat {
            let value = row.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
            values.push(value.filter(|value| !value.is_null()));
        }
        Column { name: (*name).to_owned(), values: values_of(&values) }
    };
    Table { kind: "results", columns: names.iter().map(column).collect() }
}

fn flattened(row: &Value) -> Vec<(String, &Value)> {
    let mut fields = Vec::new();
    for (name, value) in row.as_object().into_iter().flatten() {
        match value {
            Value::Object(_) => {
                fields.extend(flattened(value).into_iter().map(|(below, value)| (format!("{name}.{below}"), value)));
            }
            Value::Array(_) => {}
            _ => fields.push((name.clone(), value)),
        }
    }
    fields
}

fn values_of(values: &[Option<&Value>]) -> Values {
    let all = |is: fn(&Value) -> bool| values.iter().flatten().all(|value| is(value));
    if all(Value::is_boolean) {
        Values::Booleans(values.iter().map(|value| value.and_then(Value::as_bool)).collect())
    } else if all(Value::is_i64) {
        Values::Integers(values.iter().map(|value| value.and_then(Value::as_i64)).collect())
    } else if all(Value::is_number) {
        Values::Numbers(values.iter().map(|value| value.and_then(Value::as_f64)).collect())
    } else {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Values::Texts(values.iter().map(|value| value.map(text)).collect())
    }
}
