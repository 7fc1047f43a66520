//! Which submission queue each flow has, and of which class that queue is.
//!
//! Flow n has queue n, counted round the queues of the drive. Under weighted round robin, where the drive's
//! configuration does not list the classes of its queues, each queue has the class of its flow, as a host tells it when
//! it creates the queue. Where there are more flows than queues, only flows of one class share a queue: the queues are
//! dealt out to the classes in turn, and the flows of a class to its queues in turn.
//!
//! Source: NVM Express base specification 1.4, section 5.4, "Create I/O Submission Queue command", field QPRIO.

use flashwise_trace::workload::{Flow, Priority};

use super::SimulationError;
use flashwise_ssd::config::{Arbitration, HostConfig, QueuePriority};

/// The class of a queue whose commands are those of a flow.
fn class_of(priority: Priority) -> QueuePriority {
    match priority {
        Priority::Urgent => QueuePriority::Urgent,
        Priority::High => QueuePriority::High,
        Priority::Medium => QueuePriority::Medium,
        Priority::Low => QueuePriority::Low,
    }
}

/// The queue of each flow, and the class of each queue where the flows decide about it.
type Assignment = (Vec<u16>, Vec<(u16, QueuePriority)>);

/// Gives each flow its queue.
pub(super) fn assign(flows: &[Flow], host: &HostConfig) -> Result<Assignment, SimulationError> {
    let queues = host.submission_queues.max(1) as usize;
    let decide = host.arbitration == Arbitration::WeightedRoundRobin && host.queue_priorities.is_empty();
    let in_order: Vec<u16> = (0..flows.len()).map(|n| (n % queues) as u16).collect();
    if !decide {
        return Ok((in_order, Vec::new()));
    }
    let classes: Vec<QueuePriority> = flows.iter().map(|flow| class_of(flow.priority)).collect();
    if flows.len() <= queues {
        let of_queues = in_order.iter().copied().zip(classes).collect();
        return Ok((in_order, of_queues));
    }
    let mut kinds: Vec<QueuePriority> = Vec::new();
    classes.iter().for_each(|class| {
        if !kinds.contains(class) {
            kinds.push(*class)
        }
    });
    if kinds.len() > queues {
        return Err(SimulationError::Queues { classes: kinds.len(), queues });
    }
    let of_queues: Vec<_> = (0..queues).map(|queue| (queue as u16, kinds[queue % kinds.len()])).collect();
    let mut dealt = vec![0; kinds.len()];
    let mut queue_of = |class: &QueuePriority| {
        let kind = kinds.iter().position(|kind| kind == class).unwrap_or(0);
        let own = (queues - kind).div_ceil(kinds.len());
        dealt[kind] += 1;
        (kind + (dealt[kind] - 1) % own * kinds.len()) as u16
    };
    let of_flows = classes.iter().map(&mut queue_of).collect();
    Ok((of_flows, of_queues))
}

#[cfg(test)]
mod tests {
    use super::*;
    use QueuePriority::{High, Low, Medium, Urgent};

    fn flows(priorities: &[Priority]) -> Vec<Flow> {
        priorities.iter().map(|&priority| Flow { priority, ..Flow::default() }).collect()
    }

    fn host(submission_queues: u32) -> HostConfig {
        let host = flashwise_ssd::DeviceConfig::preset("samsung-960-evo").unwrap().host;
        HostConfig { submission_queues, arbitration: Arbitration::WeightedRoundRobin, ..host }
    }

    #[test]
    fn each_flow_has_a_queue_of_its_class() {
        let flows = flows(&[Priority::Low, Priority::Urgent, Priority::High, Priority::Medium]);
        let (queues, classes) = assign(&flows, &host(4)).unwrap();
        assert_eq!(queues, [0, 1, 2, 3]);
        assert_eq!(classes, [(0, Low), (1, Urgent), (2, High), (3, Medium)]);
    }

    #[test]
    fn flows_of_one_class_share_a_queue_where_there_are_too_few() {
        let flows = flows(&[Priority::Low, Priority::Low, Priority::High, Priority::Low, Priority::High]);
        let (queues, classes) = assign(&flows, &host(3)).unwrap();
        assert_eq!(classes, [(0, Low), (1, High), (2, Low)]);
        assert_eq!(queues, [0, 2, 1, 0, 1]);
        let refusal = assign(&flows, &host(1)).unwrap_err().to_string();
        assert_eq!(
            refusal,
            "host.submission_queues = 1: the workload's flows have 2 priorities, and each needs a queue of its own"
        );
    }

    #[test]
    fn without_weights_or_with_listed_classes_the_device_decides() {
        let flows = flows(&[Priority::Low, Priority::High, Priority::High]);
        let round_robin = HostConfig { arbitration: Arbitration::RoundRobin, ..host(2) };
        assert_eq!(assign(&flows, &round_robin).unwrap(), (vec![0, 1, 0], vec![]));
        let listed = HostConfig { queue_priorities: vec![Medium], ..host(2) };
        assert_eq!(assign(&flows, &listed).unwrap(), (vec![0, 1, 0], vec![]));
    }
}
