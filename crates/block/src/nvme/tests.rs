use proptest::prelude::*;

use super::*;

/// What `nvme smart-log -o json` prints; counters of a drive with a third of its life behind it.
const SMART_JSON: &str = r#"{"critical_warning":0,"temperature":312,"avail_spare":100,"spare_thresh":5,
    "percent_used":34,"endurance_grp_critical_warning_summary":0,"data_units_read":1234567890,
    "data_units_written":4000000000,"host_read_commands":55000000000,"host_write_commands":44000000000,
    "controller_busy_time":123456,"power_cycles":42,"power_on_hours":17520,"unsafe_shutdowns":7,"media_errors":0,
    "num_err_log_entries":3,"warning_temp_time":0,"critical_comp_time":0,"temperature_sensor_1":320}"#;

/// What `nvme ocp smart-add-log -o json` prints.
const OCP_JSON: &str = r#"{"Physical media units written":{"hi":1,"lo":5},"Physical media units read":{"hi":0,"lo":77},
    "Bad user nand blocks - Raw":2,"Bad user nand blocks - Normalized":100,"XOR recovery count":0,
    "Max User data erase counts":910,"Min User data erase counts":870,"Percent free blocks":6,
    "Log page version":3,"Log page GUID":"0xafd514c97c6f4f9ca4f2bfea2810afc5"}"#;

fn smart() -> SmartLog {
    SmartLog {
        temperature: 312,
        avail_spare: 100,
        spare_thresh: 5,
        percent_used: 34,
        data_units_read: 1_234_567_890,
        data_units_written: 4_000_000_000,
        host_read_commands: 55_000_000_000,
        host_write_commands: 44_000_000_000,
        controller_busy_time: 123_456,
        power_cycles: 42,
        power_on_hours: 17_520,
        unsafe_shutdowns: 7,
        num_err_log_entries: 3,
        ..SmartLog::default()
    }
}

/// An EBS page: all words numbered, and a histogram of two bins for reads.
fn ebs_page() -> Vec<u8> {
    let mut page = vec![0; aws::BYTES];
    page[..4].copy_from_slice(&0x3c23_b510_u32.to_le_bytes());
    for (n, place) in page[8..96].chunks_exact_mut(8).enumerate() {
        place.copy_from_slice(&(100 + n as u64).to_le_bytes());
    }
    let mut put = |at: usize, word: u64| page[at..at + 8].copy_from_slice(&word.to_le_bytes());
    for (n, word) in [2, 0, 128, 7, 128, 256, 9].into_iter().enumerate() {
        put(512 + 8 * n, word);
    }
    page
}

#[test]
fn the_json_of_nvme_cli_and_the_page_itself_give_the_same_counters() {
    let counters = Counters::parse(SMART_JSON.as_bytes()).unwrap();
    assert_eq!(counters.smart, Some(smart()));
    assert_eq!(Counters::parse(&smart().to_bytes()).unwrap(), counters);
    assert_eq!(counters.host_written(), Some(ByteCounter { units: 4_000_000_000, unit_bytes: 512_000 }));
    let ocp = Counters::parse(OCP_JSON.as_bytes()).unwrap().ocp.unwrap();
    assert_eq!(ocp.physical_media_units_written, (1 << 64) + 5);
    assert_eq!((ocp.bad_user_nand_blocks_raw, ocp.max_user_data_erase_counts, ocp.percent_free_blocks), (2, 910, 6));
    assert_eq!(Counters::parse(&ocp.to_bytes()).unwrap().ocp, Some(ocp));
}

#[test]
fn names_of_smartctl_and_of_the_second_version_of_ocp_s_output_are_known() {
    let smartctl = r#"{"nvme_smart_health_information_log":{"critical_warning":0,"percentage_used":3,
        "data_units_written":87654321,"host_writes":5,"available_spare":99,"power_on_hours":5000}}"#;
    let log = Counters::parse(smartctl.as_bytes()).unwrap().smart.unwrap();
    assert_eq!((log.percent_used, log.avail_spare, log.host_write_commands), (3, 99, 5));
    let second = r#"{"physical_media_units_written":{"hi":0,"lo":12},"percent_free_blocks":8}"#;
    assert_eq!(Counters::parse(second.as_bytes()).unwrap().media_written().unwrap().units, 12);
    let verbose = r#"{"critical_warning":{"value":4,"available_spare":0},"avail_spare":100,"data_units_written":1.0}"#;
    let log = Counters::parse(verbose.as_bytes()).unwrap().smart.unwrap();
    assert_eq!((log.critical_warning, log.avail_spare, log.data_units_written), (4, 100, 1));
}

#[test]
fn write_counters_of_makers_are_read_with_their_units() {
    let solidigm = r#"{"Solidigm SMART log":"nvme0","Device stats":{"nand_bytes_written":{"normalized":100,"raw":300},
        "host_bytes_written":{"normalized":100,"raw":100}}}"#;
    let counters = Counters::parse(solidigm.as_bytes()).unwrap();
    assert_eq!(counters.media_written().unwrap().bytes(), 300.0 * 33_554_432.0);
    assert_eq!(counters.host_written().unwrap().bytes(), 100.0 * 33_554_432.0);
    let mut page = vec![0; 512];
    for (n, (id, raw)) in [(0xab_u8, 1_u64), (0xf4, 300), (0xf5, 100)].into_iter().enumerate() {
        page[12 * n] = id;
        page[12 * n + 5..12 * n + 11].copy_from_slice(&raw.to_le_bytes()[..6]);
    }
    assert_eq!(Counters::parse(&page).unwrap(), counters);
    let micron = r#"{"Extended Smart Log Page : 0xD0":[{"NAND Writes (Bytes Written)":"0x1000"}]}"#;
    assert_eq!(Counters::parse(micron.as_bytes()).unwrap().media_written().unwrap().bytes(), 4096.0);
    let samsung = r#"{"PhysicallyWrittenBytes":"35,357,144,006,656"}"#;
    assert_eq!(Counters::parse(samsung.as_bytes()).unwrap().media_written().unwrap().units, 35_357_144_006_656);
    let mut page = vec![0; 512];
    page[176..184].copy_from_slice(&4096_u64.to_le_bytes());
    assert_eq!(MakerLog::parse_of(0x1344, &page).unwrap().media_units_written, Some(4096));
    assert_eq!(
        (MakerLog::page_of(0x1344), MakerLog::page_of(0x8086), MakerLog::page_of(0x1af4)),
        (Some(0xd0), Some(0xca), None)
    );
}

#[test]
fn a_page_of_aws_has_its_times_over_limits_and_its_histograms() {
    let log = Counters::parse(&ebs_page()).unwrap().aws.unwrap();
    assert_eq!((log.volume, log.total_read_ops, log.total_write_bytes), (AwsVolume::Ebs, 100, 103));
    assert_eq!((log.volume_exceeded_us(), log.instance_exceeded_us()), (106 + 107, 108 + 109));
    let bins = [LatencyBin { lower: 0, upper: 128, count: 7 }, LatencyBin { lower: 128, upper: 256, count: 9 }];
    assert_eq!((log.read_latency_us, log.write_latency_us), (bins.to_vec(), vec![]));
    let mut store = ebs_page();
    store[..4].copy_from_slice(&0xec2c_0d7e_u32.to_le_bytes());
    // Two sizes of requests, one bin.
    store[96..104].copy_from_slice(&[2, 0, 0, 0, 1, 0, 0, 0]);
    store[648..656].copy_from_slice(&3_u64.to_le_bytes());
    store[648 + 512..656 + 512].copy_from_slice(&4_u64.to_le_bytes());
    let log = Counters::parse(&store).unwrap().aws.unwrap();
    assert_eq!(
        (log.volume, log.volume_exceeded_us(), log.instance_exceeded_us()),
        (AwsVolume::InstanceStore, 108 + 109, 0)
    );
    assert_eq!(log.read_latency_us[0].count, 7);
    let json = r#"{"total_read_ops":100,"total_write_ops":5,"ebs_volume_performance_exceeded_iops":1000000,
        "ebs_volume_performance_exceeded_tp":0,"ec2_instance_ebs_performance_exceeded_iops":7,
        "ec2_instance_ebs_performance_exceeded_tp":200000,"volume_queue_length":1}"#;
    let log = Counters::parse(json.as_bytes()).unwrap().aws.unwrap();
    assert_eq!((log.volume_exceeded_us(), log.instance_exceeded_us()), (1_000_000, 200_007));
}

#[test]
fn a_histogram_that_claims_more_bins_than_it_has_places_is_left_out() {
    let mut page = ebs_page();
    page[512..520].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_eq!(Counters::parse(&page).unwrap().aws.unwrap().read_latency_us, []);
}

#[test]
fn what_is_no_log_is_refused_with_what_to_give_instead() {
    let wrong = |bytes: &[u8]| Counters::parse(bytes).unwrap_err();
    assert_eq!(wrong(b" \n"), "the file is empty");
    assert!(wrong(b"{}").contains("no counter in this JSON; give the output of `nvme smart-log -o json`"));
    assert!(wrong(b"{\"a\":").starts_with("this is not valid JSON"));
    assert!(wrong(&[7; 512]).contains("no log page known here"));
    assert!(wrong(&smart().to_bytes()[..511]).contains("511 bytes that are no log page"));
    assert!(wrong(&vec![b' '; 2 << 20]).contains("no log page of a drive is that long"));
    let worn = wrong(br#"{"data_units_written":5,"percent_used":300}"#);
    assert_eq!(worn, "percent_used: 300 is too large for this field");
    assert!(wrong(br#"{"data_units_written":-5}"#).contains("-5 is not a count"));
    assert!(wrong(br#"{"data_units_written":1e30}"#).contains("is not a count of at most 128 bits"));
    // Deeper than any output of a program.
    assert!(wrong("[".repeat(100_000).as_bytes()).contains("recursion limit"));
}

#[test]
fn a_file_is_read_by_its_content_and_a_pipe_is_not_waited_for() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("smart.bin");
    std::fs::write(&file, smart().to_bytes()).unwrap();
    assert_eq!(Counters::read(&file).unwrap().smart, Some(smart()));
    let error = Counters::read(&place.path().join("none")).unwrap_err().to_string();
    assert!(error.contains("No such file"), "{error}");
    assert!(Counters::read(place.path()).unwrap_err().to_string().contains("a directory"));
}

fn any_smart() -> impl Strategy<Value = SmartLog> {
    let small = (0_u8..0x40, any::<u16>(), 0_u8..=100, 0_u8..=100, any::<u8>());
    (small, any::<[u128; 10]>()).prop_map(|((warning, temperature, spare, threshold, used), wide)| {
        let [read, written, reads, writes, busy, cycles, hours, unsafe_shutdowns, errors, entries] = wide;
        SmartLog {
            critical_warning: warning,
            temperature,
            avail_spare: spare,
            spare_thresh: threshold,
            percent_used: used,
            data_units_read: read,
            data_units_written: written,
            host_read_commands: reads,
            host_write_commands: writes,
            controller_busy_time: busy,
            power_cycles: cycles,
            power_on_hours: hours,
            unsafe_shutdowns,
            media_errors: errors,
            num_err_log_entries: entries,
        }
    })
}

proptest! {
    #[test]
    fn counters_of_128_bits_survive_pages_and_json(
        smart in any_smart(),
        written in any::<u128>(),
        read in any::<u128>(),
        small in any::<[u32; 2]>(),
        free in any::<u8>(),
        media in proptest::option::of(any::<u128>()),
        time in proptest::option::of(0_u32..),
    ) {
        let ocp = OcpLog {
            physical_media_units_written: written,
            physical_media_units_read: read,
            bad_user_nand_blocks_raw: u64::from(small[0]),
            max_user_data_erase_counts: u64::from(small[0]),
            min_user_data_erase_counts: u64::from(small[1]),
            percent_free_blocks: free,
        };
        prop_assert_eq!(Counters::parse(&smart.to_bytes()).unwrap().smart, Some(smart.clone()));
        prop_assert_eq!(Counters::parse(&ocp.to_bytes()).unwrap().ocp, Some(ocp.clone()));
        let maker = MakerLog { unit_bytes: 1 << 25, media_units_written: media, host_units_written: None };
        let counters =
            Counters { time_s: time.map(f64::from), smart: Some(smart), ocp: Some(ocp), maker: Some(maker), aws: None };
        let json = serde_json::to_vec(&counters).unwrap();
        prop_assert_eq!(Counters::parse(&json).unwrap(), counters);
    }

    #[test]
    fn any_bytes_are_counters_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..5000)) {
        let _ = Counters::parse(&bytes);
    }

    #[test]
    fn damage_to_a_page_is_read_or_refused(
        which in 0..3_usize,
        cut in 0..4097_usize,
        at in 0..4096_usize,
        with in any::<u8>(),
    ) {
        let mut page = [ebs_page(), smart().to_bytes(), OcpLog::default().to_bytes()][which].clone();
        let length = page.len();
        page[at % length] = with;
        page.truncate(cut);
        let _ = Counters::parse(&page);
    }

    #[test]
    fn damage_to_json_is_read_or_refused(at in 0..400_usize, with in any::<u8>(), cut in 0..800_usize) {
        for text in [SMART_JSON, OCP_JSON] {
            let mut bytes = text.as_bytes().to_vec();
            let length = bytes.len();
            bytes[at % length] = with;
            bytes.truncate(cut);
            let _ = Counters::parse(&bytes);
        }
    }
}
