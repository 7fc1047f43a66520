//! The settings of a PostgreSQL server that are read, each with its origin.

use std::collections::BTreeMap;

/// Bytes of a page of PostgreSQL (`BLCKSZ`); servers that were compiled with another size are refused.
pub(super) const PAGE: u64 = 8192;

/// A setting as a server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// In `unit`.
    pub(super) value: String,
    /// As `pg_settings` has it, such as `8kB` or `ms`.
    pub(super) unit: Option<String>,
    /// When a change acts.
    pub(super) effect: Effect,
    /// Where the value comes from, as `pg_settings` has it.
    pub(super) source: String,
    /// Whether an `ALTER SYSTEM` has set it.
    pub(super) is_altered: bool,
}

/// When a change of a setting acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Once the server has read its configuration again.
    Reload,
    /// Once the server was started again.
    Restart,
}

impl Setting {
    /// One at its default.
    pub(super) fn documented(value: &str, unit: Option<&str>, effect: Effect) -> Self {
        Self {
            value: value.to_owned(),
            unit: unit.map(str::to_owned),
            effect,
            source: "default".to_owned(),
            is_altered: false,
        }
    }

    /// As people write it: `512kB`, `200ms`, `4`.
    pub(super) fn shown(&self) -> String {
        self.with_unit(&self.value)
    }

    /// Another value of the same setting, with its unit.
    pub(super) fn with_unit(&self, value: &str) -> String {
        match (self.unit.as_deref(), value.parse::<u64>()) {
            (Some("8kB"), Ok(pages)) if pages > 0 => format!("{}kB", pages * PAGE / 1024),
            (Some("8kB") | None, _) | (_, Ok(0)) => value.to_owned(),
            (Some(unit), _) => format!("{value}{unit}"),
        }
    }

    /// Why an `ALTER SYSTEM` would change nothing; `None` where it would.
    pub(super) fn obstacle(&self) -> Option<String> {
        let is_ours = ["default", "configuration file"].contains(&self.source.as_str());
        (!is_ours).then(|| format!("it is set by {}, which overrides ALTER SYSTEM", words(&self.source)))
    }
}

fn words(source: &str) -> &str {
    match source {
        "command line" => "the server's command line",
        "database" => "an ALTER DATABASE",
        "user" | "database user" => "an ALTER ROLE",
        "environment variable" => "an environment variable",
        "client" | "session" => "the connection",
        other => other,
    }
}

/// The settings of a server by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings(pub(super) BTreeMap<String, Setting>);

impl Settings {
    pub(super) fn get(&self, name: &str) -> Option<&Setting> {
        self.0.get(name)
    }

    /// The value as a number; `None` if there is no such setting.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.get(name)?.value.parse().ok()
    }
}

/// The statement that gives a setting a value.
pub(super) fn set_statement(name: &str, value: &str) -> String {
    let is_number = value.parse::<f64>().is_ok_and(f64::is_finite) || ["on", "off"].contains(&value);
    match is_number {
        true => format!("ALTER SYSTEM SET {name} = {value};"),
        false => format!("ALTER SYSTEM SET {name} = '{}';", value.replace('\'', "''")),
    }
}

/// The statement that restores the current value of a setting.
pub(super) fn undo_statement(name: &str, setting: &Setting) -> String {
    match setting.is_altered {
        true => set_statement(name, &setting.shown()),
        false => format!("ALTER SYSTEM RESET {name};"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_with_their_units() {
        assert_eq!(Setting::documented("64", Some("8kB"), Effect::Reload).shown(), "512kB");
        assert_eq!(Setting::documented("0", Some("8kB"), Effect::Reload).shown(), "0");
        assert_eq!(Setting::documented("200", Some("ms"), Effect::Reload).shown(), "200ms");
        assert_eq!(Setting::documented("4", None, Effect::Reload).shown(), "4");
        assert_eq!(set_statement("x", "512kB"), "ALTER SYSTEM SET x = '512kB';");
        assert_eq!(set_statement("x", "1.5"), "ALTER SYSTEM SET x = 1.5;");
        assert_eq!(set_statement("x", "it's"), "ALTER SYSTEM SET x = 'it''s';");
    }

    #[test]
    fn what_was_altered_gets_its_value_back_and_all_else_is_reset() {
        let plain = Setting::documented("64", Some("8kB"), Effect::Reload);
        assert_eq!(undo_statement("x", &plain), "ALTER SYSTEM RESET x;");
        assert_eq!(undo_statement("x", &Setting { is_altered: true, ..plain }), "ALTER SYSTEM SET x = '512kB';");
    }

    #[test]
    fn what_goes_before_alter_system_is_an_obstacle() {
        let of = |source: &str| {
            Setting { source: source.to_owned(), ..Setting::documented("1", None, Effect::Reload) }.obstacle()
        };
        assert_eq!((of("default"), of("configuration file")), (None, None));
        assert!(of("command line").unwrap().contains("the server's command line"));
        assert!(of("database user").unwrap().contains("ALTER ROLE"));
    }
}
