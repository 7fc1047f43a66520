//! The bytes of a log page of which only the content says which it is, as in a file.

use super::{AwsLog, Counters, MakerLog, OcpLog, SmartLog, smart};

/// Reads a page: by its GUID, its magic, its first item, and last as SMART, of which only reserved bytes are typical.
pub(super) fn parse(page: &[u8]) -> Result<Counters, String> {
    let mut counters = Counters::default();
    if let Some(log) = OcpLog::parse(page) {
        counters.ocp = Some(log);
    } else if let Some(log) = AwsLog::parse(page) {
        counters.aws = Some(log);
    } else if let Some(log) = MakerLog::parse_intel(page) {
        counters.maker = Some(log);
    } else if page.len() == smart::BYTES {
        counters.smart = SmartLog::parse(page);
    }
    if counters.is_empty() {
        let length = page.len();
        return Err(format!(
            "{length} bytes that are no log page known here; give the output of `nvme smart-log -o binary`, of `nvme \
             get-log --raw-binary` for pages 02h (512 bytes), C0h, CAh (Intel, Solidigm) or D0h (AWS), or of `nvme … -o \
             json`"
        ));
    }
    Ok(counters)
}
