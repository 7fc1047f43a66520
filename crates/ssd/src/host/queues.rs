//! The host's submission queues, and which of them the next command is taken from.
//!
//! ```text
//!   queue 0 ─┐
//!   queue 1 ─┼─▶ ring of each class: the queues that have a command to take ─▶ arbitration ─▶ the drive
//!   queue n ─┘
//! ```
//!
//! Round robin takes `arbitration_burst` commands from one queue, then from the next. Weighted round robin takes from
//! urgent queues for as long as there are any; else it goes in rounds, in each of which the high, the medium and the
//! low class may have as many commands as their weights say; a class without commands leaves its share to the others.
//! Inside a class the queues take turns, a burst each.
//!
//! A queue is in the ring of its class only while it has a command that the drive may take, so that choosing takes the
//! same time however many queues there are.
//!
//! Source: NVM Express base specification 1.4, section 4.13, "Command Arbitration".

use crate::config::{Arbitration, HostConfig, QueuePriority};
use crate::host::Active;
use crate::list::{Fifo, Linked, NONE, Slab};

/// Urgent, high, medium, low.
const CLASSES: usize = 4;
const URGENT: usize = QueuePriority::Urgent as usize;

/// One submission queue.
#[derive(Default)]
struct Queue {
    commands: Fifo,
    /// Commands that the drive has taken and not answered.
    in_drive: u32,
    class: usize,
    in_ring: bool,
    next: u32,
}

impl Linked for Queue {
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

/// All submission queues.
pub(crate) struct SubmissionQueues {
    queues: Slab<Queue>,
    count: u32,
    rings: [Fifo; CLASSES],
    /// What is left of the present burst of each class.
    burst_left: [u32; CLASSES],
    /// What is left to each class in this round.
    credits: [u32; CLASSES],
    burst: u32,
    weights: [u32; CLASSES],
    commands_per_queue: u32,
    waiting: usize,
}

impl SubmissionQueues {
    pub(crate) fn new(config: &HostConfig) -> Self {
        let mut queues = Slab::<Queue>::default();
        for n in 0..config.submission_queues {
            let queue = queues.take();
            let class = match config.arbitration {
                Arbitration::RoundRobin => QueuePriority::Medium,
                Arbitration::WeightedRoundRobin => config.queue_priorities.get(n as usize).copied().unwrap_or_default(),
            };
            queues[queue].class = class as usize;
        }
        let burst = if config.arbitration_burst == 0 { u32::MAX } else { config.arbitration_burst };
        let weights = config.arbitration_weights;
        let weights = [u32::MAX, weights.high, weights.medium, weights.low];
        Self {
            queues,
            count: config.submission_queues,
            rings: [Fifo::default(); CLASSES],
            burst_left: [burst; CLASSES],
            credits: weights,
            burst,
            weights,
            commands_per_queue: config.commands_per_queue.unwrap_or(config.queue_depth),
            waiting: 0,
        }
    }

    /// A queue that holds no command is of a class from now on.
    pub(crate) fn set_class(&mut self, queue: u16, class: QueuePriority) {
        let queue = self.queue_of(queue);
        debug_assert!(!self.queues[queue].in_ring);
        self.queues[queue].class = class as usize;
    }

    /// Commands that wait in all queues.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Drops all commands that wait.
    pub(crate) fn clear(&mut self, active: &mut Slab<Active>) {
        for queue in 0..self.count {
            while let Some(request) = self.queues[queue].commands.pop(active) {
                active[request].request = None;
                active.give_back(request);
            }
            self.queues[queue].in_ring = false;
        }
        self.rings = [Fifo::default(); CLASSES];
        self.waiting = 0;
    }

    fn queue_of(&self, queue: u16) -> u32 {
        if self.count == 1 { 0 } else { u32::from(queue) % self.count }
    }

    /// Whether a command that arrives is the next one, and may continue without waiting in it: where there is but one
    /// queue, and nothing in it.
    #[inline]
    pub(crate) fn pass(&mut self) -> bool {
        if self.count != 1 || self.waiting > 0 {
            return false;
        }
        let queue = &mut self.queues[0];
        let passes = queue.in_drive < self.commands_per_queue;
        queue.in_drive += u32::from(passes);
        passes
    }

    /// A command arrives in a queue.
    pub(crate) fn push(&mut self, active: &mut Slab<Active>, request: u32, queue: u16) {
        let queue = self.queue_of(queue);
        self.queues[queue].commands.push(active, request);
        self.waiting += 1;
        self.join_ring(queue);
    }

    /// The drive has completed a command of a queue.
    #[inline(always)]
    pub(crate) fn answered(&mut self, queue: u16) {
        if self.count == 1 {
            self.queues[0].in_drive -= 1;
        } else {
            self.answered_one_of_many(queue);
        }
    }

    fn answered_one_of_many(&mut self, queue: u16) {
        let queue = self.queue_of(queue);
        self.queues[queue].in_drive -= 1;
        self.join_ring(queue);
    }

    /// Takes the next command.
    pub(crate) fn pop(&mut self, active: &mut Slab<Active>) -> Option<u32> {
        if self.waiting == 0 {
            return None;
        }
        if self.count == 1 {
            return self.pop_only(active);
        }
        let class = self.class_due()?;
        let queue = self.rings[class].peek()?;
        let state = &mut self.queues[queue];
        let request = state.commands.pop(active)?;
        state.in_drive += 1;
        let goes_on = state.commands.peek().is_some() && state.in_drive < self.commands_per_queue;
        self.waiting -= 1;
        self.burst_left[class] -= 1;
        if !goes_on || self.burst_left[class] == 0 {
            self.rings[class].pop(&mut self.queues);
            self.queues[queue].in_ring = false;
            self.burst_left[class] = self.burst;
            self.join_ring(queue);
        }
        Some(request)
    }

    /// Takes the next command of the one queue that there is.
    #[inline]
    fn pop_only(&mut self, active: &mut Slab<Active>) -> Option<u32> {
        let queue = &mut self.queues[0];
        if queue.in_drive >= self.commands_per_queue {
            return None;
        }
        let request = queue.commands.pop(active)?;
        queue.in_drive += 1;
        self.waiting -= 1;
        Some(request)
    }

    /// The class that may have the next command: urgent, else the highest one with a share left in this round.
    fn class_due(&mut self) -> Option<usize> {
        let has_commands = |ring: &Fifo| ring.peek().is_some();
        if has_commands(&self.rings[URGENT]) {
            return Some(URGENT);
        }
        let due = |queues: &Self| (1..CLASSES).find(|&c| has_commands(&queues.rings[c]) && queues.credits[c] > 0);
        let class = due(self).or_else(|| {
            self.credits = self.weights;
            due(self)
        })?;
        self.credits[class] -= 1;
        Some(class)
    }

    /// Lets a queue take its turn; where it is the only one it needs none.
    #[inline]
    fn join_ring(&mut self, queue: u32) {
        if self.count == 1 {
            return;
        }
        let state = &mut self.queues[queue];
        if state.in_ring || state.commands.peek().is_none() || state.in_drive >= self.commands_per_queue {
            return;
        }
        state.in_ring = true;
        state.next = NONE;
        let class = state.class;
        self.rings[class].push(&mut self.queues, queue);
    }
}

crate::state::state! {
    Queue {
        saved { class }
        at_rest { commands, in_drive, in_ring }
        built { next }
    }
}

crate::state::state! {
    SubmissionQueues {
        saved { queues, burst_left, credits }
        at_rest { rings, waiting }
        built { count, burst, weights, commands_per_queue }
    }
    checked check
}

impl SubmissionQueues {
    /// Checks what was restored.
    fn check(&self) -> Result<(), String> {
        let classes = (0..self.queues.slots()).all(|queue| self.queues[queue].class < CLASSES);
        if self.queues.slots() == self.count && self.queues.taken() as u32 == self.count && classes {
            return Ok(());
        }
        Err("other submission queues than the drive has".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceConfig;
    use flashwise_block::Request;

    /// Fills every queue with `each` commands and gives the queues in the order in which commands are taken.
    fn order(change: impl FnOnce(&mut HostConfig), each: u32, taken: usize) -> Vec<u16> {
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap().host;
        change(&mut config);
        let (mut queues, mut active) = (SubmissionQueues::new(&config), Slab::<Active>::default());
        for _ in 0..each {
            for queue in 0..config.submission_queues as u16 {
                let request = active.take();
                active[request].request = Some(Request::flush().on_queue(queue));
                queues.push(&mut active, request, queue);
            }
        }
        let queue_of = |active: &Slab<Active>, request: u32| active[request].request.as_ref().unwrap().queue;
        let popped = std::iter::from_fn(|| queues.pop(&mut active).map(|request| queue_of(&active, request)));
        popped.take(taken).collect()
    }

    #[test]
    fn round_robin_takes_a_burst_from_each_queue_in_turn() {
        let three = |burst| move |c: &mut HostConfig| (c.submission_queues, c.arbitration_burst) = (3, burst);
        assert_eq!(order(three(1), 3, 9), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
        assert_eq!(order(three(2), 3, 9), [0, 0, 1, 1, 2, 2, 0, 1, 2]);
        assert_eq!(order(three(0), 3, 9), [0, 0, 0, 1, 1, 1, 2, 2, 2]);
    }

    #[test]
    fn a_command_passes_the_only_queue_while_that_is_empty_and_the_drive_may_take_more_of_it() {
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap().host;
        (config.submission_queues, config.commands_per_queue) = (1, Some(2));
        let (mut queues, mut active) = (SubmissionQueues::new(&config), Slab::<Active>::default());
        assert_eq!([queues.pass(), queues.pass(), queues.pass()], [true, true, false]);
        let waiting = active.take();
        queues.push(&mut active, waiting, 0);
        queues.answered(0);
        assert!(!queues.pass(), "what waits goes first");
        assert_eq!(queues.pop(&mut active), Some(waiting));
        queues.answered(0);
        assert!(queues.pass());
        config.submission_queues = 2;
        assert!(!SubmissionQueues::new(&config).pass(), "several queues take turns");
    }

    fn weighted(c: &mut HostConfig) {
        use QueuePriority::{High, Low, Medium, Urgent};
        c.arbitration = Arbitration::WeightedRoundRobin;
        (c.submission_queues, c.queue_priorities) = (4, vec![Low, Medium, High, Urgent]);
        c.arbitration_weights = ArbitrationWeights { high: 3, medium: 2, low: 1 };
    }

    use crate::config::ArbitrationWeights;

    #[test]
    fn weighted_round_robin_serves_urgent_queues_first_and_the_others_by_weight() {
        assert_eq!(order(weighted, 6, 18), [3, 3, 3, 3, 3, 3, 2, 2, 2, 1, 1, 0, 2, 2, 2, 1, 1, 0]);
    }

    #[test]
    fn a_class_without_commands_leaves_its_share_to_the_others() {
        assert_eq!(order(weighted, 6, 24)[18..], [1, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn no_queue_has_more_commands_in_the_drive_than_it_may() {
        let two_each = |c: &mut HostConfig| (c.submission_queues, c.commands_per_queue) = (2, Some(2));
        assert_eq!(order(two_each, 5, 10), [0, 1, 0, 1]);
    }
}
