//! Proposed settings of a server in the forms in which they are set elsewhere than on the server.
//!
//! ```text
//!   postgres_conf      lines for postgresql.conf
//!   parameter_group    Amazon RDS: `aws rds modify-db-parameter-group --parameters file://FILE`
//!   cloud_sql_flags    Google Cloud SQL: `gcloud sql instances patch INSTANCE --flags-file=FILE`
//! ```
//!
//! What only a table or a new instance can have is in none of them. Which parameters a service lets its users set
//! changes with the service: it refuses the others by name.
//!
//! Source: the AWS CLI's reference, "modify-db-parameter-group"; gcloud's reference, "flags-file".

use flashwise_tune::{ServerTuning, SettingProposal};
use serde_json::{Value, json};

use super::comment;

/// What a server's configuration can have, and not only a table or a new instance.
fn of_server(t: &ServerTuning) -> impl Iterator<Item = &SettingProposal> {
    t.proposals.iter().filter(|proposal| !["new-pages", "new-instance"].contains(&proposal.takes_effect.as_str()))
}

fn heading(t: &ServerTuning) -> String {
    format!("# flashwise {}: {} on {}\n", t.flashwise_version, t.program, comment(&t.drive))
}

fn reason(proposal: &SettingProposal) -> String {
    format!("# Was {}: {}", comment(&proposal.old_value), comment(&proposal.reason))
}

/// Proposed settings as lines for `postgresql.conf`.
pub fn postgres_conf(t: &ServerTuning) -> String {
    let mut text = heading(t);
    for proposal in of_server(t) {
        let value = match proposal.new_value.parse::<f64>() {
            Ok(_) => proposal.new_value.clone(),
            Err(_) => format!("'{}'", proposal.new_value.replace('\'', "''")),
        };
        text += &format!("\n{}\n{} = {value}\n", reason(proposal), proposal.name);
    }
    text + if of_server(t).next().is_none() { "# No changes.\n" } else { "" }
}

/// Proposed settings as parameters of an Amazon RDS parameter group, in JSON.
pub fn parameter_group(t: &ServerTuning) -> String {
    let parameter = |proposal: &SettingProposal| {
        let value = match proposal.base_value.to_ascii_lowercase().as_str() {
            "on" => "1",
            "off" => "0",
            _ => &proposal.base_value,
        };
        let applied = if proposal.takes_effect == "restart" { "pending-reboot" } else { "immediate" };
        json!({ "ParameterName": proposal.name, "ParameterValue": value, "ApplyMethod": applied })
    };
    format!("{:#}\n", of_server(t).map(parameter).collect::<Value>())
}

/// Proposed settings as database flags of Google Cloud SQL, in YAML for `--flags-file`.
pub fn cloud_sql_flags(t: &ServerTuning) -> String {
    let mut text =
        heading(t) + "# An instance loses the flags that are not here: add those that it has.\n--database-flags:";
    for proposal in of_server(t) {
        text += &format!("\n  {}\n  {}: \"{}\"", reason(proposal), proposal.name, proposal.base_value);
    }
    text + if of_server(t).next().is_none() { " {}\n" } else { "\n" }
}
