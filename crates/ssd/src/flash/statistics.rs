//! What the flash has done: counts and times that are always kept, because they cost a few additions a command.

use super::command::{FlashOp, FlashOpKind, OpClass};
use crate::config::EnergyConfig;

/// What a channel has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelStatistics {
    /// Time with a command, an address or data on it, ns.
    pub busy_ns: u64,
    /// Data moved, both directions.
    pub bytes: u64,
}

impl ChannelStatistics {
    pub(super) fn add(&mut self, other: Self) {
        self.busy_ns += other.busy_ns;
        self.bytes += other.bytes;
    }
}

/// What a die has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DieStatistics {
    /// Time in which its array sensed, programmed or erased, ns.
    pub array_ns: u64,
    /// Commands taken; those of several planes done together count once.
    pub commands: u64,
}

impl DieStatistics {
    pub(super) fn add(&mut self, other: Self) {
        self.array_ns += other.array_ns;
        self.commands += other.commands;
    }
}

/// What the commands of one class have seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassStatistics {
    /// Commands ended.
    pub commands: u64,
    /// From their issue to the moment when their die took them, ns, summed up.
    pub waiting_ns: u64,
    /// From that moment to their end, ns, summed up: channel, array, and the waits for the channel between.
    pub service_ns: u64,
}

impl ClassStatistics {
    /// Mean time from issue to the die, ns.
    pub fn mean_waiting_ns(&self) -> f64 {
        self.waiting_ns as f64 / self.commands.max(1) as f64
    }

    /// Mean time from the die's taking it to the end, ns.
    pub fn mean_service_ns(&self) -> f64 {
        self.service_ns as f64 / self.commands.max(1) as f64
    }
}

/// What the flash has done since the drive is new.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Channel by channel.
    pub channels: Vec<ChannelStatistics>,
    /// Die by die; die `d` is on channel `d / ways`.
    pub dies: Vec<DieStatistics>,
    /// Time in which each plane sensed, programmed or erased, ns; die by die, plane `p` of die `d` being number
    /// `d · planes per die + p`.
    pub planes_ns: Vec<u64>,
    /// Class by class, in the order of [`OpClass::ALL`].
    pub classes: [ClassStatistics; OpClass::ALL.len()],
    /// Pages sensed, retries not counted.
    pub pages_sensed: u64,
    /// Pages programmed.
    pub pages_programmed: u64,
    /// Blocks erased.
    pub blocks_erased: u64,
    /// Commands that joined others on further planes of their die.
    pub joined_commands: u64,
    /// Times that a chip took commands for more than one of its dies at once.
    pub interleaved_commands: u64,
    /// Times that a read interrupted a program.
    pub program_suspensions: u64,
    /// Times that a read interrupted an erase.
    pub erase_suspensions: u64,
    /// Times that a page was sensed again because it could not be corrected.
    pub read_retries: u64,
    /// Reads that could not be corrected in the end.
    pub uncorrectable_reads: u64,
    /// Programs that failed.
    pub failed_programs: u64,
    /// Erases that failed.
    pub failed_erases: u64,
    pub(super) energy: EnergyConfig,
}

/// An operation on one page or block of a die that does nothing else meanwhile, with times that are known beforehand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownOp {
    /// The die and the plane, both counted over the drive.
    pub(crate) at: (u32, u32),
    pub(crate) class: OpClass,
    /// From its issue to its start, ns.
    pub(crate) waiting_ns: u64,
    /// Its array senses, programs or erases, ns.
    pub(crate) array_ns: u64,
    /// Its data is on the channel, ns.
    pub(crate) transfer_ns: u64,
    /// The data, bytes.
    pub(crate) bytes: u64,
}

impl Statistics {
    pub(super) fn new(channels: usize, dies: usize, planes_per_die: usize, energy: EnergyConfig) -> Self {
        Self {
            channels: vec![ChannelStatistics::default(); channels],
            dies: vec![DieStatistics::default(); dies],
            planes_ns: vec![0; dies * planes_per_die],
            energy,
            ..Self::default()
        }
    }

    /// Adds what another drive's flash has done: its channels, dies and planes behind these.
    pub fn append(&mut self, other: Self) {
        self.add_counts(&other);
        self.channels.extend(other.channels);
        self.dies.extend(other.dies);
        self.planes_ns.extend(other.planes_ns);
    }

    /// Adds what the flash of a drive of the same kind has done that stood in the same place.
    pub fn merge(&mut self, other: &Self) {
        self.add_counts(other);
        self.channels.iter_mut().zip(&other.channels).for_each(|(sum, &one)| sum.add(one));
        self.dies.iter_mut().zip(&other.dies).for_each(|(sum, &one)| sum.add(one));
        self.planes_ns.iter_mut().zip(&other.planes_ns).for_each(|(sum, &one)| *sum += one);
    }

    fn add_counts(&mut self, other: &Self) {
        for (sum, one) in self.classes.iter_mut().zip(&other.classes) {
            sum.commands += one.commands;
            sum.waiting_ns += one.waiting_ns;
            sum.service_ns += one.service_ns;
        }
        self.pages_sensed += other.pages_sensed;
        self.pages_programmed += other.pages_programmed;
        self.blocks_erased += other.blocks_erased;
        self.joined_commands += other.joined_commands;
        self.interleaved_commands += other.interleaved_commands;
        self.program_suspensions += other.program_suspensions;
        self.erase_suspensions += other.erase_suspensions;
        self.read_retries += other.read_retries;
        self.uncorrectable_reads += other.uncorrectable_reads;
        self.failed_programs += other.failed_programs;
        self.failed_erases += other.failed_erases;
        self.energy = other.energy;
    }

    /// What the commands of a class have seen.
    pub fn class(&self, class: OpClass) -> &ClassStatistics {
        &self.classes[class as usize]
    }

    /// Energy of all operations, nJ; 0 where the configuration tells no energies.
    pub fn energy_nj(&self) -> f64 {
        let senses = self.pages_sensed + self.read_retries;
        let bytes: u64 = self.channels.iter().map(|channel| channel.bytes).sum();
        senses as f64 * self.energy.sense_nj
            + self.pages_programmed as f64 * self.energy.program_nj
            + self.blocks_erased as f64 * self.energy.erase_nj
            + bytes as f64 * self.energy.transfer_nj_per_byte
    }

    /// An operation is done where none goes through the flash's queues: the only die of a channel does it.
    pub(crate) fn done(&mut self, op: KnownOp) {
        match op.class {
            OpClass::HostRead | OpClass::MappingRead | OpClass::GcRead => self.pages_sensed += 1,
            OpClass::HostProgram | OpClass::MappingProgram | OpClass::GcProgram => self.pages_programmed += 1,
            OpClass::Erase => self.blocks_erased += 1,
        }
        let class = &mut self.classes[op.class as usize];
        class.commands += 1;
        class.waiting_ns += op.waiting_ns;
        class.service_ns += op.array_ns + op.transfer_ns;
        let (die, plane) = (op.at.0 as usize, op.at.1 as usize);
        self.planes_ns[plane] += op.array_ns;
        let (channel, die) = (&mut self.channels[die], &mut self.dies[die]);
        (channel.busy_ns, channel.bytes) = (channel.busy_ns + op.transfer_ns, channel.bytes + op.bytes);
        (die.array_ns, die.commands) = (die.array_ns + op.array_ns, die.commands + 1);
    }

    /// A die has taken a command, or several of one kind to be done together, for so many planes.
    #[inline]
    pub(super) fn taken(&mut self, kind: FlashOpKind, planes: u32) {
        let planes = u64::from(planes);
        match kind {
            FlashOpKind::Read => self.pages_sensed += planes,
            FlashOpKind::Program => self.pages_programmed += planes,
            FlashOpKind::Erase => self.blocks_erased += planes,
        }
    }

    /// A command has ended.
    #[inline]
    pub(super) fn ended(&mut self, op: &FlashOp, now_ns: u64) {
        let class = &mut self.classes[op.class as usize];
        class.commands += 1;
        class.waiting_ns += op.started_ns - op.issued_ns;
        class.service_ns += now_ns - op.started_ns;
        if op.failed {
            match op.kind {
                FlashOpKind::Read => self.uncorrectable_reads += 1,
                FlashOpKind::Program => self.failed_programs += 1,
                FlashOpKind::Erase => self.failed_erases += 1,
            }
        }
    }
}

crate::state::state! { ChannelStatistics { saved { busy_ns, bytes } } }

crate::state::state! { DieStatistics { saved { array_ns, commands } } }

crate::state::state! { ClassStatistics { saved { commands, waiting_ns, service_ns } } }

crate::state::state! {
    Statistics {
        saved {
            channels, dies, planes_ns, classes, pages_sensed, pages_programmed, blocks_erased, joined_commands,
            interleaved_commands, program_suspensions, erase_suspensions, read_retries, uncorrectable_reads,
            failed_programs, failed_erases,
        }
        built { energy }
    }
}
