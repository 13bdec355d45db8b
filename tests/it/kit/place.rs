//! Where a server lives, and the server itself.

use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

use serde_json::json;
use tempfile::TempDir;

use super::{Caller, wait_for};

/// Valid at every server that a test starts, unless it says otherwise.
pub const API_KEY: &str = "it-key-0123456789abcdefghij";

/// A folder with a manifest, an environment, and the data of one server after the other.
pub struct Place {
    folder: TempDir,
    environment: Vec<(String, String)>,
}

impl Place {
    /// With the data of a server that was started and stopped once: making it takes a debug build
    /// a second or two.
    pub fn new() -> Self {
        static DATA: OnceLock<Vec<(String, Option<Vec<u8>>)>> = OnceLock::new();
        let place = Self::fresh();
        let data = DATA.get_or_init(first_data);
        fs::create_dir(place.data()).unwrap();
        for (name, bytes) in data {
            let path = place.data().join(name);
            match bytes {
                Some(bytes) => fs::write(path, bytes).unwrap(),
                None => fs::create_dir(path).unwrap(),
            }
        }
        place
    }

    /// Where no server has been.
    pub fn fresh() -> Self {
        let folder = TempDir::new().expect("there is room for a folder");
        Self { folder, environment: vec![("TURND_API_KEY".to_owned(), API_KEY.to_owned())] }
    }

    pub fn with_manifest(text: &str) -> Self {
        let place = Self::new();
        place.write_manifest(text);
        place
    }

    pub fn write_manifest(&self, text: &str) {
        fs::write(self.folder.path().join("turnd.toml"), text).unwrap();
    }

    /// Sets a variable of what is started here; an empty value unsets it.
    pub fn set(&mut self, name: &str, value: &str) {
        self.environment.retain(|(known, _)| known != name);
        if !value.is_empty() {
            self.environment.push((name.to_owned(), value.to_owned()));
        }
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("turnd-data")
    }

    /// The program in this folder, with nothing of the environment that the tests run in.
    pub fn command(&self, arguments: &[&str]) -> Command {
        // Another build may be put to the same test, a release build for instance.
        let program = std::env::var_os("TURND_TEST_PROGRAM");
        let mut command = match program {
            Some(program) => Command::new(program),
            None => Command::new(env!("CARGO_BIN_EXE_turnd")),
        };
        command.args(arguments).current_dir(self.folder.path());
        command.env_clear().envs(self.environment.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, arguments: &[&str]) -> Exit {
        self.start(arguments).exit()
    }

    /// Starts a command.
    pub fn start(&self, arguments: &[&str]) -> Running {
        Running::start(self.command(arguments))
    }

    /// Starts a server that keeps the place for as long as it runs.
    pub fn serve_once(self) -> Server {
        let mut server = self.serve();
        server.place = Some(self);
        server
    }

    /// Starts a server and waits until it says where it listens.
    pub fn serve(&self) -> Server {
        self.try_serve().unwrap_or_else(|exit| panic!("the server does not start: {exit:?}"))
    }

    /// Starts a server that may refuse to.
    pub fn try_serve(&self) -> Result<Server, Exit> {
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--data", "turnd-data"];
        let mut running = self.start(&arguments);
        let listens = wait_for("the address of the server", || {
            let greeting = running.stdout.text();
            let line = greeting.strip_prefix("turnd listens on http://");
            let address = line.and_then(|line| line.split_once('\n')).map(|(line, _)| line.parse());
            match address {
                Some(address) => Some(Some(address.expect("the greeting names an address"))),
                None => running.has_ended().then_some(None),
            }
        });
        match listens {
            Some(address) => Ok(Server { address, running, place: None }),
            None => Err(running.exit()),
        }
    }
}

/// What a first start leaves behind: files, and folders that are empty.
fn first_data() -> Vec<(String, Option<Vec<u8>>)> {
    let place = Place::fresh();
    let server = place.serve();
    server.terminate();
    assert_eq!(server.exit().code, Some(0));
    let entries = fs::read_dir(place.data()).unwrap().map(Result::unwrap);
    let read = |entry: fs::DirEntry| {
        let is_file = entry.file_type().unwrap().is_file();
        let bytes = is_file.then(|| fs::read(entry.path()).unwrap());
        (entry.file_name().into_string().unwrap(), bytes)
    };
    entries.map(read).collect()
}

/// How a process ended and what it said.
#[derive(Debug)]
pub struct Exit {
    /// None when a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// A process whose output is kept. Dropping it kills it.
pub struct Running {
    child: Child,
    stdout: Transcript,
    stderr: Transcript,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let mut child = command.spawn().expect("the program starts");
        let stdout = Transcript::of(child.stdout.take().unwrap());
        let stderr = Transcript::of(child.stderr.take().unwrap());
        Self { child, stdout, stderr }
    }

    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("the child is ours").is_some()
    }

    /// Waits until it has ended.
    pub fn exit(mut self) -> Exit {
        let status = wait_for("the process to end", || self.child.try_wait().unwrap());
        Exit {
            code: status.code(),
            stdout: self.stdout.whole_text(),
            stderr: self.stderr.whole_text(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.has_ended() {
            drop(self.child.kill());
            drop(self.child.wait());
        }
        if std::thread::panicking() {
            eprintln!("--- stderr of the program\n{}", self.stderr.text());
        }
    }
}

/// What a process writes, read as it comes so that it never waits for a reader.
struct Transcript {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Transcript {
    fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&bytes);
        let reader = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = pipe.read(&mut piece) {
                written.lock().unwrap().extend_from_slice(&piece[..length]);
            }
        });
        Self { bytes, reader: Some(reader) }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    /// Everything, once the process has ended.
    fn whole_text(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.text()
    }
}

/// A running server. Dropping it kills it.
pub struct Server {
    pub address: SocketAddr,
    running: Running,
    /// Dropped after the server.
    place: Option<Place>,
}

impl Server {
    /// Somebody with the API key.
    pub fn machine(&self) -> Caller {
        Caller { address: self.address, bearer: Some(API_KEY.to_owned()), api: "machine" }
    }

    /// Somebody with a fresh client token.
    pub fn client(&self, owner: &str) -> Caller {
        let body = json!({ "identity": { "id": owner } });
        let minted = self.machine().post("/api/machine/client-tokens", &body).expect(200);
        let token = minted["token"].as_str().unwrap().to_owned();
        Caller { address: self.address, bearer: Some(token), api: "client" }
    }

    /// Somebody without a credential.
    pub fn stranger(&self) -> Caller {
        Caller { address: self.address, bearer: None, api: "client" }
    }

    pub fn stdout(&self) -> String {
        self.running.stdout()
    }

    /// kill -9, and nothing after it.
    pub fn kill(mut self) -> Exit {
        self.running.child.kill().expect("the server runs");
        self.running.exit()
    }

    /// Asks the server to stop.
    pub fn terminate(&self) {
        self.signal("TERM");
    }

    pub fn signal(&self, name: &str) {
        let pid = self.running.child.id().to_string();
        let sent = Command::new("sh").args(["-c", "kill -s $0 $1", name, &pid]).status();
        assert!(sent.expect("there is a shell").success());
    }

    /// Waits until it has ended.
    pub fn exit(self) -> Exit {
        self.running.exit()
    }
}
