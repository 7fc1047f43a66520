//! JSON documents: one value, pretty, with a line end.

use flashwise_block::shown;
use serde::Serialize;

use crate::ReportError;

/// `schema` of the document that reports a failure.
pub const ERROR_SCHEMA: &str = "flashwise.error";
/// `schema_version` of the document that reports a failure.
pub const ERROR_SCHEMA_VERSION: u32 = 1;

/// The value as one document.
///
/// # Errors
/// When the value has no form in JSON.
pub fn to_json(value: &impl Serialize) -> Result<String, ReportError> {
    Ok(shown::json(&serde_json::to_string_pretty(value)?).into_owned() + "\n")
}

/// The value in one line, without a line end.
///
/// # Errors
/// When the value has no form in JSON.
pub fn to_json_line(value: &impl Serialize) -> Result<String, ReportError> {
    Ok(shown::json(&serde_json::to_string(value)?).into_owned())
}

/// The document on stdout when a verb failed.
pub fn error_document(message: &str, exit_code: u8) -> String {
    let document = serde_json::json!({
        "schema": ERROR_SCHEMA,
        "schema_version": ERROR_SCHEMA_VERSION,
        "error": { "message": message, "exit_code": exit_code },
    });
    shown::json(&format!("{document:#}\n")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwise_tune::Comparison;

    #[test]
    fn a_comparison_survives_the_way_through_json() {
        let comparison = crate::sample::samsung();
        let text = to_json(&comparison).unwrap();
        assert!(text.starts_with("{\n  \"schema\": \"flashwise.comparison\"") && text.ends_with("}\n"));
        assert!(serde_json::from_str::<Comparison>(&text).unwrap() == comparison);
    }

    #[test]
    fn a_failure_is_a_document_of_its_own() {
        let document: serde_json::Value = serde_json::from_str(&error_document("no \"such\" drive", 2)).unwrap();
        assert_eq!(document["schema"], "flashwise.error");
        assert_eq!(document["schema_version"], 1);
        assert_eq!(document["error"]["message"], "no \"such\" drive");
        assert_eq!(document["error"]["exit_code"], 2);
    }
}
