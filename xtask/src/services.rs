//! Servers for tests, by the first way that there is: one that a URL names, a container, a program of
//! this machine.

mod docker;
mod local;
mod mongo;
mod postgres;

use std::env;
use std::fmt;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::backends::{self, BACKENDS, Backend};
use crate::ending;
use docker::{Container, Engine};

/// How servers for tests are to be had.
#[derive(Debug, Clone, Args)]
#[group(id = "services")]
pub(crate) struct Options {
    /// The only way to get a server; default the first that works, in this order.
    #[arg(long, value_enum, value_name = "WAY")]
    via: Option<Way>,
    /// Install or build missing server programs: packages as root on Debian, SecantusDB with Cargo.
    #[arg(long)]
    pub(crate) install: bool,
    /// The image for PostgreSQL in a container.
    #[arg(long, value_name = "IMAGE[:TAG]", default_value = postgres::IMAGE)]
    postgres_image: String,
    /// The image for MongoDB in a container.
    #[arg(long, value_name = "IMAGE[:TAG]", default_value = mongo::IMAGE)]
    mongo_image: String,
    /// As what a server that is started for Mongo presents itself.
    #[arg(long, value_enum, value_name = "KIND", default_value_t = Handshake::Standalone)]
    mongo_handshake: Handshake,
    /// Where a program of this machine has its data; default memory, for benchmarks disk.
    #[arg(long, value_enum, value_name = "WHERE")]
    pub(crate) storage: Option<Storage>,
}

/// Where a server has its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Storage {
    /// In /dev/shm where that has room and TMPDIR is not set, else on disk. It outlives a killed server.
    #[default]
    Memory,
    /// In the folder for temporary files.
    Disk,
}

/// A way to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    /// The server that an environment variable names, e.g. RHEO_POSTGRES_URL.
    Url,
    /// A container, when a Docker engine answers and has the image or can pull it.
    Docker,
    /// A program of this machine, in a temporary folder.
    Local,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Url => "URL",
            Self::Docker => "Docker",
            Self::Local => "local",
        })
    }
}

/// What a server for Mongo is, to the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Handshake {
    /// A server by itself.
    Standalone,
    /// A replica set of one.
    ReplicaSet,
}

/// A server that tests can reach, for as long as this value lives.
pub(crate) struct Service {
    /// What tells the tests where it is: environment variables.
    variables: Vec<(&'static str, String)>,
    /// What serves, and why that.
    pub(crate) told: String,
    _started: Option<Box<dyn Send>>,
}

impl Service {
    /// Tells a command where the server is.
    pub(crate) fn tell(&self, command: &mut Command) {
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
    }
}

/// What a server backend needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing.
    Nothing,
    /// A PostgreSQL server.
    Postgres,
    /// A MongoDB server, or one that speaks like it.
    Mongo,
}

impl Needs {
    /// Gets it.
    pub(crate) fn start(self, options: &Options) -> Result<Option<Service>> {
        match self {
            Self::Nothing => Ok(None),
            Self::Postgres => first(&postgres::kind(options), options).map(Some),
            Self::Mongo => first(&mongo::kind(options), options).map(Some),
        }
    }
}

/// A kind of server, and what each way to it needs to know.
struct Kind<'a> {
    product: &'static str,
    /// Names it by URL.
    variable: &'static str,
    /// Names the file with its process id, where tests may kill it and it is started again.
    pid_variable: &'static str,
    image: &'a str,
    /// What `xtask-containers` calls it, and what else it is told.
    container: (&'static str, &'static [&'static str]),
    local: fn(&Options) -> Result<Started>,
}

/// A server that was started here.
struct Started {
    url: String,
    /// Which product, of which version, from where.
    told: String,
    /// Has its process id, where it may be killed and is started again.
    pid_file: Option<PathBuf>,
    lives: Box<dyn Send>,
}

/// Takes the first way that works.
fn first(kind: &Kind, options: &Options) -> Result<Service> {
    let mut passed_over = Vec::new();
    for way in Way::value_variants() {
        if options.via.is_some_and(|only| only != *way) {
            continue;
        }
        let service = match way {
            Way::Url => by_url(kind),
            Way::Docker => in_container(kind).map(|started| of_this_run(kind, started)),
            Way::Local => (kind.local)(options).map(|started| of_this_run(kind, started)),
        };
        match service {
            Ok(service) => {
                let why = reasons(options.via, &passed_over);
                return Ok(Service {
                    told: format!("{}{why}", service.told),
                    ..service
                });
            }
            Err(why) => passed_over.push((*way, format!("{why:#}"))),
        }
    }
    let tried: Vec<String> = passed_over
        .iter()
        .map(|(way, why)| format!("\n  {way}: {why}"))
        .collect();
    bail!("there is no {}:{}", kind.product, tried.concat())
}

/// Why this way and none before it, as the end of a line.
fn reasons(via: Option<Way>, passed_over: &[(Way, String)]) -> String {
    if via.is_some() {
        return ", as --via says".to_owned();
    }
    let reasons: Vec<String> = passed_over
        .iter()
        .map(|(way, why)| format!("; not {way}: {}", why.trim().replace('\n', " ")))
        .collect();
    reasons.concat()
}

fn by_url(kind: &Kind) -> Result<Service> {
    let url = env::var(kind.variable).ok().filter(|url| !url.is_empty());
    let url = url.with_context(|| format!("{} is not set", kind.variable))?;
    Ok(Service {
        variables: vec![(kind.variable, url)],
        told: format!("the server that {} names", kind.variable),
        _started: None,
    })
}

fn of_this_run(kind: &Kind, started: Started) -> Service {
    let pid_file = started.pid_file.map(|file| {
        let file = file.display().to_string();
        (kind.pid_variable, file)
    });
    Service {
        variables: [(kind.variable, started.url)]
            .into_iter()
            .chain(pid_file)
            .collect(),
        told: started.told,
        _started: Some(started.lives),
    }
}

fn in_container(kind: &Kind) -> Result<Started> {
    let engine = Engine::find()?;
    engine.get_image(kind.image)?;
    let (server, more) = kind.container;
    let container = Container::start(&engine, server, kind.image, more)?;
    Ok(Started {
        url: container.url.clone(),
        told: format!("a container of {}", kind.image),
        pid_file: None,
        lives: Box::new(container),
    })
}

/// What `cargo xtask services` takes.
#[derive(Args)]
pub(crate) struct Serve {
    /// For which backends; default all that need a server.
    #[arg(value_name = "BACKEND", value_parser = backends::server_parser())]
    backends: Vec<String>,
    #[command(flatten)]
    options: Options,
    /// Runs this command with the servers, and ends them with it; default until Ctrl-C.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// `cargo xtask services`: servers for whoever wants to try something.
pub(crate) fn run(serve: &Serve) -> Result<ExitCode> {
    let all = BACKENDS
        .iter()
        .copied()
        .filter(Backend::has_server)
        .collect();
    let backends: Vec<Backend> = match &serve.backends[..] {
        [] => all,
        names => backends::named(names),
    };
    let mut services = Vec::new();
    for backend in backends {
        if let Some(service) = backend.needs.start(&serve.options)? {
            eprintln!("{}: {}", backend.package, service.told);
            services.push(service);
        }
    }
    let [program, arguments @ ..] = &serve.command[..] else {
        for (name, value) in services.iter().flat_map(|service| &service.variables) {
            println!("export {name}='{value}'");
        }
        eprintln!("they run until Ctrl-C");
        loop {
            std::thread::park();
        }
    };
    let mut command = Command::new(program);
    command.args(arguments);
    services
        .iter()
        .for_each(|service| service.tell(&mut command));
    // With a terminal it stays in the foreground, so that it can be talked to.
    let status = if io::stdin().is_terminal() {
        command.status()
    } else {
        ending::status(&mut command)
    };
    let status = status.with_context(|| format!("cannot start {program}"))?;
    Ok(match status.code().map(u8::try_from) {
        Some(Ok(code)) => ExitCode::from(code),
        _ => ExitCode::FAILURE,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{Kind, Options, Started, Way, first, reasons};

    #[derive(Parser)]
    struct Call {
        #[command(flatten)]
        options: Options,
    }

    fn options(arguments: &[&str]) -> Options {
        Call::parse_from([&["test"], arguments].concat()).options
    }

    /// A kind that only the local way gives, if at all.
    fn kind(local: fn(&Options) -> anyhow::Result<Started>) -> Kind<'static> {
        Kind {
            product: "Nothing",
            variable: "RHEO_NOTHING_URL",
            pid_variable: "RHEO_NOTHING_PID_FILE",
            image: "not the name of an image",
            container: ("nothing", &[]),
            local,
        }
    }

    fn works(_: &Options) -> anyhow::Result<Started> {
        Ok(Started {
            url: "nothing://here".to_owned(),
            told: "nothing of this machine".to_owned(),
            pid_file: Some("/run/nothing.pid".into()),
            lives: Box::new(()),
        })
    }

    #[test]
    fn the_ways_before_are_tried_and_named() {
        let service = first(&kind(works), &options(&[])).expect("the last one works");
        assert!(service.told.starts_with(
            "nothing of this machine; not URL: RHEO_NOTHING_URL is not set; not Docker: "
        ));
        assert_eq!(service.told.lines().count(), 1);
        assert_eq!(
            service.variables,
            [
                ("RHEO_NOTHING_URL", "nothing://here".to_owned()),
                ("RHEO_NOTHING_PID_FILE", "/run/nothing.pid".to_owned())
            ]
        );
    }

    #[test]
    fn a_way_can_be_demanded() {
        let service = first(&kind(works), &options(&["--via", "local"])).expect("works");
        assert_eq!(service.told, "nothing of this machine, as --via says");
        let why = first(&kind(works), &options(&["--via", "url"]))
            .err()
            .expect("not set");
        assert!(format!("{why:#}").contains("RHEO_NOTHING_URL is not set"));
    }

    #[test]
    fn when_no_way_works_all_are_named() {
        let why = first(&kind(|_| anyhow::bail!("install nothing")), &options(&[]));
        let why = format!("{:#}", why.err().expect("no way"));
        for part in [
            "there is no Nothing",
            "URL: RHEO_NOTHING_URL",
            "Docker: ",
            "local: install nothing",
        ] {
            assert!(why.contains(part), "{why}");
        }
    }

    #[test]
    fn reasons_are_one_line() {
        let passed_over = [(Way::Local, "it ended:\nno memory\n".to_owned())];
        assert_eq!(
            reasons(None, &passed_over),
            "; not local: it ended: no memory"
        );
    }
}
