//! Counters in JSON: as nvme-cli prints them (`smart-log`, `ocp smart-add-log` in both versions, `amzn stats`, the
//! plugins of Intel, Solidigm, Micron and Samsung), as smartctl does (`-j`), and as flashwise does.
//!
//! All of them are objects whose keys name the fields, some of them in objects of their own. So a document is searched
//! for names: a field is a counter wherever it is.

use serde_json::Value;

use super::maker::INTEL_UNIT_BYTES;
use super::{AwsLog, AwsVolume, Counters, MakerLog, OcpLog, SmartLog, wide};

/// Names of AWS's fields of instance storage begin so.
const INSTANCE_STORE: &str = "instance_store_";

/// Reads a document.
pub(super) fn parse(bytes: &[u8]) -> Result<Counters, String> {
    let document: Value = serde_json::from_slice(bytes).map_err(|error| format!("this is not valid JSON: {error}"))?;
    let mut found = Fields::default();
    // The parser limits how deep values are nested.
    found.collect(&document, "");
    let counters = found.counters()?;
    if counters.is_empty() {
        return Err(
            "no counter in this JSON; give the output of `nvme smart-log -o json`, `nvme ocp smart-add-log -o \
                    json`, `nvme amzn stats -o json` or `smartctl -j -a`"
                .to_owned(),
        );
    }
    Ok(counters)
}

/// All fields of a document: name of the object around, own name, value.
#[derive(Default)]
struct Fields<'a>(Vec<(String, String, &'a Value)>);

/// A name in lower case, with `_` for all that is neither letter nor digit.
fn plain(name: &str) -> String {
    let mut plain = String::new();
    for letter in name.trim().chars() {
        match letter {
            letter if letter.is_ascii_alphanumeric() => plain.push(letter.to_ascii_lowercase()),
            _ if plain.ends_with('_') => {}
            _ => plain.push('_'),
        }
    }
    plain.trim_matches('_').to_owned()
}

impl<'a> Fields<'a> {
    fn collect(&mut self, value: &'a Value, around: &str) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let name = plain(name);
                    self.collect(value, &name);
                    self.0.push((around.to_owned(), name, value));
                }
            }
            Value::Array(values) => values.iter().for_each(|value| self.collect(value, around)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn value(&self, names: &[&str]) -> Option<&'a Value> {
        names.iter().find_map(|name| self.0.iter().find(|(_, field, _)| field == name)).map(|(_, _, value)| *value)
    }

    /// A counter under the first of these names that exists; what has the name and is no counter is an error.
    fn number(&self, names: &[&str]) -> Result<Option<u128>, String> {
        let Some(value) = self.value(names) else { return Ok(None) };
        let wrong =
            || format!("{}: {} is not a count of at most 128 bits", names[0], crate::shown::line(&value.to_string()));
        wide::parse(value).map(Some).ok_or_else(wrong)
    }

    fn or_zero(&self, names: &[&str]) -> Result<u128, String> {
        Ok(self.number(names)?.unwrap_or(0))
    }

    /// A counter that must fit in a type.
    fn small<T: TryFrom<u128> + Default>(&self, names: &[&str]) -> Result<T, String> {
        let number = self.or_zero(names)?;
        T::try_from(number).map_err(|_| format!("{}: {number} is too large for this field", names[0]))
    }

    fn counters(&self) -> Result<Counters, String> {
        let time = self.value(&["time_s"]).and_then(Value::as_f64);
        Ok(Counters { time_s: time, smart: self.smart()?, ocp: self.ocp()?, maker: self.maker()?, aws: self.aws()? })
    }

    fn smart(&self) -> Result<Option<SmartLog>, String> {
        let Some(data_units_written) = self.number(&["data_units_written"])? else { return Ok(None) };
        Ok(Some(SmartLog {
            critical_warning: match self.value(&["critical_warning"]) {
                // nvme-cli's option for more detail makes it an object with one field for each bit.
                Some(Value::Object(_)) => self.small(&["value"])?,
                _ => self.small(&["critical_warning"])?,
            },
            temperature: self.small(&["temperature"])?,
            avail_spare: self.small(&["avail_spare", "available_spare"])?,
            spare_thresh: self.small(&["spare_thresh", "available_spare_threshold"])?,
            percent_used: self.small(&["percent_used", "percentage_used"])?,
            data_units_read: self.or_zero(&["data_units_read"])?,
            data_units_written,
            host_read_commands: self.or_zero(&["host_read_commands", "host_reads"])?,
            host_write_commands: self.or_zero(&["host_write_commands", "host_writes"])?,
            controller_busy_time: self.or_zero(&["controller_busy_time"])?,
            power_cycles: self.or_zero(&["power_cycles"])?,
            power_on_hours: self.or_zero(&["power_on_hours"])?,
            unsafe_shutdowns: self.or_zero(&["unsafe_shutdowns"])?,
            media_errors: self.or_zero(&["media_errors"])?,
            num_err_log_entries: self.or_zero(&["num_err_log_entries"])?,
        }))
    }

    fn ocp(&self) -> Result<Option<OcpLog>, String> {
        // Drives after Microsoft's first specification count cells with one bit on their own.
        let multi = self.number(&["physical_media_units_written", "physical_media_units_written_tlc"])?;
        let Some(multi) = multi else { return Ok(None) };
        let single = self.or_zero(&["physical_media_units_written_slc"])?;
        Ok(Some(OcpLog {
            physical_media_units_written: multi.saturating_add(single),
            physical_media_units_read: self.or_zero(&["physical_media_units_read"])?,
            bad_user_nand_blocks_raw: self.small(&["bad_user_nand_blocks_raw"])?,
            max_user_data_erase_counts: self.small(&["max_user_data_erase_counts"])?,
            min_user_data_erase_counts: self.small(&["min_user_data_erase_counts"])?,
            percent_free_blocks: self.small(&["percent_free_blocks"])?,
        }))
    }

    fn maker(&self) -> Result<Option<MakerLog>, String> {
        if let Some(unit_bytes) = self.number(&["unit_bytes"])? {
            let unit_bytes = u64::try_from(unit_bytes).map_err(|_| "unit_bytes: too large".to_owned())?;
            let known = |name: &str| {
                self.number(&[name]).or_else(|why| match self.value(&[name]) {
                    Some(Value::Null) => Ok(None),
                    _ => Err(why),
                })
            };
            let (media, host) = (known("media_units_written")?, known("host_units_written")?);
            return Ok(Some(MakerLog { unit_bytes, media_units_written: media, host_units_written: host }));
        }
        // Intel and Solidigm: an object with the raw value, below "Device stats".
        let raw = |name: &str| {
            let item = self.0.iter().find(|(around, field, _)| around == "device_stats" && field == name);
            item.and_then(|(_, _, item)| item.get("raw")).and_then(wide::parse)
        };
        let (media, host) = (raw("nand_bytes_written"), raw("host_bytes_written"));
        if media.is_some() || host.is_some() {
            let unit_bytes = INTEL_UNIT_BYTES;
            return Ok(Some(MakerLog { unit_bytes, media_units_written: media, host_units_written: host }));
        }
        let bytes =
            self.number(&["nand_writes_bytes_written", "physicallywrittenbytes", "physically_written_bytes"])?;
        Ok(bytes.map(|bytes| MakerLog { unit_bytes: 1, media_units_written: Some(bytes), host_units_written: None }))
    }

    fn aws(&self) -> Result<Option<AwsLog>, String> {
        let ours = self.value(&["volume"]).and_then(Value::as_str);
        let is_store =
            ours == Some("instance_store") || self.0.iter().any(|(_, name, _)| name.starts_with(INSTANCE_STORE));
        let is_ebs = ours == Some("ebs") || self.value(&["ebs_volume_performance_exceeded_iops"]).is_some();
        if !is_store && !is_ebs {
            return Ok(None);
        }
        // Of instance storage, what exceeded is the local volume's.
        let exceeded = |of: &str, what: &str| -> Result<u64, String> {
            let names = match of {
                "volume" => [
                    format!("volume_performance_exceeded_{what}"),
                    format!("ebs_volume_performance_exceeded_{what}"),
                    format!("instance_store_volume_performance_exceeded_{what}"),
                    format!("instance_store_performance_exceeded_{what}"),
                ],
                _ => [
                    format!("instance_performance_exceeded_{what}"),
                    format!("ec2_instance_ebs_performance_exceeded_{what}"),
                    format!("ec2_instance_performance_exceeded_{what}"),
                    format!("ebs_ec2_instance_performance_exceeded_{what}"),
                ],
            };
            self.small(&names.each_ref().map(String::as_str))
        };
        let empty = AwsLog::empty(if is_store { AwsVolume::InstanceStore } else { AwsVolume::Ebs });
        Ok(Some(AwsLog {
            total_read_ops: self.small(&["total_read_ops"])?,
            total_write_ops: self.small(&["total_write_ops"])?,
            total_read_bytes: self.small(&["total_read_bytes"])?,
            total_write_bytes: self.small(&["total_write_bytes"])?,
            total_read_time: self.small(&["total_read_time"])?,
            total_write_time: self.small(&["total_write_time"])?,
            volume_performance_exceeded_iops: exceeded("volume", "iops")?,
            volume_performance_exceeded_tp: exceeded("volume", "tp")?,
            instance_performance_exceeded_iops: exceeded("instance", "iops")?,
            instance_performance_exceeded_tp: exceeded("instance", "tp")?,
            volume_queue_length: self.small(&["volume_queue_length"])?,
            ..empty
        }))
    }
}
