//! Values in fio's spelling: `random_distribution` and `bssplit` (fio's HOWTO, *I/O type* and *Block size*).

use flashwise_block::ByteSize;

use super::{Access, Size, WeightedSize, Zone};

impl Access {
    /// fio's `random_distribution`: `random`, `zipf:THETA`, `pareto:H`, `zoned:ACCESSES/SIZE:…` in percent.
    ///
    /// ```
    /// use flashwise_trace::workload::Access;
    /// assert_eq!(Access::of_fio("zipf:1.2"), Ok(Access::Zipf { theta: 1.2 }));
    /// ```
    ///
    /// # Errors
    /// When it is none of them, with what would be right.
    pub fn of_fio(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once(':').unwrap_or((text, ""));
        let number = || {
            let told = || format!("'{text}': a number must follow the colon, such as {name}:0.9");
            value.parse::<f64>().map_err(|_| told())
        };
        match name {
            "random" if value.is_empty() => Ok(Self::Random),
            "zipf" => Ok(Self::Zipf { theta: number()? }),
            "pareto" => Ok(Self::Pareto { h: number()? }),
            "zoned" => Ok(Self::HotCold { zones: zones(value)?, shuffled: false }),
            _ => Err(format!("'{text}': must be random, zipf:THETA, pareto:H or zoned:ACCESSES/SIZE:…")),
        }
    }
}

/// `60/10:40/90`: 60 % of the requests on the first 10 % of the region, 40 % on the rest.
fn zones(text: &str) -> Result<Vec<Zone>, String> {
    let zone = |part: &str| {
        let (traffic, size) = part.split_once('/')?;
        let share = |percent: &str| percent.parse::<f64>().ok().map(|percent| percent / 100.0);
        Some(Zone { size: share(size)?, traffic: share(traffic)? })
    };
    let told = |part| format!("zone '{part}': must be ACCESSES/SIZE in percent, such as 90/10");
    text.split(':').map(|part| zone(part).ok_or_else(|| told(part))).collect()
}

impl Size {
    /// fio's `bssplit`: `4k/60:64k/40`, sizes with their percentages; those without one share what is left.
    ///
    /// # Errors
    /// When it is none, with what would be right.
    pub fn of_fio(text: &str) -> Result<Self, String> {
        let told = |part: &str| format!("'{part}': must be SIZE/PERCENT, such as 4k/60");
        let mut sizes = Vec::new();
        for part in text.split(':') {
            let (size, percent) = part.split_once('/').unwrap_or((part, ""));
            let bytes = size.parse::<ByteSize>().map_err(|_| told(part))?.0;
            let weight = if percent.is_empty() { None } else { Some(percent.parse::<f64>().map_err(|_| told(part))?) };
            sizes.push((bytes, weight));
        }
        let given: f64 = sizes.iter().filter_map(|(_, weight)| *weight).sum();
        let open = sizes.iter().filter(|(_, weight)| weight.is_none()).count();
        // As fio does: nothing is left for the others.
        if open > 0 && !(0.0..=100.0).contains(&given) {
            return Err(format!(
                "'{text}': the percentages add up to {given}, and the sizes without one share what is left of 100"
            ));
        }
        let share = (100.0 - given) / open.max(1) as f64;
        let weighted = |(bytes, weight): (u64, Option<f64>)| WeightedSize { bytes, weight: weight.unwrap_or(share) };
        Ok(Self::Weighted(sizes.into_iter().map(weighted).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_are_read_as_fio_spells_them() {
        assert_eq!(Access::of_fio("random"), Ok(Access::Random));
        assert_eq!(Access::of_fio("pareto:0.2"), Ok(Access::Pareto { h: 0.2 }));
        let zones = vec![Zone { size: 0.1, traffic: 0.6 }, Zone { size: 0.9, traffic: 0.4 }];
        assert_eq!(Access::of_fio("zoned:60/10:40/90"), Ok(Access::HotCold { zones, shuffled: false }));
        for wrong in ["", "gauss:1", "zipf", "zipf:x", "zoned:60", "zoned:", "random:1"] {
            assert!(Access::of_fio(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_without_a_percentage_share_the_rest() {
        let sizes = [(4096, 50.0), (65_536, 25.0), (512, 25.0)].map(|(bytes, weight)| WeightedSize { bytes, weight });
        assert_eq!(Size::of_fio("4k/50:64k:512"), Ok(Size::Weighted(sizes.to_vec())));
        assert!(Size::of_fio("4k/80:8k/40:16k").unwrap_err().contains("add up to 120"));
        for wrong in ["", "4k/x", "4KB/10", "4k/50:", "4k/-5:8k", "4k/nan:8k"] {
            assert!(Size::of_fio(wrong).is_err(), "{wrong}");
        }
    }
}
