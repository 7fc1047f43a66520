//! What a host sees of a volume.

use flashwise_block::{BlockDevice, ByteSize, Completion, IoBuffer, Nanos, Request, execute};
use flashwise_volume::{SimulatedVolume, Volume};

const PLAIN: &str = "medium.plain = { read_ns = 100_000, write_ns = 200_000 }";

pub fn volume(toml: &str) -> SimulatedVolume {
    let text = format!("name = \"a volume\"\ncapacity_bytes = 1_073_741_824\n{toml}\n");
    SimulatedVolume::new(Volume::from_toml(&text, "test").unwrap(), 7).unwrap()
}

fn refused(toml: &str) -> String {
    let text = format!("name = \"a volume\"\ncapacity_bytes = 1_073_741_824\n{toml}\n");
    Volume::from_toml(&text, "mine.toml").unwrap_err().to_string()
}

fn read_4k(i: u64) -> Request {
    Request::read(ByteSize::kib(4 * (i * 7919 % 262_144)), ByteSize::kib(4))
}

/// Keeps so many requests outstanding until so many are done.
fn run(volume: &mut SimulatedVolume, depth: u64, count: u64, request: impl Fn(u64) -> Request) -> Vec<Completion> {
    let mut done = Vec::new();
    let mut next = 0;
    while (done.len() as u64) < count {
        while next < count && (volume.outstanding() as u64) < depth {
            volume.submit(request(next).tagged(next)).unwrap();
            next += 1;
        }
        done.push(volume.wait().unwrap().unwrap());
    }
    done
}

fn per_s(count: u64, time: Nanos) -> f64 {
    count as f64 / time.as_secs_f64()
}

#[test]
fn a_volume_without_limits_has_the_latency_of_its_medium_and_its_network() {
    let mut volume = volume(&format!("{PLAIN}\nnetwork.read.fixed_ns = 250_000"));
    let done = execute(&mut volume, read_4k(0)).unwrap();
    assert_eq!(done.latency(), Nanos(350_000));
    assert_eq!(execute(&mut volume, Request::write(ByteSize(0), ByteSize::kib(4))).unwrap().latency(), Nanos(200_000));
}

#[test]
fn bytes_come_back_from_every_medium() {
    let disk = "disk = { rpm = 15_000, surfaces = 4, zones = 4, outer_bytes_per_s = 200_000_000, \
                inner_bytes_per_s = 130_000_000, track_seek_ns = 200_000, average_seek_ns = 3_000_000, \
                full_seek_ns = 6_000_000, interface_bytes_per_s = 600_000_000 }";
    for medium in ["plain = { read_ns = 1, write_ns = 1 }", "drive = \"samsung-960-evo\"", disk] {
        let mut volume = volume(&format!("max_transfer_bytes = 131_072\n[medium]\n{medium}"));
        let data = IoBuffer::copy_of(&[7; 8192]);
        execute(&mut volume, Request::write(ByteSize::mib(3), ByteSize(0)).with_buffer(data)).unwrap();
        execute(&mut volume, Request::flush()).unwrap();
        let into = Request::read(ByteSize::mib(3), ByteSize(0)).with_buffer(IoBuffer::zeroed(8192));
        let read = execute(&mut volume, into).unwrap();
        assert!(read.buffer.unwrap().iter().all(|&byte| byte == 7), "{medium}");
        assert_eq!(volume.counters().host_bytes_written, ByteSize::kib(8));
    }
}

#[test]
fn reads_share_a_joint_budget_with_writes_by_their_costs() {
    // Azure's: a read is one unit, a megabyte written 513.
    let mut volume = volume(&format!(
        "{PLAIN}\nlimits = [{{ name = \"budget\", counts = \"cost\", rate_per_s = 366_000, \
         read_cost = {{ per_request = 1 }}, write_cost = {{ per_byte = 0.000_513 }} }}]"
    ));
    let write = |i: u64| Request::write(ByteSize::kib(128 * (i % 4096)), ByteSize::kib(128));
    let mixed = |i: u64| if i.is_multiple_of(100) { write(i) } else { read_4k(i) };
    let done = run(&mut volume, 512, 200_000, mixed);
    let written_mb_per_s = per_s(2_000 * 131_072, volume.now()) / 1e6;
    let reads_per_s = per_s(198_000, volume.now());
    let units = reads_per_s + 513.0 * written_mb_per_s;
    assert!((units / 366_000.0 - 1.0).abs() < 0.002, "{units}");
    assert_eq!(done.len(), 200_000);
}

#[test]
fn a_held_request_comes_back_after_its_quantum_and_the_others_pass() {
    let mut volume = volume(
        "medium.plain = { read_ns = 90_000, write_ns = 90_000 }\nlimits = [{ name = \"reads\", direction = \"read\", \
         counts = \"requests\", rate_per_s = 275_000, size = 275, at_limit = \"hold\", hold_ns = 3_000_000 }]",
    );
    let mut latencies: Vec<u64> = run(&mut volume, 34, 300_000, read_4k).iter().map(|done| done.latency().0).collect();
    latencies.sort_unstable();
    assert_eq!(latencies[150_000], 90_000);
    let between = latencies.iter().filter(|&&ns| ns > 90_000 && ns < 3_000_000).count();
    assert_eq!(between, 0, "held for the whole quantum, or not at all");
    let held = latencies.iter().filter(|&&ns| ns >= 3_000_000).count() as f64 / 3e5;
    // Of 34 requests in flight, 24.75 are in the medium at 275,000 a second; the others are held.
    assert!((held - (34.0 / 275e3 - 90e-6) / 3e-3).abs() < 0.001, "{held}");
    let activity = &volume.limit_activity()[0];
    assert_eq!((activity.requests, activity.delayed > 0), (300_000, true));
}

#[test]
fn a_gp2_burst_lasts_its_credits_divided_by_what_is_spent_beyond_the_base() {
    // Requests of 8 MiB take 32 credits each.
    let base = 300;
    let mut volume = volume(&format!(
        "max_transfer_bytes = 8_388_608\n{PLAIN}\nlimits = [{{ name = \"IOPS\", counts = \"requests\", \
         rate_per_s = {base}, size = 5_400_000, peak_per_s = 3000, unit_bytes = 262_144 }}]"
    ));
    let read = |i: u64| Request::read(ByteSize::mib(8 * (i % 128)), ByteSize::mib(8));
    let done = run(&mut volume, 8, 190_000, read);
    let gap = |two: &[Completion]| two[1].completed_at.since(two[0].completed_at).as_secs_f64();
    let ended = done.windows(2).position(|two| gap(two) > 32.0 / 1000.0).unwrap();
    let (ended_s, burst_s) = (done[ended].completed_at.as_secs_f64(), 5_400_000.0 / f64::from(3000 - base));
    assert!((ended_s - burst_s).abs() < 1.0, "{ended_s} and not {burst_s}");
    let rate_before = 32.0 * per_s(ended as u64, done[ended].completed_at);
    assert!((rate_before / 3000.0 - 1.0).abs() < 0.001, "{rate_before} during the burst");
    let (first, last) = (&done[ended + 1], &done[done.len() - 1]);
    let rate = 32.0 * per_s((done.len() - ended - 2) as u64, last.completed_at.since(first.completed_at));
    assert!((rate / f64::from(base) - 1.0).abs() < 0.001, "{rate} after the burst");
}

#[test]
fn a_large_request_counts_as_several_and_small_adjacent_ones_as_one() {
    let limit = "limits = [{ name = \"IOPS\", counts = \"requests\", rate_per_s = 1000, unit_bytes = 262_144, \
                 merge_from_bytes = 32_768 }]";
    let rate = |request: &dyn Fn(u64) -> Request| {
        let mut volume = volume(&format!("{PLAIN}\n{limit}"));
        run(&mut volume, 64, 4000, request);
        per_s(4000, volume.now())
    };
    let near = |rate: f64, expected: f64| assert!((rate / expected - 1.0).abs() < 0.02, "{rate} and not {expected}");
    near(rate(&|i| Request::read(ByteSize::mib(i * 389 % 1024), ByteSize::mib(1))), 250.0);
    near(rate(&|i| Request::read(ByteSize::kib(32 * (i % 32_768)), ByteSize::kib(32))), 8000.0);
    near(rate(&|i| Request::read(ByteSize::kib(32 * (i * 7919 % 32_768)), ByteSize::kib(32))), 1000.0);
    near(rate(&|i| Request::read(ByteSize::kib(16 * (i % 32_768)), ByteSize::kib(16))), 1000.0);
}

#[test]
fn the_instances_cap_is_seen_apart_from_the_volumes_by_the_load_of_other_volumes() {
    let rate = |others: &str| {
        let mut volume = volume(&format!(
            "{PLAIN}\nlimits = [{{ name = \"volume\", counts = \"requests\", rate_per_s = 10_000 }}]\n\
             [instance]\nlimits = [{{ name = \"instance\", counts = \"requests\", rate_per_s = 20_000 }}]\n{others}"
        ));
        run(&mut volume, 64, 20_000, read_4k);
        let delayed: Vec<u64> = volume.limit_activity().iter().map(|limit| limit.delayed).collect();
        (per_s(20_000, volume.now()), delayed)
    };
    let (alone, delayed) = rate("");
    assert!((alone - 10_000.0).abs() < 20.0 && delayed[0] > 19_000 && delayed[1] == 0, "{alone} {delayed:?}");
    let (beside, delayed) = rate("others = [{ requests_per_s = 15_000, request_bytes = 4096 }]");
    assert!((beside - 5_000.0).abs() < 20.0 && delayed[1] > 19_000, "{beside} {delayed:?}");
}

#[test]
fn paced_requests_leave_one_after_the_other_even_after_a_long_pause() {
    let mut volume = volume(&format!(
        "{PLAIN}\nlimits = [{{ name = \"IOPS\", counts = \"requests\", rate_per_s = 1000, at_limit = \"pace\" }}]"
    ));
    volume.pause(Nanos::secs(60)).unwrap();
    let done = run(&mut volume, 64, 200, read_4k);
    let gaps: Vec<u64> = done.windows(2).map(|two| two[1].completed_at.since(two[0].completed_at).0).collect();
    assert!(gaps.iter().all(|&gap| gap.abs_diff(1_000_000) <= 1), "{gaps:?}");
}

#[test]
fn the_same_seed_gives_the_same_times() {
    let times = || {
        let mut volume = volume(&format!("{PLAIN}\nnetwork.read = {{ fixed_ns = 9, median_ns = 99, p99_ns = 9999 }}"));
        run(&mut volume, 8, 500, read_4k).iter().map(|done| (done.tag, done.completed_at)).collect::<Vec<_>>()
    };
    assert_eq!(times(), times());
}

#[test]
fn an_impossible_value_is_reported_with_file_key_value_and_reason() {
    let limit = |keys: &str| refused(&format!("{PLAIN}\nlimits = [{{ name = \"x\", counts = \"requests\", {keys} }}]"));
    assert_eq!(limit("rate_per_s = 0"), "mine.toml: limits.rate_per_s = 0 of \"x\": must be from 1 to 10^12");
    assert!(limit("rate_per_s = 5, at_limit = \"hold\"").contains("require each other"));
    assert!(limit("rate_per_s = 5, at_limit = \"pace\", size = 7").contains("allows no burst"));
    assert!(limit("rate_per_s = 5, peak_per_s = 5").contains("must be above the sustained rate, 5"));
    assert!(limit("rate_per_s = 5, merge_from_bytes = 512").contains("at most unit_bytes"));
    assert!(limit("rate_per_s = 5, rates = 4").contains("unknown field"));
    assert!(refused("[medium]").contains("needs exactly one of drive, plain and disk"));
    assert!(refused("medium.drive = \"micron-m501\"").contains("neither a preset nor a readable file"));
    assert!(refused("medium.drive = \"toshiba-xg5\"\nmax_transfer_bytes = 67_108_864").contains("the drive's"));
    let instance = "[instance]\nlimits = [{ name = \"all\", counts = \"bytes\", rate_per_s = 4096 }]\n\
                    others = [{ requests_per_s = 1, request_bytes = 4096 }]";
    assert!(refused(&format!("{PLAIN}\n{instance}")).contains("leave nothing of \"all\""));
}
