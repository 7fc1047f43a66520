use flashwise_block::execute;
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use proptest::prelude::*;

use super::*;
use crate::LatencySpike;

fn drive() -> SimulatedSsd {
    SimulatedSsd::new(DeviceConfig::preset("samsung-960-evo").unwrap(), 1).unwrap()
}

fn command(operation: Operation, offset: u64, length: u64) -> HostRequest {
    let payload = (operation == Operation::Write).then(|| IoBuffer::zeroed(length as usize));
    let (offset, length) = (ByteSize(offset), ByteSize(length));
    HostRequest { client: 1, cookie: offset.0, process: None, operation, offset, length, fua: false, payload }
}

fn engine(pace: Pace, round_trip: Duration, began: Instant) -> Engine {
    Engine::new(drive(), pace, round_trip, None, began).unwrap()
}

/// Sleeps exactly as long as the engine says, until everything is completed: the completions and their times.
fn play(engine: &mut Engine, mut now: Instant) -> Vec<(HostCompletion, Instant)> {
    let (mut played, mut answers) = (Vec::new(), Vec::new());
    loop {
        engine.poll(now, &mut answers).unwrap();
        played.extend(answers.drain(..).map(|answer| (answer, now)));
        match engine.next_wake() {
            Wake::Never => return played,
            Wake::Now => {}
            Wake::At(at) => now = now.max(at),
        }
    }
}

/// The latencies of a write and of a read after it, each alone on a new drive.
fn alone() -> (Duration, Duration) {
    let mut drive = drive();
    let write = execute(&mut drive, Request::write(ByteSize(0), ByteSize(65_536)).with_fua()).unwrap();
    let read = execute(&mut drive, Request::read(ByteSize(0), ByteSize(4096))).unwrap();
    (Duration::from_nanos(write.latency().0), Duration::from_nanos(read.latency().0))
}

#[test]
fn an_answer_comes_exactly_when_the_drive_has_done_it() {
    let (write, read) = alone();
    for scale in [1.0, 10.0] {
        let began = Instant::now();
        let mut engine = engine(Pace::Scaled(scale), Duration::ZERO, began);
        engine.submit(HostRequest { fua: true, ..command(Operation::Write, 0, 65_536) }, began).unwrap();
        let written = play(&mut engine, began);
        assert_eq!(written[0].1 - began, write.mul_f64(scale), "scale {scale}");
        let later = began + Duration::from_secs(1);
        engine.submit(command(Operation::Read, 0, 4096), later).unwrap();
        assert_eq!(play(&mut engine, later)[0].1 - later, read.mul_f64(scale), "scale {scale}");
        let pacing = engine.finish().unwrap().pacing.unwrap();
        assert_eq!((pacing.error.count, pacing.error.max_ns, pacing.spoils_the_result), (2, 0, false));
    }
}

#[test]
fn the_way_to_the_client_is_taken_off() {
    let (_, read) = alone();
    let (began, trip) = (Instant::now(), Duration::from_micros(15));
    let mut engine = engine(Pace::Scaled(1.0), trip, began);
    engine.submit(HostRequest { fua: true, ..command(Operation::Write, 0, 65_536) }, began).unwrap();
    play(&mut engine, began);
    let later = began + Duration::from_secs(1);
    engine.submit(command(Operation::Read, 0, 4096), later).unwrap();
    assert_eq!(play(&mut engine, later)[0].1 - later, read - trip);
}

#[test]
fn an_answer_that_is_given_late_is_told_as_late() {
    let (write, _) = alone();
    let (began, late) = (Instant::now(), Duration::from_millis(7));
    let mut engine = engine(Pace::Scaled(1.0), Duration::ZERO, began);
    engine.submit(HostRequest { fua: true, ..command(Operation::Write, 0, 65_536) }, began).unwrap();
    let mut answers = Vec::new();
    engine.poll(began + write - Duration::from_nanos(1), &mut answers).unwrap();
    assert!(answers.is_empty(), "not a nanosecond early");
    engine.poll(began + write + late, &mut answers).unwrap();
    assert_eq!(answers.len(), 1);
    let pacing = engine.finish().unwrap().pacing.unwrap();
    assert!(pacing.error.p50_ns.abs_diff(7_000_000) < 7_000, "three digits: {}", pacing.error.p50_ns);
    assert!(pacing.spoils_the_result);
}

#[test]
fn requests_that_come_together_are_served_side_by_side() {
    let began = Instant::now();
    let time_of = |depth: u64| {
        let mut engine = engine(Pace::Scaled(1.0), Duration::ZERO, began);
        (0..depth).for_each(|n| engine.submit(command(Operation::Read, n << 16, 4096), began).unwrap());
        play(&mut engine, began).iter().map(|(_, at)| *at - began).max().unwrap()
    };
    assert!(time_of(4) < 3 * time_of(1), "{:?} for four, {:?} for one", time_of(4), time_of(1));
}

#[test]
fn without_pacing_everything_is_answered_at_once_and_accounted_in_the_drive_s_time() {
    let began = Instant::now();
    let mut engine = engine(Pace::Free, Duration::ZERO, began);
    (0..8).for_each(|n| engine.submit(command(Operation::Write, n << 16, 65_536), began).unwrap());
    engine.submit(command(Operation::Flush, 0, 0), began).unwrap();
    let mut answers = Vec::new();
    engine.poll(began, &mut answers).unwrap();
    assert_eq!((answers.len(), engine.outstanding(), engine.next_wake()), (9, 0, Wake::Never));
    let report = engine.finish().unwrap();
    assert_eq!((report.counters.host_writes, report.counters.flushes, report.pacing), (8, 1, None));
    assert!(report.simulated_ns > 0 && report.latency.writes.count == 8);
}

#[test]
fn what_makes_no_sense_is_answered_and_the_drive_never_sees_it() {
    let began = Instant::now();
    let mut engine = engine(Pace::Scaled(1.0), Duration::ZERO, began);
    let capacity = engine.info().capacity.0;
    let wrong = [
        command(Operation::Read, 100, 4096),
        command(Operation::Write, 0, 100),
        command(Operation::Trim, capacity, 4096),
        command(Operation::Read, u64::MAX - 511, 512),
        command(Operation::Read, 0, 0),
        HostRequest { payload: None, ..command(Operation::Write, 0, 4096) },
    ];
    let count = wrong.len();
    wrong.into_iter().for_each(|command| engine.submit(command, began).unwrap());
    let played = play(&mut engine, began);
    assert!(played.iter().all(|(answer, _)| answer.result.is_err()), "{played:?}");
    assert_eq!((played.len(), engine.outstanding()), (count, 0));
}

proptest! {
    /// Against an array of bytes, with requests that are longer than the drive's longest.
    #[test]
    fn what_is_read_is_what_was_written_last(
        steps in prop::collection::vec((0_u8..4, 0_u64..64, 1_u64..64, any::<u8>()), 1..30), paced: bool
    ) {
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
        config.host.max_transfer_bytes = 16 << 10;
        let began = Instant::now();
        let pace = if paced { Pace::Scaled(1.0) } else { Pace::Free };
        let drive = SimulatedSsd::new(config, 1).unwrap();
        let mut engine = Engine::new(drive, pace, Duration::ZERO, None, began).unwrap();
        let mut model = vec![0_u8; 128 << 12];
        for (kind, page, pages, byte) in steps {
            let (offset, length) = (page << 12, pages << 12);
            let range = offset as usize..(offset + length) as usize;
            let operation = [Operation::Read, Operation::Write, Operation::WriteZeroes, Operation::Trim][kind as usize];
            let mut command = command(operation, offset, length);
            if let Some(payload) = &mut command.payload {
                payload.iter_mut().enumerate().for_each(|(n, place)| *place = byte ^ (n >> 9) as u8);
                model[range.clone()].copy_from_slice(payload);
            } else if operation != Operation::Read {
                model[range.clone()].fill(0);
            }
            engine.submit(command, began).unwrap();
            let mut played = play(&mut engine, began);
            let (answer, _) = played.pop().unwrap();
            prop_assert!(played.is_empty() && answer.result.is_ok());
            if operation == Operation::Read {
                prop_assert!(answer.payload.unwrap()[..] == model[range], "offset {offset}, length {length}");
            }
        }
    }
}

fn spike(extra: Duration, for_ns: Option<u64>, requests: Option<u64>) -> FaultCommand {
    let extra_ns = extra.as_nanos() as u64;
    FaultCommand { latency_spike: Some(LatencySpike { extra_ns, for_ns, requests }), ..FaultCommand::default() }
}

#[test]
fn a_latency_spike_is_added_on_the_drive_s_clock_exactly() {
    let (write, read) = alone();
    let extra = Duration::from_millis(5);
    for scale in [1.0, 10.0] {
        let began = Instant::now();
        let mut engine = engine(Pace::Scaled(scale), Duration::ZERO, began);
        engine.fault(&spike(extra, None, Some(1)), began).unwrap();
        engine.submit(HostRequest { fua: true, ..command(Operation::Write, 0, 65_536) }, began).unwrap();
        let mut answers = Vec::new();
        let due = began + (write + extra).mul_f64(scale);
        engine.poll(due - Duration::from_nanos(1), &mut answers).unwrap();
        assert!(answers.is_empty() && engine.outstanding() == 1, "not a nanosecond early");
        assert_eq!(engine.next_wake(), Wake::At(due), "scale {scale}");
        assert_eq!(play(&mut engine, due).len(), 1);
        let later = began + Duration::from_secs(1);
        engine.submit(command(Operation::Read, 0, 4096), later).unwrap();
        assert_eq!(play(&mut engine, later)[0].1 - later, read.mul_f64(scale), "the next one is as fast as ever");
        let report = engine.finish().unwrap();
        assert_eq!(report.latency.writes.max_ns / 100_000, ((write + extra).as_nanos() / 100_000) as u64);
        assert_eq!(report.pacing.unwrap().error.max_ns, 0);
    }
}

#[test]
fn without_pacing_a_latency_spike_passes_on_the_drive_s_clock_alone() {
    let began = Instant::now();
    let mut engine = engine(Pace::Free, Duration::ZERO, began);
    // It ends by time: the first request is the last one that it meets.
    engine.fault(&spike(Duration::from_millis(50), Some(1_000_000), None), began).unwrap();
    for _ in 0..2 {
        engine.submit(command(Operation::Write, 0, 4096), began).unwrap();
        assert_eq!(play(&mut engine, began).len(), 1);
    }
    let report = engine.finish().unwrap();
    assert!((50_000_000..60_000_000).contains(&report.simulated_ns), "{}", report.simulated_ns);
    assert!(report.latency.writes.max_ns >= 50_000_000 && report.latency.writes.p50_ns < 1_000_000);
}

#[test]
fn answers_that_are_held_back_are_lost_with_the_power() {
    let began = Instant::now();
    let mut drive = drive();
    drive.allow_power_cuts().unwrap();
    let mut engine = Engine::new(drive, Pace::Scaled(1.0), Duration::ZERO, None, began).unwrap();
    engine.fault(&spike(Duration::from_secs(1), None, None), began).unwrap();
    engine.submit(command(Operation::Write, 0, 4096), began).unwrap();
    let later = began + Duration::from_millis(500);
    let mut answers = Vec::new();
    engine.poll(later, &mut answers).unwrap();
    assert!(answers.is_empty());
    assert_eq!(engine.power_cut(later).unwrap().lost_requests, 1);
    let played = play(&mut engine, later);
    assert!(played.len() == 1 && played[0].0.result.is_err() && engine.outstanding() == 0);
}

#[test]
fn looks_change_nothing_of_the_report() {
    let began = Instant::now();
    let report = |looks: bool| {
        let mut engine = engine(Pace::Scaled(1.0), Duration::ZERO, began);
        let mut now = began;
        for n in 0..30 {
            engine.submit(command(Operation::Write, n << 16, 65_536), now).unwrap();
            now = play(&mut engine, now)[0].1;
            if looks && n % 3 == 0 {
                let snapshot = engine.snapshot(Box::default(), now).unwrap();
                assert_eq!(snapshot.stat.counters.host_writes, n + 1);
                engine.reported_times().lock().unwrap().merge(&snapshot.times);
            }
        }
        engine.finish().unwrap()
    };
    assert_eq!(report(true), report(false));
}

#[test]
fn a_volume_is_attached_with_its_bytes_and_its_limits() {
    use flashwise_volume::{SimulatedVolume, Volume};
    let text = "name = \"a volume\"\ncapacity_bytes = 1_073_741_824\nmedium.plain = { read_ns = 100_000, write_ns = 9 }\n\
                limits = [{ name = \"reads\", direction = \"read\", counts = \"requests\", rate_per_s = 100 }]";
    let volume = SimulatedVolume::new(Volume::from_toml(text, "test").unwrap(), 1).unwrap();
    let began = Instant::now();
    let mut engine = Engine::new(volume, Pace::Free, Duration::ZERO, None, began).unwrap();
    let mut answers = Vec::new();
    let mut serve = |engine: &mut Engine, operation, payload: Option<IoBuffer>| {
        let (offset, length) = (ByteSize::kib(64), ByteSize::kib(8));
        let command =
            HostRequest { client: 1, cookie: 0, process: None, operation, offset, length, fua: false, payload };
        engine.submit(command, began).unwrap();
        engine.poll(began, &mut answers).unwrap();
        answers.pop().unwrap()
    };
    serve(&mut engine, Operation::Write, Some(IoBuffer::copy_of(&[7; 8192])));
    let read: Vec<_> = (0..50).map(|_| serve(&mut engine, Operation::Read, None)).collect();
    assert!(read.iter().all(|read| read.payload.as_ref().is_some_and(|bytes| bytes.iter().all(|&byte| byte == 7))));
    let holes = engine.allocation(0, 128 << 10, false, &mut 100).unwrap().unwrap();
    assert_eq!(holes, [(64 << 10, true), (8 << 10, false), (56 << 10, true)]);
    assert!(matches!(engine.power_cut(began), Err(AttachError::NoPowerCuts)));
    let report = engine.finish().unwrap();
    assert!(report.simulated_ns > 480_000_000, "{}", report.simulated_ns);
}
