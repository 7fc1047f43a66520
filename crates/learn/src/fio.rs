//! The probes as fio job files, so that anyone can check with fio what was learned.
//!
//! Each file says in its head what to look for in fio's output. The jobs use the same lengths, places, depths and
//! states of the drive; what stays behind are random order over points (fio runs jobs in the order of the file),
//! resampling, and the probes that choose the next request by the answer to the last one (caches, parallel units).
//!
//! Source of the options: fio's HOWTO, as of fio 3.33.

use std::fmt::Write;

use flashwise_block::ByteSize;

/// One job file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFile {
    /// Its name, ending in `.fio`.
    pub name: &'static str,
    /// Its text.
    pub text: String,
}

/// All job files for a region of a file or drive; `filename` goes into them as it is.
pub fn job_files(filename: &str, region: ByteSize, seed: u64) -> Vec<JobFile> {
    let files: [(&'static str, Fill); 8] = [
        ("1-durable-writes.fio", durable_writes),
        ("2-locations.fio", locations),
        ("3-pages.fio", pages),
        ("4-throughput.fio", throughput),
        ("5-write-burst.fio", write_burst),
        ("6-durability.fio", durability),
        ("7-content.fio", content),
        ("8-collection.fio", collection),
    ];
    // What has a line of its own in it would be a line of the file.
    let filename = &*flashwise_block::shown::line(filename);
    let write = |(name, fill): (&'static str, Fill)| {
        let mut jobs = Jobs { filename, region, seed, text: String::new() };
        fill(&mut jobs);
        JobFile { name, text: jobs.text }
    };
    files.into_iter().map(write).collect()
}

/// Writes the jobs of one file.
type Fill = fn(&mut Jobs<'_>);

/// A job file in the making.
struct Jobs<'a> {
    filename: &'a str,
    region: ByteSize,
    seed: u64,
    text: String,
}

impl Jobs<'_> {
    /// What to look for, and what all jobs share.
    fn head(&mut self, what: &str, shared: &str) {
        let Self { filename, region, seed, .. } = self;
        let (region, seed) = (region.bytes(), *seed);
        // Writing to a string does not fail.
        let _ = write!(
            self.text,
            "# flashwise: {what}\n\n[global]\nfilename={filename}\nsize={region}\ndirect=1\nioengine=libaio\n\
             randseed={seed}\nallrandrepeat=1\nnorandommap=1\n{shared}"
        );
    }

    /// One job, after all before it.
    fn job(&mut self, name: &str, options: &str) {
        let _ = write!(self.text, "\n[{name}]\nstonewall\n{options}");
    }

    /// The region written in order, as most probes find it.
    fn fill(&mut self) {
        self.job("fill", "rw=write\nbs=1m\niodepth=8\nend_fsync=1\n");
    }
}

fn durable_writes(jobs: &mut Jobs) {
    jobs.head(
        "plot the median completion latency (clat percentile 50) over bs: it is a staircase, and the first step ends \
         at the write unit",
        "rw=randwrite\nblockalign=1m\nsync=1\niodepth=1\nnumber_ios=60\n",
    );
    for length in [4, 8, 12, 16, 20, 24, 28, 32, 36, 48, 64, 68, 96, 128, 132, 192, 256] {
        jobs.job(&format!("write-{length}k"), &format!("bs={length}k\n"));
    }
}

fn locations(jobs: &mut Jobs) {
    jobs.head(
        "plot the median completion latency over the offset: it repeats with the chunk size and is lowest at hot \
         locations",
        "iodepth=1\n",
    );
    jobs.fill();
    for kib in (0..256).step_by(4) {
        let size = jobs.region.bytes() - (2 << 20);
        let options = format!("rw=randread\nbs=64k\nblockalign=1m\noffset={kib}k\nsize={size}\nnumber_ios=200\n");
        jobs.job(&format!("read-64k-at-{kib}k"), &options);
    }
}

fn pages(jobs: &mut Jobs) {
    jobs.head("reads that cross a page boundary take longer; the boundaries are one page apart", "iodepth=1\n");
    jobs.fill();
    for block in 0..64 {
        let (offset, size) = (block * 512, jobs.region.bytes() - (2 << 20));
        let options = format!("rw=randread\nbs=1k\nblockalign=1m\noffset={offset}\nsize={size}\nnumber_ios=400\n");
        jobs.job(&format!("read-1k-at-{offset}"), &options);
    }
}

fn throughput(jobs: &mut Jobs) {
    jobs.head(
        "k is the iodepth from which on IOPS stop growing (fit two lines on logarithmic axes); alpha is the ratio of \
         the two plateaus",
        "time_based=1\nruntime=5\nramp_time=2\n",
    );
    jobs.fill();
    for (operation, letter) in [("randread", "r"), ("randwrite", "w")] {
        for length in [4, 8] {
            for depth in [1, 2, 4, 8, 16, 32, 64, 128, 256] {
                let options = format!("rw={operation}\nbs={length}k\niodepth={depth}\n");
                jobs.job(&format!("{letter}-{length}k-depth-{depth}"), &options);
            }
        }
    }
}

fn write_burst(jobs: &mut Jobs) {
    jobs.head(
        "sum the bytes of write-burst_bw.log over time: the line through the second half, extended back to the start, \
         meets the y axis at the size of the write buffer",
        "rw=write\nbs=16k\niodepth=16\nlog_avg_msec=1\n",
    );
    for burst in 1..=5 {
        jobs.job(&format!("burst-{burst}"), "startdelay=1\nwrite_bw_log=write-burst\nper_job_logs=1\n");
    }
}

fn durability(jobs: &mut Jobs) {
    jobs.head(
        "the cost of durability is the sync latency of flush-of-one-block, and the latency of durable minus that of \
         plain; both are zero on a drive with power-loss protection",
        "rw=randwrite\nbs=4k\niodepth=1\nthinktime=20ms\nnumber_ios=200\n",
    );
    jobs.job("plain", "");
    jobs.job("durable", "sync=1\n");
    jobs.job("flush-of-one-block", "fsync=1\n");
}

fn content(jobs: &mut Jobs) {
    jobs.head(
        "if IOPS grow with the percentage, the drive compresses or deduplicates",
        "rw=randwrite\nbs=4k\niodepth=32\ntime_based=1\nruntime=10\nramp_time=5\nrefill_buffers=1\n",
    );
    for percent in [0, 25, 50, 75, 100] {
        jobs.job(&format!("zeros-{percent}"), &format!("buffer_compress_percentage={percent}\n"));
    }
    for percent in [0, 25, 50, 75, 100] {
        jobs.job(&format!("repeats-{percent}"), &format!("dedupe_percentage={percent}\n"));
    }
}

fn collection(jobs: &mut Jobs) {
    jobs.head(
        "only on a whole drive whose data you can lose, with size= set to its capacity: garbage collection starts \
         where the IOPS in overwrite_iops.log drop for good; its cost is the ratio of the IOPS before and after",
        "log_avg_msec=1000\n",
    );
    jobs.fill();
    jobs.job("overwrite", "rw=randwrite\nbs=4k\niodepth=64\nloops=4\nwrite_iops_log=overwrite\n");
    let skewed =
        "rw=randwrite\nbs=4k\niodepth=64\nloops=4\nrandom_distribution=zoned:80/20:20/80\nwrite_iops_log=skewed\n";
    jobs.job("skewed", skewed);
    jobs.job("trim-half", "rw=trim\nbs=1m\noffset=50%\nsize=50%\n");
    jobs.job("overwrite-half", "rw=randwrite\nbs=4k\niodepth=64\nsize=50%\nloops=4\nwrite_iops_log=after-trim\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_says_what_to_look_for_and_has_jobs_of_different_names() {
        for file in job_files("/mnt/scratch", ByteSize::mib(256), 7) {
            assert!(file.text.starts_with("# flashwise: "), "{}", file.name);
            assert!(file.text.contains("filename=/mnt/scratch\nsize=268435456\n") && file.text.contains("randseed=7"));
            let mut names: Vec<&str> = file.text.lines().filter(|line| line.starts_with('[')).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert!(all > 3 && names.len() == all, "{}: {names:?}", file.name);
        }
    }

    #[test]
    fn no_job_reaches_behind_the_region() {
        let files = job_files("f", ByteSize::mib(64), 1);
        let locations = files.iter().find(|file| file.name.contains("locations")).unwrap();
        assert!(locations.text.contains("offset=252k\nsize=65011712\n"));
    }
}
