//! A PostgreSQL server of a test's own: a cluster where the test wants it, reached over a socket in a directory.

use std::fs::{File, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::mounted::MOMENT;
use crate::support::Place;

/// A server's programs, and the user who runs them.
#[derive(Clone, Debug)]
pub struct Programs {
    pub bin: PathBuf,
    pub user: u32,
    pub group: u32,
}

impl Programs {
    /// The newest that are installed; says so where there are none.
    pub fn find() -> Option<Self> {
        let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let numbers = versions.filter_map(|version| version.file_name().to_str()?.parse::<u32>().ok());
        let folder = |number: u32| PathBuf::from(format!("/usr/lib/postgresql/{number}/bin"));
        let newest = numbers.filter(|&number| folder(number).join("initdb").exists()).max();
        let (Some(bin), Some((user, group))) = (newest.map(folder), server_user()) else {
            eprintln!("PostgreSQL is not installed: not tested");
            return None;
        };
        Some(Self { bin, user, group })
    }

    /// A program, run by the server's user in a process group of its own.
    pub fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.bin.join(name));
        command.uid(self.user).gid(self.group).current_dir("/").env("LC_ALL", "C").process_group(0);
        command.env_remove("PGPORT").env_remove("PGOPTIONS");
        command
    }

    /// A directory that is the user's.
    pub fn own_directory(&self, path: &Path) {
        std::fs::create_dir(path).unwrap();
        std::fs::set_permissions(path, Permissions::from_mode(0o700)).unwrap();
        chown(path, Some(self.user), Some(self.group)).unwrap();
    }
}

/// The user and the group of a server: a server does not run as root.
fn server_user() -> Option<(u32, u32)> {
    let own = rustix::process::geteuid();
    if !own.is_root() {
        return Some((own.as_raw(), rustix::process::getegid().as_raw()));
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let user = users.lines().find_map(|line| line.strip_prefix("postgres:"))?;
    let mut fields = user.split(':').skip(1).map(|field| field.parse().unwrap());
    Some((fields.next().unwrap(), fields.next().unwrap()))
}

/// A cluster, and the server that runs on it.
pub struct Server {
    pub programs: Programs,
    pub data: PathBuf,
    sockets: PathBuf,
    log: PathBuf,
    settings: Vec<String>,
    process: Option<Child>,
}

impl Server {
    /// Makes a cluster with data checksums in a new directory; `settings` are those of every start. What is not data is
    /// in a directory beside the drive of the place, called `name`.
    pub fn create(place: &Place, name: &str, programs: Programs, data: PathBuf, settings: &[&str]) -> Self {
        let server = Self::without_data(place, name, programs, data, settings);
        server.programs.own_directory(&server.data);
        let mut initdb = server.programs.command("initdb");
        initdb
            .args("-A trust -U postgres -E UTF8 --locale=C -k --wal-segsize=1 --no-sync -D".split(' '))
            .arg(&server.data);
        expect_success(&initdb.output().unwrap());
        server
    }

    /// The same for a data directory that comes from elsewhere.
    pub fn without_data(place: &Place, name: &str, programs: Programs, data: PathBuf, settings: &[&str]) -> Self {
        let_user_through(place);
        let sockets = place.path(&format!("{name}.sockets"));
        programs.own_directory(&sockets);
        let log = place.path(&format!("{name}.log"));
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        Self { programs, data, sockets, log, settings, process: None }
    }

    /// Starts the server, which recovers if it has to, and waits until it can be reached.
    pub fn start(&mut self) {
        let log = File::create(&self.log).unwrap();
        let mut postgres = self.programs.command("postgres");
        postgres.arg("-D").arg(&self.data).arg("-k").arg(&self.sockets).stderr(log);
        postgres.args(["-c", "listen_addresses="]);
        postgres.args(self.settings.iter().flat_map(|setting| ["-c", setting]));
        self.process = Some(postgres.spawn().unwrap());
        self.wait_until_reached();
    }

    pub fn wait_until_reached(&mut self) {
        let end = Instant::now() + MOMENT;
        while self.connect().is_none() {
            let ended = self.process.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < end, "it does not start: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// What it has logged since its start.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    pub fn address(&self) -> postgres::Config {
        let mut address = postgres::Config::new();
        address.host_path(&self.sockets).user("postgres").dbname("postgres");
        address
    }

    pub fn connect(&self) -> Option<Client> {
        self.address().connect(NoTls).ok()
    }

    /// A client program, with the server's address.
    pub fn client(&self, name: &str) -> Command {
        let mut command = self.programs.command(name);
        command.arg("-h").arg(&self.sockets).args(["-U", "postgres"]).env("PGDATABASE", "postgres");
        command
    }

    /// Where its socket is.
    pub fn sockets(&self) -> &PathBuf {
        &self.sockets
    }

    /// Ends the server without a checkpoint, as if it had crashed.
    pub fn crash(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        let _ = kill_process(Pid::from_child(&process), Signal::QUIT);
        let end = Instant::now() + MOMENT;
        while process.try_wait().unwrap().is_none() {
            if Instant::now() > end {
                let _ = kill_process_group(Pid::from_child(&process), Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn stop(&mut self) {
        let mut process = self.process.take().unwrap();
        kill_process(Pid::from_child(&process), Signal::INT).unwrap();
        assert!(process.wait().unwrap().success(), "{}", self.log());
    }

    /// Compares the checksums of all pages of a server that does not run.
    pub fn check_checksums(&self) {
        assert!(self.process.is_none());
        expect_success(&self.programs.command("pg_checksums").arg("--check").arg(&self.data).output().unwrap());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.crash();
    }
}

/// Lets the server's user come through a place, and see nothing else there.
pub fn let_user_through(place: &Place) {
    std::fs::set_permissions(place.path("."), Permissions::from_mode(0o711)).unwrap();
}

/// Checks that a program ended well.
pub fn expect_success(output: &Output) {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}
