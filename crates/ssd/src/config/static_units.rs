//! Static placement: the unit of a page follows from its logical address, level by level.
//!
//! With the order CWDP, successive logical pages go over the channels, then over the ways (chips) of a channel, then
//! over the dies of a chip, then over the planes of a die. Where planes program together (`superpage_planes`), pages
//! that share a superpage count as one. It follows from the description alone, so that a description can be refused
//! which gives one unit more than it holds.
//!
//! Source: Tavakkol et al., ACM TOMPECS 1(2), 2016, section 3: the 24 static schemes; Hu et al., "Exploring and
//! Exploiting the Multilevel Parallelism Inside SSDs", IEEE TC 62(6), 2013.

use super::{DeviceConfig, DomainConfig, StaticOrder};
use crate::reciprocal::Divisor;

/// The unit of each logical page in one of the 24 static orders, in each of the drive's domains.
pub struct StaticUnits {
    /// At least one; they follow one another.
    domains: Vec<Domain>,
    by_slots: Divisor,
    /// The host's logical pages; behind them come the translation pages.
    logical_pages: u32,
    /// Superpages of logical pages whose entries a superpage of translation pages holds.
    entries_per_page: u32,
}

/// Some successive superpages of logical pages, and the units that they go over.
struct Domain {
    /// The superpage of pages with which it starts.
    first: u32,
    /// The one behind its last.
    end: u32,
    /// The unit of each superpage modulo their number.
    units: Vec<u32>,
    by_units: Divisor,
}

impl Domain {
    #[inline]
    fn unit_of(&self, nth: u32) -> u32 {
        self.units[self.by_units.divide(nth).1 as usize]
    }
}

impl StaticUnits {
    /// Of a drive whose placement is static.
    pub fn new(config: &DeviceConfig) -> Self {
        let slots = config.superpage_bytes() / config.ftl.logical_page_bytes;
        let mut first = 0;
        let domains = config.domains().into_iter().map(|domain| {
            let end = first + domain.capacity_bytes.div_ceil(config.superpage_bytes()) as u32;
            let units = units_of(config, &domain);
            let domain = Domain { first, end, by_units: Divisor::new(units.len() as u32), units };
            first = end;
            domain
        });
        Self {
            domains: domains.collect(),
            by_slots: Divisor::new(slots as u32),
            logical_pages: config.logical_pages() as u32,
            entries_per_page: config
                .ftl
                .mapping_cache
                .as_ref()
                .map_or(1, |cache| cache.entries_per_page(config) as u32),
        }
    }

    /// The unit that a logical page is bound to.
    #[inline]
    pub fn unit_of(&self, logical_page: u32) -> u32 {
        match &self.domains[..] {
            [all] => all.unit_of(self.by_slots.quotient(logical_page)),
            _ => self.unit_in_domain(logical_page),
        }
    }

    /// The same of a drive with several domains.
    #[inline(never)]
    fn unit_in_domain(&self, logical_page: u32) -> u32 {
        let host_page = match logical_page.checked_sub(self.logical_pages) {
            None => logical_page,
            // A translation page is where the pages are whose entries it holds, or the first of them.
            Some(nth) => nth.saturating_mul(self.entries_per_page).min(self.logical_pages - 1),
        };
        let superpage = self.by_slots.quotient(host_page);
        let nth = self.domains.partition_point(|domain| domain.end <= superpage).min(self.domains.len() - 1);
        let domain = &self.domains[nth];
        match logical_page < self.logical_pages {
            true => domain.unit_of(superpage - domain.first),
            false => domain.unit_of(self.by_slots.quotient(logical_page - self.logical_pages)),
        }
    }

    /// Where a logical page is in what repeats itself, as the number of its domain and its place in a round over the
    /// units of that, and the logical page from which on another domain's units are meant. Only the page itself is in
    /// that part where translation pages go after the domains of what they map.
    pub(crate) fn place_of(&self, logical_page: u32) -> ([u32; 2], u32) {
        let superpage = self.by_slots.quotient(logical_page);
        if let [all] = &self.domains[..] {
            return ([0, all.by_units.divide(superpage).1], u32::MAX);
        }
        let nth = self.domains.partition_point(|domain| domain.end <= superpage);
        match self.domains.get(nth).filter(|_| logical_page < self.logical_pages) {
            Some(domain) => {
                let end = domain.end.saturating_mul(self.by_slots.value()).min(self.logical_pages);
                ([nth as u32, domain.by_units.divide(superpage - domain.first).1], end)
            }
            None => ([u32::MAX, logical_page], logical_page),
        }
    }

    /// The logical pages that each unit holds, and the first domain that brings it some.
    fn loads(&self, config: &DeviceConfig) -> Vec<(u64, usize)> {
        let slots = u64::from(self.by_slots.value());
        let mut loads = vec![(0, usize::MAX); config.units() as usize];
        for (nth, domain) in self.domains.iter().enumerate() {
            let (superpages, units) = (u64::from(domain.end - domain.first), domain.units.len() as u64);
            for (at, &unit) in domain.units.iter().enumerate() {
                let (pages, first) = &mut loads[unit as usize];
                *pages += slots * (superpages / units + u64::from((at as u64) < superpages % units));
                *first = nth.min(*first);
            }
        }
        let translation = self.logical_pages..self.logical_pages.saturating_add(config.translation_pages());
        translation.for_each(|page| loads[self.unit_in_domain(page) as usize].0 += 1);
        loads
    }

    /// The unit that holds the most logical pages: the first domain that is on it, and how many.
    pub(crate) fn fullest(config: &DeviceConfig) -> (usize, u64) {
        let loads = Self::new(config).loads(config);
        let (pages, domain) = loads.into_iter().max_by_key(|&(pages, _)| pages).unwrap_or_default();
        (domain, pages)
    }
}

/// The units of a domain in the order of the drive's `static_order`.
fn units_of(config: &DeviceConfig, domain: &DomainConfig) -> Vec<u32> {
    let (flash, parts) = (&config.flash, domain.parts(config));
    let plane_groups = flash.planes_per_die / config.superpage_planes();
    // What one step on each level adds to a unit's number.
    let steps = [
        flash.chips_per_channel * flash.dies_per_chip * plane_groups,
        flash.dies_per_chip * plane_groups,
        plane_groups,
        1,
    ];
    let StaticOrder(order) = config.ftl.static_order;
    let unit_of = |mut address: usize| {
        order.iter().fold(0, |unit, &level| {
            let numbers = &parts[level as usize];
            let number = numbers[address % numbers.len()];
            address /= numbers.len();
            unit + number * steps[level as usize]
        })
    };
    (0..parts.iter().map(Vec::len).product()).map(unit_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(order: &str) -> DeviceConfig {
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
        (config.flash.channels, config.flash.chips_per_channel) = (3, 2);
        (config.flash.dies_per_chip, config.flash.planes_per_die) = (2, 2);
        config.ftl.superpage_planes = Some(1);
        config.ftl.logical_page_bytes = config.flash.page_bytes;
        config.ftl.static_order = StaticOrder::try_from(order.to_owned()).unwrap();
        config
    }

    #[test]
    fn the_first_letter_changes_fastest() {
        let units = |order: &str| -> Vec<u32> {
            let policy = StaticUnits::new(&device(order));
            (0..8).map(|page| policy.unit_of(page)).collect()
        };
        assert_eq!(units("CWDP"), [0, 8, 16, 4, 12, 20, 2, 10]);
        assert_eq!(units("PDWC"), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(units("WCPD"), [0, 4, 8, 12, 16, 20, 1, 5]);
    }

    #[test]
    fn every_order_reaches_every_unit_once_a_round() {
        for order in StaticOrder::all() {
            let device = device(&order.to_string());
            let mut units = units_of(&device, &DomainConfig::whole(&device));
            units.sort_unstable();
            assert_eq!(units, (0..24).collect::<Vec<_>>(), "{order}");
        }
    }

    fn apart() -> DeviceConfig {
        let mut config = device("CWDP");
        let page = config.ftl.logical_page_bytes;
        let domain = |pages: u64, channels: &[u32], planes: Option<Vec<u32>>| DomainConfig {
            capacity_bytes: pages * page,
            channels: Some(channels.to_vec()),
            planes,
            ..DomainConfig::default()
        };
        config.ftl.domains = vec![domain(11, &[0, 2], Some(vec![1])), domain(6, &[1], None)];
        config.capacity_bytes = 17 * page;
        config
    }

    #[test]
    fn each_domain_goes_over_its_own_units_from_its_first_page_on() {
        let policy = StaticUnits::new(&apart());
        let units: Vec<u32> = (0..17).map(|page| policy.unit_of(page)).collect();
        // Channels 0 and 2, chips, dies; plane 1 of each.
        assert_eq!(units[..11], [1, 17, 5, 21, 3, 19, 7, 23, 1, 17, 5]);
        // Chips of channel 1, then dies, then planes.
        assert_eq!(units[11..], [8, 12, 10, 14, 9, 13]);
    }

    #[test]
    fn translation_pages_are_in_the_domain_whose_entries_they_hold() {
        let mut config = apart();
        let page = config.ftl.logical_page_bytes;
        let cache = format!("capacity_bytes = 4096\nstored_entry_bytes = {}", 64);
        config.ftl.mapping_cache = Some(toml::from_str(&cache).unwrap());
        let entries = (page / 64) as u32;
        config.ftl.domains.iter_mut().for_each(|domain| domain.capacity_bytes = 3 * u64::from(entries) * page);
        config.capacity_bytes = 6 * u64::from(entries) * page;
        let policy = StaticUnits::new(&config);
        let of_first = [1, 17, 5, 21, 3, 19, 7, 23];
        for nth in 0..6 {
            let unit = policy.unit_of(6 * entries + nth);
            assert_eq!(of_first.contains(&unit), nth < 3, "translation page {nth} in unit {unit}");
        }
    }

    #[test]
    fn what_a_unit_holds_is_the_number_of_pages_that_are_bound_to_it() {
        let mut whole = device("WCPD");
        whole.capacity_bytes = 1_000 * whole.ftl.logical_page_bytes;
        for (config, domains) in [(whole, 1), (apart(), 2)] {
            let policy = StaticUnits::new(&config);
            assert_eq!(policy.domains.len(), domains);
            let mut counted = vec![0; config.units() as usize];
            let pages = config.logical_pages() as u32;
            (0..pages).for_each(|page| counted[policy.unit_of(page) as usize] += 1);
            let loads: Vec<u64> = policy.loads(&config).into_iter().map(|(pages, _)| pages).collect();
            assert_eq!(loads, counted);
        }
    }
}
