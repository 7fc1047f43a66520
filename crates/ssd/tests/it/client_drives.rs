//! Client drives written in order from empty to full, beside what reviews measured: where the SLC cache ends, and what
//! comes behind it. The heads of the presets name the sources.

use flashwise_block::{BlockDevice, ByteSize, Request, execute};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

/// What a review measured of a drive that was written in order with requests of 1 MB, one at a time.
struct Measured {
    preset: &'static str,
    /// Written until the rate dropped, GB.
    cache_gb: f64,
    /// Behind that, MB/s.
    behind: f64,
    /// Of the whole drive, MB/s, where that follows from the other two.
    average: Option<f64>,
}

const MEASURED: [Measured; 4] = [
    // 1,900 MB/s on average: this one became faster the fuller it was, and ours does not.
    Measured { preset: "samsung-980-pro-1tb", cache_gb: 113.0, behind: 1500.0, average: None },
    Measured { preset: "samsung-980-1tb", cache_gb: 160.0, behind: 500.0, average: Some(600.0) },
    Measured { preset: "corsair-mp700-2tb", cache_gb: 660.0, behind: 1000.0, average: Some(1467.0) },
    Measured { preset: "hp-fx700-2tb", cache_gb: 460.0, behind: 130.0, average: Some(168.0) },
];

/// A drive of the same structure with so many times fewer word lines in each block.
fn with_short_blocks(mut config: DeviceConfig, times: u32) -> DeviceConfig {
    assert_eq!(config.flash.pages_per_block % times, 0);
    config.flash.pages_per_block /= times;
    config.flash.erase_ns /= u64::from(times);
    let page = config.ftl.logical_page_bytes;
    config.capacity_bytes = config.capacity_bytes / u64::from(times) / page * page;
    if let Some(cache) = &mut config.ftl.mapping_cache {
        cache.capacity_bytes /= u64::from(times);
    }
    config
}

/// Writes a whole drive in order. Gives what was written until the rate dropped for good, the rate behind that and that
/// of all, bytes and bytes a second.
fn written_in_order(config: &DeviceConfig) -> (f64, f64, f64) {
    const REQUEST: u64 = 1 << 20;
    /// Bins of the whole.
    const BINS: u64 = 200;
    let mut drive = SimulatedSsd::new(config.clone(), 1).unwrap();
    let requests = config.capacity_bytes / REQUEST;
    let mut ends = vec![drive.now()];
    for n in 0..requests {
        execute(&mut drive, Request::write(ByteSize(n * REQUEST), ByteSize(REQUEST))).unwrap();
        if (n + 1) % (requests / BINS) == 0 {
            ends.push(drive.now());
        }
    }
    let bin = (requests / BINS * REQUEST) as f64;
    let seconds = |from: usize, to: usize| (ends[to].0 - ends[from].0) as f64 / 1e9;
    let rate = |n: usize| bin / seconds(n, n + 1);
    let bins = ends.len() - 1;
    let first = (1..bins).find(|&n| rate(n) < 0.75 * rate(1)).unwrap_or(bins - 1);
    let cached = bin * first as f64;
    (cached, bin * (bins - first - 1) as f64 / seconds(first + 1, bins), bin * bins as f64 / seconds(0, bins))
}

#[test]
fn writes_in_order_slow_down_where_and_as_far_as_reviews_have_measured() {
    let is_near = |ours: f64, theirs: f64, share: f64| (ours / theirs - 1.0).abs() < share;
    for Measured { preset, cache_gb, behind, average } in MEASURED {
        let whole = DeviceConfig::preset(preset).unwrap();
        let times = if whole.flash.pages_per_block == 1536 { 64 } else { 58 };
        let (cached, slow, mean) = written_in_order(&with_short_blocks(whole, times));
        let (cached, slow, mean) = (cached * f64::from(times) / 1e9, slow / 1e6, mean / 1e6);
        println!("{preset}: {cached:.0} GB, {slow:.0} MB/s, {mean:.0} MB/s");
        assert!(is_near(cached, cache_gb, 0.03), "{preset}: {cached} GB and not {cache_gb}");
        assert!(is_near(slow, behind, 0.05), "{preset}: {slow} MB/s behind the cache and not {behind}");
        assert!(average.is_none_or(|average| is_near(mean, average, 0.15)), "{preset}: {mean} MB/s on average");
    }
}
