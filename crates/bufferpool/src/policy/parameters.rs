//! Parameters of a policy, as they are written behind its name: `clock:bit=1` or `2q:in=0.25,out=0.5`.
//!
//! A policy asks for each of its parameters by name, with a default and a range; what nobody requested is an error.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Why a policy cannot be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PolicyError {
    /// No policy has this name.
    #[error("unknown policy '{name}': {known}")]
    Unknown {
        /// As it was given.
        name: String,
        /// The name that was probably meant, and all names.
        known: String,
    },
    /// A parameter cannot be read or is out of its range.
    #[error("{policy}: {key} = {value}: must be {expected}")]
    Value {
        /// The policy.
        policy: String,
        /// The parameter.
        key: String,
        /// As it was given.
        value: String,
        /// What it may be.
        expected: String,
    },
    /// The policy has no such parameter.
    #[error("{policy}: unknown parameter '{key}': it has {known}")]
    NoSuchParameter {
        /// The policy.
        policy: String,
        /// The parameter.
        key: String,
        /// Those that there are.
        known: String,
    },
    /// The pool is larger than what a policy can number.
    #[error("{policy}: {frames} frames are too many: they need {needed} {what}, and at most {most} are supported")]
    TooLarge {
        /// The policy.
        policy: String,
        /// Frames of the pool.
        frames: usize,
        /// What is numbered.
        what: &'static str,
        /// How many there would be.
        needed: u64,
        /// How many there can be.
        most: u64,
    },
    /// A parameter is not written as KEY=VALUE.
    #[error("'{text}': parameters are written NAME:KEY=VALUE,KEY=VALUE")]
    Syntax {
        /// As it was given.
        text: String,
    },
}

/// Most pages that a pool knows, in frames or as ghosts: a bit of an entry says which, and a few more come and go.
const ENTRIES_MAX: u64 = (1 << 31) - 16;

/// What was written behind a policy's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    policy: String,
    values: BTreeMap<String, String>,
    known: Vec<&'static str>,
}

impl Parameters {
    /// Reads `key=value,key=value`.
    ///
    /// # Errors
    /// When a part has no `=`.
    pub fn parse(policy: &str, text: &str) -> Result<Self, PolicyError> {
        let pair = |part: &str| {
            let (key, value) = part.split_once('=').ok_or_else(|| PolicyError::Syntax { text: part.to_owned() })?;
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        };
        let parts = text.split(',').filter(|part| !part.trim().is_empty());
        Ok(Self { policy: policy.to_owned(), values: parts.map(pair).collect::<Result<_, _>>()?, known: Vec::new() })
    }

    fn value<T>(
        &mut self,
        key: &'static str,
        default: T,
        expected: impl Fn() -> String,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, PolicyError> {
        self.known.push(key);
        let Some(text) = self.values.get(key) else { return Ok(default) };
        read(text).ok_or_else(|| PolicyError::Value {
            policy: self.policy.clone(),
            key: key.to_owned(),
            value: text.clone(),
            expected: expected(),
        })
    }

    /// A whole number.
    ///
    /// # Errors
    /// When it is none, or out of the range.
    pub fn count(&mut self, key: &'static str, default: u64, range: RangeInclusive<u64>) -> Result<u64, PolicyError> {
        let expected = || format!("a whole number from {} to {}", range.start(), range.end());
        self.value(key, default, expected, |text| text.parse().ok().filter(|value| range.contains(value)))
    }

    /// A share of something, such as of the frames.
    ///
    /// # Errors
    /// When it is no number from 0 to `most`.
    pub fn share(&mut self, key: &'static str, default: f64, most: f64) -> Result<f64, PolicyError> {
        let expected = || format!("a number from 0 to {most}");
        self.value(key, default, expected, |text| text.parse().ok().filter(|value| (0.0..=most).contains(value)))
    }

    /// How many pages are remembered without a frame: a share of the frames.
    ///
    /// # Errors
    /// As [`share`](Self::share), and when there would be too many.
    pub fn ghosts(&mut self, frames: usize, key: &'static str, default: f64) -> Result<usize, PolicyError> {
        let ghosts = share_of(frames, self.share(key, default, 8.0)?);
        self.check_numbers(frames, "pages", frames as u64 + ghosts as u64, ENTRIES_MAX)?;
        Ok(ghosts)
    }

    /// Whether what a pool of so many frames numbers can be numbered.
    ///
    /// # Errors
    /// When it is too much.
    pub fn check_numbers(&self, frames: usize, what: &'static str, needed: u64, most: u64) -> Result<(), PolicyError> {
        match needed <= most {
            true => Ok(()),
            false => Err(PolicyError::TooLarge { policy: self.policy.clone(), frames, what, needed, most }),
        }
    }

    /// One of several words, as its index; the first is the default.
    ///
    /// # Errors
    /// When it is none of them.
    pub fn choice(&mut self, key: &'static str, words: &[&str]) -> Result<usize, PolicyError> {
        let expected = || words.join(" or ");
        self.value(key, 0, expected, |text| words.iter().position(|word| *word == text))
    }

    /// Nothing may be left that was not requested.
    ///
    /// # Errors
    /// When something is.
    pub fn finish(&self) -> Result<(), PolicyError> {
        let unknown = self.values.keys().find(|key| !self.known.contains(&key.as_str()));
        let known = if self.known.is_empty() { "none".to_owned() } else { self.known.join(", ") };
        unknown.map_or(Ok(()), |key| {
            Err(PolicyError::NoSuchParameter { policy: self.policy.clone(), key: key.clone(), known })
        })
    }
}

/// So many of the frames, rounded down.
pub(crate) fn share_of(frames: usize, share: f64) -> usize {
    // A tenth of 50 is 5, although 50.0 * 0.1 need not be.
    (frames as f64 * share + 1e-9).floor() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_defaults_ranges_and_no_strangers() {
        let mut parameters = Parameters::parse("2q", "in=0.5, k=3").unwrap();
        assert_eq!(parameters.share("in", 0.25, 1.0), Ok(0.5));
        assert_eq!(parameters.share("out", 0.5, 1.0), Ok(0.5));
        let message = parameters.finish().unwrap_err().to_string();
        assert_eq!(message, "2q: unknown parameter 'k': it has in, out");
        let message = parameters.count("k", 2, 1..=2).unwrap_err().to_string();
        assert_eq!(message, "2q: k = 3: must be a whole number from 1 to 2");
        assert_eq!(parameters.finish(), Ok(()));
        let message = Parameters::parse("2q", "in").unwrap_err().to_string();
        assert_eq!(message, "'in': parameters are written NAME:KEY=VALUE,KEY=VALUE");
        assert!(Parameters::parse("2q", "in=NaN").unwrap().share("in", 0.25, 1.0).is_err());
    }
}
