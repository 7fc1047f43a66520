//! Through `strace`: without root, at the level of files.
//!
//! TracedCommand are the calls that name bytes of a file, and those that open files, because the position of `read` and
//! `write` is known from there. The kernel stops the program at these calls alone (`--seccomp-bpf`), which is what
//! makes it bearable; a strace that does not know that option is run without it. What is seen and what is not stands
//! with the format that reads it.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use flashwise_block::Operation;

use super::ending::Started;
use super::{CaptureError, TracedCommand};
use crate::{FileRole, TraceError, TraceReader};

/// What is traced: each call that the reader of strace's text takes a request from or counts; `?` before one that some
/// machines do not have.
const CALLS: &str = "trace=openat,?open,?openat2,?creat,dup,?dup2,dup3,lseek,?_llseek,\
                     read,write,readv,writev,pread64,pwrite64,preadv,pwritev,?preadv2,?pwritev2,\
                     fsync,fdatasync,sync,syncfs,fallocate,?copy_file_range,?splice,?vmsplice,?sendfile,?sendfile64,\
                     ?io_submit,?io_uring_enter,?mmap,?mmap2,?msync,?readahead,?sync_file_range,?sync_file_range2";

/// Runs a command and leaves its calls in `output`; gives how the command ended.
///
/// # Errors
/// When strace is not there, may not trace, or cannot start the command.
pub fn capture(traced: &TracedCommand, output: &Path) -> Result<ExitStatus, CaptureError> {
    let command = traced.program()?;
    let quick: &[&str] = if knows_seccomp()? { &["--seccomp-bpf"] } else { &[] };
    let mut strace = Command::new("strace");
    // No string is printed: what is written is nobody's business, and -y gives the names of files.
    strace.args(quick).args(["-f", "-ttt", "-T", "-y", "-s", "0", "-e", CALLS, "-e", "signal=none", "-o"]);
    strace.arg(output).arg("--").args(&traced.command);
    let status = traced.run(strace, Started::Tracer)?;
    let is_empty = std::fs::metadata(output).map_or(true, |file| file.len() == 0);
    if is_empty && !status.success() && !traced.is_interrupted() {
        let said = "permission denied or command not found (see above)".to_owned();
        return Err(CaptureError::Refused { command, said });
    }
    Ok(status)
}

/// Whether strace is there, and whether it can stop a program at the traced calls alone.
fn knows_seccomp() -> Result<bool, CaptureError> {
    let asked = Command::new("strace").arg("--help").stdin(Stdio::null()).stderr(Stdio::null()).output();
    match asked {
        Ok(said) => Ok(String::from_utf8_lossy(&said.stdout).contains("--seccomp-bpf")),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(CaptureError::NoStrace),
        Err(error) => Err(CaptureError::Start { program: "strace".to_owned(), error }),
    }
}

/// The files of a trace that are data: those that the program writes, flushes or gives back, and those that look like a
/// database. Libraries, settings and pipes are not. Numbers are those of the reader's files.
///
/// # Errors
/// At a line that is bad.
pub fn data_files(reader: &mut TraceReader) -> Result<BTreeSet<u32>, TraceError> {
    let mut files = BTreeSet::new();
    while let Some(record) = reader.next_record()? {
        let Some(file) = record.file else { continue };
        if record.operation != Operation::Read || record.role != FileRole::Unknown {
            files.insert(file);
        }
    }
    files.retain(|&file| reader.files().get(file as usize).is_some_and(|name| is_regular(name)));
    Ok(files)
}

/// As far as a name tells.
fn is_regular(name: &str) -> bool {
    const OTHERS: [&str; 4] = ["/dev/", "/proc/", "/sys/", "/run/"];
    let is_pipe = ["pipe:[", "socket:[", "anon_inode:", "TCP:[", "UNIX:["].iter().any(|start| name.starts_with(start));
    !is_pipe && !OTHERS.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReadOptions, TraceFormat};

    #[test]
    fn what_a_program_writes_and_what_looks_like_a_database_is_data() {
        let text = r#"1 1.0 openat(AT_FDCWD, "/lib/x.so", O_RDONLY) = 3</lib/x.so>
1 1.1 read(3</lib/x.so>, ""..., 832) = 832 <0.000010>
1 1.2 pread64(4</d/a.db>, ""..., 4096, 0) = 4096 <0.000010>
1 1.3 pwrite64(5</d/notes>, ""..., 100, 0) = 100 <0.000010>
1 1.4 write(1</dev/pts/0>, ""..., 4) = 4 <0.000010>
1 1.5 write(6<pipe:[77]>, ""..., 4) = 4 <0.000010>
"#;
        let options = ReadOptions::of(TraceFormat::Strace);
        let mut reader = TraceReader::read(text.as_bytes(), "t", &options).unwrap();
        let files = data_files(&mut reader).unwrap();
        let names: Vec<_> = files.iter().map(|&file| reader.files()[file as usize].as_str()).collect();
        assert_eq!(names, ["/d/a.db", "/d/notes"]);
    }
}
