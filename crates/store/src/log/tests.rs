//! What the log counts, without a store around it.

use super::*;
use crate::crash::empty_log;

#[test]
fn bytes_that_are_being_written_take_space_until_the_next_block_is_behind_them() {
    let log = empty_log();
    log.append(1, &vec![7; 10 * PAYLOAD]).unwrap();
    let waiting = log.used_blocks();
    let taken = log.take();
    assert_eq!(log.used_blocks(), waiting, "another thread appends meanwhile");
    log.append(2, &vec![7; 5 * PAYLOAD]).unwrap();
    assert_eq!(log.used_blocks(), waiting + 5);
    let (_, unfinished) = log.blocks(&taken);
    log.written(&taken, unfinished);
    assert!(log.used_blocks() >= waiting + 5);
    let behind = log.take();
    let (_, unfinished) = log.blocks(&behind);
    log.written(&behind, unfinished);
    assert!(log.used_blocks() <= waiting + 7);
}

#[test]
fn what_a_restart_needs_is_not_overwritten() {
    let log = empty_log();
    let group = vec![7; log.group_max() as usize - GROUP_HEADER];
    (1..=5).for_each(|seq| log.append(seq, &group).unwrap());
    let error = log.write().unwrap_err();
    assert!(error.to_string().contains("the log has no space"), "{error}");
    log.forget_after(0);
    log.append(1, b"records").unwrap();
    log.write().unwrap();
}
