//! Faults on demand, as clients over the network block device protocol see them. Those of the file are in `fuse.rs`.

use crate::support;
use std::time::{Duration, Instant};

use flashwise_attach::control::{Command, Reply};
use flashwise_attach::{FaultCommand, FaultState, LatencySpike, Pace, Range, ReadOnlyCause};
use support::{Client, FLUSH, READ, Served, TRIM, WRITE, WRITE_ZEROES};

/// `EPERM`, as the protocol has it for a drive that is read-only, and `EIO`.
const EPERM: u32 = 1;
const EIO: u32 = 5;

fn fault(served: &Served, order: FaultCommand) -> FaultState {
    match served.order(&Command::Fault(order)).unwrap() {
        Reply::Fault(state) => state,
        told => panic!("{told:?}"),
    }
}

fn unreadable(offset_bytes: u64, length_bytes: u64) -> FaultCommand {
    FaultCommand { unreadable: vec![Range { offset_bytes, length_bytes }], ..FaultCommand::default() }
}

const CLEAR: FaultCommand = FaultCommand { clear: true, latency_spike: None, unreadable: Vec::new(), read_only: false };

#[test]
fn bytes_that_cannot_be_read_give_eio_until_they_are_written_again() {
    let served = Served::start(Pace::Free, None);
    let mut client = Client::connect(&served.socket);
    client.write(0, &[1; 64 << 10]);
    assert_eq!(fault(&served, unreadable(8192, 8192)).unreadable_bytes, 8192);
    assert_eq!(client.execute(0, READ, 0, 64 << 10, &[]), EIO, "a read that touches them");
    assert_eq!(client.execute(0, READ, 12 << 10, 512, &[]), EIO);
    assert_eq!(client.read(0, 8192), [1; 8192], "up to them");
    assert_eq!(client.read(16 << 10, 4096), [1; 4096], "and behind them");
    client.write(8192, &[2; 2048]);
    assert_eq!(client.read(8192, 2048), [2; 2048], "what is written anew is read");
    assert_eq!(client.execute(0, READ, 10 << 10, 512, &[]), EIO, "and nothing more");
    assert_eq!(client.execute(0, WRITE_ZEROES, 10 << 10, 2048, &[]), 0);
    assert_eq!(client.execute(0, TRIM, 12 << 10, 4096, &[]), 0);
    assert_eq!(client.execute(0, READ, 8192, 8192, &[]), 0);
    client.data(8192);
    assert_eq!(served.stat().faults, FaultState::default());
    fault(&served, unreadable(0, 512));
    assert_eq!(client.execute(0, READ, 0, 512, &[]), EIO);
    assert_eq!(fault(&served, CLEAR), FaultState::default());
    assert_eq!(client.read(0, 512), [1; 512], "its bytes were there all the time");
    let refused = served.order(&Command::Fault(unreadable(1, 512))).unwrap_err().to_string();
    assert!(refused.contains("whole logical blocks of 512 bytes"), "{refused}");
    served.end();
}

#[test]
fn a_read_only_drive_refuses_writes_and_serves_reads_until_that_is_cleared() {
    let served = Served::start(Pace::Free, None);
    let mut client = Client::connect(&served.socket);
    client.write(0, &[1; 4096]);
    fault(&served, FaultCommand { read_only: true, ..FaultCommand::default() });
    for (command, payload) in [(WRITE, &[2; 512][..]), (WRITE_ZEROES, &[]), (TRIM, &[])] {
        assert_eq!(client.execute(0, command, 0, 512, payload), EPERM, "{command}");
    }
    assert_eq!(client.execute(0, FLUSH, 0, 0, &[]), 0);
    assert_eq!(client.read(0, 4096), [1; 4096]);
    assert_eq!(served.stat().state.read_only, Some(ReadOnlyCause::Fault));
    fault(&served, CLEAR);
    client.write(0, &[3; 512]);
    assert_eq!(client.read(0, 512), [3; 512]);
    let told = served.stat();
    assert_eq!((told.state.read_only, told.failed), (None, 0), "what was refused never reached the drive");
    served.end();
}

#[test]
fn a_latency_spike_holds_answers_back_for_so_many_requests() {
    let served = Served::start(Pace::Scaled(1.0), None);
    let mut client = Client::connect(&served.socket);
    let extra = Duration::from_millis(120);
    let spike = LatencySpike { extra_ns: 120_000_000, for_ns: None, requests: Some(2) };
    fault(&served, FaultCommand { latency_spike: Some(spike), ..FaultCommand::default() });
    let began = Instant::now();
    let both = [client.ask(0, WRITE, 0, 512, &[1; 512]), client.ask(0, READ, 0, 512, &[])];
    let first = client.reply();
    if first.1 == both[1] {
        client.data(512);
    }
    assert!(began.elapsed() >= extra, "{:?}", began.elapsed());
    if client.reply().1 == both[1] {
        client.data(512);
    }
    assert_eq!(client.read(0, 512).len(), 512);
    assert_eq!(served.stat().faults, FaultState::default(), "both requests were");
    let report = served.end();
    assert!(report.latency.writes.max_ns >= 120_000_000);
    assert_eq!(report.latency.reads.count, 2);
    assert!(report.latency.reads.p50_ns < 120_000_000, "the one after it is as fast as ever");
}
