//! Policies by their names, and with their parameters.

use std::fmt;
use std::sync::Arc;

use super::{POLICIES, Parameters, Policy, PolicyError, Shape};
use crate::pool::{AnyPool, Pool, PoolOptions};

/// Most frames of a pool: lists take up to four numbers of 32 bits for each.
const FRAMES_MAX: u64 = 1 << 28;

type Build = fn(&Shape, &PoolOptions, &mut Parameters) -> Result<Box<dyn AnyPool>, PolicyError>;

/// A policy that can be chosen.
#[derive(Clone, Copy)]
pub struct PolicyInfo {
    /// What it is called.
    pub name: &'static str,
    /// In a few words.
    pub title: &'static str,
    build: Build,
}

impl PolicyInfo {
    /// A policy under a name: one of the list, or one of another crate.
    ///
    /// ```
    /// # use flashwise_bufferpool::policy::{Policy, PolicyInfo};
    /// # fn example<MyPolicy: Policy + 'static>() -> Result<(), flashwise_bufferpool::PolicyError> {
    /// let mine = PolicyInfo::of::<MyPolicy>("mine", "what it does").with("k=3")?;
    /// # drop(mine);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn of<P: Policy + 'static>(name: &'static str, title: &'static str) -> Self {
        Self { name, title, build: build::<P> }
    }

    /// The policy with parameters, as they are written behind its name: `k=3,history=1`, or nothing.
    ///
    /// # Errors
    /// When the parameters cannot be read. Whether the policy has them is found out when a pool is made.
    pub fn with(self, parameters: &str) -> Result<PolicySpec, PolicyError> {
        let name = if parameters.is_empty() { self.name.to_owned() } else { format!("{}:{parameters}", self.name) };
        Ok(PolicySpec { name, parameters: Parameters::parse(self.name, parameters)?, policy: Maker::Listed(self) })
    }
}

impl PartialEq for PolicyInfo {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for PolicyInfo {}

impl fmt::Debug for PolicyInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PolicyInfo").field(&self.name).finish()
    }
}

fn build<P: Policy + 'static>(
    shape: &Shape,
    options: &PoolOptions,
    parameters: &mut Parameters,
) -> Result<Box<dyn AnyPool>, PolicyError> {
    parameters.check_numbers(shape.frames, "frames", shape.frames as u64, FRAMES_MAX)?;
    let policy = P::new(shape, parameters)?;
    parameters.finish()?;
    Ok(Box::new(Pool::new(policy, shape, options)))
}

/// Every policy of this crate.
pub fn policies() -> &'static [PolicyInfo] {
    POLICIES
}

/// What makes the pools of a policy.
#[derive(Clone)]
enum Maker {
    Listed(PolicyInfo),
    Own(Arc<OwnMaker>),
}

type OwnMaker = dyn Fn(&Shape, &PoolOptions) -> Result<Box<dyn AnyPool>, PolicyError> + Send + Sync;

impl PartialEq for Maker {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Listed(one), Self::Listed(other)) => one == other,
            (Self::Own(one), Self::Own(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Eq for Maker {}

impl fmt::Debug for Maker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listed(policy) => policy.fmt(f),
            Self::Own(_) => f.write_str("Own"),
        }
    }
}

/// A policy with its parameters, as it is written: `lru`, or `clock:bit=1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySpec {
    /// As it is told in results.
    name: String,
    policy: Maker,
    parameters: Parameters,
}

/// Letters and digits alone, small: S3FIFO, s3-fifo and S3_FIFO are one name.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

/// What else a policy is called.
const ALIASES: &[(&str, &str)] =
    &[("twoq", "2q"), ("tinylfu", "w-tinylfu"), ("lru2", "lru-k"), ("gclock", "clock-sweep")];

impl PolicySpec {
    /// Reads a policy as it is written on a command line.
    ///
    /// # Errors
    /// When nobody knows it, or its parameters cannot be read.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let alias = ALIASES.iter().find(|(alias, _)| *alias == plain(name)).map(|&(_, name)| plain(name));
        let wanted = alias.unwrap_or_else(|| plain(name));
        let known = || flashwise_block::names::choices(name, POLICIES.iter().map(|policy| policy.name));
        let unknown = || PolicyError::Unknown { name: name.to_owned(), known: known() };
        POLICIES.iter().find(|policy| plain(policy.name) == wanted).ok_or_else(unknown)?.with(parameters)
    }

    /// Reads policies as they are written on a command line: separated by commas, or `all`.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_all(text: &str) -> Result<Vec<Self>, PolicyError> {
        if text == "all" {
            return POLICIES.iter().map(|policy| Self::parse(policy.name)).collect();
        }
        // A comma separates policies, and the parameters of one policy; only parameters contain = without a name.
        let mut specs: Vec<String> = Vec::new();
        for part in text.split(',').map(str::trim) {
            match specs.last_mut() {
                Some(last) if part.contains('=') && !part.contains(':') => *last = format!("{last},{part}"),
                _ => specs.push(part.to_owned()),
            }
        }
        specs.iter().map(|spec| Self::parse(spec)).collect()
    }

    /// A policy that is no type of its own, such as one that another language decides: `make` is called for each pool.
    pub fn made_by<P: Policy + 'static>(
        name: impl Into<String>,
        make: impl Fn(&Shape) -> Result<P, PolicyError> + Send + Sync + 'static,
    ) -> Self {
        let name = name.into();
        let parameters = Parameters::parse(&name, "").unwrap_or_default();
        let none = parameters.clone();
        let build = move |shape: &Shape, options: &PoolOptions| -> Result<Box<dyn AnyPool>, PolicyError> {
            none.check_numbers(shape.frames, "frames", shape.frames as u64, FRAMES_MAX)?;
            Ok(Box::new(Pool::new(make(shape)?, shape, options)))
        };
        Self { name, policy: Maker::Own(Arc::new(build)), parameters }
    }

    /// As it is told in results: the policy's own name, with its parameters.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A pool with this policy.
    ///
    /// # Errors
    /// When a parameter is unknown or out of its range, or the pool is larger than what the policy can number.
    pub fn pool(&self, shape: &Shape, options: &PoolOptions) -> Result<Box<dyn AnyPool>, PolicyError> {
        match &self.policy {
            Maker::Listed(policy) => (policy.build)(shape, options, &mut self.parameters.clone()),
            Maker::Own(build) => build(shape, options),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, Page};

    #[test]
    fn a_policy_is_found_by_any_way_to_write_its_name() {
        for (text, name) in [
            ("LRU", "lru"),
            ("s3fifo", "s3-fifo"),
            ("CFLRU/C", "cflru-c"),
            ("DL_CFLRU_E", "dl-cflru-e"),
            ("TwoQ", "2q"),
            ("Clock:bit=1", "clock:bit=1"),
        ] {
            assert_eq!(PolicySpec::parse(text).unwrap().name(), name);
        }
        let message = PolicySpec::parse("mru").unwrap_err().to_string();
        assert!(
            message.starts_with("unknown policy 'mru': did you mean 'lru'? Choose one of lru, fifo, "),
            "{message}"
        );
    }

    #[test]
    fn a_policy_that_a_function_makes_decides_as_its_type_does_in_a_pool_of_its_own() {
        use crate::policy::lru::Lru;
        let made = PolicySpec::made_by("made", |shape| Lru::new(shape, &mut Parameters::default()));
        assert!(made.name() == "made" && made == made.clone() && made != PolicySpec::parse("lru").unwrap());
        let shape = Shape { frames: 3, pages: 9, blocks: [].into() };
        let accesses: Vec<_> = (0..60).map(|n| Access::new(Page(n * n % 9), n % 4 == 0)).collect();
        let counts = |spec: &PolicySpec| {
            let mut pool = spec.pool(&shape, &PoolOptions::default()).unwrap();
            pool.replay(&accesses).unwrap();
            pool.counts().clone()
        };
        let expected = counts(&PolicySpec::parse("lru").unwrap());
        assert_eq!([counts(&made), counts(&made)], [expected.clone(), expected]);
        let large = Shape { frames: (1 << 28) + 1, ..shape };
        assert!(made.pool(&large, &PoolOptions::default()).is_err());
    }

    #[test]
    fn what_a_policy_does_not_know_is_refused() {
        let shape = Shape { frames: 4, pages: 9, blocks: [].into() };
        let pool = |text| PolicySpec::parse(text).unwrap().pool(&shape, &PoolOptions::default()).map(|_| ());
        assert_eq!(pool("clock:bit=1"), Ok(()));
        assert_eq!(pool("lru:bit=1").unwrap_err().to_string(), "lru: unknown parameter 'bit': it has none");
        assert!(pool("clock:bit=2").is_err());
    }

    #[test]
    fn commas_stand_between_policies_and_between_parameters() {
        let names = |text: &str| -> Result<Vec<String>, PolicyError> {
            Ok(PolicySpec::parse_all(text)?.iter().map(|spec| spec.name().to_owned()).collect())
        };
        assert_eq!(names("lru,2q:in=0.5,out=1,arc").unwrap(), ["lru", "2q:in=0.5,out=1", "arc"]);
        assert_eq!(names("all").unwrap().len(), policies().len());
        assert!(names("lru,mru").unwrap_err().to_string().starts_with("unknown policy 'mru'"));
    }

    #[test]
    fn a_pool_that_cannot_be_numbered_is_refused_in_words_by_every_policy() {
        let shape = Shape { frames: (1 << 28) + 1, pages: 9, blocks: [].into() };
        for policy in policies() {
            let spec = PolicySpec::parse(policy.name).unwrap();
            let refused = spec.pool(&shape, &PoolOptions::default()).map(|_| ()).unwrap_err().to_string();
            let expected =
                "268435457 frames are too many: they need 268435457 frames, and at most 268435456 are supported";
            assert_eq!(refused, format!("{}: {expected}", policy.name));
        }
    }
}
