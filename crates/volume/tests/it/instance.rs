//! Several volumes behind one instance.

use std::collections::VecDeque;

use flashwise_block::{BlockDevice, ByteSize, Completion, IoBuffer, Request, execute};
use flashwise_volume::{SimulatedVolume, Volume};

const GIB: u64 = 1 << 30;

/// A volume, and others of its instance, each of 1 GiB.
pub fn instance(toml: &str, others: &[&str]) -> SimulatedVolume {
    let one = |number: usize, toml: &str| {
        let text = format!("name = \"volume {number}\"\ncapacity_bytes = {GIB}\n{toml}\n");
        Volume::from_toml(&text, "test").unwrap()
    };
    let mut volume = one(0, toml);
    volume.others = others.iter().enumerate().map(|(number, toml)| one(number + 1, toml)).collect();
    volume.config.instance.volumes = volume.others.iter().map(|other| other.config.name.clone()).collect();
    SimulatedVolume::new(volume, 7).unwrap()
}

/// Reads of two volumes, so many of each in flight, until so many are done; of each, its volume and when.
fn loaded(device: &mut SimulatedVolume, depths: [usize; 2], count: usize) -> Vec<(usize, Completion)> {
    let mut done = Vec::new();
    let read = |volume: usize, i: usize| {
        let offset = volume as u64 * GIB + 4096 * (i as u64 * 7919 % 262_144);
        Request::read(ByteSize(offset), ByteSize::kib(4)).tagged(volume as u64)
    };
    for (volume, depth) in depths.into_iter().enumerate() {
        (0..depth).for_each(|i| device.submit(read(volume, i)).unwrap());
    }
    while done.len() < count {
        let completion = device.wait().unwrap().unwrap();
        let volume = completion.tag as usize;
        device.submit(read(volume, done.len())).unwrap();
        done.push((volume, completion));
    }
    done
}

/// Requests a second of both volumes, after the bursts.
fn rates(done: &[(usize, Completion)]) -> [f64; 2] {
    let counted = &done[done.len() / 10..];
    let time = counted[counted.len() - 1].1.completed_at.since(counted[0].1.completed_at).as_secs_f64();
    [0, 1].map(|volume| counted.iter().filter(|(of, _)| *of == volume).count() as f64 / time)
}

const OWN: &str = "limits = [{ name = \"IOPS\", counts = \"requests\", rate_per_s = 15_000, size = 15 }]\n\
                   medium.plain = { read_ns = 100_000, write_ns = 100_000 }";

fn two(cap: u64) -> SimulatedVolume {
    let limits = format!("[{{ name = \"all\", counts = \"requests\", rate_per_s = {cap}, size = 50 }}]");
    instance(&format!("{OWN}\ninstance.limits = {limits}"), &[OWN])
}

#[track_caller]
fn assert_near(rates: [f64; 2], expected: [f64; 2]) {
    let near = |(rate, expected): (f64, f64)| (rate / expected - 1.0).abs() < 0.01;
    assert!(rates.into_iter().zip(expected).all(near), "{rates:?} and not {expected:?}");
}

#[test]
fn two_volumes_under_load_get_no_more_than_the_instances_cap_in_any_window() {
    let done = loaded(&mut two(20_000), [32, 32], 40_000);
    assert_near(rates(&done), [10_000.0, 10_000.0]);
    // Both take the same time behind the limit, so completions are as far apart as departures.
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for (number, (_, completion)) in done.iter().enumerate() {
        let beyond = number as f64 - 20_000.0 * completion.completed_at.as_secs_f64();
        least = least.min(beyond);
        most = most.max(beyond - least + 1.0);
    }
    assert!((50.0..51.01).contains(&most), "{most} requests more than the rate allows, of a bucket of 50");
}

#[test]
fn at_the_instances_cap_requests_of_all_volumes_are_served_first_come_first_served() {
    // Who has three times as many requests in the line gets three times as many through.
    assert_near(rates(&loaded(&mut two(12_000), [16, 48], 40_000)), [3_000.0, 9_000.0]);
}

#[test]
fn what_one_volume_leaves_of_the_instances_cap_the_other_gets_up_to_its_own() {
    // One read at a time takes 100 µs where nothing delays it: 10,000 a second.
    assert_near(rates(&loaded(&mut two(26_000), [1, 64], 40_000)), [10_000.0, 15_000.0]);
    let mut device = two(20_000);
    let [alone, idle] = rates(&loaded(&mut device, [64, 0], 20_000));
    assert!((alone / 15_000.0 - 1.0).abs() < 0.01 && idle == 0.0, "{alone} {idle}");
    let delayed: Vec<(String, bool, bool)> =
        device.limit_activity().into_iter().map(|limit| (limit.name, limit.of_instance, limit.delayed > 0)).collect();
    let expected = [("IOPS", false, true), ("volume 1: IOPS", false, false), ("all", true, false)];
    assert_eq!(delayed, expected.map(|(name, of_instance, delayed)| (name.to_owned(), of_instance, delayed)));
}

#[test]
fn a_steady_load_of_others_is_a_volume_that_asks_for_that_rate() {
    let steady = format!(
        "{OWN}\ninstance.limits = [{{ name = \"all\", counts = \"requests\", rate_per_s = 12_000 }}]\n\
         instance.others = [{{ requests_per_s = 5_000, request_bytes = 4096 }}]"
    );
    let [beside_steady, _] = rates(&loaded(&mut instance(&steady, &[]), [64, 0], 20_000));
    // The other volume reads at 5,000 a second, whatever happens; this one as much as it gets.
    let mut device = two(12_000);
    let (mut due_ns, mut done, mut submitted) = (0, 0, 0);
    while device.now().as_secs_f64() < 2.0 {
        while submitted - done < 64 {
            device.submit(Request::read(ByteSize(4096 * (submitted % 1000)), ByteSize::kib(4)).tagged(0)).unwrap();
            submitted += 1;
        }
        if let Some(completion) = BlockDevice::wait_until(&mut device, flashwise_block::Nanos(due_ns)).unwrap() {
            done += u64::from(completion.tag == 0);
        } else {
            device.submit(Request::read(ByteSize(GIB), ByteSize::kib(4)).tagged(1)).unwrap();
            due_ns += 200_000;
        }
    }
    let beside_simulated = done as f64 / device.now().as_secs_f64();
    assert_near([beside_steady, beside_simulated], [7_000.0, 7_000.0]);
}

#[test]
fn each_volume_has_bytes_of_its_own_and_a_flush_waits_for_all() {
    let plain = "medium.plain = { read_ns = 1_000, write_ns = 1_000 }";
    let mut device = instance(plain, &["medium.plain = { read_ns = 1_000, write_ns = 1_000, flush_ns = 5_000_000 }"]);
    assert_eq!(device.info().capacity, ByteSize(2 * GIB));
    for (number, offset) in [0, GIB].into_iter().enumerate() {
        let data = IoBuffer::copy_of(&[number as u8 + 7; 4096]);
        execute(&mut device, Request::write(ByteSize(offset), ByteSize(0)).with_buffer(data)).unwrap();
    }
    assert_eq!(execute(&mut device, Request::flush()).unwrap().latency().0, 5_000_000);
    for (number, offset) in [0, GIB].into_iter().enumerate() {
        let into = Request::read(ByteSize(offset), ByteSize(0)).with_buffer(IoBuffer::zeroed(4096));
        let read = execute(&mut device, into).unwrap().buffer.unwrap();
        assert!(read.iter().all(|&byte| byte == number as u8 + 7));
        assert!(device.carries_bytes_of(ByteSize(offset)) && !device.carries_bytes_of(ByteSize(offset + 8192)));
    }
    let across = device.submit(Request::read(ByteSize(GIB - 4096), ByteSize::kib(8))).unwrap_err().to_string();
    assert!(across.contains("on two volumes of the instance: split it at byte 1073741824"), "{across}");
}

#[test]
fn each_volume_takes_its_own_number_of_requests_at_once() {
    let slow = "queue_depth = 1\nmedium.plain = { read_ns = 1_000_000, write_ns = 1_000_000 }";
    let mut device = instance(slow, &["medium.plain = { read_ns = 1_000_000, write_ns = 1_000_000 }"]);
    let read = |offset| Request::read(ByteSize(offset), ByteSize::kib(4)).tagged(offset);
    for offset in [0, 4096, GIB, GIB + 4096] {
        device.submit(read(offset)).unwrap();
    }
    let mut ends = VecDeque::new();
    while let Some(done) = device.wait().unwrap() {
        ends.push_back((done.tag, done.completed_at.0 / 1_000_000));
    }
    assert_eq!(ends, [(0, 1), (GIB, 1), (GIB + 4096, 1), (4096, 2)]);
}

#[test]
fn volumes_that_cannot_be_beside_each_other_are_refused() {
    let refused = |others: &str| {
        let text = format!("name = \"v\"\ncapacity_bytes = {GIB}\n{OWN}\ninstance.volumes = {others}");
        Volume::from_toml(&text, "mine.toml").map(|_| ()).unwrap_err().to_string()
    };
    let missing = refused("[\"gp3\", \"lacking.toml\"]");
    assert!(
        missing.starts_with("mine.toml: instance.volumes = \"lacking.toml\": neither a volume's preset"),
        "{missing}"
    );
    assert!(refused("[\"gcp-pd-balanced\"]").contains("logical blocks of 4096 bytes"));
}
