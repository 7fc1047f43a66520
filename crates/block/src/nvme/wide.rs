//! Numbers of 128 bits in JSON: as a number while 64 bits suffice, else as nvme-cli writes those of OCP's log, in two
//! halves. A reader of JSON keeps no more than 64 bits of a number.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// Writes a number.
pub(super) fn serialize<S: Serializer>(number: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    if let Ok(number) = u64::try_from(*number) {
        return number.serialize(serializer);
    }
    let mut halves = serializer.serialize_map(Some(2))?;
    halves.serialize_entry("hi", &((*number >> 64) as u64))?;
    halves.serialize_entry("lo", &(*number as u64))?;
    halves.end()
}

/// Reads a number: also in halves, in quotes, in hexadecimal, or with a fraction that is zero, as versions of nvme-cli
/// print them.
pub(super) fn parse(value: &Value) -> Option<u128> {
    match value {
        Value::Number(number) => match number.as_u64() {
            Some(whole) => Some(whole.into()),
            // Above 2^53 a fraction has lost digits of the counter.
            None => number.as_f64().filter(|x| x.fract() == 0.0 && (0.0..=EXACT).contains(x)).map(|x| x as u128),
        },
        Value::String(text) => {
            let digits: String = text.trim().chars().filter(|&letter| letter != ',').collect();
            match digits.strip_prefix("0x") {
                Some(digits) => u128::from_str_radix(digits, 16).ok(),
                None => digits.parse().ok(),
            }
        }
        Value::Object(halves) => {
            let half = |name: &str| halves.get(name).and_then(Value::as_u64).map(u128::from);
            Some(half("hi")? << 64 | half("lo")?)
        }
        Value::Null | Value::Bool(_) | Value::Array(_) => None,
    }
}

/// The largest integer up to which a floating-point number holds every one.
const EXACT: f64 = 9_007_199_254_740_992.0;
