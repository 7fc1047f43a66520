//! What flash commands take, in closed form, and properties over random commands: against a naive model where the rules
//! are simple, and by invariants where they are not.

use proptest::prelude::*;

use super::*;
use crate::config::{FlashConfig, Scheduling, Suspend};
use crate::event::Limit;
use FlashOpKind::{Erase, Program, Read};

const SENSE_NS: u64 = 50;
const PROGRAM_NS: u64 = 500;
const ERASE_NS: u64 = 3_000;

/// One command of a test; `at_ns` is when it is issued. A byte takes 1 ns.
#[derive(Clone, Copy, Debug)]
struct Command {
    kind: FlashOpKind,
    class: OpClass,
    at_ns: u64,
    at: FlashAddress,
    bytes: u32,
}

fn command(kind: FlashOpKind, die: u32, bytes: u32) -> Command {
    on_plane(kind, die, 0, 0, bytes)
}

fn on_plane(kind: FlashOpKind, die: u32, plane: u8, row: u16, bytes: u32) -> Command {
    let at = FlashAddress { die, plane, planes: 1, row, block: die * 4 + u32::from(plane) };
    Command { kind, class: FlashOp::new(kind, Owner::None, at, 0).class, at_ns: 0, at, bytes }
}

impl Command {
    fn issued_at(self, at_ns: u64) -> Self {
        Self { at_ns, ..self }
    }

    fn of_class(self, class: OpClass) -> Self {
        Self { class, ..self }
    }
}

/// One channel of two dies of four planes, which are two chips unless `change` says otherwise.
fn config(change: impl FnOnce(&mut FlashConfig)) -> DeviceConfig {
    let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
    let flash = &mut config.flash;
    (flash.channels, flash.chips_per_channel, flash.dies_per_chip, flash.planes_per_die) = (1, 2, 1, 4);
    (flash.read_ns, flash.program_ns, flash.erase_ns) = (SENSE_NS, PROGRAM_NS, ERASE_NS);
    (flash.channel_bytes_per_s, flash.array_time_jitter) = (1_000_000_000, 0.0);
    (flash.suspension.program_ns, flash.suspension.erase_ns) = (20, 30);
    change(flash);
    config.ftl.superpage_planes = Some(1);
    config
}

/// A command that has ended: its number, how, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ended {
    number: u32,
    at_ns: u64,
    started_ns: u64,
    failed: bool,
}

struct Run {
    flash: FlashArray,
    /// In the order of their ends.
    ended: Vec<Ended>,
}

impl Run {
    /// When each command ended, in the order of their numbers.
    fn ends(&self) -> Vec<u64> {
        let mut ended = self.ended.clone();
        ended.sort_by_key(|ended| ended.number);
        ended.iter().map(|ended| ended.at_ns).collect()
    }
}

/// Issues commands, which are in the order of time, and lets all of them end.
fn run(config: &DeviceConfig, commands: &[Command]) -> Run {
    let (mut flash, mut events) = (FlashArray::new(config, 1), EventQueue::default());
    let (mut ended, mut ops, mut now, mut next) = (Vec::new(), Vec::new(), 0, 0);
    loop {
        let arrival = commands.get(next).map(|command| command.at_ns);
        if arrival.is_some_and(|at_ns| events.next_time().is_none_or(|first| at_ns < first)) {
            now = commands[next].at_ns;
            while next < commands.len() && commands[next].at_ns == now {
                let Command { kind, class, at, bytes, .. } = commands[next];
                let owner = Owner::Read { request: next as u32 };
                let op = flash.prepare(FlashOp::new(kind, owner, at, bytes).of_class(class));
                flash.issue(op, now, &mut events);
                ops.push(op);
                next += 1;
            }
            flash.settle(now, &mut events);
            continue;
        }
        let Some((at_ns, event)) = events.pop_until(Limit::at(u64::MAX)) else { break };
        assert!(at_ns >= now, "time never runs back");
        now = at_ns;
        let finished = match event {
            Event::Programmed { die } | Event::ArrayDone { die } => flash.array_done(die, now, &mut events),
            Event::Sensed { die } => flash.sensed(die, now, &mut events),
            Event::DataSent { channel } => flash.data_sent(channel, now, &mut events),
            Event::CommandSent { channel } => flash.command_sent(channel, now, &mut events),
            Event::Decoded { op } => Some(op),
            other => panic!("{other:?}"),
        };
        if let Some(op) = finished {
            let Finished { owner, failed, .. } = flash.take_ended(op, now);
            let Owner::Read { request: number } = owner else { panic!("{owner:?}") };
            let started_ns = flash.prepared()[ops[number as usize]].started_ns;
            ended.push(Ended { number, at_ns: now, started_ns, failed });
        }
        flash.settle(now, &mut events);
    }
    Run { flash, ended }
}

fn ends(change: impl FnOnce(&mut FlashConfig), commands: &[Command]) -> Vec<u64> {
    run(&config(change), commands).ends()
}

#[test]
fn a_single_command_takes_the_sum_of_its_parts() {
    assert_eq!(ends(|_| (), &[command(Read, 0, 100)]), [150]);
    assert_eq!(ends(|_| (), &[command(Program, 0, 100)]), [600]);
    assert_eq!(ends(|_| (), &[command(Erase, 0, 0)]), [3_000]);
}

#[test]
fn command_cycles_come_before_array_time_and_data() {
    let cycles = |flash: &mut FlashConfig| {
        (flash.command.read_ns, flash.command.program_ns, flash.command.erase_ns) = (7, 8, 9);
    };
    assert_eq!(ends(cycles, &[command(Read, 0, 100)]), [7 + 50 + 100]);
    assert_eq!(ends(cycles, &[command(Program, 0, 100)]), [8 + 100 + 500]);
    assert_eq!(ends(cycles, &[command(Erase, 0, 0)]), [9 + 3_000]);
    assert_eq!(ends(cycles, &[command(Read, 0, 100), command(Read, 1, 100)]), [157, 257], "they share the channel");
}

#[test]
fn with_mqsim_s_times_a_read_of_4_kib_and_a_program_take_what_mqsim_takes() {
    let mqsim = |flash: &mut FlashConfig| {
        (flash.command.read_ns, flash.command.program_ns) = (290, 361);
        (flash.read_ns, flash.program_ns, flash.channel_bytes_per_s) = (75_020, 750_000, 333_333_333);
    };
    assert_eq!(ends(mqsim, &[command(Read, 0, 4096)]), [290 + 75_020 + 12_288]);
    assert_eq!(ends(mqsim, &[command(Program, 0, 4096)]), [361 + 12_288 + 750_000]);
}

#[test]
fn two_dies_of_a_channel_sense_together_and_share_the_bus() {
    assert_eq!(ends(|_| (), &[command(Read, 0, 100), command(Read, 1, 100)]), [150, 250]);
}

#[test]
fn one_die_senses_the_next_page_only_when_its_register_is_empty() {
    assert_eq!(ends(|_| (), &[command(Read, 0, 100), command(Read, 0, 100)]), [150, 300]);
}

#[test]
fn a_read_goes_before_a_waiting_program_but_not_before_a_running_one() {
    let commands = [command(Program, 0, 100), command(Program, 0, 100), command(Read, 0, 100)];
    assert_eq!(ends(|_| (), &commands), [600, 1_350, 750]);
}

#[test]
fn first_come_first_served_lets_a_read_wait_for_its_turn() {
    let commands = [command(Program, 0, 100), command(Program, 0, 100), command(Read, 0, 100)];
    assert_eq!(ends(|flash| flash.scheduling = Scheduling::Fcfs, &commands), [600, 1_200, 1_350]);
}

#[test]
fn a_host_read_goes_before_one_of_garbage_collection_and_a_host_program_before_an_erase() {
    let gc = command(Read, 0, 100).of_class(OpClass::GcRead);
    let commands = [command(Erase, 0, 0), command(Erase, 0, 0), command(Program, 0, 100), gc, command(Read, 0, 100)];
    let order = |scheduling| {
        let run = run(&config(|flash| flash.scheduling = scheduling), &commands);
        run.ended.iter().map(|ended| ended.number).collect::<Vec<_>>()
    };
    assert_eq!(order(Scheduling::OutOfOrder), [0, 4, 3, 2, 1]);
    assert_eq!(order(Scheduling::ReadFirst), [0, 3, 4, 1, 2]);
    assert_eq!(order(Scheduling::PriorityOutOfOrder), [0, 3, 1, 4, 2]);
    assert_eq!(order(Scheduling::PreemptibleGc), [0, 4, 2, 3, 1]);
}

#[test]
fn programs_of_one_row_on_several_planes_take_the_array_once_and_the_channel_one_after_the_other() {
    let commands = [0, 1, 2].map(|plane| on_plane(Program, 0, plane, 5, 100));
    assert_eq!(ends(|flash| flash.multi_plane = true, &commands), [800, 800, 800]);
    assert_eq!(ends(|_| (), &commands), [600, 1_200, 1_800]);
    let other_row = [on_plane(Program, 0, 0, 5, 100), on_plane(Program, 0, 1, 6, 100)];
    assert_eq!(ends(|flash| flash.multi_plane = true, &other_row), [600, 1_200]);
}

#[test]
fn reads_of_one_row_on_several_planes_are_sensed_together_and_end_one_after_the_other() {
    let commands = [0, 1].map(|plane| on_plane(Read, 0, plane, 5, 100));
    assert_eq!(ends(|flash| flash.multi_plane = true, &commands), [150, 250]);
    let cycles = |flash: &mut FlashConfig| {
        flash.multi_plane = true;
        (flash.command.read_ns, flash.command.read_further_plane_ns) = (290, 650);
    };
    assert_eq!(ends(cycles, &commands), [940 + 150, 940 + 250]);
}

#[test]
fn a_chip_takes_one_command_at_a_time_unless_it_interleaves_its_dies() {
    let commands = [command(Program, 0, 100), command(Program, 1, 100)];
    let chip = |interleave| {
        move |flash: &mut FlashConfig| {
            (flash.chips_per_channel, flash.dies_per_chip) = (1, 2);
            (flash.command_scope, flash.interleave) = (CommandScope::Chip, interleave);
        }
    };
    assert_eq!(ends(chip(false), &commands), [600, 1_200]);
    assert_eq!(ends(chip(true), &commands), [600, 700]);
    let mixed = [command(Program, 0, 100), command(Read, 1, 100)];
    assert_eq!(ends(chip(true), &mixed), [750, 150], "commands taken together are of one kind");
}

#[test]
fn a_chip_decides_what_it_takes_when_its_channel_is_idle() {
    let chip = |flash: &mut FlashConfig| flash.command_scope = CommandScope::Chip;
    let commands =
        [command(Program, 0, 1_000), command(Program, 1, 1_000).issued_at(1), command(Read, 1, 100).issued_at(2)];
    assert_eq!(ends(chip, &commands), [1_500, 2_650, 1_150], "the read came while the channel was taken");
    assert_eq!(ends(|_| (), &commands), [1_500, 2_500, 2_650], "a die that takes commands by itself was bound");
}

#[test]
fn a_read_interrupts_a_program_and_the_rest_follows() {
    let suspending = |flash: &mut FlashConfig| flash.suspension.suspend = Suspend::ProgramErase;
    let commands = [command(Program, 0, 100), command(Read, 0, 100).issued_at(200)];
    let read_end = 200 + 20 + 50 + 100;
    assert_eq!(ends(suspending, &commands), [read_end + 400, read_end]);
    let on_the_way_in = [command(Program, 0, 100), command(Read, 0, 100).issued_at(99)];
    let read_end = 100 + 20 + 50 + 100;
    assert_eq!(ends(suspending, &on_the_way_in), [read_end + 500, read_end], "it goes first as soon as data is in");
    let erase_only = |flash: &mut FlashConfig| flash.suspension.suspend = Suspend::Erase;
    assert_eq!(ends(erase_only, &commands), [600, 750]);
    let erase = [command(Erase, 0, 0), command(Read, 0, 100).issued_at(1_000)];
    assert_eq!(ends(erase_only, &erase), [1_180 + 2_000, 1_180]);
}

#[test]
fn a_program_that_is_nearly_over_or_has_waited_enough_is_not_interrupted() {
    let suspending = |flash: &mut FlashConfig| {
        (flash.suspension.suspend, flash.suspension.reads_max) = (Suspend::ProgramErase, 2);
        flash.suspension.program_left_min_ns = 100;
    };
    let late = [command(Program, 0, 100), command(Read, 0, 100).issued_at(500)];
    assert_eq!(ends(suspending, &late), [600, 750]);
    let many = [100, 110, 120].map(|at_ns| command(Read, 0, 100).issued_at(at_ns));
    let commands = [[command(Program, 0, 100)].as_slice(), &many].concat();
    let run = run(&config(suspending), &commands);
    let (first, second) = (100 + 20 + 150, 100 + 20 + 300);
    assert_eq!(run.ends(), [second + 500, first, second, second + 500 + 150]);
    assert_eq!(run.flash.statistics().program_suspensions, 1);
}

#[test]
fn correcting_takes_its_time_but_neither_die_nor_channel() {
    let correcting = |flash: &mut FlashConfig| {
        let reliability = crate::config::ReliabilityConfig { ecc_decode_ns: 40, rber_base: 0.0, ..Default::default() };
        flash.reliability = Some(reliability);
    };
    assert_eq!(ends(correcting, &[command(Read, 0, 100), command(Read, 0, 100)]), [190, 340]);
}

#[test]
fn a_hopeless_read_is_sensed_as_often_as_allowed_and_fails() {
    let wrong = |flash: &mut FlashConfig| {
        flash.reliability = Some(crate::config::ReliabilityConfig {
            rber_base: 0.4,
            read_retry_rber_factor: 1.0,
            read_retries_max: 3,
            read_retry_ns: Some(60),
            ..Default::default()
        });
    };
    let run = run(&config(wrong), &[command(Read, 0, 100)]);
    assert_eq!(run.ended[0], Ended { number: 0, at_ns: 50 + 3 * 60 + 100, started_ns: 0, failed: true });
    assert_eq!((run.flash.statistics().read_retries, run.flash.statistics().uncorrectable_reads), (3, 1));
}

#[test]
fn statistics_tell_waits_from_service_and_how_busy_everything_was() {
    let mut config = config(|flash| flash.energy.sense_nj = 2.0);
    config.flash.energy.transfer_nj_per_byte = 0.5;
    let run = run(&config, &[command(Read, 0, 100), command(Read, 0, 100)]);
    let statistics = run.flash.statistics();
    let class = statistics.class(OpClass::HostRead);
    assert_eq!((class.commands, class.waiting_ns, class.service_ns), (2, 150, 300));
    assert_eq!(statistics.channels[0], ChannelStatistics { busy_ns: 200, bytes: 200 });
    assert_eq!(statistics.dies[0], DieStatistics { array_ns: 100, commands: 2 });
    assert_eq!(statistics.planes_ns[..5], [100, 0, 0, 0, 0]);
    assert_eq!(statistics.energy_nj(), 2.0 * 2.0 + 200.0 * 0.5);
}

/// Where a command of the naive model is, and since or until when.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    NotIssued,
    Waiting,
    WaitsToGoIn(u64),
    GoesIn(u64),
    InArray(u64),
    WaitsToComeOut(u64),
    ComesOut(u64),
    Ended(u64),
}

impl Stage {
    fn ends_at(self) -> Option<u64> {
        match self {
            Self::GoesIn(end) | Self::InArray(end) | Self::ComesOut(end) => Some(end),
            _ => None,
        }
    }

    fn holds_die(self) -> bool {
        !matches!(self, Self::NotIssued | Self::Waiting | Self::Ended(_))
    }

    fn holds_channel(self) -> bool {
        matches!(self, Self::GoesIn(_) | Self::ComesOut(_))
    }
}

/// The ends of commands by looking at all of them at every instant; `None` where two things happen at once and the
/// order between them is nobody's rule. One channel.
fn naive(commands: &[Command], reads_first: bool, cycles_ns: u64) -> Option<Vec<u64>> {
    let mut stages = vec![Stage::NotIssued; commands.len()];
    loop {
        let next = |(n, stage): (usize, &Stage)| match stage {
            Stage::NotIssued => Some(commands[n].at_ns),
            stage => stage.ends_at(),
        };
        let Some(now) = stages.iter().enumerate().filter_map(next).min() else { break };
        if stages.iter().enumerate().filter_map(next).filter(|&at| at == now).count() > 1 {
            return None;
        }
        for (n, command) in commands.iter().enumerate() {
            let array_ns = [SENSE_NS, PROGRAM_NS, ERASE_NS][command.kind as usize];
            stages[n] = match stages[n] {
                Stage::NotIssued if command.at_ns == now => Stage::Waiting,
                Stage::GoesIn(end) if end == now => Stage::InArray(now + array_ns),
                Stage::InArray(end) if end == now && command.kind == Read => Stage::WaitsToComeOut(now),
                Stage::InArray(end) | Stage::ComesOut(end) if end == now => Stage::Ended(now),
                stage => stage,
            };
        }
        for die in 0..2 {
            let on_die = |n: &usize| commands[*n].at.die == die;
            if (0..commands.len()).filter(on_die).any(|n| stages[n].holds_die()) {
                continue;
            }
            let waiting = |n: &usize| stages[*n] == Stage::Waiting;
            let key = |n: &usize| (reads_first && commands[*n].kind != Read, *n);
            let Some(n) = (0..commands.len()).filter(on_die).filter(waiting).min_by_key(key) else { continue };
            let by_channel = commands[n].kind == Program || cycles_ns > 0;
            let array_ns = [SENSE_NS, PROGRAM_NS, ERASE_NS][commands[n].kind as usize];
            stages[n] = if by_channel { Stage::WaitsToGoIn(now) } else { Stage::InArray(now + array_ns) };
        }
        if stages.iter().any(|stage| stage.holds_channel()) {
            continue;
        }
        let wish = |n: usize| match stages[n] {
            Stage::WaitsToComeOut(since) => Some((0, since, n)),
            Stage::WaitsToGoIn(since) => Some((1, since, n)),
            _ => None,
        };
        let Some((way, _, n)) = (0..commands.len()).filter_map(wish).min() else { continue };
        let data_ns = u64::from(commands[n].bytes);
        stages[n] = match (way, commands[n].kind) {
            (0, _) => Stage::ComesOut(now + data_ns),
            (_, Program) => Stage::GoesIn(now + cycles_ns + data_ns),
            _ => Stage::GoesIn(now + cycles_ns),
        };
    }
    stages.iter().map(|stage| if let Stage::Ended(at) = stage { Some(*at) } else { None }).collect()
}

fn random_commands(dies: u32, planes: u8) -> impl Strategy<Value = Vec<Command>> {
    let kind = prop_oneof![4 => Just(Read), 3 => Just(Program), 1 => Just(Erase)];
    let one = (kind, 0..dies, 0..planes, 0_u16..3, 1_u32..997, 0_u64..701, 0_usize..3);
    prop::collection::vec(one, 1..60).prop_map(move |commands| {
        let (mut at_ns, mut rows) = (0, vec![0_u16; dies as usize * 4]);
        let each = |(kind, die, plane, row, bytes, pause, class)| {
            at_ns += pause;
            let block = &mut rows[(die * 4 + u32::from(plane)) as usize];
            let row = match kind {
                Read => row,
                Program => std::mem::replace(block, *block + 1),
                Erase => 0,
            };
            // A block is written by one stream.
            let class = match kind {
                Read => OpClass::ALL[class],
                Program => OpClass::ALL[3 + usize::from(plane) % 3],
                Erase => OpClass::Erase,
            };
            on_plane(kind, die, plane, row, bytes).issued_at(at_ns).of_class(class)
        };
        commands.into_iter().map(each).collect()
    })
}

fn any_rules() -> impl Strategy<Value = DeviceConfig> {
    let scheduling = prop::sample::select(vec![
        Scheduling::Fcfs,
        Scheduling::ReadFirst,
        Scheduling::OutOfOrder,
        Scheduling::PriorityOutOfOrder,
        Scheduling::PreemptibleGc,
    ]);
    let suspend = prop::sample::select(vec![Suspend::None, Suspend::Erase, Suspend::ProgramErase]);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (scheduling, suspend, flags, 0_u64..40, 0_u64..40, 1_u32..5).prop_map(
        |(scheduling, suspend, (chip, multi_plane, interleave, errs), cycles, further, reads_max)| {
            config(|flash| {
                (flash.channels, flash.chips_per_channel, flash.dies_per_chip) = (2, 2, 2);
                flash.command_scope = if chip { CommandScope::Chip } else { CommandScope::Die };
                (flash.multi_plane, flash.interleave, flash.scheduling) =
                    (multi_plane, interleave || !chip, scheduling);
                if !chip && scheduling != Scheduling::Fcfs {
                    (flash.suspension.suspend, flash.suspension.reads_max) = (suspend, reads_max);
                }
                (flash.command.read_ns, flash.command.program_ns, flash.command.erase_ns) = (cycles, cycles, cycles);
                flash.command.read_further_plane_ns = further;
                let retrying = crate::config::ReliabilityConfig {
                    rber_base: 0.01,
                    codeword_bytes: 64,
                    correctable_bits: 5,
                    ecc_decode_ns: cycles,
                    ..Default::default()
                };
                flash.reliability = errs.then_some(retrying);
            })
        },
    )
}

/// Ends in the order in which they happen are checked against what must hold under all rules.
fn check_invariants(config: &DeviceConfig, commands: &[Command], run: &Run) -> Result<(), TestCaseError> {
    let mut numbers: Vec<u32> = run.ended.iter().map(|ended| ended.number).collect();
    numbers.sort_unstable();
    prop_assert_eq!(numbers, (0..commands.len() as u32).collect::<Vec<_>>(), "each command ends once");
    for ended in &run.ended {
        let command = &commands[ended.number as usize];
        prop_assert!(ended.started_ns >= command.at_ns && ended.at_ns >= ended.started_ns);
    }
    let of_kind = |kind| run.ended.iter().filter(move |ended| commands[ended.number as usize].kind == kind);
    let mut last_row = std::collections::BTreeMap::new();
    for ended in of_kind(Program) {
        let at = commands[ended.number as usize].at;
        let before = last_row.insert(at.block, at.row);
        prop_assert!(before.is_none_or(|row| row < at.row), "the pages of a block are programmed in order");
    }
    if config.flash.suspension.suspend == Suspend::None && config.flash.reliability.is_none() {
        let mut taken: Vec<_> =
            run.ended.iter().map(|e| (commands[e.number as usize].at.die, e.started_ns, e.at_ns)).collect();
        taken.sort_unstable();
        for pair in taken.windows(2) {
            let [(die, start, end), (next_die, next_start, _)] = [pair[0], pair[1]];
            prop_assert!(
                die != next_die || start == next_start || end <= next_start,
                "a die does one command at a time"
            );
        }
    }
    let last_ns = run.ended.last().map_or(0, |ended| ended.at_ns);
    let statistics = run.flash.statistics();
    prop_assert!(statistics.channels.iter().all(|channel| channel.busy_ns <= last_ns), "a channel is taken once");
    prop_assert!(statistics.dies.iter().all(|die| die.array_ns <= last_ns));
    let planes = config.flash.planes_per_die as usize;
    for (die, planes_ns) in statistics.dies.iter().zip(statistics.planes_ns.chunks(planes)) {
        let sum_ns: u64 = planes_ns.iter().sum();
        prop_assert!(planes_ns.iter().all(|&ns| ns <= die.array_ns), "no plane works while its die does not");
        prop_assert!(sum_ns >= die.array_ns, "and some plane does while it does");
        prop_assert!(config.flash.multi_plane || sum_ns == die.array_ns, "alone, where commands are not joined");
    }
    let counted: u64 = statistics.classes.iter().map(|class| class.commands).sum();
    prop_assert_eq!(counted, commands.len() as u64);
    prop_assert!(run.flash.commands_of_die().iter().all(|&left| left == 0));
    prop_assert_eq!(run.flash.ops.taken(), 0, "no command's room is lost");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn dies_that_take_commands_by_themselves_do_what_a_naive_timeline_does(
        commands in random_commands(2, 1), reads_first in any::<bool>(), cycles in any::<bool>(),
    ) {
        let cycles_ns = if cycles { 13 } else { 0 };
        let rules = config(|flash| {
            flash.scheduling = if reads_first { Scheduling::ReadFirst } else { Scheduling::Fcfs };
            (flash.command.read_ns, flash.command.program_ns, flash.command.erase_ns) = (cycles_ns, cycles_ns, cycles_ns);
        });
        let expected = naive(&commands, reads_first, cycles_ns);
        prop_assume!(expected.is_some());
        prop_assert_eq!(Some(run(&rules, &commands).ends()), expected);
    }

    #[test]
    fn under_all_rules_each_command_ends_once_in_order_and_nothing_is_used_twice(
        rules in any_rules(), commands in random_commands(8, 4),
    ) {
        prop_assert_eq!(rules.flash.suspension.reads_max > 0, true);
        check_invariants(&rules, &commands, &run(&rules, &commands))?;
    }

    #[test]
    fn the_same_commands_end_at_the_same_times(rules in any_rules(), commands in random_commands(8, 4)) {
        prop_assert_eq!(run(&rules, &commands).ended, run(&rules, &commands).ended);
    }
}
