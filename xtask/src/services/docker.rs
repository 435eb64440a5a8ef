//! Servers in containers: whether an engine answers and has the image is asked here, cheaply; the
//! container itself is the affair of `xtask-containers`, which is built when it is needed.

use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use crate::cargo;
use crate::ending::{self, Stop};

/// How long an engine has to answer a question.
const ANSWER_LIMIT: Duration = Duration::from_secs(3);
/// How long a pull may go without news, and in all.
const PULL_SILENCE: Duration = Duration::from_secs(20);
const PULL_LIMIT: Duration = Duration::from_secs(180);

/// A Docker engine that answers.
pub(super) struct Engine {
    address: Address,
}

/// Where an engine is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Address {
    Socket(PathBuf),
    Tcp(String),
}

impl Engine {
    /// The engine that `DOCKER_HOST` names, else the one behind a usual socket.
    pub(super) fn find() -> Result<Self> {
        if env::var_os("DOCKER_TLS_VERIFY").is_some_and(|value| !value.is_empty()) {
            bail!("DOCKER_TLS_VERIFY is set, and an engine behind TLS is not supported");
        }
        let named = env::var("DOCKER_HOST").ok().filter(|host| !host.is_empty());
        let address = match &named {
            Some(host) => Address::parse(host)?,
            None => usual_sockets()
                .find(|socket| socket.exists())
                .map(Address::Socket)
                .context("there is no Docker engine: no socket, and DOCKER_HOST is not set")?,
        };
        let engine = Self { address };
        let (status, _) = engine
            .ask("GET", "/_ping", ANSWER_LIMIT, ANSWER_LIMIT)
            .with_context(|| format!("the Docker engine at {} does not answer", engine.host()))?;
        ensure!(
            status == 200,
            "the Docker engine answers with status {status}"
        );
        Ok(engine)
    }

    /// As DOCKER_HOST has it.
    fn host(&self) -> String {
        match &self.address {
            Address::Socket(path) => format!("unix://{}", path.display()),
            Address::Tcp(address) => format!("tcp://{address}"),
        }
    }

    /// Has the engine get the image, unless it has it.
    pub(super) fn get_image(&self, image: &str) -> Result<()> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
        ensure!(
            !image.is_empty() && image.chars().all(plain),
            "{image:?} is not the name of an image"
        );
        if self.has(image)? {
            return Ok(());
        }
        eprintln!("pulling {image}");
        self.pull(image)
            .with_context(|| format!("the image {image} is not there and cannot be pulled"))
    }

    fn has(&self, image: &str) -> Result<bool> {
        let path = format!("/images/{image}/json");
        let (status, body) = self.ask("GET", &path, ANSWER_LIMIT, ANSWER_LIMIT)?;
        match status {
            200 => Ok(true),
            404 => Ok(false),
            _ => bail!(
                "the Docker engine answers with status {status}: {}",
                message(&body)
            ),
        }
    }

    fn pull(&self, image: &str) -> Result<()> {
        let path = format!("/images/create?fromImage={image}");
        let (status, body) = self.ask("POST", &path, PULL_SILENCE, PULL_LIMIT)?;
        // A pull that fails on its way says so in its last line, and the status has long been sent.
        let failed = status != 200 || !self.has(image)?;
        ensure!(!failed, "{}", message(&body));
        Ok(())
    }

    /// Status and body of an answer, with a limit for silence and one for the whole.
    fn ask(
        &self,
        method: &str,
        path: &str,
        silence: Duration,
        limit: Duration,
    ) -> Result<(u16, String)> {
        let mut stream = self.connect(silence)?;
        // HTTP/1.0: the answer comes in one piece, and ends where the connection does.
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nHost: docker\r\nContent-Length: 0\r\n\r\n"
        )?;
        let started = Instant::now();
        let mut answer = Vec::new();
        let mut piece = [0; 8192];
        loop {
            match stream.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => answer.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                    ) =>
                {
                    bail!("no news for {} s", silence.as_secs())
                }
                Err(error) => return Err(error.into()),
            }
            ensure!(
                started.elapsed() < limit,
                "not done after {} s",
                limit.as_secs()
            );
        }
        parse_answer(&String::from_utf8_lossy(&answer))
    }

    fn connect(&self, silence: Duration) -> Result<Box<dyn Stream>> {
        Ok(match &self.address {
            Address::Socket(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(silence))?;
                Box::new(stream)
            }
            Address::Tcp(address) => {
                let address = address
                    .to_socket_addrs()?
                    .next()
                    .context("it has no address")?;
                let stream = TcpStream::connect_timeout(&address, ANSWER_LIMIT)?;
                stream.set_read_timeout(Some(silence))?;
                Box::new(stream)
            }
        })
    }
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

impl Address {
    fn parse(host: &str) -> Result<Self> {
        if let Some(path) = host.strip_prefix("unix://") {
            return Ok(Self::Socket(PathBuf::from(path)));
        }
        let tcp = ["tcp://", "http://"]
            .iter()
            .find_map(|scheme| host.strip_prefix(scheme));
        match tcp {
            Some(address) => Ok(Self::Tcp(address.trim_end_matches('/').to_owned())),
            None => bail!("DOCKER_HOST is of a kind that is not supported: unix:// or tcp:// is"),
        }
    }
}

/// Where engines listen: as root, rootless, and Docker Desktop.
fn usual_sockets() -> impl Iterator<Item = PathBuf> {
    let below =
        |variable: &str, path: &str| env::var_os(variable).map(|v| Path::new(&v).join(path));
    [
        Some(PathBuf::from("/var/run/docker.sock")),
        below("XDG_RUNTIME_DIR", "docker.sock"),
        below("HOME", ".docker/run/docker.sock"),
        below("HOME", ".docker/desktop/docker.sock"),
    ]
    .into_iter()
    .flatten()
}

/// Status and body.
fn parse_answer(answer: &str) -> Result<(u16, String)> {
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .context("it answers with something else than HTTP")?;
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    Ok((status, body.to_owned()))
}

/// What an engine says went wrong: `message` of an answer, or `error` of the last line of a pull.
fn message(body: &str) -> String {
    let last = body.lines().next_back().unwrap_or_default();
    let Ok(Value::Object(fields)) = serde_json::from_str(last) else {
        return last.to_owned();
    };
    let said = ["message", "error"]
        .iter()
        .find_map(|name| fields.get(*name)?.as_str());
    said.unwrap_or(last).to_owned()
}

/// A container that another process holds; dropping it has it removed, and so does the end of this
/// process, however it ends.
pub(super) struct Container {
    pub(super) url: String,
    _holder: Arc<Holder>,
}

struct Holder {
    process: Mutex<Option<Child>>,
}

impl Container {
    /// Starts a container: `server` is what `xtask-containers` takes.
    pub(super) fn start(engine: &Engine, server: &str, image: &str, more: &[&str]) -> Result<Self> {
        let mut command = Self::holder(engine)?;
        command.args([server, image]).args(more);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // In a group of its own: a Ctrl-C is for this process, which ends the holder when it is time.
        let mut process = command
            .process_group(0)
            .spawn()
            .context("cannot start xtask-containers")?;
        let output = process.stdout.take().context("standard output is piped")?;
        let holder = Arc::new(Holder {
            process: Mutex::new(Some(process)),
        });
        ending::with_this_process(&holder);
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let told: Value = serde_json::from_str(&line)
            .context("xtask-containers could not be built or started, see above")?;
        if let Some(why) = told["error"].as_str() {
            bail!("{why}");
        }
        let url = told["url"]
            .as_str()
            .context("xtask-containers names no URL")?;
        Ok(Self {
            url: url.to_owned(),
            _holder: holder,
        })
    }

    /// A call of `xtask-containers`, which Cargo builds first.
    fn holder(engine: &Engine) -> Result<Command> {
        let mut command = cargo::cargo()?;
        command.args(["run", "--package", "xtask-containers"]);
        // The first build takes a minute or two, and says so.
        if cargo::target()?.join("debug/xtask-containers").exists() {
            command.arg("--quiet");
        }
        command.arg("--").env("DOCKER_HOST", engine.host());
        Ok(command)
    }
}

impl Stop for Holder {
    fn stop(&self) {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut process) = process.take() {
            // It may still be Cargo that builds it, which does not look at its standard input.
            let _ = kill_process_group(Pid::from_child(&process), Signal::TERM);
            // Closes its standard input, too, and gives it the time that it needs.
            match process.wait() {
                Ok(status) if status.code().is_some_and(|code| code != 0) => {
                    eprintln!("the container may be left: xtask-containers ended with {status}");
                }
                _ => {}
            }
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Address, message, parse_answer};

    #[test]
    fn engines_are_named_by_url() {
        let socket = Address::Socket(PathBuf::from("/run/docker.sock"));
        assert_eq!(Address::parse("unix:///run/docker.sock").ok(), Some(socket));
        let tcp = Address::Tcp("10.0.0.1:2375".to_owned());
        assert_eq!(Address::parse("tcp://10.0.0.1:2375/").ok(), Some(tcp));
        assert!(Address::parse("ssh://somewhere").is_err());
    }

    #[test]
    fn an_answer_has_status_and_body() {
        let (status, body) = parse_answer("HTTP/1.0 200 OK\r\nServer: x\r\n\r\nOK").expect("HTTP");
        assert_eq!((status, &*body), (200, "OK"));
        assert!(parse_answer("").is_err());
        assert!(parse_answer("220 mail.example.org\r\n").is_err());
    }

    #[test]
    fn an_engine_says_what_went_wrong() {
        assert_eq!(message("{\"message\":\"no such host\"}\n"), "no such host");
        let pull =
            "{\"status\":\"Pulling\"}\r\n{\"errorDetail\":{},\"error\":\"too many requests\"}\r\n";
        assert_eq!(message(pull), "too many requests");
        assert_eq!(message("plain words"), "plain words");
    }
}
